// One client's connection: bytes in, commands in order, replies out in the same order.
//
// Commands run as they are parsed, many of them in one turn of the event loop. A command that has to
// wait (a blocking pop, a row being read from disk) makes its connection busy: what follows stays in
// the parser, and the other connections go on.

import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { Arguments } from '../../universal-row/arguments.ts';
import { Action, isWrite, type Command } from '../../universal-row/command.ts';
import { CommandError } from '../../universal-row/errors.ts';
import type { RowObserver } from '../../universal-row/executor.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { Reply } from '../../universal-row/reply.ts';
import type { Rows } from '../../universal-row/rows.ts';
import type { QuotaMode } from '../../contracts/table-properties.ts';
import type { StepInfo, StepSource } from '../../contracts/step-watcher.ts';
import { batchRequest, largeWorkBytes, type PodRequest } from '../../contracts/pod-admission.ts';
import { ChargeClass } from '../../request-units/meter.ts';
import type { Principal } from '../gateway/principals.ts';
import type { Permissions } from './acl/acl-user.ts';
import { refusalByNow, refusalOf } from './acl/guard.ts';
import type { TenantGate } from '../admission/tenant-gate.ts';
import { CommandWait } from './admission/command-wait.ts';
import { PartitionTicket, selected } from './admission/partition-ticket.ts';
import { partitionKind, type Refused, refusedInARow } from './admission/refusals.ts';
import type { KeyQueue, Tried, WaitingCommand } from './blocked-clients.ts';
import { keyWords } from './commands/key-words.ts';
import { type CommandEntry, maxHandlerWords } from './commands/registry.ts';
import {
  type Client,
  type ClientAttributes,
  type ClientCommand,
  type ClientHandler,
  ClientFlag,
} from './client.ts';
import { HeldMemory, outOfRequestMemory } from './held-memory.ts';
import { ConnectionMeter } from './metering.ts';
import type { Load, ReadCache } from './read-cache.ts';
import {
  OutOfRequestMemory,
  ProtocolError,
  RespParser,
  unauthenticatedLimits,
} from './resp-parser.ts';
import { LongAnswer, type RespWriter } from './resp-writer.ts';
import type { RedisServer } from './server.ts';
import { ClientScripts } from './client-scripts.ts';
import { type Tenant, tooManyClients } from './tenant.ts';

// A larger answer is sent by parts.
const largeAnswerBytes = 256 * 1024;
// A client that does not read has this much kept for it before its own commands wait.
const sendHighWaterBytes = 1024 * 1024;
/** Replies of one turn, all connections together, before the rest waits for the next turn. */
export const turnOutputBytes = 8 * 1024 * 1024;
// A power of 2. A pipeline looks now and then whether others should have the thread.
const commandsBetweenLooks = 16;
// What a busy client may send ahead before its socket is no longer read.
const readAheadBytes = 256 * 1024;
// The same for all clients of a tenant together that wait for units.
const waitingAheadBytes = 16 * 1024 * 1024;
// What a client of a limited tenant has run is charged this often within a pipeline: its next commands would else be
// let in by what those before were thought to cost.
const chargeEveryMs = 0.5;

const queuedBytes = '+QUEUED\r\n'.length;
// EXEC looks at all that is queued before it begins.
const maxQueuedCommands = 65_536;
// What a copy of a command takes beside its words, and a key that is watched beside its bytes.
const commandOverheadBytes = 256;
const watchOverheadBytes = 256;

interface QueuedCommand {
  entry: CommandEntry;
  args: Arguments;
}

class Transaction {
  readonly queue: QueuedCommand[] = [];
  /** What it takes. */
  bytes = 0;
  /** A command could not be queued: EXEC will refuse. */
  broken = false;
}

/** What EXEC is about to run. */
class PreparedTransaction {
  readonly transaction: Transaction;
  readonly commands: Command[] = [];
  /** Those that other pods run as well. */
  readonly elsewhere: Command[] = [];
  /** Of commands on rows. */
  readonly executors = new Set<unknown>();
  /** That the next command is about. */
  table: number;

  constructor(transaction: Transaction, table: number) {
    this.transaction = transaction;
    this.table = table;
  }
}

/** Learns whether a watched key was touched. */
class WatchGuard implements RowObserver {
  dirty = false;
  /** By table and the key's bytes. */
  readonly keys = new Map<string, { table: number; key: Buffer }>();
  /** What they take. */
  bytes = 0;
  rowChanged(): void {
    this.dirty = true;
  }
}

class Wait implements WaitingCommand {
  readonly entry: CommandEntry;
  readonly connection: Connection;
  readonly kind: string;
  readonly isShared: boolean;
  readonly queues = new Set<KeyQueue>();
  isTrying = false;
  /** The time was up during an attempt. */
  isOver = false;
  timer: NodeJS.Timeout | undefined;
  /** Counted while it lasts. */
  readonly bytes: number;

  constructor(connection: Connection, entry: CommandEntry, bytes: number) {
    this.connection = connection;
    this.entry = entry;
    this.kind = entry.spec.group;
    this.isShared = entry.blocks!.isShared === true;
    this.bytes = bytes;
  }

  attempt(): MaybePromise<Tried> {
    return this.connection.retry(this);
  }

  missed(): void {
    if (this.isOver) this.connection.timeUp(this);
  }
}

export class Connection implements Client, StepSource {
  readonly id: number;
  readonly server: RedisServer;
  readonly socket: Socket;
  private readonly encrypted: boolean;
  readonly address: string;
  readonly localAddress: string;
  readonly createdAt: number;
  /** RESP version. */
  version = 2;
  /** The database it has selected, as it calls it; and the table that this is. */
  db = 0;
  table = 0;
  flags: number = ClientFlag.none;
  /** Who it is; undefined before it has logged in. */
  principal: Principal | undefined;
  /** Before it has logged in, the one whose users need not name it. */
  tenant: Tenant<Connection>;
  /** Its user is being changed on its own command: it gets its answer, whatever becomes of it. */
  managing = false;
  name = '';
  libName = '';
  libVersion = '';
  noEvict = false;
  noTouch = false;
  lastActiveAt: number;
  bytesIn = 0;
  bytesOut = 0;
  commandsRun = 0;
  readonly channels = new Set<string>();
  readonly patterns = new Set<string>();
  readonly shardChannels = new Set<string>();
  closed = false;
  /** The socket closes once what has been written is sent. */
  closing = false;
  transaction: Transaction | undefined;
  private ownScripts: ClientScripts | undefined;
  watch: WatchGuard | undefined;
  wait: Wait | undefined;
  /** Since when more than the soft limit is waiting to be sent. */
  overSoftLimitSince = 0;
  /** What its commands cost. */
  readonly meter = new ConnectionMeter();
  /** What it has in memory beyond a round of the event loop. */
  readonly held: HeldMemory;
  /** Bytes of this turn's output, from its start, that CLIENT REPLY does not keep back. */
  private keptTo = 0;

  private readonly parser: RespParser;
  private args = new Arguments();
  private readonly command: Command;
  private lastEntry: CommandEntry | undefined;
  private pausedCommand: CommandEntry | undefined;
  /** Bytes that have come. */
  private arrived = 0;
  /** Of a client of a tenant that has spent its quota. */
  private unitsWait: CommandWait | undefined;
  /** Of the GET that is being run, if its answer is to be remembered. */
  private load: Load | undefined;
  /** Once there was a command that partitions are charged for. */
  private ticket: PartitionTicket | undefined;
  /** Commands that may be refused by partitions before it is asked whether more may be; and when that is, of the next. */
  private refusable = 0;
  private refusalTimer: NodeJS.Timeout | undefined;
  /** When what it has run was charged last, where that is of a quota. Monotonic milliseconds. */
  private chargedAt = 0;
  /** Of what is not charged yet, when the first command was let in, or began to wait. */
  private admittedAt: number | undefined;
  /** Bytes of its words that are counted while its command waits. */
  private keptBytes = 0;
  private busy = false;
  /** Its commands wait until it has read its answers. */
  private isStalled = false;
  /** By the last batch. */
  private repliedBytes = 0;
  /** What came is yet to be looked at. */
  private waitsTurn = false;
  /** It goes on in the next turn: this one has enough to send. */
  private resumes = false;
  private readonly batch: { -readonly [Key in keyof PodRequest]: PodRequest[Key] } = batchRequest(
    0,
    () => {
      this.waitsTurn = false;
      this.#goOn();
    },
  );
  /** Parts of a large answer, the next one last. */
  private unsent: Buffer[] | undefined;
  /** Bytes of it that are counted. */
  private keptAnswer = 0;
  private paused = false;
  /** A handler is being run by EXEC, which does not wait for it. */
  isExecuting = false;
  /** Bytes of messages that its command sends to others, beside its answer. */
  fannedOutBytes = 0;

  constructor(
    server: RedisServer,
    socket: Socket,
    id: number,
    now: number,
    principal: Principal | undefined,
  ) {
    this.server = server;
    this.socket = socket;
    this.encrypted = (socket as Partial<TLSSocket>).encrypted === true;
    this.id = id;
    this.createdAt = now;
    this.lastActiveAt = now;
    this.address = `${socket.remoteAddress ?? '?'}:${socket.remotePort ?? 0}`;
    this.localAddress = `${socket.localAddress ?? '?'}:${socket.localPort ?? 0}`;
    this.held = new HeldMemory(server.memory);
    this.parser = new RespParser(unauthenticatedLimits, this.held);
    this.tenant = server.tenant(principal?.tenant ?? server.principals.tenant('default')!);
    this.command = {
      action: Action.fetch,
      name: '',
      transform: noTransform,
      grows: false,
      table: 0,
      span: this.tenant.span,
      args: this.args,
    };
    if (principal === undefined) this.#awaitLogin();
    else this.#enter(principal, this.tenant);
  }

  setFlag(flag: number, isSet: boolean): void {
    if (isSet) this.flags |= flag;
    else this.flags &= ~flag;
  }

  update(attributes: Partial<ClientAttributes>): void {
    Object.assign(this, attributes);
  }

  setManaging(isManaging: boolean): void {
    this.managing = isManaging;
  }

  countFanOut(bytes: number): void {
    this.fannedOutBytes += bytes;
  }

  get watchedKeys(): number {
    return this.watch?.keys.size ?? 0;
  }

  get isBlocked(): boolean {
    return this.wait !== undefined;
  }

  // ---- who it is

  get user(): string {
    return this.principal?.user.name ?? 'default';
  }

  /** From now on it acts for this user; returns why it may not. */
  become(principal: Principal): string | undefined {
    const tenant = this.server.tenant(principal.tenant);
    const isElsewhere = this.principal === undefined || tenant !== this.tenant;
    if (isElsewhere && tenant.isFull) {
      tenant.rejectedConnections++;
      return tooManyClients(tenant);
    }
    if (tenant !== this.tenant) this.leaveTenant();
    this.#enter(principal, tenant);
    return undefined;
  }

  #enter(principal: Principal, tenant: Tenant<Connection>): void {
    if (tenant !== this.tenant) this.db = 0;
    this.principal = principal;
    this.tenant = tenant;
    if (!tenant.connections.has(this)) {
      tenant.connections.add(this);
      tenant.past.connections++;
    }
    this.flags &= ~ClientFlag.unauthenticated;
    this.server.logins.done(this);
    this.held.belongsTo(tenant.number);
    this.parser.limits = this.server.limits;
    this.meter.belongsTo(this.server.metering, {
      number: tenant.number,
      firstTable: tenant.span.first,
    });
    this.followRules();
  }

  /** Nobody any more, as before logging in. */
  logOut(): void {
    this.leaveTenant();
    this.principal = undefined;
    this.tenant = this.server.tenant(this.server.principals.tenant('default')!);
    this.parser.limits = unauthenticatedLimits;
    this.#awaitLogin();
    this.command.span = this.tenant.span;
    this.select(0);
  }

  #awaitLogin(): void {
    this.held.belongsTo(undefined);
    this.flags = ClientFlag.unauthenticated;
    this.server.logins.await(this);
  }

  /** Lets go of what its tenant's clients share. */
  leaveTenant(): void {
    const { tenant } = this;
    tenant.pubsub.unsubscribeAll(this);
    this.flags &= ~(ClientFlag.subscribed | ClientFlag.monitor);
    this.server.monitors.delete(this);
    this.unwatch();
    if (!tenant.connections.delete(this)) return;
    tenant.past.commands += this.commandsRun;
    tenant.past.bytesIn += this.bytesIn;
    tenant.past.bytesOut += this.bytesOut;
  }

  /** The definitions of its user and tenant have changed. */
  followRules(): void {
    const { tenant, principal } = this;
    this.command.span = tenant.span;
    this.select(this.db < tenant.span.count ? this.db : 0);
    const permissions = this.server.permissionsOf(principal!.user);
    if (permissions.isUnlimited && tenant.isFirst) this.flags &= ~ClientFlag.restricted;
    else this.flags |= ClientFlag.restricted;
    const names = this.channels.size + this.patterns.size + this.shardChannels.size;
    if (names === 0) return;
    const matches = names * (1 + permissions.channelPatterns);
    this.server.rechecks.add(this, permissions, matches);
  }

  /** What it listens to, and whether each is a pattern. */
  *subscriptions(): Generator<{ name: string; isPattern: boolean }> {
    for (const name of this.channels) yield { name, isPattern: false };
    for (const name of this.shardChannels) yield { name, isPattern: false };
    for (const name of this.patterns) yield { name, isPattern: true };
  }

  /** Its user may be no more: ends at once, or with the answer to the command that brought it about. */
  revoke(): void {
    if (this.managing) this.closing = true;
    else this.destroy();
  }

  select(db: number): void {
    this.db = db;
    this.table = this.tenant.span.first + db;
  }

  /** Undefined before it has logged in. */
  get currentPermissions(): Permissions | undefined {
    return this.principal && this.permissions;
  }

  get permissions(): Permissions {
    return this.server.permissionsOf(this.principal!.user);
  }

  // ---- in

  receive(chunk: Buffer, length: number): void {
    this.bytesIn += length;
    this.arrived += length;
    this.lastActiveAt = this.server.now;
    if (this.closing) return;
    try {
      this.parser.push(chunk, length, this.args);
    } catch (error) {
      this.#protocolError(error);
      return;
    }
    if (
      this.busy ||
      this.isStalled ||
      this.waitsTurn ||
      this.resumes ||
      this.unsent !== undefined
    ) {
      this.#detach();
      const { pending } = this.parser;
      this.unitsWait?.received(this.arrived - pending, this.arrived, this.server.lapAt);
      if (pending > this.#readAheadBytes) this.#pause();
      else if (this.isHeldBack) this.#readLater();
      return;
    }
    const { podAdmission, lapAt } = this.server;
    if (podAdmission !== undefined && podAdmission.admit(this.#batch(), lapAt) !== 'admitted') {
      this.waitsTurn = true;
      this.#detach();
      return;
    }
    if (this.server.writer.pos > turnOutputBytes) {
      // Others have filled this turn.
      this.#detach();
      this.resumes = true;
      this.server.resume(this);
      return;
    }
    this.#runAll();
    // The chunk's memory is used for the next connection: what is still needed of it is copied.
    if (this.busy) {
      this.args = copyOf(this.args);
      this.command.args = this.args;
      this.#keepArguments();
    }
    this.#detach();
  }

  /** The chunk's memory is about to be used for the next connection. */
  #detach(): void {
    try {
      this.parser.detach(this.args);
    } catch (error) {
      this.#protocolError(error);
    }
  }

  /** What has arrived and is yet to run, for the pod's CPU scheduler. */
  #batch(): PodRequest {
    const { batch } = this;
    batch.tenant = this.tenant.number;
    batch.isLarge = this.parser.pending > largeWorkBytes || this.repliedBytes > largeWorkBytes;
    return batch;
  }

  #isSliceOver(): boolean {
    const { podAdmission } = this.server;
    return (
      podAdmission !== undefined &&
      this.parser.pending > 0 &&
      podAdmission.isSliceOver(performance.now())
    );
  }

  get #readAheadBytes(): number {
    const gate = this.unitsWait?.gate;
    if (gate === undefined) return readAheadBytes;
    return Math.min(readAheadBytes, waitingAheadBytes / gate.waiting);
  }

  /** It is not served now, as its tenant has no units, or others have the thread. */
  get isHeldBack(): boolean {
    if (this.waitsTurn || this.refusalTimer !== undefined) return true;
    return this.unitsWait?.gate !== undefined;
  }

  /** Runs what has been parsed until there is nothing more or the connection must wait. */
  #runAll(): void {
    const { server, parser } = this;
    let { args } = this;
    const from = server.open(this).pos;
    try {
      while (parser.next(args)) {
        this.#runOne(args);
        if (server.blocked.isReady) {
          server.blocked.serve();
          server.open(this);
        }
        if (this.busy || this.closing || this.isStalled || this.closed) break;
        if (server.writer.pos > turnOutputBytes) {
          // Enough for one turn: send it first, and let the others have theirs.
          this.resumes = true;
          server.resume(this);
          break;
        }
        if ((this.commandsRun & (commandsBetweenLooks - 1)) === 0 && this.#isSliceOver()) {
          this.waitsTurn = true;
          server.podAdmission!.requeue(this.#batch());
          break;
        }
        args = this.args;
      }
    } catch (error) {
      this.#protocolError(error);
    }
    this.repliedBytes = server.writer.pos - from;
    this.#endBatch();
    if (this.keptBytes !== 0) {
      this.held.release('request', this.keptBytes);
      this.keptBytes = 0;
    }
    if (this.busy) parser.lend();
    else {
      parser.release();
      if (!parser.isWithinCommand) this.args.shrink();
    }
  }

  /** Has what was run charged, at once where it is of a quota. */
  #endBatch(): void {
    const { server } = this;
    const { metering } = server;
    if (metering === undefined) return;
    const { gate, scanGate, isLimited } = this.tenant;
    if (!isLimited || (scanGate === undefined && gate?.isAmple === true)) {
      this.meter.endBatch(metering, server.lapAt);
      return;
    }
    // Refusing takes time, too, which nobody has looked at.
    server.lap();
    this.chargedAt = server.lapAt;
    this.meter.flush(metering);
    if (gate?.isDue === true) metering.flushAll();
    gate?.settle(server.lapAt);
    scanGate?.settle(server.lapAt);
    const { errorDelay } = server.admission!;
    if (errorDelay.options.enabled && this.admittedAt !== undefined) {
      errorDelay.succeeded(server.lapAt - this.admittedAt);
    }
    this.admittedAt = undefined;
  }

  /** Counts the words of a command that waits. */
  #keepArguments(): void {
    this.keptBytes = sizeOf(this.args);
    this.held.add('request', this.keptBytes);
  }

  #protocolError(error: unknown): void {
    if (error instanceof OutOfRequestMemory) this.server.open(this).error(outOfRequestMemory);
    else if (!(error instanceof ProtocolError)) {
      this.server.report('error', 'a connection failed', { err: error, client: this.address });
      this.server.open(this).error('ERR internal error');
    } else {
      this.server.open(this).error(`ERR ${error.message}`);
    }
    this.closing = true;
  }

  #runOne(args: Arguments): void {
    const { server } = this;
    const reply = server.writer;
    const mark = reply.pos;
    this.commandsRun++;
    let entry = server.registry.lookup(args);
    if (entry === undefined) {
      if (isHttp(args)) {
        this.#abortHttp();
        return;
      }
    } else if (entry.subcommands !== undefined && args.count > 1) {
      const sub = entry.subcommand(args);
      if (sub === undefined) {
        if (this.flags & ClientFlag.unauthenticated) reply.error(noAuthText);
        else {
          reply.error(
            `ERR unknown subcommand '${clip(args.latin1(1, 128), 128)}'. Try ${entry.spec.name.toUpperCase()} HELP.`,
          );
        }
        this.#rejected(entry);
        return;
      }
      entry = sub;
    }
    if (this.flags !== ClientFlag.none && !this.#mayRun(entry, args, reply)) {
      if (this.flags >= ClientFlag.replyOff) this.#muffle(mark);
      return;
    }
    if (entry === undefined || !entry.takes(args.count)) {
      this.#rejectUnfit(entry, args, reply);
      if (this.flags >= ClientFlag.replyOff) this.#muffle(mark);
      return;
    }
    if (server.pausedUntil !== 0 && this.#isPaused(entry)) return;
    if (server.cache !== undefined && this.#isRemembered(server.cache, entry, args, mark)) return;
    if (this.tenant.isLimited && !this.#isAdmitted(entry, mark)) return;
    this.#start(entry, args, mark);
  }

  /** Answers a command that is not there, or that does not take as many words. */
  #rejectUnfit(entry: CommandEntry | undefined, args: Arguments, reply: RespWriter): void {
    if (entry === undefined) reply.error(unknownCommand(args));
    else if (args.count > entry.maxWords) {
      reply.error(
        `ERR too many arguments for '${entry.fullName}' command: at most ${entry.maxWords - 1}`,
      );
    } else {
      const wrong = `wrong number of arguments for '${entry.fullName}' command`;
      if (entry.spec.name === 'exec') {
        this.endTransaction();
        reply.error(`EXECABORT Transaction discarded because of: ${wrong}`);
      } else reply.error(`ERR ${wrong}`);
    }
    this.#rejected(entry);
  }

  /**
   * Closes the connection without an answer, as redis-server does: a web page can have a browser send an HTTP request
   * here, and the lines of its body would run as commands.
   */
  #abortHttp(): void {
    this.server.httpAttempted(this);
    this.destroy();
  }

  #start(entry: CommandEntry, args: Arguments, mark: number): void {
    const from = this.#announce(entry, args, mark);
    this.#call(entry, args, this.server.writer, from);
  }

  /** To whoever watches commands. Returns where the answer begins. */
  #announce(entry: CommandEntry, args: Arguments, mark: number): number {
    const { server } = this;
    this.lastEntry = entry;
    if (server.monitors.size === 0) return mark;
    // What was queued is shown when it runs, before EXEC.
    if (entry.spec.name === 'exec' && this.transaction?.broken === false) {
      for (const queued of this.transaction.queue) {
        server.feedMonitors(this, queued.entry, queued.args);
      }
    }
    server.feedMonitors(this, entry, args);
    return server.open(this).pos;
  }

  /** Whether the gateway knew what to answer, and has: then it waits for nothing, and costs nothing. */
  #isRemembered(cache: ReadCache, entry: CommandEntry, args: Arguments, mark: number): boolean {
    const { server } = this;
    const { writer, lapAt, now } = server;
    const answer = cache.answerTo(entry, args, this.table, lapAt, now);
    if (answer === undefined) return false;
    const from = this.#announce(entry, args, mark);
    entry.calls++;
    if (answer.bytes === undefined) writer.nil();
    else writer.rawBytes(answer.bytes, 0, answer.bytes.length);
    const spent = server.lap();
    entry.spentMs += spent;
    this.meter.free(entry);
    if (spent >= server.slowlogMs) this.tenant.slowlog.add(this, entry, args, spent, 0);
    if (this.flags >= ClientFlag.replyOff) this.#muffle(from);
    return true;
  }

  /** CLIENT PAUSE: the command stays where it is until the pause ends. */
  #isPaused(entry: CommandEntry): boolean {
    const { server } = this;
    if (entry.spec.name === 'client') return false;
    const writes =
      isWrite(entry.action) ||
      (entry.spec.name === 'exec' &&
        this.transaction?.queue.some((queued) => isWrite(queued.entry.action)) === true);
    if (server.pausesWritesOnly && !writes) return false;
    this.pausedCommand = entry;
    this.busy = true;
    server.awaitUnpause(this);
    return true;
  }

  /** The pause is over. */
  unhold(): void {
    const entry = this.pausedCommand;
    if (entry === undefined || this.closed) return;
    this.pausedCommand = undefined;
    this.#admitAgain(entry);
  }

  /** A command that was kept where it is may go on, if there is nothing else against it. */
  #admitAgain(entry: CommandEntry): void {
    this.busy = false;
    const { pos } = this.server.open(this);
    if (!this.tenant.isLimited || this.#isAdmitted(entry, pos)) {
      this.#start(entry, this.args, pos);
    }
    this.#goOn();
  }

  // ---- quotas

  /** Whether a command may run now. If not it waits where it is, or was refused. */
  #isAdmitted(entry: CommandEntry, mark: number): boolean {
    if (!entry.takesUnits && !this.#isFullExec(entry)) return true;
    if (this.server.partitions?.isWatched === true && !this.#hasRoom(entry, mark)) return false;
    const { gate, scanGate } = this.tenant;
    if (scanGate === undefined && gate !== undefined) {
      if (gate.pass() || gate.passAgain(this.server.lapAt)) return true;
    }
    if (gate?.isDue === true || this.server.lapAt - this.chargedAt > chargeEveryMs)
      this.#endBatch();
    const isPastScans =
      scanGate === undefined || !this.#isScan(entry) || this.#isPast(scanGate, entry, mark);
    return isPastScans && this.#isPastMain(entry, mark);
  }

  #isPastMain(entry: CommandEntry, mark: number): boolean {
    const { gate } = this.tenant;
    return gate === undefined || this.#isPast(gate, entry, mark);
  }

  /** As it will be charged. */
  #isScan(entry: CommandEntry): boolean {
    return refusedKind(entry, this.transaction?.queue).kind === ChargeClass.scan;
  }

  #isPast(gate: TenantGate, entry: CommandEntry, mark: number): boolean {
    const { server } = this;
    const { refusals } = this.tenant;
    const admission = server.admission!;
    const now = server.lapAt;
    if (gate.admit(now, admission.rules.commandWaitMs, this.#quotaMode())) {
      this.admittedAt ??= now;
      return true;
    }
    if (this.closed) return false;
    this.unitsWait ??= new CommandWait(
      (waited, by, isIn) => this.#endWait(waited, by, isIn),
      () => this.#quotaMode(),
    );
    const bytes = { done: this.arrived - this.parser.pending, received: this.arrived };
    const isCrowded = server.podAdmission?.isContended(now) === true;
    this.busy = this.unitsWait.begin({ gate, refusals }, entry, admission, bytes, now, isCrowded);
    if (!this.busy) this.#refuse(gate, entry, mark);
    return false;
  }

  /** Whether all partitions that the command touches have room. If not it was refused. */
  #hasRoom(entry: CommandEntry, mark: number): boolean {
    const { server, tenant, transaction } = this;
    const { metering, partitions, lapAt } = server;
    const { gate } = tenant;
    if (partitions?.isWatched !== true || metering === undefined || gate === undefined) return true;
    this.ticket ??= new PartitionTicket(partitions.visit());
    // What it has not been charged for when it is done is the command's.
    this.meter.flush(metering);
    const commands = transaction?.queue ?? [{ entry, args: this.args }];
    const waitMs = this.ticket.begin(commands, this.table, tenant.span, lapAt);
    if (waitMs === 0) return true;
    this.ticket.end();
    if (gate.rules.dryRun) {
      gate.counters.partitionWouldRefuse++;
      return true;
    }
    if (!this.#mayRefuse(entry)) return false;
    gate.counters.partitionRefused++;
    const isTransaction = transaction !== undefined;
    const { refusalCode } = server.admission!.rules;
    const kind = { kind: partitionKind, isTransaction };
    this.#answerRefusal(
      tenant.refusals.bytes(refusalCode, gate, kind, Math.ceil(waitMs)),
      entry,
      mark,
    );
    return false;
  }

  /**
   * Whether a command may be refused now. If not it is looked at again when it may: a flood of refusals takes the thread
   * from others, and so has the pace that refusals at the gate have.
   */
  #mayRefuse(entry: CommandEntry): boolean {
    const { server, tenant } = this;
    const { lapAt, podAdmission } = server;
    if (this.refusable === 0) {
      this.refusable = this.parser.pending > 0 ? refusedInARow : 1;
      const isCrowded = podAdmission?.isContended(lapAt) === true;
      const ms = tenant.refusals.reserve(lapAt, isCrowded, this.refusable);
      if (ms > 0) {
        this.#lookAgain(entry, ms);
        return false;
      }
    }
    this.refusable--;
    return true;
  }

  #lookAgain(entry: CommandEntry, ms: number): void {
    this.busy = true;
    this.refusalTimer = setTimeout(() => {
      const { podAdmission } = this.server;
      const run = (): void => {
        this.refusalTimer = undefined;
        if (!this.closed) this.#goOnWith(entry);
      };
      const request = batchRequest(this.tenant.number, run);
      if ((podAdmission?.admit(request, performance.now()) ?? 'admitted') === 'admitted') run();
    }, ms);
  }

  #goOnWith(entry: CommandEntry): void {
    const { server } = this;
    try {
      server.open(this);
      server.lap();
      this.#admitAgain(entry);
    } catch (error) {
      server.report('error', 'a connection failed', { err: error, client: this.address });
      this.destroy();
    }
  }

  #quotaMode(): QuotaMode {
    return this.server.router.to(this.table).quotaMode ?? 'server';
  }

  /** EXEC of a transaction that is about rows. */
  #isFullExec(entry: CommandEntry): boolean {
    const { transaction } = this;
    return (
      entry.spec.name === 'exec' &&
      transaction !== undefined &&
      !transaction.broken &&
      transaction.queue.some((queued) => queued.entry.run !== undefined)
    );
  }

  /** At `gate`. Who was let in there may have to wait at another one. */
  #endWait(entry: CommandEntry, gate: TenantGate, admitted: boolean): void {
    if (this.closed) return;
    const { server, args, tenant } = this;
    try {
      this.busy = false;
      const { pos } = server.open(this);
      server.lap();
      this.lastActiveAt = server.now;
      if (admitted) this.admittedAt ??= this.unitsWait!.begunAt;
      if (!admitted) this.#refuse(gate, entry, pos);
      else if (
        (gate === tenant.gate || this.#isPastMain(entry, pos)) &&
        this.#hasRoom(entry, pos) &&
        (server.pausedUntil === 0 || !this.#isPaused(entry))
      ) {
        this.#start(entry, args, pos);
      }
      this.#goOn();
    } catch (error) {
      server.report('error', 'a connection failed', { err: error, client: this.address });
      this.destroy();
    }
  }

  #refuse(gate: TenantGate, entry: CommandEntry, mark: number): void {
    const { server, tenant, transaction } = this;
    const { lapAt } = server;
    this.unitsWait!.refused(tenant.refusals, lapAt);
    this.ticket?.end();
    const text = tenant.refusals.bytes(
      server.admission!.rules.refusalCode,
      gate,
      refusedKind(entry, transaction?.queue),
      gate.refuse(lapAt),
    );
    this.#answerRefusal(text, entry, mark);
  }

  #answerRefusal(text: Buffer, entry: CommandEntry, mark: number): void {
    this.server.writer.rawBytes(text, 0, text.length);
    this.#rejected(entry);
    if (this.transaction !== undefined) {
      this.meter.forgetQueued();
      this.endTransaction();
    }
    if (this.flags >= ClientFlag.replyOff) this.#muffle(mark);
  }

  /** Since when its command waits for units, in monotonic milliseconds, if it does. */
  get unitsWaitSince(): number | undefined {
    return this.unitsWait?.since;
  }

  #rejected(entry: CommandEntry | undefined): void {
    if (entry !== undefined) entry.rejectedCalls++;
    this.server.countError(this.tenant);
    const { metering } = this.server;
    if (metering !== undefined) this.meter.reject(metering, entry);
    if (this.transaction !== undefined) this.transaction.broken = true;
  }

  #call(entry: CommandEntry, args: Arguments, reply: RespWriter, mark: number): void {
    const { server } = this;
    entry.calls++;
    const { run, bind } = entry;
    let waits: Promise<Reply | void> | undefined;
    let own: RespWriter | undefined;
    if (run !== undefined) {
      const { command } = this;
      command.action = entry.action;
      command.name = entry.fullName;
      command.transform = bind === undefined ? run : this.#bound(bind);
      command.grows = entry.grows;
      command.table = this.table;
      command.args = args;
      command.usesSpan = entry.usesSpan;
      command.tenant = this.tenant.number;
      const route = server.router.to(this.table);
      const { metering } = server;
      command.work =
        metering === undefined
          ? undefined
          : this.meter.begin(metering, entry, this.table, route.pricer);
      const refusal = entry.everyPod ? server.refusalElsewhere(command, route.executor) : undefined;
      if (refusal !== undefined) {
        reply.error(refusal);
        this.#settle(entry, args, mark);
        return;
      }
      if (entry.everyPod) server.runElsewhere(command, route.executor);
      if (!route.mayWait) {
        const done = route.executor.execute(command, reply);
        if (done instanceof Promise) waits = done;
      } else {
        own = server.borrowWriter(this.version);
        own.keeper = this;
        if (server.cache !== undefined) this.#remember(server.cache, entry);
        const done = route.executor.execute(command, own);
        if (done instanceof Promise) waits = done;
        else {
          if (server.cache !== undefined) this.#hasRun(entry, own);
          this.#append(own);
        }
      }
    } else {
      const done = this.#handle(entry, args, reply, mark);
      if (done instanceof Promise) waits = done;
    }
    if (waits !== undefined) {
      this.#waitFor(waits, entry, own);
      return;
    }
    const mayBlock = entry.blocks !== undefined && server.writer.pos === mark && !this.closed;
    if (mayBlock && this.#block(entry, args)) return;
    this.#settle(entry, args, mark);
  }

  /** The transform of a command that acts for this client. */
  #bound(bind: NonNullable<CommandEntry['bind']>): Command['transform'] {
    return (bind as NonNullable<ClientCommand['bind']>)(this);
  }

  get scripts(): ClientScripts {
    return (this.ownScripts ??= new ClientScripts(this));
  }

  /** What it is about to read is to be remembered, if it is a GET of such a table. */
  #remember(cache: ReadCache, entry: CommandEntry): void {
    const { command } = this;
    this.load = cache.load(entry, command.args, command.table, this.server.lapAt);
    if (this.load !== undefined) command.transform = this.load.transform;
  }

  /** Its command has been run by a pod that may keep tables of which answers are remembered. */
  #hasRun(entry: CommandEntry, answer: RespWriter): void {
    const { command, server, load } = this;
    this.load = undefined;
    load?.answered(answer, server.lapAt);
    server.cache?.wrote(entry, command.args, command.table, command.span);
  }

  #handle(
    entry: CommandEntry,
    args: Arguments,
    reply: RespWriter,
    mark: number,
  ): void | Promise<Reply | void> {
    try {
      if (entry.boundsWords && hasLongWord(args)) throw longWord;
      return (entry.handle as ClientHandler)(this, args, reply);
    } catch (error) {
      reply.rollback(mark);
      this.writeError(error, reply);
    }
  }

  /** Answers what a handler has thrown. */
  writeError(error: unknown, reply: RespWriter): void {
    if (error instanceof CommandError) reply.error(error.message);
    else {
      this.server.report('error', `command ${this.lastCommand} failed`, { err: error });
      reply.error('ERR internal error');
    }
  }

  /** Counts and times a command that has answered, and drops an answer nobody wants. */
  #settle(entry: CommandEntry, args: Arguments, mark: number): void {
    const { server } = this;
    const { writer } = server;
    const spent = server.lap();
    if (spent >= server.stepLimitMs) {
      server.steps!.ended(server.lapAt - spent, server.lapAt, this);
    }
    entry.spentMs += spent;
    const failed = mark < writer.pos && writer.buf[mark] === 45;
    if (failed) {
      entry.failedCalls++;
      server.countError(this.tenant);
    }
    if (server.metering !== undefined) this.#charge(entry, args, writer.pos - mark, failed);
    if (spent >= server.slowlogMs) this.tenant.slowlog.add(this, entry, args, spent, this.#lastRu);
    if (this.flags >= ClientFlag.replyOff) this.#muffle(mark);
    if (this.ownScripts !== undefined) {
      this.ownScripts.flush();
      server.open(this);
    }
  }

  #charge(entry: CommandEntry, args: Arguments, sent: number, failed: boolean): void {
    const { meter, server } = this;
    const inTransaction = this.transaction !== undefined;
    const out = sent + this.fannedOutBytes;
    this.fannedOutBytes = 0;
    meter.settle(server.metering!, entry, args, this.table, out, failed, inTransaction);
    if (this.ticket?.isOpen === true) this.#chargePartitions(this.ticket);
  }

  #chargePartitions(ticket: PartitionTicket): void {
    const { meter, server } = this;
    const metering = server.metering!;
    const account = meter.accountIn(metering);
    const before = account.lru;
    meter.flush(metering);
    ticket.charge(account.lru - before, server.lapAt);
  }

  /** What the command just run cost. */
  get #lastRu(): number {
    const { metering } = this.server;
    return metering === undefined ? 0 : this.meter.recentRu(metering);
  }

  /** What was written since the last command is sent even to a client that wants no replies, as messages are. */
  keepReply(): void {
    if (this.flags & (ClientFlag.replyOff | ClientFlag.replySkip))
      this.keptTo = this.server.writer.pos;
  }

  #muffle(mark: number): void {
    if (this.flags & ClientFlag.replySkipNext) {
      this.flags = (this.flags & ~ClientFlag.replySkipNext) | ClientFlag.replySkip;
      return;
    }
    if (this.flags & (ClientFlag.replyOff | ClientFlag.replySkip)) {
      this.server.takeBack(this, Math.max(mark, this.keptTo));
      this.keptTo = 0;
      this.flags &= ~ClientFlag.replySkip;
    }
  }

  /** The command answers later, into `own` or through `answer`. */
  #waitFor(done: Promise<Reply | void>, entry: CommandEntry, own: RespWriter | undefined): void {
    this.busy = true;
    const startedAt = performance.now();
    done
      .catch((error: unknown) => {
        this.server.report('error', `command ${entry.fullName} failed`, { err: error });
        this.server.open(this).error('ERR internal error');
      })
      .then((answer) => {
        if (answer instanceof LongAnswer) {
          this.#answerLong(entry, answer, own, startedAt);
          return;
        }
        this.busy = false;
        if (own !== undefined) this.#hasRun(entry, own);
        this.ownScripts?.flush();
        if (this.closed) {
          if (own !== undefined) this.server.giveBackWriter(own);
          if (this.server.metering !== undefined) this.#charge(entry, this.args, 0, false);
          this.#endBatch();
          return;
        }
        const writer = this.server.open(this);
        const mark = writer.pos;
        if (own !== undefined) {
          if (own.pos === 0 && entry.blocks !== undefined) {
            this.server.giveBackWriter(own);
            if (this.#block(entry, this.args)) return;
          } else this.#append(own);
        }
        const spent = performance.now() - startedAt;
        entry.spentMs += spent;
        const failed = writer.pos > mark && writer.buf[mark] === 45;
        if (failed) entry.failedCalls++;
        if (this.server.metering !== undefined) {
          this.#charge(entry, this.args, writer.pos - mark, failed);
        }
        if (spent >= this.server.slowlogMs)
          this.tenant.slowlog.add(this, entry, this.args, spent, this.#lastRu);
        if (this.flags >= ClientFlag.replyOff) this.#muffle(mark);
        this.#goOn();
      })
      .catch((error: unknown) => {
        this.server.report('error', 'a connection failed', { err: error, client: this.address });
        this.destroy();
      });
  }

  /** A long command has answered, or one that waited for one. */
  #answerLong(
    entry: CommandEntry,
    answer: LongAnswer,
    own: RespWriter | undefined,
    startedAt: number,
  ): void {
    const { server } = this;
    const { length } = answer;
    const failed = answer.firstByte === 45;
    this.busy = false;
    this.ownScripts?.flush();
    this.load = undefined;
    if (own !== undefined) server.giveBackWriter(own);
    if (entry.run !== undefined) {
      const { args, table, span } = this.command;
      server.cache?.wrote(entry, args, table, span);
    }
    const spent = performance.now() - startedAt;
    entry.spentMs += spent;
    if (failed) entry.failedCalls++;
    if (server.metering !== undefined) this.#charge(entry, this.args, length, failed);
    this.keptAnswer = answer.kept;
    if (this.closed) {
      this.#endBatch();
      return;
    }
    if (length === 0 && entry.blocks !== undefined) {
      if (!this.#block(entry, this.args)) this.#goOn();
      return;
    }
    if (spent >= server.slowlogMs) {
      this.tenant.slowlog.add(this, entry, this.args, spent, this.#lastRu);
    }
    const mark = server.open(this).pos;
    const parts = answer.take();
    if (length <= largeAnswerBytes) {
      for (const part of parts) server.writer.rawBytes(part, 0, part.length);
      if (this.flags >= ClientFlag.replyOff) this.#muffle(mark);
    } else {
      const isMuted = (this.flags & (ClientFlag.replyOff | ClientFlag.replySkip)) !== 0;
      if (this.flags >= ClientFlag.replyOff) this.#muffle(mark);
      if (!isMuted) {
        this.unsent = parts.reverse();
        this.#sendPart();
        return;
      }
    }
    this.#letGoOfAnswer(Infinity);
    this.#goOn();
  }

  /** Counts bytes of a long answer; false when there are not as many left. */
  keepAnswer(bytes: number): boolean {
    return this.held.reserve('answer', bytes);
  }

  #letGoOfAnswer(bytes: number): void {
    const gone = Math.min(bytes, this.keptAnswer);
    this.keptAnswer -= gone;
    this.held.release('answer', gone);
  }

  /** Sends a part of a large answer, the next one in the next turn, as the client takes them. */
  #sendPart(): void {
    const { server, unsent } = this;
    const part = unsent?.pop();
    if (part === undefined || this.closed) {
      this.unsent = undefined;
      this.#letGoOfAnswer(Infinity);
      this.#goOn();
      return;
    }
    this.#letGoOfAnswer(part.length);
    server.open(this).rawBytes(part, 0, part.length);
    this.resumes = true;
    server.resume(this);
  }

  /** Copies an answer that was written aside behind what this connection is being sent. */
  #append(own: RespWriter): void {
    this.server.open(this).rawBytes(own.buf, 0, own.pos);
    this.server.giveBackWriter(own);
  }

  /** Takes up the commands that came while the connection was waiting. */
  #goOn(): void {
    if (this.closed || this.closing || this.busy || this.waitsTurn || this.resumes) return;
    if (this.unsent !== undefined) return;
    this.server.lap();
    if (this.server.blocked.isReady) this.server.blocked.serve();
    this.#runAll();
    // Of what was read ahead no whole command is left: what is, waits for its other part.
    if (this.paused && !this.busy && !this.isStalled && !this.waitsTurn && !this.resumes) {
      this.#unpause();
    }
  }

  /** The command that runs, or ran last. */
  get entry(): CommandEntry | undefined {
    return this.lastEntry;
  }

  /** The words of the command that waits. They are not where they were when it began. */
  get arguments(): Arguments {
    return this.args;
  }

  /** Where to answer now, for a handler that answers later. */
  answer(): RespWriter {
    return this.server.open(this);
  }

  // ---- what only some clients need

  /** False when the command was answered, refused or queued here. */
  #mayRun(entry: CommandEntry | undefined, args: Arguments, reply: RespWriter): boolean {
    if (this.flags & ClientFlag.unauthenticated && !(entry?.noAuth ?? false)) {
      reply.error(noAuthText);
      this.#rejected(entry);
      return false;
    }
    if (this.flags & ClientFlag.restricted && entry !== undefined && entry.takes(args.count)) {
      const refusal = refusalOf(this, entry, args);
      if (refusal !== undefined) {
        reply.error(refusal);
        this.#rejected(entry);
        return false;
      }
    }
    if (this.flags & ClientFlag.subscribed && this.version < 3 && entry !== undefined) {
      if (!whileSubscribed.has(entry.spec.name)) {
        reply.error(
          `ERR Can't execute '${entry.fullName}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`,
        );
        this.#rejected(entry);
        return false;
      }
    }
    if (this.flags & ClientFlag.multi && entry !== undefined && entry.takes(args.count)) {
      if (entry.immediate) return true;
      if (!entry.allowedInMulti) {
        reply.error(`ERR Command not allowed inside a transaction`);
        this.#rejected(entry);
        return false;
      }
      if (isWrite(entry.action)) {
        const { executor } = this.server.router.to(this.table);
        const refusal = executor.refusal({ table: this.table, grows: entry.grows });
        if (refusal !== undefined) {
          reply.error(refusal);
          this.#rejected(entry);
          return false;
        }
      }
      if (entry.run === undefined && args.count > maxHandlerWords) {
        reply.error(`ERR too many arguments for '${entry.fullName}' in a transaction`);
        this.#rejected(entry);
        return false;
      }
      const bytes = sizeOf(args);
      const limit = this.server.limits.queryBytes;
      const transaction = this.transaction!;
      if (transaction.bytes + bytes > limit) {
        // As redis-server does: what is queued counts as part of the query.
        this.server.queryTooLong(this);
        this.destroy();
        return false;
      }
      const isFull = transaction.queue.length >= maxQueuedCommands;
      if (isFull || !this.held.reserve('transaction', bytes)) {
        reply.error(isFull ? tooManyQueued : outOfRequestMemory);
        this.#rejected(entry);
        return false;
      }
      transaction.bytes += bytes;
      transaction.queue.push({ entry, args: copyOf(args) });
      reply.simple('QUEUED');
      if (this.server.metering !== undefined) this.meter.queued(entry, args, queuedBytes);
      return false;
    }
    return true;
  }

  beginTransaction(): void {
    this.transaction = new Transaction();
    this.flags |= ClientFlag.multi;
  }

  /** Forgets the transaction and what it watched. */
  endTransaction(): void {
    this.held.release('transaction', this.transaction?.bytes ?? 0);
    this.transaction = undefined;
    this.flags &= ~ClientFlag.multi;
    this.unwatch();
  }

  /** False when there is no memory for the keys: then some may be watched, which does no harm. */
  watchKeys(args: Arguments): boolean {
    const guard = (this.watch ??= new WatchGuard());
    const { executor } = this.server.router.to(this.table);
    for (let i = 1; i < args.count; i++) {
      const id = `${this.table} ${args.latin1(i)}`;
      if (guard.keys.has(id)) continue;
      const bytes = watchOverheadBytes + 2 * args.lens[i]!;
      if (!this.held.reserve('transaction', bytes)) return false;
      guard.bytes += bytes;
      const key = Buffer.from(args.bytes(i));
      guard.keys.set(id, { table: this.table, key });
      executor.observe(this.table, key, guard);
    }
    return true;
  }

  unwatch(): void {
    const guard = this.watch;
    if (guard === undefined) return;
    this.held.release('transaction', guard.bytes);
    for (const { table, key } of guard.keys.values()) {
      this.server.router.to(table).executor.unobserve(table, key, guard);
    }
    this.watch = undefined;
  }

  /** EXEC: everything queued, as one. What is long is made ready in slices. */
  executeTransaction(reply: RespWriter): void | Promise<Reply | void> {
    const prepared = new PreparedTransaction(this.transaction!, this.table);
    const slices = this.#prepare(prepared);
    if (slices.next().done === true) return this.#executePrepared(prepared, reply);
    return new Promise((resolve) => {
      const next = (): void => {
        if (this.closed) resolve();
        else if (slices.next().done !== true) setImmediate(next);
        else resolve(this.#executePrepared(prepared, this.answer()));
      };
      setImmediate(next);
    });
  }

  /** Yields between slices. */
  *#prepare(prepared: PreparedTransaction): Generator<void, void, undefined> {
    const { commands, elsewhere, executors, transaction } = prepared;
    const { router } = this.server;
    const { span, number: tenant } = this.tenant;
    // To look at the rules of a user again takes longer than all else.
    const perSlice = this.flags & ClientFlag.restricted ? 64 : 1024;
    for (const { entry, args } of transaction.queue) {
      if (commands.length > 0 && commands.length % perSlice === 0) yield;
      const { table } = prepared;
      entry.calls++;
      let refused = this.#refusedByNow(entry, args);
      if (entry.everyPod && refused === undefined) {
        const command = { ...this.command, transform: entry.run!, action: entry.action, args };
        const refusal = this.server.refusalElsewhere(command, router.to(table).executor);
        if (refusal === undefined) elsewhere.push(command);
        else refused = (_rows, _words, answer) => answer.error(refusal);
      }
      if (entry.run !== undefined) executors.add(router.to(table).executor);
      commands.push({
        action: entry.run === undefined || refused !== undefined ? Action.fetch : entry.action,
        name: entry.fullName,
        transform:
          refused ??
          (entry.bind === undefined ? this.#asTransform(entry) : this.#bound(entry.bind)),
        grows: entry.grows,
        table,
        span,
        args,
        usesSpan: entry.usesSpan,
        tenant,
      });
      // The tables of later commands follow from a SELECT before them.
      if (entry.spec.name === 'select') prepared.table = selected(args, span) ?? table;
    }
  }

  #executePrepared(
    { transaction, commands, elsewhere, executors }: PreparedTransaction,
    reply: RespWriter,
  ): void | Promise<Reply | void> {
    const { queue, bytes } = transaction;
    const guard = this.watch;
    const { router, metering } = this.server;
    const { span } = this.tenant;
    if (executors.size > 1) {
      this.endTransaction();
      reply.error(
        'EXECABORT Transaction discarded: its databases are of different models, which one transaction cannot change together',
      );
      return;
    }
    const firstRun = queue.findIndex(({ entry }) => entry.run !== undefined);
    const home = firstRun < 0 ? this.table : commands[firstRun]!.table;
    for (let i = 0; i < commands.length; i++) {
      if (queue[i]!.entry.run === undefined) commands[i]!.table = home;
    }
    const route = router.to(home);
    const work = metering && this.meter.beginQueued(metering, this.lastEntry!, home, route.pricer);
    for (const command of commands) command.work = work;
    const out = route.mayWait ? this.server.borrowWriter(this.version) : reply;
    out.keeper = this;
    let hasRun = false;
    const isClean = (answer: Reply): boolean => {
      hasRun = guard === undefined || !guard.dirty;
      if (!hasRun) {
        answer.nilArray();
        return false;
      }
      answer.array(commands.length);
      return true;
    };
    this.transaction = undefined;
    this.flags &= ~ClientFlag.multi;
    const done = route.executor.executeAll(commands, out, isClean);
    const forget = (): void => {
      this.held.release('transaction', bytes);
      // Not before: a watched key may change while rows are read, and then nothing is to be done.
      if (hasRun) for (const one of elsewhere) this.server.runElsewhere(one, route.executor);
      const { cache } = this.server;
      if (cache === undefined) return;
      queue.forEach(({ entry, args }, i) => {
        cache.wrote(entry, args, commands[i]!.table, span);
      });
    };
    if (!(done instanceof Promise)) {
      forget();
      this.unwatch();
      if (out !== reply) this.#append(out);
      return;
    }
    return done.then((long) => {
      forget();
      this.unwatch();
      if (long === undefined) this.#append(out);
      else if (out !== reply) this.server.giveBackWriter(out);
      return long;
    });
  }

  /** Its user may have lost a right since the command was queued. */
  #refusedByNow(entry: CommandEntry, args: Arguments): Command['transform'] | undefined {
    if (!(this.flags & ClientFlag.restricted)) return undefined;
    const refusal = refusalByNow(this, entry, args);
    return refusal === undefined ? undefined : (_rows, _words, reply) => reply.error(refusal);
  }

  #asTransform(entry: CommandEntry): Command['transform'] {
    const { run, blocks } = entry;
    if (run === undefined) return this.#handlerAsTransform(entry);
    if (blocks === undefined) return run;
    return (rows: Rows, words: Arguments, reply: Reply) => {
      const mark = reply.mark();
      const long = run(rows, words, reply);
      if (long !== undefined || reply.mark() !== mark) return long;
      if ((blocks.inTransaction ?? blocks.onTimeout) === 'nil') reply.nil();
      else reply.nilArray();
    };
  }

  /** A handler has effects outside the rows, so when the transaction runs again it answers as before. */
  #handlerAsTransform(entry: CommandEntry): Command['transform'] {
    let answered: Buffer | undefined;
    return (_rows, words, reply) => {
      const writer = reply as RespWriter;
      if (answered !== undefined) {
        writer.rawBytes(answered, 0, answered.length);
        return;
      }
      const mark = writer.mark();
      this.isExecuting = true;
      void this.#handle(entry, words, writer, mark);
      this.isExecuting = false;
      this.keptTo = 0;
      answered = Buffer.from(writer.buf.subarray(mark, writer.pos));
    };
  }

  // ---- waiting for a key

  /** Has the command wait for its keys; false when there is no memory for that, and it was answered. */
  #block(entry: CommandEntry, args: Arguments): boolean {
    const { server } = this;
    const bytes = sizeOf(args) + watchOverheadBytes * args.count;
    if (!this.held.reserve('request', bytes)) {
      server.open(this).error(outOfRequestMemory);
      return false;
    }
    const wait = new Wait(this, entry, bytes);
    this.wait = wait;
    this.busy = true;
    const keys = keyWords(entry.spec, args).map((word) => Buffer.from(args.bytes(word)));
    server.blocked.add(wait, this.table, keys);
    const { timeout, unit } = entry.blocks!;
    const at = typeof timeout === 'number' ? timeout : timeout(args);
    const word = at < 0 ? args.count + at : at;
    const given = args.float(word);
    const ms = unit === 'ms' ? given : given * 1000;
    if (ms > 0) {
      wait.timer = setTimeout(() => this.timeUp(wait), Math.min(ms, maxTimerMs));
    }
    return true;
  }

  /** Ends a wait that has found nothing; if it is just being tried, once that has ended. */
  timeUp(wait: Wait): void {
    wait.isOver = true;
    if (this.wait !== wait || wait.isTrying) return;
    const reply = this.server.open(this);
    const mark = reply.pos;
    if (wait.entry.blocks!.onTimeout === 'nil') reply.nil();
    else reply.nilArray();
    if (this.server.metering !== undefined) {
      this.#charge(wait.entry, this.args, reply.pos - mark, false);
    }
    this.#unblock(wait);
    this.#goOn();
  }

  /** Ends a wait from outside (CLIENT UNBLOCK); false when there is none. */
  unblockNow(withError: boolean): boolean {
    const { wait } = this;
    if (wait === undefined || wait.isTrying) return false;
    if (withError) {
      this.server.open(this).error('UNBLOCKED client unblocked via CLIENT UNBLOCK');
      this.#unblock(wait);
      setImmediate(() => this.#goOn());
      return true;
    }
    setImmediate(() => this.timeUp(wait));
    return true;
  }

  #unblock(wait: Wait): void {
    clearTimeout(wait.timer);
    this.held.release('request', wait.bytes);
    this.server.blocked.remove(wait);
    this.args.hasWaited = false;
    this.wait = undefined;
    this.busy = false;
  }

  /** A key it waits for has changed: tries the command again. */
  retry(wait: Wait): MaybePromise<Tried> {
    if (this.wait !== wait || this.closed) return 'failed';
    const { server, command } = this;
    const route = server.router.to(this.table);
    const reply = server.open(this);
    const mark = reply.pos;
    command.args.hasWaited = true;
    const own = route.mayWait ? server.borrowWriter(this.version) : undefined;
    if (own !== undefined) own.keeper = this;
    const done = route.executor.execute(command, own ?? reply);
    if (!(done instanceof Promise)) {
      if (own !== undefined) {
        this.#hasRun(wait.entry, own);
        this.#append(own);
      }
      return this.#afterRetry(wait, mark);
    }
    return done
      .then((answer): Tried => {
        if (own !== undefined) this.#hasRun(wait.entry, own);
        if (this.closed) {
          if (own !== undefined) server.giveBackWriter(own);
          // What it took from the key is gone with it.
          return 'served';
        }
        const writer = server.open(this);
        const at = writer.pos;
        if (own !== undefined) this.#append(own);
        if (answer instanceof LongAnswer) {
          for (const part of answer.take()) writer.rawBytes(part, 0, part.length);
          this.held.release('answer', answer.kept);
        }
        return this.#afterRetry(wait, at);
      })
      .catch((error: unknown) => {
        server.report('error', 'a connection failed', { err: error, client: this.address });
        this.destroy();
        return 'served';
      });
  }

  #afterRetry(wait: Wait, mark: number): Tried {
    const { writer } = this.server;
    if (writer.pos === mark) return 'empty';
    // The key now holds another type: not what the client waits for. Moves do report their target's.
    if (writer.buf[mark] === 45 && wait.entry.blocks!.reportsErrors !== true) {
      writer.pos = mark;
      return 'failed';
    }
    if (this.server.metering !== undefined) {
      this.#charge(wait.entry, this.args, writer.pos - mark, writer.buf[mark] === 45);
    }
    this.#unblock(wait);
    this.server.resume(this);
    return 'served';
  }

  /** Goes on with the pipeline of a client that was served. */
  resumeNow(): void {
    if (this.server.writer.pos > turnOutputBytes) {
      this.server.resume(this);
      return;
    }
    this.resumes = false;
    if (this.unsent === undefined) this.#goOn();
    else if (!this.isStalled) this.#sendPart();
  }

  // ---- out

  /**
   * Sends bytes that the caller may reuse if the answer is true; false when the socket still holds them.
   */
  send(bytes: Buffer): boolean {
    if (this.closed) return true;
    this.bytesOut += bytes.length;
    const { socket } = this;
    // TLS takes its time with every write, however small: with a copy for it the buffer is free at once.
    const isCopied = this.encrypted;
    socket.write(isCopied ? Buffer.from(bytes) : bytes);
    if (this.closing) {
      this.endSoon();
      return isCopied || socket.writableLength === 0;
    }
    const waiting = socket.writableLength;
    if (waiting === 0) return true;
    // Less than this is counted by nothing that tells when it has left.
    if (waiting > socket.writableHighWaterMark && !this.held.set('reply', waiting)) {
      this.server.cutOff(this, waiting);
      return true;
    }
    if (waiting > sendHighWaterBytes && !this.isStalled) {
      this.isStalled = true;
      this.#pause();
    }
    this.server.checkOutputLimit(this, waiting);
    return isCopied;
  }

  /** All that was written has left. */
  drained(): void {
    this.overSoftLimitSince = 0;
    this.held.set('reply', 0);
    if (!this.isStalled) return;
    this.isStalled = false;
    if (this.unsent !== undefined) {
      if (!this.resumes) this.#sendPart();
      return;
    }
    this.#unpause();
    if (!this.busy) this.#goOn();
  }

  #pause(): void {
    if (this.paused) return;
    this.paused = true;
    this.socket.pause();
  }

  #unpause(): void {
    if (!this.paused) return;
    this.paused = false;
    this.socket.resume();
  }

  /** What is read is only kept. Reading takes time, in which others may have come. */
  #readLater(): void {
    if (this.paused) return;
    this.#pause();
    this.server.readLater(this);
  }

  /** It has waited for others to be read. */
  readAgain(): void {
    if (!this.closed && !this.isStalled && this.parser.pending <= this.#readAheadBytes)
      this.#unpause();
  }

  /** Bytes taken in and not run yet. */
  get queryBytes(): number {
    return this.parser.pending;
  }

  /**
   * Ends its output. What it still sends is thrown away for a moment, as a connection that is closed while bytes come
   * is reset, and the client may lose the last answer; then it is closed.
   */
  endSoon(): void {
    this.socket.end();
    this.server.closeLater(this);
  }

  /** Closes once everything written so far is sent. */
  closeSoon(): void {
    this.closing = true;
    this.server.open(this);
  }

  /** Closes at once, after an error as the last bytes. */
  dismiss(error: string): void {
    this.socket.write(`-${error}\r\n`);
    this.socket.destroySoon();
    this.dispose();
  }

  /** Closes at once. */
  destroy(): void {
    this.socket.destroy();
    this.dispose();
  }

  /** The socket is gone: lets go of everything that knows this connection. */
  dispose(): void {
    if (this.closed) return;
    this.closed = true;
    this.command.isAbandoned = true;
    this.unsent = undefined;
    if (this.wait !== undefined) this.#unblock(this.wait);
    this.unitsWait?.leave();
    clearTimeout(this.refusalTimer);
    this.unwatch();
    this.transaction = undefined;
    this.server.forget(this);
    this.parser.drop();
    this.held.close();
  }

  stepInfo(): StepInfo {
    return { what: this.lastCommand, tenant: this.tenant.number, bytes: this.wordBytes };
  }

  /** Bytes of the words of the command that runs, or ran last. */
  get wordBytes(): number {
    const { args } = this;
    let bytes = 0;
    for (let i = 0; i < args.count; i++) bytes += args.lens[i]!;
    return bytes;
  }

  /** As `wordBytes`, with its headers, as an array of bulk strings. */
  get commandBytes(): number {
    const { count, lens } = this.args;
    let bytes = lineBytes(count);
    for (let i = 0; i < count; i++) bytes += lineBytes(lens[i]!) + lens[i]! + 2;
    return bytes;
  }

  /** Name of the command run last, `NULL` before the first. */
  get lastCommand(): string {
    return this.lastEntry?.fullName ?? 'NULL';
  }

  get isBusy(): boolean {
    return this.busy || this.unsent !== undefined;
  }
}

/** A transaction is of the dearest kind that is in it. */
function refusedKind(
  { chargeClass }: CommandEntry,
  queue: readonly QueuedCommand[] | undefined,
): Refused {
  if (queue === undefined) return { kind: chargeClass, isTransaction: false };
  const kinds = queue.map(({ entry }) => entry.chargeClass);
  const order = [ChargeClass.write, ChargeClass.scan, ChargeClass.read];
  return { kind: order.find((kind) => kinds.includes(kind)) ?? chargeClass, isTransaction: true };
}

const tooManyQueued = `ERR too many commands in a transaction: at most ${maxQueuedCommands}`;
const noAuthText = 'NOAUTH Authentication required.';
const maxTimerMs = 0x7fffffff;

const whileSubscribed: ReadonlySet<string> = new Set([
  'subscribe',
  'unsubscribe',
  'psubscribe',
  'punsubscribe',
  'ssubscribe',
  'sunsubscribe',
  'ping',
  'quit',
  'reset',
]);

function noTransform(): void {
  throw new RangeError('a command without a transform');
}

/** Redis prints words as C strings, so they end at a zero byte. */
function clip(text: string, length: number): string {
  const end = text.indexOf('\0');
  return end >= 0 && end < length ? text.slice(0, end) : text.slice(0, length);
}

/** Whether the words begin as a line of an HTTP request does that no Redis client sends. */
function isHttp(args: Arguments): boolean {
  return args.is(0, 'POST') || args.is(0, 'HOST:');
}

/** Redis names the command and its first arguments, each cut, all in about 128 bytes. */
function unknownCommand(args: Arguments): string {
  let words = '';
  for (let i = 1; i < args.count && words.length < 128; i++) {
    words += `'${clip(args.latin1(i, 128), 128 - words.length)}' `;
  }
  return `ERR unknown command '${clip(args.latin1(0, 128), 128)}', with args beginning with: ${words}`;
}

/** What is read into strings is no longer: names, options, patterns, rules. */
const maxWordBytes = 64 * 1024;
const longWord = new CommandError(`ERR an argument is longer than ${maxWordBytes} bytes`);

function hasLongWord({ count, lens }: Arguments): boolean {
  for (let i = 1; i < count; i++) if (lens[i]! > maxWordBytes) return true;
  return false;
}

/** Bytes of a header line with this number. */
function lineBytes(value: number): number {
  return String(value).length + 3;
}

/** Bytes that a copy of the words takes. */
function sizeOf({ count, lens }: Arguments): number {
  let bytes = commandOverheadBytes + 8 * count;
  for (let i = 0; i < count; i++) bytes += lens[i]!;
  return bytes;
}

/** The words in memory of their own. */
export function copyOf(args: Arguments): Arguments {
  const copy = new Arguments(args.count);
  let total = 0;
  for (let i = 0; i < args.count; i++) total += args.lens[i]!;
  const buf = Buffer.allocUnsafe(total);
  let p = 0;
  for (let i = 0; i < args.count; i++) {
    const s = args.starts[i]!;
    const n = args.lens[i]!;
    args.buf.copy(buf, p, s, s + n);
    copy.starts[i] = p;
    copy.lens[i] = n;
    p += n;
  }
  copy.buf = buf;
  copy.count = args.count;
  return copy;
}
