// node large-cluster.js NODES REPLICAS: plans the daily run on a cluster of that size in this process, and prints how long
// it took and how much memory the process had at most, as JSON. 1,440 minutes of four dimensions, rows of their own
// for the leader and the followers of each partition.

import { fileURLToPath } from 'node:url';
import { dimensions } from '../../../request-units/pru.ts';
import { peakMover } from '../../../control/scheduler/baselines.ts';
import { ClusterBuilder } from '../../../control/scheduler/cluster-builder.ts';
import type { ClusterModel } from '../../../control/scheduler/cluster-model.ts';
import type { Policy } from '../../../control/scheduler/proposal.ts';
import { Chance } from '../../../control/scheduler/simulation/chance.ts';
import { dailyCycle } from '../../../control/scheduler/xstor/daily-cycle.ts';
import { usualParameters } from '../../../control/scheduler/xstor/parameters.ts';

export interface Planned {
  nodes: number;
  replicas: number;
  /** Seconds of a run of each policy, and of making the model. */
  seconds: number;
  baselineSeconds: number;
  modelSeconds: number;
  steps: number;
  mostMegabytes: number;
}

const minutes = 1440;
const podsOfSubcluster = 27;
const copies = 3;
const hotShare = 0.15;

function largeCluster(nodes: number, replicas: number): ClusterModel {
  const chance = new Chance(1);
  const partitions = Math.floor(replicas / copies);
  const builder = new ClusterBuilder(
    { dimensions, points: minutes, pointSeconds: 60 },
    partitions * 2,
  );
  const subclusters = Math.max(1, Math.floor(nodes / podsOfSubcluster));
  const members = Array.from({ length: subclusters }, (): number[] => []);
  // A pod bears three fifths of its limit when it has its part of the load.
  const limit = (partitions / nodes) * 2.4 * Math.exp(0.5) * 2;
  for (let node = 0; node < nodes; node++) {
    const subcluster = node % subclusters;
    builder.node({ id: `node${node}`, zone: `zone${Math.floor(node / subclusters) % copies}` });
    const limits = dimensions.map((_, dimension) => limit * (1 + dimension));
    members[subcluster]!.push(builder.pod({ id: `pod${node}`, node, subcluster, limits }));
  }
  const tables = Array.from({ length: 500 }, (_, i) => builder.table(`table${i}`));
  const row = new Float32Array(dimensions.length * minutes);
  const fill = (scale: number, amplitude: number, phase: number): number => {
    for (let i = 0; i < row.length; i++) {
      const wave = 1 + amplitude * Math.sin((2 * Math.PI * (i % minutes)) / minutes + phase);
      row[i] = scale * (wave + 0.16 * (chance.next() - 0.5));
    }
    return builder.row(row);
  };
  for (let number = 0; number < partitions; number++) {
    const pods = members[chance.below(subclusters)]!;
    const chosen = threeOf(pods, chance);
    if (chance.happens(hotShare) && !chosen.includes(pods[0]!)) chosen[0] = pods[0]!;
    const [scale, amplitude] = [chance.lognormal(0, 1), chance.uniform(0, 0.5)];
    const phase = chance.uniform(0, 2 * Math.PI);
    builder.partition({
      id: `p${number}`,
      table: chance.pick(tables),
      bytes: 2 ** 30,
      leader: { row: fill(scale, amplitude, phase) },
      follower: { row: fill(scale * chance.uniform(0.1, 0.6), amplitude, phase) },
    });
    chosen.forEach((pod, i) => builder.replica(number, pod, i === 0));
  }
  return builder.build();
}

function threeOf(pods: readonly number[], chance: Chance): number[] {
  const chosen = new Set<number>();
  while (chosen.size < copies) chosen.add(chance.pick(pods));
  return [...chosen];
}

function run(nodes: number, replicas: number): Planned {
  const timed = <T>(work: () => T): [T, number] => {
    const startedAt = performance.now();
    const result = work();
    return [result, (performance.now() - startedAt) / 1000];
  };
  const [model, modelSeconds] = timed(() => largeCluster(nodes, replicas));
  const environment = { now: 0, rng: new Chance(1) };
  const plan = (policy: Policy) => timed(() => policy.plan(model, environment));
  const [proposals, seconds] = plan(dailyCycle());
  const moves = Math.floor(replicas * usualParameters.movedShare);
  const [, baselineSeconds] = plan(peakMover(moves, usualParameters.thresholdShare));
  const mostMegabytes = process.resourceUsage().maxRSS / 1024;
  const steps = proposals.length;
  return { nodes, replicas, seconds, baselineSeconds, modelSeconds, steps, mostMegabytes };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [nodes, replicas] = process.argv.slice(2).map(Number) as [number, number];
  console.log(JSON.stringify(run(nodes, replicas)));
}
