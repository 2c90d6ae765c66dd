// Requests of official v2 clients besides points: organisations and buckets. A database's default
// policy is the bucket named like the database, any other one `database/policy`; a tenant is one
// organisation, by any name.

import { createHash } from 'node:crypto';
import {
  type Database,
  type RetentionPolicy,
  type RetentionPolicyChange,
  ReadOnlyError,
  SeriesError,
  UnavailableError,
} from '../../../contracts/series-store.ts';
import { defaultTenant } from '../../../contracts/tenancy/definitions.ts';
import { mayKnow } from '../statements/principal.ts';
import type { Caller } from '../tenants/caller.ts';
import type { Exchange } from './exchange.ts';
import { HttpError } from './http-error.ts';
import type { Parameters } from './parameters.ts';

interface Bucket {
  id: string;
  orgID: string;
  type: 'user';
  name: string;
  retentionRules: { type: 'expire'; everySeconds: number; shardGroupDurationSeconds: number }[];
  createdAt: string;
  updatedAt: string;
  links: Record<string, string>;
  labels: never[];
}

const defaultLimit = 20;
const maxLimit = 100;
const nanosPerSecond = 1_000_000_000n;

/** The database and policy ('' for the default one) that a bucket name means. */
export function bucketTarget(bucket: string): { database: string; retentionPolicy: string } {
  const slash = bucket.indexOf('/');
  return slash < 0
    ? { database: bucket, retentionPolicy: '' }
    : { database: bucket.slice(0, slash), retentionPolicy: bucket.slice(slash + 1) };
}

export function bucketNotFound(bucket: string): HttpError {
  return new HttpError(404, `bucket "${bucket}" not found`);
}

export class BucketRoutes {
  readonly #orgName: string;
  readonly #startedAt: string;

  /** `orgName` is the name of the tenant that owns everything when there are no others. */
  constructor(orgName: string, startedAt: Date) {
    this.#orgName = orgName;
    this.#startedAt = startedAt.toISOString();
  }

  orgs(exchange: Exchange, { space }: Caller): void {
    const { parameters } = exchange;
    const id = idOf('org');
    const wanted = parameters.get('orgID');
    if (wanted !== '' && wanted !== id) throw new HttpError(404, 'organization not found');
    exchange.json(200, {
      links: { self: '/api/v2/orgs' },
      orgs: [
        {
          links: { buckets: `/api/v2/buckets?orgID=${id}`, self: `/api/v2/orgs/${id}` },
          id,
          name: parameters.get('org') || this.#orgOf(space.name),
          description: '',
          createdAt: this.#startedAt,
          updatedAt: this.#startedAt,
        },
      ],
    });
  }

  #orgOf(tenant: string): string {
    return tenant === defaultTenant ? this.#orgName : tenant;
  }

  list(exchange: Exchange, caller: Caller): void {
    const { parameters } = exchange;
    const name = parameters.get('name');
    const id = parameters.get('id');
    let found = this.#buckets(caller);
    if (id !== '') found = found.filter((bucket) => bucket.id === id);
    if (name !== '')
      found = found.filter((bucket) => bucket.name === name || hasAlias(bucket, name));
    if (found.length === 0 && name !== '') throw bucketNotFound(name);
    if (found.length === 0 && id !== '') throw new HttpError(404, 'bucket not found');
    const from = count(parameters, 'offset', 0);
    const limit = Math.min(count(parameters, 'limit', defaultLimit), maxLimit);
    exchange.json(200, {
      links: { self: '/api/v2/buckets' },
      buckets: found.slice(from, from + limit),
    });
  }

  one(exchange: Exchange, caller: Caller, id: string): void {
    const bucket = this.#buckets(caller).find((candidate) => candidate.id === id);
    if (bucket === undefined) throw new HttpError(404, 'bucket not found');
    exchange.json(200, bucket);
  }

  /**
   * Creates a database, or a further policy of it. Resolves to the answer once the change is
   * durable.
   */
  async create(body: string, caller: Caller): Promise<Bucket> {
    const { store } = caller.space;
    const { name, rules } = readBucket(body);
    const { database, retentionPolicy } = bucketTarget(name);
    if (database === '') throw new HttpError(400, 'bucket name is required');
    const existing = store.database(database);
    const policy = policyChange(rules);
    const isTaken =
      existing !== undefined &&
      (retentionPolicy === '' ||
        existing.retentionPolicies.some((other) => other.name === retentionPolicy));
    if (isTaken) {
      throw new HttpError(422, `bucket with name ${name} already exists`, { code: 'conflict' });
    }
    try {
      if (existing === undefined) {
        await store.change({
          kind: 'createDatabase',
          database,
          policy: { ...policy, ...(retentionPolicy !== '' && { name: retentionPolicy }) },
        });
      } else {
        await store.change({
          kind: 'createRetentionPolicy',
          database,
          name: retentionPolicy,
          policy,
        });
      }
    } catch (error) {
      if (error instanceof SeriesError && isRefusal(error)) throw new HttpError(422, error.message);
      throw error;
    }
    const made = this.#buckets(caller).find(
      (bucket) => bucket.name === name || hasAlias(bucket, name),
    );
    if (made === undefined) throw new HttpError(500, `bucket "${name}" was not created`);
    return { ...made, name };
  }

  /** Buckets of the databases that the caller may see. */
  #buckets({ space, principal }: Caller): Bucket[] {
    return space.store
      .databases()
      .filter(({ name }) => mayKnow(principal, name))
      .flatMap((database) =>
        database.retentionPolicies.map((policy) => this.#bucket(database, policy)),
      );
  }

  #bucket(database: Database, policy: RetentionPolicy): Bucket {
    const full = `${database.name}/${policy.name}`;
    const id = idOf(full);
    return {
      id,
      orgID: idOf('org'),
      type: 'user',
      name: policy.name === database.defaultRetentionPolicy ? database.name : full,
      retentionRules:
        policy.duration === 0n
          ? []
          : [
              {
                type: 'expire',
                everySeconds: Number(policy.duration / nanosPerSecond),
                shardGroupDurationSeconds: Number(policy.shardGroupDuration / nanosPerSecond),
              },
            ],
      createdAt: this.#startedAt,
      updatedAt: this.#startedAt,
      links: { self: `/api/v2/buckets/${id}`, write: `/api/v2/write?bucket=${id}` },
      labels: [],
    };
  }
}

/** A default policy's bucket also goes by `database/policy`. */
function hasAlias(bucket: Bucket, name: string): boolean {
  return bucket.id === idOf(name);
}

function idOf(name: string): string {
  return createHash('sha256').update(name).digest('hex').slice(0, 16);
}

function count(parameters: Parameters, name: string, otherwise: number): number {
  const text = parameters.get(name);
  return /^\d{1,9}$/.test(text) ? Number(text) : otherwise;
}

function readBucket(body: string): { name: string; rules: unknown } {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw new HttpError(400, 'failed to decode request body: invalid JSON');
  }
  const { name, retentionRules } = (value ?? {}) as { name?: unknown; retentionRules?: unknown };
  if (typeof name !== 'string' || name === '') throw new HttpError(400, 'bucket name is required');
  return { name, rules: retentionRules };
}

/** Whether the error is the client's fault. */
function isRefusal(error: SeriesError): boolean {
  return !(error instanceof ReadOnlyError || error instanceof UnavailableError);
}

function policyChange(rules: unknown): RetentionPolicyChange {
  const rule = (Array.isArray(rules) ? rules[0] : undefined) as
    | { everySeconds?: unknown; shardGroupDurationSeconds?: unknown }
    | undefined;
  const duration = nanoseconds(rule?.everySeconds);
  const shardGroupDuration = nanoseconds(rule?.shardGroupDurationSeconds);
  return {
    ...(duration !== undefined && { duration }),
    ...(shardGroupDuration !== undefined && { shardGroupDuration }),
  };
}

function nanoseconds(seconds: unknown): bigint | undefined {
  if (seconds === undefined || seconds === null || seconds === 0) return undefined;
  if (typeof seconds !== 'number' || !Number.isSafeInteger(seconds) || seconds < 0) {
    throw new HttpError(422, 'retention seconds must be a positive whole number');
  }
  return BigInt(seconds) * nanosPerSecond;
}
