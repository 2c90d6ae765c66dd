// Pods in one process, messages handed over by hand, logs on a disk in memory.

import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { EntryKind, FrameError } from '../engine/frames.ts';
import { Refusal } from './proposal-log.ts';
import { joinProposals, splitProposals } from './entry-reference.ts';
import { decodePeerMessage } from './peer-message.ts';
import { Pods, TestMachine } from './pods-fixture.ts';
import type { TestPod } from './pods-fixture.ts';
import { nodeOfReplica } from './replica-id.ts';

const open: Pods[] = [];
afterEach(async () => {
  for (const pods of open.splice(0)) for (const { pod } of pods.pods) await pod.close();
});

async function pods(count: number): Promise<Pods> {
  const all = await new Pods(count).open();
  open.push(all);
  // Before the group sleeps.
  await all.tick(20);
  expect(all.leader).toBeDefined();
  return all;
}

test.each([1, 3])(
  '%i voters that are opened together wait for no election time-out',
  async (count) => {
    const all = await new Pods(count).open();
    open.push(all);
    await all.tick(8);
    expect(all.leader).toBeDefined();
  },
);

test('a voter that is opened while there is a leader changes nothing', async () => {
  const all = await pods(3);
  const { leader } = all;
  const { term } = leader.group.status();
  for (const pod of all.pods.filter((one) => one !== leader)) {
    await pod.pod.close();
    await pod.reopen(pod.machine);
    await all.tick(8);
  }
  expect(all.leader).toBe(leader);
  expect(leader.group.status().term).toBe(term);
});

test('the proposals of a tick are one entry, committed and applied on all', async () => {
  const all = await pods(3);
  const { leader } = all;
  const before = leader.group.status().lastIndex;
  const texts = ['a', 'b'.repeat(300), 'c'];
  const positions = texts.map((text) => leader.group.propose(Buffer.from(text)));
  expect(positions).toEqual([1, 2, 3]);
  await all.tick(3);
  expect(leader.group.status().lastIndex).toBe(before + 1);
  expect(leader.outcomes).toEqual(positions.map((position) => [position, 'committed']));
  for (const { machine } of all.pods) expect(machine.applied).toEqual(texts);
});

test('a follower refuses proposals, and a leader those that are too large or too many', async () => {
  const all = await pods(3);
  const follower = all.pods.find((pod) => pod !== all.leader)!;
  expect(follower.group.propose(Buffer.from('x'))).toBe(Refusal.notLeader);
  const { group } = all.leader;
  expect(group.propose(Buffer.alloc(5000))).toBe(Refusal.tooLarge);
  expect(group.propose(Buffer.alloc(4000))).toBeGreaterThan(0);
  expect(group.propose(Buffer.alloc(4000))).toBeGreaterThan(0);
  expect(group.propose(Buffer.alloc(4000))).toBe(Refusal.overloaded);
});

test('what a leader cut off proposes is lost once another entry has its place', async () => {
  const all = await pods(3);
  const old = all.leader;
  for (const pod of all.pods) pod.down = pod !== old;
  expect(old.group.propose(Buffer.from('in vain'))).toBe(1);
  await all.tick(2);
  for (const pod of all.pods) pod.down = pod === old;
  await all.tick(40);
  const { leader } = all;
  leader.group.propose(Buffer.from('instead'));
  await all.tick(5);
  old.down = false;
  await all.tick(10);
  expect(old.outcomes).toEqual([[1, 'lost']]);
  for (const { machine } of all.pods) expect(machine.applied).toEqual(['instead']);
});

test('reads wait for the state; alone a leader cannot answer', async () => {
  const all = await pods(3);
  const { leader } = all;
  const answers: boolean[] = [];
  leader.group.readBarrier((isSafe) => answers.push(isSafe));
  all.pods.find((pod) => pod !== leader)!.group.readBarrier((isSafe) => answers.push(isSafe));
  await all.tick(5);
  expect(answers).toEqual([true, true]);
  for (const pod of all.pods) pod.down = pod !== leader;
  leader.group.readBarrier((isSafe) => answers.push(isSafe));
  await all.tick(70);
  expect(answers).toEqual([true, true, false]);
});

describe('a leader with leases', () => {
  async function leased(): Promise<Pods> {
    const all = await pods(3);
    for (const { group } of all.pods) group.setLeases(true);
    await all.tick(4);
    return all;
  }

  /** Without any message. */
  function answersAtOnce({ group }: TestPod): boolean {
    let isAnswered = false;
    group.readBarrier((isSafe) => (isAnswered = isSafe));
    return isAnswered;
  }

  test('has voters that keep their promises when they are started again: none campaigns early', async () => {
    const all = await leased();
    const voter = all.pods.find((pod) => pod !== all.leader)!;
    await voter.pod.close();
    await voter.reopen(voter.machine);
    for (const pod of all.pods) pod.down = pod !== voter;
    const { sent } = all;
    await all.tick(9);
    expect(all.sent).toBe(sent);
    await all.tick(30);
    expect(all.sent).toBeGreaterThan(sent);
  });

  test('asks nobody, for as long as a majority has answered lately', async () => {
    const all = await leased();
    const { leader } = all;
    expect(answersAtOnce(leader)).toBe(true);
    for (const pod of all.pods) pod.down = pod !== leader;
    await all.tick(5);
    expect(answersAtOnce(leader)).toBe(true);
    await all.tick(4);
    expect(answersAtOnce(leader)).toBe(false);
  });

  test('asks once a voter keeps none, or the clocks are in doubt, or another one is to lead', async () => {
    const all = await leased();
    const { leader } = all;
    const other = all.pods.find((pod) => pod !== leader)!;
    other.group.setLeases(false);
    await all.tick(2);
    expect(answersAtOnce(leader)).toBe(false);
    other.group.setLeases(true);
    await all.tick(3);
    expect(answersAtOnce(leader)).toBe(true);
    leader.pod.dropLeases(5);
    expect(answersAtOnce(leader)).toBe(false);
    await all.tick(6);
    expect(answersAtOnce(leader)).toBe(true);
    leader.group.transfer(other.replica);
    leader.pod.work();
    expect(answersAtOnce(leader)).toBe(false);
  });

  test('is followed by another one only after the time-out, by voters that were started again, too', async () => {
    const all = await leased();
    const { leader } = all;
    const others = all.pods.filter((pod) => pod !== leader);
    leader.down = true;
    for (const other of others) {
      await other.pod.close();
      other.machine = new TestMachine();
      await other.open();
    }
    for (const { pod } of others) pod.nodeDown(nodeOfReplica(leader.replica));
    await all.tick(9);
    expect(others.map(({ group }) => group.role)).not.toContain('leader');
    await all.tick(60);
    expect(others.map(({ group }) => group.role)).toContain('leader');
  });
});

test('a replica opened again has what it had, its payloads read back from the log', async () => {
  const all = await pods(3);
  for (let i = 0; i < 20; i++) {
    all.leader.group.propose(Buffer.from(`entry ${i}`));
    await all.tick(1);
  }
  await all.tick(2);
  const { applied } = all.leader.machine;
  expect(applied).toHaveLength(20);
  for (const pod of all.pods) {
    await pod.pod.close();
    pod.disk = pod.disk.crash();
    pod.machine = new TestMachine();
    await pod.open();
  }
  await all.tick(40);
  all.leader.group.propose(Buffer.from('more'));
  await all.tick(5);
  for (const { machine } of all.pods) expect(machine.applied).toEqual([...applied, 'more']);
});

test('members are replaced, and a replica that is removed is forgotten', async () => {
  const all = await pods(3);
  const { leader } = all;
  const out = all.pods.find((pod) => pod !== leader)!;
  expect(leader.group.changeMembers([{ replica: out.replica, to: 'removed' }])).toBe(true);
  await all.tick(5);
  expect(leader.group.status().members.voters).not.toContain(out.replica);
  const removed = out.pod.removeGroup(3);
  await all.tick(5);
  await removed;
  expect(out.pod.knows(3)).toBe(false);
  leader.group.propose(Buffer.from('of two'));
  await all.tick(5);
  expect(leader.outcomes).toEqual([[1, 'committed']]);
});

test('nothing is proposed behind a change of members until that is applied', async () => {
  const all = await pods(3);
  const { leader } = all;
  const { group } = leader;
  const others = all.pods.filter((pod) => pod !== leader);
  const first = group.status().lastIndex + 1;
  group.propose(Buffer.from('before'));
  // A joint change, which leaves by an entry of its own.
  const removed = others.map(({ replica }) => ({ replica, to: 'removed' }) as const);
  expect(group.changeMembers(removed)).toBe(true);
  expect(group.changeMembers(removed)).toBe(false);
  expect(group.proposeAlone(Buffer.from('alone'))).toBe(Refusal.overloaded);
  for (let i = 0; i < 5; i++) {
    group.propose(Buffer.from(`tick ${i}`));
    await all.tick(1);
  }
  await all.tick(5);
  expect(group.status().members).toMatchObject({ voters: [leader.replica], outgoing: [] });
  const kinds = group.storedEntries().filter(({ index }) => index >= first);
  expect(kinds.slice(0, 4).map(({ kind }) => kind)).toEqual([
    EntryKind.normal,
    EntryKind.confChange,
    EntryKind.confChange,
    EntryKind.normal,
  ]);
  expect(leader.machine.applied).toHaveLength(6);
  expect(leader.outcomes.every(([, outcome]) => outcome === 'committed')).toBe(true);
});

describe('a group in which nothing happens sleeps', () => {
  async function asleep(): Promise<Pods> {
    const all = await pods(3);
    all.leader.group.propose(Buffer.from('before'));
    await all.tick(60);
    expect(all.pods.map(({ group }) => group.isAsleep)).toEqual([true, true, true]);
    const sent = all.sent;
    await all.tick(50);
    expect(all.sent).toBe(sent);
    return all;
  }

  test('until there is something to write', async () => {
    const all = await asleep();
    all.leader.group.propose(Buffer.from('after'));
    await all.tick(3);
    for (const { machine } of all.pods) expect(machine.applied).toEqual(['before', 'after']);
    await all.tick(60);
    expect(all.pods.every(({ group }) => group.isAsleep)).toBe(true);
  });

  test('until somebody reads, at a follower too', async () => {
    const all = await asleep();
    const answers: boolean[] = [];
    const follower = all.pods.find((pod) => pod !== all.leader)!;
    follower.group.readBarrier((isSafe) => answers.push(isSafe));
    await all.tick(5);
    expect(answers).toEqual([true]);
  });

  test('until the link to its leader is lost', async () => {
    const all = await asleep();
    const old = all.leader;
    old.down = true;
    for (const { pod, down } of all.pods) if (!down) pod.nodeDown(nodeOfReplica(old.replica));
    await all.tick(10);
    expect(all.leader).not.toBe(old);
    all.leader.group.propose(Buffer.from('without it'));
    await all.tick(3);
    expect(all.leader.machine.applied).toEqual(['before', 'without it']);
    // One that comes back finds the others, asleep or not.
    await all.tick(60);
    old.down = false;
    for (const { pod } of all.pods) pod.nodeUp(nodeOfReplica(old.replica));
    await all.tick(60);
    expect(old.machine.applied).toEqual(['before', 'without it']);
  });

  test('and one that was not told wakes the others, and sleeps with them later', async () => {
    const all = await pods(3);
    const deaf = all.pods.find((pod) => pod !== all.leader)!;
    for (let left = 100; left > 0 && !all.leader.group.isAsleep; left--) {
      deaf.down = true;
      await all.tick(1);
      deaf.down = false;
    }
    await all.tick(100);
    expect(all.pods.filter(({ group }) => group.role === 'leader')).toHaveLength(1);
    expect(all.pods.every(({ group }) => group.isAsleep)).toBe(true);
  });
});

test('anything that is no message is dropped', async () => {
  const all = await pods(1);
  const { pod } = all.leader;
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const before = pod.droppedMessages;
      pod.receive(bytes);
      expect(pod.droppedMessages).toBe(before + 1);
      expect(() => decodePeerMessage(bytes)).toThrow(FrameError);
    }),
    { numRuns: 200 },
  );
});

test('proposals come back from a payload as they were', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 8 }), (proposals) => {
      expect(splitProposals(joinProposals(proposals))).toEqual(proposals);
    }),
  );
});
