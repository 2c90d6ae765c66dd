// Spreads leaders by request units. It uses the planner of control/ranges with one dimension: groups are its regions,
// and a change of leader is its only move. Its cooperative planner does not fit, because groups are not split here:
// it would refuse a move onto any node that exceeds the mean, and leave two busy groups on one node.

import { oneDimension } from '../ranges/baseline-planners.ts';

interface LedGroup {
  readonly group: number;
  /** Request units a second. */
  readonly units: number;
  /** Node that leads. */
  readonly node: number;
  /** Nodes that may lead in its place. */
  readonly heirs: readonly number[];
}

interface LeaderMove {
  readonly group: number;
  readonly from: number;
  readonly to: number;
}

/** A node's load above the mean that is left alone: minutes of the same load differ by some of it. */
const lambda = 0.25;
/** The busier of two nodes has to lose so much by a move, in terms of the mean: a move interrupts writes. */
const leastGain = 0.1;

/** Moves that relieve the busiest nodes, at most `limit`, each of another group. */
export function relief(
  groups: readonly LedGroup[],
  nodes: readonly number[],
  limit: number,
): LeaderMove[] {
  const moves: LeaderMove[] = [];
  // Groups on a node outside of `nodes` cannot be compared.
  const led = groups.filter(({ node }) => nodes.includes(node));
  const place = led.map(({ node }) => nodes.indexOf(node));
  const load = new Float64Array(nodes.length);
  led.forEach(({ units }, i) => (load[place[i]!]! += units));
  const mean = load.reduce((sum, one) => sum + one, 0) / nodes.length;
  const planner = oneDimension('cpu', lambda);
  const units = Float64Array.from(led, (one) => one.units);
  const model = {
    capacity: new Float64Array(nodes.length).fill(1),
    cpu: units,
    io: new Float64Array(led.length),
    bytes: new Float64Array(led.length),
    order: Uint32Array.from(led, (_, i) => i),
  };
  const settled = new Set<number>();
  while (moves.length < limit) {
    const allows = (region: number, node: number): boolean =>
      !settled.has(region) && led[region]!.heirs.includes(nodes[node]!);
    const [step] = planner.plan({ ...model, node: Uint32Array.from(place), allows }).steps;
    if (step?.kind !== 'move') break;
    const { region, from, to } = step;
    // The region is not considered again, whether its move is accepted or rejected.
    settled.add(region);
    const after = Math.max(load[from]! - units[region]!, load[to]! + units[region]!);
    if (load[from]! - after < leastGain * mean) continue;
    load[from]! -= units[region]!;
    load[to]! += units[region]!;
    place[region] = to;
    moves.push({ group: led[region]!.group, from: nodes[from]!, to: nodes[to]! });
  }
  return moves;
}
