// Databases and policies of the toy engine of time series.

import type { FieldType } from '../../universal-row/series/field-type.ts';
import {
  SeriesError,
  type CatalogChange,
  type Database,
  type RetentionPolicyChange,
} from '../../contracts/series-store.ts';
import type { ToyValue } from './series-toy-points.ts';

export interface ToySeries {
  measurement: string;
  tags: Map<string, string>;
  rows: Map<bigint, Map<string, ToyValue>>;
}

export interface ToyShard {
  start: bigint;
  /** The last nanosecond. */
  end: bigint;
  /** By measurement. */
  fields: Map<string, Map<string, FieldType>>;
  series: Map<string, ToySeries>;
}

export interface ToyPolicy {
  name: string;
  duration: bigint;
  shardGroupDuration: bigint;
  replicaN: number;
  shards: ToyShard[];
}

interface ToyDatabase {
  name: string;
  policies: ToyPolicy[];
  default: string;
}

export type ToyDatabases = Map<string, ToyDatabase>;

const hour = 3_600_000_000_000n;
const day = 24n * hour;

function policyOf(database: ToyDatabase | undefined, name: string): ToyPolicy | undefined {
  const wanted = name === '' ? database?.default : name;
  return database?.policies.find((policy) => policy.name === wanted);
}

export function expectPolicy(databases: ToyDatabases, database: string, name: string): ToyPolicy {
  const found = databases.get(database);
  if (found === undefined) throw new SeriesError(`database not found: ${database}`);
  const policy = policyOf(found, name);
  if (policy === undefined)
    throw new SeriesError(`retention policy not found: ${name || found.default}`);
  return policy;
}

export function shown(databases: ToyDatabases): Database[] {
  return [...databases.values()].map((one) => ({
    name: one.name,
    retentionPolicies: one.policies.map(({ name, duration, shardGroupDuration, replicaN }) => ({
      name,
      duration,
      shardGroupDuration,
      replicaN,
    })),
    defaultRetentionPolicy: policyOf(one, '')?.name ?? '',
  }));
}

function fail(text: string): never {
  throw new SeriesError(text);
}

function shardDuration(asked: bigint | undefined, duration: bigint): bigint {
  if (asked !== undefined && asked !== 0n) return asked < hour ? hour : asked;
  if (duration === 0n || duration >= 180n * day) return 7n * day;
  return duration >= 2n * day ? day : hour;
}

function newPolicy(name: string, asked: RetentionPolicyChange, old?: ToyPolicy): ToyPolicy {
  if (name === '' || /[/\\]/.test(name)) fail('invalid name');
  const duration = asked.duration ?? old?.duration ?? 0n;
  const kept = asked.shardGroupDuration === undefined ? old?.shardGroupDuration : undefined;
  const shardGroupDuration = kept ?? shardDuration(asked.shardGroupDuration, duration);
  if (duration !== 0n && duration < hour) {
    fail('retention policy duration must be at least 1h0m0s');
  }
  if (duration !== 0n && duration < shardGroupDuration) {
    fail('retention policy duration must be greater than the shard duration');
  }
  const replicaN = asked.replicaN ?? old?.replicaN ?? 1;
  return { name, duration, shardGroupDuration, replicaN, shards: old?.shards ?? [] };
}

const isSame = (a: ToyPolicy | undefined, b: ToyPolicy): boolean =>
  a?.duration === b.duration &&
  a.shardGroupDuration === b.shardGroupDuration &&
  a.replicaN === b.replicaN;

/**
 * Function that applies the change; undefined when there is nothing to do. Throws for an invalid
 * change.
 */
export function effectOf(databases: ToyDatabases, change: CatalogChange): (() => void) | undefined {
  const database = databases.get(change.database);
  switch (change.kind) {
    case 'createDatabase': {
      if (change.database === '' || /[/\\]/.test(change.database)) fail('invalid name');
      const asked = change.policy;
      const policy = newPolicy(asked?.name || 'autogen', asked ?? {});
      if (database !== undefined && database.policies.length > 0) {
        if (asked !== undefined && !isSame(policyOf(database, policy.name), policy)) {
          fail('retention policy conflicts with an existing policy');
        }
        return undefined;
      }
      if (database !== undefined && asked === undefined) return undefined;
      const made = { name: change.database, policies: [policy], default: policy.name };
      return () => void databases.set(change.database, made);
    }
    case 'dropDatabase':
      return database && (() => void databases.delete(change.database));
    case 'createRetentionPolicy': {
      const policy = newPolicy(change.name, change.policy);
      if (database === undefined) return fail(`database not found: ${change.database}`);
      const existing = policyOf(database, change.name);
      if (existing !== undefined) {
        if (!isSame(existing, policy)) fail('retention policy already exists');
        if (change.policy.makeDefault && database.default !== change.name) {
          fail('retention policy conflicts with an existing policy');
        }
        return undefined;
      }
      return () => {
        database.policies.push(policy);
        if (change.policy.makeDefault) database.default = change.name;
      };
    }
    case 'alterRetentionPolicy': {
      const policy = expectPolicy(databases, change.database, change.name);
      const altered = newPolicy(change.name, change.policy, policy);
      return () => {
        Object.assign(policy, altered);
        if (change.policy.makeDefault) database!.default = change.name;
      };
    }
    case 'dropRetentionPolicy': {
      const policy = policyOf(database, change.name);
      return (
        policy && (() => void database!.policies.splice(database!.policies.indexOf(policy), 1))
      );
    }
  }
}
