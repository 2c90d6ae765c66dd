// The disk reads of a pod, scheduled between tenants (ABase, section 4.3). Four run at a time, as many as threads serve
// them, and two more for other tenants while all four are one tenant's (rule 4), so that a tenant that misses one record
// does not wait for all that another has missed. A read costs operations of the disk (rule 1). Small and large reads have
// queues of their own, served 4:1, and few large reads run at a time, as one that runs cannot be interrupted. While one
// tenant only reads the disk, nothing is queued or counted.

import type { ReadScheduler } from '../../../engines/engine.ts';
import { largeWorkBytes } from '../../../contracts/pod-admission.ts';
import { IoWorkers } from './io-workers.ts';
import { TenantQueue } from '../tenant-queue.ts';

export interface IoSchedulerOptions {
  clock: { monotonic(): number };
  /** The tenant of a table; undefined for a table without one. */
  ownerOf: (table: number) => number | undefined;
  /** Milliseconds without a read of another after which a tenant counts as alone. */
  aloneMs?: number;
  /** Unit of a read's cost: disk operations, or kilobytes. */
  costIn?: 'operations' | 'kilobytes';
  /** Reads for other tenants while all workers serve one. */
  extraWorkers?: number;
  /** Whether small and large reads have queues of their own. */
  classes?: boolean;
}

/** As many as keep a thread busy for about as long as it takes to come back for more. */
const pieceRecords = 32;
/** Most queued pieces of one tenant. Further misses of a tick form one large piece. */
const mostPieces = 1024;
/**
 * Block size of the disk: records that lie apart take an operation each, records in order one for
 * each block.
 */
const blockBytes = 4096;
/** Size of a record until some were read, and the share of the newest read in the average. */
const firstRecordBytes = 128;
const newest = 0.2;
/** Stands for the owner of tables without a tenant, as those that a restore fills; it has a small weight. */
const noTenant = Number.MAX_SAFE_INTEGER;
const noTenantWeight = 0.05;
/** Cost of small reads served for each of large ones, while both are queued. */
const smallPerLarge = 4;
/** Large reads that run at a time, and those while no small read came for `quietMs`. */
const mostLarge = { usual: 1, quiet: 3 };
const quietMs = 100;

interface Read {
  readonly isLarge: boolean;
  readonly tenant: number;
  readonly cost: number;
  readonly records: number;
  readonly arrivedAt: number;
  readonly read: () => PromiseLike<number>;
  hasBegun: boolean;
}

/** A queue of small or of large reads. */
interface Class {
  readonly queue: TenantQueue<Read>;
  /** Cost that it was served over its share, since it is not empty. */
  pass: number;
  readonly share: number;
}

export class IoScheduler implements ReadScheduler {
  /** Reads that had to wait, and milliseconds that they did. */
  waited = 0;
  waitedMs = 0;
  /** Reads made by an extra worker. */
  extraReads = 0;
  readonly #options: Required<IoSchedulerOptions>;
  readonly #weights = new Map<number, number>();
  /** Mean bytes of a record of each tenant that has missed any. */
  readonly #recordBytes = new Map<number, number>();
  readonly #workers: IoWorkers;
  readonly #small: Class;
  readonly #large: Class;
  #virtual = 0;
  #running = 0;
  #largeRunning = 0;
  #smallAt = -Infinity;
  #lastTenant: number | undefined;
  /** When another tenant than before last missed something. */
  #mixedAt = -Infinity;
  /** Tenants to be forgotten when the last of their reads has ended. */
  readonly #gone = new Set<number>();
  #enabled = true;
  #isClosed = false;

  constructor(options: IoSchedulerOptions) {
    this.#options = {
      aloneMs: 1000,
      costIn: 'operations',
      extraWorkers: 2,
      classes: true,
      ...options,
    };
    this.#workers = new IoWorkers({ extra: this.#options.extraWorkers });
    const newClass = (share: number): Class => ({
      queue: new TenantQueue((tenant) => this.#weightOf(tenant)),
      pass: 0,
      share,
    });
    this.#small = newClass(smallPerLarge);
    this.#large = newClass(1);
  }

  get isOn(): boolean {
    return this.#enabled && !this.#isClosed;
  }

  set enabled(enabled: boolean) {
    this.#enabled = enabled;
    if (!this.isOn) this.#releaseAll();
  }

  /** Queued reads. */
  get length(): number {
    return this.#small.queue.length + this.#large.queue.length;
  }

  /** Running reads. */
  get running(): number {
    return this.#running;
  }

  /** No read waits any longer. */
  close(): void {
    this.#isClosed = true;
    this.#releaseAll();
  }

  /** Weights are relative; 1 unless set. */
  setWeight(tenant: number, weight: number): void {
    this.#weights.set(tenant, weight);
  }

  forget(tenant: number): void {
    this.#weights.delete(tenant);
    if (this.#lengthOf(tenant) + this.#workers.heldBy(tenant) > 0) {
      this.#gone.add(tenant);
      return;
    }
    this.#gone.delete(tenant);
    this.#recordBytes.delete(tenant);
    this.#small.queue.forget(tenant);
    this.#large.queue.forget(tenant);
    this.#workers.forget(tenant);
  }

  /** Undefined for a tenant that is alone. */
  ownerOf(table: number): number | undefined {
    const tenant = this.#options.ownerOf(table) ?? noTenant;
    if (tenant !== this.#lastTenant) {
      if (this.#lastTenant !== undefined) this.#mixedAt = this.#options.clock.monotonic();
      this.#lastTenant = tenant;
    }
    return this.#isShared() ? tenant : undefined;
  }

  #isShared(): boolean {
    const { aloneMs, clock } = this.#options;
    if (this.length > 0 || aloneMs === Infinity) return true;
    // The clock is not read until there is another tenant again.
    if (this.#mixedAt === -Infinity) return false;
    if (clock.monotonic() - this.#mixedAt <= aloneMs) return true;
    this.#mixedAt = -Infinity;
    return false;
  }

  mostRecords(tenant: number): number {
    return this.#lengthOf(tenant) < mostPieces ? pieceRecords : Infinity;
  }

  #lengthOf(tenant: number): number {
    return this.#small.queue.lengthOf(tenant) + this.#large.queue.lengthOf(tenant);
  }

  pass(tenant: number, records: number, isPage: boolean, read: () => PromiseLike<number>): void {
    if (!this.isOn) {
      void read();
      return;
    }
    const now = this.#options.clock.monotonic();
    const next = this.#newRead(tenant, records, isPage, read, now);
    if (!next.isLarge) this.#smallAt = now;
    const into = next.isLarge ? this.#large : this.#small;
    if (into.queue.length === 0) into.pass = Math.max(into.pass, this.#virtual);
    into.queue.push({ work: next, tenant, cost: next.cost, arrivedAt: now });
    this.#serve(now);
    if (!next.hasBegun) this.waited++;
  }

  /** With its cost, as far as that is known before it is made. */
  #newRead(
    tenant: number,
    records: number,
    isPage: boolean,
    read: () => PromiseLike<number>,
    now: number,
  ): Read {
    const { classes, costIn } = this.#options;
    let recordBytes = this.#recordBytes.get(tenant);
    if (recordBytes === undefined) {
      this.#recordBytes.set(tenant, (recordBytes = firstRecordBytes));
    }
    const bytes = records * recordBytes;
    // Records that lie apart are requests of their own.
    const isLarge = isPage
      ? bytes > largeWorkBytes
      : records > pieceRecords || recordBytes > largeWorkBytes;
    const operations = isPage ? Math.ceil(bytes / blockBytes) : records;
    return {
      isLarge: classes && isLarge,
      tenant,
      cost: costIn === 'operations' ? operations : bytes / 1024,
      records,
      arrivedAt: now,
      read,
      hasBegun: false,
    };
  }

  #serve(now: number): void {
    for (;;) {
      const next = this.#next(now);
      if (next === undefined) return;
      this.waitedMs += now - next.arrivedAt;
      this.#begin(next);
    }
  }

  #next(now: number): Read | undefined {
    if (!this.#workers.hasRoom()) return undefined;
    const isLargeFirst =
      this.#small.queue.length === 0 ||
      (this.#large.queue.length > 0 && this.#large.pass < this.#small.pass);
    return isLargeFirst
      ? (this.#take(this.#large, now) ?? this.#take(this.#small, now))
      : (this.#take(this.#small, now) ?? this.#take(this.#large, now));
  }

  #take(from: Class, now: number): Read | undefined {
    if (from.queue.length === 0) return undefined;
    if (from === this.#large && !this.#mayBeginLarge(now)) return undefined;
    const read = from.queue.take((tenant) => this.#workers.mayTake(tenant))?.work;
    if (read === undefined) return undefined;
    this.#virtual = Math.max(this.#virtual, from.pass);
    from.pass += read.cost / from.share;
    return read;
  }

  #mayBeginLarge(now: number): boolean {
    const most = now - this.#smallAt > quietMs ? mostLarge.quiet : mostLarge.usual;
    return this.#largeRunning < most;
  }

  #begin(read: Read): void {
    read.hasBegun = true;
    const { extra } = this.#workers;
    this.#workers.began(read.tenant);
    if (this.#workers.extra > extra) this.extraReads++;
    this.#running++;
    if (read.isLarge) this.#largeRunning++;
    void read.read().then((bytes) => this.#ended(read, bytes));
  }

  #ended({ tenant, isLarge, records }: Read, bytes: number): void {
    this.#running--;
    if (isLarge) this.#largeRunning--;
    this.#workers.ended(tenant);
    const known = this.#recordBytes.get(tenant) ?? firstRecordBytes;
    this.#recordBytes.set(tenant, known + newest * (bytes / records - known));
    this.#serve(this.#options.clock.monotonic());
    if (this.#gone.has(tenant)) this.forget(tenant);
  }

  /** Makes all queued reads at once, uncounted. */
  #releaseAll(): void {
    const now = this.#options.clock.monotonic();
    for (const { queue } of [this.#small, this.#large]) {
      queue.expire(Infinity, (read) => {
        this.waitedMs += now - read.arrivedAt;
        void read.read();
      });
    }
  }

  #weightOf(tenant: number): number {
    return this.#weights.get(tenant) ?? (tenant === noTenant ? noTenantWeight : 1);
  }
}
