import { describe, expect, test } from 'vitest';
import type { ReplicaDefinition, ReplicaState } from '../contracts/cluster.ts';
import { type GroupState, nextMemberStep } from './group-members.ts';

function wanted(states: Record<number, ReplicaState>): ReplicaDefinition[] {
  return Object.entries(states).map(([replica, state]) => ({
    replica: Number(replica),
    node: Number(replica),
    state,
  }));
}

function state(
  voters: number[],
  learners: number[] = [],
  matches: Record<number, number> = {},
): GroupState {
  return {
    epoch: 1000,
    self: 1,
    members: { voters, learners, outgoing: [] },
    commit: 10_000,
    match: (replica) => matches[replica] ?? 0,
  };
}

describe('the next step of a group towards its wanted members', () => {
  test.each<[string, Record<number, ReplicaState>, GroupState, unknown]>([
    ['nothing to do', { 1: 'voter', 2: 'voter' }, state([1, 2]), undefined],
    [
      'a new voter comes as a learner',
      { 1: 'voter', 2: 'voter' },
      state([1]),
      { changes: [{ replica: 2, to: 'learner' }] },
    ],
    ['it has not been heard of', { 1: 'voter', 2: 'voter' }, state([1], [2]), undefined],
    ['it is far behind', { 1: 'voter', 2: 'voter' }, state([1], [2], { 2: 100 }), undefined],
    [
      'it has caught up',
      { 1: 'voter', 2: 'voter' },
      state([1], [2], { 2: 9_500 }),
      { changes: [{ replica: 2, to: 'voter' }] },
    ],
    ['a learner stays one', { 1: 'voter', 2: 'learner' }, state([1], [2], { 2: 9_999 }), undefined],
    [
      'one leaves',
      { 1: 'voter', 2: 'leaving', 3: 'voter' },
      state([1, 2, 3]),
      { changes: [{ replica: 2, to: 'removed' }] },
    ],
    [
      'one that nobody knows leaves',
      { 1: 'voter', 3: 'voter' },
      state([1, 2, 3]),
      { changes: [{ replica: 2, to: 'removed' }] },
    ],
    [
      'a newcomer comes before one leaves',
      { 1: 'voter', 2: 'leaving', 3: 'voter' },
      state([1, 2]),
      { changes: [{ replica: 3, to: 'learner' }] },
    ],
    [
      'the leader hands over before it leaves',
      { 1: 'leaving', 2: 'voter', 3: 'voter' },
      state([1, 2, 3], [], { 2: 50, 3: 70 }),
      { transferTo: 3 },
    ],
    ['the last one stays', { 1: 'leaving' }, state([1]), undefined],
  ])('%s', (_what, replicas, current, step) => {
    expect(nextMemberStep(wanted(replicas), current)).toEqual(step);
  });

  test('is none where another leader has added a replica that is not wanted here yet', () => {
    const before = wanted({ 1: 'voter', 2: 'voter', 3: 'voter' });
    const moved = state([1, 3, 1001]);
    expect(nextMemberStep(before, moved)).toBeUndefined();
    const after = wanted({ 1: 'voter', 3: 'voter', 1001: 'voter' });
    expect(nextMemberStep(after, { ...moved, epoch: 1001 })).toBeUndefined();
    expect(nextMemberStep(before, { ...moved, epoch: 1001 })).toBeDefined();
  });

  test('waits for the end of a joint change', () => {
    const { members, ...others } = state([1, 2]);
    const joint = { ...others, members: { ...members, outgoing: [1] } };
    expect(nextMemberStep(wanted({ 1: 'voter' }), joint)).toBeUndefined();
  });
});
