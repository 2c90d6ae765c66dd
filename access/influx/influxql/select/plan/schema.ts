// Schema of a SELECT's sources: measurements with their fields and tags, columns of subqueries.

import { type Slices, whenFinished } from '../../../../../universal-row/slices.ts';
import type { SeriesSelection, SeriesStore } from '../../../../../contracts/series-store.ts';
import type { MeasurementSource, Pattern } from '../../ast.ts';
import { QueryError } from '../../result.ts';
import type { Plan } from './plan.ts';
import { stronger, type ValueType } from './types.ts';

export interface SourceSchema {
  /** Type of a name without a cast. */
  typeOf(name: string): ValueType;
  isField(name: string): boolean;
  /** Numbers take the field's type when cast; undefined if there is no such field. */
  fieldType(name: string): ValueType;
  fields(): ReadonlyMap<string, ValueType>;
  tags(): ReadonlySet<string>;
}

type MeasurementSelection = SeriesSelection & { measurement: string };

interface MeasurementName {
  readonly database: string;
  readonly retentionPolicy: string;
  readonly name: string;
}

/** Where names are looked up. */
export interface SchemaSource {
  readonly store: SeriesStore;
  readonly database: string;
  readonly retentionPolicy: string;
  readonly answers: SchemaAnswers;
}

/** Thrown when the store's answer is pending: the plan is made again when it has arrived. */
export class SchemaWait extends Error {
  readonly here: Promise<void>;

  constructor(here: Promise<void>) {
    super('the schema is not here yet');
    this.here = here;
  }
}

/** Answers that were waited for, by question. */
export class SchemaAnswers {
  readonly #known = new Map<string, unknown>();

  /** Throws `SchemaWait`. */
  now<T>(question: string, ask: () => Slices<T>): T {
    const known = this.#known.get(question);
    if (known !== undefined) return known as T;
    const slices = ask();
    for (let step = slices.next(); ; step = slices.next()) {
      if (step.done === true) return step.value;
      if (step.value === undefined) continue;
      const answer = step.value.then(() => whenFinished(slices));
      throw new SchemaWait(answer.then((value) => void this.#known.set(question, value)));
    }
  }
}

/** The measurements that a source means. One that is named need not exist. */
export function measurementsOf(
  source: MeasurementSource,
  { store, answers, ...names }: SchemaSource,
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
  const { pattern } = source;
  const question = JSON.stringify([place, pattern.source]);
  return answers
    .now(question, () => matching(store.measurements(place), pattern))
    .map((name) => ({ ...place, name }));
}

/** Names that are matched before others have the thread. */
const namesAtOnce = 4096;

/** Pauses regularly, as its caller does not. */
function* matching(names: Slices<readonly string[]>, { regexp }: Pattern): Slices<string[]> {
  const found: string[] = [];
  let left = namesAtOnce;
  for (const name of yield* names) {
    if (left-- === 0) {
      yield new Promise(setImmediate);
      left = namesAtOnce;
    }
    if (regexp.test(name)) found.push(name);
  }
  return found;
}

export class MeasurementSchema implements SourceSchema {
  readonly #source: SchemaSource;
  readonly #measurement: MeasurementName;
  readonly #range: { readonly from: bigint; readonly to: bigint };
  #fields: Map<string, ValueType> | undefined;
  #tags: Set<string> | undefined;

  constructor(source: SchemaSource, measurement: MeasurementName, from: bigint, to: bigint) {
    this.#source = source;
    this.#measurement = measurement;
    this.#range = { from, to };
  }

  fields(): ReadonlyMap<string, ValueType> {
    if (this.#fields !== undefined) return this.#fields;
    const fields = new Map<string, ValueType>();
    const keys = this.#ask('fields', (of) => this.#source.store.fieldKeys(of));
    for (const { name, type } of keys) {
      fields.set(name, stronger(fields.get(name), type));
    }
    return (this.#fields = fields);
  }

  tags(): ReadonlySet<string> {
    return (this.#tags ??= new Set(this.#ask('tags', (of) => this.#source.store.tagKeys(of))));
  }

  #ask<T>(what: string, ask: (of: MeasurementSelection) => Slices<T>): T {
    const { name, ...place } = this.#measurement;
    const { from, to } = this.#range;
    const question = [what, name, place.database, place.retentionPolicy, String(from), String(to)];
    const selection = { ...place, measurement: name, from, to };
    return this.#source.answers.now(JSON.stringify(question), () => ask(selection));
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
}

export class SubquerySchema implements SourceSchema {
  readonly #plan: Plan;
  readonly #dimensions: ReadonlySet<string>;
  /** Type of the first column of each name. */
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
