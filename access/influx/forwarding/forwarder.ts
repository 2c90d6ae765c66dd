// Forwards requests to the leader of their data: the exchange goes there unchanged, and its answer
// comes back the same way. That node authenticates it again. A request is never forwarded twice.

import { randomUUID } from 'node:crypto';
import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { LinkContext } from '../../../cluster-links/cluster-link.ts';
import type { dialLink } from '../../../cluster-links/dial.ts';
import type { ReplicaLog } from '../../../contracts/local-pod.ts';
import {
  type AppliedState,
  isAppliedState,
  NotLeaderError,
  OutcomeUnknownError,
} from '../../../contracts/series-store.ts';
import type { ReadBounds } from '../../../universal-row/command.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import {
  ageOf,
  type BatchIdentity,
  identityOf,
  offered,
  repeated,
} from '../../../universal-row/series/batch-identity.ts';
import { catchUp } from '../../gateway/pods/session-reads.ts';
import type { SeenState } from '../../gateway/session-token.ts';
import type { Exchange } from '../http/exchange.ts';
import { againHeader, ClientGone } from '../http/http-error.ts';
import { httpPurpose, LinkStream } from './link-stream.ts';

/** A node on which other nodes' planes are heard. */
export interface LeadingNode {
  readonly node: number;
  readonly host: string;
  readonly port: number;
}

/** The replica of a tenant's time series in this process. */
export interface SeriesReplicaHere {
  readonly group: number;
  readonly log: ReplicaLog;
  /** Whether it follows, and its state is no older. */
  isWithin(bounds: ReadBounds): boolean;
}

/** A tenant's time series in several groups, which a gateway asks by itself. */
export interface DividedSeries {
  /**
   * Resolves when the databases and policies known here have all changes made before the call. They do not go back behind these until
   * the result is called.
   */
  refresh(): Promise<() => void>;
  /** Whether reads within these bounds can begin here: what their session has seen is here, now or in a moment. */
  mayBeLate(bounds: ReadBounds): Promise<boolean>;
}

interface ForwarderOptions {
  context: LinkContext;
  /** Opens a link to another node. */
  dial: typeof dialLink;
  /**
   * The node that leads the time series of a tenant, or the first partition of them; undefined while none is known
   * to.
   */
  leaderOf: (tenant: number) => LeadingNode | 'here' | undefined;
  /** The node could not be reached, or does not lead. */
  notThere?: (tenant: number, node: number) => void;
  replicaOf?: (tenant: number) => SeriesReplicaHere | undefined;
  /**
   * Resolves once the replica here, of the first partition, certainly leads: to the last entry of the log that it has applied, or to
   * undefined where there are other partitions. Rejects with `NotLeaderError`.
   */
  confirmed?: (tenant: number) => Promise<number | undefined>;
  /** The tenant's time series where they are in several groups; absent, or undefined, where they are in one. */
  dividedOf?: (tenant: number) => DividedSeries | undefined;
  /** For each group of the tenant: the last entry of its log that answers of this process may have seen. */
  seenOf?: (tenant: number) => readonly { readonly group: number; readonly index: number }[];
  /** Staleness bounds of reads, for a database whose properties set them. */
  boundsOf?: (tenant: number, database: string) => ReadBounds | undefined;
  /** Whether all nodes hand out tokens of sessions. */
  knowsSessions?: () => boolean;
  /** Whether all nodes recognise batches of points by their identities. */
  knowsIdentities?: () => boolean;
  /** Milliseconds that a request waits for a leader. */
  waitMs: () => number;
}

/** The client's address, from the node that it is connected to. */
export const clientHeader = 'x-polyrow-client';
/** When that node received the request, Unix milliseconds. */
export const receivedHeader = 'x-polyrow-received';
/**
 * Identity of its points (`BatchIdentity`): milliseconds since a leader may have been given them, 0 where none was, and a text,
 * with a space between. It is no time of day, as the nodes' clocks may differ.
 */
export const identityHeader = 'x-polyrow-identity';

export function readIdentity(header: string | string[] | undefined): BatchIdentity | undefined {
  if (typeof header !== 'string') return undefined;
  const [ms, id] = header.split(' ');
  return id === undefined || Number.isNaN(Number(ms)) ? undefined : identityOf(id, Number(ms));
}

/** Misdirected Request: the node does not lead, and has not begun. */
export const notLeading = 421;

const retryMs = 25;
/** Links to a node: those beyond wait for one to be free. */
const maxLinks = 256;
const maxFreeLinks = 16;
/** Headers of the connection, which are not forwarded. */
const ownHeaders = new Set([
  'connection',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
  againHeader,
  clientHeader,
  receivedHeader,
  identityHeader,
]);

/** Statements that may have effects: InfluxDB runs them by GET, too. */
const changing = /\b(alter|create|delete|drop|grant|into|kill|revoke|set)\b/i;

/** `again`: it may have been done, and does no harm when it is done again. */
type Tried = 'answered' | 'not begun' | 'again';

export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #agents = new Map<string, LinkAgent>();

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /** Whether this node leads the tenant's time series, or their first partition. */
  leads(tenant: number): boolean {
    return this.#options.leaderOf(tenant) === 'here';
  }

  /** Whether the replica here, which does not lead, may answer a request that only reads. */
  mayReadHere(exchange: Exchange, tenant: number): MaybePromise<boolean> {
    const replica = this.#options.replicaOf?.(tenant);
    const bounds = this.boundsOf(exchange, tenant);
    if (replica === undefined || bounds === undefined || !replica.isWithin(bounds)) return false;
    const { session } = bounds;
    return session === undefined || catchUp(session, replica.group, replica.log);
  }

  /**
   * Resolves once the replica here certainly has all that was committed before the call, to what reads may be answered from. Rejects with
   * `NotLeaderError`.
   */
  async confirm(tenant: number): Promise<AppliedState | undefined> {
    const atLeast = await this.#options.confirmed?.(tenant);
    return atLeast === undefined ? undefined : { atLeast };
  }

  /** Decides between forwarding exchanges whole (undefined) and asking all groups from this node. */
  dividedOf(tenant: number): DividedSeries | undefined {
    return this.#options.dividedOf?.(tenant);
  }

  /** Bounds of the reads of an exchange; undefined where they must show the latest state. */
  boundsOf({ reads, parameters }: Exchange, tenant: number): ReadBounds | undefined {
    if (reads === 'strong' || isAppliedState(reads)) return undefined;
    return reads ?? this.#options.boundsOf?.(tenant, parameters.get('db'));
  }

  /** Adds the log positions that an answer of this process may reflect to the session. */
  answered(session: SeenState, tenant: number): void {
    for (const { group, index } of this.#options.seenOf?.(tenant) ?? []) session.saw(group, index);
  }

  get knowsSessions(): boolean {
    return this.#options.knowsSessions?.() ?? true;
  }

  /** Another identity for each body of points; undefined where not all nodes know them. */
  newIdentity(): BatchIdentity | undefined {
    const isKnown = this.#options.knowsIdentities?.() === true;
    return isKnown ? { id: randomUUID(), at: performance.now(), isRepeated: false } : undefined;
  }

  /**
   * Resolves to true when the answer is under way or given, and to false when this node leads. Rejects with
   * `UnavailableError` if no node leads until `until` by `performance.now`.
   */
  async forward(exchange: Exchange, tenant: number, until = this.deadline()): Promise<boolean> {
    const { leaderOf, notThere } = this.#options;
    let isUnknown = false;
    for (;;) {
      const leader = leaderOf(tenant);
      if (leader === 'here') return false;
      if (leader !== undefined) {
        exchange.identity = offered(exchange.identity);
        const tried = await this.#try(exchange, leader);
        if (tried === 'answered') return true;
        if (tried === 'again') {
          isUnknown = true;
          exchange.identity = repeated(exchange.identity);
        }
        notThere?.(tenant, leader.node);
      }
      if (!exchange.isOpen) throw new ClientGone();
      if (performance.now() > until) {
        throw isUnknown ? new OutcomeUnknownError() : new NotLeaderError(0);
      }
      await pause(retryMs);
    }
  }

  /** Until when a request that comes now waits. */
  deadline(): number {
    return performance.now() + this.#options.waitMs();
  }

  async #try(exchange: Exchange, leader: LeadingNode): Promise<Tried> {
    return await new Attempt(exchange, this.#agentOf(leader)).run();
  }

  #agentOf(leader: LeadingNode): LinkAgent {
    const key = `${leader.node} ${leader.host} ${leader.port}`;
    let agent = this.#agents.get(key);
    if (agent === undefined) {
      agent = new LinkAgent(this.#options, leader);
      this.#agents.set(key, agent);
    }
    return agent;
  }

  /** Sets the known nodes. Closes links to nodes that were removed or have moved. */
  setNodes(nodes: Iterable<LeadingNode>): void {
    const known = new Set(Array.from(nodes, ({ node, host, port }) => `${node} ${host} ${port}`));
    for (const [key, agent] of this.#agents) {
      if (known.has(key)) continue;
      agent.destroy();
      this.#agents.delete(key);
    }
  }

  close(): void {
    this.setNodes([]);
  }
}

/** Has HTTP run over links to one node. */
class LinkAgent extends Agent {
  readonly #by: Pick<ForwarderOptions, 'context' | 'dial'>;
  readonly #to: LeadingNode;

  constructor(by: Pick<ForwarderOptions, 'context' | 'dial'>, to: LeadingNode) {
    super({ keepAlive: true, maxSockets: maxLinks, maxFreeSockets: maxFreeLinks });
    this.#by = by;
    this.#to = to;
  }

  override createConnection(
    _options: object,
    created: (error: Error | null, stream?: Duplex) => void,
  ): undefined {
    const { node, host, port } = this.#to;
    const target = { host, port, node: String(node), purpose: httpPurpose };
    const { dial, context } = this.#by;
    dial(context, target, {
      open: (link) => {
        const stream = new LinkStream(link);
        created(null, stream);
        return stream.handler;
      },
      failed: (error) => created(error),
    });
  }
}

/** One request to one node. */
class Attempt {
  readonly #exchange: Exchange;
  readonly #request: ClientRequest;
  /** Part of the body that was read already. */
  readonly #body: Buffer | undefined;
  /** The body flows, once the node has said that it wants it. */
  readonly #flows: boolean;
  /** The node may have begun. */
  #isSent = false;
  #settle!: { resolve: (tried: Tried) => void; reject: (error: Error) => void };

  constructor(exchange: Exchange, agent: Agent) {
    const { request } = exchange;
    this.#exchange = exchange;
    const { form, held, receivedAt } = exchange;
    this.#body = form ?? held;
    this.#flows = this.#body === undefined && hasBody(request);
    const headers = passedOn(request.rawHeaders, form);
    headers.push(clientHeader, exchange.clientAddress);
    if (receivedAt !== undefined) headers.push(receivedHeader, String(receivedAt));
    if (this.#flows) headers.push('Expect', '100-continue');
    const length = request.headers['content-length'];
    if (this.#flows && length === undefined) headers.push('Transfer-Encoding', 'chunked');
    this.#request = httpRequest({
      agent,
      method: exchange.method,
      path: request.url ?? '/',
      setHost: false,
    });
    this.#request.on('error', () => this.#failed());
    // Headers that the constructor is given are written at once: the age of the points is that at the time they are sent.
    for (let i = 0; i < headers.length; i += 2) {
      this.#request.appendHeader(headers[i]!, headers[i + 1]!);
    }
  }

  run(): Promise<Tried> {
    const request = this.#request;
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      const gone = (): void => void request.destroy();
      this.#exchange.response.once('close', gone);
      request.once('close', () => this.#exchange.response.off('close', gone));
      request.once('response', (answer) => this.#answered(answer));
      request.once('socket', (stream: Duplex) => this.#reached(stream));
      if (!this.#flows) return;
      request.once('continue', () => this.#sendBody());
      request.flushHeaders();
    });
  }

  #reached(stream: Duplex): void {
    // A link may end in the moment in which the agent reuses it. Its end has been told before this request could hear of it.
    if (stream.destroyed) this.#failed();
    else if (!this.#flows) this.#sendNow();
  }

  #sendNow(): void {
    const { identity } = this.#exchange;
    this.#isSent = true;
    try {
      if (identity !== undefined)
        this.#request.setHeader(identityHeader, `${ageOf(identity)} ${identity.id}`);
      this.#request.end(this.#body);
    } catch (error) {
      // A header of the client is none that may be sent on.
      this.#request.removeAllListeners('error');
      this.#request.on('error', () => {});
      this.#request.destroy();
      this.#settle.reject(error as Error);
    }
  }

  #sendBody(): void {
    this.#isSent = true;
    const body = this.#exchange.expectBody();
    // A client that is gone ends the request by the answer's `close`.
    body.once('error', () => this.#request.destroy());
    body.pipe(this.#request);
  }

  #answered(answer: IncomingMessage): void {
    const exchange = this.#exchange;
    const isAgain = exchange.held !== undefined && answer.headers[againHeader] !== undefined;
    if (answer.statusCode === notLeading || isAgain) {
      answer.resume();
      answer.once('error', () => {});
      this.#settle.resolve(isAgain ? 'again' : 'not begun');
      return;
    }
    exchange.pass(answer, withoutOwn(answer.rawHeaders)).then(
      () => this.#settle.resolve('answered'),
      (error: Error) => this.#settle.reject(error),
    );
  }

  /** The link has ended, or could not be made. */
  #failed(): void {
    const { response, method, parameters, held } = this.#exchange;
    // Headers already sent cannot be changed.
    if (response.headersSent) {
      response.destroy();
      this.#settle.resolve('answered');
      return;
    }
    const isRead = (method === 'GET' || method === 'HEAD') && !this.#flows;
    const isRepeatable = isRead && !changing.test(parameters.get('q'));
    if (!this.#isSent || isRepeatable) this.#settle.resolve('not begun');
    else if (held !== undefined) this.#settle.resolve('again');
    else this.#settle.reject(new OutcomeUnknownError());
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function withoutOwn(raw: readonly string[], others: ReadonlySet<string> = new Set()): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase();
    if (!ownHeaders.has(name) && !others.has(name)) kept.push(raw[i]!, raw[i + 1]!);
  }
  return kept;
}

/** Trailers of a request are not forwarded. */
const ofRequest = new Set(['trailer']);
const ofBody = new Set(['content-length', 'content-encoding', ...ofRequest]);

/** Headers of a forwarded request. A form that was read is sent uncompressed, with its length. */
function passedOn(raw: readonly string[], form: Buffer | undefined): string[] {
  if (form === undefined) return withoutOwn(raw, ofRequest);
  return [...withoutOwn(raw, ofBody), 'Content-Length', String(form.length)];
}
