import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hashCommands } from '../../access/redis/commands/hash.ts';
import { setCommands } from '../../access/redis/commands/set.ts';
import { counted, oneOf, several, testDifferential, words } from './differential.ts';
import { Harness } from './harness.ts';
import { items, scanAll, testRandomCounts } from './random-answers.ts';
import { testTranscript } from './transcript.ts';

const specs = [...setCommands, ...hashCommands];

testTranscript(`${import.meta.dirname}/testdata/set.txt`, specs);

const key = fc.oneof({ weight: 9, arbitrary: oneOf('s', 't', 'u', 'v') }, oneOf('hash'));
const member = oneOf('a', 'b', 'c', 'd', '1', '2', '30', '""', '"\\xff\\x00"', 'a-longer-member');
const line = fc.oneof(
  { weight: 4, arbitrary: words('SADD', key, several(member, 6)) },
  words(oneOf('SREM', 'SMISMEMBER'), key, several(member)),
  words('SISMEMBER', key, member),
  words(oneOf('SMEMBERS', 'SCARD'), key),
  words('SPOP', key, '100'),
  words('SMOVE', key, key, member),
  words(oneOf('SINTER', 'SUNION', 'SDIFF'), several(key)),
  words(oneOf('SUNION', 'SDIFF'), several(key, 12)),
  words(oneOf('SINTERSTORE', 'SUNIONSTORE', 'SDIFFSTORE'), key, several(key)),
  words('SINTERCARD', counted(key), oneOf('', 'LIMIT 0', 'LIMIT 1', 'LIMIT 2', 'LIMIT -1')),
  words('HSET hash', member, 'x'),
);
testDifferential(specs, line);

const members = Array.from({ length: 24 }, (_, i) => `m${i}`);
const make = (): Harness => {
  const harness = new Harness(specs);
  harness.run(`SADD s ${members.join(' ')}`);
  return harness;
};

describe('random members', () => {
  testRandomCounts(make, 'SRANDMEMBER s', members);

  test('SPOP takes one after the other until none is left', () => {
    const harness = make();
    const popped = members.flatMap(() => items(harness.run('SPOP s')));
    expect(popped.toSorted()).toEqual(members.toSorted());
    expect(harness.run('SPOP s')).toBe('(nil)');
  });

  test.each([1, 2, 12, 19, 20, 21, 23, 24, 30])('SPOP s %i leaves the others', (count) => {
    const harness = make();
    const popped = items(harness.run(`SPOP s ${count}`));
    expect(popped).toHaveLength(Math.min(count, members.length));
    const left = items(harness.run('SMEMBERS s'));
    expect([...popped, ...left].toSorted()).toEqual(members.toSorted());
    expect(harness.run('SCARD s')).toBe(`(integer) ${left.length}`);
  });

  test.each([2, 23])('SPOP s %i gives each the same chance', (count) => {
    const times = new Map(members.map((name) => [name, 0]));
    for (let i = 0; i < 2000; i++) {
      for (const name of items(make().run(`SPOP s ${count}`)))
        times.set(name, times.get(name)! + 1);
    }
    const expected = (2000 * count) / members.length;
    for (const seen of times.values()) {
      expect(Math.abs(seen - expected)).toBeLessThan(7 * Math.sqrt(2000 / 12));
    }
  });

  test.each([2, 23])('SPOP s %i keeps the expiry of the set', (count) => {
    const harness = make();
    const { rows } = harness;
    const find = () => rows.find(Buffer.from('s'), 0, 1);
    rows.begin(0);
    rows.setExpireAt(find(), rows.now + 1e6);
    const expireAt = rows.expireAt(find());
    rows.end();
    harness.run(`SPOP s ${count}`);
    expect(rows.expireAt(find())).toBe(expireAt);
  });
});

describe('writes', () => {
  const writes = (command: string, expected: boolean): void => {
    const harness = make();
    harness.run(command);
    expect(`${command} ${harness.rows.wrote}`).toBe(`${command} ${expected}`);
  };

  test('only what changes is written', () => {
    writes('SADD s m1 m2', false);
    writes('SADD s m1 new', true);
    writes('SADD fresh m1', true);
    writes('SREM s nosuch', false);
    writes('SMOVE s s m1', false);
    writes('SMOVE s t nosuch', false);
    writes('SINTERSTORE missing s missing', false);
    writes('SINTERSTORE s s missing', true);
  });

  test('a stored result has no expiry', () => {
    const harness = make();
    const { rows } = harness;
    rows.begin(0);
    rows.setExpireAt(rows.find(Buffer.from('s'), 0, 1), rows.now + 1e6);
    rows.end();
    harness.run('SUNIONSTORE s s');
    expect(rows.expireAt(rows.find(Buffer.from('s'), 0, 1))).toBe(0);
  });
});

describe('scanning', () => {
  test.each(['', 'COUNT 3', 'COUNT 1000', 'MATCH m1*'])('a set to its end: %s', (options) => {
    const [seen] = scanAll(make(), 'SSCAN s', options);
    const wanted = options.startsWith('MATCH')
      ? members.filter((name) => name.startsWith('m1'))
      : members;
    expect([...new Set(seen)].toSorted()).toEqual(wanted.toSorted());
  });
});
