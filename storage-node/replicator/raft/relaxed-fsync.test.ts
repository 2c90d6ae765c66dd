// Groups under `wal.fsync everysec` and `no`: what waits for the disk, and what happens after a power cut.

import { afterEach, expect, test } from 'vitest';
import type { FsyncPolicy } from '../partition-log.ts';
import { Pods, TestMachine } from './pods-fixture.ts';
import type { TestPod } from './pods-fixture.ts';

const open: Pods[] = [];
afterEach(async () => {
  for (const pods of open.splice(0)) for (const { pod } of pods.pods) await pod.close();
});

async function pods(count: number, fsync: FsyncPolicy): Promise<Pods> {
  const all = new Pods(count);
  for (const pod of all.pods) pod.fsync = fsync;
  await all.open();
  open.push(all);
  await all.tick(40);
  expect(all.leader).toBeDefined();
  return all;
}

function propose(pod: TestPod, text: string): void {
  expect(pod.group.propose(Buffer.from(text))).toBeGreaterThan(0);
}

/** The power fails; the machine's state is that of its last checkpoint. */
function cutPower(pod: TestPod): void {
  pod.down = true;
  pod.disk = pod.disk.crash();
  pod.boots++;
  pod.machine = new TestMachine();
}

function kill(pod: TestPod): void {
  pod.down = true;
  pod.disk = pod.disk.kill();
  pod.machine = new TestMachine();
}

async function restart(pod: TestPod): Promise<void> {
  await pod.open();
  pod.down = false;
}

test.each([1, 3])(
  'with %d copies a write waits for no disk, except under always',
  async (count) => {
    for (const fsync of ['everysec', 'no'] as const) {
      const all = await pods(count, fsync);
      const { leader } = all;
      for (const { disk } of all.pods) disk.stallSyncs();
      propose(leader, 'a');
      await all.tick(3);
      expect(leader.outcomes).toEqual([[1, 'committed']]);
      for (const { disk } of all.pods) disk.resumeSyncs();
    }
    const all = await pods(count, 'always');
    for (const { disk } of all.pods) disk.stallSyncs();
    propose(all.leader, 'a');
    await all.tick(3);
    expect(all.leader.outcomes).toEqual([]);
    for (const { disk } of all.pods) disk.resumeSyncs();
    await all.tick(3);
    expect(all.leader.outcomes).toEqual([[1, 'committed']]);
  },
);

test('everysec syncs within a second, always when it is set again', async () => {
  const all = await pods(1, 'everysec');
  const [one] = all.pods;
  await all.tick(30);
  propose(one!, 'a');
  await all.tick(2);
  const isDurable = (): boolean => {
    const { appendedLsn, durableLsn } = one!.pod.status();
    return appendedLsn === durableLsn;
  };
  expect(isDurable()).toBe(false);
  await all.tick(22);
  expect(isDurable()).toBe(true);
  one!.pod.fsync = 'no';
  propose(one!, 'b');
  await all.tick(60);
  expect(isDurable()).toBe(false);
  one!.pod.fsync = 'always';
  await all.tick(2);
  expect(isDurable()).toBe(true);
});

/** The only pod of a cluster, with an entry that may not be on disk. */
async function onlyPod(fsync: FsyncPolicy): Promise<{ all: Pods; one: TestPod }> {
  const all = await pods(1, fsync);
  const one = all.pods[0]!;
  propose(one, 'a');
  await all.tick(2);
  return { all, one };
}

function failSyncsOfLog({ disk }: TestPod): void {
  disk.fault = (operation, path) =>
    operation === 'sync' && path.includes('seg-') ? 'EIO' : undefined;
}

/** Ends the process, whose disk is whole again, and starts the next one. */
async function restartOnWholeDisk(pod: TestPod): Promise<void> {
  pod.disk.fault = () => undefined;
  kill(pod);
  await restart(pod);
}

test('the end of a process loses nothing, and fences nothing', async () => {
  const { all, one } = await onlyPod('no');
  kill(one);
  await restart(one);
  expect(one.pod.wasUnclean).toBe(false);
  expect(one.group.status().isFenced).toBe(false);
  await all.tick(40);
  expect(one.machine.applied).toEqual(['a']);
});

test.each(['everysec', 'no'] as const)(
  'the end of a process whose sync has failed fences its groups under %s',
  async (fsync) => {
    const { one } = await onlyPod(fsync);
    const failures: Error[] = [];
    one.fatal = (error) => failures.push(error);
    failSyncsOfLog(one);
    await expect(one.pod.close()).rejects.toThrow('EIO');
    expect(failures[0]?.message).toContain('EIO');
    await restartOnWholeDisk(one);
    expect(one.pod.wasUnclean).toBe(true);
    expect(one.group.status().wasFenced).toBe(true);
  },
);

test('the end of a process whose log cannot be written fences its groups, unless the disk is full', async () => {
  for (const code of ['EIO', 'ENOSPC']) {
    const { all, one } = await onlyPod('everysec');
    const failures: Error[] = [];
    one.fatal = (error) => failures.push(error);
    one.disk.fault = (operation) => (operation === 'write' ? code : undefined);
    one.group.propose(Buffer.from('b'));
    await all.tick(2).catch((error: unknown) => failures.push(error as Error));
    if (code === 'EIO') expect(failures[0]?.message).toContain(code);
    await restartOnWholeDisk(one);
    expect(one.pod.wasUnclean).toBe(code === 'EIO');
  }
});

test('a start that fails, as it syncs the log, makes the next one unclean', async () => {
  const { one } = await onlyPod('no');
  kill(one);
  failSyncsOfLog(one);
  await expect(one.open()).rejects.toThrow('EIO');
  await restartOnWholeDisk(one);
  expect(one.pod.wasUnclean).toBe(true);
});

test('a machine is told where its log ends, before an entry is applied to it', async () => {
  const all = await pods(1, 'everysec');
  const [one] = all.pods;
  propose(one!, 'a');
  await all.tick(30);
  const { lastIndex } = one!.group.status();
  for (const text of ['b', 'c', 'd']) {
    propose(one!, text);
    await all.tick(1);
  }
  expect(one!.group.status().lastIndex).toBe(lastIndex + 3);
  cutPower(one!);
  await restart(one!);
  expect(one!.machine.applied).toEqual([]);
  expect(one!.machine.logEnd).toBe(one!.group.status().lastIndex);
  // Where the state is ahead of that, the log goes on from the state.
  cutPower(one!);
  one!.machine.durableIndex = lastIndex + 10;
  await restart(one!);
  expect(one!.machine.logEnd).toBe(lastIndex + 10);
});

test('an only copy continues with what the power cut has left', async () => {
  const all = await pods(1, 'everysec');
  const [one] = all.pods;
  propose(one!, 'a');
  await all.tick(30);
  for (const text of ['b', 'c', 'd']) {
    propose(one!, text);
    await all.tick(1);
  }
  cutPower(one!);
  await restart(one!);
  expect(one!.group.status()).toMatchObject({ isFenced: true, wasFenced: true });
  await all.tick(40);
  expect(one!.group.status()).toMatchObject({ isFenced: false, wasFenced: true });
  const applied = [...one!.machine.applied];
  expect(applied).toEqual(['a', 'b', 'c', 'd'].slice(0, applied.length));
  expect(applied.length).toBeGreaterThan(0);
  propose(one!, 'e');
  await all.tick(2);
  expect(one!.machine.applied).toEqual([...applied, 'e']);
});

test('a state that outran the log keeps what it has, and the log goes on from there', async () => {
  const all = await pods(1, 'no');
  const [one] = all.pods;
  const { lastIndex, term } = one!.group.status();
  cutPower(one!);
  // Three entries were applied, and the state was made durable, which the log has none of.
  const index = lastIndex + 3;
  one!.machine.durableIndex = index;
  one!.machine.applied = ['a', 'b', 'c'];
  await restart(one!);
  const { members, ...status } = one!.group.status();
  expect(status).toMatchObject({ firstIndex: index + 1, lastIndex: index, term: term + 1 });
  expect(members.voters).toEqual([one!.replica]);
  await all.tick(40);
  propose(one!, 'd');
  await all.tick(2);
  expect(one!.machine.applied).toEqual(['a', 'b', 'c', 'd']);
});

test('after a power cut a voter is fenced until it has the log of a leader elected since', async () => {
  const all = await pods(3, 'everysec');
  const { leader } = all;
  const [victim, other] = all.pods.filter((pod) => pod !== leader);
  await all.tick(30);
  // The third one does not have it.
  other!.down = true;
  propose(leader, 'a');
  await all.tick(3);
  expect(leader.outcomes.at(-1)).toEqual([1, 'committed']);
  cutPower(victim!);
  leader.down = true;
  other!.down = false;
  await restart(victim!);
  expect(victim!.pod.wasUnclean).toBe(true);
  await all.tick(100);
  // These two are a majority, and might not have it.
  expect(all.leader).toBeUndefined();
  expect(victim!.group.status().isFenced).toBe(true);
  leader.down = false;
  await all.tick(60);
  expect(all.leader).toBeDefined();
  for (const { machine, group } of all.pods) {
    expect(machine.applied).toEqual(['a']);
    expect(group.status()).toMatchObject({ isFenced: false, electionsByAll: 0 });
  }
});

test('once most have lost power, all must be there, and the most complete log wins', async () => {
  const all = await pods(3, 'everysec');
  const { leader } = all;
  const [one, late] = all.pods.filter((pod) => pod !== leader);
  await all.tick(30);
  late!.down = true;
  propose(leader, 'a');
  await all.tick(30);
  for (const pod of [leader, one!]) cutPower(pod);
  late!.down = false;
  await restart(one!);
  await all.tick(100);
  expect(all.leader).toBeUndefined();
  await restart(leader);
  await all.tick(100);
  expect(all.leader).not.toBe(late);
  expect(all.leader.group.status().electionsByAll).toBeGreaterThan(0);
  for (const { machine } of all.pods) expect(machine.applied).toEqual(['a']);
});

test('a fence outlives the process, and an operator may do without', async () => {
  const all = await pods(3, 'everysec');
  const { leader } = all;
  const others = all.pods.filter((pod) => pod !== leader);
  for (const pod of others) cutPower(pod);
  leader.down = true;
  await restart(others[0]!);
  kill(others[0]!);
  await restart(others[0]!);
  expect(others[0]!.pod.wasUnclean).toBe(false);
  expect(others[0]!.group.status().isFenced).toBe(true);
  others[1]!.acceptLoss = true;
  await restart(others[1]!);
  expect(others[1]!.group.status().isFenced).toBe(false);
  await all.tick(100);
  expect(all.leader).toBeUndefined();
});
