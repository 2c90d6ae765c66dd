// The reads of the disk of a running pod, in line by tenants. Four are under way at a time, as many as threads serve
// them, and two more for others while all four are one tenant's: whoever misses a record now and then does not wait for
// all that another has missed. Small reads have four turns while large ones have one, and only few of those are under
// way at a time. The queue itself is that of a pod with many workers (queue-layer.ts, its I/O half). While only one
// tenant reads the disk nothing waits here, and nothing is counted.

import type { ReadGate } from '../../engines/engine.ts';
import { IoWorkers, ioWorkersDefaults } from './io-workers.ts';
import { kindSharesDefaults } from './kind-shares.ts';
import { type LayerWork, QueueLayer } from './queue-layer.ts';
import { kindOf, WorkKind } from './work-kind.ts';

export interface IoRules {
  /** Off, reads go to the disk as they come. */
  enabled: boolean;
  /** Turns cost operations, each of which takes the disk about as long; off, they cost kilobytes. */
  byOperations: boolean;
  /** Two reads more for others while all that are under way are one tenant's. */
  extraWorkers: boolean;
  /** Tenants by their quotas; off, in the order in which they come. */
  fair: boolean;
  /** Small reads and large ones wait apart. */
  classes: boolean;
}

export const ioRulesDefaults: IoRules = {
  enabled: true,
  byOperations: true,
  extraWorkers: true,
  fair: true,
  classes: true,
};

export interface IoLineOptions {
  clock: { monotonic(): number };
  /** The tenant of a table; undefined for nobody's. */
  ownerOf: (table: number) => number | undefined;
  rules?: Partial<IoRules>;
  /** Milliseconds without a read of another after which a tenant counts as alone. */
  aloneMs?: number;
}

/** As many as keep a thread busy for about as long as it takes to come back for more. */
const pieceRecords = 32;
/** Pieces of one tenant in line. What it misses beyond that in one turn of the event loop is one large piece. */
const mostPieces = 1024;
/** Of the disk: what lies apart takes an operation for each record, what lies in order one for each block. */
const blockBytes = 4096;
/** Of a record, until some were read, and the share of the newest read in what is known. */
const firstRecordBytes = 128;
const newest = 0.2;
/** Whose tables no tenant's are, as those that a restore fills: beside tenants they have little. */
const nobody = Number.MAX_SAFE_INTEGER;
const nobodysWeight = 0.05;

interface Read extends LayerWork {
  readonly cost: number;
  readonly records: number;
  readonly read: () => Promise<number>;
}

export class IoLine implements ReadGate {
  /** Reads that had to wait, and milliseconds that they did. */
  waited = 0;
  waitedMs = 0;
  /** Reads that an extra worker made. */
  extraReads = 0;
  readonly #clock: IoLineOptions['clock'];
  readonly #ownerOf: IoLineOptions['ownerOf'];
  readonly #weights = new Map<number, number>();
  /** Bytes of a record of each tenant, about; of those that have missed something. */
  readonly #recordBytes = new Map<number, number>();
  /** Under way, and in line, in the order in which they began or came. */
  readonly #running = new Set<Read>();
  readonly #waiting = new Set<Read>();
  readonly #aloneMs: number;
  #lastTenant: number | undefined;
  /** When another tenant than before last missed something. */
  #mixedAt = -Infinity;
  /** Tenants to be forgotten when the last of their reads is over. */
  readonly #gone = new Set<number>();
  #rules: IoRules;
  #workers: IoWorkers;
  #layer: QueueLayer<Read>;
  #isClosed = false;

  constructor({ clock, ownerOf, rules, aloneMs = 1000 }: IoLineOptions) {
    this.#clock = clock;
    this.#ownerOf = ownerOf;
    this.#aloneMs = aloneMs;
    this.#rules = { ...ioRulesDefaults, ...rules };
    this.#workers = this.#newWorkers();
    this.#layer = this.#newLayer();
  }

  get isOn(): boolean {
    return this.#rules.enabled && !this.#isClosed;
  }

  set enabled(enabled: boolean) {
    this.setRules({ enabled });
  }

  /** Reads that wait. */
  get length(): number {
    return this.#waiting.size;
  }

  /** Reads under way. */
  get running(): number {
    return this.#running.size;
  }

  /** Who waits keeps waiting, by the new rules; when there are none any more, nobody does. */
  setRules(rules: Partial<IoRules>): void {
    this.#rules = { ...this.#rules, ...rules };
    this.#workers = this.#newWorkers();
    this.#layer = this.#newLayer();
    const now = this.#clock.monotonic();
    for (const tenant of this.#recordBytes.keys()) this.#weigh(tenant);
    for (const { kind, tenant, cost } of this.#running) this.#layer.pass(kind, tenant, cost, now);
    for (const read of this.#waiting) {
      read.ticket = undefined;
      if (this.isOn) this.#layer.push(read, now);
      else {
        this.#endWait(read, now);
        // Nothing counts what is under way then.
        void read.read();
      }
    }
    this.#serve(now);
  }

  /** Nobody waits any longer. */
  close(): void {
    this.#isClosed = true;
    this.setRules({});
  }

  /** Tenants weigh as much as others, unless it is said otherwise: by their quotas, say. */
  setWeight(tenant: number, weight: number): void {
    this.#weights.set(tenant, weight);
    if (this.#recordBytes.has(tenant)) this.#layer.setWeight(tenant, weight);
  }

  forget(tenant: number): void {
    this.#weights.delete(tenant);
    const isBusy = (read: Read): boolean => read.tenant === tenant;
    if ([...this.#running, ...this.#waiting].some(isBusy)) {
      this.#gone.add(tenant);
      return;
    }
    this.#gone.delete(tenant);
    this.#recordBytes.delete(tenant);
    this.#layer.forget(tenant);
  }

  /** Undefined of a tenant that is alone. */
  ownerOf(table: number): number | undefined {
    const tenant = this.#ownerOf(table) ?? nobody;
    if (tenant !== this.#lastTenant) {
      if (this.#lastTenant !== undefined) this.#mixedAt = this.#clock.monotonic();
      this.#lastTenant = tenant;
    }
    return this.#isShared() ? tenant : undefined;
  }

  #isShared(): boolean {
    if (this.#waiting.size > 0 || this.#aloneMs === Infinity) return true;
    // Nobody looks at the clock until there is another tenant again.
    if (this.#mixedAt === -Infinity) return false;
    if (this.#clock.monotonic() - this.#mixedAt <= this.#aloneMs) return true;
    this.#mixedAt = -Infinity;
    return false;
  }

  mostRecords(tenant: number): number {
    const { smallRead, largeRead } = WorkKind;
    const waiting =
      this.#layer.lengthOf(smallRead, tenant) + this.#layer.lengthOf(largeRead, tenant);
    return waiting < mostPieces ? pieceRecords : Infinity;
  }

  pass(tenant: number, records: number, isPage: boolean, read: () => Promise<number>): void {
    if (!this.isOn) {
      void read();
      return;
    }
    const now = this.#clock.monotonic();
    const next = this.#newRead(tenant, records, isPage, read, now);
    this.#layer.asked(next.kind, tenant, now);
    if (this.#layer.mayBegin(next.kind, tenant, now)) {
      const { extra } = this.#workers;
      this.#layer.pass(next.kind, tenant, next.cost, now);
      this.#begin(next, extra);
    } else {
      this.#waiting.add(next);
      this.#layer.push(next, now);
      // Others of its line wait for want of a worker for them, who may be there for this tenant.
      this.#serve(now);
      if (this.#waiting.has(next)) this.waited++;
    }
  }

  /** With what it comes to, as far as that is known before it is made. */
  #newRead(
    tenant: number,
    records: number,
    isPage: boolean,
    read: () => Promise<number>,
    now: number,
  ): Read {
    const recordBytes = this.#bytesOf(tenant);
    const bytes = records * recordBytes;
    const operations = isPage ? Math.ceil(bytes / blockBytes) : records;
    const isLarge = !isPage && records > pieceRecords;
    return {
      // Of records that lie apart each is a request of its own.
      kind: isLarge ? WorkKind.largeRead : kindOf(false, isPage ? bytes : recordBytes),
      tenant,
      cost: this.#rules.byOperations ? operations : bytes / 1024,
      records,
      read,
      priority: 0,
      arrivedAt: now,
      startedAt: now,
      deadline: Infinity,
      ticket: undefined,
    };
  }

  #bytesOf(tenant: number): number {
    const known = this.#recordBytes.get(tenant);
    if (known !== undefined) return known;
    this.#recordBytes.set(tenant, firstRecordBytes);
    this.#weigh(tenant);
    return firstRecordBytes;
  }

  #serve(now: number): void {
    for (;;) {
      const { extra } = this.#workers;
      const next = this.#layer.take(now);
      if (next === undefined) return;
      this.#endWait(next, now);
      this.#begin(next, extra);
    }
  }

  #endWait(read: Read, now: number): void {
    this.#waiting.delete(read);
    this.waitedMs += now - read.arrivedAt;
  }

  /** `extra` is how many extra workers there were before it had its place. */
  #begin(read: Read, extra: number): void {
    if (this.#workers.extra > extra) this.extraReads++;
    this.#running.add(read);
    void read.read().then((bytes) => this.#ended(read, bytes));
  }

  #ended(read: Read, bytes: number): void {
    const { kind, tenant, cost, records } = read;
    const now = this.#clock.monotonic();
    this.#running.delete(read);
    this.#layer.ended(kind, tenant, cost, now);
    const known = this.#recordBytes.get(tenant)!;
    this.#recordBytes.set(tenant, known + newest * (bytes / records - known));
    this.#serve(now);
    if (this.#gone.has(tenant)) this.forget(tenant);
  }

  #newWorkers(): IoWorkers {
    return new IoWorkers(this.#rules.extraWorkers ? ioWorkersDefaults : { extra: 0 });
  }

  #newLayer(): QueueLayer<Read> {
    const { fair, classes } = this.#rules;
    return new QueueLayer<Read>(
      {
        places: this.#workers,
        costOf: ({ cost }) => cost,
        expired: () => {},
        // Who waits for a read has begun: there is no sense in serving the newest first.
        queue: { order: fair ? 'fair' : 'fifo', overload: 'fifo' },
        kinds: classes ? kindSharesDefaults : undefined,
        background: undefined,
      },
      this.#clock.monotonic(),
    );
  }

  #weigh(tenant: number): void {
    const usual = tenant === nobody ? nobodysWeight : 1;
    this.#layer.setWeight(tenant, this.#weights.get(tenant) ?? usual);
  }
}
