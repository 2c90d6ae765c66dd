// Contents of an export summed by shard, so that two exports of the same points give equal sums,
// whatever the numbers of their series and fields.

import { crc32 } from 'node:zlib';
import { ContentSum, hashNumber, mix } from '../../../universal-row/content-sum.ts';
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
  #state: CatalogState | undefined;
  readonly #sums = new Map<number, Sum>();
  readonly #bytes = new Map<number, number>();
  #named: ReadonlySet<number> = new Set();
  /** Checksum of each series' key, by number in the shard. */
  #keys = new Uint32Array(1024);

  /** Points of shards not wanted are read and not counted. */
  constructor(wants: (shard: number) => boolean = () => true) {
    this.#wants = wants;
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
  }

  series(_shard: number, number: number, buf: Buffer, start: number, end: number): void {
    if (number >= this.#keys.length) {
      const longer = new Uint32Array(this.#keys.length * 2);
      longer.set(this.#keys);
      this.#keys = longer;
    }
    this.#keys[number] = crc32(buf.subarray(start, end), end - start);
  }

  rows(rows: WalkedRows, _buf: Buffer, start: number, end: number): void {
    const { shard } = rows;
    if (!this.#named.has(shard)) {
      throw new RangeError(`entry of time series: rows of shard ${shard}, which is not named`);
    }
    if (!this.#wants(shard)) return;
    this.#bytes.set(shard, this.bytesOf(shard) + end - start);
    let sum = this.#sums.get(shard);
    if (sum === undefined) this.#sums.set(shard, (sum = new Sum()));
    sum.rows += rows.rows;
    for (const [number, column] of rows.columns.entries()) {
      if (column === undefined) continue;
      const { name, type } = rows.fields[number]!;
      this.#addColumn(sum, rows, column, crc32(`${type} ${name}`));
    }
  }

  #addColumn(sum: Sum, rows: WalkedRows, column: PackedColumn, field: number): void {
    const { values, count, rows: there, type } = column;
    const { series, times, texts } = rows;
    sum.values += count;
    for (let k = 0; k < count; k++) {
      const row = there === undefined ? k : there[k]!;
      const value = values[k]!;
      let hash: number;
      if (type === 'string') {
        const n = Number(value);
        const start = n === 0 ? 0 : texts.textEnds[n - 1]!;
        hash = crc32(texts.text.subarray(start, texts.textEnds[n]!));
      } else {
        hash = typeof value === 'bigint' ? hashWide(value) : hashNumber(value);
      }
      sum.contents.add(mix(this.#keys[series[row]!]!, field), mix(hashNumber(times[row]!), hash));
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
