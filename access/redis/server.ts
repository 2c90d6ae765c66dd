// The Redis server of a plane: it accepts connections, knows their tenants, and holds their shared
// state. command-tick.ts runs the commands of many connections in one event-loop tick.

import type { TenantDefinition, UserDefinition } from '../../contracts/tenancy/definitions.ts';
import type { LibraryReader } from '../../universal-row/transforms/redis/scripts/functions.ts';
import type { PartitionAdmission } from '../../contracts/partition-admission.ts';
import type { StepWatcher } from '../../contracts/step-watcher.ts';
import type { PodAdmission } from '../../contracts/pod-admission.ts';
import type { RequestMemory } from '../admission/request-memory.ts';
import type { GatewayAdmission } from '../admission/gateway-admission.ts';
import type { Principals, PrincipalsChange } from '../gateway/principals.ts';
import type { Router } from '../gateway/router.ts';
import { type Arrival, socketOf } from '../gateway/accepted-handles.ts';
import { AcceptQueue } from '../gateway/accept-queue.ts';
import { BlockedClients } from './blocked-clients.ts';
import { type Client, ClientFlag } from './client.ts';
import type { Elsewhere, TenantQuestion } from './elsewhere.ts';
import type { PublishedMessage } from './fan-out.ts';
import { answerNode } from './node-questions.ts';
import { ServedScripts } from './served-scripts.ts';
import { ClientPause } from './client-pause.ts';
import { CommandTick, tickOutputBytes } from './command-tick.ts';
import { Connection } from './connection.ts';
import type { ConnectionHost } from './connection-host.ts';
import type { CommandEntry, CommandRegistry } from './commands/registry.ts';
import { GoneConnections } from './gone-connections.ts';
import { LatencyMonitor } from './latency.ts';
import { type ListenerOptions, Listeners } from './listeners.ts';
import { LoginDeadlines } from './login-deadlines.ts';
import type { RedisMetering } from './metering.ts';
import { Monitors } from './monitors.ts';
import { OtherPods } from './other-pods.ts';
import type { ClusterMap } from './cluster-map.ts';
import { type OutputLimits, OutputWatch } from './output-limits.ts';
import { Permissions } from './acl/acl-user.ts';
import { ChannelRechecks } from './acl/channel-rechecks.ts';
import { receiversOf } from './pubsub.ts';
import { Rates } from './rates.ts';
import type { ReadCache } from './read-cache.ts';
import { defaultLimits, type ParserLimits } from './resp-parser.ts';
import type { RespWriter } from './resp-writer.ts';
import { readShared } from './shared-read.ts';
import type { ConfigEntry, ServerCounters, ServerFacts, UserKeeper } from './server-facts.ts';
import { RowChanges } from './row-changes.ts';
import type { SlowEntry, SlowlogLimits } from './slowlog.ts';
import { Tenant, tooManyClients } from './tenant.ts';
import { TenantLimits } from '../admission/tenant-limits.ts';
import type { TrackingState } from './tracking.ts';

interface RedisServerOptions extends ListenerOptions {
  /** Told when CLIENT PAUSE begins to hold, and when it is over. */
  pauseChanged?: (isPaused: boolean) => void;
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
  /** See `ClientServer`. */
  busyReplyMs: number;
  metering?: RedisMetering | undefined;
  /** The admission stage of the pods; absent where requests are not scheduled. */
  podAdmission?: PodAdmission | undefined;
  /** Hears of steps that take long; absent where none does. */
  steps?: StepWatcher;
  /** Limit of memory for requests in progress; unlimited if absent. */
  memory?: RequestMemory;
  /** Absent where no tenant has a quota. */
  admission?: GatewayAdmission;
  /** Ceilings of partitions; absent where there can be none. */
  partitions?: PartitionAdmission;
  outputLimits: OutputLimits;
  registry: CommandRegistry;
  router: Router;
  config: readonly ConfigEntry[];
  facts: ServerFacts;
  /** On a node of a cluster: the function libraries of a tenant, as its rows have them. */
  readLibraries?: ((tenant: number) => ReturnType<LibraryReader>) | undefined;
  /** Absent unless in cluster mode. */
  clusterId?: string | undefined;
  clusterMap?: ClusterMap | undefined;
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
}

const httpLogEveryMs = 60_000;
const sweepEveryMs = 100;
/** Messages of other nodes that wait until those before them are sent. */
const maxHeardMessages = 10_000;
const listening = ClientFlag.subscribed | ClientFlag.monitor;

export class RedisServer implements ConnectionHost<Connection> {
  readonly registry: CommandRegistry;
  readonly router: Router;
  readonly principals: Principals;
  readonly users: UserKeeper | undefined;
  /** Limits of every slow log. */
  readonly slowlogLimits: SlowlogLimits;
  /** By number: those that have had clients. */
  readonly tenants = new Map<number, Tenant<Connection>>();
  readonly connections = new Map<number, Connection>();
  readonly monitors = new Monitors<Client>();
  readonly rechecks = new ChannelRechecks();
  /** Deadlines of connections that have not logged in yet. */
  readonly logins: LoginDeadlines<Client>;
  readonly facts: ServerFacts;
  /** Undefined unless in cluster mode. */
  readonly clusterId: string | undefined;
  readonly clusterMap: ClusterMap | undefined;
  readonly latency = new LatencyMonitor();
  readonly config = new Map<string, ConfigEntry>();
  readonly counters: ServerCounters = {
    connections: 0,
    rejectedConnections: 0,
    commands: 0,
    errors: 0,
    bytesIn: 0,
    bytesOut: 0,
  };
  readonly report: RedisServerOptions['report'];
  readonly limits: ParserLimits;
  maxClients: number;
  /** Seconds; 0 for never. */
  idleTimeout: number;
  slowlogMs: number;
  busyReplyMs: number;
  /** Absent while nothing is charged. */
  metering: RedisMetering | undefined;
  /** Absent while answers of no table are cached. */
  cache: ReadCache | undefined;
  elsewhere: Elsewhere | undefined;
  readonly admission: GatewayAdmission | undefined;
  readonly partitions: PartitionAdmission | undefined;
  readonly podAdmission: PodAdmission | undefined;
  readonly steps: StepWatcher | undefined;
  readonly stepLimitMs: number;
  readonly memory: RequestMemory | undefined;
  readonly tick: CommandTick;
  readonly writer: RespWriter;
  readonly output: OutputWatch;
  readonly pause: ClientPause;
  readonly otherPods: OtherPods;
  readonly blocked: BlockedClients;
  readonly #gone = new GoneConnections();
  /** Keyspace notifications and client-side caching. */
  readonly changes: RowChanges<Connection>;
  readonly #permissions = new WeakMap<UserDefinition, Permissions>();
  readonly #servedScripts = new WeakMap<Tenant<Connection>, ServedScripts>();
  readonly #listeners: Listeners;
  readonly #keepAliveMs: number;
  readonly #options: Pick<RedisServerOptions, 'readLibraries'>;
  readonly rates = new Rates();
  #nextId = 1;
  #isDraining = false;
  #timer: NodeJS.Timeout | undefined;
  /** Monotonic milliseconds. */
  #httpLoggedAt = -Infinity;
  /** Commands of connections that are gone. */
  #retiredCommands = 0;

  constructor(options: RedisServerOptions) {
    this.#options = options;
    this.registry = options.registry;
    this.router = options.router;
    this.facts = options.facts;
    this.clusterId = options.clusterId;
    this.clusterMap = options.clusterMap;
    this.pause = new ClientPause(options.pauseChanged ?? (() => {}));
    this.report = options.report;
    this.maxClients = options.maxClients;
    this.idleTimeout = options.idleTimeout;
    this.logins = new LoginDeadlines(options.loginTimeoutMs);
    this.#keepAliveMs = options.tcpKeepAliveSeconds * 1000;
    this.slowlogMs = options.slowlogMs;
    this.busyReplyMs = options.busyReplyMs;
    this.slowlogLimits = { length: options.slowlogLength, nextSerial: 1 };
    this.principals = options.principals;
    this.users = options.users;
    this.metering = options.metering;
    this.admission = options.admission;
    this.partitions = options.partitions;
    this.podAdmission = options.podAdmission;
    this.steps = options.steps;
    this.stepLimitMs = options.steps?.limitMs ?? Infinity;
    this.memory = options.memory;
    this.tick = new CommandTick({
      executors: () => this.router.executors(),
      podAdmission: options.podAdmission,
      steps: options.steps,
      beforeEnd: () => {
        if (this.blocked.isReady) this.blocked.serve();
        this.changes.flush();
      },
      isWaiting: () => this.changes.isWaiting,
      // Replies to GETs of this tick are cached already.
      unknown: () => this.cache?.clear(),
      failed: (error) =>
        this.report('error', 'the log could not take the writes of a tick', { err: error }),
    });
    this.writer = this.tick.writer;
    this.changes = new RowChanges({
      executors: () => this.router.executors(),
      tenants: this.tenants,
      tableOf: (number) => this.router.tableOf(number),
      schedule: () => this.tick.schedule(),
    });
    this.output = new OutputWatch(options.outputLimits, ({ address }, waitingBytes) =>
      this.report('warn', 'client disconnected: its output buffer is over the limit', {
        client: address,
        waitingBytes,
      }),
    );
    this.otherPods = new OtherPods(this, options.router, this.tick);
    this.blocked = new BlockedClients({
      changesOf: (table) => this.router.to(table).executor,
      changed: () => this.tick.schedule(),
      begin: () => this.tick.lap(),
      isFull: () => this.writer.pos > tickOutputBytes,
    });
    this.limits = {
      ...defaultLimits,
      bulkBytes: options.maxBulkBytes,
      queryBytes: options.maxQueryBytes,
    };
    for (const entry of options.config) this.config.set(entry.name, entry);
    const arrivals = new AcceptQueue<Arrival>((arrival) => this.#accept(arrival));
    this.#listeners = new Listeners(options, (arrival) => arrivals.add(arrival));
    this.principals.onChange((change) => this.#follow(change));
  }

  /**
   * A client of another node has published a message. False when it is dropped: too many wait before it, or there are too
   * many patterns here for its channel.
   */
  hear(number: number, message: PublishedMessage): boolean {
    const tenant = this.tenants.get(number);
    if (tenant === undefined) return true;
    const audiences = tenant.pubsub.audiencesIfQuick(message.channel, message.isSharded);
    if (audiences === undefined) return false;
    const receivers = receiversOf(audiences);
    if (receivers === 0) return true;
    if (tenant.fanOut.backlog >= maxHeardMessages) return false;
    this.tick.schedule();
    void tenant.fanOut.send(message, audiences, receivers);
    return true;
  }

  /** Answers another node's question about a tenant. */
  answerNode(question: TenantQuestion, definition: TenantDefinition): unknown {
    return answerNode(question, this, this.tenant(definition));
  }

  /** For scripts of the tenant's clients that are connected to other nodes. */
  servedScripts(definition: TenantDefinition): ServedScripts {
    const tenant = this.tenant(definition);
    let served = this.#servedScripts.get(tenant);
    if (served === undefined) {
      this.#servedScripts.set(tenant, (served = new ServedScripts(this, tenant)));
    }
    return served;
  }

  // ---- life

  get host(): string {
    return this.#listeners.host;
  }

  get port(): number {
    return this.#listeners.port;
  }

  get tlsPort(): number {
    return this.#listeners.tlsPort;
  }

  async listen(): Promise<number> {
    await this.#listeners.listen();
    this.#timer = setInterval(() => this.#sweep(), sweepEveryMs);
    this.#timer.unref();
    return this.port;
  }

  /** Accepts no more clients, and closes those that have nothing under way; the rest when they have. */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    this.admission?.close();
    this.#listeners.close();
    const deadline = performance.now() + graceMs;
    for (;;) {
      for (const connection of this.connections.values()) {
        const isIdle = !connection.isBusy && connection.queryBytes === 0;
        if (isIdle || connection.isBlocked) connection.closeSoon();
      }
      if (this.connections.size === 0 || performance.now() >= deadline) break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    this.tick.end();
    for (const connection of [...this.connections.values()]) connection.destroy();
    clearInterval(this.#timer);
  }

  #accept(accepted: Arrival): void {
    // A socket may have closed while it was queued.
    if ('destroyed' in accepted && accepted.destroyed) return;
    this.counters.connections++;
    this.tick.now = Date.now();
    const { anonymous } = this.principals;
    if (anonymous === undefined) this.logins.makeRoom(this.maxClients, this.connections.size);
    if (this.connections.size >= this.maxClients || this.#isDraining) {
      this.#turnAway(accepted, 'ERR max number of clients reached');
      return;
    }
    if (anonymous !== undefined) {
      const tenant = this.tenant(anonymous.tenant);
      if (tenant.isFull) {
        tenant.rejectedConnections++;
        this.#turnAway(accepted, tooManyClients(tenant));
        return;
      }
    }
    // Nothing is read before `resume`, so the connection is there when bytes come.
    const of: { connection?: Connection } = {};
    const socket = readShared(accepted, {
      receive: (chunk, length) => {
        if (of.connection !== undefined) this.tick.receive(of.connection, chunk, length);
      },
      get isHeldBack() {
        return of.connection?.isHeldBack === true;
      },
    });
    socket.setNoDelay(true);
    if (this.#keepAliveMs > 0) socket.setKeepAlive(true, this.#keepAliveMs);
    const connection = new Connection(this, socket, this.#nextId++, this.now, anonymous);
    of.connection = connection;
    this.connections.set(connection.id, connection);
    socket.on('drain', () => connection.drained());
    // Clients that reset their connection are no news; the close that follows tidies up.
    socket.on('error', ignore);
    socket.on('close', () => this.#gone.add(connection));
    socket.resume();
  }

  #turnAway(accepted: Arrival, error: string): void {
    this.counters.rejectedConnections++;
    const socket = socketOf(accepted);
    socket.on('error', ignore);
    socket.end(`-${error}\r\n`);
    socket.resume();
  }

  forget(connection: Connection): void {
    this.connections.delete(connection.id);
    this.logins.done(connection);
    this.output.forget(connection);
    this.tick.forget(connection);
    connection.leaveTenant();
    this.pause.delete(connection);
    this.counters.bytesIn += connection.bytesIn;
    this.counters.bytesOut += connection.bytesOut;
    this.#retiredCommands += connection.commandsRun;
  }

  // ---- for connections and their commands

  /** Wall clock, milliseconds, as of the start of this tick. */
  get now(): number {
    return this.tick.now;
  }

  open(client: Connection): RespWriter {
    return this.tick.open(client);
  }

  get pausedClients(): number {
    return this.pause.size;
  }

  scriptCalled(client: Connection, entry: CommandEntry): void {
    this.changes.scriptCalled(client, entry);
  }

  pauseClients(ms: number, writesOnly: boolean): void {
    this.pause.begin(ms, writesOnly);
  }

  unpauseClients(): void {
    this.pause.end();
  }

  addMonitor(client: Client): void {
    client.setFlag(ClientFlag.monitor, true);
    this.monitors.add(client);
  }

  get changesAreFollowed(): Promise<unknown> | undefined {
    return this.changes.following;
  }

  track(client: Connection, state: TrackingState | undefined): void {
    this.changes.setTracking(client, client.tenant, () => {
      client.tracking = state;
      client.setFlag(ClientFlag.tracking, state !== undefined);
    });
  }

  /** Logs that a connection speaks HTTP, at most once a minute. */
  httpAttempted({ address }: Connection): void {
    const now = performance.now();
    if (now - this.#httpLoggedAt < httpLogEveryMs) return;
    this.#httpLoggedAt = now;
    this.report(
      'warn',
      `Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands to Redis. This is likely due to an attacker attempting to use Cross Protocol Scripting to compromise your Redis instance. Connection from ${address} aborted.`,
    );
  }

  queryTooLong({ address }: Connection): void {
    this.report('warn', 'client disconnected: its query is over the limit', { client: address });
  }

  // ---- counters

  totalCommands(): number {
    let total = this.#retiredCommands;
    for (const connection of this.connections.values()) total += connection.commandsRun;
    return total;
  }

  traffic(): { bytesIn: number; bytesOut: number } {
    let { bytesIn, bytesOut } = this.counters;
    for (const connection of this.connections.values()) {
      bytesIn += connection.bytesIn;
      bytesOut += connection.bytesOut;
    }
    return { bytesIn, bytesOut };
  }

  countError(tenant: Tenant<Connection>, text: string): void {
    this.counters.errors++;
    tenant.errors.add(text);
  }

  resetStatistics(): void {
    const { counters } = this;
    counters.connections = 0;
    counters.rejectedConnections = 0;
    counters.errors = 0;
    for (const { errors } of this.tenants.values()) errors.reset();
    counters.bytesIn = 0;
    counters.bytesOut = 0;
    this.output.disconnections = 0;
    this.#retiredCommands = 0;
    this.rates.reset();
    for (const connection of this.connections.values()) connection.resetCounters();
    const reset = (entry: CommandEntry): void => {
      entry.calls = 0;
      entry.spentMs = 0;
      entry.latencies.reset();
      entry.rejectedCalls = 0;
      entry.failedCalls = 0;
      for (const sub of entry.subcommands?.values() ?? []) reset(sub);
    };
    for (const entry of this.registry.all()) reset(entry);
  }

  // ---- time

  #sweep(): void {
    this.tick.now = Date.now();
    // Commands can become ready outside of any command: a row expired, or a table was swapped.
    if (this.blocked.isReady) {
      this.tick.lapAt = performance.now();
      this.blocked.serve();
    }
    this.rates.sample(performance.now(), { commands: this.totalCommands(), ...this.traffic() });
    this.changes.sync();
    this.changes.evictExcess();
    this.output.sweep(this.now);
    this.#closeIdle();
    this.logins.sweep(performance.now());
  }

  #closeIdle(): void {
    const idleMs = this.idleTimeout * 1000;
    if (idleMs === 0) return;
    for (const connection of this.connections.values()) {
      if (connection.isBlocked || connection.isHeldBack || connection.flags & listening) continue;
      if (this.now - connection.lastActiveAt > idleMs) connection.destroy();
    }
  }

  // ---- tenants and users

  tenant(definition: TenantDefinition): Tenant<Connection> {
    let tenant = this.tenants.get(definition.number);
    if (tenant === undefined) {
      const { number } = definition;
      const limits = this.admission?.limitsOf(number) ?? new TenantLimits();
      tenant = new Tenant<Connection>(definition, this.slowlogLimits, limits, this.connections);
      this.tenants.set(tenant.number, tenant);
      const { readLibraries } = this.#options;
      if (readLibraries !== undefined) {
        tenant.scripts.functions.readBy(() => readLibraries(number));
      }
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

  /** Names of this kind that have listeners, of all tenants together. */
  countListeners(kind: 'channels' | 'patterns' | 'shardChannels'): number {
    let count = 0;
    for (const { pubsub } of this.tenants.values()) count += pubsub[kind].size;
    return count;
  }

  permissionsOf(user: UserDefinition): Permissions {
    let permissions = this.#permissions.get(user);
    if (permissions === undefined) {
      permissions = Permissions.parse(this.registry, user.rules);
      this.#permissions.set(user, permissions);
    }
    return permissions;
  }

  /** Connections of removed users are closed; the others follow their new rules from here on. */
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
}

function ignore(): void {
  // The close event does the cleanup.
}
