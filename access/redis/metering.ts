// What commands cost, charged to the tenant of their connection. Bytes are counted here, the store's work by
// the pod; what that comes to is for request-units/ to say.
//
// Pricing takes longer than counting, and a pipeline's commands are much alike. So those of one name that a
// client sent in one go are added up and priced together: sizes count by their mean, all else exactly.

import { Action, isWrite } from '../../universal-row/command.ts';
import { RowWork } from '../../universal-row/row-work.ts';
import type { Arguments } from '../../universal-row/arguments.ts';
import { ChargeClass, type Meter, type TenantAccount } from '../../request-units/meter.ts';
import { ReadHistory } from '../../request-units/estimate.ts';
import { costLayout, type RowPricer } from '../../request-units/row-pricer.ts';
import type { HotNames } from '../gateway/hot-names.ts';
import { type CommandEntry, keyWords } from './commands/registry.ts';

export interface RedisMeteringOptions {
  meter: Meter;
  /** Learns which keys requests are about. */
  hot?: HotNames | undefined;
  /** Prices of what is not about rows. */
  pricer: RowPricer;
}

export class RedisMetering {
  readonly meter: Meter;
  readonly hot: HotNames | undefined;
  readonly pricer: RowPricer;
  // Bounded as the meter's accounts are.
  private readonly histories = new Map<TenantAccount, ReadHistory>();

  constructor({ meter, hot, pricer }: RedisMeteringOptions) {
    this.meter = meter;
    this.hot = hot;
    this.pricer = pricer;
  }

  /** What the tenant's reads from disk were like. */
  historyOf(account: TenantAccount): ReadHistory {
    let history = this.histories.get(account);
    if (history === undefined) this.histories.set(account, (history = new ReadHistory()));
    return history;
  }

  forget(tenant: number): void {
    const account = this.meter.find(tenant);
    if (account !== undefined) this.histories.delete(account);
    this.meter.forget(tenant);
  }
}

export function chargeClassOf(entry: Pick<CommandEntry, 'run' | 'action'>): ChargeClass {
  if (entry.run === undefined) return ChargeClass.other;
  if (isWrite(entry.action)) return ChargeClass.write;
  return entry.action === Action.fetch ? ChargeClass.read : ChargeClass.scan;
}

/** Whose commands a connection sends. */
export interface MeteredTenant {
  readonly number: number;
  /** Its databases are the tables from this one on. */
  readonly firstTable: number;
}

export const firstTenant: MeteredTenant = { number: 0, firstTable: 0 };

// Of a request's protocol bytes, those that are not in its words or between them.
const frameBytes = 10;

/** Requests of one command and table that are not charged yet. */
class Group {
  readonly work = new RowWork();
  entry: CommandEntry;
  kind: ChargeClass;
  requests = 0;
  failed = 0;
  commands = 0;
  received = 0;
  sent = 0;
  table = 0;
  /** Of the executor that they are for. */
  pricer: RowPricer | undefined;
  /** Work there was when the last one had ended. */
  seen = 0;
  /** Of those charged last, together, by `costLayout`; and how many they were. */
  readonly cost = new Float64Array(costLayout.length);
  charged = 1;

  constructor(entry: CommandEntry) {
    this.entry = entry;
    this.kind = entry.chargeClass;
  }
}

/** Commands that a client can use by turns without their groups being charged at every turn. A power of two. */
const groupCount = 8;

/** The meter of one connection. */
export class ConnectionMeter {
  private tenant: MeteredTenant = firstTenant;
  private account: TenantAccount | undefined;
  /** By the low bits of the command's id; made when they are needed. */
  private readonly groups: (Group | undefined)[] = [];
  /** A bit for each group in which there is something. */
  private dirty = 0;
  private lastName = '';
  /** Undefined when the last command was refused. */
  private lastGroup: Group | undefined;
  // A transaction is one request of several commands, whose bytes came before it.
  private queuedBytes = 0;
  private queuedCommands = 0;
  private queuedClass: ChargeClass = ChargeClass.other;

  /** Whose commands are charged from here on. */
  belongsTo(metering: RedisMetering | undefined, tenant: MeteredTenant): void {
    if (metering !== undefined) this.flush(metering);
    this.tenant = tenant;
    this.account = undefined;
  }

  /** Of its tenant. */
  accountIn(metering: RedisMetering): TenantAccount {
    return (this.account ??= metering.meter.account(this.tenant.number));
  }

  /** A command is about to run on a table: where its work is added up. */
  begin(
    metering: RedisMetering,
    entry: CommandEntry,
    table: number,
    pricer: RowPricer | undefined,
  ): RowWork {
    const group = this.groups[entry.id & (groupCount - 1)];
    if (
      group !== undefined &&
      group.entry === entry &&
      group.table === table &&
      group.pricer === pricer
    ) {
      return group.work;
    }
    return this.#takeGroup(metering, entry, table, pricer).work;
  }

  #takeGroup(
    metering: RedisMetering,
    entry: CommandEntry,
    table: number,
    pricer: RowPricer | undefined,
  ): Group {
    const at = entry.id & (groupCount - 1);
    const group = (this.groups[at] ??= new Group(entry));
    if (group.requests !== 0) this.#charge(metering, group);
    group.entry = entry;
    group.kind = entry.chargeClass;
    group.table = table;
    group.pricer = pricer;
    return group;
  }

  /** As `begin`, for the commands that were queued. */
  beginQueued(
    metering: RedisMetering,
    exec: CommandEntry,
    table: number,
    pricer: RowPricer | undefined,
  ): RowWork {
    const group = this.#takeGroup(metering, exec, table, pricer);
    group.kind = this.queuedClass;
    return group.work;
  }

  /** A command was refused before it was run: it costs nothing. */
  reject(metering: RedisMetering, entry: CommandEntry | undefined): void {
    this.accountIn(metering).reject();
    this.lastName = entry?.fullName ?? '';
    this.lastGroup = undefined;
  }

  /** A command was taken for a transaction: what it is charged for comes with EXEC. */
  queued(entry: CommandEntry, args: Arguments, answered: number): void {
    this.queuedBytes += bytesOf(args) + answered;
    this.queuedCommands++;
    const kind = entry.chargeClass;
    if (kind === ChargeClass.write || this.queuedClass === ChargeClass.other) {
      this.queuedClass = kind;
    }
  }

  /** A command has run, on `table` if on any, and its answer of `sent` bytes was written. */
  settle(
    metering: RedisMetering,
    entry: CommandEntry,
    args: Arguments,
    table: number,
    sent: number,
    failed: boolean,
    inTransaction: boolean,
  ): void {
    let commands = 1;
    let received = bytesOf(args);
    if (this.queuedCommands !== 0 && !inTransaction) {
      // EXEC, DISCARD, RESET: what was queued comes with them.
      commands += this.queuedCommands;
      received += this.queuedBytes;
      this.#forgetQueue();
    }
    let group = this.groups[entry.id & (groupCount - 1)];
    // What is not about rows has not begun.
    const isElsewhere = entry.run === undefined && group?.table !== table && commands === 1;
    if (group === undefined || group.entry !== entry || isElsewhere) {
      group = this.#takeGroup(metering, entry, table, undefined);
    }
    const { work } = group;
    const done = work.lookups + work.logBytes;
    if (failed) {
      if (done === group.seen) {
        this.reject(metering, entry);
        return;
      }
      group.failed++;
    }
    group.seen = done;
    group.requests++;
    group.commands += commands;
    group.received += received;
    group.sent += sent;
    this.dirty |= 1 << (entry.id & (groupCount - 1));
    const { hot } = metering;
    if (hot !== undefined && entry.run !== undefined) {
      const bytes = received + sent;
      if ((hot.left -= requestWeight + bytes) < 0) this.#sample(hot, entry, args, table, bytes);
    }
    if (entry.hidesCost) {
      this.#charge(metering, group);
      return;
    }
    this.lastName = entry.fullName;
    this.lastGroup = group;
  }

  /** What samples fell on counts for the command's first key; of one without keys it stays for the next. */
  #sample(hot: HotNames, entry: CommandEntry, args: Arguments, table: number, bytes: number): void {
    const [word] = keyWords(entry.spec, args);
    if (word === undefined || word >= args.count) return;
    const { number, firstTable } = this.tenant;
    const name = args.bytes(word).toString('latin1');
    hot.record(number, table - firstTable, name, requestWeight + bytes, bytes);
  }

  #forgetQueue(): void {
    this.queuedBytes = 0;
    this.queuedCommands = 0;
    this.queuedClass = ChargeClass.other;
  }

  /** Charges all that has been run. */
  flush(metering: RedisMetering): void {
    for (let at = 0; this.dirty !== 0; at++) {
      if (this.dirty & (1 << at)) this.#charge(metering, this.groups[at]!);
    }
  }

  #charge(metering: RedisMetering, group: Group): void {
    this.dirty &= ~(1 << (group.entry.id & (groupCount - 1)));
    const { requests, received, sent, work, cost } = group;
    const pricer = group.pricer ?? metering.pricer;
    const account = this.accountIn(metering);
    pricer.price(requests, group.commands, received, sent, work, cost);
    const database = group.table - this.tenant.firstTable;
    pricer.charge(
      account,
      group.kind,
      database,
      requests,
      group.failed,
      received,
      sent,
      work,
      cost,
    );
    if (work.reads !== 0 && pricer.isCached) {
      const isHit = work.misses < requests / 2;
      metering.historyOf(account).observe(work.readBytes / requests, isHit);
    }
    group.charged = requests;
    group.requests = 0;
    group.failed = 0;
    group.commands = 0;
    group.received = 0;
    group.sent = 0;
    group.seen = 0;
    work.reset();
  }

  /**
   * Name and cost of the command before this one; in a pipeline, what those of its name cost on average.
   */
  last(metering: RedisMetering): { name: string; cost: Float64Array } {
    this.flush(metering);
    const { lastName: name, lastGroup: group } = this;
    const cost = new Float64Array(costLayout.length);
    if (group !== undefined) cost.set(group.cost.map((units) => units / group.charged));
    return { name, cost };
  }

  /** Units of the command just run, and of those before it that are not charged yet. */
  recentRu(metering: RedisMetering): number {
    this.flush(metering);
    return this.lastGroup?.cost[costLayout.lru] ?? 0;
  }
}

/** What a request weighs among samples, in bytes, beside those it moves: about what the smallest costs. */
const requestWeight = 256;

/** As they came, frames included; nearly so for one that had to be copied. */
function bytesOf(args: Arguments): number {
  const last = args.count - 1;
  return args.starts[last]! + args.lens[last]! - args.starts[0]! + frameBytes;
}
