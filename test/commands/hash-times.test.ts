// Hashes with fields that expire: as plain hashes to the commands of those, beside a model of their times, and over
// DUMP and RESTORE.

import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { dumpCommands } from '../../access/redis/commands/dump.ts';
import { expireCommands } from '../../access/redis/commands/expire.ts';
import { hashTimeCommands } from '../../access/redis/commands/hash-times.ts';
import { hashCommands } from '../../access/redis/commands/hash.ts';
import { keysCommands } from '../../access/redis/commands/keys.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import { shortWork } from '../../universal-row/steps.ts';
import { Harness } from './harness.ts';

const specs = [
  ...hashCommands,
  ...hashTimeCommands,
  ...dumpCommands,
  ...keysCommands,
  ...expireCommands,
];
const usual = { ...shortWork };
afterEach(() => Object.assign(shortWork, usual));

const start = 1_700_000_000_000;
const far = String(start + 1e9);

function harness(): Harness {
  const made = new Harness(specs, new MemoryEngine());
  made.rows.fixedNow = start;
  return made;
}

const transcript: [line: string, answer: string][] = [
  ['HEXPIRE h 10 FIELDS 1 a', '[(integer) -2]'],
  ['HSET h a 1 b 2 c 3', '(integer) 3'],
  ['HTTL h FIELDS 2 a x', '[(integer) -1, (integer) -2]'],
  ['HPERSIST h FIELDS 2 a x', '[(integer) -1, (integer) -2]'],
  ['HEXPIRE h 10 XX FIELDS 1 a', '[(integer) 0]'],
  ['HEXPIRE h 10 GT FIELDS 1 a', '[(integer) 0]'],
  ['OBJECT ENCODING h', '"listpack"'],
  ['HEXPIRE h 10 NX FIELDS 2 a x', '[(integer) 1, (integer) -2]'],
  ['HEXPIRE h 20 NX FIELDS 2 a b', '[(integer) 0, (integer) 1]'],
  ['HEXPIRE h 5 GT FIELDS 1 a', '[(integer) 0]'],
  ['HEXPIRE h 15 GT FIELDS 1 a', '[(integer) 1]'],
  ['HEXPIRE h 16 LT FIELDS 2 a c', '[(integer) 0, (integer) 1]'],
  ['HTTL h FIELDS 3 a b c', '[(integer) 15, (integer) 20, (integer) 16]'],
  ['HPTTL h FIELDS 1 a', '[(integer) 15000]'],
  ['HEXPIRETIME h FIELDS 1 a', '[(integer) 1700000015]'],
  ['HPEXPIRETIME h FIELDS 1 a', '[(integer) 1700000015000]'],
  ['HPEXPIREAT h 1700000012345 FIELDS 1 a', '[(integer) 1]'],
  ['HEXPIRETIME h FIELDS 1 a', '[(integer) 1700000013]'],
  ['HPEXPIRE h 1500 FIELDS 1 a', '[(integer) 1]'],
  ['HTTL h FIELDS 1 a', '[(integer) 2]'],
  ['HEXPIREAT h 1700000030 FIELDS 1 a', '[(integer) 1]'],
  ['HPERSIST h FIELDS 1 a', '[(integer) 1]'],
  ['HTTL h FIELDS 1 a', '[(integer) -1]'],
  ['TYPE h', 'hash'],
  ['TTL h', '(integer) -1'],
  ['OBJECT ENCODING h', '"listpackex"'],
  ['EXPIRE h 100', '(integer) 1'],
  ['TTL h', '(integer) 100'],
  ['PERSIST h', '(integer) 1'],
  ['HINCRBY h b 5', '(integer) 7'],
  ['HINCRBYFLOAT h b 0.5', '"7.5"'],
  ['HTTL h FIELDS 1 b', '[(integer) 20]'],
  ['HSET h b 9', '(integer) 0'],
  ['HTTL h FIELDS 1 b', '[(integer) -1]'],
  ['HEXPIRE h 0 FIELDS 1 b', '[(integer) 2]'],
  ['HEXISTS h b', '(integer) 0'],
  ['HGETEX h EX 50 FIELDS 2 a x', '["1", (nil)]'],
  ['HTTL h FIELDS 1 a', '[(integer) 50]'],
  ['HGETEX h FIELDS 1 a', '["1"]'],
  ['HTTL h FIELDS 1 a', '[(integer) 50]'],
  ['HGETEX h PERSIST FIELDS 1 a', '["1"]'],
  ['HTTL h FIELDS 1 a', '[(integer) -1]'],
  ['HGETEX h PXAT 1 FIELDS 1 a', '["1"]'],
  ['HLEN h', '(integer) 1'],
  ['HGETDEL h FIELDS 2 c x', '["3", (nil)]'],
  ['EXISTS h', '(integer) 0'],
  ['HSETEX s FXX FIELDS 1 a 1', '(integer) 0'],
  ['EXISTS s', '(integer) 0'],
  ['HSETEX s FNX EX 10 FIELDS 2 a 1 b 2', '(integer) 1'],
  ['HSETEX s FNX FIELDS 2 a 5 z 2', '(integer) 0'],
  ['HSETEX s FXX KEEPTTL FIELDS 1 a 3', '(integer) 1'],
  ['HTTL s FIELDS 2 a b', '[(integer) 10, (integer) 10]'],
  ['HSETEX s FIELDS 1 a 4', '(integer) 1'],
  ['HTTL s FIELDS 1 a', '[(integer) -1]'],
  ['HGETDEL s FIELDS 2 a b', '["4", "2"]'],
  ['EXISTS s', '(integer) 0'],
];

const refused: [line: string, message: string][] = [
  ['HEXPIRE h x FIELDS 1 a', 'ERR value is not an integer or out of range'],
  ['HEXPIRE h -1 FIELDS 1 a', 'ERR invalid expire time, must be >= 0'],
  ['HEXPIRE h 99999999999999 FIELDS 1 a', "ERR invalid expire time in 'hexpire' command"],
  ['HPEXPIREAT h 70368744177665 FIELDS 1 a', "ERR invalid expire time in 'hpexpireat' command"],
  [
    'HEXPIRE h 10 FIELD 1 a',
    'ERR Mandatory argument FIELDS is missing or not at the right position',
  ],
  ['HEXPIRE h 10 FIELDS 0 a', 'ERR Parameter `numFields` should be greater than 0'],
  ['HEXPIRE h 10 FIELDS 2 a', 'ERR The `numfields` parameter must match the number of arguments'],
  ['HTTL h FIELDS 3 a b', 'ERR The `numfields` parameter must match the number of arguments'],
  ['HGETDEL h FIELDS 0 a', 'ERR Number of fields must be a positive integer'],
  ['HGETEX h EX -1 FIELDS 1 a', 'ERR invalid expire time, must be >= 0'],
  ['HGETEX h XX FIELDS 1 a', 'ERR unknown argument: XX'],
  ['HSETEX h EX 1 KEEPTTL FIELDS 1 a b', 'ERR unknown argument: KEEPTTL'],
  ['HSETEX h FIELDS 2 a b c', 'ERR The `numfields` parameter must match the number of arguments'],
];

const name = fc.constantFrom('a', 'b', 'c', 'd', '', 'field');
const word = fc.constantFrom('1', '2.5', 'x', '', '-7', 'v'.repeat(200));
/** Commands of plain hashes, on key `k`. */
const plain: fc.Arbitrary<readonly string[]> = fc.oneof(
  fc.tuple(name, word).map(([f, v]) => ['HSET', 'k', f, v]),
  fc.tuple(name, word, name, word).map((all) => ['HMSET', 'k', ...all]),
  fc.tuple(name, word).map(([f, v]) => ['HSETNX', 'k', f, v]),
  fc.tuple(name, name).map((all) => ['HDEL', 'k', ...all]),
  fc.tuple(name, name).map((all) => ['HMGET', 'k', ...all]),
  name.map((f) => ['HGET', 'k', f]),
  name.map((f) => ['HEXISTS', 'k', f]),
  name.map((f) => ['HSTRLEN', 'k', f]),
  fc.tuple(name, fc.integer()).map(([f, n]) => ['HINCRBY', 'k', f, String(n)]),
  name.map((f) => ['HINCRBYFLOAT', 'k', f, '0.5']),
  fc.constantFrom('HGETALL', 'HKEYS', 'HVALS', 'HLEN', 'EXISTS', 'TYPE').map((c) => [c, 'k']),
  fc.constant(['HRANDFIELD', 'k', '100']),
  fc.constant(['HSCAN', 'k', '0']),
  fc.constant(['COPY', 'k', 'copy', 'REPLACE']),
);
/** Changes of times, the same answers of which a plain hash gives. */
const timeChange: fc.Arbitrary<readonly string[]> = fc.oneof(
  name.map((f) => ['HPEXPIREAT', 'k', far, 'FIELDS', '1', f]),
  name.map((f) => ['HPERSIST', 'k', 'FIELDS', '1', f]),
  fc.constant(['PEXPIREAT', 'k', far]),
);

function sortedAnswer(run: Harness, line: readonly string[]): string {
  const isPairs = line[0] === 'HGETALL' || line[0] === 'HSCAN';
  const answer = run.command(line, !isPairs);
  if (!isPairs) return answer;
  // Fields with their values, in any order.
  const words = answer.replaceAll(/^\["0", |[[\]]/g, '').split(', ');
  const pairs = words.map((_, i) => words.slice(i, i + 2).join()).filter((_, i) => i % 2 === 0);
  return pairs.sort().join(' ');
}

describe.each([
  ['short', usual],
  ['long', { elements: 0, bytes: 0 }],
])('hashes with fields that expire, %s commands', (_, limits) => {
  test('times of fields', () => {
    Object.assign(shortWork, limits);
    const h = harness();
    for (const [line, answer] of transcript) {
      if (line.startsWith('OBJECT')) continue;
      expect(`${line} ${h.run(line)}`).toBe(`${line} ${answer}`);
    }
    h.run('HSET h a 1');
    for (const [line, message] of refused) {
      expect(`${line} ${h.run(line)}`).toBe(`${line} (error) ${message}`);
    }
  });

  test('a field is gone once it is due, and a hash with its last field', () => {
    Object.assign(shortWork, limits);
    const h = harness();
    h.run('HSET k a 1 b 2 c 3');
    h.run('HPEXPIRE k 100 FIELDS 2 a b');
    h.run('HPEXPIRE k 200 FIELDS 1 c');
    h.rows.fixedNow = start + 99;
    expect(h.run('HLEN k')).toBe('(integer) 3');
    h.rows.fixedNow = start + 100;
    expect(h.run('HLEN k')).toBe('(integer) 1');
    expect(h.run('HGETALL k')).toBe('["c", "3"]');
    expect(h.run('HMGET k a c')).toBe('[(nil), "3"]');
    expect(h.run('HDEL k a')).toBe('(integer) 0');
    expect(h.run('HSETNX k b new')).toBe('(integer) 1');
    expect(h.run('HINCRBY k a 5')).toBe('(integer) 5');
    expect(h.run('HTTL k FIELDS 2 a b')).toBe('[(integer) -1, (integer) -1]');
    expect(h.run('HDEL k a b')).toBe('(integer) 2');
    expect(h.run('EXISTS k')).toBe('(integer) 1');
    h.rows.fixedNow = start + 200;
    expect(h.run('EXISTS k')).toBe('(integer) 0');
    expect(h.run('HSET k a 1')).toBe('(integer) 1');
    expect(h.run('HGETALL k')).toBe('["a", "1"]');
  });

  test('commands of hashes answer as for a plain hash', () => {
    Object.assign(shortWork, limits);
    fc.assert(
      fc.property(fc.array(fc.oneof(plain, timeChange), { maxLength: 40 }), (lines) => {
        const expected = harness();
        const timed = harness();
        for (const line of lines) {
          if (line[0]!.startsWith('HP')) {
            timed.command(line);
            continue;
          }
          const shown = `${line.join(' ')}: `;
          expect(shown + sortedAnswer(timed, line)).toBe(shown + sortedAnswer(expected, line));
        }
        const restored = timed.run('DUMP k');
        if (restored === '(nil)') return;
        expect(timed.run(`RESTORE r 0 ${restored}`)).toBe('OK');
        expect(sortedAnswer(timed, ['HGETALL', 'r'])).toBe(
          sortedAnswer(expected, ['HGETALL', 'k']),
        );
        for (const field of ['a', 'b', 'field']) {
          const ask = (key: string): string => timed.run(`HPEXPIRETIME ${key} FIELDS 1 ${field}`);
          expect(ask('r')).toBe(ask('k'));
        }
      }),
      { numRuns: 300 },
    );
  });

  test('large hashes: random fields and walks in pages', () => {
    Object.assign(shortWork, limits);
    const h = harness();
    const count = 5000;
    for (let i = 0; i < count; i++) h.command(['HSET', 'k', `field ${i}`, String(i)]);
    h.run('HPEXPIRE k 100 FIELDS 1 "field 7"');
    h.rows.fixedNow = start + 100;
    expect(h.run('HLEN k')).toBe(`(integer) ${count - 1}`);
    const picked = h.run('HRANDFIELD k 500').match(/field \d+/g)!;
    expect(new Set(picked).size).toBe(500);
    const seen = new Set<string>();
    let cursor = '0';
    do {
      const answer = h.run(`HSCAN k ${cursor} COUNT 700`);
      cursor = /"(\d+)"/.exec(answer)![1]!;
      for (const [field] of answer.matchAll(/field \d+/g)) seen.add(field);
    } while (cursor !== '0');
    expect(seen.size).toBe(count - 1);
    expect(seen.has('field 7')).toBe(false);
  });
});
