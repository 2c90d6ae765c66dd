// Ranked rows: each write at each place, on small rows and on large ones.

import assert from 'node:assert/strict';
import {
  everyByte,
  noise,
  oneMegabyte,
  range,
  readCase,
  writeCase,
  type ConformanceCase,
} from './case.ts';
import { ranked } from './contents.ts';

const manyScores = range(600).flatMap((i) => [`m${i}`, i]);

export const rankedCases: readonly ConformanceCase[] = [
  writeCase({
    name: 'ranked: putScore says what is new, and moves what is not',
    given: { k: ranked('a', 1, 'b', 2, 'c', 3) },
    when: (v) => [
      v.putScore('k', 'd', 2.5),
      v.putScore('k', 'a', 9),
      v.putScore('k', 'c', -9),
      v.putScore('k', 'b', 2),
    ],
    answers: [true, false, false, false],
    then: { k: ranked('c', -9, 'b', 2, 'd', 2.5, 'a', 9) },
  }),
  writeCase({
    name: 'ranked: -0 is stored as 0',
    given: { k: ranked('a', 1) },
    when: (v) => {
      v.putScore('k', 'a', -0);
      v.putScore('k', 'b', -0);
      v.putScore('k', 'c', 0);
      return ['a', 'b', 'c'].map((member) => Object.is(v.score('k', member), 0));
    },
    answers: [true, true, true],
    then: { k: ranked('a', 0, 'b', 0, 'c', 0) },
  }),
  writeCase({
    name: 'ranked: scores at the edges of a double',
    when: (v) => {
      const edges = [Infinity, -Infinity, 5e-324, -5e-324, Number.MAX_VALUE, -Number.MAX_VALUE];
      [...edges, 0.1 + 0.2, 2 ** 53, 2 ** 53 + 2, 1e-10].forEach((s) => v.putScore('k', `${s}`, s));
    },
    then: {
      k: ranked(
        ...[Infinity, -Infinity, 5e-324, -5e-324, Number.MAX_VALUE, -Number.MAX_VALUE].flatMap(
          (s) => [`${s}`, s],
        ),
        ...[0.1 + 0.2, 2 ** 53, 2 ** 53 + 2, 1e-10].flatMap((s) => [`${s}`, s]),
      ),
    },
  }),
  writeCase({
    name: 'ranked: to infinity and back',
    given: { k: ranked('a', 1, 'b', 2) },
    when: (v) => {
      v.putScore('k', 'a', Infinity);
      v.putScore('k', 'b', -Infinity);
      v.putScore('k', 'a', 5);
    },
    then: { k: ranked('b', -Infinity, 'a', 5) },
  }),
  writeCase({
    name: 'ranked: ties are in the order of unsigned bytes, a prefix first',
    when: (v) =>
      ['', ...everyByte, 'ab', 'abc', 'a\0', '\xff\0'].forEach((m) => v.putScore('k', m, 1)),
    then: {
      k: ranked(...['', ...everyByte, 'ab', 'abc', 'a\0', '\xff\0'].flatMap((m) => [m, 1])),
    },
  }),
  writeCase({
    name: 'ranked: removal says what was there; the row goes with its last member',
    given: { k: ranked('a', 1, 'b', 1) },
    when: (v) => {
      const row = v.row('k');
      const removed = ['x', 'a', 'a', 'b'].map((member) => v.removeFieldOf(row, member));
      return [...removed, v.table.count(row), v.find('k')];
    },
    answers: [false, true, false, true, 0, 0],
    then: {},
  }),
  writeCase({
    name: 'ranked: an empty member and one of 1 MB',
    when: (v) => [v.putScore('k', '', 1), v.putScore('k', noise(oneMegabyte), 1)],
    answers: [true, true],
    then: { k: ranked('', 1, noise(oneMegabyte), 1) },
  }),
  writeCase({
    name: 'ranked: changes in a large one',
    given: { k: ranked(...manyScores) },
    when: (v) => [
      v.putScore('k', 'm0', 599.5),
      v.putScore('k', 'm599', -1),
      v.putScore('k', 'new', 300),
      v.removeField('k', 'm301'),
      v.rank('k', 'm0'),
      v.rank('k', 'm599'),
      v.rank('k', 'new'),
      v.rank('k', 'm302'),
    ],
    answers: [false, false, true, true, 599, 0, 301, 302],
    then: {
      k: ranked(
        ...manyScores.slice(2, 602),
        ...manyScores.slice(604, -2),
        ...['m0', 599.5, 'm599', -1, 'new', 300],
      ),
    },
  }),
  writeCase({
    name: 'ranked: every score of a large one changes, in reverse',
    given: { k: ranked(...manyScores) },
    when: (v) => {
      const row = v.row('k');
      for (const i of range(600)) assert.equal(v.putScoreOf(row, `m${i}`, -i), false);
    },
    then: { k: ranked(...manyScores.map((item) => (typeof item === 'number' ? 0 - item : item))) },
  }),
  readCase({
    name: 'ranked: score, rank and membership, also of what is missing',
    given: { k: ranked('a', 1, 'b', 1, 'c', -2) },
    read: (v) => [
      ...['a', 'b', 'c'].map((member) => [v.score('k', member), v.rank('k', member)]),
      Number.isNaN(v.score('k', 'd')),
      v.rank('k', 'd'),
      v.rank('k', ''),
      v.hasField('k', 'a'),
      v.hasField('k', 'd'),
    ],
    answers: [[1, 1], [1, 2], [-2, 0], true, -1, -1, true, false],
  }),
];
