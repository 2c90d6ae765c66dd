// Random writes of every kind, applied to a table and to its oracle alike, for tests.

import { Shape } from '../../../universal-row/rows.ts';
import type { RowTable } from '../../engine.ts';
import { bytes, create, find, push, putField, putScore, put, removeField } from './oracle.ts';
import type { Oracle, OracleRow, Random } from './oracle.ts';

/** How many keys and fields there are: few, so that writes meet. */
interface Spread {
  keys: number;
  fields: number;
}

/** One write to one row. Throws when the table's answer differs from the oracle's. */
export function writeOnce(random: Random, spread: Spread, table: RowTable, oracle: Oracle): void {
  const key = `key ${random.below(spread.keys)}`;
  const there = oracle.get(key);
  const action = random.below(100);
  if (action < 3) {
    if (there !== undefined) {
      table.drop(find(table, key));
      oracle.delete(key);
    }
  } else if (action < 6) {
    const expireAt = random.below(2) * (1000 + random.below(1000));
    if (there !== undefined) {
      table.setExpireAt(find(table, key), expireAt);
      there.expireAt = expireAt;
    }
  } else if (action < 8) {
    renameOnce(random, spread, table, oracle, key);
  } else if (there === undefined || action < 9) {
    replaceOnce(random, table, oracle, key);
  } else {
    changeOnce(random, spread, table, oracle, key, there);
  }
}

function renameOnce(
  random: Random,
  spread: Spread,
  table: RowTable,
  oracle: Oracle,
  key: string,
): void {
  const row = find(table, key);
  if (row === 0) return;
  const to = `key ${random.below(spread.keys)}`;
  const k = bytes(to);
  if (table.rename(row, k, 0, k.length) !== find(table, to)) throw new Error('rename: not there');
  const there = oracle.get(key)!;
  oracle.delete(key);
  oracle.set(to, there);
}

function replaceOnce(random: Random, table: RowTable, oracle: Oracle, key: string): void {
  const value = random.text();
  const shape = (1 + random.below(5)) as Shape;
  if (shape === Shape.value) {
    const expireAt = random.below(3) === 0 ? 1000 + random.below(1000) : 0;
    put(table, key, value, expireAt);
    oracle.set(key, { shape, expireAt, bytes: value });
    return;
  }
  const row = create(table, key, shape);
  if (table.count(row) !== 0) throw new Error('create: not empty');
  if (shape === Shape.map) {
    putField(table, row, 'first', value);
    oracle.set(key, { shape, expireAt: 0, fields: new Map([['first', value]]) });
  } else if (shape === Shape.set) {
    putField(table, row, value, '');
    oracle.set(key, { shape, expireAt: 0, members: new Set([value]) });
  } else if (shape === Shape.ranked) {
    putScore(table, row, value, 1);
    oracle.set(key, { shape, expireAt: 0, scores: new Map([[value, 1]]) });
  } else {
    push(table, row, true, value);
    oracle.set(key, { shape: Shape.array, expireAt: 0, elements: [value] });
  }
}

function changeOnce(
  random: Random,
  spread: Spread,
  table: RowTable,
  oracle: Oracle,
  key: string,
  there: OracleRow,
): void {
  const row = find(table, key);
  const check = (actual: unknown, expected: unknown, what: string) => {
    if (actual !== expected) throw new Error(`${what}: ${String(actual)}, not ${String(expected)}`);
  };
  const field = `field ${random.below(spread.fields)}`;
  if (there.shape === Shape.value) {
    const offset = random.below(there.bytes.length + 20);
    const patch = random.text();
    const p = bytes(patch);
    table.patchValue(row, offset, p, 0, p.length);
    const padded = there.bytes.padEnd(offset, '\0');
    there.bytes = padded.slice(0, offset) + patch + padded.slice(offset + patch.length);
    if (there.bytes.length > 100_000) {
      there.bytes = '';
      put(table, key, '', there.expireAt);
    }
    return;
  }
  if (there.shape === Shape.array) return changeArray(random, table, oracle, key, row, there);
  const removes = random.below(3) === 0;
  if (there.shape === Shape.map) {
    if (removes) {
      check(removeField(table, row, field), there.fields.delete(field), 'removeField');
    } else {
      const value = random.text();
      check(putField(table, row, field, value), !there.fields.has(field), 'putField');
      there.fields.set(field, value);
    }
    check(table.count(row), there.fields.size, 'count');
    if (there.fields.size === 0) oracle.delete(key);
  } else if (there.shape === Shape.set) {
    if (removes) {
      check(removeField(table, row, field), there.members.delete(field), 'removeField');
    } else {
      check(putField(table, row, field, ''), !there.members.has(field), 'putField');
      there.members.add(field);
    }
    check(table.count(row), there.members.size, 'count');
    if (there.members.size === 0) oracle.delete(key);
  } else {
    if (removes) {
      check(removeField(table, row, field), there.scores.delete(field), 'removeField');
    } else {
      const score = (random.below(40) - 20) / 2;
      check(putScore(table, row, field, score), !there.scores.has(field), 'putScore');
      there.scores.set(field, score + 0);
    }
    check(table.count(row), there.scores.size, 'count');
    if (there.scores.size === 0) oracle.delete(key);
  }
}

function changeArray(
  random: Random,
  table: RowTable,
  oracle: Oracle,
  key: string,
  row: number,
  there: OracleRow & { shape: typeof Shape.array },
): void {
  const { elements } = there;
  const action = random.below(20);
  const value = random.text();
  const v = bytes(value);
  if (action < 9) {
    push(table, row, action < 4, value);
    if (action < 4) elements.unshift(value);
    else elements.push(value);
  } else if (action < 12) {
    table.pop(row, action < 11);
    if (action < 11) elements.shift();
    else elements.pop();
  } else if (action < 14) {
    const index = random.below(elements.length);
    table.setElement(row, index, v, 0, v.length);
    elements[index] = value;
  } else if (action < 18) {
    const index = random.below(elements.length + 1);
    table.insertElement(row, index, v, 0, v.length);
    elements.splice(index, 0, value);
  } else {
    const index = random.below(elements.length);
    const count = 1 + random.below(random.below(10) === 0 ? elements.length : 4);
    table.removeElements(row, index, count);
    elements.splice(index, count);
  }
  if (table.count(row) !== elements.length) throw new Error('array: wrong count');
  if (elements.length === 0) oracle.delete(key);
}
