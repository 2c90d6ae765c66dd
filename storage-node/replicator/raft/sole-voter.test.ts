// The only voter of a group writes entries of its own, of which the engine is told later.

import { afterEach, expect, test } from 'vitest';
import { MessageType } from '../engine/frames.ts';
import { firstPosition, joiningPosition } from './log-position.ts';
import { Pods, TestMachine } from './pods-fixture.ts';
import type { TestPod } from './pods-fixture.ts';

const open: Pods[] = [];
afterEach(async () => {
  for (const pods of open.splice(0)) for (const { pod } of pods.pods) await pod.close();
});

async function alone(): Promise<{ all: Pods; leader: TestPod }> {
  const all = await new Pods(1).open();
  open.push(all);
  await all.tick(40);
  return { all, leader: all.leader };
}

const texts = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, i) => `text ${from + i}`);

async function write(all: Pods, { group }: TestPod, list: readonly string[]): Promise<void> {
  for (const text of list) {
    expect(group.proposeAlone(Buffer.from(text))).toBeGreaterThan(0);
    await all.tick(1);
  }
}

/** Calls of the engine from now on. */
function counted({ engine }: TestPod, name: 'propose' | 'step' | 'storageDone'): () => number {
  let calls = 0;
  const call = engine[name].bind(engine) as (...args: unknown[]) => unknown;
  Object.assign(engine, {
    [name]: (...args: unknown[]) => {
      calls++;
      return call(...args);
    },
  });
  return () => calls;
}

test('entries of the only voter are committed without the engine, which is told of many at a time', async () => {
  const { all, leader } = await alone();
  await write(all, leader, texts(0, 1));
  const proposed = counted(leader, 'propose');
  const stored = counted(leader, 'storageDone');
  await write(all, leader, texts(1, 9));
  expect(leader.machine.applied).toEqual(texts(0, 9));
  expect(leader.outcomes.map(([, outcome]) => outcome)).toEqual(Array(9).fill('committed'));
  // In eight ticks the pod lets groups sleep at most once, before which the engine is told.
  expect(proposed()).toBeLessThanOrEqual(1);
  expect(stored()).toBeLessThanOrEqual(3);
  expect(leader.group.status()).toMatchObject({ commit: 11, applied: 11, lastIndex: 11 });
});

test('the group sleeps with nothing that the engine does not know', async () => {
  const { all, leader } = await alone();
  await write(all, leader, texts(0, 5));
  await all.tick(60);
  expect(leader.group.isAsleep).toBe(true);
  expect(leader.engine.status(leader.group.handle)).toMatchObject({ lastIndex: 7, commit: 7 });
  await write(all, leader, texts(5, 7));
  expect(leader.machine.applied).toEqual(texts(0, 7));
});

test('entries that the engine was not told of outlive a crash, under each policy', async () => {
  for (const fsync of ['always', 'everysec', 'no'] as const) {
    const { all, leader } = await alone();
    leader.pod.fsync = fsync;
    await write(all, leader, texts(0, 20));
    if (fsync === 'always') leader.disk = leader.disk.crash();
    await leader.reopen(new TestMachine());
    await all.tick(40);
    expect(leader.machine.applied).toEqual(texts(0, 20));
    await write(all, leader, texts(20, 22));
    expect(leader.machine.applied).toEqual(texts(0, 22));
  }
});

test('a checkpoint releases the log, and a group opened again has all entries', async () => {
  const { all, leader } = await alone();
  await write(all, leader, texts(0, 20));
  leader.machine.checkpoint();
  leader.group.stateIsDurable(leader.machine.durableIndex);
  leader.group.releaseLog();
  await all.tick(2);
  leader.group.releaseLog();
  expect(leader.group.status().firstIndex).toBeGreaterThan(20);
  await write(all, leader, texts(20, 25));
  leader.pod.closeGroup(3);
  // What was applied after the checkpoint is not durable: it is applied anew.
  leader.machine.applied.length = 20;
  leader.openGroup();
  await all.tick(40);
  expect(leader.machine.applied).toEqual(texts(0, 25));
});

/** Two pods, of which the first is the only voter. */
async function oneAndJoining(): Promise<{ all: Pods; first: TestPod; second: TestPod }> {
  const all = new Pods(2);
  open.push(all);
  const [first, second] = all.pods as [TestPod, TestPod];
  first.first = firstPosition([first.replica]);
  second.first = joiningPosition;
  await all.open();
  await all.tick(40);
  return { all, first, second };
}

test('a replica that joins has all of them, and so has the log after it has left', async () => {
  const { all, first, second } = await oneAndJoining();
  await write(all, first, texts(0, 10));
  // Others of the same tick are written before the change and after it.
  first.group.proposeAlone(Buffer.from('before'));
  expect(first.group.changeMembers([{ replica: second.replica, to: 'voter' }])).toBe(true);
  first.group.propose(Buffer.from('after'));
  await all.tick(20);
  await write(all, first, texts(10, 15));
  const expected = [...texts(0, 10), 'before', 'after', ...texts(10, 15)];
  await all.tick(20);
  expect(second.machine.applied).toEqual(expected);
  expect(first.group.changeMembers([{ replica: second.replica, to: 'removed' }])).toBe(true);
  await all.tick(20);
  await write(all, first, texts(15, 18));
  expect(first.machine.applied).toEqual([...expected, ...texts(15, 18)]);
});

test('a replica that has left is not told of an index before what was answered', async () => {
  const { all, first, second } = await oneAndJoining();
  await write(all, first, texts(0, 5));
  const steps = counted(first, 'step');
  const message = {
    ...{ type: MessageType.readIndex, to: first.replica, from: second.replica, term: 0 },
    ...{ logTerm: 0, index: 0, commit: 0, vote: 0, reject: false, rejectHint: 0 },
    ...{ context: new Uint8Array(24), snapshot: undefined, responses: [], hasHardState: false },
    entries: [],
  };
  const asked = { group: 3, incarnation: 1, message, payloads: [], times: undefined };
  // The engine has yet to hear of the last entries.
  expect(first.group.receive(asked)).toBe(true);
  expect(steps()).toBe(0);
  await all.tick(3);
  expect(first.engine.status(first.group.handle).commit).toBe(first.group.appliedIndex);
  expect(first.group.receive(asked)).toBe(true);
  expect(steps()).toBe(1);
});
