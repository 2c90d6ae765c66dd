// W-MIX: the hotness of Mixgraph on eight nodes, as Libra's section V-A has it. Operations fall on 256 ranges of keys,
// each of four regions; the bytes of an operation differ from region to region, so that processor and I/O load do not
// go together.

import type { RangeModel } from '../../../control/ranges/range-state.ts';
import { Chance } from '../sim/chance.ts';

export interface MixOptions {
  nodes?: number;
  ranges?: number;
  /** Standard deviation of the logarithm of bytes an operation. */
  bytesSigma?: number;
  workload?: RangeWorkload;
}

/** Operations, and the cost of each. */
export interface RangeWorkload {
  name: string;
  /** Shares of all operations. */
  reads: number;
  writes: number;
  scans: number;
  hotness: 'mixgraph' | 'zipf' | 'latest';
}

const writeOnly: RangeWorkload = {
  name: 'writes',
  reads: 0,
  writes: 1,
  scans: 0,
  hotness: 'mixgraph',
};

/** Operations a second of each kind, and mean bytes of an operation, by region. */
interface RegionTraffic {
  model: RangeModel;
  reads: Float64Array;
  writes: Float64Array;
  scans: Float64Array;
}

// Density of Libra, section V-A, with x from 1: then the sum is 1.006.
const density = (x: number): number =>
  14.18 * Math.exp(-2.917 * x) + 0.0164 * Math.exp(-0.08082 * x);
const regionsOfRange = 4;
/** Processor time of an operation, in that of a read; a write as measured in section IV-A. */
const cpuOf = { read: 1, write: 1.63, scanRow: 0.14 };
/**
 * Processor time of a row's bytes in a scan, for a value of the median size: 220 B by W-MIX, a microsecond a kB and 20 for a
 * read, as in LB-IV-mapping. An operation on one value costs the same whatever its size, as W-MIX and Libra's mapping have it.
 */
const cpuOfScannedBytes = 0.011;
const rowsOfScan = 50;
/** W-MIX cuts values at 10,240 B; in terms of the median size. */
const largestValue = 10_240 / 220;
/** Bytes of I/O an operation, in the value's bytes: three copies and compaction; misses of the cache. */
const ioOf = { read: 1, write: 9, scan: rowsOfScan };

/** The same seed gives the same cluster; `draw` draws the noise of a window of measurement, of `noise` by region. */
export function mixgraph(seed: number, options: MixOptions = {}): RegionTraffic {
  const { nodes = 8, ranges = 32 * nodes, bytesSigma = 1.8, workload = writeOnly } = options;
  const chance = new Chance(seed);
  const weights = weightsOf(ranges, workload.hotness, chance);
  const parts: number[] = [];
  for (const weight of weights) {
    const inner = Array.from(
      { length: regionsOfRange },
      (_, j) => (j + 1) ** -0.65 * chance.uniform(0.5, 1.5),
    );
    const sum = inner.reduce((a, b) => a + b, 0);
    for (const each of inner) parts.push((weight * each) / sum);
  }
  // Size-based splits of the past: no region has more than a node's mean.
  const total = parts.reduce((a, b) => a + b, 0);
  const operations: number[] = [];
  const sizes: number[] = [];
  for (const part of parts) {
    // The parts of a region hold the same kind of values.
    const size = chance.lognormal(0, bytesSigma);
    const halves = 2 ** Math.max(0, Math.ceil(Math.log2((part / total) * nodes)));
    for (let i = 0; i < halves; i++) {
      operations.push(part / halves / total);
      sizes.push(size);
    }
  }
  const count = operations.length;
  const traffic: RegionTraffic = {
    model: {
      capacity: new Float64Array(nodes).fill(1),
      node: equalCounts(count, nodes, chance),
      cpu: new Float64Array(count),
      io: new Float64Array(count),
      bytes: new Float64Array(count),
      order: Uint32Array.from({ length: count }, (_, i) => i),
    },
    reads: new Float64Array(count),
    writes: new Float64Array(count),
    scans: new Float64Array(count),
  };
  const { cpu, io, bytes } = traffic.model;
  for (let i = 0; i < count; i++) {
    const rate = operations[i]!;
    const size = sizes[i]!;
    traffic.reads[i] = rate * workload.reads;
    traffic.writes[i] = rate * workload.writes;
    traffic.scans[i] = rate * workload.scans;
    cpu[i] =
      traffic.reads[i]! * cpuOf.read +
      traffic.writes[i]! * cpuOf.write +
      traffic.scans[i]! * scanCpu(size);
    // Hot regions are in memory: reads of them miss less often.
    const missed = 1 / (1 + rate * count);
    io[i] =
      size *
      (missed * (traffic.reads[i]! * ioOf.read + traffic.scans[i]! * ioOf.scan) +
        traffic.writes[i]! * ioOf.write);
    bytes[i] = 96e6 * chance.uniform(0.5, 1);
  }
  return traffic;
}

/** A seek, as in a read, and the rows, whose values are of this size in terms of the median. */
function scanCpu(size: number): number {
  return (
    cpuOf.read + rowsOfScan * (cpuOf.scanRow + cpuOfScannedBytes * Math.min(size, largestValue))
  );
}

/** Loads as another window of measurement finds them: each region's differ by a relative normal error. */
export function measured(model: RangeModel, seed: number, noise: number): RangeModel {
  const chance = new Chance(seed);
  const draw = (loads: Float64Array): Float64Array =>
    loads.map((load) => load * Math.max(0, chance.normal(1, noise)));
  return { ...model, cpu: draw(model.cpu), io: draw(model.io) };
}

function weightsOf(ranges: number, hotness: RangeWorkload['hotness'], chance: Chance): number[] {
  if (hotness === 'mixgraph') {
    const weights = Array.from({ length: ranges }, (_, x) => density(x + 1));
    return weights;
  }
  if (hotness === 'latest') {
    return Array.from({ length: ranges }, (_, i) => (ranges - i) ** -0.99);
  }
  // YCSB spreads its keys by a hash: hot spots are single keys, each in some range.
  const keys = ranges * 1000;
  const weights = Array.from({ length: ranges }, () => 0);
  for (let rank = 0; rank < 20_000; rank++) {
    const range = chance.below(ranges);
    weights[range] = weights[range]! + (rank + 1) ** -0.99;
  }
  const rest = (keys ** 0.01 - 20_000 ** 0.01) / 0.01 / ranges;
  return weights.map((weight) => weight + rest);
}

function equalCounts(count: number, nodes: number, chance: Chance): Uint32Array {
  const node = Uint32Array.from({ length: count }, (_, i) => i % nodes);
  for (let i = count - 1; i > 0; i--) {
    const j = chance.below(i + 1);
    const swapped = node[i]!;
    node[i] = node[j]!;
    node[j] = swapped;
  }
  return node;
}
