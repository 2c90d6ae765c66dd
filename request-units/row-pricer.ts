// Prices commands on rows and charges them to an account. One instance serves a model; it allocates
// nothing and visits only the modules with work.

import { ChargeClass, type TenantAccount, accountLayout } from './meter.ts';
import {
  CostTable,
  interval,
  intervals,
  type ModelCosts,
  type RowModule,
  rowModules,
  smallest,
} from './cost-table.ts';
import { type Pru, smallestCharge } from './pru.ts';

/** Work of the store for a command. */
export interface RowWorkCounts {
  lookups: number;
  reads: number;
  readBytes: number;
  seeks: number;
  walked: number;
  fieldsWalked: number;
  scoresWalked: number;
  arrayWalked: number;
  values: number;
  fields: number;
  scores: number;
  elements: number;
  removed: number;
  logBytes: number;
  misses: number;
  scriptSteps: number;
}

/** Where a request's cost comes out: four dimensions, then logical units. */
export const costLayout = { cpu: 0, memory: 1, io: 2, network: 3, lru: 4, length: 5 } as const;

/** Start of a module's rows in the table's arrays; rows of other dimensions follow. */
const at = Object.fromEntries(rowModules.map((name, i) => [name, i * intervals])) as Record<
  RowModule,
  number
>;
const decodeAt = at.decode;
const encodeAt = at.encode;
const readAt = at.read;
const walkAt = at.walk;
const walkFieldsAt = at.walkFields;
const walkScoresAt = at.walkScores;
const walkArrayAt = at.walkArray;
const valueAt = at.writeValue;
const fieldAt = at.writeField;
const scoreAt = at.writeScore;
const elementAt = at.writeElement;
const manyAt = at.writeMany;
const logAt = at.log;
const missAt = at.miss;

/** Price of a request that was answered from a node's cache, or that read no row. */
const cheapest = smallestCharge / 10;

const {
  requestsAt,
  errorsAt,
  lruAt,
  pruAt,
  stride: classStride,
  bytesInAt,
  bytesOutAt,
} = accountLayout;

interface RowPricerOptions {
  costs: ModelCosts;
  /** A read without a miss came from a cache, and costs less than the smallest charge. */
  isCached: boolean;
}

export class RowPricer {
  readonly table: CostTable;
  readonly isCached: boolean;
  // Cost independent of size.
  private readonly convertCpu: number;
  private readonly lookupCpu: number;
  private readonly seekCpu: number;
  private readonly removeCpu: number;
  private readonly scriptCpu: number;

  constructor({ costs, isCached }: RowPricerOptions) {
    this.table = new CostTable(costs, rowModules);
    this.isCached = isCached;
    const flat = (name: RowModule): number =>
      this.table.units(0, rowModules.indexOf(name), 1, smallest);
    this.convertCpu = flat('convert');
    this.lookupCpu = flat('lookup');
    this.seekCpu = flat('seek');
    this.removeCpu = flat('remove');
    this.scriptCpu = flat('script') / 1000;
  }

  /**
   * Price of `count` requests together, by `costLayout`. Written into an array, as a returned
   * number might have to be boxed. Sizes count by their mean.
   */
  price(
    requests: number,
    commands: number,
    received: number,
    sent: number,
    work: RowWorkCounts,
    cost: Float64Array,
  ): void {
    const { base, slope, stride, weights } = this.table;
    const bytesIn = sizeOf(received, requests);
    const bytesOut = sizeOf(sent, requests);
    let i = decodeAt + interval(bytesIn);
    let o = encodeAt + interval(bytesOut);
    let cpu = base[i]! + bytesIn * slope[i]! + base[o]! + bytesOut * slope[o]!;
    i += stride;
    o += stride;
    let memory = base[i]! + bytesIn * slope[i]! + base[o]! + bytesOut * slope[o]!;
    i += 2 * stride;
    o += 2 * stride;
    let network = base[i]! + bytesIn * slope[i]! + base[o]! + bytesOut * slope[o]!;
    if (requests !== 1) {
      cpu *= requests;
      memory *= requests;
      network *= requests;
    }
    let io = 0;
    let least = requests * cheapest;

    const { lookups, reads, logBytes, misses } = work;
    cpu += commands * this.convertCpu + lookups * this.lookupCpu;
    if (lookups !== 0 && !this.isCached) least = requests * smallestCharge;
    if (reads !== 0) {
      const size = sizeOf(work.readBytes, reads);
      const r = readAt + interval(size);
      cpu += reads * (base[r]! + size * slope[r]!);
    }
    const { seeks, walked, fieldsWalked, scoresWalked, arrayWalked } = work;
    if (seeks !== 0) cpu += seeks * this.seekCpu;
    const steps = walked + fieldsWalked + scoresWalked + arrayWalked;
    if (steps !== 0) {
      // Rows walked are part of the answer, or else small.
      const size = sizeOf(sent, steps);
      const n = interval(size);
      const w = walkAt + n;
      const f = walkFieldsAt + n;
      const s = walkScoresAt + n;
      const a = walkArrayAt + n;
      if (walked !== 0) cpu += walked * (base[w]! + size * slope[w]!);
      if (fieldsWalked !== 0) cpu += fieldsWalked * (base[f]! + size * slope[f]!);
      if (scoresWalked !== 0) cpu += scoresWalked * (base[s]! + size * slope[s]!);
      if (arrayWalked !== 0) cpu += arrayWalked * (base[a]! + size * slope[a]!);
    }
    if (logBytes !== 0) {
      least = requests * smallestCharge;
      const { values, fields, scores, elements, removed } = work;
      const size = sizeOf(logBytes, requests);
      const l = logAt + interval(size);
      cpu += requests * (base[l]! + size * slope[l]!) + removed * this.removeCpu;
      io = requests * (base[l + 2 * stride]! + size * slope[l + 2 * stride]!);
      const writes = values + fields + scores + elements;
      if (writes !== 0) {
        // The log holds all writes, so each is charged its mean size.
        const each = sizeOf(logBytes, writes);
        const n = interval(each);
        if (values !== 0) cpu += values * (base[valueAt + n]! + each * slope[valueAt + n]!);
        if (fields !== 0) cpu += fields * (base[fieldAt + n]! + each * slope[fieldAt + n]!);
        if (scores !== 0) cpu += scores * (base[scoreAt + n]! + each * slope[scoreAt + n]!);
        if (elements !== 0) cpu += elements * (base[elementAt + n]! + each * slope[elementAt + n]!);
        if (writes > requests) {
          const many = (smallest * writes) / requests;
          const m = manyAt + interval(many);
          cpu += requests * (base[m]! + many * slope[m]!);
        }
      }
    }
    if (work.scriptSteps !== 0) cpu += work.scriptSteps * this.scriptCpu;
    if (misses !== 0) {
      if (misses * smallestCharge > least) least = misses * smallestCharge;
      const size = sizeOf(work.readBytes + sent, misses);
      let m = missAt + interval(size);
      cpu += misses * (base[m]! + size * slope[m]!);
      m += stride;
      memory += misses * (base[m]! + size * slope[m]!);
      m += stride;
      io += misses * (base[m]! + size * slope[m]!);
    }

    let lru = cpu * weights[0];
    const byMemory = memory * weights[1];
    if (byMemory > lru) lru = byMemory;
    const byIo = io * weights[2];
    if (byIo > lru) lru = byIo;
    const byNetwork = network * weights[3];
    if (byNetwork > lru) lru = byNetwork;
    if (lru < least) lru = least;
    cost[0] = cpu;
    cost[1] = memory;
    cost[2] = io;
    cost[3] = network;
    cost[4] = lru;
  }

  /** Charges the cost of `requests` requests. `database` counts from the tenant's first. */
  charge(
    account: TenantAccount,
    kind: ChargeClass,
    database: number,
    requests: number,
    failed: number,
    received: number,
    sent: number,
    work: RowWorkCounts,
    cost: Float64Array,
  ): void {
    const { numbers } = account;
    const n = kind * classStride;
    numbers[n + requestsAt] = numbers[n + requestsAt]! + requests;
    numbers[n + errorsAt] = numbers[n + errorsAt]! + failed;
    numbers[n + lruAt] = numbers[n + lruAt]! + cost[4]!;
    numbers[n + pruAt] = numbers[n + pruAt]! + cost[0]!;
    numbers[n + pruAt + 1] = numbers[n + pruAt + 1]! + cost[1]!;
    numbers[n + pruAt + 2] = numbers[n + pruAt + 2]! + cost[2]!;
    numbers[n + pruAt + 3] = numbers[n + pruAt + 3]! + cost[3]!;
    numbers[bytesInAt] = numbers[bytesInAt]! + received;
    numbers[bytesOutAt] = numbers[bytesOutAt]! + sent;
    const d = account.databaseIndex(database);
    account.databases[d] = account.databases[d]! + cost[4]!;
    account.touch();
    if (this.isCached) account.unmergedBytes += work.logBytes;
  }

  /** Charges a command that no client sent. */
  chargeUnasked(account: TenantAccount, database: number, work: RowWorkCounts): void {
    const cost = new Float64Array(costLayout.length);
    this.price(1, 1, 0, 0, work, cost);
    this.charge(account, ChargeClass.background, database, 1, 0, 0, 0, work, cost);
  }

  /** Charges background work. */

  chargeModule(
    account: TenantAccount,
    database: number,
    name: RowModule,
    calls: number,
    bytes: number,
  ): void {
    const { table } = this;
    const m = rowModules.indexOf(name);
    const [cpu, memory, io, network] = [0, 1, 2, 3].map((d) =>
      table.units(d, m, calls, bytes),
    ) as unknown as Pru;
    const lru = table.lru([cpu, memory, io, network]);
    account.charge(ChargeClass.background, database, false, lru, cpu, memory, io, network);
  }
}

/** Mean size of `count` items; sizes below the smallest cost as much as the smallest. */
function sizeOf(bytes: number, count: number): number {
  const mean = count === 1 ? bytes : bytes / count;
  return mean < smallest ? smallest : mean;
}
