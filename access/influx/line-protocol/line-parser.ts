// Line protocol, chunk by chunk, into batches of points:
//
//   parser.begin({ precision: 'ns', now: clock.now() });
//   for await (const chunk of body) {
//     parser.push(chunk);
//     for (let batch = parser.next(); batch; batch = parser.next()) await store.write(db, rp, batch);
//   }
//   parser.finish();
//   for (let batch = parser.next(); batch; batch = parser.next()) await store.write(db, rp, batch);
//
// Lines that lie whole in a chunk are read where they lie. The unfinished line at its end goes into a
// buffer of the parser's own, which grows with the bytes that arrive.
// https://docs.influxdata.com/influxdb/v1.8/write_protocols/line_protocol_reference/

import type { PointBatch } from '../../../universal-row/series/point-batch.ts';
import { BatchBuilder, keptBytes } from './batch-builder.ts';
import { hash, isBlank, newline } from './characters.ts';
import { LineEnd } from './line-end.ts';
import { lineError } from './line-errors.ts';
import { badLine, droppedLine, farLine, pausedLine, PointReader } from './point-reader.ts';
import { segmentBytes, SeriesCacheTable, type SharedSeriesCache } from './series-cache-table.ts';
import { precisionOf } from './timestamp.ts';

export interface LineParserLimits {
  /** Bytes of one line. */
  lineBytes: number;
  /** Bytes of a line's measurement and tags, with the longest field key. InfluxDB has 65,535. */
  keyBytes: number;
  /** A batch is handed over when it has this many points, */
  rows: number;
  /** or this many values, */
  values: number;
  /** or this many bytes of strings. */
  textBytes: number;
  /** Texts of errors that are kept. */
  errors: number;
  /** Bytes of a bad line in its error. */
  errorBytes: number;
}

export const defaultLineParserLimits: LineParserLimits = {
  lineBytes: 8 * 1024 * 1024,
  keyBytes: 65_535,
  // Together some milliseconds to read and to store: both are one step each.
  rows: 8000,
  values: 32_768,
  textBytes: 8 * 1024 * 1024,
  errors: 100,
  errorBytes: 4096,
};

interface LineProtocolRequest {
  /** As in the URL; unknown ones and none are nanoseconds. */
  readonly precision?: string | undefined;
  /** Milliseconds since 1970: the time of points that have none, cut to the precision. */
  readonly now: number;
  /** Replaces the parser's cache from now on. */
  readonly cache?: SharedSeriesCache | undefined;
}

/** Parses one request after another, one at a time. */
export class LineParser {
  /** Lines that were right, those in `dropped` among them. */
  goodLines = 0;
  badLines = 0;
  /** `unable to parse '…': …` of the first bad lines. */
  readonly errors: string[] = [];
  /** Points that InfluxDB does not store although their lines are right, */
  dropped = 0;
  /** and why the first of them is not; in the words of a `WriteOutcome`. */
  dropError: string | undefined = undefined;

  private cache: SharedSeriesCache;
  private readonly limits: LineParserLimits;
  private readonly batch: BatchBuilder;
  private readonly reader: PointReader;
  private readonly lineEnd = new LineEnd();
  private readonly keyBytes: number;

  private chunk: Buffer = noBytes;
  private view: DataView = viewOf(noBytes);
  private at = 0;
  /** Behind the last newline of the chunk. */
  private linesEnd = 0;

  // Received part of a line that began in an earlier chunk, and its parsing state.
  private rest: Buffer = noBytes;
  private restView: DataView = viewOf(noBytes);
  private restLength = 0;
  /** For a long line, the parts before `rest`: they are joined when the line is complete. */
  private parts: Buffer[] = [];
  private partsLength = 0;
  private restAt = 0;
  private inRest = false;
  /** `rest` is complete. */
  private restReady = false;
  /** The line exceeds the limit: only its beginning is kept. */
  private tooLong = false;

  private finished = false;
  /** The next point does not fit into the batch. */
  private closed = false;
  /** The batch is the caller's. */
  private given = false;
  /** Work since the last batch on lines without points, in bytes, approximate. */
  private fruitless = 0;
  /** How often the line under way was paused. */
  private pauses = 0;

  constructor(cache: SharedSeriesCache, limits: Partial<LineParserLimits> = {}) {
    this.cache = cache;
    this.limits = { ...defaultLineParserLimits, ...limits };
    this.batch = new BatchBuilder(noTable, this.limits);
    this.keyBytes = Math.min(this.limits.keyBytes, segmentBytes);
    this.reader = new PointReader(this.batch, this.keyBytes);
  }

  /** From now on; no more than the limits have it. See `BatchBuilder.limitRows`. */
  limitRows(rows: number, block = 1, before = 0): void {
    this.batch.limitRows(Math.min(rows, this.limits.rows), block, before);
  }

  /** Memory in an unfinished line and the batch under way. */
  get heldBytes(): number {
    return this.partsLength + this.rest.length + this.batch.text.length + this.batch.held;
  }

  /** Begins a new request. Leftovers of an earlier one are dropped. */
  begin(request: LineProtocolRequest): void {
    this.goodLines = 0;
    this.badLines = 0;
    this.errors.length = 0;
    this.dropped = 0;
    this.dropError = undefined;
    this.chunk = noBytes;
    this.at = 0;
    this.linesEnd = 0;
    this.dropRest();
    this.endPauses();
    this.finished = false;
    if (request.cache !== undefined) this.cache = request.cache;
    this.reader.set(precisionOf(request.precision), request.now);
    this.restart();
  }

  /** More of the body. `next` must have returned undefined since the last time. */
  push(chunk: Buffer): void {
    if (this.at < this.chunk.length || this.given || this.finished) {
      throw new Error('the parser has unread input');
    }
    this.chunk = chunk;
    this.view = viewOf(chunk);
    this.at = 0;
    this.linesEnd = chunk.lastIndexOf(newline) + 1;
  }

  /** The body is complete. */
  finish(): void {
    this.finished = true;
  }

  /**
   * The next full batch, or the last one of the body; it is the caller's until the next call. When there
   * is none, the parser needs the chunks it was given no more. A batch without points only says that there
   * was much to do for none.
   */
  next(): PointBatch | undefined {
    if (this.given) this.restart();
    this.fruitless = 0;
    const { batch, chunk } = this;
    for (;;) {
      if (batch.full || this.closed) {
        if (batch.rows > 0 || this.fruitless > maxFruitless) {
          this.given = true;
          return batch.settle();
        }
        this.restart();
      }
      if (this.restReady) this.readRest();
      else if (this.inRest) {
        if (this.at === chunk.length && !this.finished) break;
        this.extendRest();
      } else if (this.at < this.linesEnd) {
        this.at = this.readLines(chunk, this.view, this.at, this.linesEnd, false);
      } else if (this.at < chunk.length) {
        this.inRest = true;
        this.lineEnd.restart();
      } else {
        if (!this.finished || batch.rows === 0) break;
        this.closed = true;
      }
    }
    this.chunk = noBytes;
    this.at = 0;
    this.linesEnd = 0;
    // A parser that waits for its next request must not keep an old table alive.
    if (this.finished) this.restartOn(noTable);
    return undefined;
  }

  private restart(): void {
    this.restartOn(this.cache.current());
  }

  private restartOn(table: SeriesCacheTable): void {
    this.batch.restart(table);
    this.reader.restart();
    this.given = false;
    this.closed = false;
  }

  /**
   * Reads the lines from `start`; the byte before `end` is a newline. Returns where it stopped: at `end`,
   * or before a line that continues behind it (then `inRest` is set) or waits for the next batch. With
   * `whole` no line continues.
   */
  private readLines(
    buf: Buffer,
    view: DataView,
    start: number,
    end: number,
    whole: boolean,
  ): number {
    const { batch, reader, lineEnd } = this;
    let at = start;
    while (at < end) {
      const c = buf[at]!;
      if (isBlank(c) || c === newline || c === hash) {
        const from = at;
        at = c === hash ? buf.indexOf(newline, at) + 1 : at + 1;
        this.fruitless += (at - from + 7) >> 3;
        if (this.fruitless <= maxFruitless) continue;
        this.closed = true;
        break;
      }
      // A chunk is rarely that long.
      const tooLong = end - at > this.limits.lineBytes && this.isTooLong(buf, at, end);
      const outcome = tooLong ? badLine : reader.read(buf, view, at, end);
      if (outcome === pausedLine) {
        // What was read of it stays known, unless the batch has to forget its fields to save memory.
        reader.mayPause = ++this.pauses < mostPauses;
        this.fruitless = maxFruitless + 1;
        this.closed = true;
        break;
      }
      if (this.pauses > 0) this.endPauses();
      if (outcome >= 0) {
        this.goodLines++;
        at = outcome;
        if (batch.full) break;
        continue;
      }
      if (outcome === farLine) {
        this.closed = true;
        break;
      }
      lineEnd.restart();
      let stop = lineEnd.find(buf, at, end);
      if (stop < 0) {
        if (!whole) {
          this.inRest = true;
          lineEnd.restart();
          break;
        }
        stop = end - 1;
      }
      if (tooLong) this.addError(buf, at, stop, tooLongLine(this.limits.lineBytes));
      else this.refuse(buf, at, stop, outcome === droppedLine);
      this.fruitless += stop - at + badLineCost;
      at = stop + 1;
      this.closeIfLarge();
      if (this.closed) break;
    }
    return at;
  }

  private endPauses(): void {
    this.pauses = 0;
    this.reader.mayPause = true;
  }

  private isTooLong(buf: Buffer, start: number, end: number): boolean {
    this.lineEnd.restart();
    const stop = this.lineEnd.find(buf, start, end);
    return (stop < 0 ? end : stop) - start > this.limits.lineBytes;
  }

  /** A line that is not stored, from `start` to its newline. */
  private refuse(buf: Buffer, start: number, end: number, dropped: boolean): void {
    const error = lineError(buf, start, end, this.keyBytes, this.reader.time);
    if (dropped && error === '') {
      this.goodLines++;
      this.dropped++;
      this.dropError ??= this.reader.dropReason;
      return;
    }
    this.addError(buf, start, end, error === '' ? 'invalid field format' : error);
  }

  private addError(buf: Buffer, start: number, end: number, error: string): void {
    this.badLines++;
    if (this.errors.length >= this.limits.errors) return;
    const cut = end - start > this.limits.errorBytes;
    const line = buf.toString('utf8', start, cut ? start + this.limits.errorBytes : end);
    this.errors.push(`unable to parse '${line}${cut ? '...' : ''}': ${error}`);
  }

  /**
   * Closes the batch after too much work on lines without points, when the batch holds too much memory (names of bad lines
   * included), or when the series cache has been replaced.
   */
  private closeIfLarge(): void {
    if (this.fruitless > maxFruitless) this.closed = true;
    if (this.batch.held > 2 * keptBytes || this.cache.current() !== this.batch.cache) {
      this.closed = true;
    }
  }

  /** Appends the received part of the current line. */
  private extendRest(): void {
    const { chunk, lineEnd } = this;
    const stop = lineEnd.find(chunk, this.at, chunk.length);
    const end = stop < 0 ? chunk.length : stop + 1;
    if (!lineEnd.inComment) this.appendToRest(chunk, this.at, end);
    this.at = end;
    if (stop < 0 && !this.finished) return;
    if (lineEnd.inComment || this.partsLength + this.restLength === 0) {
      this.dropRest();
      return;
    }
    if (stop < 0) this.appendToRest(finalNewline, 0, 1);
    this.joinRest(Infinity);
    this.restReady = true;
    // A line of many fields takes a while to read: the search for its end is counted first.
    this.fruitless += this.restLength;
    this.closeIfLarge();
  }

  private appendToRest(from: Buffer, start: number, end: number): void {
    const { lineBytes, errorBytes } = this.limits;
    let n = end - start;
    if (!this.tooLong && this.partsLength + this.restLength + n > lineBytes + 1) {
      this.tooLong = true;
      // Its beginning is shown.
      this.joinRest(errorBytes + 1);
    }
    if (this.tooLong) n = Math.max(0, Math.min(n, errorBytes + 1 - this.restLength));
    if (this.restLength + n > this.rest.length) this.makeRoom(n);
    from.copy(this.rest, this.restLength, start, start + n);
    this.restLength += n;
  }

  /** Copies small rests into larger buffers only: many long lines may grow in the same round of the event loop. */
  private makeRoom(n: number): void {
    const length = this.restLength + n;
    let size = Math.max(length, this.rest.length * 2, firstRestBytes);
    if (length > partBytes) {
      if (this.restLength > 0) this.parts.push(this.rest.subarray(0, this.restLength));
      this.partsLength += this.restLength;
      this.restLength = 0;
      size = Math.max(n, partBytes);
    }
    const rest = Buffer.allocUnsafeSlow(size);
    this.rest.copy(rest, 0, 0, this.restLength);
    this.rest = rest;
    this.restView = viewOf(rest);
  }

  /** Joins the received parts of the line in one buffer, if it is shorter than `mostBytes`. */
  private joinRest(mostBytes: number): void {
    if (this.parts.length === 0) return;
    const parts = [...this.parts, this.rest.subarray(0, this.restLength)];
    const length = Math.min(this.partsLength + this.restLength, mostBytes);
    this.rest = Buffer.concat(parts, length);
    this.restView = viewOf(this.rest);
    this.restLength = length;
    this.parts = [];
    this.partsLength = 0;
  }

  private readRest(): void {
    const { rest, restLength } = this;
    if (this.tooLong) {
      let start = 0;
      while (start < restLength && isBlank(rest[start]!)) start++;
      const end = rest[restLength - 1] === newline ? restLength - 1 : restLength;
      this.addError(rest, start, end, tooLongLine(this.limits.lineBytes));
      this.dropRest();
      return;
    }
    this.restAt = this.readLines(rest, this.restView, this.restAt, restLength, true);
    if (restLength > maxFruitless) this.closed = true;
    if (this.restAt === restLength) this.dropRest();
  }

  private dropRest(): void {
    this.inRest = false;
    this.restReady = false;
    this.restLength = 0;
    this.restAt = 0;
    this.parts = [];
    this.partsLength = 0;
    this.tooLong = false;
    if (this.rest.length > keptRestBytes) {
      this.rest = noBytes;
      this.restView = viewOf(noBytes);
    }
  }
}

/** After so much work on lines that give no points the parser stops for others: about a millisecond. */
const maxFruitless = 64 * 1024;
/** Cost of a bad line besides its bytes. */
const badLineCost = 200;

/** A line is read in one go from then on: enough for as many fields as there may be. */
const mostPauses = 16;

const noTable = new SeriesCacheTable(-1);
const noBytes = Buffer.alloc(0);
const finalNewline = Buffer.from('\n');
const firstRestBytes = 4096;
/** A longer line is kept in parts of at least as much. */
const partBytes = 256 * 1024;
/** A larger buffer is not kept for later lines. */
const keptRestBytes = 1024 * 1024;

function viewOf(buf: Buffer): DataView {
  return new DataView(buf.buffer, buf.byteOffset, buf.length);
}

function tooLongLine(limit: number): string {
  return `line of more than ${limit} bytes`;
}
