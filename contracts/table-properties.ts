// Properties of a table, which operators set, the same for all data models. Storage nodes enforce them
// (`storage-node/table-rules.ts`), so that protocols and engines have no rules of their own.

import type { ReadBounds } from '../universal-row/command.ts';
import { mostPartitions } from './partition-map.ts';

/**
 * Consistency of reads: the latest write, any replica's state, or a state within the bounds. `lease`: the latest
 * write, answered by the leader from its lease. The lease requires clocks that run at about the same rate.
 */
export type Consistency =
  | { readonly kind: 'strong' }
  | { readonly kind: 'lease' }
  | { readonly kind: 'eventual' }
  | { readonly kind: 'bounded'; readonly maxStalenessMs: number; readonly maxLagEntries: number };

export interface TableProperties {
  /** Which engine keeps it, by the engine's name. */
  readonly model: string;
  /** Updates, puts and deletes are refused. */
  readonly readOnly: boolean;
  /** Time to live of a new row written without one; 0 for none. */
  readonly ttlDefaultMs: number;
  readonly consistency: Consistency;
  /** Limit of one row's bytes, overheads included; 0 for no limit. */
  readonly maxRowBytes: number;
  /** By the hash of the partition group, or by runs of its order. */
  readonly shardingKind: ShardingKind;
  /** Ranges of Redis slots that it is divided into, each with rows and load of its own. */
  readonly partitions: number;
  /** Which writes go first when a pod is short of tokens. */
  readonly writePriority: WritePriority;
  /**
   * Whether requests may use unused capacity beyond the tenant's quota; `server`: the server's
   * setting.
   */
  readonly quotaMode: QuotaMode;
  /** Large, log-like reads that would push everything else out pass by every cache. */
  readonly cacheBypass: boolean;
}

/** A state of any age. */
export const anyAge: ReadBounds = { maxStalenessMs: Infinity, maxLagEntries: Infinity };

/** Bounds of reads that may be answered by a replica that does not lead; undefined where none may. */
export function boundsOf(consistency: Consistency | undefined): ReadBounds | undefined {
  if (consistency?.kind === 'bounded') return consistency;
  return consistency?.kind === 'eventual' ? anyAge : undefined;
}

export const consistencyKinds = ['strong', 'lease', 'eventual', 'bounded'] as const;
export const shardingKinds = ['hash', 'range'] as const;
export const writePriorities = ['low', 'normal', 'high'] as const;
export const quotaModes = ['server', 'hard', 'stacked'] as const;

type ShardingKind = (typeof shardingKinds)[number];
export type WritePriority = (typeof writePriorities)[number];
export type QuotaMode = (typeof quotaModes)[number];

export const defaultBounds = { maxStalenessMs: 5_000, maxLagEntries: 10_000 } as const;

export const defaultTableProperties: TableProperties = {
  model: 'memory',
  readOnly: false,
  ttlDefaultMs: 0,
  consistency: { kind: 'strong' },
  maxRowBytes: 0,
  shardingKind: 'hash',
  partitions: 1,
  writePriority: 'normal',
  quotaMode: 'server',
  cacheBypass: false,
};

/** Default properties of tables of a model. */
export function modelProperties(model: string): TableProperties {
  // Points that a collector cannot hand over in time are lost to it: they go first.
  const writePriority = model === 'series' ? 'high' : 'normal';
  return { ...defaultTableProperties, model, writePriority };
}

/** An invalid property. The message names the property, its valid values and the given one. */
export class TablePropertyError extends Error {
  override readonly name = 'TablePropertyError';
}

/**
 * Returns `base` with `changes` applied. `changes` may be untrusted: an unknown or invalid property is a
 * `TablePropertyError`.
 */
export function withTableProperties(
  changes: unknown,
  base: TableProperties = defaultTableProperties,
): TableProperties {
  if (typeof changes !== 'object' || changes === null || Array.isArray(changes)) {
    throw new TablePropertyError(`table properties: expected an object, got ${shown(changes)}`);
  }
  const checked: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) continue;
    if (!isPropertyName(name)) {
      throw new TablePropertyError(
        `${name}: no such table property (there are ${Object.keys(checks).join(', ')})`,
      );
    }
    checked[name] = checks[name](name, value);
  }
  return { ...base, ...checked };
}

type Check<T> = (name: string, value: unknown) => T;

const checks: { readonly [Name in keyof TableProperties]: Check<TableProperties[Name]> } = {
  model: checkName,
  readOnly: checkBoolean,
  ttlDefaultMs: checkWholeNumber,
  consistency: checkConsistency,
  maxRowBytes: checkWholeNumber,
  shardingKind: oneOf(shardingKinds),
  partitions: checkPartitions,
  writePriority: oneOf(writePriorities),
  quotaMode: oneOf(quotaModes),
  cacheBypass: checkBoolean,
};

function isPropertyName(name: string): name is keyof TableProperties {
  return Object.hasOwn(checks, name);
}

function checkName(name: string, value: unknown): string {
  if (typeof value === 'string' && /^[a-z][a-z0-9-]*$/.test(value)) return value;
  throw expected(name, 'the name of an engine', value);
}

function checkBoolean(name: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw expected(name, 'true or false', value);
}

function checkWholeNumber(name: string, value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  throw expected(name, 'a whole number, 0 or more', value);
}

function checkPartitions(name: string, value: unknown): number {
  const isNumber = Number.isSafeInteger(value) && (value as number) >= 1;
  if (isNumber && (value as number) <= mostPartitions) return value as number;
  throw expected(name, `a whole number from 1 to ${mostPartitions}`, value);
}

function checkConsistency(name: string, value: unknown): Consistency {
  if (value === 'strong' || value === 'lease' || value === 'eventual') return { kind: value };
  if (value === 'bounded') return { kind: value, ...defaultBounds };
  if (typeof value === 'object' && value !== null && 'kind' in value) {
    const { kind, ...bounds } = value;
    if (kind === 'bounded') return { kind, ...checkBounds(name, bounds) };
    if (
      (kind === 'strong' || kind === 'lease' || kind === 'eventual') &&
      Object.keys(bounds).length === 0
    ) {
      return { kind };
    }
  }
  throw expected(name, 'strong, lease, eventual or bounded', value);
}

function checkBounds(
  name: string,
  bounds: object,
): { maxStalenessMs: number; maxLagEntries: number } {
  const known = { ...defaultBounds, ...bounds };
  const stranger = Object.keys(known).find((bound) => !Object.hasOwn(defaultBounds, bound));
  if (stranger !== undefined) throw expected(name, Object.keys(defaultBounds).join(', '), stranger);
  return {
    maxStalenessMs: checkWholeNumber(`${name}.maxStalenessMs`, known.maxStalenessMs),
    maxLagEntries: checkWholeNumber(`${name}.maxLagEntries`, known.maxLagEntries),
  };
}

function oneOf<T extends string>(choices: readonly T[]): Check<T> {
  return (name, value) => {
    const choice = choices.find((candidate) => candidate === value);
    if (choice === undefined) throw expected(name, `one of ${choices.join(', ')}`, value);
    return choice;
  };
}

function expected(name: string, what: string, got: unknown): TablePropertyError {
  return new TablePropertyError(`${name}: expected ${what}, got ${shown(got)}`);
}

function shown(value: unknown): string {
  return typeof value === 'bigint' ? `${value}n` : (JSON.stringify(value) ?? typeof value);
}
