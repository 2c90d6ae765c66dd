// Writes a file front to back. Rows of a series wait until there are enough for a block; a series with
// few rows shares a block with others of its measurement.

import { dirname } from 'node:path';
import type { Disk, DiskFile } from '../../../universal-row/environment.ts';
import { ByteWriter } from '../encoding/byte-writer.ts';
import { encodeColumn, encodeTimes } from '../encoding/column-codec.ts';
import type { Rows, TsmWriter } from '../parts.ts';
import {
  type DiskWait,
  finished,
  type SlicedWork,
  syncing,
  syncingDirectory,
} from '../sliced-work.ts';
import { type BlockExtent, RecordWriter, type Runs } from './directory.ts';
import { IndexBuilder } from './file-index.ts';
import { checksum, crcBytes, makeFooter, makeHeader } from './format.ts';
import { RowBuffer } from './row-buffer.ts';
import { summarise } from './summary.ts';

export interface TsmWriterOptions {
  /** Rows of a block; the last one of a series has up to half as many more. */
  readonly blockRows?: number;
  /** A series with fewer rows shares a block. 0: none does. */
  readonly sparseRows?: number;
  /** Rows of a block that is shared. */
  readonly sharedRows?: number;
  /** Memory limit for shared blocks that wait for more series, all measurements together. */
  readonly waitingBytes?: number;
}

const defaultBlockRows = 1024;
const defaultSparseRows = 128;
const defaultSharedRows = 1024;

const writeBytes = 512 * 1024;
// A file is synced as it grows, so that no single sync holds everything up.
const syncBytes = 8 * 1024 * 1024;
// Strings are limited by size as well as by rows. The size is checked after every `textRows` rows.
const maxTextUnits = 1024 * 1024;
const textRows = 64;
const defaultWaitingBytes = 64 * 1024 * 1024;

/** Rows of several series, ascending. */
class SharedRows {
  readonly rows = new RowBuffer();
  /** Their places in the index. */
  places: number[] = [];
  series: number[] = [];
  ends: number[] = [];
}

export class TsmFileWriter implements TsmWriter {
  readonly #disk: Disk;
  readonly #path: string;
  readonly #file: DiskFile;
  readonly #blockRows: number;
  readonly #sparseRows: number;
  readonly #sharedRows: number;
  readonly #maxWaitingBytes: number;
  readonly #out = new ByteWriter(writeBytes + (writeBytes >> 1));
  readonly #directory = new ByteWriter(64 * 1024);
  readonly #index = new IndexBuilder();
  readonly #record = new RecordWriter();
  readonly #rows = new RowBuffer();
  /** By measurement. */
  readonly #shared = new Map<number, SharedRows>();
  #waitingBytes = 0;
  /** Bytes that left the buffer. */
  #written = 0;
  #synced = 0;
  #open = true;
  #series = -1;
  #measurement = -1;
  /** Blocks of the current series so far. */
  #seriesBlocks = 0;

  /** The directory exists. Its new name is safe when `finish` is done, like the file. */
  constructor(disk: Disk, path: string, options: TsmWriterOptions = {}) {
    this.#disk = disk;
    this.#path = path;
    this.#blockRows = options.blockRows ?? defaultBlockRows;
    this.#sparseRows = options.sparseRows ?? defaultSparseRows;
    this.#sharedRows = options.sharedRows ?? defaultSharedRows;
    this.#maxWaitingBytes = options.waitingBytes ?? defaultWaitingBytes;
    this.#file = disk.open(path, 'create');
    this.#out.bytes(makeHeader());
  }

  get bytes(): number {
    return this.#offset + this.#directory.length;
  }

  get #offset(): number {
    return this.#written + this.#out.length;
  }

  add(series: number, measurement: number, rows: Rows): void {
    if (rows.count === 0) return;
    this.#guarded(() => {
      if (series !== this.#series) {
        if (series < this.#series) throw new Error(`series ${series} is added too late`);
        this.#finishSeries();
        this.#series = series;
        this.#measurement = measurement;
      }
      this.#append(rows);
    });
  }

  overdue(): DiskWait | undefined {
    const written = this.#written;
    if (written - this.#synced < syncBytes) return undefined;
    const sync = syncing(this.#file);
    const note = (): void => {
      this.#synced = written;
    };
    return {
      now: () => {
        sync.now();
        note();
      },
      later: () => sync.later().then(note),
    };
  }

  finish(): void {
    finished(this.finishing());
  }

  *finishing(): SlicedWork {
    if (!this.#open) throw new Error(`${this.#path} is closed`);
    try {
      this.#finishSeries();
      for (const shared of this.#shared.values()) {
        this.#closeShared(shared);
        yield;
      }
      yield* this.#finishFile();
      yield syncing(this.#file);
      yield syncingDirectory(this.#disk, dirname(this.#path));
    } catch (error) {
      this.#abandonQuietly();
      throw error;
    }
    this.#open = false;
    this.#file.close();
  }

  abandon(): void {
    if (!this.#open) return;
    this.#open = false;
    try {
      this.#file.close();
    } finally {
      this.#disk.remove(this.#path);
    }
  }

  /** A failed file is useless, and its space may be needed. */
  #guarded(work: () => void): void {
    if (!this.#open) throw new Error(`${this.#path} is closed`);
    try {
      work();
    } catch (error) {
      this.#abandonQuietly();
      throw error;
    }
  }

  #abandonQuietly(): void {
    try {
      this.abandon();
    } catch {
      // The disk fails altogether; the first error is more informative.
    }
  }

  #append(rows: Rows): void {
    const waiting = this.#rows;
    const texts = rows.columns.some((column) => column?.type === 'string');
    const capacity = this.#blockRows + (this.#blockRows >> 1);
    for (let at = 0; at < rows.count; ) {
      const room = Math.min(capacity - waiting.count, rows.count - at);
      const n = texts ? Math.min(room, textRows) : room;
      waiting.append(rows, at, n);
      at += n;
      if (waiting.textUnits > maxTextUnits) this.#writeOwn(waiting.count);
      // Not at the last moment: a series must not end in a block of a few rows.
      else if (waiting.count === capacity) this.#writeOwn(this.#blockRows);
    }
  }

  #finishSeries(): void {
    const { count } = this.#rows;
    if (this.#series >= 0 && this.#seriesBlocks === 0 && count < this.#sparseRows) this.#share();
    else if (count > 0) this.#writeOwn(count);
    this.#seriesBlocks = 0;
  }

  /** Writes the first `count` of the rows waiting as a block of the series alone. */
  #writeOwn(count: number): void {
    if (this.#seriesBlocks > 0) this.#index.continueBlock();
    else this.#index.setFirstBlock(this.#index.addSeries(this.#series), this.#index.blocks);
    this.#seriesBlocks++;
    this.#writeBlock(this.#rows, count, undefined);
    this.#rows.drop(count);
  }

  #share(): void {
    let shared = this.#shared.get(this.#measurement);
    if (shared === undefined) {
      shared = new SharedRows();
      this.#shared.set(this.#measurement, shared);
    }
    const { rows } = shared;
    const waiting = this.#rows;
    const tooMany = rows.count + waiting.count > this.#sharedRows;
    if (tooMany || rows.textUnits > maxTextUnits) this.#closeShared(shared);
    this.#waitingBytes -= rows.bytes;
    rows.append(waiting.rows(), 0, waiting.count);
    this.#waitingBytes += rows.bytes;
    shared.places.push(this.#index.addSeries(this.#series));
    shared.series.push(this.#series);
    shared.ends.push(rows.count);
    waiting.drop(waiting.count);
    // Very many measurements, or fields: each one's rows as they are.
    if (this.#waitingBytes > this.#maxWaitingBytes) this.#closeAllShared();
  }

  #closeAllShared(): void {
    for (const shared of this.#shared.values()) this.#closeShared(shared);
    this.#shared.clear();
    this.#waitingBytes = 0;
  }

  #closeShared(shared: SharedRows): void {
    const { rows, places } = shared;
    if (rows.count === 0) return;
    for (const place of places) this.#index.setFirstBlock(place, this.#index.blocks);
    // One alone has its block for itself.
    const runs = {
      series: Uint32Array.from(shared.series),
      ends: Uint32Array.from(shared.ends),
    };
    this.#writeBlock(rows, rows.count, places.length > 1 ? runs : undefined);
    rows.drop(rows.count);
    shared.places = [];
    shared.series = [];
    shared.ends = [];
  }

  #writeBlock(rows: RowBuffer, count: number, runs: Runs | undefined): void {
    const out = this.#out;
    const start = this.#offset;
    const extent = extentOf(rows, count, runs !== undefined);
    let at = out.length;
    encodeTimes(out, rows.times, 0, count);
    const timesBytes = out.length - at;
    this.#sealColumn(at);
    this.#record.begin();
    for (const field of rows.fields(count)) {
      const column = rows.column(field);
      at = out.length;
      encodeColumn(out, column, 0, count);
      const bytes = out.length - at;
      this.#sealColumn(at);
      const lacking = column.present?.subarray(0, count).includes(0) === true;
      const summary = runs === undefined ? summarise(column, rows.times, count) : undefined;
      this.#record.column(field, column.type, bytes, lacking, summary, extent);
    }
    const recordBytes = this.#writeRecord(timesBytes, runs);
    this.#index.addBlock(this.#offset - start, recordBytes, extent);
    if (out.length >= writeBytes) this.#flush();
  }

  #sealColumn(start: number): void {
    const out = this.#out;
    out.u32(checksum(out.buffer, start, out.length, this.#written + start));
  }

  /** Where the directory will be is not known yet: its checksums are seeded with offsets within it. */
  #writeRecord(timesBytes: number, runs: Runs | undefined): number {
    const start = this.#directory.length;
    this.#record.finish(this.#directory, timesBytes, runs);
    const end = this.#directory.length;
    this.#directory.u32(checksum(this.#directory.buffer, start, end, start));
    return end + crcBytes - start;
  }

  *#finishFile(): SlicedWork {
    const out = this.#out;
    const directoryOffset = this.#offset;
    out.bytes(this.#directory.view());
    const indexOffset = this.#offset;
    const start = out.length;
    yield* this.#index.writing(out);
    const indexCrc = checksum(out.buffer, start, out.length, indexOffset);
    const { series, blocks, minTime, maxTime } = this.#index;
    const footer = { series, blocks, indexCrc, directoryOffset, indexOffset, minTime, maxTime };
    out.bytes(makeFooter(footer, this.#offset));
    this.#flush();
  }

  #flush(): void {
    this.#file.write(this.#out.buffer, 0, this.#out.length, this.#written);
    this.#written += this.#out.length;
    this.#out.clear();
  }
}

function extentOf(rows: RowBuffer, count: number, shared: boolean): BlockExtent {
  const { times } = rows;
  let minTime = times[0]!;
  let maxTime = times[count - 1]!;
  if (shared) {
    for (let i = 0; i < count; i++) {
      minTime = Math.min(minTime, times[i]!);
      maxTime = Math.max(maxTime, times[i]!);
    }
  }
  return { rows: count, minTime, maxTime, shared };
}
