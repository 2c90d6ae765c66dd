// Regions of range-sharded tables and the load of the nodes that lead them, normalised as in Libra,
// section III-A: a load of 1 is an average node's in that dimension. Mutable: planners try their
// moves on a copy.

export type Dimension = 'cpu' | 'io';

/** One row each for nodes and regions. Loads are in any unit, the same for all regions. */
export interface RangeModel {
  /** Capacity of a node relative to the mean of all nodes. */
  readonly capacity: Float64Array;
  /** The node that leads each region. */
  readonly node: Uint32Array;
  readonly cpu: Float64Array;
  readonly io: Float64Array;
  readonly bytes: Float64Array;
  /** Regions of one table in key order; neighbours may be merged. Indexes of regions. */
  readonly order: Uint32Array;
  /** Whether a region may go to a node; any may go to any when absent. Holds for the placement of this model. */
  readonly allows?: (region: number, node: number) => boolean;
}

export class RangeState {
  readonly nodeCount: number;
  readonly capacity: Float64Array;
  readonly #allows: RangeModel['allows'];
  /** By region, normalised: divided by the mean load of a node. */
  readonly load: Readonly<Record<Dimension, number[]>> = { cpu: [], io: [] };
  readonly bytes: number[] = [];
  readonly node: number[] = [];
  readonly regionsOf: number[][];
  /** The region after each one in key order; -1: none. */
  readonly next: number[] = [];
  /** By node, normalised: divided by the mean and by the node's capacity. */
  readonly total: Readonly<Record<Dimension, Float64Array>>;

  constructor(model: RangeModel) {
    const { capacity, node, cpu, io, bytes, order, allows } = model;
    this.#allows = allows;
    this.nodeCount = capacity.length;
    this.capacity = capacity;
    this.regionsOf = Array.from(capacity, () => []);
    this.total = { cpu: new Float64Array(this.nodeCount), io: new Float64Array(this.nodeCount) };
    const meanCpu = meanOf(cpu, this.nodeCount);
    const meanIo = meanOf(io, this.nodeCount);
    for (let i = 0; i < node.length; i++) {
      this.add(node[i]!, cpu[i]! / meanCpu, io[i]! / meanIo, bytes[i]!);
    }
    order.forEach((region, i) => (this.next[region] = order[i + 1] ?? -1));
  }

  get regionCount(): number {
    return this.node.length;
  }

  add(node: number, cpu: number, io: number, bytes: number): number {
    const region = this.node.length;
    this.load.cpu.push(cpu);
    this.load.io.push(io);
    this.bytes.push(bytes);
    this.node.push(node);
    this.next.push(-1);
    this.#enter(region, node);
    return region;
  }

  move(region: number, to: number): void {
    const from = this.node[region]!;
    const regions = this.regionsOf[from]!;
    regions.splice(regions.indexOf(region), 1);
    this.total.cpu[from] = this.total.cpu[from]! - this.load.cpu[region]! / this.capacity[from]!;
    this.total.io[from] = this.total.io[from]! - this.load.io[region]! / this.capacity[from]!;
    this.node[region] = to;
    this.#enter(region, to);
  }

  #enter(region: number, node: number): void {
    this.regionsOf[node]!.push(region);
    this.total.cpu[node] = this.total.cpu[node]! + this.load.cpu[region]! / this.capacity[node]!;
    this.total.io[node] = this.total.io[node]! + this.load.io[region]! / this.capacity[node]!;
  }

  /** The left part keeps the number and `cpuShare` and `ioShare` of the load; returns the right part. */
  split(region: number, cpuShare: number, ioShare = cpuShare, bytesShare = cpuShare): number {
    const node = this.node[region]!;
    const cpu = this.load.cpu[region]!;
    const io = this.load.io[region]!;
    const bytes = this.bytes[region]!;
    this.load.cpu[region] = cpu * cpuShare;
    this.load.io[region] = io * ioShare;
    this.bytes[region] = bytes * bytesShare;
    // Both stay on the node: its sums do not change.
    this.total.cpu[node] = this.total.cpu[node]! - (cpu * (1 - cpuShare)) / this.capacity[node]!;
    this.total.io[node] = this.total.io[node]! - (io * (1 - ioShare)) / this.capacity[node]!;
    const right = this.add(
      node,
      cpu * (1 - cpuShare),
      io * (1 - ioShare),
      bytes * (1 - bytesShare),
    );
    this.next[right] = this.next[region]!;
    this.next[region] = right;
    return right;
  }

  /** The region after `left` becomes part of it; both must be on one node. */
  merge(left: number): void {
    const right = this.next[left]!;
    const node = this.node[left]!;
    if (right < 0 || this.node[right] !== node)
      throw new RangeError(`nothing to merge ${left} with`);
    for (const dimension of ['cpu', 'io'] as const) {
      const load = this.load[dimension];
      load[left] = load[left]! + load[right]!;
      load[right] = 0;
    }
    this.bytes[left] = this.bytes[left]! + this.bytes[right]!;
    this.bytes[right] = 0;
    this.next[left] = this.next[right]!;
    this.next[right] = -1;
    const regions = this.regionsOf[node]!;
    regions.splice(regions.indexOf(right), 1);
  }

  /** Regions in key order. */
  inOrder(): number[] {
    const isAfter = new Set(this.next);
    const order: number[] = [];
    for (const regions of this.regionsOf) {
      for (const first of regions) {
        if (isAfter.has(first)) continue;
        for (let region = first; region >= 0; region = this.next[region]!) order.push(region);
      }
    }
    return order;
  }

  /** Counts a share of a region's load where it will be, while the region itself stays whole. */
  reckon(region: number, share: number, to: number): void {
    const from = this.node[region]!;
    for (const dimension of ['cpu', 'io'] as const) {
      const total = this.total[dimension];
      const load = this.load[dimension][region]! * share;
      total[from] = total[from]! - load / this.capacity[from]!;
      total[to] = total[to]! + load / this.capacity[to]!;
    }
  }

  /** Load that the region would add to a node. */
  loadOn(region: number, dimension: Dimension, node: number): number {
    return this.load[dimension][region]! / this.capacity[node]!;
  }

  /** eq. 3 */
  deviation(node: number): number {
    return Math.max(this.total.cpu[node]!, this.total.io[node]!) - 1;
  }

  /** eq. 4: the imbalance degree. */
  imbalance(): number {
    let most = -Infinity;
    for (let node = 0; node < this.nodeCount; node++) most = Math.max(most, this.deviation(node));
    return most;
  }

  /** Largest over mean load of a dimension. */
  maxOverMean(dimension: Dimension): number {
    return Math.max(...this.total[dimension]);
  }

  /** The node with the lowest of `loads` that the region may be on; its own when there is no other. */
  lowestFor(region: number, loads: Float64Array): number {
    let best = this.node[region]!;
    for (let node = 0; node < loads.length; node++) {
      if (loads[node]! < loads[best]! && this.allows(region, node)) best = node;
    }
    return best;
  }

  /** Whether some regions may not go to some nodes. */
  get isRestricted(): boolean {
    return this.#allows !== undefined;
  }

  allows(region: number, node: number): boolean {
    return this.#allows === undefined || this.#allows(region, node);
  }

  /** Regions of a node, the one with the highest load first. */
  sorted(node: number, dimension: Dimension): number[] {
    const load = this.load[dimension];
    return [...this.regionsOf[node]!].sort((a, b) => load[b]! - load[a]! || a - b);
  }
}

export function otherThan(dimension: Dimension): Dimension {
  return dimension === 'cpu' ? 'io' : 'cpu';
}

function meanOf(loads: Float64Array, nodes: number): number {
  let sum = 0;
  for (const load of loads) sum += load;
  // Without any load every node has the mean. A load so small that its mean rounds to 0, or that no longer divides, is none.
  const mean = sum / nodes;
  return mean > Number.MIN_VALUE / Number.EPSILON ? mean : 1;
}
