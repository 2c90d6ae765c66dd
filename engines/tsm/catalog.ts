// Databases, their retention policies, and the list of shards. The state depends only on the changes made: shard
// numbers are never reused, and no clock is read.

import {
  type CatalogChange,
  type ChangeOrder,
  type Database,
  type RetentionPolicy,
  type RetentionPolicyChange,
  SeriesError,
  UnavailableError,
} from '../../contracts/series-store.ts';
import { minRetention, normalShardDuration } from './durations.ts';
import { maxShardSeconds } from './parts.ts';

/** Database, retention policy and time range of a shard. */
export interface ShardSpan {
  readonly number: number;
  readonly database: string;
  readonly policy: string;
  /** Unix seconds; `seconds` long. */
  readonly startSeconds: number;
  readonly seconds: number;
}

export interface PolicyState extends RetentionPolicy {
  duration: bigint;
  shardGroupDuration: bigint;
  replicaN: number;
  /** Ascending; none overlaps another. */
  readonly shards: ShardSpan[];
}

interface DatabaseState {
  readonly name: string;
  readonly policies: PolicyState[];
  /** Stays when the policy is dropped: the next one of this name is the default again. */
  defaultPolicy: string;
}

/** As JSON: the catalog in a manifest or a snapshot. */
export interface CatalogState {
  nextShard: number;
  /** Order of the last change that had one. */
  order?: ChangeOrder | undefined;
  databases: {
    name: string;
    defaultPolicy: string;
    policies: {
      name: string;
      /** Nanoseconds, in decimal. */
      duration: string;
      shardGroupDuration: string;
      replicaN: number;
    }[];
  }[];
  shards: ShardSpan[];
}

type DatabaseSaved = CatalogState['databases'][number];

/** Changes that the engine makes beyond those available to clients. */
export type EngineChange =
  | CatalogChange
  /** Creates a database as it was saved elsewhere, without shards. Replaces a database of the same name. */
  | { readonly kind: 'adoptDatabase'; readonly database: string; readonly saved: DatabaseSaved }
  /** Renames a database. Replaces a database that is called `to`. */
  | { readonly kind: 'renameDatabase'; readonly database: string; readonly to: string };

/** Makes the change, and returns the shards that it drops. */
type Effect = () => ShardSpan[];

const automaticName = 'autogen';

/**
 * The policy as it is in force where policies without a duration of their own keep points for `retention`
 * nanoseconds, 0 for ever. That is `autogen`: other policies are made with a duration.
 */
export function inForce<P extends RetentionPolicy>(policy: P, retention: bigint): P {
  if (retention === 0n || policy.duration !== 0n || policy.name !== automaticName) return policy;
  // With the shards of a policy of that duration, points go soon after their time.
  const usual = normalShardDuration(undefined, retention);
  const { shardGroupDuration: own } = policy;
  return { ...policy, duration: retention, shardGroupDuration: own < usual ? own : usual };
}

export function databaseNotFound(name: string): SeriesError {
  return new SeriesError(`database not found: ${name}`);
}

function policyNotFound(name: string): SeriesError {
  return new SeriesError(`retention policy not found: ${name}`);
}

export class Catalog {
  /** The number of the next shard. */
  nextShard = 1;
  #order: ChangeOrder | undefined;
  readonly #databases = new Map<string, DatabaseState>();
  readonly #shards = new Map<number, ShardSpan>();

  // ---- databases, policies and shards
  //

  /** In the order they were made. */
  databases(): Database[] {
    return [...this.#databases.values()].map((database) => shown(database));
  }

  database(name: string): Database | undefined {
    const database = this.#databases.get(name);
    return database && shown(database);
  }

  get databaseCount(): number {
    return this.#databases.size;
  }

  state(name: string): DatabaseState | undefined {
    return this.#databases.get(name);
  }

  states(): Iterable<DatabaseState> {
    return this.#databases.values();
  }

  /** '' is the default policy. Undefined when there is none of this name. */
  policy(database: DatabaseState, name: string): PolicyState | undefined {
    return policyOf(database, name === '' ? database.defaultPolicy : name);
  }

  /** Like `policy`; throws an error that names the missing part. */
  expectPolicy(database: string, name: string): PolicyState {
    const state = this.#databases.get(database);
    if (state === undefined) throw databaseNotFound(database);
    const policy = this.policy(state, name);
    if (policy === undefined) throw policyNotFound(name === '' ? state.defaultPolicy : name);
    return policy;
  }

  shard(number: number): ShardSpan | undefined {
    return this.#shards.get(number);
  }

  shards(): ShardSpan[] {
    return [...this.#shards.values()];
  }

  // ---- changes

  /** Whether the change has an effect. Throws `SeriesError` for an impossible change. */
  check(change: EngineChange): boolean {
    if (isBefore(orderOf(change), this.#order)) {
      throw new UnavailableError('a later change of the databases was made before this one');
    }
    return this.#effect(change) !== undefined;
  }

  /** Returns the shards that are dropped with it. */
  make(change: EngineChange): ShardSpan[] {
    this.#order = orderOf(change) ?? this.#order;
    return this.#effect(change)?.() ?? [];
  }

  addShard(span: ShardSpan): void {
    const state = this.#databases.get(span.database);
    const policy = state && policyOf(state, span.policy);
    if (policy === undefined) throw new RangeError(`shard ${span.number} is of no policy`);
    const at = policy.shards.findIndex((other) => other.startSeconds > span.startSeconds);
    policy.shards.splice(at < 0 ? policy.shards.length : at, 0, span);
    this.#shards.set(span.number, span);
    this.nextShard = Math.max(this.nextShard, span.number + 1);
  }

  /** Removes a shard. A missing shard is no error. */
  dropShard(number: number): void {
    const span = this.#shards.get(number);
    if (span === undefined) return;
    this.#shards.delete(number);
    const state = this.#databases.get(span.database);
    const shards = state && policyOf(state, span.policy)?.shards;
    if (shards !== undefined) shards.splice(shards.indexOf(span), 1);
  }

  #effect(change: EngineChange): Effect | undefined {
    switch (change.kind) {
      case 'adoptDatabase':
        return () => this.#adopt(change.database, change.saved);
      case 'renameDatabase':
        return this.#rename(change.database, change.to);
      case 'createDatabase':
        return this.#createDatabase(change.database, change.policy);
      case 'dropDatabase':
        return this.#dropDatabase(change.database);
      case 'createRetentionPolicy':
        return this.#createPolicy(change.database, change.name, change.policy);
      case 'alterRetentionPolicy':
        return this.#alterPolicy(change.database, change.name, change.policy);
      case 'dropRetentionPolicy':
        return this.#dropPolicy(change.database, change.name);
    }
  }

  #adopt(name: string, saved: DatabaseSaved): ShardSpan[] {
    const dropped = this.#dropDatabase(name)?.() ?? [];
    this.#databases.set(name, { ...loaded(saved), name });
    return dropped;
  }

  #rename(name: string, to: string): Effect | undefined {
    const database = this.#databases.get(name);
    if (database === undefined || name === to) return undefined;
    return () => {
      const dropped = this.#dropDatabase(to)?.() ?? [];
      this.#databases.delete(name);
      this.#databases.set(to, { ...database, name: to });
      for (const { shards } of database.policies) {
        for (const [i, span] of shards.entries()) {
          const renamed = { ...span, database: to };
          shards[i] = renamed;
          this.#shards.set(span.number, renamed);
        }
      }
      return dropped;
    };
  }

  #createDatabase(
    name: string,
    asked: (RetentionPolicyChange & { readonly name?: string }) | undefined,
  ): Effect | undefined {
    checkName(name.replace(ownerMark, ''));
    if (asked !== undefined) checkDuration(asked.duration);
    const existing = this.#databases.get(name);
    const policyName = asked?.name === undefined || asked.name === '' ? automaticName : asked.name;
    if (existing !== undefined && existing.policies.length > 0) {
      if (asked !== undefined && !matches(policyOf(existing, policyName), asked)) {
        throw new SeriesError('retention policy conflicts with an existing policy');
      }
      return undefined;
    }
    checkName(policyName);
    const policy = newPolicy(policyName, asked ?? {});
    if (existing !== undefined && asked === undefined) return undefined;
    return () => {
      const database = existing ?? { name, policies: [], defaultPolicy: policyName };
      database.policies.push(policy);
      database.defaultPolicy = policyName;
      this.#databases.set(name, database);
      return [];
    };
  }

  #dropDatabase(name: string): Effect | undefined {
    const database = this.#databases.get(name);
    if (database === undefined) return undefined;
    return () => {
      this.#databases.delete(name);
      return this.#dropShards(database.policies.flatMap(({ shards }) => shards));
    };
  }

  #createPolicy(
    databaseName: string,
    name: string,
    asked: RetentionPolicyChange,
  ): Effect | undefined {
    checkPolicyName(name);
    checkDuration(asked.duration);
    const policy = newPolicy(name, asked);
    const database = this.#databases.get(databaseName);
    if (database === undefined) throw databaseNotFound(databaseName);
    const existing = policyOf(database, name);
    if (existing !== undefined) {
      if (!isSame(existing, policy)) throw new SeriesError('retention policy already exists');
      if (asked.makeDefault === true && database.defaultPolicy !== name) {
        throw new SeriesError('retention policy conflicts with an existing policy');
      }
      return undefined;
    }
    return () => {
      database.policies.push(policy);
      if (asked.makeDefault === true) database.defaultPolicy = name;
      return [];
    };
  }

  #alterPolicy(databaseName: string, name: string, asked: RetentionPolicyChange): Effect {
    const database = this.#databases.get(databaseName);
    if (database === undefined) throw databaseNotFound(databaseName);
    const policy = policyOf(database, name);
    if (policy === undefined) throw policyNotFound(name);
    checkDuration(asked.duration);
    checkReplicas(asked.replicaN);
    const duration = asked.duration ?? policy.duration;
    const shardDuration =
      asked.shardGroupDuration === undefined
        ? policy.shardGroupDuration
        : normalShardDuration(asked.shardGroupDuration, duration);
    const changesDurations = asked.duration !== undefined || asked.shardGroupDuration !== undefined;
    if (changesDurations) checkShardDuration(duration, shardDuration);
    return () => {
      policy.duration = duration;
      policy.shardGroupDuration = shardDuration;
      policy.replicaN = asked.replicaN ?? policy.replicaN;
      if (asked.makeDefault === true) database.defaultPolicy = name;
      return [];
    };
  }

  #dropPolicy(databaseName: string, name: string): Effect | undefined {
    const database = this.#databases.get(databaseName);
    const policy = database && policyOf(database, name);
    if (database === undefined || policy === undefined) return undefined;
    return () => {
      database.policies.splice(database.policies.indexOf(policy), 1);
      return this.#dropShards(policy.shards);
    };
  }

  #dropShards(spans: readonly ShardSpan[]): ShardSpan[] {
    for (const { number } of spans) this.#shards.delete(number);
    return [...spans];
  }

  // ---- as a whole

  save(): CatalogState {
    return {
      nextShard: this.nextShard,
      ...(this.#order && { order: this.#order }),
      databases: [...this.#databases.values()].map(({ name, defaultPolicy, policies }) => ({
        name,
        defaultPolicy,
        policies: policies.map((policy) => ({
          name: policy.name,
          duration: String(policy.duration),
          shardGroupDuration: String(policy.shardGroupDuration),
          replicaN: policy.replicaN,
        })),
      })),
      shards: [...this.#shards.values()],
    };
  }

  static load(saved: CatalogState): Catalog {
    const catalog = new Catalog();
    for (const database of saved.databases) {
      catalog.#databases.set(database.name, loaded(database));
    }
    for (const span of saved.shards) catalog.addShard(span);
    catalog.nextShard = saved.nextShard;
    catalog.#order = saved.order;
    return catalog;
  }
}

function orderOf(change: EngineChange): ChangeOrder | undefined {
  return 'order' in change ? change.order : undefined;
}

function isBefore(one: ChangeOrder | undefined, other: ChangeOrder | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  return one.term === other.term ? one.number < other.number : one.term < other.term;
}

/**
 * The shard that a policy would make for a time that none of its shards covers: of the policy's
 * shard duration, less the time that other shards cover already.
 */
export function spanFor(
  policy: PolicyState,
  others: readonly ShardSpan[],
  second: number,
): Pick<ShardSpan, 'startSeconds' | 'seconds'> {
  const width = Math.min(Number(policy.shardGroupDuration / 1_000_000_000n), maxShardSeconds);
  let start = Math.floor(second / width) * width;
  let end = start + width;
  for (const other of others) {
    const otherEnd = other.startSeconds + other.seconds;
    if (otherEnd <= second) start = Math.max(start, otherEnd);
    else if (other.startSeconds > second) end = Math.min(end, other.startSeconds);
  }
  return { startSeconds: start, seconds: end - start };
}

function loaded({ name, defaultPolicy, policies }: DatabaseSaved): DatabaseState {
  return {
    name,
    defaultPolicy,
    policies: policies.map((policy) => ({
      name: policy.name,
      duration: BigInt(policy.duration),
      shardGroupDuration: BigInt(policy.shardGroupDuration),
      replicaN: policy.replicaN,
      shards: [],
    })),
  };
}

function policyOf(database: DatabaseState, name: string): PolicyState | undefined {
  return database.policies.find((policy) => policy.name === name);
}

function shown(database: DatabaseState): Database {
  const { name, policies, defaultPolicy } = database;
  return {
    name,
    retentionPolicies: policies.map((policy) => ({
      name: policy.name,
      duration: policy.duration,
      shardGroupDuration: policy.shardGroupDuration,
      replicaN: policy.replicaN,
    })),
    defaultRetentionPolicy: policyOf(database, defaultPolicy) === undefined ? '' : defaultPolicy,
  };
}

function newPolicy(name: string, asked: RetentionPolicyChange): PolicyState {
  checkReplicas(asked.replicaN);
  const duration = asked.duration ?? 0n;
  const shardGroupDuration = normalShardDuration(asked.shardGroupDuration, duration);
  checkShardDuration(duration, shardGroupDuration);
  return { name, duration, shardGroupDuration, replicaN: asked.replicaN ?? 1, shards: [] };
}

function isSame(a: RetentionPolicy, b: RetentionPolicy): boolean {
  return (
    a.duration === b.duration &&
    a.shardGroupDuration === b.shardGroupDuration &&
    a.replicaN === b.replicaN
  );
}

/** Whether the policy agrees with all requested properties. */
function matches(policy: PolicyState | undefined, asked: RetentionPolicyChange): boolean {
  if (policy === undefined) return false;
  const { duration, replicaN, shardGroupDuration } = asked;
  return (
    (duration === undefined || duration === policy.duration) &&
    (replicaN === undefined || replicaN === policy.replicaN) &&
    normalShardDuration(shardGroupDuration, policy.duration) === policy.shardGroupDuration
  );
}

/** Databases of several owners are kept apart by a prefix of their names. */
// oxlint-disable-next-line no-control-regex
const ownerMark = /^\u0001\d+\u0001/;

/** As the original has it: printable, no path. */
function checkName(name: string): void {
  const printable = !/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.test(name);
  if (name === '' || name === '.' || name === '..' || !printable || /[/\\]/.test(name)) {
    throw new SeriesError('invalid name');
  }
}

function checkPolicyName(name: string): void {
  if (name === '') throw new SeriesError('retention policy name required');
  checkName(name);
}

function checkDuration(duration: bigint | undefined): void {
  if (duration !== undefined && duration !== 0n && duration < minRetention) {
    throw new SeriesError('retention policy duration must be at least 1h0m0s');
  }
}

function checkShardDuration(duration: bigint, shardDuration: bigint): void {
  if (duration !== 0n && duration < shardDuration) {
    throw new SeriesError('retention policy duration must be greater than the shard duration');
  }
}

function checkReplicas(replicaN: number | undefined): void {
  if (replicaN !== undefined && replicaN < 1) {
    throw new SeriesError('replication factor must be greater than 0');
  }
}

/** Numbers of shards that are older than their policies keep at `now`, in Unix milliseconds. */
export function* expiredShards(
  catalog: Catalog,
  now: number,
  retentionOf: (database: string) => bigint | undefined = () => 0n,
): Generator<number, void, void> {
  for (const { name, policies } of catalog.states()) {
    const retention = retentionOf(name);
    if (retention === undefined) continue;
    for (const policy of policies) {
      const { duration } = inForce(policy, retention);
      if (duration === 0n) continue;
      const oldest = now / 1000 - Number(duration) / 1e9;
      for (const { number, startSeconds, seconds } of policy.shards) {
        if (startSeconds + seconds <= oldest) yield number;
      }
    }
  }
}
