// On which nodes replicas are placed: different nodes, different zones as far as there are enough, and the nodes with the
// fewest replicas first.

import { type GroupDefinition, hasRole } from '../../contracts/cluster.ts';
import {
  type ClusterState,
  type NodeSighting,
  type PlanPolicy,
  replicaKey,
} from './cluster-state.ts';

/** Difference of two nodes' replicas for which one is moved. A difference of 2 stays as an operator made it. */
const worthwhile = 3;

/** Nodes and their replicas, kept up to date while a plan is made. */
export class Placement {
  /** Nodes that may have replicas, reachable or not, by number. */
  readonly #usable = new Map<number, NodeSighting>();
  readonly #lost = new Set<number>();
  /** Nodes with a full disk. */
  readonly #full = new Set<number>();
  readonly #zones = new Map<number, string>();
  readonly #replicas = new Map<number, number>();

  constructor(
    { nodes, groups, statuses }: ClusterState,
    { rebuildAfterMs }: PlanPolicy,
    now: number,
  ) {
    const full = new Set(
      statuses.filter(({ takesNoWrites }) => takesNoWrites === 'node').map(replicaKey),
    );
    for (const node of nodes) {
      this.#zones.set(node.node, node.zone || `node ${node.node}`);
      this.#replicas.set(node.node, 0);
      if (node.state !== 'up' || !hasRole(node, 'node')) continue;
      const isLost = !node.reachable && now - node.since >= rebuildAfterMs;
      if (isLost) this.#lost.add(node.node);
      else this.#usable.set(node.node, node);
    }
    for (const { group, replicas } of groups) {
      for (const { node, replica } of replicas) {
        this.count(node, 1);
        if (full.has(replicaKey({ group, replica }))) this.#full.add(node);
      }
    }
  }

  /** Nodes that may have replicas. */
  get size(): number {
    return this.#usable.size;
  }

  /** A replica on it need not be elsewhere. */
  isUsable(node: number): boolean {
    return this.#usable.has(node);
  }

  /**
   * Whether the node was out of reach for so long that its replicas are replaced, even without a
   * drain.
   */
  isLost(node: number): boolean {
    return this.#lost.has(node);
  }

  /** Whether its replicas take no entries: others had better lead, and new replicas are better elsewhere. */
  isFull(node: number): boolean {
    return this.#full.has(node);
  }

  isReachable(node: number): boolean {
    return this.#usable.get(node)?.reachable ?? false;
  }

  /** Nodes that may have replicas, and can be reached. */
  reachable(): number[] {
    return [...this.#usable.values()].flatMap((one) => (one.reachable ? [one.node] : []));
  }

  replicasOn(node: number): number {
    return this.#replicas.get(node) ?? 0;
  }

  zoneOf(node: number): string {
    return this.#zones.get(node) ?? `node ${node}`;
  }

  count(node: number, by: 1 | -1): void {
    this.#replicas.set(node, this.replicasOn(node) + by);
  }

  /**
   * The best node for one more replica besides those on `taken`; `avoid` has no room for another reason. Unless it may be silent, it
   * can be reached, and has room on its disk.
   */
  best(
    taken: readonly number[],
    avoid: readonly number[] = [],
    mayBeSilent = false,
  ): number | undefined {
    const zones = new Map<string, number>();
    for (const node of taken) zones.set(this.zoneOf(node), (zones.get(this.zoneOf(node)) ?? 0) + 1);
    let best: { node: number; score: readonly number[] } | undefined;
    for (const { node, reachable } of this.#usable.values()) {
      const isReady = reachable && !this.isFull(node);
      if ((!isReady && !mayBeSilent) || taken.includes(node) || avoid.includes(node)) continue;
      const score = [zones.get(this.zoneOf(node)) ?? 0, this.replicasOn(node), node];
      if (best === undefined || isLess(score, best.score)) best = { node, score };
    }
    return best?.node;
  }

  /** The node of `nodes` that the group can do best without: one in a zone with others of them, with many replicas. */
  worst(nodes: readonly number[], leader: number): number | undefined {
    const inZone = (zone: string): number =>
      nodes.filter((one) => this.zoneOf(one) === zone).length;
    let worst: { node: number; score: readonly number[] } | undefined;
    for (const node of nodes) {
      const score = [
        -inZone(this.zoneOf(node)),
        -this.replicasOn(node),
        Number(node === leader),
        -node,
      ];
      if (worst === undefined || isLess(score, worst.score)) worst = { node, score };
    }
    return worst?.node;
  }

  /**
   * A better place for a replica than one of `nodes`: it adds a zone, or evens out the load. Adding
   * a replica there and then removing the `worst` is an improvement, after which there is no better
   * place.
   */
  better(nodes: readonly number[]): number | undefined {
    const node = this.best(nodes);
    if (node === undefined) return undefined;
    const load = this.replicasOn(node);
    this.count(node, 1);
    const worst = this.worst([...nodes, node], 0)!;
    this.count(node, -1);
    if (worst === node) return undefined;
    const zonesNow = this.#zonesOf(nodes);
    const zonesThen = this.#zonesOf([...nodes.filter((one) => one !== worst), node]);
    if (zonesThen !== zonesNow) return zonesThen > zonesNow ? node : undefined;
    return this.replicasOn(worst) >= load + worthwhile ? node : undefined;
  }

  #zonesOf(nodes: readonly number[]): number {
    return new Set(nodes.map((node) => this.zoneOf(node))).size;
  }
}

function isLess(a: readonly number[], b: readonly number[]): boolean {
  for (const [i, value] of a.entries()) {
    if (value !== b[i]) return value < b[i]!;
  }
  return false;
}

/** Nodes of the replicas that are to stay. */
export function membersOf({ replicas }: GroupDefinition): number[] {
  return replicas.filter(({ state }) => state !== 'leaving').map(({ node }) => node);
}
