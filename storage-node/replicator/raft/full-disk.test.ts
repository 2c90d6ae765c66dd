// Groups on nodes whose disk is full: they take no entries, serve reads, and go on once there is room.

import { afterEach, expect, test } from 'vitest';
import { until } from '../../../test/support/until.ts';
import { Pods } from './pods-fixture.ts';
import type { TestPod } from './pods-fixture.ts';
import { Refusal } from './proposal-log.ts';

const open: Pods[] = [];
afterEach(async () => {
  for (const pods of open.splice(0)) for (const { pod } of pods.pods) await pod.close();
});

async function pods(count: number): Promise<Pods> {
  const all = new Pods(count);
  for (const pod of all.pods) pod.ballastBytes = 128 * 1024;
  await all.open();
  open.push(all);
  await all.tick(40);
  expect(all.leader).toBeDefined();
  return all;
}

function fill({ disk }: TestPod): void {
  disk.capacityBytes = disk.usedBytes();
}

async function empty({ disk, pod }: TestPod, all: Pods): Promise<void> {
  disk.capacityBytes = Infinity;
  await until(() => pod.failure === undefined);
  await all.tick(40);
}

const payload = (text: string): Buffer => Buffer.from(text);
const big = 'x'.repeat(4000);

async function isReadable({ group }: TestPod, all: Pods): Promise<boolean | undefined> {
  let isSafe: boolean | undefined;
  group.readBarrier((answer) => (isSafe = answer));
  await all.tick(5);
  return isSafe;
}

test.each([1, 3])(
  'with %d copies a leader on a full disk keeps what it has taken, refuses more and serves reads',
  async (count) => {
    const all = await pods(count);
    const { leader } = all;
    fill(leader);
    expect(leader.group.propose(payload(big))).toBeGreaterThan(0);
    await all.tick(5);
    expect(leader.machine.applied).toEqual([big]);
    expect(leader.pod.failure?.message).toContain('disk full');
    expect(leader.group.propose(payload('refused'))).toBe(Refusal.overloaded);
    expect(await isReadable(leader, all)).toBe(true);
    await empty(leader, all);
    expect(leader.group.propose(payload('more'))).toBeGreaterThan(0);
    await all.tick(5);
    for (const { machine } of all.pods) expect(machine.applied).toEqual([big, 'more']);
  },
);

test('a follower on a full disk stays, and catches up once there is room', async () => {
  const all = await pods(3);
  const { leader } = all;
  const full = all.pods.find((pod) => pod !== leader)!;
  fill(full);
  // More than its ballast has room for.
  for (let i = 0; i < 60; i++) {
    expect(leader.group.propose(payload(`${i} ${big}`))).toBeGreaterThan(0);
    await all.tick(2);
  }
  expect(full.pod.failure?.message).toContain('disk full');
  expect(leader.machine.applied.length).toBe(60);
  expect(full.machine.applied.length).toBeLessThan(60);
  await empty(full, all);
  expect(full.machine.applied).toEqual(leader.machine.applied);
});

test('a node is started on a full disk, and takes part once there is room', async () => {
  const all = await pods(3);
  const { leader } = all;
  const full = all.pods.find((pod) => pod !== leader)!;
  const { incarnation } = full.pod;
  full.down = true;
  await full.pod.close();
  full.disk.remove('/log/ballast');
  fill(full);
  await full.reopen(full.machine);
  full.down = false;
  expect(leader.group.propose(payload('a'))).toBeGreaterThan(0);
  await all.tick(40);
  expect(full.pod.failure?.message).toContain('disk full');
  expect(full.machine.applied).toEqual([]);
  // A read is told that it takes too long, rather than nothing.
  let answer: boolean | undefined;
  full.group.readBarrier((isSafe) => (answer = isSafe));
  await all.tick(70);
  expect(answer).toBe(false);
  await empty(full, all);
  expect(full.machine.applied).toEqual(['a']);
  expect(full.pod.incarnation).toBe(incarnation + 1);
  await full.pod.close();
  await full.reopen(full.machine);
  expect(full.pod.incarnation).toBe(incarnation + 2);
});

test('a snapshot that finds a full disk is refused, and taken once there is room', async () => {
  const all = await pods(3);
  const { leader } = all;
  const full = all.pods.find((pod) => pod !== leader)!;
  full.down = true;
  await full.pod.close();
  for (const text of ['a', 'b', 'c']) leader.group.propose(payload(text));
  await all.tick(5);
  leader.machine.checkpoint();
  leader.group.stateIsDurable(leader.machine.durableIndex);
  leader.group.releaseLog();
  await all.tick(5);
  await full.reopen(full.machine);
  fill(full);
  full.down = false;
  await all.tick(60);
  expect(full.machine.applied).toEqual([]);
  await empty(full, all);
  await all.tick(100);
  expect(full.machine.applied).toEqual(['a', 'b', 'c']);
});
