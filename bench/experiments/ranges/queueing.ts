// Latency of a cluster by its placement: an operation goes to a node in proportion to the load that the node has,
// waits for the processor and then for the disk, both with one server, first in, first out. Poisson arrivals,
// exponential times.

import type { RangeState } from '../../../control/ranges/range-state.ts';
import { Chance } from '../sim/chance.ts';

/**
 * Both dimensions have the same capacity on every node: the relative throughput of the busiest one.
 */
export function throughput(state: RangeState): number {
  return 1 / Math.max(state.maxOverMean('cpu'), state.maxOverMean('io'));
}

export interface Latency {
  mean: number;
  p99: number;
}

/**
 * At `rate`, relative to the capacity of perfectly balanced nodes. Times are in mean service times.
 */
export function latency(
  state: RangeState,
  rate: number,
  operations: number,
  seed: number,
): Latency {
  const chance = new Chance(seed);
  const times: number[] = [];
  const { nodeCount, total } = state;
  for (let node = 0; node < nodeCount; node++) {
    // Operations of a node follow its processor load; the rest of the difference is that they are larger.
    const count = Math.round((operations * total.cpu[node]!) / nodeCount);
    if (count === 0) continue;
    const cpuTime = 1;
    const ioTime = total.io[node]! / total.cpu[node]!;
    const arrivals = rate * total.cpu[node]!;
    let [cpuWait, ioWait, lastDone] = [0, 0, 0];
    for (let i = 0; i < count; i++) {
      const gap = chance.exponential(arrivals);
      const cpuService = chance.exponential(1 / cpuTime);
      const ioService = chance.exponential(1 / ioTime);
      cpuWait = Math.max(0, cpuWait - gap);
      const toIo = cpuWait + cpuService;
      // Time between two arrivals at the disk.
      const ioGap = gap + toIo - lastDone;
      ioWait = Math.max(0, ioWait - ioGap);
      times.push(toIo + ioWait + ioService);
      cpuWait += cpuService;
      ioWait += ioService;
      lastDone = toIo;
    }
  }
  times.sort((a, b) => a - b);
  return {
    mean: times.reduce((sum, time) => sum + time, 0) / times.length,
    p99: times[Math.floor(times.length * 0.99)]!,
  };
}
