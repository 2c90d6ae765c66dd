// The gateway's admission stage for one Redis connection: `admit` is called before a command, `charge` after it, and
// `leave` when the connection is closed. Commands of tenants without limits bypass this stage.

import { batchRequest } from '../../../contracts/pod-admission.ts';
import type { QuotaMode } from '../../../contracts/table-properties.ts';
import { ChargeClass } from '../../../request-units/meter.ts';
import type { TenantLimiter } from '../../admission/tenant-limiter.ts';
import type { Client } from '../client.ts';
import type { CommandEntry } from '../commands/registry.ts';
import type { ConnectionHost } from '../connection-host.ts';
import type { QueuedCommand } from '../transaction.ts';
import { CommandWait } from './command-wait.ts';
import { PartitionTicket } from './partition-ticket.ts';
import { partitionKind, type Refused, refusedInARow } from './refusals.ts';

/** Services the admission stage needs from its connection. */
export interface AdmissionOwner extends Client {
  readonly server: ConnectionHost<Client>;
  readonly transaction:
    | { readonly queue: readonly QueuedCommand[]; readonly bytes: number; readonly broken: boolean }
    | undefined;
  /** Bytes that have come so far, and of those the ones that are not run yet. */
  readonly arrivedBytes: number;
  /** Sets whether a command of the connection waits. Its arguments stay where they are meanwhile. */
  setBusy(isBusy: boolean): void;
  /** Runs a command. */
  start(entry: CommandEntry, mark: number): void;
  /** Runs a command that has waited, unless it has to wait for the end of CLIENT PAUSE. */
  startUnlessPaused(entry: CommandEntry, mark: number): void;
  /** Answers a command that is refused, and discards its transaction. */
  refuse(text: Buffer, entry: CommandEntry, mark: number): void;
  /** Takes up the commands that came while the connection was waiting. */
  goOn(): void;
  /** Reports an error of ours, and closes. */
  fail(error: unknown): void;
}

// A pipeline of a limited tenant is charged this often. Otherwise later commands would be admitted by estimated costs
// of the earlier ones.
const chargeEveryMs = 0.5;
// Limit of the bytes that a busy client may send ahead before its socket is no longer read, and limit of these bytes
// over all clients of a tenant that wait for request units.
const readAheadBytes = 256 * 1024;
const waitingAheadBytes = 16 * 1024 * 1024;

export class ConnectionAdmission {
  readonly #owner: AdmissionOwner;
  /** Once a command has waited for request units. */
  #wait: CommandWait | undefined;
  /** Once there was a command that partitions are charged for. */
  #ticket: PartitionTicket | undefined;
  /** Refusals at partition ceilings that are still permitted before the refusal rate is checked again. */
  #refusable = 0;
  #refusalTimer: NodeJS.Timeout | undefined;
  /** Monotonic milliseconds of the last charge. */
  #chargedAt = 0;
  /** Start time of the oldest uncharged command, monotonic milliseconds. */
  #admittedAt: number | undefined;

  constructor(owner: AdmissionOwner) {
    this.#owner = owner;
  }

  /** Monotonic milliseconds since when its command waits for request units, if it does. */
  get waitsSince(): number | undefined {
    return this.#wait?.since;
  }

  /** A command of the connection waits for request units, or to be refused. */
  get isThrottled(): boolean {
    return this.#refusalTimer !== undefined || this.#wait?.limiter !== undefined;
  }

  /** Bytes that the client may send ahead while it is busy. */
  get readAheadBytes(): number {
    const limiter = this.#wait?.limiter;
    return limiter === undefined
      ? readAheadBytes
      : Math.min(readAheadBytes, waitingAheadBytes / limiter.waiting);
  }

  /** More bytes came while a command waits. */
  received(): void {
    if (this.#wait === undefined) return;
    const { arrivedBytes, queryBytes, server } = this.#owner;
    this.#wait.received(arrivedBytes - queryBytes, arrivedBytes, server.tick.lapAt);
  }

  // ---- admit

  /** Whether a command may run now. If not it waits where it is, or was refused. */
  admit(entry: CommandEntry, mark: number): boolean {
    if (!entry.takesUnits && !this.#isFullExec(entry)) return true;
    const { server, tenant } = this.#owner;
    if (server.partitions?.isWatched === true && !this.#hasRoom(entry, mark)) return false;
    const { limits } = tenant;
    const { lapAt } = server.tick;
    if (limits.pass(lapAt)) return true;
    const isDue = limits.limiter?.isDue === true;
    if (isDue || lapAt - this.#chargedAt > chargeEveryMs) this.chargeBatch();
    return this.#isWithinLimits(entry, mark);
  }

  /** If not, the command waits at a limiter or was refused. `admittedBy`: see `TenantLimits`. */
  #isWithinLimits(entry: CommandEntry, mark: number, admittedBy?: TenantLimiter): boolean {
    const owner = this.#owner;
    const { server } = owner;
    const { refusals, limits } = owner.tenant;
    const admission = server.admission!;
    const now = server.tick.lapAt;
    const { commandWaitMs } = admission.rules;
    const isScan = this.#isScan(entry);
    const limiter = limits.admit(now, commandWaitMs, this.#quotaMode(), isScan, admittedBy);
    if (limiter === undefined) {
      this.#admittedAt ??= now;
      return true;
    }
    if (owner.closed) return false;
    this.#wait ??= new CommandWait(
      (waited, by, isAdmitted) => this.#endWait(waited, by, isAdmitted),
      () => this.#quotaMode(),
    );
    const { arrivedBytes, queryBytes } = owner;
    const bytes = { done: arrivedBytes - queryBytes, received: arrivedBytes };
    const isContended = server.podAdmission?.isContended(now) === true;
    const waits = this.#wait.begin(
      { limiter, refusals },
      entry,
      admission,
      bytes,
      now,
      isContended,
    );
    owner.setBusy(waits);
    if (!waits) this.#refuse(limiter, entry, mark);
    return false;
  }

  /** Where scans have a limit, whether the command will be charged as one. */
  #isScan(entry: CommandEntry): boolean {
    const { tenant, transaction } = this.#owner;
    if (tenant.limits.classLimiter === undefined) return false;
    return refusedKind(entry, transaction?.queue).kind === ChargeClass.scan;
  }

  #quotaMode(): QuotaMode {
    const { server, table } = this.#owner;
    return server.router.to(table).quotaMode ?? 'server';
  }

  /** EXEC of a transaction that is about rows. */
  #isFullExec(entry: CommandEntry): boolean {
    const { transaction } = this.#owner;
    return (
      entry.spec.name === 'exec' &&
      transaction !== undefined &&
      !transaction.broken &&
      transaction.queue.some((queued) => queued.entry.run !== undefined)
    );
  }

  /** A command admitted by `limiter` may have to wait at the other one. */
  #endWait(entry: CommandEntry, limiter: TenantLimiter, isAdmitted: boolean): void {
    const owner = this.#owner;
    if (owner.closed) return;
    try {
      owner.setBusy(false);
      const { pos } = owner.answer();
      owner.server.tick.lap();
      if (!isAdmitted) this.#refuse(limiter, entry, pos);
      else {
        this.#admittedAt ??= this.#wait!.begunAt;
        const isAdmittedByAll = this.#isWithinLimits(entry, pos, limiter);
        if (isAdmittedByAll && this.#hasRoom(entry, pos)) owner.startUnlessPaused(entry, pos);
      }
      owner.goOn();
    } catch (error) {
      owner.fail(error);
    }
  }

  #refuse(limiter: TenantLimiter, entry: CommandEntry, mark: number): void {
    const { server, tenant, transaction } = this.#owner;
    const { lapAt } = server.tick;
    this.#wait!.refused(tenant.refusals, lapAt);
    this.#ticket?.end();
    const { refusalCode } = server.admission!.rules;
    const kind = refusedKind(entry, transaction?.queue);
    const text = tenant.refusals.bytes(refusalCode, limiter, kind, limiter.refuse(lapAt));
    this.#owner.refuse(text, entry, mark);
  }

  // ---- ceilings of partitions

  /** Whether all partitions that the command touches have room. If not it was refused. */
  #hasRoom(entry: CommandEntry, mark: number): boolean {
    const owner = this.#owner;
    const { server, tenant, transaction } = owner;
    const { metering, partitions } = server;
    const { limiter } = tenant.limits;
    if (partitions?.isWatched !== true || metering === undefined || limiter === undefined)
      return true;
    this.#ticket ??= new PartitionTicket(partitions.request());
    // Charges from here until the command ends belong to the command.
    owner.meter.flush(metering);
    const commands = transaction?.queue ?? [{ entry, args: owner.arguments }];
    const waitMs = this.#ticket.begin(commands, owner.table, tenant.span, server.tick.lapAt);
    if (waitMs === 0) return true;
    this.#ticket.end();
    if (limiter.rules.dryRun) {
      limiter.counters.partitionWouldRefuse++;
      return true;
    }
    if (!this.#mayRefuse(entry)) return false;
    limiter.counters.partitionRefused++;
    const kind = { kind: partitionKind, isTransaction: transaction !== undefined };
    const { refusalCode } = server.admission!.rules;
    const text = tenant.refusals.bytes(refusalCode, limiter, kind, Math.ceil(waitMs));
    owner.refuse(text, entry, mark);
    return false;
  }

  /**
   * Whether a command may be refused now. If not, it is tried again later: a flood of refusals takes CPU time from other
   * tenants, so these refusals are limited in rate like refusals over the quota.
   */
  #mayRefuse(entry: CommandEntry): boolean {
    const { server, tenant, queryBytes } = this.#owner;
    const { lapAt } = server.tick;
    if (this.#refusable === 0) {
      this.#refusable = queryBytes > 0 ? refusedInARow : 1;
      const isContended = server.podAdmission?.isContended(lapAt) === true;
      const ms = tenant.refusals.reserve(lapAt, isContended, this.#refusable);
      if (ms > 0) {
        this.#tryLater(entry, ms);
        return false;
      }
    }
    this.#refusable--;
    return true;
  }

  #tryLater(entry: CommandEntry, ms: number): void {
    const owner = this.#owner;
    owner.setBusy(true);
    this.#refusalTimer = setTimeout(() => {
      const run = (): void => {
        this.#refusalTimer = undefined;
        if (!owner.closed) this.#tryAgain(entry);
      };
      const { podAdmission } = owner.server;
      const request = batchRequest(owner.tenant.number, run);
      if ((podAdmission?.admit(request, performance.now()) ?? 'admitted') === 'admitted') run();
    }, ms);
  }

  #tryAgain(entry: CommandEntry): void {
    const owner = this.#owner;
    try {
      owner.answer();
      owner.server.tick.lap();
      this.admitAgain(entry);
    } catch (error) {
      owner.fail(error);
    }
  }

  /** A command that was kept where it is may continue, if it is admitted. */
  admitAgain(entry: CommandEntry): void {
    const owner = this.#owner;
    owner.setBusy(false);
    const { pos } = owner.answer();
    if (!owner.tenant.limits.isLimited || this.admit(entry, pos)) owner.start(entry, pos);
    owner.goOn();
  }

  // ---- charge

  /** Charges the commands that ran: at once if the tenant's limits need it, or else later. */
  chargeBatch(): void {
    const { server, tenant, meter } = this.#owner;
    const { metering, tick } = server;
    if (metering === undefined) return;
    const { limits } = tenant;
    if (limits.hasFastPath) {
      meter.endBatch(metering, tick.lapAt);
      return;
    }
    // Refusing takes time, too, which no command accounts for.
    tick.lap();
    const { lapAt } = tick;
    this.#chargedAt = lapAt;
    meter.flush(metering);
    if (limits.limiter?.isDue === true) metering.flushAll();
    limits.settle(lapAt);
    if (this.#admittedAt !== undefined) {
      server.admission!.errorDelay.succeeded(lapAt - this.#admittedAt);
    }
    this.#admittedAt = undefined;
  }

  /** The command that runs is to be charged to partitions. */
  get isCharging(): boolean {
    return this.#ticket !== undefined && this.#ticket.isOpen;
  }

  /** After a command for which `isCharging`. */
  charge(): void {
    const { meter, server } = this.#owner;
    const metering = server.metering!;
    const account = meter.accountIn(metering);
    const before = account.lru;
    meter.flush(metering);
    this.#ticket!.charge(account.lru - before, server.tick.lapAt);
  }

  /** The connection is gone. */
  leave(): void {
    this.#wait?.leave();
    clearTimeout(this.#refusalTimer);
  }
}

/** A transaction is of the most expensive kind that is in it. */
function refusedKind(
  { chargeClass }: CommandEntry,
  queue: readonly QueuedCommand[] | undefined,
): Refused {
  if (queue === undefined) return { kind: chargeClass, isTransaction: false };
  const kinds = queue.map(({ entry }) => entry.chargeClass);
  const order = [ChargeClass.write, ChargeClass.scan, ChargeClass.read];
  return { kind: order.find((kind) => kinds.includes(kind)) ?? chargeClass, isTransaction: true };
}
