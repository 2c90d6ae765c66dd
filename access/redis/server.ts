// The Redis listener of a plane: its connections, the turn in which their commands run and are answered,
// and what all clients share (channels, the slow log, counters).
//
// A turn is one round of the event loop. Commands of every socket that had bytes run as they arrive and
// put their answers into one buffer, each connection's in segments of its own. When the sockets are
// done the log takes all writes of the turn in one write, and only then do the answers leave, one write
// a connection; with fsync=always they wait for the disk first.

import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Arguments } from '../../universal-row/arguments.ts';
import { Action, type Command } from '../../universal-row/command.ts';
import type { Executor } from '../../universal-row/executor.ts';
import type { TenantDefinition, UserDefinition } from '../../contracts/tenancy/definitions.ts';
import type { PartitionEntrance } from '../../contracts/partition-entrance.ts';
import { RowWork } from '../../universal-row/row-work.ts';
import type { StepWatcher } from '../../contracts/step-watcher.ts';
import type { PodAdmission } from '../../contracts/pod-admission.ts';
import type { RequestMemory } from '../admission/request-memory.ts';
import type { GatewayAdmission } from '../admission/gateway-admission.ts';
import type { Principals, PrincipalsChange } from '../gateway/principals.ts';
import type { Router } from '../gateway/router.ts';
import type { TlsListeners } from '../gateway/tls-context.ts';
import { BlockedClients } from './blocked-clients.ts';
import { ClientFlag, type ClientServer } from './client.ts';
import { Connection, turnOutputBytes } from './connection.ts';
import type { CommandEntry, CommandRegistry } from './commands/registry.ts';
import { LoginDeadlines } from './login-deadlines.ts';
import type { RedisMetering } from './metering.ts';
import { Permissions } from './acl/acl-user.ts';
import { ChannelRechecks } from './acl/channel-rechecks.ts';
import type { Load, ReadCache, RememberedTable } from './read-cache.ts';
import { defaultLimits, type ParserLimits } from './resp-parser.ts';
import { RespWriter } from './resp-writer.ts';
import { readShared } from './shared-read.ts';
import type { ConfigEntry, ServerCounters, ServerFacts, UserKeeper } from './server-facts.ts';
import type { SlowEntry, SlowlogLimits } from './slowlog.ts';
import { Tenant, tooManyClients } from './tenant.ts';

export interface OutputLimit {
  hardBytes: number;
  softBytes: number;
  softSeconds: number;
}

/** How TLS is served. */
export interface RedisTls {
  listeners: TlsListeners;
  /** On the ordinary port, in place of plain connections. */
  onPort: boolean;
  /** A port for it beside the ordinary one; 0 for none. */
  ownPort: number;
}

export interface RedisServerOptions {
  host: string;
  port: number;
  /** Absent where only plain connections are served. */
  tls?: RedisTls;
  /** Connections that may wait to be accepted. */
  backlog: number;
  maxClients: number;
  /** Seconds; 0 for never. */
  idleTimeout: number;
  /** Milliseconds in which a client has to log in, where it has to; 0 for no limit. */
  loginTimeoutMs: number;
  tcpKeepAliveSeconds: number;
  principals: Principals;
  /** Absent where users stay as they are. */
  users?: UserKeeper;
  maxBulkBytes: number;
  maxQueryBytes: number;
  slowlogMs: number;
  slowlogLength: number;
  metering?: RedisMetering | undefined;
  /** Who has the thread next; absent where everyone may have it at once. */
  podAdmission?: PodAdmission | undefined;
  /** Hears of steps that take long; absent where none does. */
  steps?: StepWatcher;
  /** What requests under way may take; without it as much as they like. */
  memory?: RequestMemory;
  /** Absent where nobody has a quota. */
  admission?: GatewayAdmission;
  /** Ceilings of partitions; absent where there can be none. */
  partitions?: PartitionEntrance;
  outputLimits: { normal: OutputLimit; pubsub: OutputLimit };
  registry: CommandRegistry;
  router: Router;
  config: readonly ConfigEntry[];
  facts: ServerFacts;
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
}

// Reads in a row from one client after which it counts as the only one that is talking.
const readsToBeAlone = 64;

// MONITOR shows as much of a word, and begins another one as long as there is less in its line.
const monitorWordBytes = 1024;
const monitorLineBytes = 8192;
const endingMs = 1000;
const httpLogEveryMs = 60_000;

export class RedisServer implements ClientServer {
  readonly writer = new RespWriter();
  readonly registry: CommandRegistry;
  readonly router: Router;
  readonly principals: Principals;
  readonly users: UserKeeper | undefined;
  /** What every slow log keeps. */
  readonly slowlogLimits: SlowlogLimits;
  /** By number: those that have had clients. */
  readonly tenants = new Map<number, Tenant<Connection>>();
  readonly connections = new Map<number, Connection>();
  readonly monitors = new Set<Connection>();
  readonly rechecks = new ChannelRechecks();
  /** Of those that have not logged in yet. */
  readonly logins: LoginDeadlines<Connection>;
  readonly facts: ServerFacts;
  readonly config = new Map<string, ConfigEntry>();
  readonly counters: ServerCounters = {
    connections: 0,
    rejectedConnections: 0,
    commands: 0,
    errors: 0,
    bytesIn: 0,
    bytesOut: 0,
    outputLimitDisconnections: 0,
  };
  readonly report: RedisServerOptions['report'];
  limits: ParserLimits;
  maxClients: number;
  idleTimeout: number;
  outputLimits: RedisServerOptions['outputLimits'];
  /** Infinity when the slow log is off. */
  slowlogMs: number;
  /** Absent while nothing is charged. */
  metering: RedisMetering | undefined;
  readonly admission: GatewayAdmission | undefined;
  readonly partitions: PartitionEntrance | undefined;
  /** What is remembered of reads; absent while that is of no table. */
  cache: ReadCache | undefined;
  readonly podAdmission: PodAdmission | undefined;
  readonly steps: StepWatcher | undefined;
  /** Milliseconds; Infinity when the step watchdog is disabled. */
  readonly stepLimitMs: number;
  readonly memory: RequestMemory | undefined;
  /** Wall clock, milliseconds, as of the start of this turn. */
  now = Date.now();
  /** Clients that wait for a key. */
  readonly blocked = new BlockedClients({
    changesOf: (table) => this.router.to(table).executor,
    begin: () => this.lap(),
    isFull: () => this.writer.pos > turnOutputBytes,
  });
  opsPerSecond = 0;
  host: string;
  port: number;
  private readonly permissions = new WeakMap<UserDefinition, Permissions>();
  private readonly listener: Server;
  private readonly tlsListener: Server | undefined;
  /** 0 when there is none beside the ordinary one. */
  readonly tlsPort: number;
  private nextId = 1;
  private readonly keepAliveMs: number;
  private readonly backlog: number;
  private draining = false;
  private timer: NodeJS.Timeout | undefined;
  // Segments of the shared writer: whose bytes begin where.
  private owners: Connection[] = [];
  private starts: number[] = [];
  private turnScheduled = false;
  private lastReader: Connection | undefined;
  private readsToBeAlone = readsToBeAlone;
  /** Connections that have ended their output, and when they are closed. Monotonic milliseconds. */
  private readonly ending = new Map<Connection, number>();
  private resuming: Connection[] = [];
  /** Clients that are held back, and not read for now. */
  private readonly readers = new Set<Connection>();
  private readsNext = false;
  private spareWriters: RespWriter[] = [];
  /** Monotonic milliseconds, as of the command that ran last. */
  lapAt = 0;
  /** Monotonic milliseconds. */
  private httpLoggedAt = -Infinity;
  private readonly samples: { at: number; commands: number }[] = [];
  private retiredCommands = 0;

  constructor(options: RedisServerOptions) {
    this.registry = options.registry;
    this.router = options.router;
    this.facts = options.facts;
    this.report = options.report;
    this.host = options.host;
    this.port = options.port;
    this.backlog = options.backlog;
    this.maxClients = options.maxClients;
    this.idleTimeout = options.idleTimeout;
    this.logins = new LoginDeadlines(options.loginTimeoutMs);
    this.keepAliveMs = options.tcpKeepAliveSeconds * 1000;
    this.outputLimits = options.outputLimits;
    this.slowlogMs = options.slowlogMs;
    this.slowlogLimits = { length: options.slowlogLength, nextSerial: 1 };
    this.principals = options.principals;
    this.users = options.users;
    this.principals.onChange((change) => this.#follow(change));
    this.metering = options.metering;
    this.admission = options.admission;
    this.partitions = options.partitions;
    this.podAdmission = options.podAdmission;
    this.steps = options.steps;
    this.stepLimitMs = options.steps?.limitMs ?? Infinity;
    this.memory = options.memory;
    this.admission?.onChange((number, gate) => {
      const tenant = this.tenants.get(number);
      tenant?.setGates(gate, tenant.scanGate);
    });
    this.admission?.onClassChange((number, gate) => {
      const tenant = this.tenants.get(number);
      tenant?.setGates(tenant.gate, gate);
    });
    this.limits = {
      ...defaultLimits,
      bulkBytes: options.maxBulkBytes,
      queryBytes: options.maxQueryBytes,
    };
    for (const entry of options.config) this.config.set(entry.name, entry);
    const { tls } = options;
    const accept = (socket: Socket): void => this.#accept(socket);
    this.listener = tls?.onPort
      ? tls.listeners.createServer(accept)
      : createServer({ pauseOnConnect: true }, accept);
    this.tlsPort = tls?.ownPort ?? 0;
    if (tls !== undefined && tls.ownPort !== 0) {
      this.tlsListener = tls.listeners.createServer(accept);
    }
  }

  // ---- life

  async listen(): Promise<number> {
    await this.#listenOn(this.listener, this.port);
    if (this.tlsListener !== undefined) await this.#listenOn(this.tlsListener, this.tlsPort);
    this.port = (this.listener.address() as AddressInfo).port;
    this.timer = setInterval(() => this.#everyTenth(), 100);
    this.timer.unref();
    return this.port;
  }

  async #listenOn(listener: Server, port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject);
      listener.listen({ host: this.host, port, backlog: this.backlog }, () => {
        listener.off('error', reject);
        resolve();
      });
    });
  }

  /** Accepts no more clients, and closes those that have nothing under way; the rest when they have. */
  async drain(graceMs: number): Promise<void> {
    this.draining = true;
    this.admission?.close();
    this.listener.close();
    this.tlsListener?.close();
    const deadline = performance.now() + graceMs;
    for (;;) {
      for (const connection of this.connections.values()) {
        const idle = !connection.isBusy && connection.queryBytes === 0;
        if (idle || connection.wait !== undefined) connection.closeSoon();
      }
      if (this.connections.size === 0 || performance.now() >= deadline) break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    this.endTurn();
    for (const connection of [...this.connections.values()]) connection.destroy();
    clearInterval(this.timer);
  }

  #accept(accepted: Socket): void {
    this.counters.connections++;
    this.now = Date.now();
    const { anonymous } = this.principals;
    if (anonymous === undefined) this.logins.makeRoom(this.maxClients, this.connections.size);
    if (this.connections.size >= this.maxClients || this.draining) {
      this.counters.rejectedConnections++;
      accepted.on('error', ignore);
      accepted.end('-ERR max number of clients reached\r\n');
      accepted.resume();
      return;
    }
    if (anonymous !== undefined) {
      const tenant = this.tenant(anonymous.tenant);
      if (tenant.isFull) {
        this.counters.rejectedConnections++;
        tenant.rejectedConnections++;
        accepted.on('error', ignore);
        accepted.end(`-${tooManyClients(tenant)}\r\n`);
        accepted.resume();
        return;
      }
    }
    // Nothing is read before `resume`, so the connection is there when bytes come.
    const of: { connection?: Connection } = {};
    const socket = readShared(accepted, {
      receive: (chunk, length) => {
        if (of.connection !== undefined) this.#receive(of.connection, chunk, length);
      },
      get isHeldBack() {
        return of.connection?.isHeldBack === true;
      },
    });
    socket.setNoDelay(true);
    if (this.keepAliveMs > 0) socket.setKeepAlive(true, this.keepAliveMs);
    const connection = new Connection(this, socket, this.nextId++, this.now, anonymous);
    of.connection = connection;
    this.connections.set(connection.id, connection);
    socket.on('drain', () => connection.drained());
    // Clients that reset their connection are no news; the close that follows tidies up.
    socket.on('error', ignore);
    socket.on('close', () => connection.dispose());
    socket.resume();
  }

  forget(connection: Connection): void {
    this.connections.delete(connection.id);
    this.logins.done(connection);
    this.ending.delete(connection);
    if (this.lastReader === connection) this.lastReader = undefined;
    connection.leaveTenant();
    this.pausedConnections.delete(connection);
    this.readers.delete(connection);
    this.counters.bytesIn += connection.bytesIn;
    this.counters.bytesOut += connection.bytesOut;
    this.retiredCommands += connection.commandsRun;
  }

  totalCommands(): number {
    let total = this.retiredCommands;
    for (const connection of this.connections.values()) total += connection.commandsRun;
    return total;
  }

  // ---- the turn

  /** Where to write what `connection` is to be sent. Ends what was open for another one. */
  open(connection: Connection): RespWriter {
    const { owners, writer } = this;
    const last = owners.length - 1;
    if (last < 0 || owners[last] !== connection) {
      owners.push(connection);
      this.starts.push(writer.pos);
      if (!this.turnScheduled) this.#scheduleTurn();
    }
    writer.version = connection.version;
    writer.keeper = connection;
    return writer;
  }

  /** Takes back what was written for `connection` from position `mark` on, and nothing of others. */
  takeBack(connection: Connection, mark: number): void {
    const { owners, starts, writer } = this;
    const last = owners.length - 1;
    if (last >= 0 && owners[last] === connection) writer.pos = Math.max(mark, starts[last]!);
  }

  /**
   * While one client alone is talking there is nobody to share a turn with, and its turn ends with its
   * bytes: that saves a round of the event loop a command.
   */
  #receive(connection: Connection, chunk: Buffer, length: number): void {
    if (connection !== this.lastReader) {
      this.lastReader = connection;
      this.readsToBeAlone = readsToBeAlone;
    } else if (this.readsToBeAlone > 0) this.readsToBeAlone--;
    this.steps?.touched(connection);
    if (this.turnScheduled || this.readsToBeAlone > 0) {
      if (!this.turnScheduled) this.#scheduleTurn();
      connection.receive(chunk, length);
      return;
    }
    this.#beginTurn();
    connection.receive(chunk, length);
    this.endTurn();
  }

  #scheduleTurn(): void {
    this.#beginTurn();
    setImmediate(this.endTurn);
  }

  #beginTurn(): void {
    this.turnScheduled = true;
    this.now = Date.now();
    this.lapAt = performance.now();
    this.podAdmission?.beginTick(this.lapAt);
  }

  /** Milliseconds since the last lap: the time of the command that has just run. */
  lap(): number {
    const now = performance.now();
    const spent = now - this.lapAt;
    this.lapAt = now;
    return spent;
  }

  /** Logs what was written in this turn, then lets the answers go. */
  readonly endTurn = (): void => {
    this.turnScheduled = false;
    const executors = this.router.executors();
    // Usually none, or the one log that was written: no list is made for those.
    let gates = 0;
    let gated: Executor | undefined;
    let position = -1;
    let others: { executor: Executor; at: number }[] | undefined;
    for (const executor of executors) {
      let at: number;
      try {
        at = executor.endTurn();
      } catch (error) {
        this.#logFailed(error);
        return;
      }
      if (at < 0) continue;
      if (gates++ > 0) (others ??= []).push({ executor, at });
      else {
        gated = executor;
        position = at;
      }
    }
    const { owners, starts, writer } = this;
    if (owners.length !== 0) {
      const end = writer.pos;
      if (gates === 0) {
        const free = this.#sendAll(writer.buf, owners, starts, end);
        owners.length = 0;
        starts.length = 0;
        writer.reset(!free);
      } else {
        const held = writer.buf;
        this.owners = [];
        this.starts = [];
        writer.reset(true);
        const send = (): void => {
          this.#sendAll(held, owners, starts, end);
        };
        if (others === undefined) gated!.whenSafe(position, send);
        else {
          let left = gates;
          const one = (): void => {
            if (--left === 0) send();
          };
          gated!.whenSafe(position, one);
          for (const { executor, at } of others) executor.whenSafe(at, one);
        }
      }
    }
    if (this.resuming.length !== 0) {
      const resuming = this.resuming;
      this.resuming = [];
      setImmediate(() => {
        for (const connection of resuming) connection.resumeNow();
      });
    }
  };

  /** Nothing of this turn is in the log: nobody may be told that it was done. */
  #logFailed(error: unknown): void {
    this.report('error', 'the log could not take the writes of a turn', { err: error });
    const owners = new Set(this.owners);
    this.owners = [];
    this.starts = [];
    this.writer.reset(true);
    for (const connection of owners) connection.destroy();
    throw error;
  }

  #sendAll(
    buf: Buffer,
    owners: readonly Connection[],
    starts: readonly number[],
    end: number,
  ): boolean {
    let free = true;
    const n = owners.length;
    for (let i = 0; i < n; i++) {
      const s = starts[i]!;
      const e = i + 1 < n ? starts[i + 1]! : end;
      const connection = owners[i]!;
      if (e > s) {
        if (!connection.send(buf.subarray(s, e))) free = false;
      } else if (connection.closing) connection.endSoon();
    }
    return free;
  }

  /** Lets a connection go on with its pipeline in the next turn. */
  resume(connection: Connection): void {
    this.resuming.push(connection);
    if (!this.turnScheduled) this.#scheduleTurn();
  }

  /** Of the clients that are held back one is read in each round of the event loop. */
  readLater(connection: Connection): void {
    this.readers.add(connection);
    if (!this.readsNext) setImmediate(this.readNext);
    this.readsNext = true;
  }

  private readonly readNext = (): void => {
    for (const connection of this.readers) {
      this.readers.delete(connection);
      connection.readAgain();
      break;
    }
    this.readsNext = this.readers.size > 0;
    if (this.readsNext) setImmediate(this.readNext);
  };

  /** Logs that a connection speaks HTTP, at most once a minute. */
  httpAttempted({ address }: Connection): void {
    const now = performance.now();
    if (now - this.httpLoggedAt < httpLogEveryMs) return;
    this.httpLoggedAt = now;
    this.report(
      'warn',
      `Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands to Redis. This is likely due to an attacker attempting to use Cross Protocol Scripting to compromise your Redis instance. Connection from ${address} aborted.`,
    );
  }

  /** Why a command about all databases may not run on the executors other than `home`, if it may not. */
  refusalElsewhere({ span, grows }: Command, home: Executor): string | undefined {
    for (let table = span.first; table < span.first + span.count; table++) {
      const { executor } = this.router.to(table);
      const refusal = executor === home ? undefined : executor.refusal({ table, grows });
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  /** Runs a command about all databases on the executors other than the one that answers. */
  runElsewhere(command: Command, home: Executor): void {
    const { first, count } = command.span;
    const done = new Set([home]);
    for (let table = first; table < first + count; table++) {
      const { executor } = this.router.to(table);
      if (done.has(executor)) continue;
      done.add(executor);
      const writer = this.borrowWriter(2);
      const waits = executor.execute({ ...command, table }, writer);
      if (waits instanceof Promise) {
        waits
          .catch((error: unknown) => {
            this.report('error', `command ${command.name} failed`, { err: error });
          })
          .finally(() => this.cache?.forgetAll(command.span));
      } else this.giveBackWriter(writer);
    }
    this.cache?.forgetAll(command.span);
  }

  /** Runs a GET for what is remembered, in the background: its tenant is charged for it. */
  reload({ table, tenant, span }: RememberedTable, key: Buffer, load: Load): void {
    const { executor, pricer } = this.router.to(table);
    const writer = this.borrowWriter(2);
    const work = new RowWork();
    const args = new Arguments();
    args.buf = key;
    args.lens[1] = key.length;
    args.count = 2;
    // What it finds to have expired goes into the log.
    if (!this.turnScheduled) this.#scheduleTurn();
    const done = (): void => {
      load.answered(writer, performance.now());
      const account = this.metering?.meter.account(tenant);
      if (account !== undefined) pricer?.chargeUnasked(account, table - span.first, work);
      this.giveBackWriter(writer);
    };
    const { transform } = load;
    const command = { action: Action.fetch, name: 'get', transform, grows: false, table, span };
    const waits = executor.execute({ ...command, args, work }, writer);
    if (!(waits instanceof Promise)) {
      done();
      return;
    }
    waits
      .catch((error: unknown) => {
        this.report('error', 'reading again what is remembered failed', { err: error });
      })
      .finally(done);
  }

  borrowWriter(version: number): RespWriter {
    const writer = this.spareWriters.pop() ?? new RespWriter(4096);
    writer.version = version;
    writer.pos = 0;
    writer.keeper = undefined;
    return writer;
  }

  giveBackWriter(writer: RespWriter): void {
    if (this.spareWriters.length < 256 && writer.buf.length <= 64 * 1024) {
      this.spareWriters.push(writer);
    }
  }

  countError(tenant: Tenant): void {
    this.counters.errors++;
    tenant.errors++;
  }

  resetStatistics(): void {
    const { counters } = this;
    counters.connections = 0;
    counters.rejectedConnections = 0;
    counters.errors = 0;
    counters.bytesIn = 0;
    counters.bytesOut = 0;
    counters.outputLimitDisconnections = 0;
    this.retiredCommands = 0;
    this.samples.length = 0;
    for (const connection of this.connections.values()) {
      connection.commandsRun = 0;
      connection.bytesIn = 0;
      connection.bytesOut = 0;
    }
    const reset = (entry: CommandEntry): void => {
      entry.calls = 0;
      entry.spentMs = 0;
      entry.rejectedCalls = 0;
      entry.failedCalls = 0;
      for (const sub of entry.subcommands?.values() ?? []) reset(sub);
    };
    for (const entry of this.registry.all()) reset(entry);
  }

  // ---- CLIENT PAUSE

  /** Until when (monotonic milliseconds) commands, or only writes, are held back; 0 for not at all. */
  pausedUntil = 0;
  pausesWritesOnly = false;
  private pauseTimer: NodeJS.Timeout | undefined;
  private readonly pausedConnections = new Set<Connection>();

  pauseClients(ms: number, writesOnly: boolean): void {
    const until = performance.now() + ms;
    this.pausesWritesOnly =
      this.pausedUntil === 0 ? writesOnly : this.pausesWritesOnly && writesOnly;
    this.pausedUntil = Math.max(this.pausedUntil, until);
    clearTimeout(this.pauseTimer);
    this.pauseTimer = setTimeout(
      () => this.unpauseClients(),
      Math.min(this.pausedUntil - performance.now(), 0x7fffffff),
    );
  }

  unpauseClients(): void {
    clearTimeout(this.pauseTimer);
    this.pausedUntil = 0;
    const waiting = [...this.pausedConnections];
    this.pausedConnections.clear();
    for (const connection of waiting) connection.unhold();
  }

  /** The connection has a command that must wait for the end of the pause. */
  awaitUnpause(connection: Connection): void {
    this.pausedConnections.add(connection);
  }

  // ---- upkeep

  #everyTenth(): void {
    this.now = Date.now();
    // Waits can become ready outside of any command: a row expired, or a table was swapped.
    if (this.blocked.isReady) {
      this.lapAt = performance.now();
      this.blocked.serve();
    }
    const commands = this.totalCommands();
    this.samples.push({ at: performance.now(), commands });
    if (this.samples.length > 16) this.samples.shift();
    const first = this.samples[0]!;
    const span = performance.now() - first.at;
    this.opsPerSecond = span > 0 ? Math.round(((commands - first.commands) * 1000) / span) : 0;
    this.#closeIdle();
    const now = performance.now();
    this.logins.sweep(now);
    this.#closeEnded(now);
  }

  #closeIdle(): void {
    const idleMs = this.idleTimeout * 1000;
    for (const connection of this.connections.values()) {
      if (connection.overSoftLimitSince !== 0) {
        this.checkOutputLimit(connection, connection.socket.writableLength);
      }
      if (idleMs === 0 || connection.wait !== undefined) continue;
      if (connection.isHeldBack) continue;
      if (connection.flags & (ClientFlag.subscribed | ClientFlag.monitor)) continue;
      if (this.now - connection.lastActiveAt > idleMs) connection.destroy();
    }
  }

  /** Cuts off a client for which more is waiting than its class is allowed. */
  checkOutputLimit(connection: Connection, waiting: number): void {
    const isListener = (connection.flags & (ClientFlag.subscribed | ClientFlag.monitor)) !== 0;
    const limit = isListener ? this.outputLimits.pubsub : this.outputLimits.normal;
    let over = limit.hardBytes > 0 && waiting > limit.hardBytes;
    if (limit.softBytes > 0 && waiting > limit.softBytes) {
      if (connection.overSoftLimitSince === 0) connection.overSoftLimitSince = this.now;
      else if (this.now - connection.overSoftLimitSince > limit.softSeconds * 1000) over = true;
    } else connection.overSoftLimitSince = 0;
    if (over) this.cutOff(connection, waiting);
  }

  /** Closes a client that does not read what waits for it. */
  cutOff(connection: Connection, waiting: number): void {
    this.counters.outputLimitDisconnections++;
    this.report('warn', 'client disconnected: its output buffer is over the limit', {
      client: connection.address,
      waitingBytes: waiting,
    });
    connection.destroy();
  }

  /** A client is about to be closed for what it has queued. */
  queryTooLong({ address }: Connection): void {
    this.report('warn', 'client disconnected: its query is over the limit', { client: address });
  }

  /** The connection has ended its output. It is closed when its client has had time to read that. */
  closeLater(connection: Connection): void {
    if (!this.ending.has(connection)) this.ending.set(connection, performance.now() + endingMs);
  }

  #closeEnded(now: number): void {
    for (const [connection, deadline] of this.ending) {
      if (now < deadline) return;
      this.ending.delete(connection);
      if (connection.socket.writableLength === 0) connection.destroy();
      else this.closeLater(connection);
    }
  }

  // ---- who is who

  tenant(definition: TenantDefinition): Tenant<Connection> {
    let tenant = this.tenants.get(definition.number);
    if (tenant === undefined) {
      const { number } = definition;
      const gate = this.admission?.gateOf(number);
      const scanGate = this.admission?.classGateOf(number);
      tenant = new Tenant<Connection>(definition, this.slowlogLimits, gate, scanGate);
      this.tenants.set(tenant.number, tenant);
    } else tenant.follow(definition);
    return tenant;
  }

  /** The slowest commands of all tenants, or of the one with this number; the newest first. */
  slowest(limit: number, tenant?: number): { tenant: number; entry: SlowEntry }[] {
    const logs = tenant === undefined ? this.tenants.values() : [this.tenants.get(tenant)];
    const found = [...logs].flatMap((one) =>
      (one?.slowlog.entries ?? []).slice(0, limit).map((entry) => ({ tenant: one!.number, entry })),
    );
    return found.sort((a, b) => b.entry.serial - a.entry.serial).slice(0, limit);
  }

  /** Names of this kind that anybody listens to, of all tenants together. */
  countListeners(kind: 'channels' | 'patterns' | 'shardChannels'): number {
    let count = 0;
    for (const { pubsub } of this.tenants.values()) count += pubsub[kind].size;
    return count;
  }

  permissionsOf(user: UserDefinition): Permissions {
    let permissions = this.permissions.get(user);
    if (permissions === undefined) {
      permissions = Permissions.parse(this.registry, user.rules);
      this.permissions.set(user, permissions);
    }
    return permissions;
  }

  /** Those who may be no more are cut off; the others go by their new rules from here on. */
  #follow({ ended, changed, goneTenants }: PrincipalsChange): void {
    for (const principal of ended) {
      for (const connection of this.#connectionsOf(principal.tenant)) {
        if (connection.principal === principal) connection.revoke();
      }
    }
    for (const principal of changed) {
      this.tenants.get(principal.tenant.number)?.follow(principal.tenant);
      for (const connection of this.#connectionsOf(principal.tenant)) {
        if (connection.principal === principal) connection.followRules();
      }
    }
    for (const { number } of goneTenants) this.tenants.delete(number);
  }

  #connectionsOf({ number }: TenantDefinition): Connection[] {
    return [...(this.tenants.get(number)?.connections ?? [])];
  }

  addMonitor(connection: Connection): void {
    connection.setFlag(ClientFlag.monitor, true);
    this.monitors.add(connection);
  }

  /** Shows a command to the clients in MONITOR. */
  feedMonitors(connection: Connection, entry: CommandEntry, args: Arguments): void {
    const { monitors } = this;
    if (entry.spec.flags.includes('admin') || entry.noAuth) return;
    const now = performance.timeOrigin + performance.now();
    const seconds = Math.floor(now / 1000);
    const micros = String(Math.floor((now % 1000) * 1000)).padStart(6, '0');
    let line = `+${seconds}.${micros} [${connection.db} ${connection.address}]`;
    for (let i = 0; i < args.count; i++) {
      if (line.length > monitorLineBytes) {
        line += ` "... (${args.count - i} more arguments)"`;
        break;
      }
      const word = args.bytes(i);
      const cut = word.length - monitorWordBytes;
      const rest = cut > 0 ? `... (${cut} more bytes)` : '';
      line += ` "${escaped(word.subarray(0, monitorWordBytes))}${rest}"`;
    }
    line += '\r\n';
    for (const monitor of monitors) {
      if (monitor.tenant === connection.tenant) this.open(monitor).raw(line);
    }
  }
}

function ignore(): void {
  // The close event does what is to be done.
}

/** As a C string literal, as MONITOR shows words. */
function escaped(word: Buffer): string {
  let text = '';
  for (const byte of word) {
    if (byte === 34 || byte === 92) text += `\\${String.fromCharCode(byte)}`;
    else if (byte >= 32 && byte < 127) text += String.fromCharCode(byte);
    else text += shortEscapes[byte] ?? `\\x${byte.toString(16).padStart(2, '0')}`;
  }
  return text;
}

const shortEscapes: Readonly<Record<number, string>> = {
  7: '\\a',
  8: '\\b',
  9: '\\t',
  10: '\\n',
  13: '\\r',
};
