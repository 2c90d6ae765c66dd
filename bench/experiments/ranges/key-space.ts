// A range-sharded table in full: an ordered key space with a density of load, cut into regions on nodes. Hotspots may
// move over it; splits cut it where a sample of requests, or half the bytes, says.

import type { RangePlan } from '../../../control/ranges/range-plan.ts';
import type { Dimension, RangeModel } from '../../../control/ranges/range-state.ts';
import type { Merge } from '../../../control/ranges/merge.ts';
import { splitPoints } from '../../../control/ranges/split-point.ts';
import { Chance } from '../sim/chance.ts';

const rangeCount = 256;
const binsOfRange = 32;
const binCount = rangeCount * binsOfRange;
/** Bytes of the whole table: 1,024 regions of 48 MB. */
const tableBytes = 1024 * 48e6;

/** `size`: in half of the bytes, as stores do by themselves; `sizes`: in as many equal parts as are asked for. */
export type SplitBy = 'load' | 'size' | 'sizes';

interface Densities {
  cpu: Float64Array;
  io: Float64Array;
}

export class KeySpaceCluster {
  readonly nodes: number;
  /** Region i has the keys from `edges[i]` up to `edges[i + 1]`; the space is from 0 to 1. */
  edges: number[];
  node: number[];
  /** Sums of load up to each bin. */
  #sums: Densities = { cpu: new Float64Array(0), io: new Float64Array(0) };
  readonly #chance: Chance;
  /** Load of each quarter of a range. */
  readonly #inner: Float64Array;
  readonly #sizes: Float64Array;

  constructor(seed: number, nodes = 8) {
    this.nodes = nodes;
    this.#chance = new Chance(seed);
    const quarters = rangeCount * 4;
    this.#inner = Float64Array.from(
      { length: quarters },
      (_, i) => ((i % 4) + 1) ** -0.65 * this.#chance.uniform(0.5, 1.5),
    );
    this.#sizes = Float64Array.from({ length: quarters }, () => this.#chance.lognormal(0, 1.8));
    this.edges = Array.from({ length: quarters + 1 }, (_, i) => i / quarters);
    this.node = Array.from({ length: quarters }, () => this.#chance.below(nodes));
    this.setHotspot(0);
  }

  /** Puts the hottest range of Mixgraph at a place from 0 to 1; `flat` of the load is spread over all keys. */
  setHotspot(place: number, flat = 0): void {
    const cpu = new Float64Array(binCount);
    const io = new Float64Array(binCount);
    const shift = Math.floor(place * rangeCount);
    for (let bin = 0; bin < binCount; bin++) {
      const range = Math.floor(bin / binsOfRange);
      const x = ((range - shift + rangeCount) % rangeCount) + 1;
      const weight = 14.18 * Math.exp(-2.917 * x) + 0.0164 * Math.exp(-0.08082 * x);
      const quarter = Math.floor(bin / (binsOfRange / 4));
      const load = ((1 - flat) * weight + flat / rangeCount) * this.#inner[quarter]!;
      cpu[bin] = load;
      io[bin] = load * this.#sizes[quarter]!;
    }
    this.#sums = { cpu: sumsOf(cpu), io: sumsOf(io) };
  }

  get regionCount(): number {
    return this.node.length;
  }

  model(): RangeModel {
    const count = this.regionCount;
    const loads = (dimension: Dimension): Float64Array =>
      Float64Array.from({ length: count }, (_, i) =>
        this.#load(dimension, this.edges[i]!, this.edges[i + 1]!),
      );
    return {
      capacity: new Float64Array(this.nodes).fill(1),
      node: Uint32Array.from(this.node),
      cpu: loads('cpu'),
      io: loads('io'),
      bytes: Float64Array.from(
        { length: count },
        (_, i) => (this.edges[i + 1]! - this.edges[i]!) * tableBytes,
      ),
      order: Uint32Array.from({ length: count }, (_, i) => i),
    };
  }

  /** At most `movesOfNode` regions leave a node. Returns the changes made. */
  carryOut(
    { steps }: RangePlan,
    by: SplitBy = 'load',
    movesOfNode = Infinity,
  ): { moves: number; splits: number } {
    const left = new Float64Array(this.nodes).fill(movesOfNode);
    const splits: { region: number; at: number }[] = [];
    let moves = 0;
    for (const step of steps) {
      if (step.kind === 'move') {
        if (left[step.from]!-- <= 0) continue;
        this.node[step.region] = step.to;
        moves++;
      } else {
        for (const at of this.#cuts(step.region, step.ratios, step.dimension, by)) {
          splits.push({ region: step.region, at });
        }
      }
    }
    // From the last region on, so that numbers stay valid.
    splits.sort((a, b) => b.region - a.region || b.at - a.at);
    for (const { region, at } of splits) {
      this.edges.splice(region + 1, 0, at);
      this.node.splice(region + 1, 0, this.node[region]!);
    }
    return { moves, splits: splits.length };
  }

  merge(merges: readonly Merge[]): void {
    for (const { right } of [...merges].sort((a, b) => b.right - a.right)) {
      this.edges.splice(right, 1);
      this.node.splice(right, 1);
    }
  }

  /** Ascending. Fewer than asked for where keys of the sample are too few. */
  #cuts(
    region: number,
    ratios: readonly number[],
    dimension: Dimension,
    by: SplitBy,
  ): readonly number[] {
    const from = this.edges[region]!;
    const to = this.edges[region + 1]!;
    if (by === 'size') return [(from + to) / 2];
    if (by === 'sizes') {
      return ratios.map((_, i) => from + ((to - from) * (i + 1)) / (ratios.length + 1));
    }
    // Samples the node receives in ten seconds.
    const samples = Array.from({ length: 1000 }, () => {
      const start = this.#draw(dimension, from, to);
      return { start, end: start, weight: 1 };
    });
    return splitPoints(samples, ratios, (a, b) => a - b);
  }

  /** A key of a request, by the load. */
  #draw(dimension: Dimension, from: number, to: number): number {
    const sums = this.#sums[dimension];
    const low = sumAt(sums, from);
    const wanted = low + this.#chance.next() * (sumAt(sums, to) - low);
    let [a, b] = [Math.floor(from * binCount), Math.ceil(to * binCount)];
    while (b - a > 1) {
      const middle = (a + b) >> 1;
      if (sums[middle]! <= wanted) a = middle;
      else b = middle;
    }
    const inBin = (wanted - sums[a]!) / (sums[a + 1]! - sums[a]!);
    return Math.min(to, Math.max(from, (a + inBin) / binCount));
  }

  #load(dimension: Dimension, from: number, to: number): number {
    const sums = this.#sums[dimension];
    return sumAt(sums, to) - sumAt(sums, from);
  }
}

function sumsOf(loads: Float64Array): Float64Array {
  const sums = new Float64Array(loads.length + 1);
  for (let i = 0; i < loads.length; i++) sums[i + 1] = sums[i]! + loads[i]!;
  return sums;
}

function sumAt(sums: Float64Array, place: number): number {
  const at = place * binCount;
  const bin = Math.min(binCount - 1, Math.floor(at));
  return sums[bin]! + (at - bin) * (sums[bin + 1]! - sums[bin]!);
}
