// The members of the metadata's group, step by step until nothing is left to do.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { NodeDefinition, NodeState } from '../../contracts/cluster.ts';
import { type MembershipView, planMembership, wantedVoters } from './membership.ts';

interface Situation {
  nodes: [node: number, state?: NodeState, zone?: string][];
  voters: number[];
  learners?: number[];
  self?: number;
  /** Nodes without a link, and for how many seconds. */
  away?: Record<number, number>;
}

function viewOf({ nodes, voters, learners = [], self, away = {} }: Situation): MembershipView {
  const addresses = { control: '', redis: '', influx: '', redisClients: '', influxClients: '' };
  return {
    nodes: nodes
      .filter(([, state]) => state !== 'removed')
      .map(([node, state = 'up', zone = '']): NodeDefinition => {
        const about = { node, state, zone, incarnation: 1, joinId: '' };
        return { ...about, addresses: { ...addresses, admin: '' } };
      }),
    voters,
    learners,
    self: self ?? voters[0]!,
    unreachableMs: (node) => (away[node] ?? 0) * 1000,
    replaceVoterMs: 300_000,
  };
}

/** Carries steps out until there is none; the voters, the learners and the leader at the end. */
function settle(
  situation: Situation,
  look: (voters: readonly number[]) => void = () => {},
): [voters: number[], learners: number[], self: number] {
  let view = viewOf(situation);
  for (let steps = 0; steps < 50; steps++) {
    const step = planMembership(view);
    if (step === undefined) {
      const sorted = (list: readonly number[]) => [...list].sort((a, b) => a - b);
      return [sorted(view.voters), sorted(view.learners), view.self];
    }
    if (step.kind === 'transfer') {
      expect(view.voters).toContain(step.to);
      view = { ...view, self: step.to };
      continue;
    }
    for (const { node, to } of step.changes) {
      const without = (list: readonly number[]) => list.filter((one) => one !== node);
      view = {
        ...view,
        voters: to === 'voter' ? [...without(view.voters), node] : without(view.voters),
        learners: to === 'learner' ? [...without(view.learners), node] : without(view.learners),
      };
    }
    look(view.voters);
    // The one that leads does not vote itself out.
    expect(view.voters).toContain(view.self);
  }
  throw new Error('it never ends');
}

test('only nodes with the role control vote, and one without it gives its vote away', () => {
  const view = viewOf({ nodes: [[1], [2], [3]], voters: [1, 2], learners: [3] });
  const nodes = view.nodes.map((one) => {
    return one.node === 2 ? { ...one, roles: ['gateway', 'node'] as const } : one;
  });
  expect(planMembership({ ...view, nodes })).toEqual({
    kind: 'change',
    changes: [
      { node: 3, to: 'voter' },
      { node: 2, to: 'learner' },
    ],
  });
  expect(planMembership({ ...view, nodes, voters: [1, 3], learners: [2] })).toBeUndefined();
});

describe('members', () => {
  test.each<[what: string, Situation, voters: number[], learners: number[], self?: number]>([
    ['of one node', { nodes: [[1]], voters: [1] }, [1], []],
    ['of two', { nodes: [[1], [2]], voters: [1] }, [1, 2], []],
    ['of three', { nodes: [[1], [2], [3]], voters: [1] }, [1, 2, 3], []],
    ['of four', { nodes: [[1], [2], [3], [4]], voters: [1] }, [1, 2, 3], [4]],
    ['of five', { nodes: [[1], [2], [3], [4], [5]], voters: [1] }, [1, 2, 3, 4, 5], []],
    [
      'of four in two zones',
      {
        nodes: [
          [1, 'up', 'a'],
          [2, 'up', 'a'],
          [3, 'up', 'a'],
          [4, 'up', 'b'],
        ],
        voters: [1],
      },
      [1, 2, 4],
      [3],
    ],
    ['and one that joins', { nodes: [[1], [2, 'joining']], voters: [1] }, [1], [2]],
    [
      'and one that cannot be reached',
      { nodes: [[1], [2], [3]], voters: [1, 2], learners: [3], away: { 3: 1 } },
      [1, 2],
      [3],
    ],
    [
      'and a voter lost a moment ago',
      { nodes: [[1], [2], [3], [4]], voters: [1, 2, 3], learners: [4], away: { 3: 299 } },
      [1, 2, 3],
      [4],
    ],
    [
      'and a voter lost for long',
      { nodes: [[1], [2], [3], [4]], voters: [1, 2, 3], learners: [4], away: { 3: 301 } },
      [1, 2, 4],
      [3],
    ],
    [
      'and a voter that is drained',
      { nodes: [[1], [2, 'draining'], [3], [4]], voters: [1, 2, 3], learners: [4] },
      [1, 3, 4],
      [2],
    ],
    [
      'and a leader that is drained',
      { nodes: [[1, 'draining'], [2], [3]], voters: [1, 2, 3] },
      [2, 3],
      [1],
      2,
    ],
    [
      'and a voter that is removed',
      { nodes: [[1], [2, 'removed'], [3], [4]], voters: [1, 2, 3], learners: [4] },
      [1, 3, 4],
      [],
    ],
    [
      'and a leader that is removed',
      { nodes: [[1, 'removed'], [2], [3]], voters: [1, 2, 3] },
      [2, 3],
      [],
      2,
    ],
    [
      'and a voter that is drained while another one is away',
      { nodes: [[1], [2], [3, 'draining']], voters: [1, 2, 3], away: { 2: 1 } },
      [1, 2, 3],
      [],
    ],
    [
      'and a voter that is removed while two of five are away',
      {
        nodes: [[1], [2], [3, 'removed'], [4], [5]],
        voters: [1, 2, 3, 4, 5],
        away: { 4: 1, 5: 1 },
      },
      [1, 2, 3, 4, 5],
      [],
    ],
    [
      'and a voter that is drained while two of five are lost',
      {
        nodes: [[1], [2], [3, 'draining'], [4], [5]],
        voters: [1, 2, 3, 4, 5],
        away: { 4: 301, 5: 301 },
      },
      [1, 2, 3],
      [4, 5],
    ],
    [
      'and two voters that are removed, of which the dead one need not wait for the other',
      {
        nodes: [[1], [2], [3, 'removed'], [4], [5, 'removed'], [6], [7]],
        voters: [1, 2, 3, 4, 5],
        learners: [6, 7],
        away: { 4: 1, 5: 1, 6: 1, 7: 1 },
      },
      [1, 2, 4],
      [6, 7],
    ],
    ['and all others drained', { nodes: [[1], [2, 'draining']], voters: [1, 2] }, [1], [2]],
    ['all drained', { nodes: [[1, 'draining']], voters: [1] }, [1], []],
  ])('%s', (_what, situation, voters, learners, self = 1) => {
    expect(settle(situation)).toEqual([voters, learners, self]);
  });

  test('of any cluster come to rest, with as many voters as there should be', () => {
    const node = fc.record({
      state: fc.constantFrom<NodeState[]>('joining', 'up', 'up', 'up', 'draining', 'removed'),
      zone: fc.constantFrom('a', 'b', 'c'),
      member: fc.constantFrom('voter', 'learner', 'none'),
    });
    fc.assert(
      fc.property(fc.array(node, { maxLength: 12 }), (some) => {
        const nodes = some.map(({ state, zone }, i) => [i + 2, state, zone] as const);
        const membersOf = (kind: string) =>
          some.flatMap(({ member }, i) => (member === kind ? [i + 2] : []));
        const [voters, learners] = settle({
          nodes: [[1, 'up', 'a'], ...nodes.map((one): [number, NodeState, string] => [...one])],
          voters: [1, ...membersOf('voter')],
          learners: membersOf('learner'),
        });
        const up = 1 + some.filter(({ state }) => state === 'up').length;
        const live = 1 + some.filter(({ state }) => state !== 'removed').length;
        expect(voters.length).toBe(wantedVoters(up));
        expect(voters.length + learners.length).toBe(live);
      }),
    );
  });

  test('of any cluster keep the majority that can be reached', () => {
    const node = fc.record({
      state: fc.constantFrom<NodeState[]>('up', 'up', 'draining', 'removed'),
      member: fc.constantFrom('voter', 'voter', 'learner', 'none'),
      away: fc.constantFrom(0, 0, 1, 301),
    });
    fc.assert(
      fc.property(fc.array(node, { maxLength: 8 }), (some) => {
        const numbered = some.map((one, i) => ({ ...one, node: i + 2 }));
        const membersOf = (kind: string) =>
          numbered.flatMap((one) => (one.member === kind ? [one.node] : []));
        const away = Object.fromEntries(numbered.map((one) => [one.node, one.away]));
        const isReached = (voters: readonly number[]) =>
          2 * voters.filter((one) => (away[one] ?? 0) === 0).length > voters.length;
        const voters = [1, ...membersOf('voter')];
        fc.pre(isReached(voters));
        const nodes = numbered.map((one): [number, NodeState] => [one.node, one.state]);
        const learners = membersOf('learner');
        settle({ nodes: [[1], ...nodes], voters, learners, away }, (after) =>
          expect(isReached(after), `voters ${after.join()}`).toBe(true),
        );
      }),
    );
  });
});
