// What a SELECT's sources have to offer: measurements with their fields and tags, columns of subqueries.

import { inOneGo } from '../../../../../universal-row/slices.ts';
import type { SeriesStore } from '../../../../../contracts/series-store.ts';
import type { MeasurementSource } from '../../ast.ts';
import { QueryError } from '../../result.ts';
import type { Plan } from './plan.ts';
import { stronger, type ValueType } from './types.ts';

export interface SourceSchema {
  /** Of a name without a cast. */
  typeOf(name: string): ValueType;
  isField(name: string): boolean;
  /** Numbers become those of a field when cast; undefined where there is no such field. */
  fieldType(name: string): ValueType;
  fields(): ReadonlyMap<string, ValueType>;
  tags(): ReadonlySet<string>;
}

export interface MeasurementName {
  readonly database: string;
  readonly retentionPolicy: string;
  readonly name: string;
}

interface Names {
  readonly store: SeriesStore;
  readonly database: string;
  readonly retentionPolicy: string;
}

/** The measurements that a source means. One that is named need not exist. */
export function measurementsOf(
  source: MeasurementSource,
  { store, ...names }: Names,
): MeasurementName[] {
  const databaseName = source.database || names.database;
  if (databaseName === '') throw new QueryError('database name required');
  const database = store.database(databaseName);
  if (database === undefined) throw new QueryError(`database not found: ${databaseName}`);
  const asked = source.retentionPolicy || names.retentionPolicy;
  if (asked !== '' && !database.retentionPolicies.some(({ name }) => name === asked)) {
    throw new QueryError(`retention policy not found: ${asked}`);
  }
  const place = {
    database: databaseName,
    retentionPolicy: asked || database.defaultRetentionPolicy,
  };
  if (source.pattern === undefined) return [{ ...place, name: source.name ?? '' }];
  const { regexp } = source.pattern;
  return inOneGo(store.measurements(place))
    .filter((name) => regexp.test(name))
    .map((name) => ({ ...place, name }));
}

export class MeasurementSchema implements SourceSchema {
  readonly #store: SeriesStore;
  readonly #measurement: MeasurementName;
  readonly #range: { readonly from: bigint; readonly to: bigint };
  #fields: Map<string, ValueType> | undefined;
  #tags: Set<string> | undefined;

  constructor(store: SeriesStore, measurement: MeasurementName, from: bigint, to: bigint) {
    this.#store = store;
    this.#measurement = measurement;
    this.#range = { from, to };
  }

  fields(): ReadonlyMap<string, ValueType> {
    if (this.#fields !== undefined) return this.#fields;
    const fields = new Map<string, ValueType>();
    for (const { name, type } of this.#store.fieldKeys(this.#selection())) {
      fields.set(name, stronger(fields.get(name), type));
    }
    return (this.#fields = fields);
  }

  tags(): ReadonlySet<string> {
    return (this.#tags ??= new Set(inOneGo(this.#store.tagKeys(this.#selection()))));
  }

  isField(name: string): boolean {
    return this.fields().has(name);
  }

  fieldType(name: string): ValueType {
    return this.fields().get(name);
  }

  typeOf(name: string): ValueType {
    const type = this.fields().get(name);
    if (type !== undefined) return type;
    return this.tags().has(name) ? 'tag' : undefined;
  }

  #selection() {
    const { name, ...place } = this.#measurement;
    return { ...place, measurement: name, ...this.#range };
  }
}

export class SubquerySchema implements SourceSchema {
  readonly #plan: Plan;
  readonly #dimensions: ReadonlySet<string>;
  /** Of the first column of a name. */
  readonly #types = new Map<string, ValueType>();

  constructor(plan: Plan) {
    this.#plan = plan;
    this.#dimensions = new Set(plan.dimensions);
    plan.names.forEach((name, i) => {
      if (!this.#types.has(name)) this.#types.set(name, plan.outputTypes[i]);
    });
  }

  fields(): ReadonlyMap<string, ValueType> {
    const fields = new Map<string, ValueType>();
    this.#plan.names.forEach((name, i) => {
      if (this.#plan.isArgument[i]) return;
      const type = this.#plan.outputTypes[i];
      if (type !== undefined) fields.set(name, stronger(fields.get(name), type));
    });
    return fields;
  }

  tags(): ReadonlySet<string> {
    return this.#dimensions;
  }

  isField(name: string): boolean {
    return this.#types.has(name);
  }

  fieldType(name: string): ValueType {
    return this.#types.get(name);
  }

  typeOf(name: string): ValueType {
    return this.fieldType(name) ?? (this.#dimensions.has(name) ? 'tag' : undefined);
  }
}
