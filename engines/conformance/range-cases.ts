// Ranked rows by rank, by score and by bytes: every bound, exclusive or not, in both directions, with
// every offset and limit, against a plain filter.

import assert from 'node:assert/strict';
import type { LexRange, ScoreRange } from '../../universal-row/rows.ts';
import { everyByte, formSizes, range, tableOf, type ConformanceCase } from './case.ts';
import { compareRanked, compareText, pairsOf, ranked, type RowContent } from './contents.ts';
import { unlimited, type Verbs } from './verbs.ts';

type Scored = [member: string, score: number];

interface RankedSample {
  name: string;
  members: Scored[];
}

/** A case on a row of these members, ordered, given as `k`. */
function rankedCase(
  name: string,
  members: Scored[],
  check: (v: Verbs, ordered: Scored[]) => void,
): ConformanceCase {
  const ordered = members.slice().sort(compareRanked);
  const content: RowContent = ranked(...members.flat());
  return {
    name,
    async run(trial) {
      await trial.fill(tableOf({ k: content }));
      await trial.read((v) => check(v, ordered));
      if (trial.subject.supports.reopen) {
        await trial.checkpointAndReopen();
        await trial.read((v) => check(v, ordered));
      }
    },
  };
}

const byScoreSamples: RankedSample[] = [
  { name: 'one member', members: [['m', 2]] },
  {
    name: 'few members, ties and infinities',
    members: [
      ['a', -Infinity],
      ['b', -1],
      ['c', 2],
      ['d', 2],
      ['e', 2],
      ['f', 2.5],
      ['g', Infinity],
      ['h', Infinity],
    ],
  },
  {
    name: '300 members in tens of ties',
    members: range(300).map((i) => [`m${i}`, Math.floor(i / 10) - 10]),
  },
  { name: '300 members of one score', members: range(300).map((i) => [`m${i}`, 2]) },
];

const scoreBounds = [-Infinity, -1, 0, 2, 2.5, 7, Infinity];
const exclusions = [false, true].flatMap((min) => [false, true].map((max) => [min, max] as const));
const directions = [false, true];
const offsets = [0, 1, 3, 1000];
const limits = [0, 1, 4, unlimited];

const byScore = byScoreSamples.flatMap(({ name, members }) =>
  exclusions.flatMap(([minExclusive, maxExclusive]) =>
    directions.map((reverse) =>
      rankedCase(
        `by score: ${name}, ${rangeName(minExclusive, maxExclusive)}${reverse ? ', reverse' : ''}`,
        members,
        (v, ordered) => {
          const walk = reverse ? ordered.toReversed() : ordered;
          for (const min of scoreBounds) {
            for (const max of scoreBounds) {
              const bounds: ScoreRange = { min, minExclusive, max, maxExclusive };
              const inside = walk.filter(([, score]) => isInScores(score, bounds));
              const what = `${min} to ${max}`;
              assert.equal(v.table.countByScore(v.row('k'), bounds), inside.length, what);
              eachWalk(inside, what, (offset, limit) =>
                v.byScore('k', bounds, { reverse, offset, limit }),
              );
            }
          }
        },
      ),
    ),
  ),
);

const byLexSamples: RankedSample[] = [
  { name: 'one member', members: [['m', 0]] },
  {
    name: 'few members, an empty one and prefixes',
    members: ['', '\0', 'a', 'ab', 'abc', 'b', 'm\x7f', 'm\x80', '\xff'].map((m) => [m, 0]),
  },
  { name: '256 members, one of each byte', members: everyByte.map((m) => [m, 1]) },
  { name: '500 members', members: range(500).map((i) => [`m${i * 7}`, -3]) },
];

const lexBounds = [undefined, '', '\0', 'a', 'ab', 'aba', 'm', 'm20', 'm\x80', '\xff', '\xff\xff'];

const byLex = byLexSamples.flatMap(({ name, members }) =>
  exclusions.flatMap(([minExclusive, maxExclusive]) =>
    directions.map((reverse) =>
      rankedCase(
        `by lex: ${name}, ${rangeName(minExclusive, maxExclusive)}${reverse ? ', reverse' : ''}`,
        members,
        (v, ordered) => {
          const walk = reverse ? ordered.toReversed() : ordered;
          for (const min of lexBounds) {
            for (const max of lexBounds) {
              const bounds: LexRange = {
                min: min === undefined ? undefined : Buffer.from(min, 'latin1'),
                minExclusive,
                max: max === undefined ? undefined : Buffer.from(max, 'latin1'),
                maxExclusive,
              };
              const inside = walk.filter(
                ([m]) =>
                  isAfter(m, min, minExclusive) &&
                  (max === undefined || (maxExclusive ? m < max : m <= max)),
              );
              const what = `${JSON.stringify(min)} to ${JSON.stringify(max)}`;
              assert.equal(v.table.countByLex(v.row('k'), bounds), inside.length, what);
              eachWalk(inside, what, (offset, limit) =>
                v.byLex('k', bounds, { reverse, offset, limit }),
              );
            }
          }
        },
      ),
    ),
  ),
);

const byRank = formSizes.flatMap((size) =>
  directions.map((reverse) =>
    rankedCase(
      `by rank: ${size} members${reverse ? ', reverse' : ''}`,
      range(size).map((i) => [`m${(i * 7919) % size}`, ((i * 7919) % size) >> 2]),
      (v, ordered) => {
        const walk = reverse ? ordered.toReversed() : ordered;
        const middle = size >> 1;
        for (const from of [0, 1, middle, size - 1, size]) {
          for (const count of [0, 1, 2, middle, size, size + 5]) {
            const expected = walk.slice(from, from + count).flat();
            assert.deepEqual(v.byRank('k', from, count, reverse), expected, `${count} at ${from}`);
          }
        }
        for (const i of [0, 1, middle, size - 1]) {
          const [member, score] = ordered[i] ?? ordered[0]!;
          assert.equal(v.rank('k', member), ordered[i] === undefined ? 0 : i);
          assert.equal(v.score('k', member), score);
        }
      },
    ),
  ),
);

/** Each member by itself, some to a step: a command that asks for thousands is another matter. */
const consistent: ConformanceCase[] = formSizes.slice(0, -1).map((size) => {
  const members = range(size).map(
    (i): Scored => [String.fromCharCode(i % 256, i >> 8), (i * 31) % 17],
  );
  const ordered = members.toSorted(compareRanked);
  const ranks = new Map(ordered.map(([member], i) => [member, i]));
  return {
    name: `rank: agrees with the order for each of ${size} members`,
    async run(trial) {
      await trial.fill(tableOf({ k: ranked(...members.flat()) }));
      if (trial.subject.supports.reopen) await trial.checkpointAndReopen();
      for (let i = 0; i < size; i += 50) {
        await trial.read((v) => {
          for (const [member, score] of members.slice(i, i + 50)) {
            assert.equal(v.rank('k', member), ranks.get(member));
            assert.equal(v.score('k', member), score);
          }
          assert.equal(v.rank('k', 'missing'), -1);
        });
      }
    },
  };
});

const stops: ConformanceCase[] = [7, 300].map((size) =>
  rankedCase(
    `ranked: walks of ${size} members stop when the visitor says so`,
    range(size).map((i) => [`m${String(i).padStart(3, '0')}`, 0]),
    (v, ordered) => {
      const row = v.row('k');
      const all: ScoreRange = { min: 0, minExclusive: false, max: 0, maxExclusive: false };
      const open: LexRange = {
        min: undefined,
        minExclusive: false,
        max: undefined,
        maxExclusive: false,
      };
      for (const reverse of directions) {
        const walks: ((visit: () => boolean) => void)[] = [
          (visit) => v.table.eachByRank(row, 1, unlimited, reverse, visit),
          (visit) => v.table.eachByScore(row, all, reverse, 1, unlimited, visit),
          (visit) => v.table.eachByLex(row, open, reverse, 1, unlimited, visit),
        ];
        for (const walk of walks) {
          let seen = 0;
          walk(() => ++seen === 3);
          assert.equal(seen, 3);
        }
      }
      assert.equal(pairsOf(v.byLex('k', open)).length, ordered.length);
    },
  ),
);

function eachWalk(
  inside: Scored[],
  what: string,
  read: (offset: number, limit: number) => (string | number)[],
): void {
  for (const offset of offsets) {
    for (const limit of limits) {
      const expected = inside.slice(offset, offset + limit).flat();
      assert.deepEqual(read(offset, limit), expected, `${what}, ${limit} from ${offset}`);
    }
  }
}

function isInScores(score: number, r: ScoreRange): boolean {
  return (
    (r.minExclusive ? score > r.min : score >= r.min) &&
    (r.maxExclusive ? score < r.max : score <= r.max)
  );
}

function isAfter(member: string, min: string | undefined, exclusive: boolean): boolean {
  if (min === undefined) return true;
  const order = compareText(member, min);
  return exclusive ? order > 0 : order >= 0;
}

function rangeName(minExclusive: boolean, maxExclusive: boolean): string {
  return `${minExclusive ? '(' : '['}min, max${maxExclusive ? ')' : ']'}`;
}

export const rangeCases: readonly ConformanceCase[] = [
  ...byScore,
  ...byLex,
  ...byRank,
  ...consistent,
  ...stops,
];
