// Which path is whose, and the short answers.

import type { Clock } from '../../../universal-row/environment.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import type { SeriesStore } from '../../../universal-row/series/series-store.ts';
import { BucketRoutes } from './bucket-routes.ts';
import type { Principal } from './credentials.ts';
import type { Exchange } from './exchange.ts';
import type { GroupCommit } from './group-commit.ts';
import { HttpError } from './http-error.ts';
import type { QueryHandler } from './query-handler.ts';
import type { BodyLimits } from './request-body.ts';
import type { WriteHandler } from './write-handler.ts';

type Handle = (exchange: Exchange, principal: Principal | undefined) => MaybePromise<void>;

export interface Route {
  readonly name: string;
  readonly isV2: boolean;
  /** Needs no credentials. */
  readonly isOpen: boolean;
  readonly handle: Handle;
}

export interface RouteOptions {
  store: SeriesStore;
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
  readonly isOpen?: boolean;
  readonly methods: Readonly<Record<string, Handle>>;
}

const bucketPath = '/api/v2/buckets/';
const maxBucketBytes = 64 * 1024;

export class RouteTable {
  readonly #options: RouteOptions;
  readonly #buckets: BucketRoutes;
  readonly #pages: ReadonlyMap<string, Page>;

  constructor(options: RouteOptions) {
    this.#options = options;
    this.#buckets = new BucketRoutes(options.store, options.organization, options.startedAt);
    const { writes, queries } = options;
    const query: Handle = (exchange, principal) => queries.handle(exchange, principal);
    const health: Page = this.#open('health', (exchange) => this.#health(exchange));
    this.#pages = new Map<string, Page>([
      ['/write', { name: 'write', methods: { POST: (e, p) => writes.v1(e, p) } }],
      ['/query', { name: 'query', methods: { GET: query, POST: query } }],
      ['/ping', this.#open('ping', (exchange) => this.#ping(exchange))],
      ['/status', this.#open('ping', (exchange) => exchange.reply(204))],
      ['/health', health],
      ['/api/v2/health', health],
      ['/ready', this.#open('ready', (exchange) => this.#ready(exchange))],
      ['/api/v2/ready', this.#open('ready', (exchange) => this.#ready(exchange))],
      ['/api/v2/write', { name: 'write', methods: { POST: (e, p) => writes.v2(e, p) } }],
      ['/api/v2/query', { name: 'v2', methods: { POST: refuseFlux } }],
      ['/api/v2/setup', this.#open('v2', (exchange) => exchange.json(200, { allowed: false }))],
      ['/api/v2/orgs', { name: 'v2', methods: { GET: (e) => this.#buckets.orgs(e) } }],
      [
        '/api/v2/buckets',
        {
          name: 'v2',
          methods: {
            GET: (exchange) => this.#buckets.list(exchange),
            POST: (exchange, principal) => this.#createBucket(exchange, principal),
          },
        },
      ],
    ]);
  }

  find(exchange: Exchange): Route {
    const { path, method } = exchange;
    const isV2 = path.startsWith('/api/v2/');
    if (method === 'OPTIONS') return { name: 'options', isV2, isOpen: true, handle: allowAll };
    const page = this.#pages.get(path) ?? this.#bucketPage(path);
    if (page === undefined) return { name: 'other', isV2, isOpen: true, handle: notFound };
    const { name, isOpen = false } = page;
    const handle = page.methods[method];
    if (handle === undefined) {
      const allowed = ['OPTIONS', ...Object.keys(page.methods)].join(', ');
      return { name, isV2, isOpen: true, handle: (e) => notAllowed(e, allowed) };
    }
    return { name, isV2, isOpen, handle };
  }

  #open(name: string, handle: (exchange: Exchange) => void): Page {
    return { name, isOpen: true, methods: { GET: handle, HEAD: handle } };
  }

  #bucketPage(path: string): Page | undefined {
    if (!path.startsWith(bucketPath)) return undefined;
    const id = path.slice(bucketPath.length);
    return { name: 'v2', methods: { GET: (exchange) => this.#buckets.one(exchange, id) } };
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

  async #createBucket(exchange: Exchange, principal: Principal | undefined): Promise<void> {
    if (principal !== undefined && !principal.isAdmin) {
      throw new HttpError(403, 'only an administrator may create a bucket');
    }
    const body = await exchange.smallBody(this.#options.body, maxBucketBytes);
    const made = this.#buckets.create(body.toString());
    await this.#options.commit.safe();
    exchange.json(201, made);
  }
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
