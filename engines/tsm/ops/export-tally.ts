// Contents of an export summed by shard, so that two exports of the same points give equal sums,
// whatever the numbers of their series and fields.

import { crc32 } from 'node:zlib';
import { ContentSum, hashNumber, mix } from '../../../universal-row/content-sum.ts';
import type { SeriesShare } from '../../series-engine.ts';
import type { CatalogState, ShardSpan } from '../catalog.ts';
import type { PackedColumn } from '../head/packed-column.ts';
import { type ExportVisitor, ExportWalker, type WalkedRows } from './export-walker.ts';

export interface ShardSum extends ShardSpan {
  readonly rows: number;
  /** Number of values in all fields. */
  readonly values: number;
  /** In hexadecimal. */
  readonly checksum: string;
}

export class ExportTally implements ExportVisitor {
  readonly #walker = new ExportWalker();
  readonly #wants: (shard: number) => boolean;
  readonly #share: SeriesShare | undefined;
  #state: CatalogState | undefined;
  readonly #sums = new Map<number, Sum>();
  readonly #bytes = new Map<number, number>();
  #named: ReadonlySet<number> = new Set();
  /** Checksum of each series' key, by number in the shard; and which of them are in the share. */
  #keys = new Uint32Array(1024);
  #kept = new Uint8Array(1024);
  /** Nanoseconds by which the times of each shard are later in the share. */
  #shifts: ReadonlyMap<number, number> = new Map();

  /** Points of shards not wanted, and series out of the share, are read and not counted. */
  constructor(wants: (shard: number) => boolean = () => true, share?: SeriesShare) {
    this.#wants = wants;
    this.#share = share;
  }

  /** Throws `RangeError` for a damaged entry. One op a step. */
  add(entry: Buffer): Generator<void> {
    return this.#walker.walk(entry, this);
  }

  /** Databases and shards named by the first entry. */
  get catalog(): CatalogState | undefined {
    return this.#state;
  }

  /** Shards that were named, by ascending number. */
  sums(): ShardSum[] {
    const spans = (this.#state?.shards ?? []).toSorted((a, b) => a.number - b.number);
    return spans.map((span) => ({
      ...span,
      ...this.#share?.spanOf(span),
      ...(this.#sums.get(span.number) ?? new Sum()).shown(),
    }));
  }

  /** Bytes of the shard's points, of those that are wanted. */
  bytesOf(shard: number): number {
    return this.#bytes.get(shard) ?? 0;
  }

  state(state: CatalogState): void {
    this.#state ??= state;
    this.#named = new Set(state.shards.map(({ number }) => number));
    const share = this.#share;
    if (share === undefined) return;
    const shiftOf = (span: ShardSpan): number =>
      (span.startSeconds - share.spanOf(span).startSeconds) * 1e9;
    this.#shifts = new Map(state.shards.map((span) => [span.number, shiftOf(span)]));
  }

  series(_shard: number, number: number, buf: Buffer, start: number, end: number): void {
    if (number >= this.#keys.length) {
      const longer = new Uint32Array(this.#keys.length * 2);
      longer.set(this.#keys);
      this.#keys = longer;
      const more = new Uint8Array(longer.length);
      more.set(this.#kept);
      this.#kept = more;
    }
    this.#keys[number] = crc32(buf.subarray(start, end), end - start);
    this.#kept[number] = this.#share === undefined || this.#share.keeps(buf, start, end) ? 1 : 0;
  }

  rows(rows: WalkedRows, _buf: Buffer, start: number, end: number): void {
    const { shard } = rows;
    if (!this.#named.has(shard)) {
      throw new RangeError(`entry of time series: rows of shard ${shard}, which is not named`);
    }
    if (!this.#wants(shard)) return;
    let kept = 0;
    for (let row = 0; row < rows.rows; row++) kept += this.#kept[rows.series[row]!]!;
    if (kept === 0) return;
    const bytes = Math.round(((end - start) * kept) / rows.rows);
    this.#bytes.set(shard, this.bytesOf(shard) + bytes);
    let sum = this.#sums.get(shard);
    if (sum === undefined) this.#sums.set(shard, (sum = new Sum()));
    sum.rows += kept;
    for (const [number, column] of rows.columns.entries()) {
      if (column === undefined) continue;
      const { name, type } = rows.fields[number]!;
      this.#addColumn(sum, rows, column, crc32(`${type} ${name}`));
    }
  }

  #addColumn(sum: Sum, rows: WalkedRows, column: PackedColumn, field: number): void {
    const { values, count, rows: there, type } = column;
    const { series, times, texts } = rows;
    const shift = this.#shifts.get(rows.shard) ?? 0;
    for (let k = 0; k < count; k++) {
      const row = there === undefined ? k : there[k]!;
      if (this.#kept[series[row]!] === 0) continue;
      sum.values++;
      const value = values[k]!;
      let hash: number;
      if (type === 'string') {
        const n = Number(value);
        const start = n === 0 ? 0 : texts.textEnds[n - 1]!;
        hash = crc32(texts.text.subarray(start, texts.textEnds[n]!));
      } else {
        hash = typeof value === 'bigint' ? hashWide(value) : hashNumber(value);
      }
      sum.contents.add(
        mix(this.#keys[series[row]!]!, field),
        mix(hashNumber(times[row]! + shift), hash),
      );
    }
  }
}

class Sum {
  rows = 0;
  values = 0;
  readonly contents = new ContentSum();

  shown(): { rows: number; values: number; checksum: string } {
    return { rows: this.rows, values: this.values, checksum: this.contents.text };
  }
}

/** The same for a value that happens to come in 64 bits because another one had to. */
function hashWide(value: bigint): number {
  const near = Number(value);
  if (Number.isSafeInteger(near)) return hashNumber(near);
  return mix(Number(BigInt.asUintN(32, value)), Number(BigInt.asUintN(32, value >> 32n)));
}
