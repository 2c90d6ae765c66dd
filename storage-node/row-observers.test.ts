import { expect, test } from 'vitest';
import { Change } from '../universal-row/row-change.ts';
import { RowObservers } from './row-observers.ts';

const rows = (count: number): Buffer[] =>
  Array.from({ length: count }, (_, n) => Buffer.from(`key-${n}`));

function observed(count: number): { observers: RowObservers; told: string[] } {
  const observers = new RowObservers();
  const told: string[] = [];
  for (const key of rows(count)) {
    observers.add(1, key, {
      rowChanged: (table, changed) => void told.push(`${table}/${changed.toString()}`),
    });
  }
  return { observers, told };
}

test('of few observed rows those hear of an emptied table that were there', () => {
  const { observers, told } = observed(10);
  observers.notify(observers.touchedIn([1], (key) => key.toString() === 'key-3'));
  expect(told).toEqual(['1/key-3']);
});

test('of very many all hear of it, and none is looked up', () => {
  const { observers, told } = observed(10_000);
  let looked = 0;
  observers.notify(observers.touchedIn([0, 1], () => ++looked > 0));
  expect(told).toHaveLength(10_000);
  expect(new Set(told).size).toBe(10_000);
  expect(looked).toBe(0);
});

test('observers of other tables hear nothing', () => {
  const { observers, told } = observed(10_000);
  observers.notify(observers.touchedIn([0, 2], () => true));
  expect(told).toEqual([]);
});

test('it has the rows that somebody observes', () => {
  const observers = new RowObservers();
  const one = { rowChanged: () => {} };
  const other = { rowChanged: () => {} };
  const bytes = Buffer.from('a\xff key', 'latin1');
  const key = bytes.subarray(0, 2);
  const has = (table: number): boolean => observers.has(table, bytes, 0, 2);
  observers.add(3, key, one);
  observers.add(3, key, other);
  expect([has(3), has(2), observers.size]).toEqual([true, false, 1]);
  observers.remove(3, key, one);
  expect(has(3)).toBe(true);
  observers.remove(3, key, other);
  expect([has(3), observers.size]).toEqual([false, 0]);
  observers.add(3, key, one);
  expect(observers.take(3)).toEqual([{ key, observers: new Set([one]) }]);
  expect([has(3), observers.size, observers.take(3)]).toEqual([false, 0, []]);
});

test('a row whose time had come before it was observed changes for nobody when it goes', () => {
  const observers = new RowObservers();
  const told: string[] = [];
  const key = Buffer.from('k');
  observers.add(1, key, { rowChanged: () => void told.push('late') }, 2000);
  observers.add(1, key, { rowChanged: () => void told.push('early') }, 1000);
  const gone = { table: 1, key, change: Change.expired, by: undefined };
  observers.notify([{ ...gone, dueAt: 1500 }]);
  expect(told).toEqual(['early']);
  observers.notify([{ ...gone, dueAt: 2500 }]);
  expect(told).toEqual(['early', 'late', 'early']);
});
