// After the failure of nodes (ABase, section 3.3) each lost replica is rebuilt on another node, from another source, so
// that the disks of all nodes share the work, and the load of a lost node is spread over all that are left.

import { refusalOf } from '../hard-limits.ts';
import type { Policy, Proposal } from '../proposal.ts';
import { WorkingCluster } from '../working-cluster.ts';
import { PoolLoad, podsOfPools } from './load.ts';
import { defaultRescheduling } from './rescheduling.ts';

/** Leaders move at once; rebuilt replicas follow, those of partitions with fewest copies left first. */
export function rebuild(failedNodes: ReadonlySet<number>): Policy {
  return {
    name: 'parallel rebuild',
    plan(model) {
      const cluster = new WorkingCluster(model);
      const pools = podsOfPools(model);
      const poolOfPod = new Map(pools.flatMap((pods, pool) => pods.map((pod) => [pod, pool])));
      const loads = pools.map((pods) => {
        const alive = pods.filter((pod) => !failedNodes.has(cluster.nodeOfPod[pod]!));
        return new PoolLoad(cluster, alive);
      });
      const lost = cluster.podOf.flatMap((pod, replica) =>
        failedNodes.has(cluster.nodeOfPod[pod]!) ? [replica] : [],
      );
      const left = (replica: number): number =>
        cluster.replicasOfPartition[cluster.partitionOf[replica]!]!.filter(
          (other) => !failedNodes.has(cluster.nodeOfPod[cluster.podOf[other]!]!),
        ).length;
      const inOrder = lost
        .map((replica) => ({
          replica,
          left: left(replica),
          load: loads[poolOfPod.get(cluster.podOf[replica]!)!]!,
        }))
        // With no copy left there is nothing to rebuild from: that takes a backup.
        .filter((one) => one.left > 0)
        .sort((a, b) => a.left - b.left);
      return [
        ...inOrder.flatMap(({ replica, load }) => newLeader(cluster, load, replica, failedNodes)),
        ...inOrder.flatMap(({ replica, load }) => rebuilt(cluster, load, replica)),
      ];
    },
  };
}

function useOf(load: PoolLoad, pod: number, series?: Float64Array): number {
  return Math.max(...load.dimensions.map((of) => load.utilization(pod, of, series)));
}

function newLeader(
  cluster: WorkingCluster,
  load: PoolLoad,
  from: number,
  failedNodes: ReadonlySet<number>,
): Proposal[] {
  if (!cluster.isLeader[from]) return [];
  const { model, partitionOf, podOf, nodeOfPod } = cluster;
  const partition = partitionOf[from]!;
  const [to] = cluster.replicasOfPartition[partition]!.filter(
    (other) => model.replicas.isHealthy[other] === 1 && !failedNodes.has(nodeOfPod[podOf[other]!]!),
  ).sort((a, b) => useOf(load, podOf[a]!) - useOf(load, podOf[b]!));
  if (to === undefined) return [];
  const change = { kind: 'transfer-leader', partition, from, to } as const;
  cluster.apply(change);
  return [
    {
      change,
      reason: `the node of ${model.partitions.ids[partition]}'s leader has failed`,
      figures: [],
      cost: { bytes: 0, replicas: 0 },
    },
  ];
}

/**
 * Places the replica on the node with the lowest resulting use, among those that no limit forbids. No proposal when
 * all are forbidden.
 */
function rebuilt(cluster: WorkingCluster, load: PoolLoad, replica: number): Proposal[] {
  const { model } = cluster;
  const series = new Float64Array(cluster.dimensionCount * cluster.points);
  load.seriesOf(replica, series);
  let best: { pod: number; use: number } | undefined;
  for (const pod of load.pods) {
    const use = useOf(load, pod, series);
    if (best !== undefined && use >= best.use) continue;
    if (refusalOf(cluster, replica, pod, defaultRescheduling.limits) !== undefined) continue;
    best = { pod, use };
  }
  if (best === undefined) return [];
  const partition = cluster.partitionOf[replica]!;
  const before = useOf(load, best.pod);
  const remove = { kind: 'remove-replica', replica } as const;
  const add = { kind: 'add-replica', partition, pod: best.pod } as const;
  const name = model.pods.ids[best.pod]!;
  const reason = `a replica of ${model.partitions.ids[partition]} was lost with its node, and ${name} is used least`;
  cluster.apply(remove);
  cluster.apply(add);
  const bytes = cluster.partitionBytes[partition]!;
  return [
    { change: remove, reason, figures: [], cost: { bytes: 0, replicas: 0 } },
    {
      change: add,
      reason,
      figures: [{ name: `use of ${name}, %`, before: 100 * before, after: 100 * best.use }],
      cost: { bytes, replicas: 1 },
    },
  ];
}

export interface RebuildJob {
  partition: number;
  /** Pods with a copy to read from. */
  sources: readonly number[];
  toPod: number;
}

export interface RebuildStart {
  job: RebuildJob;
  fromPod: number;
}

export interface RebuildLimits {
  /** Limits of concurrent rebuilds of one disk: as the target (inbound), and as a source (outbound). */
  inbound: number;
  outbound: number;
}

/**
 * One in each direction. A disk that serves two copies while it receives one slows down all three, and the disks at their
 * other ends wait.
 */
export const defaultRebuildLimits: RebuildLimits = { inbound: 1, outbound: 1 };

/**
 * Which of the jobs to start now, and from where, so that as many disks as possible are busy: a job takes the source with
 * the fewest copies under way, and a job of the same call gives its source up where it can read from another one.
 */
export function startRebuilds(
  jobs: readonly RebuildJob[],
  active: readonly RebuildStart[],
  { inbound, outbound }: RebuildLimits,
): RebuildStart[] {
  const into = new Map<number, number>();
  const backlog = new Map<number, number>();
  for (const { job } of active) add(into, job.toPod);
  for (const { toPod } of jobs) add(backlog, toPod);
  const readers = new Readers(active, backlog);
  // The last copies of data come first, then the disks with most ahead of them: these take longest.
  const waiting = new Set(
    [...jobs].sort(
      (a, b) =>
        a.sources.length - b.sources.length || backlog.get(b.toPod)! - backlog.get(a.toPod)!,
    ),
  );
  // Every disk reads for one job before any reads for two: copies share a disk's throughput.
  for (let level = 1; level <= outbound; level++) {
    for (const job of waiting) {
      if ((into.get(job.toPod) ?? 0) >= inbound || !readers.find(job, level)) continue;
      add(into, job.toPod);
      waiting.delete(job);
    }
  }
  return readers.starts();
}

function add(counts: Map<number, number>, pod: number, more = 1): void {
  counts.set(pod, (counts.get(pod) ?? 0) + more);
}

/** Which disk each new job reads from. */
class Readers {
  /** Copies that a disk is read for. */
  readonly #out = new Map<number, number>();
  readonly #backlog: ReadonlyMap<number, number>;
  readonly #sourceOf = new Map<RebuildJob, number>();

  /** `backlog` counts the jobs that are to be written to each disk. */
  constructor(active: readonly RebuildStart[], backlog: ReadonlyMap<number, number>) {
    this.#backlog = backlog;
    for (const { fromPod } of active) add(this.#out, fromPod);
  }

  /** A source for the job that then reads for at most `level` copies; false when there is none. */
  find(job: RebuildJob, level: number, asked = new Set<number>()): boolean {
    const busy = (pod: number): number => this.#out.get(pod) ?? 0;
    const ahead = (pod: number): number => this.#backlog.get(pod) ?? 0;
    const sources = [...job.sources].sort((a, b) => busy(a) - busy(b) || ahead(a) - ahead(b));
    for (const pod of sources) {
      if (asked.has(pod)) continue;
      asked.add(pod);
      if (busy(pod) >= level && !this.#freed(pod, level, asked)) continue;
      this.#sourceOf.set(job, pod);
      add(this.#out, pod);
      return true;
    }
    return false;
  }

  /** Another job that was to read from the disk reads elsewhere. */
  #freed(pod: number, level: number, asked: Set<number>): boolean {
    for (const [job, source] of this.#sourceOf) {
      if (source !== pod) continue;
      add(this.#out, pod, -1);
      if (this.find(job, level, asked)) return true;
      add(this.#out, pod);
    }
    return false;
  }

  starts(): RebuildStart[] {
    return [...this.#sourceOf].map(([job, fromPod]) => ({ job, fromPod }));
  }
}
