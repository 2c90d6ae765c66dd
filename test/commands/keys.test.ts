import { describe, expect, test } from 'vitest';
import { hashCommands } from '../../access/redis/commands/hash.ts';
import { keysCommands } from '../../access/redis/commands/keys.ts';
import { listCommands } from '../../access/redis/commands/list.ts';
import { memoryCommands } from '../../access/redis/commands/memory.ts';
import { setCommands } from '../../access/redis/commands/set.ts';
import { sortedSetCommands } from '../../access/redis/commands/sorted-set.ts';
import { stringCommands } from '../../access/redis/commands/string.ts';
import { Harness } from './harness.ts';
import { testTranscript } from './transcript.ts';

const specs = [
  ...stringCommands,
  ...keysCommands,
  ...listCommands,
  ...hashCommands,
  ...setCommands,
  ...sortedSetCommands,
  ...memoryCommands,
];

testTranscript(`${import.meta.dirname}/testdata/keys.txt`, specs);

/** All keys that a walk sees, each as often as it is seen. */
function walk(h: Harness, options: string): string[] {
  const seen: string[] = [];
  let cursor = '0';
  do {
    const answer = h.run(`SCAN ${cursor} ${options}`);
    cursor = /^\["(\d+)"/.exec(answer)![1]!;
    seen.push(...[...answer.matchAll(/"(k:\d+)"/g)].map(([, key]) => key!));
  } while (cursor !== '0');
  return seen;
}

describe('what a clock has a part in', () => {
  test('SCAN sees each key once, and none that has expired', () => {
    const h = new Harness(specs);
    h.rows.fixedNow = 1_000_000;
    const stays: string[] = [];
    for (let i = 0; i < 100; i++) {
      if (i % 3 === 0) h.run(`SET k:${i} v PX 10`);
      else {
        h.run(`RPUSH k:${i} v`);
        stays.push(`k:${i}`);
      }
    }
    expect(walk(h, 'COUNT 7')).toHaveLength(100);
    expect(walk(h, 'COUNT 7 TYPE string')).toHaveLength(34);
    h.rows.fixedNow += 10;
    expect(walk(h, 'COUNT 7').sort()).toEqual(stays.sort());
    expect(walk(h, 'MATCH k:1? COUNT 7')).toHaveLength(7);
    expect(walk(h, 'TYPE string')).toEqual([]);
  });

  test('PTTL and TTL count down; TTL rounds', () => {
    const h = new Harness(specs);
    h.rows.fixedNow = 1_000_000;
    h.run('SET a v PX 1500');
    const check = (passed: number, pttl: number, ttl: number) => {
      h.rows.fixedNow = 1_000_000 + passed;
      expect(h.run('PTTL a')).toBe(`(integer) ${pttl}`);
      expect(h.run('TTL a')).toBe(`(integer) ${ttl}`);
    };
    check(0, 1500, 2);
    check(1, 1499, 1);
    check(1001, 499, 0);
    check(1499, 1, 0);
    check(1500, -2, -2);
    expect(h.run('PEXPIRETIME a')).toBe('(integer) -2');
  });

  test('a row that lived on in another database keeps its time', () => {
    const h = new Harness(specs);
    h.rows.fixedNow = 1_000_000;
    h.run('SET a v PX 500');
    h.run('MOVE a 3');
    h.run('SELECT 3');
    expect(h.run('PTTL a')).toBe('(integer) 500');
    h.rows.fixedNow += 500;
    expect(h.run('EXISTS a')).toBe('(integer) 0');
  });

  test('an expiry at the far end of 64 bits is kept, to the accuracy of a double', () => {
    const h = new Harness(specs);
    h.run('SET a v');
    expect(h.run('PEXPIREAT a 9223372036854775807')).toBe('(integer) 1');
    expect(h.run('PEXPIRETIME a')).toMatch(/^\(integer\) 922337203685477\d{4}$/);
  });
});
