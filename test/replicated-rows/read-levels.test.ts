// Reads from replicas that do not lead.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { ReadBounds } from '../../universal-row/command.ts';
import { type ClusterNode, ReplicatedRows } from './node-fixture.ts';
import { until } from '../support/until.ts';

let root: string;
let rows: ReplicatedRows;

async function start(bounds?: ReadBounds): Promise<void> {
  root = mkdtempSync(join(tmpdir(), 'polyrow-reads-'));
  rows = new ReplicatedRows(root, bounds);
  await rows.start();
}

afterEach(async () => {
  const { failures } = rows;
  await rows.close();
  rmSync(root, { recursive: true, force: true });
  expect(failures).toEqual([]);
});

/** A node whose replica follows, and is cut off from the others once it has the key `a` with the value 1. */
async function cutFollower(): Promise<ClusterNode> {
  const leader = await rows.leader();
  const follower = rows.node((leader.number % 3) + 1);
  const writer = await leader.client();
  expect(await writer.text('SET', 'a', 1)).toBe('+OK');
  const { pod } = follower.replica!;
  const isFresh = (): boolean => pod.isWithin({ maxStalenessMs: 1000, maxLagEntries: 0 });
  await until(() => isFresh() && pod.tableSize(0).rows === 1);
  rows.links.cut.add(follower.number);
  expect(await writer.text('SET', 'a', 2)).toBe('+OK');
  return follower;
}

test('an eventual read is answered by the replica at hand, however old it is', async () => {
  await start({ maxStalenessMs: Infinity, maxLagEntries: Infinity });
  const follower = await cutFollower();
  const reader = await follower.client();
  expect(await reader.text('GET', 'a')).toBe('"1"');
  expect(await reader.text('EXISTS', 'a', 'b')).toBe(':1');
  expect(follower.group.stats.readHere).toBe(2);
  // A transaction's condition uses the latest state.
  expect(await reader.text('WATCH', 'a')).toBe('+OK');
  expect(await reader.text('GET', 'a')).toBe('"2"');
  expect(await reader.text('UNWATCH')).toBe('+OK');
  // Writes go to the leader.
  expect(await reader.text('INCR', 'a')).toBe(':3');
  expect(await reader.text('GET', 'a')).toBe('"1"');
  rows.links.cut.clear();
  await until(async () => (await reader.text('GET', 'a')) === '"3"');
});

test('a bounded read goes to the leader once the replica at hand is too old', async () => {
  await start({ maxStalenessMs: 300, maxLagEntries: 10 });
  const follower = await cutFollower();
  const reader = await follower.client();
  await until(() => !follower.replica!.pod.isWithin(rows.bounds!));
  const before = follower.group.stats.readHere;
  expect(await reader.text('GET', 'a')).toBe('"2"');
  expect(follower.group.stats.readHere).toBe(before);
  rows.links.cut.clear();
  await until(async () => {
    expect(await reader.text('GET', 'a')).toBe('"2"');
    return follower.group.stats.readHere > before;
  });
});

test('a strong read is of the latest write, through any node', async () => {
  await start();
  const follower = await cutFollower();
  for (const node of [1, 2, 3, 4]) {
    const reader = await rows.node(node).client();
    expect(await reader.text('GET', 'a')).toBe('"2"');
  }
  expect(follower.group.stats.readHere).toBe(0);
});

test('a client chooses by itself what its reads may see', async () => {
  await start({ maxStalenessMs: Infinity, maxLagEntries: Infinity });
  const follower = await cutFollower();
  const reader = await follower.client();
  const levels = { table: '"1"', strong: '"2"', eventual: '"1"', 'bounded 0': '"2"' };
  for (const [level, value] of Object.entries(levels)) {
    expect(await reader.text('CONSISTENCY', ...level.split(' '))).toBe('+OK');
    expect(await reader.text('GET', 'a')).toBe(value);
  }
  expect(await reader.text('CONSISTENCY', 'GET')).toBe('"bounded 0 10000"');
  expect(await reader.text('RESET')).toBe('+RESET');
  expect(await reader.text('CONSISTENCY', 'GET')).toBe('"table"');
});

test('a session reads what it has written, at the replica at hand once that has it', async () => {
  await start();
  const follower = await cutFollower();
  const client = await follower.client();
  expect(await client.text('CONSISTENCY', 'SESSION')).toBe('+OK');
  // The client has not read anything yet.
  expect(await client.text('GET', 'a')).toBe('"1"');
  expect(follower.group.stats.readHere).toBe(1);
  expect(await client.text('INCR', 'a')).toBe(':3');
  expect(await client.text('GET', 'a')).toBe('"3"');
  expect(follower.group.stats.readHere).toBe(1);
  rows.links.cut.clear();
  await until(async () => {
    expect(await client.text('GET', 'a')).toBe('"3"');
    return follower.group.stats.readHere > 1;
  });
  // No writes since: no other node is asked.
  rows.links.cut.add(follower.number);
  const { readHere } = follower.group.stats;
  expect(await client.text('GET', 'a')).toBe('"3"');
  expect(follower.group.stats.readHere).toBe(readHere + 1);
});
