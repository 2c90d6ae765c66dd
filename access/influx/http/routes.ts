// Maps paths to handlers, and serves the short answers.

import type { Clock } from '../../../universal-row/environment.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import type { Caller } from '../tenants/caller.ts';
import { BucketRoutes } from './bucket-routes.ts';
import type { Exchange } from './exchange.ts';
import type { GroupCommit } from './group-commit.ts';
import { HttpError } from './http-error.ts';
import type { QueryHandler } from './query-handler.ts';
import type { BodyLimits } from './request-body.ts';
import type { WriteHandler } from './write-handler.ts';

/** Handles a request whose caller is known. */
export type Handle = (exchange: Exchange, caller: Caller) => MaybePromise<void>;
/** Handles a request that needs no authentication. */
type OpenHandle = (exchange: Exchange) => MaybePromise<void>;

export interface Route {
  readonly name: string;
  readonly isV2: boolean;
  /** Credentials may be in its form. */
  readonly hasForm: boolean;
  /** The request has effects, regardless of its content. */
  readonly hasEffects: boolean;
  readonly action:
    | { readonly isOpen: true; readonly handle: OpenHandle }
    | { readonly isOpen: false; readonly handle: Handle };
}

interface RouteOptions {
  commit: GroupCommit;
  body: BodyLimits;
  writes: WriteHandler;
  queries: QueryHandler;
  startedAt: Date;
  clock: Clock;
  version: string;
  organization: string;
}

/** Handlers of a path by method. */
interface Page {
  readonly name: string;
  readonly hasForm?: boolean;
  readonly methods: Readonly<Record<string, Route['action']>>;
}

function closed(handle: Handle): Route['action'] {
  return { isOpen: false, handle };
}

function open(handle: OpenHandle): Route['action'] {
  return { isOpen: true, handle };
}

const bucketPath = '/api/v2/buckets/';
const maxBucketBytes = 64 * 1024;

export class RouteTable {
  readonly #options: RouteOptions;
  readonly #buckets: BucketRoutes;
  readonly #pages: ReadonlyMap<string, Page>;

  constructor(options: RouteOptions) {
    this.#options = options;
    this.#buckets = new BucketRoutes(options.organization, options.startedAt);
    const { writes, queries } = options;
    const query = closed((exchange, caller) => queries.handle(exchange, caller));
    const health: Page = openPage('health', (exchange) => this.#health(exchange));
    this.#pages = new Map<string, Page>([
      ['/write', { name: 'write', methods: { POST: closed((e, caller) => writes.v1(e, caller)) } }],
      ['/query', { name: 'query', hasForm: true, methods: { GET: query, POST: query } }],
      ['/ping', openPage('ping', (exchange) => this.#ping(exchange))],
      ['/status', openPage('ping', (exchange) => exchange.reply(204))],
      ['/health', health],
      ['/api/v2/health', health],
      ['/ready', openPage('ready', (exchange) => this.#ready(exchange))],
      ['/api/v2/ready', openPage('ready', (exchange) => this.#ready(exchange))],
      [
        '/api/v2/write',
        { name: 'write', methods: { POST: closed((e, caller) => writes.v2(e, caller)) } },
      ],
      ['/api/v2/query', { name: 'v2', methods: { POST: closed(refuseFlux) } }],
      ['/api/v2/setup', openPage('v2', (exchange) => exchange.json(200, { allowed: false }))],
      [
        '/api/v2/orgs',
        { name: 'v2', methods: { GET: closed((e, caller) => this.#buckets.orgs(e, caller)) } },
      ],
      [
        '/api/v2/buckets',
        {
          name: 'v2',
          methods: {
            GET: closed((exchange, caller) => this.#buckets.list(exchange, caller)),
            POST: closed((exchange, caller) => this.#createBucket(exchange, caller)),
          },
        },
      ],
    ]);
  }

  find(exchange: Exchange): Route {
    const { path, method } = exchange;
    const isV2 = path.startsWith('/api/v2/');
    const plain = { isV2, hasForm: false, hasEffects: false };
    if (method === 'OPTIONS') return { ...plain, name: 'options', action: open(allowAll) };
    const page = this.#pages.get(path) ?? this.#bucketPage(path);
    if (page === undefined) return { ...plain, name: 'other', action: open(notFound) };
    const { name, hasForm = false } = page;
    const action = page.methods[method];
    if (action === undefined) {
      const allowed = ['OPTIONS', ...Object.keys(page.methods)].join(', ');
      return { ...plain, name, action: open((e) => notAllowed(e, allowed)) };
    }
    // The effects of a query are known once it has been parsed.
    const hasEffects = method === 'POST' && !hasForm;
    return { name, isV2, hasForm, hasEffects, action };
  }

  #bucketPage(path: string): Page | undefined {
    if (!path.startsWith(bucketPath)) return undefined;
    const id = path.slice(bucketPath.length);
    const one = closed((exchange, caller) => this.#buckets.one(exchange, caller, id));
    return { name: 'v2', methods: { GET: one } };
  }

  #ping(exchange: Exchange): void {
    const verbose = exchange.parameters.get('verbose');
    if (verbose === '' || verbose === '0' || verbose === 'false') exchange.reply(204);
    else exchange.json(200, { version: this.#options.version });
  }

  #health(exchange: Exchange): void {
    exchange.json(200, {
      checks: [],
      message: 'ready for queries and writes',
      name: 'influxdb',
      status: 'pass',
      version: this.#options.version,
    });
  }

  #ready(exchange: Exchange): void {
    const { startedAt, clock } = this.#options;
    const seconds = Math.max(0, Math.floor((clock.now() - startedAt.getTime()) / 1000));
    const up = `${Math.floor(seconds / 3600)}h${Math.floor(seconds / 60) % 60}m${seconds % 60}s`;
    exchange.json(200, { status: 'ready', started: startedAt.toISOString(), up });
  }

  async #createBucket(exchange: Exchange, caller: Caller): Promise<void> {
    const body = await exchange.smallBody(this.#options.body, maxBucketBytes);
    if (caller.principal !== undefined && !caller.principal.isAdmin) {
      throw new HttpError(403, 'only an administrator may create a bucket');
    }
    const made = await this.#buckets.create(body.toString(), caller);
    await this.#options.commit.safe();
    exchange.json(201, made);
  }
}

function openPage(name: string, handle: OpenHandle): Page {
  return { name, methods: { GET: open(handle), HEAD: open(handle) } };
}

function refuseFlux(): never {
  throw new HttpError(501, 'Flux is not served here: query with InfluxQL at /query');
}

function allowAll(exchange: Exchange): void {
  exchange.reply(200);
}

function notFound(exchange: Exchange): void {
  if (exchange.isV2) throw new HttpError(404, 'path not found');
  exchange.reply(404, '404 page not found\n', {
    'Content-Type': 'text/plain; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
  });
}

function notAllowed(exchange: Exchange, allowed: string): void {
  if (exchange.isV2)
    throw new HttpError(405, 'method not allowed', { headers: { Allow: allowed } });
  exchange.reply(405, 'Method Not Allowed\n', {
    Allow: allowed,
    'Content-Type': 'text/plain; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
  });
}
