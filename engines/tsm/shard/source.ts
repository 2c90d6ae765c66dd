// Rows of one series in one file or head, piece by piece in the direction of a scan. Several
// sources are merged by series-merge.ts, which compares them by `near`: the time, negated in a
// descending scan, so that the first row is always the smallest.

import type { ColumnSummary } from '../../../universal-row/series/column.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type { Block, BlockCache, FieldInfo, Rows } from '../parts.ts';
import { RowBuffer } from './row-buffer.ts';
import type { HeadMark } from './shard-types.ts';
import type { Lender, StoredFile, StoredHead } from './stored-points.ts';
import { lowerBound, type TimeSpan } from './tombstones.ts';

/** Fields and range requested of a series. */
export interface Wanted {
  /** Numbers and types of the fields. */
  readonly fields: readonly number[];
  readonly types: readonly FieldType[];
  /** Both ends inclusive. */
  readonly from: number;
  readonly to: number;
  readonly descending: boolean;
  /** Only one row will be asked for. */
  readonly single: boolean;
  /** Keeps shared blocks for this reader alone. */
  readonly own?: BlockCache | undefined;
}

export function fieldsWanted(fields: readonly FieldInfo[]): Pick<Wanted, 'fields' | 'types'> {
  return { fields: fields.map(({ number }) => number), types: fields.map(({ type }) => type) };
}

/** Everything of a series, ascending. */
export function allOf(fields: Pick<Wanted, 'fields' | 'types'>): Wanted {
  return { ...fields, from: -Infinity, to: Infinity, descending: false, single: false };
}

const noColumns: readonly (ColumnSummary | undefined)[] = [];

export abstract class Source {
  /** No row left is nearer. Infinity at the end. */
  near = Infinity;
  /** No row of the current piece is farther. */
  far = Infinity;
  /** The current piece; undefined until `load`. Rows [lo, hi) are left. */
  rows: Rows | undefined = undefined;
  lo = 0;
  hi = 0;
  protected readonly series: number;
  protected readonly wanted: Wanted;
  protected readonly hidden: readonly TimeSpan[];
  readonly #lender: Lender;
  /** Own copies, where the lender's rows are not it. */
  #copy: RowBuffer | undefined;
  #copied = false;
  #lost = false;

  /** Rows in the `hidden` spans are not there. */
  constructor(series: number, wanted: Wanted, hidden: readonly TimeSpan[], lender: Lender) {
    this.series = series;
    this.wanted = wanted;
    this.hidden = hidden;
    this.#lender = lender;
  }

  /** Continues to the next piece, if there is one: sets `near` and `far`. */
  abstract skip(): void;
  /** Reads the current piece, or at least all of it that is wanted. */
  protected abstract fetch(): Rows;
  /** The current piece is a block, whole in the range, with nothing hidden. */
  abstract readonly block: Block | undefined;
  /**
   * Summary of the current block, in the order of the requested fields; undefined when it has none.
   */
  abstract summary(): readonly (ColumnSummary | undefined)[] | undefined;

  /** Reads the current piece. When no row of it counts, continues with the next without reading that. */
  load(): void {
    this.#copied = false;
    const rows = this.#borrow();
    const { from, to } = this.wanted;
    this.rows = rows;
    this.lo = lowerBound(rows.times, from, 0, rows.count);
    this.hi = lowerBound(rows.times, to + 1, this.lo, rows.count);
    if (this.#thinned(rows)) this.#copyCounting(rows);
    if (this.lo >= this.hi) this.#leave();
    else this.#placed();
  }

  /** The current rows, after something else may have called the lender. */
  held(): Rows {
    if (this.#copied || this.#lender.borrower === this) return this.rows!;
    const rows = this.#borrow();
    // A series that lost its rows once may lose them again.
    if (this.#lost) this.#copyRange(rows);
    else this.rows = rows;
    this.#lost = true;
    return this.rows!;
  }

  /** How many rows at hand come before `limit`. */
  before(limit: number): number {
    if (this.far < limit) return this.hi - this.lo;
    const { times } = this.held();
    return this.wanted.descending
      ? this.hi - lowerBound(times, 1 - limit, this.lo, this.hi)
      : lowerBound(times, limit, this.lo, this.hi) - this.lo;
  }

  /** Position of the nearest row. */
  get row(): number {
    return this.wanted.descending ? this.hi - 1 : this.lo;
  }

  /** The `n` nearest rows are used up. */
  drop(n: number): void {
    if (this.wanted.descending) this.hi -= n;
    else this.lo += n;
    if (this.lo === this.hi) this.#leave();
    else this.#placed();
  }

  protected place(min: number, max: number): void {
    const { descending, from, to } = this.wanted;
    const first = Math.max(min, from);
    const last = Math.min(max, to);
    this.near = descending ? -last : first;
    this.far = descending ? -first : last;
  }

  protected isHidden(min: number, max: number): boolean {
    return this.hidden.some(({ from, to }) => from <= min && max <= to);
  }

  protected touchesHidden(min: number, max: number): boolean {
    return this.hidden.some(({ from, to }) => from <= max && min <= to);
  }

  protected claim(): void {
    this.#lender.borrower = this;
  }

  #borrow(): Rows {
    this.claim();
    return this.fetch();
  }

  #leave(): void {
    this.rows = undefined;
    this.skip();
  }

  #placed(): void {
    const { times } = this.held();
    this.near = this.wanted.descending ? -times[this.hi - 1]! : times[this.lo]!;
    this.far = this.wanted.descending ? -times[this.lo]! : times[this.hi - 1]!;
  }

  /** Some row in the range may not count, as it is hidden or has none of the fields. */
  #thinned(rows: Rows): boolean {
    const sparse = rows.columns.every((column) => column === undefined || column.present);
    if (sparse) return true;
    return this.lo < this.hi && this.touchesHidden(rows.times[this.lo]!, rows.times[this.hi - 1]!);
  }

  #copyCounting(rows: Rows): void {
    const copy = this.#ownBuffer();
    let start = this.lo;
    for (let row = this.lo; row < this.hi; row++) {
      if (this.#counts(rows, row)) continue;
      if (row > start) copy.append(rows, start, row, false);
      start = row + 1;
    }
    if (start === this.lo) return;
    if (this.hi > start) copy.append(rows, start, this.hi, false);
    this.#useCopy();
  }

  #counts(rows: Rows, row: number): boolean {
    const time = rows.times[row]!;
    if (this.hidden.length > 0 && this.isHidden(time, time)) return false;
    for (const column of rows.columns) {
      if (column !== undefined && (column.present === undefined || column.present[row] === 1)) {
        return true;
      }
    }
    return false;
  }

  #copyRange(rows: Rows): void {
    this.#ownBuffer().append(rows, this.lo, this.hi, false);
    this.#useCopy();
  }

  #ownBuffer(): RowBuffer {
    this.#copy ??= new RowBuffer(this.wanted.types);
    this.#copy.clear();
    return this.#copy;
  }

  #useCopy(): void {
    this.#copied = true;
    this.rows = this.#copy!.rows();
    this.lo = 0;
    this.hi = this.rows.count;
  }
}

/** Its pieces are blocks. */
export class FileSource extends Source {
  readonly #file: StoredFile;
  readonly #blocks: readonly Block[];
  #at: number;
  #whole = false;

  constructor(
    series: number,
    wanted: Wanted,
    hidden: readonly TimeSpan[],
    file: StoredFile,
    blocks: readonly Block[],
  ) {
    super(series, wanted, hidden, file);
    this.#file = file;
    this.#blocks = blocks;
    this.#at = wanted.descending ? blocks.length : -1;
    this.skip();
  }

  override skip(): void {
    const step = this.wanted.descending ? -1 : 1;
    for (;;) {
      this.#at += step;
      const block = this.#blocks[this.#at];
      if (block === undefined) {
        this.near = Infinity;
        return;
      }
      const { minTime, maxTime } = block;
      if (this.hidden.length > 0 && this.isHidden(minTime, maxTime)) continue;
      this.place(minTime, maxTime);
      this.#whole =
        minTime >= this.wanted.from &&
        maxTime <= this.wanted.to &&
        !this.touchesHidden(minTime, maxTime);
      return;
    }
  }

  override get block(): Block | undefined {
    return this.#whole ? this.#blocks[this.#at] : undefined;
  }

  override summary(): readonly (ColumnSummary | undefined)[] | undefined {
    this.claim();
    return this.#file.file.summary(this.#blocks[this.#at]!, this.series, this.wanted.fields);
  }

  protected override fetch(): Rows {
    const { fields, own } = this.wanted;
    return this.#file.file.read(this.#blocks[this.#at]!, this.series, fields, own);
  }
}

/**
 * All a head has in the range is one piece; but when only one row is wanted, the time that is most likely
 * its own comes first and alone.
 */
export class HeadSource extends Source {
  readonly #head: StoredHead;
  readonly #mark: HeadMark | undefined;
  #from: number;
  #to: number;
  /** Position after the current piece. */
  #restFrom: number;
  #restTo: number;

  constructor(
    series: number,
    wanted: Wanted,
    hidden: readonly TimeSpan[],
    head: StoredHead,
    mark: HeadMark | undefined,
    bounds: TimeSpan,
  ) {
    super(series, wanted, hidden, head);
    this.#head = head;
    this.#mark = mark;
    this.#from = 0;
    this.#to = -1;
    this.#restFrom = Math.max(bounds.from, wanted.from);
    this.#restTo = Math.min(bounds.to, wanted.to);
    this.skip();
    if (!wanted.single || this.near === Infinity) return;
    if (wanted.descending && this.#to === bounds.to) {
      this.#split(this.#to, this.#to, this.#from, this.#to - 1);
    } else if (!wanted.descending && this.#from === bounds.from) {
      this.#split(this.#from, this.#from, this.#from + 1, this.#to);
    }
  }

  override skip(): void {
    if (this.#restFrom > this.#restTo) {
      this.near = Infinity;
      return;
    }
    this.#split(this.#restFrom, this.#restTo, 0, -1);
  }

  get block(): undefined {
    return undefined;
  }

  override summary(): readonly (ColumnSummary | undefined)[] {
    return noColumns;
  }

  protected override fetch(): Rows {
    const { head } = this.#head;
    return head.read(this.series, this.wanted.fields, this.#from, this.#to, this.#mark);
  }

  #split(from: number, to: number, restFrom: number, restTo: number): void {
    this.#from = from;
    this.#to = to;
    this.#restFrom = restFrom;
    this.#restTo = restTo;
    this.place(from, to);
  }
}
