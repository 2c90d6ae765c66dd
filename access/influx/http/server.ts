// The InfluxDB listener of a plane: HTTP as clients of InfluxDB 1.x use it, and the routes that the
// official clients of 2.x need for writing and for listing buckets.

import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { hostname } from 'node:os';
import type { Duplex } from 'node:stream';
import { type Clock, systemClock } from '../../../universal-row/environment.ts';
import type { SeriesStore } from '../../../contracts/series-store.ts';
import type { StepWatcher } from '../../../contracts/step-watcher.ts';
import type { PodAdmission } from '../../../contracts/pod-admission.ts';
import { acceptInSlices } from '../../gateway/accepted-handles.ts';
import type { TlsListeners } from '../../gateway/tls-context.ts';
import type { ServerFacts } from '../statements/context.ts';
import type { RequestMemory } from '../../admission/request-memory.ts';
import type { GatewayAdmission } from '../../admission/gateway-admission.ts';
import { type Caller, type Authenticator, isRefusal, type Refusal } from '../tenants/caller.ts';
import { wholeSpace } from '../tenants/tenant-space.ts';
import { ClusterExchanges } from './cluster-exchanges.ts';
import { BrowserGuard, refuseForeignPages } from './browser-guard.ts';
import { TenantConnections } from './connections.ts';
import { readCredentials } from './credentials.ts';
import {
  clientHeader,
  type Forwarder,
  identityHeader,
  readIdentity,
  receivedHeader,
} from '../forwarding/forwarder.ts';
import { GatewayStage } from '../admission/gateway-stage.ts';
import { PodStage } from '../admission/pod-stage.ts';
import { Exchange } from './exchange.ts';
import { GroupCommit } from './group-commit.ts';
import { HttpError } from './http-error.ts';
import { InfluxCounters, type InfluxMetrics } from './influx-metrics.ts';
import type { InfluxMetering } from './metering.ts';
import { tooManyParameters } from './parameters.ts';
import { maxPipelined } from './pipelines.ts';
import { PointWriter } from './point-writer.ts';
import { QueryHandler } from './query-handler.ts';
import { requestReads } from './request-reads.ts';
import { type Arrival, RequestQueue } from './request-queue.ts';
import { type Execute, noQueryLimits, type QueryLimits } from './statement-runner.ts';
import type { BodyLimits } from './request-body.ts';
import { type Route, RouteTable } from './routes.ts';
import { SlowRequests } from './slow-requests.ts';
import { WriteHandler } from './write-handler.ts';

export interface InfluxServerOptions {
  host: string;
  port: number;
  /** Descriptor of a bound socket to listen on, in place of a new one. */
  socket?: number | undefined;
  /** Serves HTTPS with it; HTTP when absent. */
  tls?: TlsListeners | undefined;
  store: SeriesStore;
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
  /**
   * Authenticates clients. Without it every client may do everything, regardless of its
   * credentials.
   */
  authenticator?: Authenticator | undefined;
  /** Absent while nothing is charged. */
  metering?: InfluxMetering | undefined;
  /** How much each tenant may have done; without it as much as it likes. Works with `metering` only. */
  admission?: GatewayAdmission | undefined;
  /** The pod's admission stage; without it every request runs at once. Its queues work with `metering` only. */
  podAdmission?: PodAdmission | undefined;
  /** Has requests answered by the node that leads their tenant's time series; absent where this is the only one. */
  forwarder?: Forwarder | undefined;
  /** Hears of steps that take long; absent where none does. */
  steps?: StepWatcher | undefined;
  /** Limit of memory for requests in progress; unlimited if absent. */
  memory?: RequestMemory | undefined;
  /** Requests that take longer are kept; none unless told. */
  slowRequestMs?: number;
  /** Largest body on the wire, in bytes; 0 for no limit. */
  maxBodyBytes?: number;
  /** Bytes of a packed body when it is unpacked; 0 for no limit. */
  maxUnpackedBytes?: number;
  /** Accepted host names besides those of loopback and of its own address. */
  allowedHosts?: readonly string[];
  /** Beyond these new connections are closed at once. */
  maxConnections?: number;
  /** Connections that may wait to be accepted. */
  backlog?: number;
  /** Request line and headers. */
  maxHeaderBytes?: number;
  /** For a request's headers to be complete. */
  headersTimeoutMs?: number;
  /** For the next piece of a body. */
  bodyTimeoutMs?: number;
  /** For a client to take the next piece of an answer. */
  stallTimeoutMs?: number;
  /** How long a connection may be idle. */
  keepAliveMs?: number;
  /** A write that the store keeps waiting longer is answered with `timeout`; clients send it again. */
  writeTimeoutMs?: number;
  queries?: Partial<QueryLimits>;
  /** Version of InfluxDB that the server reports. */
  version?: string;
  build?: string;
  /** Name of the one organisation of the v2 API. */
  organization?: string;
  clock?: Clock;
  /** Facts for SHOW SHARDS, SHOW STATS and SHOW DIAGNOSTICS. */
  facts?: Partial<ServerFacts>;
  /** Runs statements, in place of the default implementation. */
  execute?: Execute;
}

const defaults = {
  maxBodyBytes: 25_000_000,
  maxUnpackedBytes: 250_000_000,
  maxConnections: 1000,
  backlog: 511,
  maxHeaderBytes: 256 * 1024,
  headersTimeoutMs: 60_000,
  bodyTimeoutMs: 60_000,
  stallTimeoutMs: 60_000,
  keepAliveMs: 120_000,
  // Telegraf gives up after 5 s.
  writeTimeoutMs: 4000,
  version: '1.8.10',
  build: 'OSS',
  organization: 'polyrow',
  clock: systemClock,
};

export class InfluxServer {
  readonly #options: InfluxServerOptions & typeof defaults;
  readonly #server: Server;
  /** For requests that other nodes forward; it listens nowhere. */
  readonly #forwarded: Server;
  readonly #counters = new InfluxCounters();
  readonly #routes: RouteTable;
  readonly #cluster: ClusterExchanges | undefined;
  readonly #queries: QueryHandler;
  readonly #sockets = new Set<Socket>();
  readonly #exchanges = new Set<Exchange>();
  readonly #connections = new TenantConnections();
  readonly #arrivals = new RequestQueue((...arrived) => this.#begin(...arrived));
  readonly #browsers: BrowserGuard;
  /** Caller of every request, where authentication is off. */
  readonly #unauthenticated: Caller;
  #isDraining = false;
  /** Absent while nothing is charged. */
  metering: InfluxMetering | undefined;
  readonly slow: SlowRequests;

  constructor(given: InfluxServerOptions) {
    const options = { ...defaults, ...given };
    this.#options = options;
    const { store, clock } = options;
    this.metering = options.metering;
    this.#browsers = new BrowserGuard({
      host: options.host,
      allowedHosts: options.allowedHosts ?? [],
    });
    this.slow = new SlowRequests(options.slowRequestMs ?? Infinity, clock);
    const space = wholeSpace(store, clock);
    this.#unauthenticated = { space, principal: undefined, users: undefined, ended: false };
    const commit = new GroupCommit(store);
    const counters = this.#counters;
    const body: BodyLimits = {
      maxBytes: options.maxBodyBytes,
      maxUnpackedBytes: options.maxUnpackedBytes,
      idleMs: options.bodyTimeoutMs,
      onBytes: (bytes) => (counters.bytesIn += bytes),
    };
    const { podAdmission } = options;
    const points = new PointWriter({
      commit,
      counters,
      clock,
      hot: () => this.metering?.hot,
      podAdmission,
      timeoutMs: options.writeTimeoutMs,
    });
    const gateway = options.admission && new GatewayStage(options.admission, clock);
    const pod = podAdmission && new PodStage(podAdmission, clock);
    const writes = new WriteHandler({ points, counters, body, gateway, pod });
    this.#queries = new QueryHandler({
      commit,
      points,
      counters,
      clock,
      body,
      stallMs: options.stallTimeoutMs,
      gateway,
      pod,
      limits: { ...noQueryLimits, ...options.queries },
      facts: {
        version: options.version,
        startedAt: clock.now(),
        hostname: hostname(),
        ...options.facts,
      },
      execute: options.execute,
      podAdmission,
      report: options.report,
    });
    const { forwarder } = options;
    const queries = this.#queries;
    this.#cluster =
      forwarder && new ClusterExchanges({ forwarder, queries, counters, body, clock });
    this.#routes = new RouteTable({
      commit,
      body,
      writes,
      queries,
      startedAt: new Date(clock.now()),
      clock,
      version: options.version,
      organization: options.organization,
    });
    const http = {
      maxHeaderSize: options.maxHeaderBytes,
      keepAliveTimeout: options.keepAliveMs,
      headersTimeout: options.headersTimeoutMs,
      // Bodies have a limit between their pieces instead: a large one may take its time.
      requestTimeout: 0,
      connectionsCheckingInterval: 5000,
      noDelay: true,
    };
    const serve = (request: IncomingMessage, response: ServerResponse): void =>
      this.#arrivals.arrived(request, response, { expectsContinue: false, isForwarded: false });
    this.#server = options.tls?.createHttpServer(http, serve) ?? createServer(http, serve);
    const server = this.#server;
    server.maxConnections = options.maxConnections;
    server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) =>
      this.#arrivals.arrived(request, response, { expectsContinue: true, isForwarded: false }),
    );
    this.#forwarded = this.#forwardedServer(http);
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      this.#arrivals.connected(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    server.on('drop', () => counters.rejectedConnections++);
    server.on('clientError', refuse);
    options.authenticator?.onChange(() => this.#endOthers());
  }

  /** Forwarding nodes keep their connections open without a limit, and add a header. */
  #forwardedServer(http: ServerOptions): Server {
    const { maxHeaderBytes } = this.#options;
    const options = { ...http, keepAliveTimeout: 0, maxHeaderSize: maxHeaderBytes + 4096 };
    const server = createServer(options, (request, response) =>
      this.#arrivals.arrived(request, response, { expectsContinue: false, isForwarded: true }),
    );
    server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) =>
      this.#arrivals.arrived(request, response, { expectsContinue: true, isForwarded: true }),
    );
    server.on('clientError', refuse);
    return server;
  }

  /** Serves a connection of a client that something else has accepted. */
  serve(connection: Duplex): void {
    this.#server.emit('connection', connection);
  }

  /** Serves a connection of another node, which forwards requests by it. */
  serveForwarded(connection: Duplex): void {
    this.#forwarded.emit('connection', connection);
  }

  /** Resolves to the port. */
  async listen(): Promise<number> {
    const { host, port, socket, backlog } = this.#options;
    const server = this.#server;
    const address = socket === undefined ? { host, port } : { fd: socket };
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ ...address, backlog }, () => {
        server.off('error', reject);
        acceptInSlices(server);
        resolve();
      });
    });
    return (server.address() as AddressInfo).port;
  }

  /**
   * Accepts no more connections, lets requests in progress end for so long, and closes the rest.
   */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    // Queries might wait for longer than the server still runs; writes are admitted, so that nothing is lost.
    this.#queries.endWaiting();
    this.#options.admission?.close();
    const closed = new Promise<void>((resolve) => {
      if (this.#server.listening) this.#server.close(() => resolve());
      else resolve();
    });
    this.#server.closeIdleConnections();
    const deadline = performance.now() + graceMs;
    while (this.#exchanges.size + this.#arrivals.waiting > 0 && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    this.#queries.cancelAll();
    this.#server.closeAllConnections();
    this.#forwarded.closeAllConnections();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async close(): Promise<void> {
    await this.drain(0);
  }

  metrics(): InfluxMetrics {
    return this.#counters.snapshot(this.#sockets.size, this.#queries.memoryBytes);
  }

  #begin(
    request: IncomingMessage,
    response: ServerResponse,
    { expectsContinue, isForwarded }: Arrival,
    isRefused: boolean,
  ): void {
    const exchange = new Exchange(request, response, {
      version: this.#options.version,
      build: this.#options.build,
      expectsContinue,
      steps: this.#options.steps,
      memory: this.#options.memory,
      isDraining: () => this.#isDraining,
      clientAddress: isForwarded ? String(request.headers[clientHeader] ?? '') : undefined,
      receivedAt: isForwarded ? Number(request.headers[receivedHeader] ?? NaN) : undefined,
      identity: isForwarded ? readIdentity(request.headers[identityHeader]) : undefined,
      onBug: (error, { method, path }) =>
        this.#options.report('error', `${method} ${path} failed`, { error }),
    });
    exchange.metering = this.metering;
    this.#exchanges.add(exchange);
    response.once('close', () => {
      this.#exchanges.delete(exchange);
      exchange.memory.close();
      this.#counters.countRequest(
        exchange.route,
        response.headersSent ? response.statusCode : gone,
      );
      const status = response.headersSent ? response.statusCode : gone;
      const units = exchange.metering?.settle(exchange, status) ?? 0;
      exchange.gatewayRequest?.charge(units);
      exchange.podRequest?.charge(units);
      this.slow.settle(exchange, units);
    });
    exchange.touch();
    if (isRefused) {
      // The connection closes after this answer.
      response.shouldKeepAlive = false;
      exchange.fail(
        new HttpError(503, `more than ${maxPipelined} requests of a connection are under way`),
      );
      return;
    }
    this.#run(exchange, isForwarded).catch((error: unknown) => exchange.fail(error));
    this.#options.steps?.ended(exchange.startedAt, performance.now(), exchange);
  }

  async #run(exchange: Exchange, isForwarded: boolean): Promise<void> {
    const found = this.#routes.find(exchange);
    exchange.route = found.name;
    exchange.isV2 = found.isV2;
    // The node that forwards a request has looked at its host.
    if (!isForwarded) this.#browsers.checkHost(exchange.request);
    if (found.hasEffects) refuseForeignPages(exchange.request);
    if (exchange.parameters.isOverfull) throw tooManyParameters();
    if (found.action.isOpen) {
      await found.action.handle(exchange);
      return;
    }
    let caller: Caller;
    try {
      caller = await this.#callerOf(exchange, found);
      if (!isForwarded) {
        this.#connections.use(exchange.request.socket, caller.space, found.isV2);
      }
      this.#setReads(exchange, caller);
    } catch (error) {
      if (!found.hasForm) throw error;
      this.#queries.fail(exchange, error);
      return;
    }
    exchange.caller = caller;
    exchange.memory.tenant = caller.space.number;
    if (this.#cluster === undefined) await found.action.handle(exchange, caller);
    else await this.#cluster.run(exchange, caller, found, isForwarded);
  }

  #setReads(exchange: Exchange, { space }: Caller): void {
    const { forwarder } = this.#options;
    const { reads, session } = requestReads(exchange.request.headers);
    exchange.reads = reads;
    if (session === undefined) return;
    if (forwarder?.knowsSessions === false) throw new HttpError(400, noSessions);
    exchange.sessionToken = () => {
      forwarder?.answered(session, space.number);
      return session.token();
    };
  }

  async #callerOf(exchange: Exchange, route: Route): Promise<Caller> {
    const { authenticator } = this.#options;
    if (authenticator === undefined) return this.#unauthenticated;
    const { request, parameters } = exchange;
    const address = exchange.clientHost;
    let credentials = readCredentials(request, parameters);
    if (credentials === undefined && route.hasForm) {
      await this.#queries.readForm(exchange);
      credentials = readCredentials(request, parameters);
    }
    const entered = await authenticator.enter(credentials, address);
    if (isRefusal(entered)) throw refused(entered, route.isV2);
    // Revoked while it was being looked at.
    if (entered.ended) throw refused(revokedCredentials, route.isV2);
    return entered;
  }

  /**
   * Ends requests of principals that are gone, and queries that may not run any more. Requests that are queued for
   * admission are answered.
   */
  #endOthers(): void {
    for (const exchange of this.#exchanges) {
      if (exchange.caller?.ended !== true) continue;
      if (exchange.isRefused && exchange.isOpen)
        exchange.fail(refused(revokedCredentials, exchange.isV2));
      else exchange.request.socket.destroy();
    }
    this.#queries.recheck();
  }
}

const noSessions = 'sessions: not all nodes of the cluster run a release that knows them';

const revokedCredentials: Refusal = { refusal: 'credentials', message: 'authorization failed' };

/** As InfluxDB says it. */
function refused({ refusal, message }: Refusal, isV2: boolean): HttpError {
  switch (refusal) {
    case 'missing':
    case 'credentials':
      return new HttpError(401, isV2 ? 'unauthorized access' : message, {
        headers: { 'WWW-Authenticate': 'Basic realm="InfluxDB"' },
      });
    case 'suspended':
      return new HttpError(403, message);
    case 'throttled':
      // 5xx, as clients of 1.x drop the points after any 4xx.
      return new HttpError(isV2 ? 429 : 503, message, { headers: { 'Retry-After': '1' } });
  }
}

/** Refuses input that is not HTTP, or exceeds the limits. */
function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? '431 Request Header Fields Too Large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : '400 Bad Request';
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n${status}`,
  );
}

/** Status counted for a client that left before it was answered. */
const gone = 499;
