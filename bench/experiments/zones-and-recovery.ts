import {
  defaultRebuildLimits,
  rebuild,
  type RebuildJob,
  type RebuildLimits,
  type RebuildStart,
  startRebuilds,
} from '../../control/scheduler/abase/recovery.ts';
import { placeInZones } from '../../control/scheduler/abase/zone-placement.ts';
import { ClusterBuilder } from '../../control/scheduler/cluster-builder.ts';
import type { ClusterModel } from '../../control/scheduler/cluster-model.ts';
import { brokenLimits } from '../../control/scheduler/hard-limits.ts';
import { carriedOut, WorkingCluster } from '../../control/scheduler/working-cluster.ts';
import { mean } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';
import { Chance } from './sim/chance.ts';

function pool(nodes: number, zones: number): ClusterBuilder {
  const builder = new ClusterBuilder({
    dimensions: ['ru', 'storage'],
    points: 1,
    pointSeconds: 3600,
  });
  for (let node = 0; node < nodes; node++) {
    builder.node({ id: `n${node}`, zone: `z${node % zones}`, pool: 'p' });
    builder.pod({ id: `n${node}`, node, limits: [1000, 1000] });
  }
  return builder;
}

interface Placed {
  /** Per cent of the partitions that keep a majority when the worst zone is lost. */
  quorum: number;
  /** Partitions with two replicas on a node. */
  doubled: number;
  /** Largest difference between nodes in the number of a tenant's replicas. */
  spread: number;
}

type Place = (tenant: number, count: number) => number[][];

function judgePlacement(
  zones: number,
  nodes: number,
  sizes: readonly number[],
  place: Place,
): Placed {
  const lost = Array.from({ length: zones }, () => 0);
  let [partitions, doubled, spread] = [0, 0, 0];
  sizes.forEach((count, tenant) => {
    const counts = Array.from({ length: nodes }, () => 0);
    for (const pods of place(tenant, count)) {
      partitions++;
      if (new Set(pods).size < pods.length) doubled++;
      for (const pod of pods) counts[pod]!++;
      for (let zone = 0; zone < zones; zone++) {
        if (pods.filter((pod) => pod % zones === zone).length >= 2) lost[zone]!++;
      }
    }
    spread = Math.max(spread, Math.max(...counts) - Math.min(...counts));
  });
  return { quorum: 100 * (1 - Math.max(...lost) / partitions), doubled, spread };
}

export const zonePlacement: Experiment = {
  id: 'AB-3-pool',
  title: 'Replicas in zones of their own, tenants spread over a pool',
  kind: 'SIM',
  source: 'ABase, section 3; the paper has no figure',
  setup:
    '200 tenants with 1 to 256 partitions of 3 replicas, in a pool of 60 nodes in 3 zones, and of 5. Without: three nodes drawn ' +
    'at random. Requests, quotas and queues of the live cluster follow the placement: they wait for it.',
  run({ seeds }) {
    const run = (seed: number, zones: number, isRandom: boolean): Placed => {
      const chance = new Chance(seed);
      const sizes = Array.from({ length: 200 }, () => 2 ** chance.below(9));
      const cluster = new WorkingCluster(pool(60, zones).build());
      const pods = Array.from({ length: 60 }, (_, pod) => pod);
      return judgePlacement(zones, 60, sizes, (_, count) =>
        isRandom
          ? Array.from({ length: count }, () => [0, 1, 2].map(() => chance.below(60)))
          : placeInZones(cluster, pods, { count, copies: 3 }),
      );
    };
    const measures = [3, 5].flatMap((zones) => {
      const ours = seeds.map((seed) => run(seed, zones, false));
      const random = seeds.map((seed) => run(seed, zones, true));
      const of = (runs: readonly Placed[], figure: keyof Placed): number[] =>
        runs.map((one) => one[figure]);
      return [
        overSeeds(
          of(ours, 'quorum'),
          {
            metric: `${zones} zones: partitions with a majority after the loss of any zone, %`,
            threshold: 100,
            better: 'higher',
          },
          of(random, 'quorum'),
        ),
        overSeeds(
          of(ours, 'doubled'),
          {
            metric: `${zones} zones: partitions with two replicas on a node`,
            threshold: 0,
            better: 'lower',
          },
          of(random, 'doubled'),
        ),
        overSeeds(
          of(ours, 'spread'),
          {
            metric: `${zones} zones: largest difference of a tenant's counts`,
            threshold: 1,
            better: 'lower',
          },
          of(random, 'spread'),
        ),
      ];
    });
    const line = (isRandom: boolean): Line => ({
      label: 'majority kept, %',
      points: [3, 4, 5, 6].map((zones) => [zones, run(seeds[0]!, zones, isRandom).quorum] as const),
    });
    return {
      measures,
      xLabel: 'zones',
      yLabel: '%',
      before: { title: 'at random', lines: [line(true)] },
      after: { title: 'in zones', lines: [line(false)] },
    };
  },
};

const survivors = 26;
const use = 0.7;

/** 27 nodes used at 70 % each in both resources, with 40 partitions of three replicas a node. */
function subcluster(seed: number): ClusterModel {
  const chance = new Chance(seed);
  const [nodes, partitions] = [survivors + 1, 27 * 40];
  const builder = pool(nodes, 1);
  builder.table('t', 't');
  // Replicas of a partition are alike: the reads are spread over them.
  const each = (use * 1000 * nodes) / (partitions * 3);
  let steps: number[] = [];
  for (let partition = 0; partition < partitions; partition++) {
    const row = builder.row([each, each]);
    const load = { leader: { row }, follower: { row } };
    builder.partition({ id: `${partition}`, table: 0, bytes: 1e9, ...load });
    // Each 27 partitions give each node a leader and two followers, at distances drawn at random.
    if (partition % nodes === 0) {
      const distances = new Set([0]);
      while (distances.size < 3) distances.add(chance.below(nodes));
      steps = [...distances];
    }
    steps.forEach((step, copy) =>
      builder.replica(partition, (partition + step) % nodes, copy === 0),
    );
  }
  return builder.build();
}

/**
 * Seconds until all jobs are done. A disk has 1 GB/s, which the copies that it reads and writes share; a copy is as fast
 * as the slower of its two ends.
 */
function rebuildSeconds(jobs: readonly RebuildJob[], limits: RebuildLimits): number {
  const waiting = new Set(jobs);
  let active: (RebuildStart & { left: number })[] = [];
  let seconds = 0;
  while (waiting.size > 0 || active.length > 0) {
    for (const start of startRebuilds([...waiting], active, limits)) {
      waiting.delete(start.job);
      active.push({ ...start, left: 1 });
    }
    const busy = new Map<number, number>();
    for (const { fromPod, job } of active) {
      for (const pod of [fromPod, job.toPod]) busy.set(pod, (busy.get(pod) ?? 0) + 1);
    }
    const rates = active.map(
      ({ fromPod, job }) => 1 / Math.max(busy.get(fromPod)!, busy.get(job.toPod)!),
    );
    const step = Math.min(...active.map(({ left }, i) => left / rates[i]!));
    seconds += step;
    active.forEach((one, i) => {
      one.left -= rates[i]! * step;
    });
    active = active.filter(({ left }) => left > 1e-9);
  }
  return seconds;
}

function useOfPods(cluster: WorkingCluster): number[] {
  return Array.from(
    { length: survivors + 1 },
    (_, pod) => cluster.podLoad[cluster.podSeries(pod, 0)]! / 1000,
  );
}

/** Each job with a disk drawn from those of other nodes that have no replica of its partition. */
function rebuiltAtRandom(
  start: WorkingCluster,
  jobs: readonly RebuildJob[],
  lostNode: number,
  chance: Chance,
): RebuildJob[] {
  return jobs.map((job) => {
    const free = Array.from({ length: survivors + 1 }, (_, pod) => pod).filter(
      (pod) => pod !== lostNode && !start.holdsPartition(pod, job.partition),
    );
    return { ...job, toPod: free[chance.below(free.length)]! };
  });
}

/** Use of the pods when each job has added its replica, which has as much load as another one of its partition. */
function useAfter(start: WorkingCluster, jobs: readonly RebuildJob[], lostNode: number): number[] {
  const used = useOfPods(start);
  used[lostNode] = 0;
  for (const { partition, toPod } of jobs) {
    const [replica] = start.replicasOfPartition[partition]!;
    used[toPod]! += start.replicaLoad(replica!, 0, 0) / 1000;
  }
  return used;
}

export const parallelRebuild: Experiment = {
  id: 'AB-3.3-recovery',
  title: 'A lost node is rebuilt by all the others',
  kind: 'SIM',
  source: 'ABase, section 3.3',
  setup:
    'A subcluster of 27 nodes used at 70 %, of which one is lost. Each of its 120 replicas of 1 GB is rebuilt on another node, ' +
    'at most one into and one out of a disk at a time; without, all on one spare node, one after the other. Beside it: each on ' +
    'a node at random that has no replica of the partition, and none rebuilt. Latency goes by 1 / (1 - use) of the node that is ' +
    'used most.',
  run({ seeds }) {
    const runs = seeds.map((seed) => {
      const model = subcluster(seed);
      const lostNode = new Chance(seed).below(survivors + 1);
      const plan = rebuild(new Set([lostNode])).plan(model, { now: 0, rng: new Chance(seed) });
      const start = carriedOut(model, []);
      const after = carriedOut(model, plan);
      const jobs = plan.flatMap(({ change }): RebuildJob[] =>
        change.kind === 'add-replica'
          ? [
              {
                partition: change.partition,
                sources: start.replicasOfPartition[change.partition]!.map(
                  (replica) => start.podOf[replica]!,
                ).filter((pod) => pod !== lostNode),
                toPod: change.pod,
              },
            ]
          : [],
      );
      const onSpare = jobs.map((job) => ({ ...job, toPod: survivors + 1 }));
      const atRandom = rebuiltAtRandom(start, jobs, lostNode, new Chance(seed));
      const used = useOfPods(after);
      const highest = Math.max(...used);
      const seconds = rebuildSeconds(jobs, defaultRebuildLimits);
      return {
        used,
        broken: brokenLimits(after).length,
        highest: 100 * highest,
        faster: rebuildSeconds(onSpare, defaultRebuildLimits) / seconds,
        fasterThanRandom: rebuildSeconds(atRandom, defaultRebuildLimits) / seconds,
        highestAtRandom: 100 * Math.max(...useAfter(start, atRandom, lostNode)),
        latency: (1 - use) / (1 - highest),
        missing: after.replicasOfPartition.filter((replicas) => replicas.length < 3).length,
        missingWithout: jobs.length,
      };
    });
    return {
      measures: [
        overSeeds(
          runs.map(({ highest }) => highest),
          {
            metric: 'use of the fullest survivor, %',
            threshold: 100 * use * (1 + 1 / survivors) + 2,
            better: 'lower',
            paper: '1/N more',
          },
        ),
        overSeeds(
          runs.map(({ faster }) => faster),
          {
            metric: 'times faster than onto one spare node',
            threshold: (0.8 * survivors) / 2,
            better: 'higher',
          },
          runs.map(() => 1),
        ),
        overSeeds(
          runs.map(({ latency }) => latency),
          { metric: 'p99 of tenants meanwhile, times', threshold: 1.2, better: 'lower' },
          // A cluster of three nodes for one tenant: the two that are left have half as much more.
          runs.map(() => (1 - use / 1.5) / (1 - use)),
        ),
        overSeeds(
          runs.map((run) => run.highest),
          {
            metric: 'use of the fullest survivor, %, beside nodes at random',
            threshold: mean(runs.map((run) => run.highestAtRandom)),
            better: 'lower',
          },
          runs.map((run) => run.highestAtRandom),
        ),
        overSeeds(
          runs.map((run) => run.fasterThanRandom),
          { metric: 'times faster than onto nodes at random', threshold: 1, better: 'higher' },
          runs.map(() => 1),
        ),
        overSeeds(
          runs.map((run) => run.missing),
          {
            metric: 'partitions with fewer than three replicas afterwards, beside nothing done',
            threshold: 0,
            better: 'lower',
          },
          runs.map((run) => run.missingWithout),
        ),
        overSeeds(
          runs.map(({ broken }) => broken),
          { metric: 'limits broken afterwards', threshold: 0, better: 'lower' },
        ),
      ],
      xLabel: 'node',
      yLabel: 'use, %',
      before: {
        title: 'before',
        lines: [
          { label: 'use', points: runs[0]!.used.map((_, node) => [node, 100 * use] as const) },
        ],
      },
      after: {
        title: 'after the loss of one',
        lines: [
          {
            label: 'use',
            points: runs[0]!.used.map((value, node) => [node, 100 * value] as const),
          },
        ],
      },
    };
  },
};
