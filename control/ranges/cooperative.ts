// Cooperative scheduling with lazy splits: Libra, sections III-B and IV-C. While some node is above 1 + λ, its dimension
// that deviates most is the critical one. The node's regions are looked at in the order of their critical load; those
// that the least loaded node can take, and that weigh more there than in the other dimension, are scheduled. Where
// they do not bring the node down, large regions are split instead, and the next round moves the parts.

import type { RangePlan, RangePlanner, RangeStep } from './range-plan.ts';
import { type Dimension, otherThan, type RangeModel, RangeState } from './range-state.ts';

interface CooperativeParameters {
  /** Largest deviation from the mean load that is tolerated. */
  lambda: number;
  /** Least critical load of a region that is worth a move. */
  leastLoad: number;
  /** Not lazy: bring all regions of an overloaded node below the bound of theorem 1, then move. */
  isEager?: boolean;
  /** Limit of parts cut off a region in one round; 1 if a sample yields only one cut. */
  mostParts?: number;
  /** Regions are never split. */
  withoutSplits?: boolean;
}

const cooperativeDefaults: CooperativeParameters = { lambda: 0.05, leastLoad: 1 / 500 };

interface Queues {
  moves: { region: number; to: number }[];
  /** Critical load of the source after these moves. */
  left: number;
  splits: Cuts[];
}

/**
 * Parts to cut off one region, from the left: their shares of its load, and their destinations. The remainder stays on
 * its node.
 */
interface Cuts {
  region: number;
  parts: { ratio: number; to?: number }[];
}

export function cooperative(parameters: Partial<CooperativeParameters> = {}): RangePlanner {
  const all = { ...cooperativeDefaults, ...parameters };
  return {
    name: 'cooperative',
    lambda: all.lambda,
    loadOf: (state, node) => 1 + state.deviation(node),
    plan: (model) => new Planning(model, all).plan(),
  };
}

class Planning {
  readonly #state: RangeState;
  readonly #parameters: CooperativeParameters;
  readonly #steps: RangeStep[] = [];
  /** Nodes whose load cannot be improved further in this round. */
  readonly #settled = new Set<number>();
  /** Regions that are split in this round. Their parts can be moved from the next round on. */
  readonly #cut = new Set<number>();
  #bytes = 0;

  constructor(model: RangeModel, parameters: CooperativeParameters) {
    this.#state = new RangeState(model);
    this.#parameters = parameters;
  }

  plan(): RangePlan {
    const before = this.#state.imbalance();
    // A region that was moved rarely moves again; the bound only guards against rounding.
    for (let left = 4 * this.#state.regionCount; left > 0; left--) {
      const node = this.#mostDeviating();
      if (node === undefined) break;
      this.#relieve(node);
    }
    return { steps: this.#steps, before, after: this.#state.imbalance(), bytes: this.#bytes };
  }

  #mostDeviating(): number | undefined {
    let best: number | undefined;
    let most = this.#parameters.lambda;
    for (let node = 0; node < this.#state.nodeCount; node++) {
      const deviation = this.#state.deviation(node);
      if (deviation <= most || this.#settled.has(node)) continue;
      most = deviation;
      best = node;
    }
    return best;
  }

  #relieve(node: number): void {
    const { lambda, isEager = false } = this.#parameters;
    const { total } = this.#state;
    const critical = total.cpu[node]! > total.io[node]! ? 'cpu' : 'io';
    const large = isEager
      ? this.#state.regionsOf[node]!.filter((each) => this.#mayBeSplit(each))
      : [];
    const queues = this.#queues(node, critical);
    // Any region above the bound of theorem 1 is significant.
    const splits: Queues['splits'] =
      large.length > 0
        ? large.map((region) => ({ region, parts: [{ ratio: 0.5 }] }))
        : queues.splits;
    if (large.length > 0 || (queues.left > 1 + lambda && splits.length > 0)) {
      for (const cuts of splits) this.#split(cuts, critical);
      if (large.length > 0) this.#settled.add(node);
      return;
    }
    for (const { region, to } of queues.moves) this.#move(region, to, critical);
    if (queues.moves.length === 0) this.#settled.add(node);
  }

  /** Possible actions for a node, without applying them. */
  #queues(node: number, critical: Dimension): Queues {
    const { lambda, leastLoad } = this.#parameters;
    const state = this.#state;
    const load = state.load[critical];
    const other = state.load[otherThan(critical)];
    const loads = Float64Array.from(state.total[critical]);
    const queues: Queues = { moves: [], left: loads[node]!, splits: [] };
    const dominant = state
      .sorted(node, critical)
      .filter((region) => other[region]! < load[region]! && !this.#cut.has(region));
    for (const region of dominant) {
      // Regions follow in falling order.
      if (load[region]! <= leastLoad || queues.left <= 1) break;
      const to = state.lowestFor(region, loads);
      if (to === node) continue;
      const added = state.loadOn(region, critical, to);
      // The literal rule bounds only the destination; below 1 the source would become the one that lacks load.
      const leaves = queues.left - state.loadOn(region, critical, node);
      if (loads[to]! + added < 1 + lambda && leaves >= 1 - lambda) {
        loads[to] = loads[to]! + added;
        loads[node] = leaves;
        queues.left = leaves;
        queues.moves.push({ region, to });
      } else if (this.#mayBeSplit(region)) {
        const parts = this.#partsOf(region, critical, loads);
        if (parts.length > 0) queues.splits.push({ region, parts });
      }
    }
    // One of them is enough: the others would only make more regions.
    queues.splits.length = Math.min(1, queues.splits.length);
    return queues;
  }

  /**
   * A part for each node with room, the one with most room first, until the source's excess is gone: one sample of the
   * region's requests says where all of the cuts are.
   */
  #partsOf(region: number, dimension: Dimension, loads: Float64Array): Cuts['parts'] {
    const { lambda, mostParts = Infinity } = this.#parameters;
    const { capacity, node, load: loadOf } = this.#state;
    const load = loadOf[dimension][region]!;
    const source = node[region]!;
    const least = lambda / 2;
    const left = Float64Array.from(loads);
    const parts: Cuts['parts'] = [];
    let cutOff = 0;
    while (parts.length < mostParts) {
      const to = this.#state.lowestFor(region, left);
      if (to === source) break;
      const room = (1 - left[to]!) * capacity[to]!;
      const excess = (left[source]! - 1) * capacity[source]!;
      const part = Math.max(Math.min(room, excess), least);
      // Further parts are not worth a cut below the bound.
      if (parts.length > 0 && Math.min(room, excess) < least) break;
      if (cutOff + part >= load) break;
      parts.push({ ratio: part / load, to });
      cutOff += part;
      left[source] = left[source]! - part / capacity[source]!;
      left[to] = left[to]! + part / capacity[to]!;
    }
    return parts;
  }

  /** The bound of theorem 1: regions below it can always be placed. */
  #mayBeSplit(region: number): boolean {
    const { lambda, withoutSplits = false } = this.#parameters;
    const { cpu, io } = this.#state.load;
    return !withoutSplits && Math.max(cpu[region]!, io[region]!) > lambda / 2;
  }

  #move(region: number, to: number, critical: Dimension): void {
    const from = this.#state.node[region]!;
    const share = this.#state.total[critical][from]!;
    this.#state.move(region, to);
    this.#bytes += this.#state.bytes[region]!;
    const reason = `node ${from} has ${share.toFixed(2)} of the mean ${critical} load, node ${to} the least`;
    this.#steps.push({ kind: 'move', region, from, to, reason });
  }

  /** Load that moves elsewhere in the next round counts there from now on. */
  #split({ region, parts }: Cuts, dimension: Dimension): void {
    this.#cut.add(region);
    for (const { ratio, to } of parts) if (to !== undefined) this.#state.reckon(region, ratio, to);
    const load = this.#state.load[dimension][region]!;
    const reason = `its ${dimension} load, ${load.toFixed(3)} of a node, fits on no other node`;
    const ratios = parts.map(({ ratio }) => ratio);
    this.#steps.push({ kind: 'split', region, ratios, dimension, reason });
  }
}
