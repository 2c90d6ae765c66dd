// Voters of the metadata group, and nodes with a copy only. The leader brings the members of its
// group to those in the documents of the nodes, one change after the other.

import { hasRole, type NodeDefinition } from '../../contracts/cluster.ts';

export interface MembershipView {
  /** The node that leads. */
  self: number;
  /** All nodes that are not removed. */
  nodes: readonly NodeDefinition[];
  /** Members of the group, by their nodes. */
  voters: readonly number[];
  learners: readonly number[];
  /** Milliseconds since the last link to a node ended; 0 while there is a link. */
  unreachableMs: (node: number) => number;
  /** After which a voter is replaced. */
  replaceVoterMs: number;
}

type MembershipStep =
  | { kind: 'change'; changes: { node: number; to: 'voter' | 'learner' | 'removed' }[] }
  /** Leadership goes to another voter, because this node is to be removed. */
  | { kind: 'transfer'; to: number };

/** Number of voters in a cluster with this many nodes: odd wherever possible. */
export function wantedVoters(nodes: number): number {
  return nodes >= 5 ? 5 : Math.min(nodes, 3);
}

/** The next step; undefined if the members are as wanted, or if no step is possible now. */
export function planMembership(view: MembershipView): MembershipStep | undefined {
  const steps = [addNew, takeOut, fillUp, replace, thinOut];
  for (const next of steps) {
    const step = next(view);
    if (step !== undefined && keepsMajority(view, step)) return step;
  }
  return undefined;
}

/** Whether a majority of the remaining voters is reachable after the step. Without a majority the group could not recover. */
function keepsMajority({ self, voters, unreachableMs }: MembershipView, step: MembershipStep) {
  if (step.kind === 'transfer') return true;
  const after = new Set(voters);
  for (const { node, to } of step.changes) {
    if (to === 'voter') after.add(node);
    else after.delete(node);
  }
  if (step.changes.every(({ node, to }) => to === 'learner' && !voters.includes(node))) return true;
  const there = [...after].filter((node) => node === self || unreachableMs(node) === 0);
  return 2 * there.length > after.size;
}

function addNew({ nodes, voters, learners }: MembershipView): MembershipStep | undefined {
  const isMember = new Set([...voters, ...learners]);
  const added = nodes.filter(({ node }) => !isMember.has(node));
  if (added.length === 0) return undefined;
  return { kind: 'change', changes: added.map(({ node }) => ({ node, to: 'learner' })) };
}

/**
 * Removes members whose nodes are removed. A replacement joins in the same step, so the number of voters does not
 * drop.
 */
function takeOut(view: MembershipView): MembershipStep | undefined {
  const { nodes, voters, learners, self } = view;
  const isThere = new Set(nodes.map(({ node }) => node));
  // One that takes nothing from the majority first: behind one that has to wait it would wait as well.
  const gone = silentFirst(view, [...learners, ...voters]).filter((node) => !isThere.has(node));
  const other = gone.find((node) => node !== self);
  if (other !== undefined) {
    const replacement = voters.includes(other) ? promoted(view, 1) : [];
    return { kind: 'change', changes: [{ node: other, to: 'removed' }, ...replacement] };
  }
  return gone.length > 0 ? handOver(view) : undefined;
}

function fillUp(view: MembershipView): MembershipStep | undefined {
  const missing = wantedVoters(upNodes(view).length) - view.voters.length;
  const changes = missing > 0 ? promoted(view, 1) : [];
  return changes.length > 0 ? { kind: 'change', changes } : undefined;
}

/** Replaces voters that are drained, or unreachable for a long time. */
function replace(view: MembershipView): MembershipStep | undefined {
  const bad = unfit(view);
  const replacement = promoted(view, 1);
  if (bad.length === 0 || replacement.length === 0) return undefined;
  const other = bad.find((node) => node !== view.self);
  if (other === undefined) return handOver(view);
  return { kind: 'change', changes: [...replacement, { node: other, to: 'learner' }] };
}

function thinOut(view: MembershipView): MembershipStep | undefined {
  const { voters, self } = view;
  if (voters.length <= Math.max(1, wantedVoters(upNodes(view).length))) return undefined;
  const byNumber = voters.filter((node) => node !== self).sort((a, b) => b - a);
  const others = silentFirst(view, byNumber);
  const bad = unfit(view);
  const out = others.find((node) => bad.includes(node)) ?? (bad.length > 0 ? self : others[0]!);
  if (out === self) return handOver(view);
  return { kind: 'change', changes: [{ node: out, to: 'learner' }] };
}

function silentFirst({ unreachableMs }: MembershipView, nodes: readonly number[]): number[] {
  const isSilent = (node: number): number => Number(unreachableMs(node) > 0);
  return nodes.toSorted((a, b) => isSilent(b) - isSilent(a));
}

function handOver(view: MembershipView): MembershipStep | undefined {
  const { voters, self, unreachableMs } = view;
  const bad = unfit(view);
  const to = voters.find(
    (node) => node !== self && unreachableMs(node) === 0 && !bad.includes(node),
  );
  return to === undefined ? undefined : { kind: 'transfer', to };
}

/** Nodes that may vote. */
function upNodes({ nodes }: MembershipView): readonly NodeDefinition[] {
  return nodes.filter((node) => node.state === 'up' && hasRole(node, 'control'));
}

function unfit({ nodes, voters, unreachableMs, replaceVoterMs }: MembershipView): number[] {
  return voters.filter((node) => {
    const definition = nodes.find((one) => one.node === node);
    const mayVote = definition?.state === 'up' && hasRole(definition, 'control');
    return !mayVote || unreachableMs(node) > replaceVoterMs;
  });
}

/** Learners that become voters: those in zones without one first. */
function promoted(view: MembershipView, count: number): { node: number; to: 'voter' }[] {
  const { voters, learners, unreachableMs } = view;
  const bad = unfit(view);
  const zoneOf = new Map(view.nodes.map(({ node, zone }) => [node, zone]));
  const zones = new Set(voters.filter((node) => !bad.includes(node)).map((n) => zoneOf.get(n)));
  const isNew = (node: number): number => Number(!zones.has(zoneOf.get(node)));
  return upNodes(view)
    .map(({ node }) => node)
    .filter((node) => learners.includes(node) && unreachableMs(node) === 0)
    .sort((a, b) => isNew(b) - isNew(a) || a - b)
    .slice(0, count)
    .map((node) => ({ node, to: 'voter' }));
}
