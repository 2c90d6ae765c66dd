import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hashCommands } from '../../access/redis/commands/hash.ts';
import { setCommands } from '../../access/redis/commands/set.ts';
import { sortedSetCommands } from '../../access/redis/commands/sorted-set.ts';
import { counted, oneOf, several, testDifferential, words } from './differential.ts';
import { Harness } from './harness.ts';
import { scanAll, testRandomCounts } from './random-answers.ts';
import { testTranscript } from './transcript.ts';

const specs = [...sortedSetCommands, ...hashCommands, ...setCommands];

testTranscript(`${import.meta.dirname}/testdata/sorted-set.txt`, specs);

const ranked = oneOf('y', 'z', 'w');
const key = fc.oneof({ weight: 12, arbitrary: ranked }, oneOf('set', 'hash', 'missing'));
const source = fc.oneof({ weight: 12, arbitrary: oneOf('y', 'z', 'w', 'set') }, oneOf('hash'));
const member = oneOf('a', 'b', 'c', 'd', 'e', '""', '10', '9', '"\\xff"', 'a-longer-member');
const score = fc.oneof(
  oneOf('0', '1', '2', '-1', '1.5', 'inf', '-inf', '+inf', '0000003', '1e3', '-5.94971599E8', 'x'),
  fc.integer({ min: -4, max: 4 }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (n === 0 ? '0' : String(n))),
);
const bound = fc.oneof(
  score,
  score.map((text) => `(${text}`),
  oneOf('-inf', '+inf'),
);
const lexBound = fc.oneof(
  oneOf('-', '+', 'x'),
  member.filter((name) => !name.startsWith('"')).map((name) => `[${name}`),
  member.filter((name) => !name.startsWith('"')).map((name) => `(${name}`),
);
const position = fc.integer({ min: -8, max: 8 }).map(String);
const limit = fc.oneof(fc.constant(''), words('LIMIT', position, position));
const flag = (word: string) => oneOf('', word);
const aggregation = words(
  oneOf('', 'WEIGHTS 2', 'WEIGHTS 2 -1', 'WEIGHTS 0.5 3 0'),
  oneOf('', 'AGGREGATE MIN', 'AGGREGATE MAX', 'AGGREGATE SUM', 'AGGREGATE'),
);
const option = oneOf('', '', 'NX', 'XX', 'GT', 'LT', 'CH');
const pairs = (most: number) => several(words(score, member), most);

const line = fc.oneof(
  { weight: 6, arbitrary: words('ZADD', key, option, option, pairs(6)) },
  { weight: 2, arbitrary: words('ZADD', key, option, 'INCR', pairs(1)) },
  words('ZINCRBY', key, score, member),
  words(oneOf('ZREM', 'ZMSCORE'), key, several(member)),
  words(oneOf('ZSCORE', 'ZRANK', 'ZREVRANK'), key, member),
  words('ZCARD', key),
  words('ZCOUNT', key, bound, bound),
  words('ZLEXCOUNT nothing', lexBound, lexBound),
  words('ZRANGE', key, position, position, flag('REV'), limit, flag('WITHSCORES')),
  words('ZRANGE', key, bound, bound, 'BYSCORE', flag('REV'), limit, flag('WITHSCORES')),
  words('ZREVRANGE', key, position, position, flag('WITHSCORES')),
  words(oneOf('ZRANGEBYSCORE', 'ZREVRANGEBYSCORE'), key, bound, bound, limit, flag('WITHSCORES')),
  words('ZRANGESTORE', key, key, position, position, flag('REV')),
  words('ZRANGESTORE', key, key, bound, bound, 'BYSCORE', limit, flag('REV')),
  words('ZREMRANGEBYRANK', key, position, position),
  words('ZREMRANGEBYSCORE', key, bound, bound),
  words(oneOf('ZPOPMIN', 'ZPOPMAX'), key, oneOf('', '0', '1', '2', '9', '-1')),
  words('ZMPOP', counted(key), oneOf('MIN', 'MAX'), oneOf('', 'COUNT 1', 'COUNT 3')),
  words(oneOf('ZUNION', 'ZINTER'), counted(source), aggregation, flag('WITHSCORES')),
  words('ZDIFF', counted(source), flag('WITHSCORES')),
  words(oneOf('ZUNIONSTORE', 'ZINTERSTORE'), key, counted(source), aggregation),
  words(oneOf('ZUNION', 'ZDIFF'), counted(source, 12), flag('WITHSCORES')),
  words('ZDIFFSTORE', key, counted(source)),
  words('ZINTERCARD', counted(source), oneOf('', 'LIMIT 0', 'LIMIT 1', 'LIMIT -1')),
  words('SADD set', several(member)),
  words('HSET hash f v'),
);
testDifferential(specs, line);

describe('with equal scores', () => {
  const lex = fc.oneof(
    { weight: 3, arbitrary: words('ZADD z', several(words('0', member), 6)) },
    words(oneOf('ZLEXCOUNT', 'ZREMRANGEBYLEX'), 'z', lexBound, lexBound),
    words(oneOf('ZRANGEBYLEX', 'ZREVRANGEBYLEX'), 'z', lexBound, lexBound, limit),
    words('ZRANGE z', lexBound, lexBound, 'BYLEX', flag('REV'), limit, flag('WITHSCORES')),
    words('ZRANGESTORE y z', lexBound, lexBound, 'BYLEX', flag('REV'), limit),
    words('ZRANGE y 0 -1 WITHSCORES'),
  );
  testDifferential(specs, lex);
});

const members = Array.from({ length: 24 }, (_, i) => `m${i}`);
const make = (): Harness => {
  const harness = new Harness(specs);
  harness.run(`ZADD z ${members.map((name, i) => `${i * 0.5} ${name}`).join(' ')}`);
  return harness;
};

describe('random members', () => {
  testRandomCounts(make, 'ZRANDMEMBER z', members);

  test.each([3, 12, 24, -50])('ZRANDMEMBER z %i WITHSCORES keeps pairs together', (count) => {
    const answer = make().run(`ZRANDMEMBER z ${count} WITHSCORES`);
    const found = [...answer.matchAll(/"m(\d+)", "([\d.]+)"/g)];
    expect(found).toHaveLength(Math.abs(count));
    for (const [, name, text] of found) expect(Number(text)).toBe(Number(name) * 0.5);
  });
});

describe('writes', () => {
  test('only what changes is written', () => {
    const writes = (command: string, expected: boolean): void => {
      const harness = make();
      harness.run(command);
      expect(`${command} ${harness.rows.wrote}`).toBe(`${command} ${expected}`);
    };
    writes('ZADD z 0 m0 0.5 m1', false);
    writes('ZADD z 0 m0 7 m1', true);
    writes('ZADD z NX 7 m1', false);
    writes('ZADD z XX 7 nosuch', false);
    writes('ZADD z GT 0 m1', false);
    writes('ZADD fresh XX 1 a', false);
    writes('ZINCRBY z 0 m1', false);
    writes('ZREM z nosuch', false);
    writes('ZPOPMIN z 0', false);
    writes('ZREMRANGEBYSCORE z 100 200', false);
    writes('ZINTERSTORE missing 2 z missing', false);
    writes('ZINTERSTORE z 2 z missing', true);
    writes('BZPOPMIN missing 1', false);
  });
});

describe('scanning', () => {
  test.each([24, 128, 300])('%i members and scores to the end', (size) => {
    const harness = new Harness(specs);
    for (let i = 0; i < size; i++) harness.run(`ZADD z ${i / 4} m${i}`);
    const [seen, calls] = scanAll(harness, 'ZSCAN z', 'COUNT 20');
    expect(calls).toBe(size <= 128 ? 1 : 15);
    const found = new Map<string, string>();
    for (let i = 0; i < seen.length; i += 2) found.set(seen[i]!, seen[i + 1]!);
    const expected = Array.from({ length: size }, (_, i) => [`m${i}`, `${i / 4}`] as const);
    expect(found).toEqual(new Map(expected));
  });
});
