// One line of line protocol into one row of a batch:
//
//   measurement,tag=value,… field=value,… time
//
// This is the hottest code, so it is one long function over bytes for the common case, and small
// ones for the rest. It only decides whether a line is valid; line-errors.ts finds the error.
// Invalid lines leave no values in the batch.

import type { FieldType } from '../../../universal-row/series/field-type.ts';
import { fieldTypeCodes } from '../../../universal-row/series/field-type.ts';
import { type BatchBuilder, type BatchGroup, tooWide } from './batch-builder.ts';
import type { BatchColumn } from './batch-column.ts';
import {
  backslash,
  comma,
  dot,
  equals,
  isBlank,
  isEscapedNewline,
  minus,
  newline,
  quote,
  space,
  zero,
} from './characters.ts';
import * as decimal from './decimal.ts';
import { exact, NumberReader, powers } from './decimal.ts';
import type { FieldSlot } from './field-slot.ts';
import type { SeriesCacheTable } from './series-cache-table.ts';
import { goodTime, type Precision, TimeReader } from './timestamp.ts';

// Results of `read` in place of the start of the next line.
/** The line is not right. */
export const badLine = -1;
/** The bytes end before the line does. */
const cutLine = -2;
/** The line is valid, but its time is too far from those of the batch. */
export const farLine = -3;
/** The line is right, but InfluxDB drops such a point: see `dropReason`. */
export const droppedLine = -4;

/** The line has added many new fields, which are kept. It is read again after other requests have run. */
export const pausedLine = -5;

/**
 * New fields that one reading of a line may add. A new field takes microseconds. The limit is half of the known fields where
 * that is more, so all readings of a line together cost less than three readings.
 */
const newFieldsAtOnce = 2048;

/** New fields take some hundred bytes each, so that one line must not bring any number of them. */
export const maxFields = 10_240;

const floatCode = fieldTypeCodes.float;
const integerCode = fieldTypeCodes.integer;
const letterI = 0x69;

/** Nanoseconds from the batch's base, so that differences are exact as well. */
const maxOffset = 2 ** 52;

export class PointReader {
  /** Why the point of a `droppedLine` is dropped. */
  dropReason = '';
  readonly time = new TimeReader();
  private readonly batch: BatchBuilder;
  private readonly maxKeyBytes: number;
  private table: SeriesCacheTable;
  /** Spelling of the key of the line before, or -1. */
  private spelling = -1;
  private nowSeconds = 0;
  private nowNanos = 0;
  private readonly number = new NumberReader();
  private touched: BatchColumn[] = [];
  /** Whether a line may be left half read: it was not paused so often that it would never end. */
  mayPause = false;
  /** Values of the line under way that are not stored. */
  private ignored = 0;
  // Strings of the current line, and of the batch before it.
  private texts = 0;
  private textLength = 0;
  private textCount = 0;

  constructor(batch: BatchBuilder, maxKeyBytes: number) {
    this.batch = batch;
    this.table = batch.cache;
    this.maxKeyBytes = maxKeyBytes;
  }

  /** For the lines to come. `now`, in milliseconds, is the time of points that have none. */
  set(precision: Precision, now: number): void {
    this.time.precision = precision;
    this.time.cut(now);
    this.nowSeconds = this.time.seconds;
    this.nowNanos = this.time.nanos;
  }

  /** The batch has been begun anew, perhaps on another table. */
  restart(): void {
    if (this.table === this.batch.cache) return;
    this.table = this.batch.cache;
    this.spelling = -1;
  }

  /**
   * Reads the line at `start`, where its key begins, and puts it into the batch. `view` is of `buf`, and
   * the byte before `end` is a newline. Returns where the next line begins, or one of the above.
   */
  read(buf: Buffer, view: DataView, start: number, end: number): number {
    try {
      return this.readLine(buf, view, start, end);
    } catch (error) {
      if (error !== tooWide) throw error;
      this.undoRow();
      return farLine;
    }
  }

  private readLine(buf: Buffer, view: DataView, start: number, end: number): number {
    const { table, batch } = this;
    let spelling = this.spelling;
    if (spelling >= 0) spelling = table.next(spelling);
    if (spelling < 0 || !table.matches(spelling, buf, view, start, end)) {
      spelling = this.findSeries(buf, view, start, end);
      if (spelling < 0) return spelling;
      if (this.spelling >= 0) table.setNext(this.spelling, spelling);
    }
    this.spelling = spelling;
    const handle = table.handle(spelling);
    const group = batch.group(table.measurement(handle));
    const row = group.rows;
    const { touched } = this;
    let values = 0;
    /** Fields of the group as of the line's first new one. */
    let known = -1;
    let i = start + table.length(spelling) + 1;
    while (isBlank(buf[i]!)) i++;
    let slot = group.first;
    let before: FieldSlot | undefined;
    let c = 0;
    for (;;) {
      // The key.
      if (slot === undefined || !slot.matches(view, i, end)) {
        const stop = fieldKeyEnd(buf, i, end);
        if (stop < 0) return this.undo(row, values, stop);
        if (values >= maxFields) return this.undo(row, values, badLine);
        if (known < 0) known = group.fields.size;
        else if (
          this.mayPause &&
          group.fields.size - known >= Math.max(newFieldsAtOnce, known >> 1)
        ) {
          return this.undo(row, values, pausedLine);
        }
        slot = batch.slot(group, buf, i, stop);
        if (before === undefined) group.first = slot;
        else before.next = slot;
        i = stop + 1;
      } else i += slot.length;

      // The value. Integers and decimals of few digits are read here.
      c = buf[i]!;
      const from = i;
      const negative = c === minus;
      if (negative) c = buf[++i]!;
      let d = c - zero;
      if (d >= 0 && d <= 9) {
        let whole = d;
        const stop = i + 15;
        d = (c = buf[++i]!) - zero;
        while (d >= 0 && d <= 9 && i < stop) {
          whole = whole * 10 + d;
          d = (c = buf[++i]!) - zero;
        }
        if (c === letterI) {
          if (negative) whole = 0 - whole;
          c = buf[++i]!;
          if (slot.type !== integerCode) slot.convert('integer', row);
          const column = slot.column;
          touched[values++] = column;
          if (column.ready === row) {
            column.numbers[row] = whole;
            column.ready = row + 1;
          } else this.put(group, column, row, whole);
        } else {
          let decimals = 0;
          let value = whole;
          if (c === dot) {
            const point = i;
            d = (c = buf[++i]!) - zero;
            while (d >= 0 && d <= 9 && i < stop) {
              whole = whole * 10 + d;
              d = (c = buf[++i]!) - zero;
            }
            // Doubles have up to 17 digits.
            const more = i;
            let last = 0;
            while (d >= 0 && d <= 9 && i < stop + 5) {
              last = last * 10 + d;
              d = (c = buf[++i]!) - zero;
            }
            decimals = i - point - 1;
            value =
              i === more ? whole / powers[decimals]! : exact(whole, last, i - more, -decimals);
          }
          if ((c === comma || c === space || c === newline) && value === value) {
            if (negative) value = -value;
            if (slot.type !== floatCode) slot.convert('float', row);
            const column = slot.column;
            touched[values++] = column;
            if (column.ready === row) {
              column.numbers[row] = value;
              column.ready = row + 1;
            } else this.put(group, column, row, value);
          } else {
            i = this.readNumber(buf, from, group, slot, row);
            if (i < 0) return this.undo(row, values, badLine);
            touched[values++] = slot.column;
            c = buf[i]!;
          }
        }
      } else {
        i = this.readOther(buf, from, end, group, slot, row);
        if (i < 0) return this.undo(row, values, i);
        touched[values++] = slot.column;
        c = buf[i]!;
      }

      before = slot;
      if (c !== comma) break;
      i++;
      slot = slot.next;
    }

    // The time.
    let seconds = this.nowSeconds;
    let nanos = this.nowNanos;
    if (c !== newline) {
      if (c !== space) return this.undo(row, values, badLine);
      while (isBlank(buf[i]!)) i++;
      if (buf[i] !== newline) {
        if (this.time.read(buf, i, end) !== goodTime) return this.undo(row, values, badLine);
        seconds = this.time.seconds;
        nanos = this.time.nanos;
        i = this.time.end;
        while (buf[i] === space) i++;
        if (buf[i] !== newline) return this.undo(row, values, badLine);
      }
    }
    if (i - start > this.maxKeyBytes && this.keysTooLong(spelling, values)) {
      return this.undo(row, values, badLine);
    }
    if (batch.rows === 0) batch.baseSeconds = seconds;
    const time = (seconds - batch.baseSeconds) * 1e9 + nanos;
    if (time > maxOffset || time < -maxOffset) return this.undo(row, values, farLine);
    this.texts = 0;
    if (this.ignored > 0) {
      const ignored = this.ignored;
      this.ignored = 0;
      if (values === ignored) {
        this.dropReason = `invalid field name: input field "time" on measurement "${group.measurement}" is invalid`;
        return droppedLine;
      }
    }
    group.series[row] = handle;
    group.times[row] = time;
    batch.endRow(group, values);
    return i + 1;
  }

  /** The spelling of the key at `start`, in the table from now on. */
  private findSeries(buf: Buffer, view: DataView, start: number, end: number): number {
    const i = keyEnd(buf, view, start, end);
    if (i < 0) return i;
    if (i - start > this.maxKeyBytes) return badLine;
    const found = this.table.find(view, start, i);
    if (found >= 0) return found;
    const added = this.table.add(buf, view, start, i, this.maxKeyBytes);
    if (added >= 0) {
      this.batch.noteNewKey();
      return added;
    }
    if (!this.table.dropped) return badLine;
    this.dropReason = this.table.reason;
    return droppedLine;
  }

  /** Whether one of the line's fields makes the series key too long, as InfluxDB counts. */
  private keysTooLong(spelling: number, values: number): boolean {
    let longest = 0;
    for (let i = 0; i < values; i++) {
      const { field } = this.touched[i]!;
      if (field.length > longest) longest = field.length;
    }
    return this.table.length(spelling) + longest + 4 > this.maxKeyBytes;
  }

  /** As `undo`, however far the line was read. */
  private undoRow(): void {
    const { columns, rows } = this.batch.group(
      this.table.measurement(this.table.handle(this.spelling)),
    );
    for (const column of columns) column.disclaim(rows);
    this.undo(rows, 0, farLine);
  }

  /** Removes the current line's values from the batch. */
  private undo(row: number, values: number, outcome: number): number {
    for (let i = 0; i < values; i++) {
      const column = this.touched[i]!;
      if (column.active) column.disclaim(row);
    }
    if (this.texts > 0) {
      this.batch.textLength = this.textLength;
      this.batch.textCount = this.textCount;
      this.texts = 0;
    }
    this.ignored = 0;
    return outcome;
  }

  /** Puts a number into a column that is not simply appended to. */
  private put(group: BatchGroup, column: BatchColumn, row: number, value: number): void {
    if (column.ignored) {
      this.ignored++;
      return;
    }
    this.batch.claim(group, column);
    column.setNumber(row, value);
  }

  /** Any number. Returns where it ends, or `badLine`. */
  private readNumber(
    buf: Buffer,
    start: number,
    group: BatchGroup,
    slot: FieldSlot,
    row: number,
  ): number {
    const { number } = this;
    const kind = number.read(buf, start);
    if (kind === decimal.notNumber) return badLine;
    const type = numberTypes[kind]!;
    if (slot.type !== fieldTypeCodes[type]) slot.convert(type, row);
    const { column } = slot;
    if (kind === decimal.wideInteger || kind === decimal.wideUnsigned) {
      if (column.ignored) this.ignored++;
      else {
        this.batch.claim(group, column);
        column.setInteger(row, number.high, number.low);
      }
    } else this.put(group, column, row, number.value[0]!);
    return number.end;
  }

  /** A string, a boolean, or a number that does not begin with a digit. */
  private readOther(
    buf: Buffer,
    start: number,
    end: number,
    group: BatchGroup,
    slot: FieldSlot,
    row: number,
  ): number {
    const c = buf[start]!;
    if (c === quote) return this.readText(buf, start + 1, end, group, slot, row);
    if (c === minus || c === dot) return this.readNumber(buf, start, group, slot, row);
    const length = booleanLength(buf, start);
    if (length === 0) return badLine;
    const code = fieldTypeCodes.boolean;
    if (slot.type !== code) slot.convert('boolean', row);
    this.put(group, slot.column, row, (c | 0x20) === 0x74 ? 1 : 0);
    return start + length;
  }

  /** A string, behind its opening quote. */
  private readText(
    buf: Buffer,
    start: number,
    end: number,
    group: BatchGroup,
    slot: FieldSlot,
    row: number,
  ): number {
    let escaped = false;
    let i = start;
    for (; ; i++) {
      if (i >= end) return cutLine;
      const c = buf[i]!;
      if (c === quote) break;
      if (c === backslash) {
        escaped = true;
        i++;
      }
    }
    const { batch } = this;
    if (slot.type !== fieldTypeCodes.string) slot.convert('string', row);
    if (slot.ignored) this.ignored++;
    else {
      if (this.texts++ === 0) {
        this.textLength = batch.textLength;
        this.textCount = batch.textCount;
      }
      this.put(group, slot.column, row, batch.addText(buf, start, i, escaped));
    }
    return i + 1;
  }
}

const numberTypes: readonly FieldType[] = [
  // By the kinds of decimal.ts, of which 0 is none.
  'float',
  'float',
  'integer',
  'integer',
  'unsigned',
  'unsigned',
];

/** Where the key at `start` ends, at the first bare space; `badLine` or `cutLine` when nowhere. */
function keyEnd(buf: Buffer, view: DataView, start: number, end: number): number {
  let i = start;
  for (;;) {
    // Four bytes at a time, as long as there is neither a space nor a newline among them: after the
    // exclusive or, a byte that was one is zero, and only zeros borrow into the high bit.
    while (i + 4 <= end) {
      const word = view.getInt32(i, true);
      const s = word ^ 0x20202020;
      const n = word ^ 0x0a0a0a0a;
      if ((((s - 0x01010101) & ~s) | ((n - 0x01010101) & ~n)) & 0x80808080) break;
      i += 4;
    }
    let c = buf[i]!;
    while (c !== space && c !== newline) c = buf[++i]!;
    if (c === newline) {
      if (!isEscapedNewline(buf, start, i)) return badLine;
      if (i + 1 === end) return cutLine;
    } else if (buf[i - 1] !== backslash) return i;
    i++;
  }
}

/** Where the key of the field at `start` ends, at its equals sign; `badLine` or `cutLine` when nowhere. */
function fieldKeyEnd(buf: Buffer, start: number, end: number): number {
  if (buf[start] === equals) return badLine;
  for (let i = start; i < end; i++) {
    const c = buf[i]!;
    if (c === newline) {
      if (!isEscapedNewline(buf, start, i)) return badLine;
    } else if (c === equals || c === comma || c === space) {
      if (i === start || buf[i - 1] !== backslash) return c === equals ? i : badLine;
    }
  }
  return cutLine;
}

const lowerWords = [Buffer.from('rue'), Buffer.from('alse')] as const;
const upperWords = [Buffer.from('RUE'), Buffer.from('ALSE')] as const;

/** Length of the boolean at `start`, 0 when there is none. Bytes after it are not checked. */
export function booleanLength(buf: Buffer, start: number): number {
  const c = buf[start]!;
  const lower = c | 0x20;
  if (lower !== 0x74 && lower !== 0x66) return 0;
  const which = lower === 0x74 ? 0 : 1;
  if (begins(buf, start + 1, lowerWords[which])) return 4 + which;
  if (c !== lower && begins(buf, start + 1, upperWords[which])) return 4 + which;
  return 1;
}

function begins(buf: Buffer, at: number, word: Buffer): boolean {
  for (let i = 0; i < word.length; i++) if (buf[at + i] !== word[i]) return false;
  return true;
}
