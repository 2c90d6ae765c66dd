// Runs the commands of one connection that have passed all checks, on the pod or by their handlers; answers, counts,
// times and charges them. A command that takes its time makes its connection busy.

import type { StepSource } from '../../contracts/step-watcher.ts';
import type { Arguments } from '../../universal-row/arguments.ts';
import {
  Action,
  type Command,
  holdAnswer,
  isWrite,
  type ReadBounds,
} from '../../universal-row/command.ts';
import { CommandError } from '../../universal-row/errors.ts';
import type { Reply } from '../../universal-row/reply.ts';
import type { ConnectionAdmission } from './admission/connection-admission.ts';
import { BlockedCommand, type BlockedOwner } from './blocked-command.ts';
import { type ClientCommand, ClientFlag, type ClientHandler } from './client.ts';
import type { Route } from '../gateway/router.ts';
import { ClientScripts, prepareElsewhere } from './client-scripts.ts';
import type { CommandEntry } from './commands/registry.ts';
import { outOfRequestMemory } from './held-memory.ts';
import type { AnsweredRun } from './kept-commands.ts';
import { librariesChanged } from './node-questions.ts';
import type { Load, ReadCache } from './read-cache.ts';
import { LongAnswer, minus, type RespWriter } from './resp-writer.ts';
import { GroupExecutor } from '../gateway/pods/group-executor.ts';
import type { PlacedPartition } from './partitions/partition-lane.ts';
import { PartitionedTable } from './partitions/partitioned-table.ts';
import type { SentCommands } from './sent-commands.ts';
import { SpreadCommands } from './spread-commands.ts';
import type { TransactionState } from './transaction.ts';
import { noLog } from './unsent-answers.ts';

/** Services the execution needs from its connection. */
export interface ExecutionOwner extends BlockedOwner, StepSource {
  /** The command waits where it is, or does so no more. */
  setBusy(isBusy: boolean): void;
  /** A command waits for a key. */
  blockedBy(command: BlockedCommand): void;
  /** Charges the commands that ran. */
  endBatch(): void;
  /** Drops the answer from `mark` on if the client wants none. */
  mute(mark: number): void;
  /** Takes over bytes of a long answer that are counted, and sends it by parts. */
  keepParts(bytes: number): void;
  releaseParts(): void;
  sendParts(parts: Buffer[]): void;
  /** Commands sent to pods elsewhere. */
  readonly sent: SentCommands;
  readonly spread: SpreadCommands;
  commandsRun: number;
}

// A larger answer is sent by parts.
const largeAnswerBytes = 256 * 1024;
// Strings are made of shorter words only: names, options, patterns, rules.
const maxWordBytes = 64 * 1024;
const longWord = new CommandError(`ERR an argument is longer than ${maxWordBytes} bytes`);
const ofAnyAge: ReadBounds = { maxStalenessMs: Infinity, maxLagEntries: Infinity };
const noReply = ClientFlag.replyOff | ClientFlag.replySkip;

export class CommandExecution {
  /** The command under way on a pod; one object for all commands of the connection. */
  readonly command: Command;
  readonly #owner: ExecutionOwner;
  readonly #admission: ConnectionAdmission;
  readonly #transactions: TransactionState;
  /** Cache load of the GET in progress, if its reply goes to the read cache. */
  #load: Load | undefined;
  /** Once it has run a script. */
  #scripts: ClientScripts | undefined;
  /** Bytes of messages that the command sends to others, beside its answer. */
  #fannedOutBytes = 0;

  constructor(
    owner: ExecutionOwner,
    admission: ConnectionAdmission,
    transactions: TransactionState,
    args: Arguments,
  ) {
    this.#owner = owner;
    this.#admission = admission;
    this.#transactions = transactions;
    this.command = {
      action: Action.fetch,
      name: '',
      transform: noTransform,
      grows: false,
      table: 0,
      span: owner.tenant.span,
      args,
      client: owner.id,
    };
  }

  get scripts(): ClientScripts {
    return (this.#scripts ??= new ClientScripts(this.#owner));
  }

  /** The transform of a command that acts for this client. */
  bound(bind: NonNullable<CommandEntry['bind']>): Command['transform'] {
    return (bind as NonNullable<ClientCommand['bind']>)(this.#owner);
  }

  /** Whether the error that is being answered is one of a command that a script has called, which was counted then. */
  takeScriptError(): boolean {
    return this.#scripts?.takeError() === true;
  }

  countFanOut(bytes: number): void {
    this.#fannedOutBytes += bytes;
  }

  // ---- run

  run(entry: CommandEntry, args: Arguments, reply: RespWriter, mark: number): void {
    entry.calls++;
    const isAlone = this.#owner.server.elsewhere === undefined;
    const isHandled = entry.handle !== undefined && (!isAlone || entry.handlesAlone);
    if (entry.run !== undefined && !isHandled) {
      this.#runOnPod(entry, args, reply, mark);
      return;
    }
    const { server, tenant, table } = this.#owner;
    const { scripts } = tenant;
    if (scripts.running.size !== 0) {
      const busy = scripts.busyText(table, entry.fullName, server.busyReplyMs);
      if (busy !== undefined) {
        this.#refuseBusy(busy, entry, args, reply, mark);
        return;
      }
    }
    const done = this.handle(entry, args, reply, mark);
    if (done instanceof Promise) this.#waitFor(done, entry, undefined);
    else {
      const isOfNoLog = entry.spec.name === 'multi' && server.router.to(table).mayWait;
      if (isOfNoLog) server.tick.evaluated(mark, noLog);
      this.#finish(entry, args, mark);
    }
  }

  #refuseBusy(
    text: string,
    entry: CommandEntry,
    args: Arguments,
    reply: RespWriter,
    mark: number,
  ): void {
    if (entry.spec.name === 'exec') {
      this.#owner.endTransaction();
      reply.error(`EXECABORT Transaction discarded because of: ${text}`);
    } else reply.error(text);
    this.#finish(entry, args, mark);
  }

  #runOnPod(entry: CommandEntry, args: Arguments, reply: RespWriter, mark: number): void {
    const owner = this.#owner;
    const { command } = this;
    const { server, tenant, table } = owner;
    const { metering, cache } = server;
    command.holds = undefined;
    command.onlyHere = command.rights = command.script = undefined;
    command.action = entry.action;
    command.name = entry.fullName;
    command.transform = entry.bind === undefined ? entry.run! : this.bound(entry.bind);
    command.grows = entry.grows;
    command.table = entry.ofLibraries ? tenant.libraryTable : table;
    command.args = args;
    command.usesSpan = entry.usesSpan;
    command.isPeeking = entry.isPeeking || owner.noTouch;
    command.tenant = tenant.number;
    const route = server.router.to(command.table);
    command.work =
      metering === undefined ? undefined : owner.meter.begin(metering, entry, table, route.pricer);
    if (entry.everyPod) {
      const refusal = server.otherPods.refusal(command, route.executor);
      if (refusal !== undefined) {
        reply.error(refusal);
        this.settle(entry, args, mark);
        return;
      }
      command.holds = [];
      const others = server.otherPods.run(command, route.executor);
      if (others !== undefined) {
        this.#runAfter(others, route, entry);
        return;
      }
    }
    if (entry.usesLibraries && server.elsewhere !== undefined) {
      const reading = tenant.scripts.functions.refresh();
      if (reading !== undefined || entry.ofLibraries) {
        prepareElsewhere(owner, entry, command);
        this.#runAfter(reading ?? Promise.resolve(undefined), route, entry);
        return;
      }
    }
    const { group } = route;
    if (route.isReplicated === true) command.bounds = this.#boundsOf(route, entry);
    if (!route.mayWait || group?.isHere === true) {
      if (group !== undefined) this.#prepareMove(entry);
      const done = route.executor.execute(command, reply);
      if (done instanceof Promise) this.#waitForGroup(group, done, entry);
      else {
        // A command on every pod has written to the logs of several groups.
        if (group !== undefined && !entry.everyPod) this.#evaluated(mark, group);
        this.#finish(entry, args, mark);
      }
      return;
    }
    const remote = group === undefined ? route.remote : group.remote;
    const isTracking = (owner.flags & ClientFlag.tracking) !== 0;
    const isRemote = remote !== undefined && group?.mayReadHere(command.bounds) !== true;
    if (isRemote && !isTracking && isSendable(entry)) {
      command.bounds?.session?.moved();
      owner.setBusy(true);
      owner.sent.begin(remote, route.pricer, command, group);
      owner.sent.send(entry, args);
      return;
    }
    if (this.#runOnPartition(route, entry, args, reply, mark)) return;
    this.#prepareMove(entry);
    if (group === undefined && remote !== undefined && command.onlyHere !== undefined) {
      reply.error(command.onlyHere);
      this.settle(entry, args, mark);
      return;
    }
    const isElsewhere = remote !== undefined || group !== undefined;
    if (isTracking) server.changes.readsElsewhere(owner, tenant, entry, args, isElsewhere);
    const own = server.tick.borrowWriter(owner.version);
    own.keeper = owner;
    if (cache !== undefined) this.#loadInto(cache, entry);
    const done = route.executor.execute(command, own);
    if (done instanceof Promise) {
      this.#waitForGroup(group, done, entry, own);
      return;
    }
    if (cache !== undefined) this.hasRun(entry, own);
    owner.append(own);
    this.#finish(entry, args, mark);
  }

  /** The command may run in another process, now or once the leader has changed. */
  #prepareMove(entry: CommandEntry): void {
    const { command } = this;
    if (entry.bind !== undefined) prepareElsewhere(this.#owner, entry, command);
  }

  /** Runs a command on the one partition that it needs; false where it takes the way of the whole table. */
  #runOnPartition(
    route: Route,
    entry: CommandEntry,
    args: Arguments,
    reply: RespWriter,
    mark: number,
  ): boolean {
    const owner = this.#owner;
    if (owner.server.cache !== undefined) return false;
    const place = partitionOf(route, entry, args);
    if (place === undefined) return false;
    const { command } = this;
    const group = place.pod as GroupExecutor;
    if (group.isHere) {
      command.table = place.number;
      command.usesSpan = false;
      const done = group.execute(command, reply);
      if (done instanceof Promise) this.#waitForGroup(group, done, entry);
      else {
        this.#evaluated(mark, group);
        this.#finish(entry, args, mark);
      }
      return true;
    }
    const { remote } = group;
    const isOther = remote !== undefined && !group.mayReadHere(command.bounds);
    if (!isOther || owner.flags >= ClientFlag.replyOff) return false;
    command.bounds?.session?.moved();
    owner.setBusy(true);
    owner.spread.begin(place, remote, route.pricer, command, entry, epochOf(route));
    return true;
  }

  /** Messages of a script leave with the answer, whatever becomes of what it wrote. */
  #evaluated(mark: number, { lastRun }: GroupExecutor): void {
    if (this.#scripts?.hasMessages !== true) this.#owner.server.tick.evaluated(mark, lastRun);
  }

  /** Staleness bounds of a read: reads before EXEC see the latest state. */
  #boundsOf(route: Route, entry: CommandEntry): ReadBounds | undefined {
    const { readMode: mode, readsAnywhere } = this.#owner;
    if (mode === undefined && !readsAnywhere && route.bounds === undefined) return undefined;
    const isRead = !isWrite(entry.action) && entry.bind === undefined && entry.blocks === undefined;
    // Clients that watch or cache keys are notified of committed changes, and must then see them.
    const isTold =
      this.#transactions.watchedKeys > 0 || (this.#owner.flags & ClientFlag.tracking) !== 0;
    if (!isRead || isTold) {
      mode?.session?.moved();
      return undefined;
    }
    if (mode !== undefined) return mode.bounds;
    return readsAnywhere ? ofAnyAge : route.bounds;
  }

  /** Runs a command after other pods have run their part of it. If one of them fails, the command fails with that error. */
  #runAfter(others: Promise<string | undefined>, route: Route, entry: CommandEntry): void {
    const owner = this.#owner;
    const own = owner.server.tick.borrowWriter(owner.version);
    own.keeper = owner;
    this.command.holds ??= [];
    const done = others.then(async (error) => {
      if (error === undefined) {
        const answer = await route.executor.execute(this.command, own);
        if (entry.ofLibraries) await librariesChanged(owner);
        return answer;
      }
      own.error(error);
    });
    this.#waitFor(done, entry, own);
  }

  /**
   * Sends a command before the earlier ones to the same pods are answered; false when it has to wait for these answers. Only
   * commands that need none of the checks between parsing and execution are sent ahead.
   */
  sendAhead(args: Arguments, sent: SentCommands | SpreadCommands): boolean {
    const owner = this.#owner;
    const { server, tenant } = owner;
    const entry = server.registry.lookup(args);
    const mayRun =
      entry !== undefined &&
      isSendable(entry) &&
      entry.takes(args.count) &&
      owner.flags === ClientFlag.none &&
      server.pause.until === 0 &&
      server.cache === undefined &&
      server.monitors.size === 0 &&
      !tenant.limits.isLimited;
    if (!mayRun) return false;
    const route = server.router.to(owner.table);
    if (sent instanceof SpreadCommands) {
      const place = partitionOf(route, entry, args);
      if (place === undefined || !sent.send(place, route.pricer, entry, args, epochOf(route)))
        return false;
    } else {
      if (!sent.mayFollow(route, entry, owner.table, owner.version)) return false;
      sent.send(entry, args);
    }
    owner.commandsRun++;
    entry.calls++;
    return true;
  }

  settleRun(run: AnsweredRun): void {
    const { entry, kept, from, to, mark } = run;
    const owner = this.#owner;
    const { server } = owner;
    const { tick } = server;
    const count = to - from;
    const inAll = tick.lap();
    const spent = inAll / count;
    if (inAll >= server.stepLimitMs) server.steps!.ended(tick.lapAt - inAll, tick.lapAt, owner);
    entry.spentMs += inAll;
    entry.latencies.add(spent, count);
    if (spent >= server.latency.thresholdMs) this.#addLatency(entry, spent);
    const { metering } = server;
    if (metering !== undefined) {
      owner.meter.settleRun(metering, run, owner.table);
      if (this.#admission.isCharging) this.#admission.charge();
    }
    if (spent >= server.slowlogMs) this.#addSlow(entry, kept.words(to - 1), spent);
    if (owner.flags >= ClientFlag.replyOff) this.#settleFlags(entry, kept.words(to - 1), mark);
    if (this.#scripts !== undefined) {
      this.#scripts.flush();
      owner.answer();
    }
  }

  /** A command that has run, and may have to wait for a key. */
  #finish(entry: CommandEntry, args: Arguments, mark: number): void {
    const { server, closed } = this.#owner;
    const mayBlock = entry.blocks !== undefined && server.writer.pos === mark && !closed;
    if (mayBlock && this.#block(entry, args) !== undefined) return;
    this.settle(entry, args, mark);
  }

  /** As `#block`, of a command that has found nothing some time ago. */
  #blockLate(entry: CommandEntry): boolean {
    const blocked = this.#block(entry, this.#owner.arguments);
    if (blocked !== undefined) this.#owner.server.blocked.lookAgain(blocked);
    return blocked !== undefined;
  }

  /** Has the command wait for its keys; undefined when there is no memory for that, and it was answered. */
  #block(entry: CommandEntry, args: Arguments): BlockedCommand | undefined {
    const owner = this.#owner;
    const blocked = BlockedCommand.begin(owner, entry, args);
    if (blocked === undefined) {
      owner.answer().error(outOfRequestMemory);
      return undefined;
    }
    owner.blockedBy(blocked);
    return blocked;
  }

  handle(
    entry: CommandEntry,
    args: Arguments,
    reply: RespWriter,
    mark: number,
  ): void | Promise<Reply | void> {
    try {
      if (entry.boundsWords && hasLongWord(args)) throw longWord;
      return (entry.handle as ClientHandler)(this.#owner, args, reply);
    } catch (error) {
      reply.rollback(mark);
      this.writeError(error, reply);
    }
  }

  /** Replies the error thrown by a handler. */
  writeError(error: unknown, reply: RespWriter): void {
    if (error instanceof CommandError) reply.error(error.message);
    else {
      const { server, lastCommand } = this.#owner;
      server.report('error', `command ${lastCommand} failed`, { err: error });
      reply.error('ERR internal error');
    }
  }

  // ---- the read cache

  /** The answer goes to the read cache, if the command is a GET of such a table. */
  #loadInto(cache: ReadCache, entry: CommandEntry): void {
    const { command } = this;
    this.#load = cache.load(entry, command.args, command.table, this.#owner.server.tick.lapAt);
    if (this.#load !== undefined) command.transform = this.#load.transform;
  }

  /** The command has been run by a pod that may keep tables of the read cache. */
  hasRun(entry: CommandEntry, answer: RespWriter): void {
    const { server } = this.#owner;
    const load = this.#load;
    this.#load = undefined;
    load?.answered(answer, server.tick.lapAt);
    this.#forgetWritten(entry);
  }

  #forgetWritten(entry: CommandEntry): void {
    const { args, table, span } = this.command;
    this.#owner.server.cache?.wrote(entry, args, table, span);
  }

  // ---- counts and charges

  /** Counts and times a command that has answered, and drops an answer that the client does not want. */
  settle(
    entry: CommandEntry,
    args: Arguments,
    mark: number,
    writer = this.#owner.server.writer,
  ): void {
    const owner = this.#owner;
    const { server } = owner;
    const { tick } = server;
    const spent = tick.lap();
    if (spent >= server.stepLimitMs) server.steps!.ended(tick.lapAt - spent, tick.lapAt, owner);
    entry.spentMs += spent;
    entry.latencies.add(spent);
    if (spent >= server.latency.thresholdMs) this.#addLatency(entry, spent);
    const failed = mark < writer.pos && writer.buf[mark] === minus;
    if (failed) entry.failedCalls++;
    if (server.metering !== undefined) this.charge(entry, args, writer.pos - mark, failed);
    if (spent >= server.slowlogMs) this.#addSlow(entry, args, spent);
    if (owner.flags >= ClientFlag.replyOff) this.#settleFlags(entry, args, mark);
    if (this.#scripts !== undefined) {
      this.#scripts.flush();
      owner.answer();
    }
  }

  /** Handles flags that few clients set. */
  #settleFlags(entry: CommandEntry, args: Arguments, mark: number): void {
    const owner = this.#owner;
    owner.mute(mark);
    if (owner.flags & ClientFlag.tracking) owner.server.changes.hasRun(owner, entry, args);
  }

  charge(entry: CommandEntry, args: Arguments, sent: number, failed: boolean): void {
    const owner = this.#owner;
    const { metering } = owner.server;
    if (metering === undefined) return;
    const inTransaction = this.#transactions.current !== undefined;
    const out = sent + this.#fannedOutBytes;
    this.#fannedOutBytes = 0;
    owner.meter.settle(metering, entry, args, owner.table, out, failed, inTransaction);
    if (this.#admission.isCharging) this.#admission.charge();
  }

  #addLatency(entry: CommandEntry, spentMs: number): void {
    const { latency, now } = this.#owner.server;
    const isFast = entry.spec.flags.includes('fast');
    latency.add(isFast ? 'fast-command' : 'command', spentMs, now);
  }

  #addSlow(entry: CommandEntry, args: Arguments, spentMs: number): void {
    const owner = this.#owner;
    const { metering } = owner.server;
    const ru = metering === undefined ? 0 : owner.meter.recentRu(metering);
    owner.tenant.slowlog.add(owner, entry, args, spentMs, ru);
  }

  // ---- commands that take their time

  /** As `#waitFor`. The executors of a command of a group add all that its answer has to wait for to `Command.holds`. */
  #waitForGroup(
    group: GroupExecutor | undefined,
    done: Promise<Reply | void>,
    entry: CommandEntry,
    own?: RespWriter,
  ): void {
    this.command.hasAllHolds = group !== undefined;
    this.#waitFor(done, entry, own);
  }

  /** The command answers later, into `own` or through `answer`. */
  #waitFor(done: Promise<Reply | void>, entry: CommandEntry, own: RespWriter | undefined): void {
    const owner = this.#owner;
    owner.setBusy(true);
    const { command } = this;
    command.holds ??= [];
    const startedAt = performance.now();
    done
      .catch((error: unknown) => {
        owner.server.report('error', `command ${entry.fullName} failed`, { err: error });
        owner.answer().error('ERR internal error');
      })
      .then((answer) => {
        const isKnown = holdAnswer(command) && this.#scripts?.hasMessages !== true;
        if (answer instanceof LongAnswer) this.#answerLong(entry, answer, own, startedAt, isKnown);
        else this.#answerLater(entry, own, startedAt, isKnown);
      })
      .catch((error: unknown) => owner.fail(error));
  }

  /** `isKnown`: no log of this process can lose what the answer depends on. */
  #answerLater(
    entry: CommandEntry,
    own: RespWriter | undefined,
    startedAt: number,
    isKnown: boolean,
  ): void {
    const owner = this.#owner;
    const { server } = owner;
    owner.setBusy(false);
    if (own !== undefined) this.hasRun(entry, own);
    this.#scripts?.flush();
    if (owner.closed) {
      if (own !== undefined) server.tick.giveBackWriter(own);
      this.charge(entry, owner.arguments, 0, false);
      owner.endBatch();
      return;
    }
    const writer = owner.answer();
    const mark = writer.pos;
    if (own !== undefined) {
      if (own.pos === 0 && entry.blocks !== undefined) {
        server.tick.giveBackWriter(own);
        if (this.#blockLate(entry)) return;
      } else owner.append(own);
      if (isKnown) server.tick.evaluated(mark, noLog);
    }
    const failed = writer.pos > mark && writer.buf[mark] === minus;
    this.#settleLater(entry, writer.pos - mark, failed, startedAt);
    if (owner.flags >= ClientFlag.replyOff) this.#settleFlags(entry, owner.arguments, mark);
    owner.goOn();
  }

  #settleLater(entry: CommandEntry, sent: number, failed: boolean, startedAt: number): void {
    const owner = this.#owner;
    const spent = performance.now() - startedAt;
    entry.spentMs += spent;
    entry.latencies.add(spent);
    if (spent >= owner.server.latency.thresholdMs) this.#addLatency(entry, spent);
    if (failed) entry.failedCalls++;
    this.charge(entry, owner.arguments, sent, failed);
    if (spent >= owner.server.slowlogMs && !owner.closed) {
      this.#addSlow(entry, owner.arguments, spent);
    }
  }

  /** A long command has answered, or one that waited for one. */
  #answerLong(
    entry: CommandEntry,
    answer: LongAnswer,
    own: RespWriter | undefined,
    startedAt: number,
    isKnown: boolean,
  ): void {
    const owner = this.#owner;
    const { server } = owner;
    const { length } = answer;
    owner.setBusy(false);
    this.#scripts?.flush();
    this.#load?.answeredAtLength(server.tick.lapAt);
    this.#load = undefined;
    if (own !== undefined) server.tick.giveBackWriter(own);
    if (entry.run !== undefined) this.#forgetWritten(entry);
    owner.keepParts(answer.kept);
    this.#settleLater(entry, length, answer.firstByte === minus, startedAt);
    if (owner.closed) {
      owner.endBatch();
      return;
    }
    if (length === 0 && entry.blocks !== undefined) {
      if (!this.#blockLate(entry)) owner.goOn();
      return;
    }
    const { pos: mark } = owner.answer();
    const isMuted = (owner.flags & noReply) !== 0;
    const parts = answer.take();
    const isLarge = length > largeAnswerBytes;
    if (!isLarge) {
      for (const part of parts) server.writer.rawBytes(part, 0, part.length);
      if (isKnown) server.tick.evaluated(mark, noLog);
    }
    if (owner.flags >= ClientFlag.replyOff) this.#settleFlags(entry, owner.arguments, mark);
    const goesByParts = isLarge && !isMuted;
    if (goesByParts) owner.sendParts(parts);
    else owner.releaseParts();
    // Answers that come next do not wait until the log has taken what it wrote.
    if (isWrite(entry.action) && !isKnown) server.tick.endEarly();
    if (!goesByParts) owner.goOn();
  }
}

/** The partition of a divided table that a command needs, if it is one of a group and keys say so. */
function partitionOf(
  { executor }: Route,
  entry: CommandEntry,
  args: Arguments,
): PlacedPartition | undefined {
  if (!(executor instanceof PartitionedTable) || !isSendable(entry)) return undefined;
  const place = executor.partitionFor(entry, args);
  return place?.pod instanceof GroupExecutor ? place : undefined;
}

/** Of the map of a table of several partitions. */
function epochOf({ executor }: Route): number {
  return (executor as PartitionedTable).epoch;
}

/** Whether a command can be sent to pods elsewhere while those before it have yet to be answered. */
function isSendable(entry: CommandEntry): boolean {
  return (
    entry.run !== undefined &&
    entry.handle === undefined &&
    entry.bind === undefined &&
    entry.blocks === undefined &&
    entry.subcommands === undefined &&
    !entry.everyPod &&
    !entry.ofLibraries &&
    !entry.hidesCost
  );
}

function noTransform(): void {
  throw new RangeError('a command without a transform');
}

function hasLongWord({ count, lens }: Arguments): boolean {
  for (let i = 1; i < count; i++) if (lens[i]! > maxWordBytes) return true;
  return false;
}
