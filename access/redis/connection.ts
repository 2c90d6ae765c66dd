// One client's connection: bytes in, commands in order, replies out in the same order.
//
// Commands run as they are parsed, many of them in one tick of the event loop. A command that has to wait (a blocking
// pop, a row being read from disk) makes its connection busy: commands behind it stay in the parser, and the other
// connections go on.

import type { Socket } from 'node:net';
import { batchRequest, largeWorkBytes, type PodRequest } from '../../contracts/pod-admission.ts';
import type { StepInfo, StepSource } from '../../contracts/step-watcher.ts';
import { Arguments } from '../../universal-row/arguments.ts';
import type { Command, TableSpan } from '../../universal-row/command.ts';
import type { Reply } from '../../universal-row/reply.ts';
import type { Principal } from '../gateway/principals.ts';
import { type AdmissionOwner, ConnectionAdmission } from './admission/connection-admission.ts';
import type { BlockedCommand } from './blocked-command.ts';
import type { Client } from './client.ts';
import { ClientConnection } from './client-connection.ts';
import type { ClientScripts } from './client-scripts.ts';
import { CommandDispatch, type DispatchOwner } from './command-dispatch.ts';
import { CommandExecution, type ExecutionOwner } from './command-execution.ts';
import { fullReadBytes, type TickClient, tickOutputBytes } from './command-tick.ts';
import type { CommandEntry } from './commands/registry.ts';
import type { ConnectionHost } from './connection-host.ts';
import { copiedBytes } from './copied-arguments.ts';
import { outOfRequestMemory } from './held-memory.ts';
import type { AnsweredRun } from './kept-commands.ts';
import {
  OutOfRequestMemory,
  ProtocolError,
  RespParser,
  unauthenticatedLimits,
} from './resp-parser.ts';
import type { RespWriter } from './resp-writer.ts';
import { SentCommands } from './sent-commands.ts';
import { SpreadCommands } from './spread-commands.ts';
import { type TransactionOwner, TransactionState } from './transaction.ts';
import { noLog } from './unsent-answers.ts';

// A power of 2. After so many commands a pipeline checks whether its time slice is over.
const commandsBetweenLooks = 16;
/** With more input than this, a client gets a tick of its own, so that other clients do not wait for its log writes. */
const aloneBytes = 1024 * 1024;

export class Connection
  extends ClientConnection<Connection>
  implements
    Client,
    StepSource,
    TickClient,
    AdmissionOwner,
    DispatchOwner,
    ExecutionOwner,
    TransactionOwner
{
  /** A handler is being run by EXEC, which does not wait for it. */
  isExecuting = false;
  readonly #parser: RespParser;
  readonly #admission: ConnectionAdmission;
  readonly #dispatch: CommandDispatch;
  readonly #execution: CommandExecution;
  readonly #transactions: TransactionState;
  readonly #batch: { -readonly [Key in keyof PodRequest]: PodRequest[Key] };
  #args = new Arguments();
  #blocked: BlockedCommand | undefined;
  #lastActiveAt: number;
  #arrivedBytes = 0;
  /** Bytes of its words that are counted while its command waits. */
  #keptBytes = 0;
  /** Bytes answered to the last batch. */
  #repliedBytes = 0;
  #isBusy = false;
  #sent: SentCommands | undefined;
  #spread: SpreadCommands | undefined;
  /** A command in `#args` waits for the answers to those that were sent. */
  #isHeld = false;
  #heldError: unknown;
  /** Its batch is in the pod's CPU scheduler. */
  #isQueued = false;
  /** The connection resumes in the next tick: this one has enough to send. */
  #resumes = false;

  constructor(
    server: ConnectionHost<Connection>,
    socket: Socket,
    id: number,
    now: number,
    principal: Principal | undefined,
  ) {
    super(server, socket, id, now, principal);
    this.#lastActiveAt = now;
    this.#parser = new RespParser(unauthenticatedLimits, this.held);
    this.#admission = new ConnectionAdmission(this);
    this.#transactions = new TransactionState(this);
    this.#execution = new CommandExecution(this, this.#admission, this.#transactions, this.#args);
    this.#dispatch = new CommandDispatch(
      this,
      this.#execution,
      this.#admission,
      this.#transactions,
    );
    this.#batch = batchRequest(0, () => {
      this.#isQueued = false;
      this.goOn();
    });
    this.beginSession(principal);
  }

  // ---- session

  protected get client(): Connection {
    return this;
  }

  protected get listener(): Connection {
    return this;
  }

  protected identityChanged(span: TableSpan): void {
    const isIn = this.principal !== undefined;
    this.#parser.limits = isIn ? this.server.limits : unauthenticatedLimits;
    this.#execution.command.span = span;
  }

  // ---- in

  receive(chunk: Buffer, length: number): void {
    this.bytesIn += length;
    this.#arrivedBytes += length;
    const { podAdmission, tick } = this.server;
    this.#lastActiveAt = tick.now;
    if (this.closing) return;
    try {
      this.#parser.push(chunk, length, this.#args);
    } catch (error) {
      this.#protocolError(error);
      return;
    }
    // Copying large reads takes time of the tick as commands do.
    if (length >= largeWorkBytes) tick.lap();
    if (!this.#mayGoOn() || this.output.isStalled) {
      this.#detach();
      this.#admission.received();
      if (this.#parser.pending > this.#admission.readAheadBytes) this.output.pause();
      else if (this.isHeldBack || this.#isReadEnough(length)) this.#readLater();
      return;
    }
    if (
      podAdmission !== undefined &&
      podAdmission.admit(this.#nextBatch(), tick.lapAt) !== 'admitted'
    ) {
      this.#isQueued = true;
      this.#detach();
      return;
    }
    if (this.#parser.awaitsMore) {
      this.#detach();
      if (this.#parser.isFull || this.#isReadEnough(length)) this.#readLater();
      return;
    }
    if (tick.isOverFor(this.#parser.pending)) {
      // Other clients have filled this tick, or there was more than one read of this one.
      this.#detach();
      this.#resume(this.#parser.pending);
      // What comes behind it would only be copied.
      if (length >= fullReadBytes) this.#readLater();
      return;
    }
    this.#runAll();
    // The chunk's memory is reused for the next connection: bytes still needed are copied.
    if (this.#isBusy && !this.#isSending && !this.#parser.mayLend(this.#args)) {
      this.#args = this.#args.copy();
      this.#execution.command.args = this.#args;
      this.#keptBytes = copiedBytes(this.#args);
      this.held.add('request', this.#keptBytes);
    }
    this.#detach();
    // A part of a long command: reading all that has come of it may take long, too.
    if (this.#isReadEnough(length)) this.#readLater();
  }

  /** Another read of the same socket would follow at once, and the tick has no time left for it. */
  #isReadEnough(length: number): boolean {
    return length >= fullReadBytes && this.server.tick.isOverFor(Infinity);
  }

  /** The chunk's memory is about to be used for the next connection. */
  #detach(): void {
    try {
      this.#parser.detach(this.#args);
    } catch (error) {
      this.#protocolError(error);
    }
  }

  /** Received input to run, as a request to the pod's CPU scheduler. */
  #nextBatch(): PodRequest {
    const batch = this.#batch;
    batch.tenant = this.tenant.number;
    batch.isLarge = this.#parser.pending > largeWorkBytes || this.#repliedBytes > largeWorkBytes;
    return batch;
  }

  #isSliceOver(): boolean {
    const { podAdmission } = this.server;
    return (
      podAdmission !== undefined &&
      this.#parser.pending > 0 &&
      podAdmission.isSliceOver(performance.now())
    );
  }

  /** The client is throttled, or other tenants have the thread: its socket is read more slowly. */
  get isHeldBack(): boolean {
    return this.#isQueued || this.#admission.isThrottled;
  }

  #mayGoOn(): boolean {
    return !(this.#isBusy || this.#isQueued || this.#resumes || this.output.hasParts);
  }

  #resume(pendingBytes?: number): void {
    this.#resumes = true;
    this.server.tick.resume(this, pendingBytes);
  }

  /** Runs the parsed commands until there is no more input or the connection must wait. */
  #runAll(): void {
    const { server } = this;
    const { tick, blocked } = server;
    const parser = this.#parser;
    const isAlone = parser.pending > aloneBytes && !parser.awaitsMore;
    // Answers to other clients do not wait for the large log write of this one.
    if (isAlone) tick.endEarly();
    let args = this.#args;
    const from = tick.open(this).pos;
    try {
      while (parser.next(args)) {
        this.#dispatch.run(args);
        if (blocked.isReady) {
          blocked.serve();
          tick.open(this);
        }
        if (this.#isBusy || this.closing || this.output.isStalled || this.closed) break;
        if (tick.writer.pos > tickOutputBytes) {
          // Enough for one tick: send it first, and let the others have theirs.
          this.#resume();
          break;
        }
        if ((this.commandsRun & (commandsBetweenLooks - 1)) === 0) {
          // Refused and queued commands take time, too, which is not measured elsewhere.
          tick.lap();
          if (this.#isSliceOver()) {
            this.#isQueued = true;
            server.podAdmission!.requeue(this.#nextBatch());
            break;
          }
          if (tick.isOverFor(Infinity) && parser.pending > 0) {
            this.#resume();
            break;
          }
        }
        args = this.#args;
      }
    } catch (error) {
      this.#protocolError(error);
    }
    if (this.#isBusy) {
      // The command waits for a key or another pod. Its time until now counts in this tick.
      tick.lap();
      this.#sendAhead();
    }
    this.#repliedBytes = tick.writer.pos - from;
    this.#endRun();
    if (isAlone) tick.endEarly();
  }

  #endRun(): void {
    const parser = this.#parser;
    this.endBatch();
    if (this.#keptBytes !== 0) {
      this.held.release('request', this.#keptBytes);
      this.#keptBytes = 0;
    }
    if (this.#isBusy && !this.#isSending) parser.lend();
    else {
      parser.release();
      if (!parser.isWithinCommand) this.#args.shrink();
    }
  }

  endBatch(): void {
    this.#admission.chargeBatch();
  }

  // ---- commands sent to pods elsewhere

  /** Commands whose answers have yet to come, once there was one. */
  get sent(): SentCommands {
    return (this.#sent ??= new SentCommands(this));
  }

  /** The same on tables of several partitions. */
  get spread(): SpreadCommands {
    return (this.#spread ??= new SpreadCommands(this, this.#execution.command));
  }

  /** Whichever of the two has outstanding replies. */
  get #ahead(): SentCommands | SpreadCommands | undefined {
    if (this.#sent?.isWaiting === true) return this.#sent;
    return this.#spread?.isWaiting === true ? this.#spread : undefined;
  }

  /** No input is buffered: all commands so far were sent, and their answers are outstanding. */
  get #isSending(): boolean {
    return this.#ahead !== undefined && !this.#isHeld;
  }

  /** Sends commands behind those that were sent, as far as they may be. */
  #sendAhead(): void {
    const sent = this.#ahead;
    if (sent === undefined) return;
    try {
      while (this.#parser.next(this.#args)) {
        if (this.#execution.sendAhead(this.#args, sent)) continue;
        this.#isHeld = true;
        return;
      }
    } catch (error) {
      this.#heldError = error;
    }
  }

  sentAreAnswered(): void {
    this.setBusy(false);
    if (this.closed) return;
    if (this.#heldError !== undefined) {
      this.#protocolError(this.#heldError);
      return;
    }
    if (this.#isHeld) {
      this.#isHeld = false;
      this.answer();
      this.server.tick.lap();
      this.#dispatch.run(this.#args);
      if (this.#ahead !== undefined) {
        this.#sendAhead();
        this.#endRun();
        return;
      }
    }
    this.goOn();
  }

  #protocolError(error: unknown): void {
    const reply = this.answer();
    if (error instanceof OutOfRequestMemory) reply.error(outOfRequestMemory);
    else if (error instanceof ProtocolError) reply.error(`ERR ${error.message}`);
    else {
      this.server.report('error', 'a connection failed', { err: error, client: this.address });
      reply.error('ERR internal error');
    }
    this.closeAfterAnswer();
  }

  // ---- order

  start(entry: CommandEntry, mark: number): void {
    this.#dispatch.start(entry, mark);
  }

  startUnlessPaused(entry: CommandEntry, mark: number): void {
    this.#dispatch.startUnlessPaused(entry, mark);
  }

  refuse(text: Buffer, entry: CommandEntry, mark: number): void {
    this.#dispatch.refuse(text, entry, mark);
  }

  unpause(): void {
    this.#dispatch.unpause();
  }

  setBusy(isBusy: boolean): void {
    this.#isBusy = isBusy;
    if (!isBusy) this.#lastActiveAt = this.server.tick.now;
  }

  goOn(): void {
    if (this.closed || this.closing || !this.#mayGoOn()) return;
    const { blocked, tick } = this.server;
    tick.lap();
    if (blocked.isReady) blocked.serve();
    this.#runAll();
    // Only part of a command is left of the input read ahead; it waits for the rest.
    const isDone = !(this.#isBusy || this.#isQueued || this.#resumes || this.output.isStalled);
    if (this.output.isPaused && isDone) this.output.unpause();
  }

  /** Goes on with the pipeline of a client that was served. */
  resumeNow(): void {
    this.#resumes = false;
    if (!this.output.hasParts) this.goOn();
    else if (!this.output.isStalled) this.#sendPart();
  }

  blockedBy(command: BlockedCommand): void {
    this.#blocked = command;
    this.#isBusy = true;
  }

  unblocked(): void {
    this.#blocked = undefined;
    this.#isBusy = false;
  }

  get isBlocked(): boolean {
    return this.#blocked !== undefined;
  }

  unblockNow(withError: boolean): boolean {
    return this.#blocked?.unblockNow(withError) === true;
  }

  // ---- long answers

  sendParts(parts: Buffer[]): void {
    this.output.sendByParts(parts);
    this.#sendPart();
  }

  /** Sends a part of a long answer, the next one in the next tick, as the client takes them. */
  #sendPart(): void {
    const part = this.closed ? undefined : this.output.nextPart();
    if (part === undefined) {
      this.output.dropParts();
      this.goOn();
      return;
    }
    this.answer().rawBytes(part, 0, part.length);
    this.#resume();
  }

  protected unstalled(): void {
    if (this.output.hasParts) {
      if (!this.#resumes) this.#sendPart();
      return;
    }
    this.output.unpause();
    if (this.#isBusy || this.#resumes) return;
    // Sockets of many clients may have taken their answers in one round.
    const { pending } = this.#parser;
    if (pending > 0 && this.server.tick.isOverFor(pending)) this.#resume(pending);
    else this.goOn();
  }

  // ---- reading

  /**
   * Input is only buffered. Reading takes time, in which other connections may have become ready.
   */
  #readLater(): void {
    if (this.output.isPaused) return;
    this.output.pause();
    this.server.tick.readLater(this);
  }

  readAgain(): void {
    if (this.closed) return;
    if (this.closing) {
      // Its last answer could be lost if input that nothing reads were there at the end.
      this.output.unpause();
      return;
    }
    if (this.output.isStalled) return;
    const parser = this.#parser;
    // A command that is still to come whole is read to its end.
    const isNeeded = parser.awaitsMore && this.#mayGoOn();
    if (!isNeeded && parser.pending > this.#admission.readAheadBytes) return;
    try {
      // Copies for one client in each round of the event loop: many clients may be sending long strings.
      parser.makeRoom(this.#args);
    } catch (error) {
      this.#protocolError(error);
    }
    this.output.unpause();
  }

  // ---- transactions

  get transaction(): TransactionState['current'] {
    return this.#transactions.current;
  }

  get watchedKeys(): number {
    return this.#transactions.watchedKeys;
  }

  beginTransaction(): void {
    this.#transactions.begin();
  }

  endTransaction(): void {
    this.#transactions.end();
  }

  executeTransaction(reply: RespWriter): void | Promise<Reply | void> {
    return this.#transactions.execute(reply);
  }

  watchKeys(args: Arguments): boolean {
    return this.#transactions.watchKeys(args);
  }

  watchHasBegun(args: Arguments): Promise<unknown> | undefined {
    return this.#transactions.watchHasBegun(args);
  }

  unwatch(): void {
    this.#transactions.unwatch();
  }

  handleQueued(entry: CommandEntry, args: Arguments, reply: RespWriter, mark: number): void {
    this.isExecuting = true;
    void this.#execution.handle(entry, args, reply, mark);
    this.isExecuting = false;
    this.forgetKept();
  }

  // ---- services for its parts
  //

  get scripts(): ClientScripts {
    return this.#execution.scripts;
  }

  bound(bind: NonNullable<CommandEntry['bind']>): Command['transform'] {
    return this.#execution.bound(bind);
  }

  get command(): Command {
    return this.#execution.command;
  }

  hasRun(entry: CommandEntry, answer: RespWriter): void {
    this.#execution.hasRun(entry, answer);
  }

  settleSent(
    entry: CommandEntry,
    args: Arguments,
    mark: number,
    hold: (() => void) | undefined,
    writer?: RespWriter,
  ): void {
    const { server } = this;
    if (writer === undefined) {
      if (hold === undefined) server.tick.evaluated(mark, noLog);
      else hold();
    }
    this.#execution.settle(entry, args, mark, writer);
  }

  settleRun(run: AnsweredRun, isAside = false): void {
    const { mark, sent } = run;
    if (!isAside) this.server.tick.evaluated(mark, noLog, mark + sent);
    this.#execution.settleRun(run);
  }

  /** Its answers are where they are sent from. */
  answered(): void {}

  charge(entry: CommandEntry, args: Arguments, sent: number, failed: boolean): void {
    this.#execution.charge(entry, args, sent, failed);
  }

  protected isCountedByScript(): boolean {
    return this.#execution.takeScriptError();
  }

  countFanOut(bytes: number): void {
    this.#execution.countFanOut(bytes);
  }

  writeError(error: unknown, reply: RespWriter): void {
    this.#execution.writeError(error, reply);
  }

  protected drop(): void {
    this.#execution.command.isAbandoned = true;
    this.#sent?.leave();
    this.#spread?.leave();
    this.#blocked?.end();
    this.#admission.leave();
    this.#transactions.drop();
    this.#parser.drop();
  }

  // ---- description
  //

  get arrivedBytes(): number {
    return this.#arrivedBytes;
  }

  get queryBytes(): number {
    return this.#parser.pending;
  }

  get lastActiveAt(): number {
    return this.#lastActiveAt;
  }

  get unitsWaitSince(): number | undefined {
    return this.#admission.waitsSince;
  }

  get entry(): CommandEntry | undefined {
    return this.#dispatch.lastEntry;
  }

  get lastCommand(): string {
    return this.#dispatch.lastEntry?.fullName ?? 'NULL';
  }

  get arguments(): Arguments {
    return this.#args;
  }

  get wordBytes(): number {
    const { count, lens } = this.#args;
    let bytes = 0;
    for (let i = 0; i < count; i++) bytes += lens[i]!;
    return bytes;
  }

  /** As an array of bulk strings. */
  get commandBytes(): number {
    const { count, lens } = this.#args;
    let bytes = lineBytes(count);
    for (let i = 0; i < count; i++) bytes += lineBytes(lens[i]!) + lens[i]! + 2;
    return bytes;
  }

  get isBusy(): boolean {
    return this.#isBusy || this.output.hasParts;
  }

  stepInfo(): StepInfo {
    return { what: this.lastCommand, tenant: this.tenant.number, bytes: this.wordBytes };
  }
}

/** Bytes of a header line with this number. */
function lineBytes(value: number): number {
  return String(value).length + 3;
}
