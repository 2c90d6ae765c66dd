// Prices requests of time series and charges them to an account.

import { CostTable, type ModelCosts, type SeriesModule, seriesModules } from './cost-table.ts';
import { ChargeClass, type TenantAccount } from './meter.ts';
import { dimensionCount, smallestCharge } from './pru.ts';
import { costLayout } from './row-pricer.ts';

/** Work of a request. Plain numbers, added up where the work is done. */
export class SeriesWork {
  /** Bytes of requests and answers on the wire. */
  received = 0;
  sent = 0;
  /** Line protocol, unpacked. */
  lineBytes = 0;
  points = 0;
  batches = 0;
  logBytes = 0;
  statements = 0;
  textBytes = 0;
  series = 0;
  /** Series of answers. */
  groups = 0;
  blocks = 0;
  /** Points read. */
  rows = 0;
  /** Names listed out of an index. */
  names = 0;
  /** Points that functions needed all at once. */
  keptRows = 0;
  /** Bytes of answers, uncompressed. */
  answerBytes = 0;
  /** Bytes held, times milliseconds of the processor time that the request stands for. */
  held = 0;
}

const pointBytes = 16;
/** Size of a name, approximate. */
const nameBytes = 16;

const index = Object.fromEntries(seriesModules.map((name, i) => [name, i])) as Record<
  SeriesModule,
  number
>;

export class SeriesPricer {
  readonly table: CostTable;

  constructor(costs: ModelCosts) {
    this.table = new CostTable(costs, seriesModules);
  }

  /** Price of the work, by `costLayout`. */
  price(work: SeriesWork, cost: Float64Array): void {
    const { table } = this;
    cost.fill(0);
    const add = (name: SeriesModule, calls: number, bytes: number): void => {
      if (calls === 0) return;
      for (let d = 0; d < dimensionCount; d++) {
        cost[d] = cost[d]! + table.units(d, index[name], calls, bytes);
      }
    };
    add('request', 1, work.received + work.sent);
    add('decode', work.lineBytes === 0 ? 0 : 1, work.lineBytes);
    add('write', work.batches, work.logBytes);
    add('log', work.batches, work.logBytes);
    add('convert', work.statements, work.textBytes);
    add('series', work.series, work.series * 64);
    add('group', work.groups, work.groups * 64);
    const readBytes = work.rows * pointBytes;
    add('block', work.blocks, readBytes);
    add('aggregate', work.rows === 0 ? 0 : 1, readBytes);
    add('names', work.names === 0 ? 0 : 1, work.names * nameBytes);
    add('keep', work.keptRows === 0 ? 0 : 1, work.keptRows * pointBytes);
    add('encode', work.answerBytes === 0 ? 0 : 1, work.answerBytes);
    add('hold', work.held === 0 ? 0 : 1, work.held);
    cost[costLayout.lru] = Math.max(smallestCharge, this.#lru(cost));
  }

  /** Processor time of the reference pod that so much work stands for, in milliseconds. */
  processorMs(work: SeriesWork): number {
    const cost = new Float64Array(costLayout.length);
    this.price(work, cost);
    return (1000 * cost[costLayout.cpu]!) / this.table.pod[0];
  }

  #lru(cost: Float64Array): number {
    return this.table.lru([cost[0]!, cost[1]!, cost[2]!, cost[3]!]);
  }

  charge(
    account: TenantAccount,
    kind: ChargeClass,
    failed: boolean,
    work: SeriesWork,
    cost: Float64Array,
  ): void {
    this.price(work, cost);
    account.charge(
      kind,
      0,
      failed,
      cost[costLayout.lru]!,
      cost[costLayout.cpu]!,
      cost[costLayout.memory]!,
      cost[costLayout.io]!,
      cost[costLayout.network]!,
    );
    account.addBytes(work.received, work.sent);
    account.unmergedBytes += work.logBytes;
  }

  /** Charges a copy of points, into a backup or to be compared with one: as much as merging them. */
  chargeCopy(account: TenantAccount, bytes: number): void {
    this.#chargeBackground(account, [['compact', bytes]]);
  }

  /** Charges points that come out of a backup. */
  chargeRestore(account: TenantAccount, bytes: number): void {
    this.#chargeBackground(account, [
      ['write', bytes],
      ['log', bytes],
    ]);
    account.unmergedBytes += bytes;
  }

  /** Charges the merging of written points. */
  chargeMerging(account: TenantAccount): void {
    const bytes = account.unmergedBytes;
    if (bytes === 0) return;
    account.unmergedBytes = 0;
    this.#chargeBackground(account, [['compact', bytes]]);
  }

  #chargeBackground(
    account: TenantAccount,
    modules: readonly (readonly [name: SeriesModule, bytes: number])[],
  ): void {
    const cost = new Float64Array(costLayout.length);
    for (const [name, bytes] of modules) {
      for (let d = 0; d < dimensionCount; d++) {
        cost[d] = cost[d]! + this.table.units(d, index[name], 1, bytes);
      }
    }
    account.charge(
      ChargeClass.background,
      0,
      false,
      this.#lru(cost),
      cost[costLayout.cpu]!,
      cost[costLayout.memory]!,
      cost[costLayout.io]!,
      cost[costLayout.network]!,
    );
  }
}
