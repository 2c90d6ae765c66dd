// The ceilings of all partitions of a pod. A table has ceilings if its tenant has a quota and the table has more
// partitions than the factor: with fewer, a ceiling would be at the quota or above it. The burst of a partition is
// the factor times its share of the tenant's burst, so an even load reaches the tenant's limit before any ceiling. If
// ceilings hold only while the pod is busy, nothing is counted at other times. Partitions without requests are not
// kept.

import { slotCount } from '../../../universal-row/crc16.ts';
import type {
  PartitionAdmission,
  PartitionRequest,
} from '../../../contracts/partition-admission.ts';
import { PartitionQuota } from './partition-quota.ts';
import { podQueuesDefaults } from '../pod/pod-queues.ts';
import { SpendRate } from '../pod/spend-rate.ts';

export interface PartitionRules {
  /** When ceilings hold: while more than nine tenths of `podRate` are spent, always, or never. */
  cap: 'busy' | 'always' | 'none';
  /** Multiple of its share of the quota that a partition may use. */
  factor: number;
  /** Capacity of the pod in units a second; 0 if unknown, and then the pod is never busy. */
  podRate: number;
}

/** A table whose load is counted by partitions. */
export interface PartitionedTable {
  readonly table: number;
  readonly tenant: number;
  readonly partitions: number;
}

/** Limits of a tenant's spending: units a second, and units at once beyond that. */
interface TenantUnits {
  readonly tenant: number;
  /** Quota in units a second; 0 for a tenant without a quota, and for a tenant that was dropped. */
  readonly ruPerSecond: number;
  readonly burstRu: number;
}

const sweepEveryMs = 1000;

/** One partition of a table; made anew when it is touched after it was swept away. */
class Partition {
  readonly quota: PartitionQuota;
  isSwept = false;
  /** Number of the request that touched it last. */
  touchedBy = 0;

  constructor(quota: PartitionQuota) {
    this.quota = quota;
  }
}

/** A table with partitions, whether they have ceilings now or not. */
class CountedTable {
  readonly tenant: number;
  readonly partitions: number;
  /** Units a second of one partition, its share of the quota; 0 without a ceiling. Its ceiling is that times the factor. */
  #part = 0;
  #factor = 0;
  /** Units that a partition may take at once. */
  #atOnce = 0;
  readonly #touched = new Map<number, Partition>();

  constructor({ tenant, partitions }: PartitionedTable) {
    this.tenant = tenant;
    this.partitions = partitions;
  }

  get hasCeiling(): boolean {
    return this.#part > 0;
  }

  get size(): number {
    return this.#touched.size;
  }

  /** Sets the tenant's limit, if there is one, and the factor. */
  reshape(units: TenantUnits | undefined, factor: number, now: number): void {
    const { ruPerSecond = 0, burstRu = 0 } = units ?? {};
    this.#part = this.partitions > factor ? ruPerSecond / this.partitions : 0;
    this.#factor = factor;
    this.#atOnce = (factor * (ruPerSecond + burstRu)) / this.partitions;
    if (this.#part === 0) this.clear();
    for (const { quota } of this.#touched.values()) {
      quota.setPart(this.#part, now, factor, this.#atOnce);
    }
  }

  /** The debt of its partitions is cancelled. */
  clear(): void {
    this.#touched.clear();
  }

  indexOf(slot: number): number {
    return Math.floor((slot * this.partitions) / slotCount);
  }

  partition(index: number, now: number): Partition {
    let partition = this.#touched.get(index);
    if (partition === undefined) {
      partition = new Partition(new PartitionQuota(this.#part, now, this.#factor, this.#atOnce));
      this.#touched.set(index, partition);
    }
    return partition;
  }

  /** A request that is yet to charge one of them looks it up again. */
  sweep(now: number): void {
    for (const [index, partition] of this.#touched) {
      if (!partition.quota.isUntouched(now)) continue;
      partition.isSwept = true;
      this.#touched.delete(index);
    }
  }
}

interface Touched {
  readonly table: CountedTable;
  readonly index: number;
  partition: Partition;
}

export class PartitionCeilings implements PartitionAdmission {
  isWatched = false;
  /** Some table has ceilings now, or would have them when the pod is busy. `tick` must then be called. */
  areNeeded = false;
  #rules: PartitionRules = { cap: 'none', factor: 1, podRate: 0 };
  readonly #spend: SpendRate;
  readonly #units = new Map<number, TenantUnits>();
  #tables = new Map<number, CountedTable>();
  #requests = 0;
  #sweptAt: number;

  constructor(now: number) {
    this.#spend = new SpendRate(podQueuesDefaults.averageMs, now);
    this.#sweptAt = now;
  }

  setRules(rules: PartitionRules, now: number): void {
    this.#rules = rules;
    this.#reshape(now);
  }

  /** All tables. Unchanged ones keep their debt. */
  setTables(tables: Iterable<PartitionedTable>, now: number): void {
    const before = this.#tables;
    this.#tables = new Map();
    for (const one of tables) {
      const known = before.get(one.table);
      const isSame = known?.tenant === one.tenant && known.partitions === one.partitions;
      this.#tables.set(one.table, isSame ? known : new CountedTable(one));
    }
    this.#reshape(now);
  }

  /** The tenants that have changed. */
  setQuotas(tenants: Iterable<TenantUnits>, now: number): void {
    for (const units of tenants) {
      if (units.ruPerSecond > 0) this.#units.set(units.tenant, units);
      else this.#units.delete(units.tenant);
    }
    this.#reshape(now);
  }

  /** Partitions that are kept: those touched lately. */
  get size(): number {
    let size = 0;
    for (const table of this.#tables.values()) size += table.size;
    return size;
  }

  #reshape(now: number): void {
    const { cap, factor, podRate } = this.#rules;
    const mayHold = cap === 'always' || (cap === 'busy' && podRate > 0);
    let hasCeilings = false;
    for (const table of this.#tables.values()) {
      table.reshape(this.#units.get(table.tenant), factor, now);
      hasCeilings ||= table.hasCeiling;
    }
    this.areNeeded = mayHold && hasCeilings;
    // They would not be swept.
    if (!this.areNeeded) for (const table of this.#tables.values()) table.clear();
    this.#watch(now);
  }

  // ---- time

  /** To be called some times a second: all tenants together have been charged so many units since. */
  tick(units: number, now: number): void {
    this.#spend.note(units, now);
    this.#watch(now);
    if (now - this.#sweptAt < sweepEveryMs) return;
    this.#sweptAt = now;
    for (const table of this.#tables.values()) if (table.size > 0) table.sweep(now);
  }

  #watch(now: number): void {
    const { cap, podRate } = this.#rules;
    const isBusy = podRate > 0 && this.#spend.perSecond(now) > podQueuesDefaults.theta * podRate;
    this.isWatched = this.areNeeded && (cap === 'always' || isBusy);
  }

  // ---- requests

  request(): PartitionRequest {
    return new Request(
      (table) => this.#tables.get(table),
      () => ++this.#requests,
    );
  }
}

class Request implements PartitionRequest {
  readonly #tableOf: (table: number) => CountedTable | undefined;
  readonly #nextNumber: () => number;
  readonly #touched: Touched[] = [];
  #number = 0;

  constructor(tableOf: (table: number) => CountedTable | undefined, nextNumber: () => number) {
    this.#tableOf = tableOf;
    this.#nextNumber = nextNumber;
  }

  begin(): void {
    this.#touched.length = 0;
    this.#number = this.#nextNumber();
  }

  touch(number: number, slot: number, now: number): void {
    const table = this.#tableOf(number);
    if (table?.hasCeiling !== true) return;
    const index = table.indexOf(slot);
    const partition = table.partition(index, now);
    if (partition.touchedBy === this.#number) return;
    partition.touchedBy = this.#number;
    this.#touched.push({ table, index, partition });
  }

  waitMs(now: number): number {
    let ms = 0;
    for (const one of this.#touched) ms = Math.max(ms, quotaOf(one, now).waitMs(now));
    return ms;
  }

  charge(units: number, now: number): void {
    const part = units / this.#touched.length;
    for (const one of this.#touched) quotaOf(one, now).charge(part, now);
    this.#touched.length = 0;
  }
}

/** While it waited for its key, or for the disk, its partition may have been swept away. */
function quotaOf(touched: Touched, now: number): PartitionQuota {
  const { table, index, partition } = touched;
  if (partition.isSwept) touched.partition = table.partition(index, now);
  return touched.partition.quota;
}
