// Phase 1 of ABase's rescheduling (section 5.3): each tenant's replicas are spread over the nodes of its pool in numbers
// that differ by at most one, so that no node's failure takes much of a tenant, and its quota can grow everywhere.

import { type HardLimits, refusalOf } from '../hard-limits.ts';
import type { Policy, Proposal } from '../proposal.ts';
import { WorkingCluster } from '../working-cluster.ts';
import { PoolLoad, podsOfPools } from './load.ts';
import { defaultRescheduling } from './rescheduling.ts';

interface CountBalanceOptions {
  limits: HardLimits;
  /** Moves planned at most. */
  mostMoves: number;
}

const defaults: CountBalanceOptions = { limits: defaultRescheduling.limits, mostMoves: Infinity };

export function countBalance(options: Partial<CountBalanceOptions> = {}): Policy {
  const all = { ...defaults, ...options };
  return {
    name: 'replica counts',
    plan(model) {
      const cluster = new WorkingCluster(model);
      const proposals: Proposal[] = [];
      for (const pods of podsOfPools(model)) {
        const planner = new CountPlanner(new PoolLoad(cluster, pods), all);
        proposals.push(...planner.plan(all.mostMoves - proposals.length));
      }
      return proposals;
    },
    whyIdle: () =>
      "the counts of each tenant's replicas on two nodes differ by at most one, or no node may take more",
  };
}

class CountPlanner {
  readonly #load: PoolLoad;
  readonly #cluster: WorkingCluster;
  readonly #limits: HardLimits;
  readonly #series: Float64Array;

  constructor(load: PoolLoad, { limits }: CountBalanceOptions) {
    this.#load = load;
    this.#cluster = load.cluster;
    this.#limits = limits;
    this.#series = new Float64Array(this.#cluster.dimensionCount * this.#cluster.points);
  }

  plan(most: number): Proposal[] {
    const proposals: Proposal[] = [];
    const { tenants } = this.#cluster.model;
    const ofTenant = this.#replicasByTenant();
    for (let tenant = 0; tenant < tenants.length && proposals.length < most; tenant++) {
      proposals.push(...this.#balance(tenant, ofTenant[tenant]!, most - proposals.length));
    }
    return proposals;
  }

  #replicasByTenant(): number[][] {
    const { model, podOf, partitionOf, tableOf } = this.#cluster;
    const inPool = new Set(this.#load.pods);
    const lists: number[][] = model.tenants.map(() => []);
    for (let replica = 0; replica < podOf.length; replica++) {
      if (!inPool.has(podOf[replica]!)) continue;
      lists[model.tables.tenant[tableOf[partitionOf[replica]!]!]!]!.push(replica);
    }
    return lists;
  }

  /** Each move takes one from a node with most of the tenant's replicas to one with fewest: the sum of squares falls. */
  #balance(tenant: number, replicas: readonly number[], most: number): Proposal[] {
    const byPod = new Map<number, number[]>(this.#load.pods.map((pod) => [pod, []]));
    for (const replica of replicas) byPod.get(this.#cluster.podOf[replica]!)!.push(replica);
    const proposals: Proposal[] = [];
    const counts = (): [number, number[]][] =>
      [...byPod].map(([pod, of]): [number, number[]] => [pod, of]);
    while (proposals.length < most) {
      const all = counts();
      const highest = Math.max(...all.map(([, of]) => of.length));
      const lowest = Math.min(...all.map(([, of]) => of.length));
      if (highest - lowest <= 1) break;
      const sources = all.filter(([, of]) => of.length === highest);
      const targets = all.filter(([, of]) => of.length <= highest - 2);
      const move = this.#firstMove(sources, targets);
      if (move === undefined) break;
      const { replica, fromPod, toPod } = move;
      const from = byPod.get(fromPod)!;
      from.splice(from.indexOf(replica), 1);
      byPod.get(toPod)!.push(replica);
      proposals.push(this.#carryOut(tenant, move, highest));
    }
    return proposals;
  }

  /**
   * Best move from the fullest node that has any: the replica and the target, among the emptiest,
   * of greatest gain.
   */
  #firstMove(
    sources: readonly [number, number[]][],
    targets: readonly [number, number[]][],
  ): CountMove | undefined {
    const lowestFirst = targets.toSorted(([, a], [, b]) => a.length - b.length);
    for (const [fromPod, replicas] of sources) {
      let best: (CountMove & { gain: number; count: number }) | undefined;
      const before = this.#load.deviation(fromPod);
      for (const replica of replicas) {
        this.#load.seriesOf(replica, this.#series);
        const without = this.#load.deviation(fromPod, this.#series, -1);
        for (const [toPod, there] of lowestFirst) {
          if (best !== undefined && there.length > best.count) break;
          const after = this.#load.deviation(toPod, this.#series);
          const gain = Math.max(before, this.#load.deviation(toPod)) - Math.max(without, after);
          if (best !== undefined && there.length === best.count && gain <= best.gain) continue;
          if (refusalOf(this.#cluster, replica, toPod, this.#limits) !== undefined) continue;
          best = { replica, fromPod, toPod, gain, count: there.length };
        }
      }
      if (best !== undefined) return best;
    }
    return undefined;
  }

  #carryOut(tenant: number, { replica, fromPod, toPod }: CountMove, highest: number): Proposal {
    const { model, partitionOf, partitionBytes } = this.#cluster;
    const change = { kind: 'move-replica', replica, fromPod, toPod } as const;
    this.#cluster.apply(change);
    const [name, from] = [model.tenants[tenant]!, model.pods.ids[fromPod]!];
    return {
      change,
      reason: `${from} has ${highest} replicas of tenant ${name}, and ${model.pods.ids[toPod]} at least two fewer`,
      figures: [{ name: `replicas of ${name} on ${from}`, before: highest, after: highest - 1 }],
      cost: { bytes: partitionBytes[partitionOf[replica]!]!, replicas: 1 },
    };
  }
}

interface CountMove {
  replica: number;
  fromPod: number;
  toPod: number;
}
