// Rules for names, creation and properties of tables.

import { defaultTenant } from '../../contracts/tenancy/definitions.ts';
import {
  modelProperties,
  TablePropertyError,
  type TableProperties,
  withTableProperties,
} from '../../contracts/table-properties.ts';
import {
  type TableChange,
  type TableDefinition,
  type TableModel,
  tableModels,
} from './table-definition.ts';

/** A change that is not possible. `reason` tells a missing table from a conflict from a bad value. */
export class TableError extends Error {
  override readonly name = 'TableError';
  readonly reason: 'missing' | 'conflict' | 'invalid';

  constructor(reason: TableError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

export const tenantDefault = { name: defaultTenant, firstTable: 0 } as const;

export function splitReference(reference: string): [first: string, rest?: string] {
  const slash = reference.indexOf('/');
  if (slash < 0) return [reference];
  return [reference.slice(0, slash), reference.slice(slash + 1)];
}

/** Documents sort as the numbers do. */
export function documentId(table: number): string {
  return String(table).padStart(6, '0');
}

export function newDefinition(id: number, database: number, model: TableModel): TableDefinition {
  return { ...modelProperties(model), id, name: `db${database}`, model };
}

/** The properties with the change applied; its `name` and `model` are left out. */
export function changedProperties(before: TableProperties, change: TableChange): TableProperties {
  const { name: _name, model: _model, ...properties } = change;
  const { ttlDefaultMs = 0, maxRowBytes = 0 } = properties;
  for (const [property, value] of Object.entries({ ttlDefaultMs, maxRowBytes })) {
    if (!Number.isSafeInteger(value) || value < 0) {
      throw invalid(`${property} cannot be ${value}: it must be a whole number from 0`);
    }
  }
  refuseUnavailable(before, change);
  try {
    return withTableProperties(properties, before);
  } catch (error) {
    throw error instanceof TablePropertyError ? invalid(error.message) : error;
  }
}

/** Refuses properties that have no effect yet. */
function refuseUnavailable(before: TableProperties, change: TableChange): void {
  if (change.shardingKind === 'range' && before.shardingKind !== 'range') {
    throw invalid('shardingKind range is not yet available: it can only be hash');
  }
}

/** Nodes of an earlier level of a cluster would serve partitions that are closed. */
export const changesLevel = 3;
export const changesRefusal =
  'not all nodes of the cluster run a release that knows changes of partitions';

/** Tables whose reads go by leases are of this level of a cluster. */
const leaseLevel = 2;

/** Refuses features that some nodes of the cluster do not support. */
export function refuseUnknown(
  before: TableProperties,
  after: TableProperties,
  level: number,
): void {
  const asksForLease = after.consistency.kind === 'lease' && before.consistency.kind !== 'lease';
  if (!asksForLease || level >= leaseLevel) return;
  throw new TableError(
    'conflict',
    'consistency lease: not all nodes of the cluster run a release that knows it',
  );
}

/** Properties of a backup, without those that earlier releases kept although nothing went by them. */
export function withoutUnavailable(
  change: TableChange & { readonly placement?: unknown },
): TableChange {
  const { shardingKind: _, placement: _placement, partitions: _partitions, ...rest } = change;
  return rest;
}

function invalid(message: string): TableError {
  return new TableError('invalid', message);
}

export function checkDefinition(definition: TableDefinition): void {
  const { name, model } = definition;
  if (!tableModels.includes(model)) {
    throw invalid(`model cannot be ${model}: it must be one of ${tableModels.join(', ')}`);
  }
  if (!/^[a-z][a-z0-9_-]{0,62}$/i.test(name)) {
    throw invalid(
      `name cannot be ${name}: a letter, then up to 62 letters, digits, dashes and underscores`,
    );
  }
}
