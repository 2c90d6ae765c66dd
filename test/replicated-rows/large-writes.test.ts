// Commands that write more than a log entry has room for, alone or with the others of their tick.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fullLogBytes } from '../../storage-node/replicator/partition-log.ts';
import { entryBytesFor } from '../../storage-node/replicator/raft/raft-log.ts';
import type { RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';
import { ReplicatedRows } from './node-fixture.ts';

const commandBytes = 300_000;
const refusal = `-ERR the request writes more than ${commandBytes} bytes at once, the limit of cluster.max-entry-bytes`;

let root: string;
let rows: ReplicatedRows;
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'polyrow-large-'));
  const maxEntryBytes = entryBytesFor(commandBytes);
  rows = new ReplicatedRows(root, undefined, {
    maxEntryBytes,
    maxPendingBytes: maxEntryBytes + fullLogBytes,
  });
  await rows.start();
});
afterEach(async () => {
  const { failures } = rows;
  await rows.close();
  rmSync(root, { recursive: true, force: true });
  expect(failures).toEqual([]);
});

/** A client of the node that leads, and one of another. */
async function clients(): Promise<[RespClient, RespClient]> {
  const leader = await rows.leader();
  return [await leader.client(), await rows.node((leader.number % 3) + 1).client()];
}

const value = (bytes: number): string => 'x'.repeat(bytes);

test('a command that writes too much is refused, and changes nothing', async () => {
  for (const client of await clients()) {
    await client.text('SET', 'large', 'before');
    expect(await client.text('SET', 'large', value(400_000))).toBe(refusal);
    expect(await client.text('GET', 'large')).toBe('"before"');
    expect(await client.text('SET', 'large', value(290_000))).toBe('+OK');
    expect(await client.text('STRLEN', 'large')).toBe(':290000');
    await client.text('DEL', 'large');
  }
});

test('a transaction is refused whole', async () => {
  for (const client of await clients()) {
    const parts = [1, 2, 3].map((n) => ['SET', `part:${n}`, value(150_000)]);
    const replies = await client.pipeline([['MULTI'], ...parts, ['EXEC']]);
    expect(show(replies.at(-1)!)).toBe(refusal);
    expect(await client.text('EXISTS', 'part:1', 'part:2', 'part:3')).toBe(':0');
    const fewer = await client.pipeline([['MULTI'], ...parts.slice(0, 1), ['INCR', 'n'], ['EXEC']]);
    expect(show(fewer.at(-1)!)).toMatch(/^\*\[\+OK :\d\]$/);
    await client.text('DEL', 'part:1');
  }
});

test('so is a script, short or long', async () => {
  for (const client of await clients()) {
    const short = "for i = 1, 4 do redis.call('SET', KEYS[1] .. i, ARGV[1]) end";
    expect(await client.text('EVAL', short, 1, 'script', value(100_000))).toBe(refusal);
    const long = "for i = 1, 40000 do redis.call('SET', KEYS[1] .. i, ARGV[1]) end";
    expect(await client.text('EVAL', long, 1, 'script', 'x'.repeat(20))).toBe(refusal);
    expect(await client.text('DBSIZE')).toBe(':0');
  }
});

test('many commands of a tick are several entries', async () => {
  for (const client of await clients()) {
    const sets = Array.from({ length: 30 }, (_, n) => [
      'SET',
      `key:${n}`,
      `${n}:${value(100_000)}`,
    ]);
    const replies = await client.pipeline([...sets, ['INCR', 'count'], ...sets]);
    expect(new Set(replies.map(show))).toEqual(new Set(['+OK', ':1']));
    for (const n of [0, 15, 29]) {
      const length = 100_000 + `${n}:`.length;
      expect(await client.text('STRLEN', `key:${n}`)).toBe(`:${length}`);
    }
    expect(await client.text('GET', 'count')).toBe('"1"');
    await client.text('FLUSHALL');
  }
});
