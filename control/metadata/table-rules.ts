// How tables are named and made, and what their properties may be.

import { defaultTenant } from '../../universal-row/tenancy/definitions.ts';
import { type TableDefinition, type TableModel, tableModels } from './table-definition.ts';

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
  return { id, name: `db${database}`, model, readOnly: false, ttlDefaultMs: 0, maxRowBytes: 0 };
}

export function checkDefinition(definition: TableDefinition): void {
  const { name, model, ttlDefaultMs, maxRowBytes } = definition;
  const invalid = (message: string) => new TableError('invalid', message);
  if (!tableModels.includes(model)) {
    throw invalid(`model cannot be ${model}: it must be one of ${tableModels.join(', ')}`);
  }
  if (!/^[a-z][a-z0-9_-]{0,62}$/i.test(name)) {
    throw invalid(
      `name cannot be ${name}: a letter, then up to 62 letters, digits, dashes and underscores`,
    );
  }
  for (const [property, value] of Object.entries({ ttlDefaultMs, maxRowBytes })) {
    if (!Number.isSafeInteger(value) || value < 0) {
      throw invalid(`${property} cannot be ${value}: it must be a whole number from 0`);
    }
  }
}
