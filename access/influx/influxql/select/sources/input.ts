// Sources of rows: the series of a measurement, or the groups of a subquery.

import { sliceElements, type Slices } from '../../../../../universal-row/slices.ts';
import type {
  BlockSummary,
  Column,
  ColumnSummary,
} from '../../../../../universal-row/series/column.ts';
import type {
  ScannedSeries,
  SeriesCursor,
  SeriesScan,
} from '../../../../../contracts/series-store.ts';
import type { Run } from '../context.ts';
import { matching, RowMatches } from '../expressions/evaluate.ts';
import type { MeasurementPlan, Plan, Ref, RowFilter } from '../plan/plan.ts';
import { cast, type Chunk, constantText, gather, has, pending, type Stream } from '../vector.ts';

/** Request for rows: columns in the order of `refs`. */
export interface InputRequest {
  readonly refs: readonly Ref[];
  readonly from: bigint;
  readonly to: bigint;
  readonly descending: boolean;
  /** A row without any of the fields among `refs` is left out. */
  readonly needsField: boolean;
  /** Blocks within windows may come as summaries. */
  readonly summaries?: { readonly width: bigint; readonly offset: bigint } | undefined;
  readonly rowsPerSeries?: number | undefined;
  /** Groups by these tags may come in place of series, as `ScanRequest` has it. */
  readonly totals?: readonly string[] | undefined;
}

export interface InputStream {
  next(): Chunk | BlockSummary | typeof pending | undefined;
}

/** Rows with one set of tags, in the order of time. */
export interface Input {
  readonly name: string;
  tag(name: string): string;
  open(): InputStream;
}

export interface OpenInputs {
  /** In the order in which rows of the same time come. */
  readonly inputs: readonly Input[];
  readonly close: () => void;
}

export function isSummary(item: Chunk | BlockSummary): item is BlockSummary {
  return 'kind' in item && item.kind === 'summary';
}

/** One group of an answer: the series of one measurement and one set of tags. */
export interface Group {
  readonly name: string;
  /** By the plan's dimensions. '' where missing. */
  readonly tags: readonly (readonly [key: string, value: string])[];
  rows(): Stream;
}

export function* openMeasurement(
  source: MeasurementPlan,
  request: InputRequest,
  run: Run,
): Slices<OpenInputs> {
  const { refs } = request;
  const fields: string[] = [];
  const places = new Map<string, number>();
  const fieldIndex = (ref: Ref): number => {
    if (ref.type === 'tag' || ref.type === undefined) return -1;
    const known = places.get(ref.name);
    if (known !== undefined) return known;
    places.set(ref.name, fields.length);
    return fields.push(ref.name) - 1;
  };
  const indexes = refs.map(fieldIndex);
  const wanted = fields.length;
  const filterIndexes = source.rows?.refs.map(fieldIndex) ?? [];
  const isExact = source.rows === undefined && refs.every(({ isCast }) => !isCast);
  // Without a field there is nothing to find.
  if (wanted === 0) return { inputs: [], close: () => {} };
  const scan = yield* run.context.store.scan({
    database: source.database,
    retentionPolicy: source.retentionPolicy,
    measurement: source.name,
    filter: source.filter,
    from: request.from,
    to: request.to,
    fields,
    descending: request.descending,
    summaries: isExact ? request.summaries : undefined,
    rowsPerSeries: isExact ? request.rowsPerSeries : undefined,
    totals: isExact ? request.totals : undefined,
    bounds: source.rows?.bounds.map(({ name, op, value }) => ({
      field: places.get(name) ?? -1,
      op,
      value,
    })),
  });
  const shape: Shape = {
    refs,
    indexes,
    filter: source.rows,
    filterIndexes,
    needsField: request.needsField && (fields.length > wanted || !isExact),
  };
  const seriesCount = scan.seriesCount ?? scan.series.length;
  const inputs: Input[] = [];
  let isOpen = false;
  try {
    run.countSeries(seriesCount);
    for (const series of scan.series) {
      inputs.push(new SeriesInput(source.name, series, scan, shape, run));
      if (inputs.length % sliceElements === 0) yield;
    }
    isOpen = true;
  } finally {
    if (!isOpen) scan.close();
  }
  return { inputs, close: () => scan.close() };
}

/** Maps the columns of a scan to the requested columns. */
interface Shape {
  readonly refs: readonly Ref[];
  /** By ref: the column of the scan; -1 for a tag, and for a field that the source does not have. */
  readonly indexes: readonly number[];
  readonly filter: RowFilter | undefined;
  readonly filterIndexes: readonly number[];
  readonly needsField: boolean;
}

class SeriesInput implements Input {
  readonly name: string;
  readonly #series: ScannedSeries;
  readonly #scan: SeriesScan;
  readonly #shape: Shape;
  readonly #run: Run;

  constructor(name: string, series: ScannedSeries, scan: SeriesScan, shape: Shape, run: Run) {
    this.name = name;
    this.#series = series;
    this.#scan = scan;
    this.#shape = shape;
    this.#run = run;
  }

  tag(name: string): string {
    return this.#series.tag(name);
  }

  open(): InputStream {
    return new SeriesStream(this.#series, this.#scan.cursor(this.#series), this.#shape, this.#run);
  }
}

class SeriesStream implements InputStream {
  readonly #series: ScannedSeries;
  readonly #cursor: SeriesCursor;
  readonly #shape: Shape;
  readonly #run: Run;
  /** The chunk that is being filtered. */
  #filtering: Filtering | undefined;

  constructor(series: ScannedSeries, cursor: SeriesCursor, shape: Shape, run: Run) {
    this.#series = series;
    this.#cursor = cursor;
    this.#shape = shape;
    this.#run = run;
  }

  next(): Chunk | BlockSummary | typeof pending | undefined {
    const { needsField } = this.#shape;
    if (this.#filtering !== undefined) {
      const kept = this.#filtering.next();
      if (kept === undefined) return pending;
      this.#filtering = undefined;
      return kept === pending || !needsField ? kept : withField(kept, this.#shape.refs);
    }
    const item = this.#cursor.next();
    if (item === undefined) return undefined;
    if (item.count === 0) {
      this.#run.waits = this.#cursor.waits;
      return pending;
    }
    this.#run.countPoints(item.count);
    if (item.kind === 'summary') return this.#summary(item);
    const { refs, indexes, filter, filterIndexes } = this.#shape;
    const { base, times, count } = item;
    const columns = refs.map((ref, i) => this.#column(ref, indexes[i]!, item.columns, count));
    const chunk: Chunk = { base, times, count, columns };
    if (filter === undefined) return needsField ? withField(chunk, refs) : chunk;
    const symbols = filter.refs.map((ref, i) => {
      const column = this.#column(ref, filterIndexes[i]!, item.columns, count);
      // A tag that is missing is the empty text.
      return column ?? (ref.type === 'tag' ? constantText('', count) : undefined);
    });
    this.#filtering = new Filtering(chunk, filter, symbols);
    return this.next();
  }

  #column(
    ref: Ref,
    index: number,
    columns: readonly (Column | undefined)[],
    count: number,
  ): Column | undefined {
    if (ref.type === 'tag') {
      const value = this.#series.tag(ref.name);
      return value === '' ? undefined : constantText(value, count);
    }
    const column = columns[index];
    if (column === undefined || column.type === ref.type) return column;
    return cast(column, ref.type!, count);
  }

  #summary(summary: BlockSummary): BlockSummary {
    const { refs, indexes } = this.#shape;
    const columns = refs.map(({ type }, i) => {
      const column = summary.columns[indexes[i]!];
      return column === undefined || column.type === type ? column : asFloats(column, type);
    });
    return { ...summary, columns };
  }
}

/** The summary of an integer column where the field is a float one elsewhere. */
function asFloats(column: ColumnSummary, type: Ref['type']): ColumnSummary | undefined {
  const isInteger = column.type === 'integer' || column.type === 'unsigned';
  if (type !== 'float' || !isInteger) return undefined;
  const number = (value: ColumnSummary['min']): number => Number(value);
  const { first, last, min, max, sum } = column;
  return {
    ...column,
    type: 'float',
    first: number(first),
    last: number(last),
    min: number(min),
    max: number(max),
    sum: number(sum),
  };
}

/** One chunk and the condition that its rows must meet. */
class Filtering {
  readonly #chunk: Chunk;
  readonly #filter: RowFilter;
  readonly #symbols: readonly (Column | undefined)[];
  readonly #matches: RowMatches;

  constructor(chunk: Chunk, filter: RowFilter, symbols: readonly (Column | undefined)[]) {
    this.#chunk = chunk;
    this.#filter = filter;
    this.#symbols = symbols;
    this.#matches = new RowMatches(filter.node, symbols, chunk.count);
  }

  /** The rows that meet it, `pending` for none; undefined when it has more to do. */
  next(): Chunk | typeof pending | undefined {
    if (!this.#matches.advance()) return undefined;
    const chunk = this.#chunk;
    const rows = new Int32Array(chunk.count);
    const { node } = this.#filter;
    const kept = matching(node, this.#symbols, chunk.count, rows, this.#matches);
    return select(chunk, rows, kept);
  }
}

function select(chunk: Chunk, rows: Int32Array, kept: number): Chunk | typeof pending {
  if (kept === chunk.count) return chunk;
  if (kept === 0) return pending;
  const times = new Float64Array(kept);
  for (let i = 0; i < kept; i++) times[i] = chunk.times[rows[i]!]!;
  const columns = chunk.columns.map((column) => column && gather(column, rows, kept));
  return { base: chunk.base, times, count: kept, columns };
}

/** Without the rows in which none of the fields has a value. */
function withField(chunk: Chunk, refs: readonly Ref[]): Chunk | typeof pending {
  const fields = chunk.columns.filter(
    (column, i) => column !== undefined && refs[i]!.type !== 'tag',
  );
  if (fields.some((column) => column!.present === undefined)) return chunk;
  const rows = new Int32Array(chunk.count);
  let kept = 0;
  for (let i = 0; i < chunk.count; i++) {
    if (fields.some((column) => has(column, i))) rows[kept++] = i;
  }
  return select(chunk, rows, kept);
}

/** The groups of a subquery as inputs of the statement around it. */
export function subqueryInputs(
  plan: Plan,
  groups: readonly Group[],
  rows: RowFilter | undefined,
  refs: readonly Ref[],
): Input[] {
  const places = new Map<string, number>();
  plan.names.forEach((name, i) => {
    if (!places.has(name)) places.set(name, i);
  });
  return groups.map((group) => {
    const tags = new Map(group.tags);
    return {
      name: group.name,
      tag: (name) => tags.get(name) ?? '',
      open: () => new GroupStream(places, group.rows(), tags, rows, refs),
    };
  });
}

class GroupStream implements InputStream {
  readonly #rows: Stream;
  readonly #tags: ReadonlyMap<string, string>;
  readonly #filter: RowFilter | undefined;
  readonly #refs: readonly Ref[];
  /** Where its rows have their columns: of a name the first. */
  readonly #places: ReadonlyMap<string, number>;
  /** The chunk that is being filtered. */
  #filtering: Filtering | undefined;

  constructor(
    places: ReadonlyMap<string, number>,
    rows: Stream,
    tags: ReadonlyMap<string, string>,
    filter: RowFilter | undefined,
    refs: readonly Ref[],
  ) {
    this.#places = places;
    this.#rows = rows;
    this.#tags = tags;
    this.#filter = filter;
    this.#refs = refs;
  }

  next(): Chunk | typeof pending | undefined {
    if (this.#filtering !== undefined) {
      const kept = this.#filtering.next();
      if (kept === undefined) return pending;
      this.#filtering = undefined;
      return kept;
    }
    const inner = this.#rows.next();
    if (inner === undefined || inner === pending) return inner;
    const columns = this.#refs.map((ref) => this.#column(ref, inner, true));
    const chunk: Chunk = { ...inner, columns };
    if (this.#filter === undefined) return chunk;
    const symbols = this.#filter.refs.map((ref) => this.#column(ref, inner, false));
    this.#filtering = new Filtering(chunk, this.#filter, symbols);
    return this.next();
  }

  #column(ref: Ref, inner: Chunk, emptyIsNull: boolean): Column | undefined {
    const at = this.#places.get(ref.name);
    if (at !== undefined) {
      const column = inner.columns[at];
      const wanted = ref.type === 'tag' || ref.type === undefined ? 'string' : ref.type;
      return column && cast(column, wanted, inner.count);
    }
    const value = this.#tags.get(ref.name) ?? '';
    if (ref.type !== 'tag' || (value === '' && emptyIsNull)) return undefined;
    return constantText(value, inner.count);
  }
}
