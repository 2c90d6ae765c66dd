// Metering of commands, charged to the tenant of their connection. Bytes are counted here, the
// store's work by the pod; request-units/ computes the price.
//
// Pricing takes longer than counting, and a client's commands are much alike. So commands of one
// name that a client sends within a few milliseconds are added up and priced together: sizes count
// by their mean, all else exactly.

import { RowWork } from '../../universal-row/row-work.ts';
import type { Arguments } from '../../universal-row/arguments.ts';
import { ChargeClass, type Meter, type TenantAccount } from '../../request-units/meter.ts';
import { ReadHistory } from '../../request-units/estimate.ts';
import { costLayout, type RowPricer, type RowWorkCounts } from '../../request-units/row-pricer.ts';
import { type HotNames, HotSampler } from '../gateway/hot-names.ts';
import { firstKeyWord } from './commands/key-words.ts';
import type { CommandEntry } from './commands/registry.ts';
import type { AnsweredRun } from './kept-commands.ts';

interface RedisMeteringOptions {
  meter: Meter;
  /** Learns which keys requests are about. */
  hot?: HotNames | undefined;
  /** Pricer of commands that do not concern rows. */
  pricer: RowPricer;
}

export class RedisMetering {
  readonly meter: Meter;
  readonly hot: HotNames | undefined;
  readonly pricer: RowPricer;
  // Bounded as the meter's accounts are.
  private readonly histories = new Map<TenantAccount, ReadHistory>();
  /** Connections with requests that are not charged yet. */
  private readonly uncharged: ConnectionMeter[] = [];

  constructor({ meter, hot, pricer }: RedisMeteringOptions) {
    this.meter = meter;
    this.hot = hot;
    this.pricer = pricer;
  }

  /** History of the tenant's disk reads. */
  historyOf(account: TenantAccount): ReadHistory {
    let history = this.histories.get(account);
    if (history === undefined) this.histories.set(account, (history = new ReadHistory()));
    return history;
  }

  /** For `flushAll`: it will be charged a little later. */
  later(connection: ConnectionMeter): void {
    this.uncharged.push(connection);
  }

  /** Charges all that has been run: to be called each second, and before the meter is read. */
  flushAll(): void {
    const { uncharged } = this;
    for (const connection of uncharged) connection.flushLater(this);
    uncharged.length = 0;
  }

  forget(tenant: number): void {
    const account = this.meter.find(tenant);
    if (account !== undefined) this.histories.delete(account);
    this.meter.forget(tenant);
  }
}

/** Tenant of a connection's commands. */
export interface MeteredTenant {
  readonly number: number;
  /** The first table of its databases. */
  readonly firstTable: number;
}

export const firstTenant: MeteredTenant = { number: 0, firstTable: 0 };

// Protocol bytes of a request outside of its arguments and their separators.
const frameBytes = 10;

/** Counters of requests priced together, and the server's work for them. */
interface CountedWork extends RowWorkCounts {
  requests: number;
  commands: number;
  received: number;
  sent: number;
}

/** Requests of one command and table that are not charged yet. */
class Group {
  readonly work = new RowWork();
  entry: CommandEntry;
  kind: ChargeClass;
  requests = 0;
  failed = 0;
  /** Commands beyond one per request, from transactions. */
  moreCommands = 0;
  received = 0;
  sent = 0;
  table = 0;
  /** Pricer of their executor. */
  pricer: RowPricer | undefined;
  /** Lookups counted when the last request began. */
  seen = 0;
  /** Cost of the requests charged last, together, by `costLayout`; and their number. */
  readonly cost = new Float64Array(costLayout.length);
  charged = 1;
  /** Work priced last, for a client that requests it. */
  priced: CountedWork | undefined;

  constructor(entry: CommandEntry) {
    this.entry = entry;
    this.kind = entry.chargeClass;
  }
}

/** Groups of a client. Commands with different groups may alternate without a charge at each change. A power of two. */
const groupCount = 8;

// Limits of uncharged work of a client that sends without a pause: age, and number of requests.
const chargeEveryMs = 20;
const chargeEveryRequests = 1024;

/** The meter of one connection. */
export class ConnectionMeter {
  private tenant: MeteredTenant = firstTenant;
  private account: TenantAccount | undefined;
  /** By the low bits of the command's id; made when they are needed. */
  private readonly groups: (Group | undefined)[] = [];
  /** A bit for each group in which there is something. */
  private dirty = 0;
  /** Group of the command begun last. */
  private current: Group | undefined;
  private flushedAt = 0;
  private sampler: HotSampler | undefined;
  private isLater = false;
  /** Name of the last command, when it cost nothing; it has no group then. */
  private freeName = '';
  private lastGroup: Group | undefined;
  // A transaction is one request of several commands, whose bytes came before it.
  private queuedBytes = 0;
  private queuedCommands = 0;
  private queuedClass: ChargeClass = ChargeClass.other;
  /** True while the client wants details of the priced work. */
  private keepsWork = false;

  /** Tenant charged for the commands from here on. */
  belongsTo(metering: RedisMetering | undefined, tenant: MeteredTenant): void {
    if (metering !== undefined) this.flush(metering);
    this.tenant = tenant;
    this.account = undefined;
    const hot = metering?.hot;
    this.sampler = hot && new HotSampler(hot);
  }

  /** Account of its tenant. */
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
    let group = this.current;
    if (
      group === undefined ||
      group.entry !== entry ||
      group.table !== table ||
      group.pricer !== pricer
    ) {
      group = this.#takeGroup(metering, entry, table, pricer);
    }
    group.seen = group.work.lookups;
    return group.work;
  }

  #takeGroup(
    metering: RedisMetering,
    entry: CommandEntry,
    table: number,
    pricer: RowPricer | undefined,
  ): Group {
    const at = entry.id & (groupCount - 1);
    const group = (this.groups[at] ??= new Group(entry));
    this.current = group;
    if (group.entry === entry && group.table === table && group.pricer === pricer) return group;
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
    if (group.requests !== 0) this.#charge(metering, group);
    group.kind = this.queuedClass;
    group.seen = group.work.lookups;
    // EXEC begins a group with its queued commands.
    this.current = undefined;
    return group.work;
  }

  /** A command was refused before it was run: it costs nothing. */
  reject(metering: RedisMetering, entry: CommandEntry | undefined): void {
    this.accountIn(metering).reject();
    this.free(entry);
  }

  /** A command was answered at no cost. */
  free(entry: CommandEntry | undefined): void {
    this.freeName = entry?.fullName ?? '';
    this.lastGroup = undefined;
  }

  /** A command was queued for a transaction: it is charged with EXEC. */
  queued(entry: CommandEntry, args: Arguments, answered: number): void {
    this.current = undefined;
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
    const group = this.current;
    if (group === undefined || group.entry !== entry || failed) {
      this.#settleOther(metering, entry, args, table, sent, failed, inTransaction);
      return;
    }
    // Nearly all commands come here, so that every store counts.
    if (group.requests++ === 0) this.dirty |= 1 << (entry.id & (groupCount - 1));
    const received = bytesOf(args);
    group.received += received;
    group.sent += sent;
    const { sampler } = this;
    if (sampler !== undefined) {
      const bytes = received + sent;
      if ((sampler.left -= requestWeight + bytes) < 0) {
        this.#sample(sampler, entry, args, table, bytes);
      }
    }
    if (this.lastGroup !== group) this.lastGroup = group;
  }

  /** As `settle`, for several. */
  settleRun(metering: RedisMetering, run: AnsweredRun, table: number): void {
    const { entry, kept, from, to, sent } = run;
    const group =
      this.current?.entry === entry
        ? this.current
        : this.#otherGroup(metering, entry, table, false, 0)!;
    const count = to - from;
    if (group.requests === 0) this.dirty |= 1 << (entry.id & (groupCount - 1));
    group.requests += count;
    const received = kept.bytesOf(from, to) + count * frameBytes;
    group.received += received;
    group.sent += sent;
    const { sampler } = this;
    if (sampler !== undefined) {
      const mean = (received + sent) / count;
      if ((sampler.left -= Math.round(count * (requestWeight + mean))) < 0) {
        const behind = Math.floor(-sampler.left / (requestWeight + mean));
        const args = kept.words(Math.max(from, to - 1 - behind));
        this.#sample(sampler, entry, args, table, mean);
      }
    }
    this.lastGroup = group;
  }

  /** As `settle`, for a command that failed, that is not about rows, or that ends a transaction. */
  #settleOther(
    metering: RedisMetering,
    entry: CommandEntry,
    args: Arguments,
    table: number,
    sent: number,
    failed: boolean,
    inTransaction: boolean,
  ): void {
    let received = bytesOf(args);
    let moreCommands = 0;
    if (this.queuedCommands !== 0 && !inTransaction) {
      // EXEC, DISCARD, RESET: the queued commands are charged with them.
      moreCommands = this.queuedCommands;
      received += this.queuedBytes;
      this.forgetQueued();
    }
    const group = this.#otherGroup(metering, entry, table, failed, moreCommands);
    // The next command begins a new group.
    this.current = undefined;
    if (group === undefined) return;
    if (group.requests++ === 0) this.dirty |= 1 << (entry.id & (groupCount - 1));
    group.received += received;
    group.sent += sent;
    const { sampler } = this;
    if (sampler !== undefined && entry.run !== undefined) {
      const bytes = received + sent;
      if ((sampler.left -= requestWeight + bytes) < 0) {
        this.#sample(sampler, entry, args, table, bytes);
      }
    }
    if (entry.hidesCost) this.#charge(metering, group);
    else this.lastGroup = group;
  }

  /** Where it counts; nowhere if it failed before anything was done for it. */
  #otherGroup(
    metering: RedisMetering,
    entry: CommandEntry,
    table: number,
    failed: boolean,
    moreCommands: number,
  ): Group | undefined {
    let group = this.groups[entry.id & (groupCount - 1)];
    // Commands that do not concern rows have not begun.
    const isElsewhere = entry.run === undefined && group?.table !== table && moreCommands === 0;
    if (group === undefined || group.entry !== entry || isElsewhere) {
      group = this.#takeGroup(metering, entry, table, undefined);
      group.seen = group.work.lookups;
    }
    if (failed) {
      if (group.work.lookups === group.seen) {
        this.reject(metering, entry);
        return undefined;
      }
      group.failed++;
    }
    group.moreCommands += moreCommands;
    return group;
  }

  /**
   * Samples count for the command's first key; a sample of a command without keys goes to the next
   * command.
   */
  #sample(
    sampler: HotSampler,
    entry: CommandEntry,
    args: Arguments,
    table: number,
    bytes: number,
  ): void {
    const word = firstKeyWord(entry.spec, args);
    if (word === undefined || word >= args.count) return;
    const { number, firstTable } = this.tenant;
    const name = args.bytes(word).toString('latin1');
    sampler.record(number, table - firstTable, name, requestWeight + bytes, bytes);
  }

  /** A transaction was refused as a whole: it costs nothing. */
  forgetQueued(): void {
    this.queuedBytes = 0;
    this.queuedCommands = 0;
    this.queuedClass = ChargeClass.other;
  }

  /**
   * Called after a client's input has run, at `now` in monotonic milliseconds: charges it, now or
   * soon.
   */
  endBatch(metering: RedisMetering, now: number): void {
    if (this.dirty === 0) return;
    const { lastGroup } = this;
    const isDue =
      now - this.flushedAt >= chargeEveryMs ||
      (lastGroup !== undefined && lastGroup.requests >= chargeEveryRequests);
    if (isDue) {
      this.flushedAt = now;
      if (this.sampler !== undefined) this.sampler.catchUp();
      else if (metering.hot !== undefined) this.sampler = new HotSampler(metering.hot);
      this.flush(metering);
    } else if (!this.isLater) {
      this.isLater = true;
      metering.later(this);
    }
  }

  /** Charges a connection that was registered by `later`. */
  flushLater(metering: RedisMetering): void {
    this.isLater = false;
    this.flush(metering);
  }

  /** Charges all that has been run. */
  flush(metering: RedisMetering): void {
    for (let at = 0; this.dirty !== 0; at++) {
      if (this.dirty & (1 << at)) this.#charge(metering, this.groups[at]!);
    }
  }

  #charge(metering: RedisMetering, group: Group): void {
    this.dirty &= ~(1 << (group.entry.id & (groupCount - 1)));
    const { requests, moreCommands, received, sent, work, cost } = group;
    const pricer = group.pricer ?? metering.pricer;
    const account = this.accountIn(metering);
    pricer.price(requests, requests + moreCommands, received, sent, work, cost);
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
    if (this.keepsWork) {
      const commands = requests + moreCommands;
      group.priced = Object.assign({ requests, commands, received, sent }, work);
    }
    group.charged = requests;
    group.requests = 0;
    group.failed = 0;
    group.moreCommands = 0;
    group.received = 0;
    group.sent = 0;
    group.seen = 0;
    work.reset();
  }

  /**
   * Name and cost of the previous command; for one of many that arrived together, the mean cost of
   * those of its name.
   */
  last(metering: RedisMetering): { name: string; cost: Float64Array } {
    this.flush(metering);
    const { lastGroup: group } = this;
    const name = group === undefined ? this.freeName : group.entry.fullName;
    const cost = new Float64Array(costLayout.length);
    if (group !== undefined) cost.set(group.cost.map((units) => units / group.charged));
    return { name, cost };
  }

  /**
   * Name and work of the commands priced last. Recorded from the first call on; that call sees only
   * commands of the same pipeline.
   */
  lastWork(metering: RedisMetering): { name: string; work: CountedWork | undefined } {
    this.keepsWork = true;
    this.flush(metering);
    const { lastGroup: group } = this;
    return { name: group?.entry.fullName ?? this.freeName, work: group?.priced };
  }

  /** Request units of the command just run, and of earlier commands that are not charged yet. */
  recentRu(metering: RedisMetering): number {
    this.flush(metering);
    return this.lastGroup?.cost[costLayout.lru] ?? 0;
  }
}

/**
 * Weight of a request among samples, in bytes, besides the bytes it moves: about the cost of the
 * smallest.
 */
const requestWeight = 256;

/** As they came, frames included; nearly so for one that had to be copied. */
function bytesOf(args: Arguments): number {
  const last = args.count - 1;
  return args.starts[last]! + args.lens[last]! - args.starts[0]! + frameBytes;
}
