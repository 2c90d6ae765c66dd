// The batch that is being filled, and then handed to the store. Its groups and columns keep their arrays
// from batch to batch, until there are too many of them.

import type { PointBatch, PointGroup } from '../../../universal-row/series/point-batch.ts';
import type { BatchColumn } from './batch-column.ts';
import { FieldTable, type FieldSlot } from './field-slot.ts';
import type { SeriesCacheTable } from './series-cache-table.ts';

/** As many as V8 keeps within a small object: a line of very many fields makes that many columns. */
const firstCapacity = 8;
/** More memory in groups and columns than this is given back after a batch. */
export const keptBytes = 32 * 1024 * 1024;
/** Longer strings are copied by the built-in function, which is slow to begin. */
const shortText = 64;
/** New keys of a batch: the store takes them in one step, for which they cost some ten microseconds each, and first more. */
const maxNewKeys = 125;
const keptTextBytes = 4 * 1024 * 1024;
/**
 * Sizes: of a value with its flag, and approximately of a field and of a group without their
 * values.
 */
const cellBytes = 9;
const slotBytes = 1000;
const groupBytes = 2000;

/** Places for values in one group. */
const mostCells = 1024 * 1024;

/** Thrown by `claim`: the batch has many rows, and the line under way many fields that none of them has. */
export const tooWide = new Error('the line does not fit into the batch');

export class BatchGroup implements PointGroup {
  readonly measurement: string;
  rows = 0;
  series: Uint32Array = new Uint32Array(firstCapacity);
  times: Float64Array = new Float64Array(firstCapacity);
  columns: BatchColumn[] = [];
  capacity = firstCapacity;
  /** In the batch under way. */
  open = false;
  /** The field that lines of this measurement begin with. */
  first: FieldSlot | undefined = undefined;
  readonly fields = new FieldTable();

  constructor(measurement: string) {
    this.measurement = measurement;
  }

  /** Room for one more row in all columns of the batch. Arrays of earlier batches are long enough, as a rule. */
  grow(): void {
    this.capacity *= 2;
    if (this.series.length < this.capacity) {
      const series = new Uint32Array(this.capacity);
      series.set(this.series);
      this.series = series;
      const times = new Float64Array(this.capacity);
      times.set(this.times);
      this.times = times;
    }
    for (const column of this.columns) column.reserve(this.capacity);
  }
}

interface BatchLimits {
  /** A batch is handed over when it has this many points, */
  rows: number;
  /** or this many values, */
  values: number;
  /** or this many bytes of strings. */
  textBytes: number;
}

export class BatchBuilder implements PointBatch {
  cache: SeriesCacheTable;
  generation = 0;
  baseSeconds = 0;
  rows = 0;
  values = 0;
  groups: BatchGroup[] = [];
  text: Buffer = Buffer.allocUnsafeSlow(1024);
  textEnds: Uint32Array = new Uint32Array(64);
  textLength = 0;
  textCount = 0;
  /** Places for values, in rows that lack the field as well. */
  private cells = 0;
  /** Memory in groups and columns. */
  held = 0;
  /** Points with which it is full, and with which it was to be at its beginning. */
  private fullRows: number;
  private wantedRows: number;
  private block = 1;
  private before = 0;
  /** Keys that were not known before. */
  private newKeys = 0;
  private readonly limits: BatchLimits;
  private readonly opened: BatchGroup[] = [];
  private byName = new Map<string, BatchGroup>();
  /** By the cache's number of the measurement. */
  private byNumber: (BatchGroup | undefined)[] = [];

  constructor(cache: SeriesCacheTable, limits: BatchLimits) {
    this.cache = cache;
    this.generation = cache.generation;
    this.limits = limits;
    this.fullRows = limits.rows;
    this.wantedRows = limits.rows;
  }

  /**
   * Sets the number of points at which this batch and the next ones are full. Before this batch the body had `before`
   * points. A batch that has to be smaller ends at a multiple of `block` points of the body, where the limits have room
   * for that.
   */
  limitRows(rows: number, block: number, before: number): void {
    this.block = block;
    this.before = before;
    this.wantedRows = rows;
    this.fullRows = Math.max(rows, this.blockEnd(this.rows));
  }

  /** The first end of a block from so many rows of this batch on. */
  private blockEnd(rows: number): number {
    const { block, before } = this;
    return Math.ceil((before + rows) / block) * block - before;
  }

  /** The row under way has a key that is new. Many of them fill a batch: they cost the store much more than points. */
  noteNewKey(): void {
    if (++this.newKeys < maxNewKeys) return;
    this.fullRows = Math.min(this.fullRows, this.blockEnd(this.rows + 1));
  }

  /** The group of a measurement of the cache, with room for a row. */
  group(measurement: number): BatchGroup {
    let group = this.byNumber[measurement];
    if (group === undefined) {
      const name = this.cache.measurements[measurement]!;
      group = this.byName.get(name);
      if (group === undefined) {
        group = new BatchGroup(name);
        this.byName.set(name, group);
        this.held += groupBytes;
      }
      while (this.byNumber.length <= measurement) this.byNumber.push(undefined);
      this.byNumber[measurement] = group;
    }
    if (!group.open) {
      group.open = true;
      this.opened.push(group);
    }
    if (group.rows === group.capacity) {
      this.held += group.columns.length * group.capacity * cellBytes;
      group.grow();
    }
    return group;
  }

  /** The field of a key as it was written. */
  slot(group: BatchGroup, buf: Buffer, start: number, end: number): FieldSlot {
    const { fields } = group;
    const before = fields.size;
    const slot = fields.find(buf, start, end);
    this.held += (fields.size - before) * (slotBytes + end - start);
    return slot;
  }

  /** Claims the row under way in a column that is not simply appended to. */
  claim(group: BatchGroup, column: BatchColumn): void {
    if (!column.active) {
      if (group.rows > 0 && group.columns.length * group.capacity > mostCells) throw tooWide;
      if (column.numbers.length < group.capacity) {
        this.held += (group.capacity - column.numbers.length) * cellBytes;
      }
      column.activate(group.capacity);
      group.columns.push(column);
      this.cells += group.rows;
    }
    column.claim(group.rows);
  }

  /** The row under way is complete. */
  endRow(group: BatchGroup, values: number): void {
    group.rows++;
    this.rows++;
    this.values += values;
    this.cells += group.columns.length;
    if (this.block > 1 && (this.before + this.rows) % this.block === 0) this.endBefore();
  }

  /** At the end of a block: ends the batch if the next one would end within a block, for its many values. */
  private endBefore(): void {
    const next = 1 + this.block / this.rows;
    const { values } = this.limits;
    if (this.values * next >= values || this.cells * next >= values * 4) this.fullRows = this.rows;
  }

  get full(): boolean {
    const { limits } = this;
    return (
      this.rows >= this.fullRows ||
      this.values >= limits.values ||
      this.textLength >= limits.textBytes ||
      // Many fields of which each point has few.
      this.cells >= limits.values * 4
    );
  }

  /** Appends a string: the bytes from `start` to `end`, in which there are escapes or not. */
  addText(from: Buffer, start: number, end: number, escaped: boolean): number {
    const most = this.textLength + end - start;
    if (most > this.text.length) this.growText(most);
    if (escaped) this.textLength = unescapeText(from, start, end, this.text, this.textLength);
    else {
      const { text } = this;
      let n = this.textLength;
      if (end - start > shortText) from.copy(text, n, start, end);
      else for (let i = start; i < end; i++) text[n++] = from[i]!;
      this.textLength = most;
    }
    if (this.textCount === this.textEnds.length) {
      const ends = new Uint32Array(this.textCount * 2);
      ends.set(this.textEnds);
      this.textEnds = ends;
    }
    this.textEnds[this.textCount] = this.textLength;
    return this.textCount++;
  }

  private growText(bytes: number): void {
    const text = Buffer.allocUnsafeSlow(Math.max(bytes, this.text.length * 2));
    this.text.copy(text, 0, 0, this.textLength);
    this.text = text;
  }

  /** Completes the batch as its reader expects. */
  settle(): this {
    this.groups = this.opened.filter((group) => group.rows > 0);
    for (const group of this.groups) {
      for (const column of group.columns) column.settle(group.rows);
      if (group.columns.some((column) => column.count === 0)) {
        for (const column of group.columns) if (column.count === 0) column.clear();
        group.columns = group.columns.filter((column) => column.active);
      }
    }
    return this;
  }

  /** Begins the next batch, on this table. */
  restart(cache: SeriesCacheTable): void {
    for (const group of this.opened) {
      for (const column of group.columns) column.clear();
      group.columns.length = 0;
      group.rows = 0;
      // A column is as long as its group has rows: a line of many fields that comes next makes many columns.
      group.capacity = firstCapacity;
      group.open = false;
    }
    this.groups = [];
    this.opened.length = 0;
    this.rows = 0;
    this.values = 0;
    this.cells = 0;
    this.newKeys = 0;
    this.fullRows = this.wantedRows;
    this.textLength = 0;
    this.textCount = 0;
    if (this.text.length > keptTextBytes) this.text = Buffer.allocUnsafeSlow(1024);
    if (this.held > keptBytes) {
      this.held = 0;
      this.byName = new Map();
      this.byNumber = [];
    }
    if (cache !== this.cache) {
      this.cache = cache;
      this.generation = cache.generation;
      this.byNumber = [];
    }
  }
}

/** Copies with `\"` and `\\` made one byte; other backslashes stay. Returns where the copy ends. */
function unescapeText(from: Buffer, start: number, end: number, to: Buffer, at: number): number {
  let t = at;
  for (let i = start; i < end; i++) {
    let c = from[i]!;
    if (c === 0x5c && i + 1 < end) {
      const next = from[i + 1]!;
      if (next === 0x22 || next === 0x5c) {
        c = next;
        i++;
      }
    }
    to[t++] = c;
  }
  return t;
}
