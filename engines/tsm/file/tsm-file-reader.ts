// Reads a file. Its index is in memory; blocks and the directory's records are read on demand.

import type { Column, ColumnSummary } from '../../../universal-row/series/column.ts';
import type { Disk } from '../../../universal-row/environment.ts';
import { ColumnBuffer, decodeColumn, decodeTimes } from '../encoding/column-codec.ts';
import { assert } from '../../../universal-row/assert.ts';
import type { Block, BlockCache, Rows, SharedRows, TsmFile } from '../parts.ts';
import { BlockColumns } from './block-columns.ts';
import { BlockRecord, findRun } from './directory.ts';
import { FileBytes, sealed } from './file-bytes.ts';
import { FileIndex } from './file-index.ts';
import { checksum, crcBytes, footerBytes, type Footer } from './format.ts';
import { headerBytes, makeHeader, readFooter } from './format.ts';
import { commonSharedBlocks, type SharedBlock, SharedBlockCache } from './shared-block-cache.ts';

// A directory up to this size is kept whole; of a larger one, a window around the last read is
// kept.
const wholeDirectoryBytes = 128 * 1024;
const windowBytes = 16 * 1024;
// Memory that objects of a cached block or column take besides their arrays, approximate.
const cachedBytes = 200;

/** Throws `CorruptFileError` when the file is not whole. */
export function openTsmFile(
  disk: Disk,
  path: string,
  cache: SharedBlockCache = commonSharedBlocks,
): TsmFileReader {
  const file = disk.open(path, 'read');
  try {
    const bytes = new FileBytes(file);
    const footer = openFooter(bytes);
    const { indexOffset } = footer;
    const index = bytes.read(indexOffset, bytes.size - footerBytes - indexOffset);
    if (checksum(index, 0, index.length, indexOffset) !== footer.indexCrc) {
      bytes.damaged(indexOffset, 'wrong checksum of the index');
    }
    const decoded = bytes.at(indexOffset, () => new FileIndex(index, footer));
    return new TsmFileReader(bytes, footer, decoded, cache);
  } catch (error) {
    file.close();
    throw error;
  }
}

function openFooter(bytes: FileBytes): Footer {
  if (bytes.size < headerBytes + footerBytes) bytes.damaged(bytes.size, 'the file ends here');
  const header = bytes.read(0, headerBytes);
  if (!header.equals(makeHeader())) bytes.damaged(0, 'unknown header');
  const offset = bytes.size - footerBytes;
  const footer = readFooter(bytes.read(offset, footerBytes), offset);
  return typeof footer === 'string' ? bytes.damaged(offset, footer) : footer;
}

export class TsmFileReader implements TsmFile {
  readonly path: string;
  readonly bytes: number;
  readonly minTime: number;
  readonly maxTime: number;
  readonly series: Uint32Array;
  readonly #bytes: FileBytes;
  readonly #footer: Footer;
  readonly #index: FileIndex;
  readonly #cache: SharedBlockCache;
  readonly #cacheName: number;
  /** A part of the directory, and where it begins. */
  #window: Buffer | undefined;
  #windowOffset = 0;
  #record: BlockRecord | undefined;
  #recordBlock = -1;
  #times = new Float64Array(0);
  readonly #columns: BlockColumns;
  readonly #buffers: ColumnBuffer[] = [];

  /** Use `openTsmFile`. */
  constructor(bytes: FileBytes, footer: Footer, index: FileIndex, cache: SharedBlockCache) {
    this.path = bytes.file.path;
    this.bytes = bytes.size;
    this.minTime = footer.minTime;
    this.maxTime = footer.maxTime;
    this.series = index.series;
    this.#bytes = bytes;
    this.#columns = new BlockColumns(bytes);
    this.#footer = footer;
    this.#index = index;
    this.#cache = cache;
    this.#cacheName = cache.addFile();
  }

  /** Memory held, without the cache of shared blocks. */
  get memoryBytes(): number {
    let bytes = this.#index.bytes + (this.#window?.length ?? 0) + this.#times.byteLength;
    for (const buffer of this.#buffers) bytes += buffer.bytes;
    return bytes;
  }

  touches(series: number, from: number, to: number): boolean {
    return this.#index.touches(series, from, to);
  }

  countTouched(from: number, to: number, counts: Uint16Array): void {
    this.#index.countTouched(from, to, counts);
  }

  sharedBlocks(from: number, to: number): number[] {
    return this.#index.sharedBlocks(from, to);
  }

  readShared(block: number, fields: readonly number[], own?: BlockCache): SharedRows {
    const { runs, times, columns } = this.#sharedBlock(block, fields, own);
    return {
      series: runs.series,
      ends: runs.ends,
      minTime: this.#index.minTime(block),
      maxTime: this.#index.maxTime(block),
      times,
      columns: fields.map((field) => columns.get(field)),
    };
  }

  blocks(series: number, from: number, to: number): Block[] {
    const index = this.#index;
    const found: Block[] = [];
    const first = index.firstBlock(series);
    for (let b = first; b >= 0; b = index.isContinued(b) ? b + 1 : -1) {
      const minTime = index.minTime(b);
      const maxTime = index.maxTime(b);
      if (minTime > to && !index.isShared(b)) break;
      if (minTime <= to && maxTime >= from) {
        found.push({ number: b, minTime, maxTime, count: index.rows(b) });
      }
    }
    return found;
  }

  summary(
    block: Block,
    _series: number,
    fields: readonly number[],
  ): (ColumnSummary | undefined)[] | undefined {
    if (this.#index.isShared(block.number)) return undefined;
    const record = this.#recordOf(block.number);
    const summaries: (ColumnSummary | undefined)[] = [];
    for (const field of fields) {
      const column = record.find(field);
      const summary =
        column < 0
          ? undefined
          : this.#bytes.at(this.#index.recordOffset(block.number), () => record.summary(column));
      if (column >= 0 && summary === undefined) return undefined;
      summaries.push(summary);
    }
    return summaries;
  }

  read(block: Block, series: number, fields: readonly number[], own?: BlockCache): Rows {
    const { number } = block;
    if (this.#index.isShared(number)) return this.#readRun(number, series, fields, own);
    const record = this.#recordOf(number);
    const rows = this.#index.rows(number);
    const columns = fields.map((field) => record.find(field));
    if (rows > this.#times.length) this.#times = new Float64Array(rows);
    while (this.#buffers.length < fields.length) this.#buffers.push(new ColumnBuffer());
    const times = this.#times;
    const decoded = this.#decode(number, record, columns, times, this.#buffers);
    return { count: rows, times, columns: decoded };
  }

  close(): void {
    this.#cache.dropFile(this.#cacheName);
    this.#window = undefined;
    this.#record = undefined;
    this.#recordBlock = -1;
    this.#buffers.length = 0;
    this.#bytes.file.close();
  }

  #recordOf(block: number): BlockRecord {
    if (block === this.#recordBlock) return this.#record!;
    const offset = this.#index.recordOffset(block);
    const length = this.#index.recordBytes(block) - crcBytes;
    if (length < 0) this.#bytes.damaged(offset, 'a record of the directory is too short');
    const window = this.#windowWith(offset, sealed(length));
    const at = offset - this.#windowOffset;
    const seed = offset - this.#footer.directoryOffset;
    this.#bytes.verify(window, at, length, offset, seed);
    const extent = this.#index.extent(block);
    const record = this.#bytes.at(offset, () => new BlockRecord(window, at, at + length, extent));
    this.#record = record;
    this.#recordBlock = block;
    return record;
  }

  #windowWith(offset: number, length: number): Buffer {
    const held = this.#window;
    const end = this.#windowOffset + (held?.length ?? 0);
    if (held !== undefined && offset >= this.#windowOffset && offset + length <= end) return held;
    const { directoryOffset, indexOffset } = this.#footer;
    const all = indexOffset - directoryOffset;
    const start = all <= wholeDirectoryBytes ? directoryOffset : offset;
    const bytes = all <= wholeDirectoryBytes ? all : Math.max(length, windowBytes);
    // A new buffer: the record in use refers to the old one.
    this.#window = this.#bytes.read(start, Math.min(bytes, indexOffset - start));
    this.#windowOffset = start;
    return this.#window;
  }

  /** Columns by their places in the record, -1 for none; `times` undefined when they are known. */
  #decode(
    block: number,
    record: BlockRecord,
    places: readonly number[],
    times: Float64Array | undefined,
    buffers: readonly ColumnBuffer[],
  ): (Column | undefined)[] {
    const rows = this.#index.rows(block);
    const offset = this.#index.dataOffset(block);
    const columns = this.#columns;
    columns.begin(offset, this.#index.dataOffset(block + 1) - offset);
    columns.ahead(record, places, times !== undefined);
    try {
      if (times !== undefined) decodeTimes(columns.open(0, record.timesBytes), rows, times);
      const decoded: (Column | undefined)[] = [];
      for (let i = 0; i < places.length; i++) {
        const place = places[i]!;
        if (place < 0) {
          decoded.push(undefined);
          continue;
        }
        const from = columns.open(record.offset(place), record.length(place));
        decoded.push(decodeColumn(from, record.type(place), rows, buffers[i]!));
      }
      return decoded;
    } catch (error) {
      return columns.failed(error);
    }
  }

  #readRun(block: number, series: number, fields: readonly number[], own?: BlockCache): Rows {
    const { runs, times, columns } = this.#sharedBlock(block, fields, own);
    const run = findRun(runs, series);
    const start = run > 0 ? runs.ends[run - 1]! : 0;
    const end = run < 0 ? 0 : runs.ends[run]!;
    return {
      count: end - start,
      times: times.slice(start, end),
      columns: fields.map((field) => {
        const column = columns.get(field);
        return column === undefined ? undefined : sliceColumn(column, start, end);
      }),
    };
  }

  /** With at least these fields. */
  #sharedBlock(block: number, fields: readonly number[], own?: BlockCache): SharedBlock {
    if (own === undefined) return this.#sharedBlockOf(this.#cache, block, fields);
    assert(own instanceof SharedBlockCache, 'a cache of blocks is made by newBlockCache');
    // One that others have read serves as well; nothing is added to it.
    const common = this.#cache.peek(this.#cacheName, block);
    if (common !== undefined && fields.every((field) => common.columns.has(field))) return common;
    return this.#sharedBlockOf(own, block, fields);
  }

  #sharedBlockOf(cache: SharedBlockCache, block: number, fields: readonly number[]): SharedBlock {
    const known = cache.get(this.#cacheName, block);
    const missing =
      known === undefined ? fields : fields.filter((field) => !known.columns.has(field));
    if (known !== undefined && missing.length === 0) return known;
    const rows = this.#index.rows(block);
    const record = this.#recordOf(block);
    const runs = record.runs!;
    const contents = known ?? { runs, times: new Float64Array(rows), columns: new Map(), bytes: 0 };
    const places = missing.map((field) => record.find(field));
    const buffers = places.map(() => new ColumnBuffer());
    const times = known === undefined ? contents.times : undefined;
    const columns = this.#decode(block, record, places, times, buffers);
    let bytes = known === undefined ? cachedBytes + rows * 8 + runs.series.length * 8 : 0;
    missing.forEach((field, i) => {
      const column = columns[i];
      contents.columns.set(field, column);
      bytes += cachedBytes + buffers[i]!.bytes;
      for (const text of column?.texts ?? []) bytes += 24 + text.length;
    });
    if (known !== undefined) cache.grow(known, bytes);
    else {
      contents.bytes = bytes;
      cache.put(this.#cacheName, block, contents);
    }
    return contents;
  }
}

function sliceColumn(column: Column, start: number, end: number): Column | undefined {
  const present = column.present?.slice(start, end);
  if (present !== undefined && !present.includes(1)) return undefined;
  return {
    type: column.type,
    numbers: column.numbers.slice(start, end),
    wide: column.wide?.slice(start, end),
    texts: column.texts?.slice(start, end),
    present: present?.includes(0) === true ? present : undefined,
  };
}
