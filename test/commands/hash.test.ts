import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hashCommands } from '../../access/redis/commands/hash.ts';
import { setCommands } from '../../access/redis/commands/set.ts';
import { oneOf, several, testDifferential, words } from './differential.ts';
import { Harness } from './harness.ts';
import { scanAll, testRandomCounts } from './random-answers.ts';
import { testTranscript } from './transcript.ts';

const specs = [...hashCommands, ...setCommands];

testTranscript(`${import.meta.dirname}/testdata/hash.txt`, specs);

const key = oneOf('h', 'i', 'plain');
const field = oneOf('a', 'b', 'c', '""', '"\\xff"', '"a longer field than fits into a few bytes"');
const value = fc.oneof(
  oneOf('1', '-5', '007', 'text', '""', '9223372036854775800', '3.25', '1e3', '"\\x00\\r\\n"'),
  fc.integer().map(String),
  fc.double({ noNaN: true, min: -1e15, max: 1e15 }).map(String),
);
const line = fc.oneof(
  words('HSET', key, several(words(field, value), 3)),
  words('HMSET', key, several(words(field, value), 3)),
  words('HSETNX', key, field, value),
  words(oneOf('HGET', 'HEXISTS', 'HSTRLEN'), key, field),
  words(oneOf('HMGET', 'HDEL'), key, several(field)),
  words(oneOf('HGETALL', 'HKEYS', 'HVALS', 'HLEN'), key),
  words(oneOf('HINCRBY', 'HINCRBYFLOAT'), key, field, value),
  words(oneOf('SADD', 'SREM'), 'plain', field),
);
testDifferential(specs, line);

describe('random fields', () => {
  const fields = Array.from({ length: 24 }, (_, i) => `f${i}`);
  const make = (): Harness => {
    const harness = new Harness(specs);
    harness.run(`HSET h ${fields.map((name) => `${name} v-${name}`).join(' ')}`);
    return harness;
  };
  testRandomCounts(make, 'HRANDFIELD h', fields);

  test.each([3, 12, 24, -50])('HRANDFIELD h %i WITHVALUES keeps pairs together', (count) => {
    const answer = make().run(`HRANDFIELD h ${count} WITHVALUES`);
    const pairs = [...answer.matchAll(/"(f\d+)", "v-(f\d+)"/g)];
    expect(pairs).toHaveLength(Math.abs(count));
    for (const [, name, of] of pairs) expect(name).toBe(of);
  });
});

describe('scanning', () => {
  const make = (size: number): Harness => {
    const harness = new Harness(specs);
    for (let i = 0; i < size; i++) harness.run(`HSET h f${i} ${i}`);
    return harness;
  };

  test('a small hash is answered whole', () => {
    const [seen, calls] = scanAll(make(128), 'HSCAN h', 'COUNT 5');
    expect(calls).toBe(1);
    expect(seen).toHaveLength(256);
  });

  test.each(['', 'COUNT 7', 'COUNT 1000', 'MATCH f1*'])('a large one to its end: %s', (options) => {
    const [seen] = scanAll(make(300), 'HSCAN h', options);
    const pairs = new Map<string, string>();
    for (let i = 0; i < seen.length; i += 2) pairs.set(seen[i]!, seen[i + 1]!);
    const expected = Array.from({ length: 300 }, (_, i) => [`f${i}`, `${i}`] as const);
    const wanted = options.startsWith('MATCH')
      ? expected.filter(([name]) => name.startsWith('f1'))
      : expected;
    expect(pairs).toEqual(new Map(wanted));
  });
});
