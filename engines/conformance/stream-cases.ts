// Streams: a state, and records in the order of their keys.

import assert from 'node:assert/strict';
import { Shape } from '../../universal-row/rows.ts';
import {
  everyByte,
  noise,
  range,
  readCase,
  tableOf,
  writeCase,
  type ConformanceCase,
  type ReadCase,
  type WriteCase,
} from './case.ts';
import { expiring, map, type RowContent, stream } from './contents.ts';
import type { Verbs } from './verbs.ts';

const timed = (...content: [string, ...string[]]): RowContent => ({
  ...stream(...content),
  shape: Shape.timed,
});
const key = (i: number): string => `e${String(i).padStart(6, '0')}`;
const many = (count: number, bytes = 10): string[] =>
  range(count).flatMap((i) => [key(i), noise(bytes, i)]);
const three = stream('st', 'a', '1', 'b', '2', 'c', '3');

const writes: WriteCase[] = [
  {
    name: 'a stream without records is a row',
    when: (v) => v.setState('k', 'state'),
    then: { k: stream('state') },
  },
  {
    name: 'a stream stays when its last record goes',
    given: { k: stream('st', 'a', '1') },
    when: (v) => v.removeRecord('k', 'a'),
    answers: true,
    then: { k: stream('st') },
  },
  {
    name: 'a stream stays when all of its records go at once',
    given: { k: stream('st', ...many(300)) },
    when: (v) => v.removeRecords('k', '', '\xff'),
    answers: 300,
    then: { k: stream('st') },
  },
  {
    name: 'a state is replaced by a longer one and a shorter one',
    given: { k: three },
    when: (v) => {
      v.setState('k', 'x'.repeat(100));
      v.setState('k', 'yy');
    },
    then: { k: stream('yy', 'a', '1', 'b', '2', 'c', '3') },
  },
  {
    name: 'records are added in order, between others and in front',
    given: { k: stream('st', 'b', '2') },
    when: (v) => {
      for (const name of ['d', 'c', 'a', 'ba', 'e', '']) v.addRecord('k', name, `of ${name}`);
    },
    then: {
      k: stream('st', 'b', '2', ...['d', 'c', 'a', 'ba', 'e', ''].flatMap((n) => [n, `of ${n}`])),
    },
  },
  {
    name: 'a value is replaced by one as long, a longer one and an empty one',
    given: { k: three },
    when: (v) => {
      v.setRecord('k', 'a', 'x');
      v.setRecord('k', 'b', 'longer');
      v.setRecord('k', 'c', '');
    },
    then: { k: stream('st', 'a', 'x', 'b', 'longer', 'c', '') },
  },
  {
    name: 'a record that is not there is not removed',
    given: { k: three },
    when: (v) => v.removeRecord('k', 'bb'),
    answers: false,
    then: { k: three },
  },
  {
    name: 'records are removed from a key on, below another',
    given: { k: three },
    when: (v) => [v.removeRecords('k', 'b', 'c'), v.removeRecords('k', 'bb', 'c')],
    answers: [1, 0],
    then: { k: stream('st', 'a', '1', 'c', '3') },
  },
  {
    name: 'a long run is cut out of the middle of a large stream',
    given: { k: stream('st', ...many(3000)) },
    when: (v) => v.removeRecords('k', key(10), key(2990)),
    answers: 2980,
    then: { k: stream('st', ...many(10), ...many(3000).slice(2990 * 2)) },
  },
  {
    name: 'every second record of a large stream goes',
    given: { k: stream('st', ...many(1000)) },
    when: (v) => {
      for (let i = 0; i < 1000; i += 2) v.removeRecord('k', key(i));
    },
    then: { k: stream('st', ...range(500).flatMap((i) => [key(2 * i + 1), noise(10, 2 * i + 1)])) },
  },
  {
    name: 'large records stand between small ones, and change their size',
    given: { k: stream('st', ...many(60, 80)) },
    when: (v) => {
      v.addRecord('k', `${key(30)}x`, noise(20_000));
      v.setRecord('k', key(10), noise(6000, 2));
      v.setRecord('k', key(0), noise(5000, 3));
      v.setRecord('k', key(59), noise(5000, 4));
      v.setRecord('k', key(10), 'small again');
    },
    then: {
      k: stream(
        'st',
        ...replaced(many(60, 80), {
          [key(10)]: 'small again',
          [key(0)]: noise(5000, 3),
          [key(59)]: noise(5000, 4),
        }),
        `${key(30)}x`,
        noise(20_000),
      ),
    },
  },
  {
    name: 'keys and values hold every byte but that keys begin with one below 255',
    when: (v) => {
      for (const byte of everyByte.slice(0, 255)) v.addRecord('k', `${byte}\xff\0`, byte);
    },
    then: { k: stream('', ...everyByte.slice(0, 255).flatMap((b) => [`${b}\xff\0`, b])) },
  },
  {
    name: 'keys are as long as they like',
    given: { k: stream('st', 'a', '1') },
    when: (v) => {
      for (const n of [50, 127, 128, 300, 5000]) v.addRecord('k', 'b'.repeat(n), String(n));
    },
    then: {
      k: stream(
        'st',
        'a',
        '1',
        ...[50, 127, 128, 300, 5000].flatMap((n) => ['b'.repeat(n), `${n}`]),
      ),
    },
  },
  {
    name: 'a timed map is kept as a stream is, and is none',
    given: { k: timed('st', ...many(300)) },
    when: (v) => {
      v.addRecord('k', 'z', 'last');
      v.removeRecord('k', key(0));
      v.setState('k', 'other');
    },
    then: { k: timed('other', ...many(300).slice(2), 'z', 'last') },
  },
  {
    name: 'a timed map without records is a row',
    given: { k: expiring(timed('st', 'a', '1'), 9e12) },
    when: (v) => v.removeRecord('k', 'a'),
    answers: true,
    then: { k: expiring(timed('st'), 9e12) },
  },
  {
    name: 'a stream is renamed with all there is in it',
    given: { k: expiring(stream('st', ...many(200)), 9e12), other: map('f', 'v') },
    when: (v) => void v.rename('k', 'other'),
    then: { other: expiring(stream('st', ...many(200)), 9e12) },
  },
  {
    name: 'a stream takes the place of another row, and another row its place',
    given: { a: map('f', 'v'), b: stream('st', ...many(200)) },
    when: (v) => {
      v.setStateOf(v.create('a', Shape.stream), 'new');
      v.create('b', Shape.stream);
      v.addRecord('b', 'x', 'y');
    },
    then: { a: stream('new'), b: stream('', 'x', 'y') },
  },
  {
    name: 'a stream is dropped',
    given: { k: stream('st', ...many(500)) },
    when: (v) => v.drop('k'),
    then: {},
  },
];

/** The items with other values under some of the keys. */
function replaced(items: string[], by: Record<string, string>): string[] {
  return items.map((item, i) => (i % 2 === 0 ? item : (by[items[i - 1]!] ?? item)));
}

const walk =
  (...args: [from: string, to: string, reverse?: boolean, limit?: number]) =>
  (v: Verbs): string[] =>
    v.records('k', ...args).filter((_, i) => i % 2 === 0);

const reads: ReadCase[] = [
  {
    name: 'a record is found by its key',
    given: { k: stream('st', ...many(500)) },
    read: (v) => [v.record('k', key(333)), v.record('k', 'e'), v.record('k', 'f')],
    answers: [noise(10, 333), undefined, undefined],
  },
  {
    name: 'the state is read',
    given: { k: three },
    read: (v) => v.state('k'),
    answers: 'st',
  },
  {
    name: 'a walk is from a key on',
    given: { k: three },
    read: walk('b', 'd'),
    answers: ['b', 'c'],
  },
  {
    name: 'a walk ends before a key',
    given: { k: three },
    read: walk('', 'c'),
    answers: ['a', 'b'],
  },
  {
    name: 'a walk down begins below a key',
    given: { k: three },
    read: walk('b', 'c', true),
    answers: ['b'],
  },
  {
    name: 'a walk down visits all',
    given: { k: three },
    read: walk('', '\xff', true),
    answers: ['c', 'b', 'a'],
  },
  { name: 'a walk over nothing', given: { k: three }, read: walk('bb', 'bc'), answers: [] },
  {
    name: 'a walk whose bounds have crossed',
    given: { k: three },
    read: walk('c', 'a'),
    answers: [],
  },
  {
    name: 'a walk in the middle of a large stream stops when it is told to',
    given: { k: stream('st', ...many(3000)) },
    read: walk(key(1000), key(2000), false, 5),
    answers: range(5).map((i) => key(1000 + i)),
  },
  {
    name: 'a walk down a large stream stops when it is told to',
    given: { k: stream('st', ...many(3000)) },
    read: walk(key(1000), key(2000), true, 5),
    answers: range(5).map((i) => key(1999 - i)),
  },
];

const randomOrder: ConformanceCase = {
  name: 'records come and go in random order',
  async run(trial) {
    const kept = new Map<string, string>();
    const steps = range(2500).map((i) => ({ at: (i * 7919) % 1009, bytes: noise(i % 90, i) }));
    for (let from = 0; from < steps.length; from += 100) {
      const some = steps.slice(from, from + 100);
      const adds = new Map<string, string>();
      const removes = new Set<string>();
      for (const { at, bytes } of some) {
        if (kept.has(key(at)) && at % 3 === 0) removes.add(key(at));
        else adds.set(key(at), bytes);
      }
      await trial.run((v) => {
        for (const [name, bytes] of adds) {
          if (kept.has(name)) v.setRecord('k', name, bytes);
          else v.addRecord('k', name, bytes);
        }
        for (const name of removes) if (!adds.has(name)) v.removeRecord('k', name);
      });
      for (const [name, bytes] of adds) kept.set(name, bytes);
      for (const name of removes) if (!adds.has(name)) kept.delete(name);
      await trial.check(tableOf({ k: stream('', ...[...kept].flat()) }));
    }
    assert.ok(kept.size > 500);
  },
};

export const streamCases: readonly ConformanceCase[] = [
  ...writes.map(writeCase),
  ...reads.map(readCase),
  randomOrder,
];
