// Libra: the processor load of single regions from their counters.

import { calibratedFactor, regionCpu, regionIo } from '../../control/ranges/load-mapping.ts';
import type { Experiment, Line } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';
import { Chance } from './sim/chance.ts';

/** Processor time of a read and of a write of so many bytes, in microseconds. */
const readUs = 20;
const writeFactor = 1.63;
const usOfKilobyte = 1;
/** The factor of a write falls by so much from an idle node to a busy one: batches grow. */
const drift = 0.1;
const replication = 3;

interface Region {
  reads: number;
  writes: number;
  valueBytes: number;
  cacheHits: number;
}

function timeOf(chance: Chance, isWrite: boolean, { valueBytes }: Region, busy: number): number {
  const factor = isWrite ? writeFactor * (1 + drift / 2 - drift * busy) : 1;
  const size = (usOfKilobyte * valueBytes) / 1000;
  return (readUs * factor + size) * chance.lognormal(0, 0.5);
}

/** Processor time of all of a region's operations in a heartbeat of ten seconds. */
function truth(chance: Chance, region: Region, busy: number): number {
  let total = 0;
  for (let i = 0; i < region.reads * 10; i++) total += timeOf(chance, false, region, busy);
  for (let i = 0; i < region.writes * 10; i++) total += timeOf(chance, true, region, busy);
  return total;
}

function drawRegions(chance: Chance, count: number): Region[] {
  return Array.from({ length: count }, () => {
    const operations = 2000 * chance.lognormal(0, 0.8);
    const writes = chance.uniform(0, 1);
    const valueBytes = Math.min(10_240, 250 * chance.lognormal(0, 1));
    const cacheHits = chance.uniform(0, 1);
    return { reads: operations * (1 - writes), writes: operations * writes, valueBytes, cacheHits };
  });
}

/** Mean error of the regions of a node, %; `weight` estimates the share of a region. */
function errorOf(
  regions: readonly Region[],
  times: readonly number[],
  estimate: (nodeCpu: number) => readonly number[],
): number {
  const estimated = estimate(times.reduce((sum, time) => sum + time, 0));
  const errors = regions.map((_, i) => Math.abs(estimated[i]! / times[i]! - 1));
  return (100 * errors.reduce((sum, error) => sum + error, 0)) / regions.length;
}

const ratesOf = ({ reads, writes, valueBytes, cacheHits }: Region) => ({
  reads,
  writes,
  readBytes: reads * valueBytes,
  writtenBytes: writes * valueBytes,
  cacheHits,
});

export const rangeMapping: Experiment = {
  id: 'LB-IV-mapping',
  title: "A region's processor load from its reads and writes",
  kind: 'SIM',
  source: 'Libra, section IV-A',
  setup:
    'Nodes with 2 and with 20 regions of different mixes of reads and writes and sizes of values, for ten seconds each. An ' +
    'operation takes lognormal time, a write 1.63 times that of a read give or take 5 % by how busy the node is, and a ' +
    "microsecond for each kB of its value. A node knows its own processor time and each region's counts. Without: all operations " +
    'count alike. And the factor of a write, from a run of reads and one of writes. It waits for regions of a live server.',
  run({ seeds, quick, progress }) {
    const nodes = quick ? 5 : 20;
    const runs = seeds.map((seed) => {
      progress(`seed ${seed}`);
      const chance = new Chance(seed);
      const errors = [2, 20].map((count) => {
        let [mapped, alike, bytes] = [0, 0, 0];
        for (let node = 0; node < nodes; node++) {
          const regions = drawRegions(chance, count);
          const busy = chance.next();
          const times = regions.map((region) => truth(chance, region, busy));
          const rates = regions.map(ratesOf);
          mapped += errorOf(regions, times, (cpu) => regionCpu(cpu, rates)) / nodes;
          alike += errorOf(regions, times, (cpu) => regionCpu(cpu, rates, 1)) / nodes;
          const weights = rates.map((one) => regionIo(one, replication));
          const total = weights.reduce((sum, weight) => sum + weight, 0);
          bytes +=
            errorOf(regions, times, (cpu) => weights.map((of) => (cpu * of) / total)) / nodes;
        }
        return { mapped, alike, bytes };
      });
      const factors = Array.from({ length: 5 }, () => {
        const region = { reads: 1000, writes: 1000, valueBytes: 250, cacheHits: 0 };
        const of = (one: Region): { cpu: number; operations: number } => ({
          cpu: truth(chance, one, chance.next()),
          operations: 10_000,
        });
        return calibratedFactor(of({ ...region, writes: 0 }), of({ ...region, reads: 0 }));
      });
      const off = Math.max(...factors.map((factor) => Math.abs(factor / writeFactor - 1)));
      return { two: errors[0]!, twenty: errors[1]!, off: 100 * off };
    });
    const error = (of: 'two' | 'twenty', regions: number) =>
      overSeeds(
        runs.map((one) => one[of].mapped),
        {
          metric: `${regions} regions: mean error of a region's processor load, %`,
          threshold: 10,
          better: 'lower',
          paper: '< 10',
        },
        runs.map((one) => one[of].alike),
      );
    const line = (of: 'mapped' | 'alike'): Line => ({
      label: '20 regions',
      points: runs.map((one, i) => [i + 1, one.twenty[of]]),
    });
    const byBytes = runs.map(({ twenty }) => twenty.bytes);
    return {
      measures: [
        error('two', 2),
        error('twenty', 20),
        overSeeds(
          runs.map(({ twenty }) => twenty.mapped),
          {
            metric: '20 regions: the same, beside shares by bytes',
            threshold: byBytes.reduce((sum, one) => sum + one, 0) / byBytes.length,
            better: 'lower',
          },
          byBytes,
        ),
        overSeeds(
          runs.map(({ off }) => off),
          {
            metric: 'factor of a write by calibration, furthest of five runs off 1.63, %',
            threshold: 10,
            better: 'lower',
          },
        ),
      ],
      xLabel: 'seed',
      yLabel: 'mean error, %',
      before: { title: 'all operations alike', lines: [line('alike')] },
      after: { title: 'reads and writes', lines: [line('mapped')] },
    };
  },
};
