// Units spent by tenants in one plane. Each tenant has an account whose numbers only grow while the plane runs, so a
// later snapshot of the same run replaces an earlier one, and a repeated one is counted once. Charging allocates nothing.

import { dimensionCount, type Pru } from './pru.ts';

/** Classes of charged work. `scan` covers scans and queries. */
export const chargeClasses = ['read', 'write', 'scan', 'background', 'other'] as const;
export type ChargeClassName = (typeof chargeClasses)[number];
export const ChargeClass = { read: 0, write: 1, scan: 2, background: 3, other: 4 } as const;
export type ChargeClass = (typeof ChargeClass)[keyof typeof ChargeClass];

/** The account of all tenants that are beyond the number a meter keeps. */
export const otherTenants = -1;

// An account's numbers: for each class requests, errors, logical units and physical ones; then bytes.
const requestsAt = 0;
const errorsAt = 1;
const lruAt = 2;
const pruAt = 3;
const stride = pruAt + dimensionCount;
const bytesInAt = chargeClasses.length * stride;
const bytesOutAt = bytesInAt + 1;
const length = bytesOutAt + 1;

/** For hot paths on which a call with number arguments would cost too much: see `RowPricer`. */
export const accountLayout = {
  requestsAt,
  errorsAt,
  lruAt,
  pruAt,
  stride,
  bytesInAt,
  bytesOutAt,
} as const;

interface ClassUsage {
  requests: number;
  /** Requests that were answered by an error, among `requests`. */
  errors: number;
  lru: number;
  pru: Pru;
}

/** An account as plain data. */
export interface AccountUsage {
  tenant: number;
  requests: number;
  errors: number;
  /** Requests that were refused before anything was done. They cost nothing and are not in `requests`. */
  rejected: number;
  lru: number;
  /** Logical units of the last whole second. */
  lastSecondLru: number;
  lastSecondRequests: number;
  bytesIn: number;
  bytesOut: number;
  classes: Record<ChargeClassName, ClassUsage>;
  /** Logical units by database: index n is the tenant's database n, the last index all beyond it. */
  databases: number[];
}

export interface MeterSnapshot {
  plane: string;
  /** Identifies the process: the numbers of another run start at 0 again. */
  run: string;
  /** Ascending in a run. One that is not above the last one seen brings nothing new. */
  sequence: number;
  /** Unix milliseconds. */
  at: number;
  /** Accounts that changed after the snapshot that was asked for. */
  accounts: AccountUsage[];
}

/** Databases that are counted one by one; all further ones are together. */
export const countedDatabases = 64;

export class TenantAccount {
  readonly tenant: number;
  /** Refused before anything was done. */
  rejected = 0;
  lastSecondLru = 0;
  lastSecondRequests = 0;
  /** Bytes written that will be merged with others on disk, which is still to be charged. */
  unmergedBytes = 0;
  /** Number of the meter's second in which it last changed; for the meter, as is the next one. */
  changedIn = 0;
  isActive = false;

  /** By `accountLayout`. */
  readonly numbers = new Float64Array(length);
  /** Logical units by `databaseIndex`. */
  databases = new Float64Array(1);

  private readonly meter: Meter;
  private lruBefore = 0;
  private requestsBefore = 0;

  constructor(meter: Meter, tenant: number) {
    this.meter = meter;
    this.tenant = tenant;
  }

  /** Charges an answered request. `database` counts from the tenant's first. */
  charge(
    kind: ChargeClass,
    database: number,
    failed: boolean,
    lru: number,
    cpu: number,
    memory: number,
    io: number,
    network: number,
  ): void {
    const { numbers } = this;
    const at = kind * stride;
    numbers[at] = numbers[at]! + 1;
    if (failed) numbers[at + errorsAt] = numbers[at + errorsAt]! + 1;
    numbers[at + lruAt] = numbers[at + lruAt]! + lru;
    numbers[at + pruAt] = numbers[at + pruAt]! + cpu;
    numbers[at + pruAt + 1] = numbers[at + pruAt + 1]! + memory;
    numbers[at + pruAt + 2] = numbers[at + pruAt + 2]! + io;
    numbers[at + pruAt + 3] = numbers[at + pruAt + 3]! + network;
    const index = this.databaseIndex(database);
    this.databases[index] = this.databases[index]! + lru;
    this.touch();
  }

  /** Where a database's units are counted; `databases` may be another array afterwards. */
  databaseIndex(database: number): number {
    const index = database < countedDatabases ? database : countedDatabases;
    if (index >= this.databases.length) {
      const more = new Float64Array(Math.min(countedDatabases + 1, 2 * index + 1));
      more.set(this.databases);
      this.databases = more;
    }
    return index;
  }

  /** Something was added to its numbers. */
  touch(): void {
    if (this.changedIn !== this.meter.second) this.meter.changed(this);
  }

  /** Refused before anything was done: it costs nothing. */
  reject(): void {
    this.rejected++;
    this.touch();
  }

  addBytes(received: number, sent: number): void {
    const { numbers } = this;
    numbers[bytesInAt] = numbers[bytesInAt]! + received;
    numbers[bytesOutAt] = numbers[bytesOutAt]! + sent;
  }

  /** Logical units since the plane was started. */
  get lru(): number {
    return this.#sum(lruAt);
  }

  get requests(): number {
    return this.#sum(requestsAt);
  }

  get errors(): number {
    return this.#sum(errorsAt);
  }

  lruOf(kind: ChargeClass): number {
    return this.numbers[kind * stride + lruAt]!;
  }

  requestsOf(kind: ChargeClass): number {
    return this.numbers[kind * stride + requestsAt]!;
  }

  #sum(column: number): number {
    let total = 0;
    for (let at = column; at < bytesInAt; at += stride) total += this.numbers[at]!;
    return total;
  }

  /** A second has gone by. Returns whether there was anything in it; for the meter. */
  closeSecond(): boolean {
    const { lru, requests } = this;
    this.lastSecondLru = lru - this.lruBefore;
    this.lastSecondRequests = requests - this.requestsBefore;
    this.lruBefore = lru;
    this.requestsBefore = requests;
    return this.lastSecondLru !== 0 || this.lastSecondRequests !== 0;
  }

  usage(): AccountUsage {
    const classes = {} as Record<ChargeClassName, ClassUsage>;
    chargeClasses.forEach((name, kind) => {
      const n = this.numbers.subarray(kind * stride, (kind + 1) * stride);
      classes[name] = {
        requests: n[requestsAt]!,
        errors: n[errorsAt]!,
        lru: n[lruAt]!,
        pru: [n[pruAt]!, n[pruAt + 1]!, n[pruAt + 2]!, n[pruAt + 3]!],
      };
    });
    return {
      tenant: this.tenant,
      requests: this.requests,
      errors: this.errors,
      rejected: this.rejected,
      lru: this.lru,
      lastSecondLru: this.lastSecondLru,
      lastSecondRequests: this.lastSecondRequests,
      bytesIn: this.numbers[bytesInAt]!,
      bytesOut: this.numbers[bytesOutAt]!,
      classes,
      databases: Array.from(this.databases),
    };
  }
}

interface MeterOptions {
  /** `redis` or `influx`. */
  plane: string;
  run: string;
  /** Accounts kept; the tenants beyond share one. */
  maxTenants?: number;
}

export class Meter {
  readonly plane: string;
  readonly run: string;
  /** Counts `tick`s. */
  second = 1;

  private readonly accounts = new Map<number, TenantAccount>();
  private readonly maxTenants: number;
  /** Accounts changed in this second or in the last one. */
  private active: TenantAccount[] = [];
  private sequence = 0;
  /** The second in which each of the latest snapshots was taken, so that changes after it are known. */
  private readonly takenIn = new Map<number, number>();

  constructor(options: MeterOptions) {
    this.plane = options.plane;
    this.run = options.run;
    this.maxTenants = options.maxTenants ?? 16_384;
  }

  /** The account of a tenant, made when it is first asked for. */
  account(tenant: number): TenantAccount {
    const found = this.accounts.get(tenant);
    if (found !== undefined) return found;
    const number = this.accounts.size < this.maxTenants ? tenant : otherTenants;
    let account = this.accounts.get(number);
    if (account === undefined)
      this.accounts.set(number, (account = new TenantAccount(this, number)));
    return account;
  }

  /** The account of a tenant, if there is one. */
  find(tenant: number): TenantAccount | undefined {
    return this.accounts.get(tenant);
  }

  all(): IterableIterator<TenantAccount> {
    return this.accounts.values();
  }

  /** Removes the tenant. Callers must fetch its figures before, if they need them. */
  forget(tenant: number): void {
    this.accounts.delete(tenant);
  }

  /** For accounts: the first change of this second. */
  changed(account: TenantAccount): void {
    account.changedIn = this.second;
    if (account.isActive) return;
    account.isActive = true;
    this.active.push(account);
  }

  /** Accounts changed in this second or in the last one. */
  activeAccounts(): readonly TenantAccount[] {
    return this.active;
  }

  /** To be called every second. Returns the accounts with new charges. */
  tick(): readonly TenantAccount[] {
    this.second++;
    this.active = this.active.filter((account) => (account.isActive = account.closeSecond()));
    return this.active;
  }

  /** Changes since the snapshot `since`; everything if that snapshot is unknown. */
  snapshot(at: number, since = 0): MeterSnapshot {
    const sequence = ++this.sequence;
    this.takenIn.set(sequence, this.second);
    if (this.takenIn.size > rememberedSnapshots)
      this.takenIn.delete(sequence - rememberedSnapshots);
    const from = this.takenIn.get(since) ?? 0;
    const accounts: AccountUsage[] = [];
    for (const account of this.accounts.values()) {
      if (account.changedIn >= from - 1) accounts.push(account.usage());
    }
    return { plane: this.plane, run: this.run, sequence, at, accounts };
  }
}

const rememberedSnapshots = 120;
