// Handling of each command of one connection before it runs: it is looked up, checked against what
// its client may do, queued by MULTI, answered by the read cache, admitted, or rejected.

import type { Arguments } from '../../universal-row/arguments.ts';
import { isWrite } from '../../universal-row/command.ts';
import { refusalOf } from './acl/guard.ts';
import type { ConnectionAdmission } from './admission/connection-admission.ts';
import { type Client, ClientFlag } from './client.ts';
import { clusterRefusal } from './cluster.ts';
import type { CommandExecution } from './command-execution.ts';
import type { CommandEntry } from './commands/registry.ts';
import type { ConnectionHost } from './connection-host.ts';
import type { ReadCache } from './read-cache.ts';
import {
  isHttp,
  noAuthText,
  notWhileSubscribed,
  unknownCommand,
  unknownSubcommand,
  whileSubscribed,
  wrongCount,
} from './rejections.ts';
import type { RespWriter } from './resp-writer.ts';
import type { QueuedCommand, TransactionState } from './transaction.ts';

/** Services the dispatch needs from its connection. */
export interface DispatchOwner extends Client {
  readonly server: ConnectionHost<Client>;
  readonly transaction:
    | {
        readonly queue: readonly QueuedCommand[];
        readonly bytes: number;
        readonly broken: boolean;
        readonly slots: { only: number };
      }
    | undefined;
  commandsRun: number;
  /** The command waits where it is, or does so no more. */
  setBusy(isBusy: boolean): void;
  /** Drops the answer from `mark` on if the client wants none. */
  mute(mark: number): void;
  /** The pause of clients is over. */
  unpause(): void;
}

export class CommandDispatch {
  /** The command that runs, or ran last. */
  lastEntry: CommandEntry | undefined;
  readonly #owner: DispatchOwner;
  readonly #execution: CommandExecution;
  readonly #admission: ConnectionAdmission;
  readonly #transactions: TransactionState;
  /** Waits for the end of CLIENT PAUSE. */
  #pausedCommand: CommandEntry | undefined;

  constructor(
    owner: DispatchOwner,
    execution: CommandExecution,
    admission: ConnectionAdmission,
    transactions: TransactionState,
  ) {
    this.#owner = owner;
    this.#execution = execution;
    this.#admission = admission;
    this.#transactions = transactions;
  }

  /** A command as it was parsed. */
  run(args: Arguments): void {
    const owner = this.#owner;
    const { server } = owner;
    const reply = server.writer;
    const mark = reply.pos;
    owner.commandsRun++;
    let entry = server.registry.lookup(args);
    if (entry === undefined) {
      if (isHttp(args)) {
        // Without an answer, as redis-server does: the lines of a body that a web page has a browser send would run as
        // commands.
        server.httpAttempted(owner);
        owner.destroy();
        return;
      }
    } else if (entry.subcommands !== undefined && args.count > 1) {
      const sub = entry.subcommand(args);
      if (sub === undefined) {
        const isIn = (owner.flags & ClientFlag.unauthenticated) === 0;
        this.#reject(isIn ? unknownSubcommand(entry, args) : noAuthText, entry);
        return;
      }
      entry = sub;
    }
    if (owner.flags !== ClientFlag.none && !this.#mayRun(entry, args, reply)) {
      if (owner.flags >= ClientFlag.replyOff) owner.mute(mark);
      return;
    }
    if (entry === undefined || !entry.takes(args.count)) {
      this.#rejectUnfit(entry, args);
      if (owner.flags >= ClientFlag.replyOff) owner.mute(mark);
      return;
    }
    if (server.pause.until !== 0 && this.#isPaused(entry)) return;
    if (server.cache !== undefined && this.#isCached(server.cache, entry, args, mark)) return;
    if (owner.tenant.limits.isLimited && !this.#admission.admit(entry, mark)) return;
    this.start(entry, mark);
  }

  /** Answers a command that is not there, or that does not take as many words. */
  #rejectUnfit(entry: CommandEntry | undefined, args: Arguments): void {
    if (entry === undefined) {
      this.#reject(unknownCommand(args), entry);
      return;
    }
    const error = wrongCount(entry, args.count);
    if (entry.spec.name === 'exec') {
      this.#owner.endTransaction();
      this.#reject(`EXECABORT Transaction discarded because of: ${error.slice(4)}`, entry);
    } else this.#reject(error, entry);
  }

  #reject(error: string, entry: CommandEntry | undefined): void {
    this.#owner.server.writer.error(error);
    this.#rejected(entry);
  }

  #rejected(entry: CommandEntry | undefined): void {
    if (entry !== undefined) entry.rejectedCalls++;
    const { metering } = this.#owner.server;
    if (metering !== undefined) this.#owner.meter.reject(metering, entry);
    this.#transactions.break();
  }

  /**
   * Checks that only some clients need. False when the command was answered, refused or queued
   * here.
   */
  #mayRun(entry: CommandEntry | undefined, args: Arguments, reply: RespWriter): boolean {
    const { flags } = this.#owner;
    if (flags & ClientFlag.unauthenticated && entry?.noAuth !== true) {
      this.#reject(noAuthText, entry);
      return false;
    }
    // Unknown commands and wrong numbers of words are rejected where they are for all clients.
    if (entry === undefined) return true;
    const isFit = entry.takes(args.count);
    if (flags & ClientFlag.restricted && isFit) {
      const refusal = refusalOf(this.#owner, entry, args);
      if (refusal !== undefined) {
        this.#reject(refusal, entry);
        return false;
      }
    }
    if (flags & ClientFlag.cluster && isFit) {
      const refusal = clusterRefusal(this.#owner, entry, args);
      if (refusal !== undefined) {
        this.#reject(refusal, entry);
        return false;
      }
    }
    if (flags & ClientFlag.subscribed && this.#owner.version < 3) {
      if (!whileSubscribed.has(entry.spec.name)) {
        this.#reject(notWhileSubscribed(entry), entry);
        return false;
      }
    }
    if (!(flags & ClientFlag.multi) || !isFit || entry.immediate) return true;
    const { server, tenant, table } = this.#owner;
    const { scripts } = tenant;
    const busy =
      scripts.running.size === 0
        ? undefined
        : scripts.busyText(table, entry.fullName, server.busyReplyMs);
    const refusal = busy ?? this.#transactions.queue(entry, args, reply);
    if (refusal !== undefined) this.#reject(refusal, entry);
    return false;
  }

  start(entry: CommandEntry, mark: number): void {
    const from = this.#announce(entry, mark);
    this.#execution.run(entry, this.#owner.arguments, this.#owner.server.writer, from);
  }

  startUnlessPaused(entry: CommandEntry, mark: number): void {
    if (this.#owner.server.pause.until === 0 || !this.#isPaused(entry)) this.start(entry, mark);
  }

  /** Shows the command to clients in MONITOR. Returns where the answer begins. */
  #announce(entry: CommandEntry, mark: number): number {
    const { monitors } = this.#owner.server;
    this.lastEntry = entry;
    if (monitors.size === 0) return mark;
    const { transaction } = this.#owner;
    // Queued commands are shown when they run, before EXEC.
    if (entry.spec.name === 'exec' && transaction?.broken === false) {
      for (const queued of transaction.queue) monitors.feed(this.#owner, queued.entry, queued.args);
    }
    monitors.feed(this.#owner, entry, this.#owner.arguments);
    return this.#owner.answer().pos;
  }

  /** Whether the read cache had the answer, and it was given: such a command waits for nothing and costs nothing. */
  #isCached(cache: ReadCache, entry: CommandEntry, args: Arguments, mark: number): boolean {
    const { tick, writer, slowlogMs } = this.#owner.server;
    const answer = cache.answerTo(entry, args, this.#owner.table, tick.lapAt, tick.now);
    if (answer === undefined) return false;
    const from = this.#announce(entry, mark);
    entry.calls++;
    if (answer.bytes === undefined) writer.nil();
    else writer.rawBytes(answer.bytes, 0, answer.bytes.length);
    const spent = tick.lap();
    entry.spentMs += spent;
    this.#owner.meter.free(entry);
    if (spent >= slowlogMs) this.#owner.tenant.slowlog.add(this.#owner, entry, args, spent, 0);
    if (this.#owner.flags >= ClientFlag.replyOff) this.#owner.mute(from);
    if (this.#owner.flags & ClientFlag.tracking) {
      this.#owner.server.changes.hasRun(this.#owner, entry, args);
    }
    return true;
  }

  /** CLIENT PAUSE: the command stays where it is until the pause ends. */
  #isPaused(entry: CommandEntry): boolean {
    const { pause } = this.#owner.server;
    const { name } = entry.spec;
    if (name === 'client') return false;
    const { transaction } = this.#owner;
    if (pause.writesOnly) {
      const queued = name === 'exec' ? transaction?.queue : undefined;
      const writes =
        this.#maySpread(entry, this.#owner.arguments) ||
        queued?.some((one) => this.#maySpread(one.entry, one.args)) === true;
      if (!writes) return false;
    }
    this.#pausedCommand = entry;
    this.#owner.setBusy(true);
    pause.add(this.#owner);
    return true;
  }

  /** Whether the command writes, or has effects that replicas would need. */
  #maySpread({ action, spec }: CommandEntry, args: Arguments): boolean {
    if (!isWrite(action) && !spec.flags.includes('may_replicate')) return false;
    return !this.#owner.tenant.scripts.isReading(spec.name, args);
  }

  unpause(): void {
    const entry = this.#pausedCommand;
    if (entry === undefined || this.#owner.closed) return;
    this.#pausedCommand = undefined;
    this.#admission.admitAgain(entry);
  }

  refuse(text: Buffer, entry: CommandEntry, mark: number): void {
    this.#owner.server.writer.rawBytes(text, 0, text.length);
    this.#rejected(entry);
    if (this.#owner.transaction !== undefined) {
      this.#owner.meter.forgetQueued();
      this.#owner.endTransaction();
    }
    if (this.#owner.flags >= ClientFlag.replyOff) this.#owner.mute(mark);
  }
}
