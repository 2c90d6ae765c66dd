// The pods of rows on this node: one for each model or, in a cluster, one for each replica. Totals
// over all of them: memory, sizes, counts.

import { join, resolve } from 'node:path';
import type { MemoryUse } from '../../access/redis/server-facts.ts';
import type { TableModel } from '../../control/metadata/table-definition.ts';
import type { Engine } from '../../engines/engine.ts';
import { dropShadowTables } from '../../storage-node/backup/row-restore.ts';
import { isShadowTable } from '../../storage-node/backup/shadow.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import type { Pod } from '../../storage-node/pod.ts';
import { openPod } from '../../storage-node/pod-host.ts';
import type { TableRulesByNumber } from '../../storage-node/table-rules.ts';
import { makeDurableDirectory } from '../../universal-row/durable-names.ts';
import { systemClock, systemRng } from '../../universal-row/environment.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import type { ClusterRows } from './cluster-rows.ts';
import { createEngine } from '../../engines/create-engine.ts';
import { podIds } from './pod-ids.ts';
import type { PlanePodAdmission } from './plane-pod-admission.ts';
import type { PlaneReads } from './plane-reads.ts';
import type { PlaneSteps } from './plane-steps.ts';
import type { PlaneLog } from './plane-support.ts';
import type { RedisPlaneMeter } from './redis-metering.ts';
import type { NamedPod } from './redis-samples.ts';
import type { RedisTables } from './redis-tables.ts';

interface RedisPodsOptions {
  readonly live: LiveConfig;
  readonly tables: RedisTables;
  readonly meter: RedisPlaneMeter;
  readonly podAdmission: PlanePodAdmission;
  readonly steps: PlaneSteps;
  readonly reads: PlaneReads;
  readonly report: PlaneLog;
  readonly fatal: (error: unknown) => void;
  readonly beforeLargeEntry: () => void;
}

/**
 * Bytes that a server without rows counts as used, about as many as redis-server's own, so that a limit below it refuses
 * every write that needs memory, as tools and tests expect of `maxmemory 1`.
 */
const emptyServerBytes = 768 * 1024;

export class RedisPods {
  /** The single copy of each model's tables. Empty in a cluster, where `cluster` has the replicas. */
  readonly byModel = new Map<TableModel, Pod>();
  cluster: ClusterRows | undefined;
  readonly #options: RedisPodsOptions;
  readonly #rules: Readonly<Record<TableModel, TableRulesByNumber>>;
  #peakMemory = 0;

  constructor(options: RedisPodsOptions) {
    this.#options = options;
    const { tables } = options;
    this.#rules = { memory: tables.rulesOf('memory'), kv: tables.rulesOf('kv') };
  }

  /** Rules of the model's tables. */
  rulesOf(model: TableModel): TableRulesByNumber {
    return this.#rules[model];
  }

  /** All pods on this node. */
  local(): Iterable<Pod> {
    return this.cluster?.localPods() ?? this.byModel.values();
  }

  named(): Iterable<NamedPod> {
    return this.cluster?.named() ?? Array.from(this.byModel, ([model, pod]) => ({ model, pod }));
  }

  ofModel(model: TableModel): Pod {
    const pod = this.byModel.get(model);
    if (pod === undefined) throw new RangeError(`no pod of model ${model}`);
    return pod;
  }

  /** The pod of a table or partition. In a cluster, undefined if this node has no replica of it. */
  ofTable(number: number): Pod | undefined {
    if (this.cluster !== undefined) return this.cluster.podOf(number);
    return this.ofModel(this.#options.tables.modelOf(number));
  }

  mayWait(model: TableModel): boolean {
    return model !== 'memory' || this.ofModel(model).tasksMayWait;
  }

  // ---- opening

  newEngine(model: TableModel, directory: string): Promise<Engine> {
    const { live, reads } = this.#options;
    return createEngine(model, {
      directory,
      disk: realDisk,
      cacheBytes: live.get('kv.cache-bytes'),
      writeBufferBytes: live.get('kv.write-buffer-bytes'),
      readScheduler: reads.gateOf(model),
    });
  }

  /** Options shared by all pods of a model. */
  podOptions(model: TableModel) {
    const { live, meter, podAdmission, steps, beforeLargeEntry } = this.#options;
    return {
      checkpointBytes: live.get('wal.checkpoint-bytes'),
      maxMemoryBytes: this.#memoryLimit(model),
      tables: this.#rules[model],
      clock: systemClock,
      rng: systemRng,
      background: meter.backgroundOf(model),
      admission: podAdmission.controller,
      steps: steps.watch,
      beforeLargeEntry,
    };
  }

  /** Opens the pod for a model's tables, unless it is open, or a cluster has them. */
  async openModel(model: TableModel): Promise<void> {
    if (this.cluster !== undefined || this.byModel.has(model)) return;
    const { live, report, fatal } = this.#options;
    const directory = resolve(live.get('data-dir'), 'redis', model);
    makeDurableDirectory(realDisk, directory);
    const pod = await openPod({
      ...this.podOptions(model),
      engine: await this.newEngine(model, join(directory, 'data')),
      disk: realDisk,
      directory,
      podId: podIds[model],
      fsync: live.get('wal.fsync'),
      segmentBytes: live.get('wal.segment-bytes'),
      report,
      fatal,
      acceptLoss: live.get('wal.accept-loss') === 'yes',
      keepLogBytes: live.get('backup.keep-log-bytes'),
    });
    await dropShadowTables(pod);
    pod.start();
    this.byModel.set(model, pod);
    if (model === 'memory') this.setEviction();
  }

  /** Drops the leftovers of failed restores that another node led. */
  dropLeftovers(): void {
    for (const pod of this.local()) {
      if (pod.role !== 'leader' || !pod.heldTables().some(isShadowTable)) continue;
      dropShadowTables(pod).catch((error: unknown) => {
        this.#options.report('warn', 'what a restore has left is not deleted yet', { err: error });
      });
    }
  }

  // ---- live settings

  /** Expired rows stay while clients are paused. */
  keepExpired(isKept: boolean): void {
    for (const pod of this.local()) pod.keepExpired(isKept);
  }

  setFsync(): void {
    const policy = this.#options.live.get('wal.fsync');
    if (this.cluster !== undefined) this.cluster.setFsync(policy);
    else for (const pod of this.local()) pod.setFsync(policy);
  }

  /** Several pods share the memory limit. Each may use what the others leave. */
  setMemoryLimit(): void {
    const shares = this.#ofMemory();
    const used = shares.map((pod) => pod.engineStats().usedBytes);
    const total = used.reduce((sum, bytes) => sum + bytes, 0);
    for (const [i, pod] of shares.entries()) {
      pod.maxMemoryBytes = this.#memoryLimit('memory') - total + used[i]!;
    }
    for (const { model, pod } of this.named()) {
      if (model === 'kv') pod.maxMemoryBytes = this.#memoryLimit('kv');
    }
  }

  memoryLimitChanged(): void {
    this.setMemoryLimit();
    // Commands that come next go by it already.
    setImmediate(() => {
      for (const pod of this.#ofMemory()) pod.maintain();
    });
  }

  /** Only memory tables evict: those on disk have room. */
  setEviction(): void {
    const { live } = this.#options;
    const policy = live.get('memory.eviction-policy');
    for (const pod of this.#ofMemory()) {
      pod.setEviction(policy, live.get('memory.eviction-samples'));
    }
  }

  #ofMemory(): Pod[] {
    return Array.from(this.named())
      .filter(({ model }) => model === 'memory')
      .map(({ pod }) => pod);
  }

  /** Memory limit for the rows of a model. Rows of kv are on disk, and use nothing of the limit. */
  #memoryLimit(model: TableModel): number {
    const bytes = this.#options.live.get('memory.max-bytes');
    if (bytes === 0) return Infinity;
    const left = bytes - emptyServerBytes;
    return model === 'memory' || left < 0 ? left : Infinity;
  }

  // ---- facts

  /** Rows of a table, all of its partitions together; in a cluster those with replicas here. */
  sizeOf(table: number, ifLed = false): { rows: number; expiring: number } {
    const size = { rows: 0, expiring: 0 };
    for (const { number } of this.#options.tables.partitionsOf(table)) {
      const pod = this.ofTable(number);
      if (ifLed && pod?.role !== 'leader') continue;
      const one = pod?.tableSize(number);
      size.rows += one?.rows ?? 0;
      size.expiring += one?.expiring ?? 0;
    }
    return size;
  }

  sum(of: (pod: Pod) => number): number {
    let total = 0;
    for (const pod of this.local()) total += of(pod);
    return total;
  }

  /** Evicted rows of the tenant with this first table, or of all. */
  evictedRows(firstTable: number | undefined): number {
    return this.sum((pod) => {
      if (firstTable !== undefined) return pod.evictedRows.get(firstTable) ?? 0;
      let total = 0;
      for (const count of pod.evictedRows.values()) total += count;
      return total;
    });
  }

  persistence(): Record<string, string | number> {
    const failing = [...this.local()].find((pod) => pod.writeFailure !== undefined);
    const failures = this.sum((pod) => pod.stats.checkpointFailures);
    const saves = this.sum((pod) => pod.stats.checkpoints);
    const lastAt = this.lastCheckpointAt;
    const last = [...this.local()].find(({ stats }) => stats.lastCheckpointAt === lastAt);
    return {
      rdb_saves: saves,
      rdb_last_bgsave_time_sec:
        saves === 0 ? -1 : Math.round((last?.stats.lastCheckpointMs ?? 0) / 1000),
      rdb_changes_since_last_save: this.sum((pod) => Math.max(0, pod.changesSinceCheckpoint)),
      aof_last_write_status: failing === undefined ? 'ok' : 'err',
      aof_last_bgrewrite_status: failures === 0 ? 'ok' : 'err',
      aof_current_size: this.sum((pod) => pod.logStatus().bytes),
      aof_pending_bio_fsync: 0,
    };
  }

  memoryUse(): MemoryUse {
    let [live, allocated, cached] = [0, 0, 0];
    for (const { model, pod } of this.named()) {
      const { usedBytes, memoryBytes } = pod.engineStats();
      if (model === 'kv') cached += usedBytes;
      else {
        live += usedBytes;
        allocated += memoryBytes;
      }
    }
    const used = emptyServerBytes + live + cached;
    this.#peakMemory = Math.max(this.#peakMemory, used);
    return {
      used,
      peak: this.#peakMemory,
      startup: emptyServerBytes,
      uncounted: cached,
      held: emptyServerBytes + allocated + cached,
    };
  }

  /** Why writes fail, by model; [] when all is well. */
  failures(): string[] {
    const reasons: string[] = [];
    for (const { model, pod } of this.named()) {
      const failure = pod.writeFailure;
      if (failure !== undefined) reasons.push(`${model}: ${failure.message}`);
    }
    return reasons;
  }

  async checkpoint(): Promise<void> {
    for (const pod of this.local()) await pod.checkpoint();
  }

  /** Resolves when all that was written before is on disk, whatever the fsync policy. */
  async synced(): Promise<void> {
    await Promise.all(Array.from(this.local(), (pod) => pod.synced()));
  }

  get lastCheckpointAt(): number {
    return Math.max(0, ...[...this.local()].map((pod) => pod.stats.lastCheckpointAt));
  }

  get checkpointInProgress(): boolean {
    return [...this.local()].some((pod) => pod.checkpointInProgress);
  }
}
