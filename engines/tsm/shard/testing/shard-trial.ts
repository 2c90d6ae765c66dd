// A shard and its model side by side: random writes, deletions, flushes, compactions and reopenings, cut
// into slices and shuffled, and random scans held against the model, at once or a good while later.

import { inOneGo } from '../../../../universal-row/slices.ts';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import type { Clock, Disk, Rng } from '../../../../universal-row/environment.ts';
import type { Scalar } from '../../../../universal-row/series/column.ts';
import type { FieldType } from '../../../../universal-row/series/field-type.ts';
import { MemoryHead } from '../../head/memory-head.ts';
import { PagePool } from '../../head/page-pool.ts';
import { openSeriesIndex } from '../../index/series-index.ts';
import { openTsmFile } from '../../file/tsm-file-reader.ts';
import { TsmFileWriter } from '../../file/tsm-file-writer.ts';
import { openShard } from '../open-shard.ts';
import type { Shard } from '../shard.ts';
import type { ShardParts, ShardScan, ShardScanRequest } from '../shard-types.ts';
import { appendPoints, findSeries, type ModelPoint } from './point-columns.ts';
import {
  type ModelField,
  type ModelRow,
  type Piece,
  readInterleaved,
  ShardModel,
  summaryOf,
  type Values,
} from './shard-model.ts';

const pool = new PagePool(1 << 24);

/** Small blocks, so that few points make many of them. */
export function smallParts(): ShardParts {
  const options = { blockRows: 12, sparseRows: 4, sharedRows: 16 };
  return {
    createHead: () => new MemoryHead(pool),
    openIndex: openSeriesIndex,
    createFile: (disk, path) => new TsmFileWriter(disk, path, options),
    openFile: openTsmFile,
  };
}

export const directory = 'data/shard';
export const startSeconds = 1_600_000_000;
const measurement = 'm';

const fields: readonly ModelField[] = [
  { name: 'float', type: 'float' },
  { name: 'integer', type: 'integer' },
  { name: 'unsigned', type: 'unsigned' },
  { name: 'string', type: 'string' },
  { name: 'boolean', type: 'boolean' },
  { name: 'rare', type: 'float' },
];
const typeOf = new Map(fields.map(({ name, type }): [string, FieldType] => [name, type]));

/** Times are few, so that points meet. */
const lastTime = 400;

/** Entries of the log. */
type Entry =
  | { readonly kind: 'points'; readonly points: readonly ModelPoint[] }
  | {
      readonly kind: 'delete';
      readonly keys: readonly string[];
      readonly from: number;
      readonly to: number;
    };

interface OpenScan {
  readonly scan: ShardScan;
  readonly request: ShardScanRequest;
  readonly keys: ReadonlyMap<number, string>;
  /** Expected rows, by series key. */
  readonly expected: ReadonlyMap<string, ModelRow[]>;
}

export class ShardTrial {
  shard: Shard;
  readonly model = new ShardModel();
  disk: Disk;
  /** Whether the next slice of work waits for the disk. */
  blocks = (): boolean => true;
  readonly #rng: Rng;
  readonly #log: Entry[] = [];
  #scans: OpenScan[] = [];
  #now = 0;

  constructor(disk: Disk, rng: Rng) {
    this.disk = disk;
    this.#rng = rng;
    this.shard = this.#open();
  }

  /** One thing of all that can happen. */
  step(): void {
    const action = this.#below(100);
    if (action < 30) this.write();
    else if (action < 34) this.delete();
    else if (action < 42) this.shard.sealHead();
    else if (action < 60) this.slice(() => this.shard.flushSlice(0, this.blocks()));
    else if (action < 75) this.slice(() => this.shard.compactSlice(0, this.blocks()));
    else if (action < 77) this.shard.compactFully();
    else if (action < 79) this.slice(() => this.shard.persistSlice(0, this.blocks()));
    else if (action < 90) this.check(this.#openScan());
    else if (action < 94) this.#scans.push(this.#openScan());
    else if (action < 98) this.#checkOldest();
    else this.reopen(this.disk);
  }

  /** Every slice leaves a bit of time for others. */
  slice(work: () => boolean): boolean {
    this.#now++;
    return work();
  }

  flush(): void {
    // The first round is for a head that was sealed before.
    for (let round = 0; round < 2; round++) {
      while (this.slice(() => this.shard.flushSlice(0)));
      this.shard.sealHead();
    }
    while (this.slice(() => this.shard.flushSlice(0)));
  }

  compactFully(): void {
    this.shard.compactFully();
    while (this.slice(() => this.shard.compactSlice(0)));
  }

  /**
   * As after the end of a process: the log's entries beyond the shard's state are applied again.
   */
  reopen(disk: Disk): void {
    this.endScans();
    if (disk === this.disk) this.shard.close();
    this.disk = disk;
    this.shard = this.#open();
    for (let i = this.shard.persistedIndex; i < this.#log.length; i++) {
      this.shard.appliedIndex = i + 1;
      this.#apply(this.#log[i]!);
    }
  }

  endScans(): void {
    while (this.#scans.length > 0) this.#checkOldest();
  }

  write(points = this.#points()): void {
    for (const { key, time, values } of points) this.model.put(key, time, values);
    this.#log.push({ kind: 'points', points });
    this.shard.appliedIndex = this.#log.length;
    this.#apply(this.#log.at(-1)!);
  }

  /** Everything there is, against the model. */
  checkAll(): void {
    for (const descending of [false, true]) {
      const names = fields.map(({ name }) => name);
      this.check(this.#openScan({ fields: names, from: -10, to: 1e9, descending }));
    }
    const expected = [...this.model.series.keys()].sort();
    const { index } = this.shard;
    const number = index.findMeasurement(measurement);
    const listed = number < 0 ? [] : [...inOneGo(index.select(number, undefined))];
    expect(listed.map((series) => index.key(series))).toEqual(expected);
    this.#checkExport();
  }

  check(open: OpenScan): void {
    const { scan, expected, keys } = open;
    const seen = [...keys.values()];
    const pieces = readInterleaved(Array.from(scan.series, (series) => scan.cursor(series)));
    for (const [i, key] of seen.entries()) {
      this.#checkSeries(open, pieces[i]!, expected.get(key) ?? []);
    }
    for (const [key, rows] of expected) if (rows.length > 0) expect(seen).toContain(key);
    scan.close();
  }

  #checkSeries(
    { scan, request }: OpenScan,
    pieces: readonly Piece[],
    expected: readonly ModelRow[],
  ): void {
    const { bounds = [], rowsPerSeries = 0, descending } = request;
    const types = request.fields.map((name, f) => scan.fieldTypes[f] && typeOf.get(name));
    if (rowsPerSeries > 0) {
      const rows = pieces.flat() as ModelRow[];
      expect(rows.slice(0, rowsPerSeries)).toEqual(expected.slice(0, rowsPerSeries));
      return;
    }
    let at = 0;
    for (const piece of pieces) {
      if (!Array.isArray(piece)) {
        const { kind, base, ...summary } = piece;
        const rows = expected.slice(at, at + summary.count);
        const ascending = descending ? rows.toReversed() : rows;
        expect({ kind, base }).toEqual({ kind: 'summary', base: startSeconds });
        expect(summary).toEqual(summaryOf(ascending, types));
        this.#expectOneBucket(request, summary.minTime, summary.maxTime);
        at += rows.length;
        continue;
      }
      for (const row of piece) {
        // Rows that fail a bound may be left out.
        while (at < expected.length && expected[at]!.time !== row.time) {
          expect(meets(expected[at]!, bounds)).toBe(false);
          at++;
        }
        // `expect` tells more, but takes its time.
        if (!isDeepStrictEqual(row, expected[at])) expect(row).toEqual(expected[at]);
        at++;
      }
    }
    for (; at < expected.length; at++) {
      expect(bounds.length > 0 && meets(expected[at]!, bounds)).toBe(false);
      expect(bounds.length).toBeGreaterThan(0);
    }
  }

  #expectOneBucket({ summaries }: ShardScanRequest, min: number, max: number): void {
    const { width, offset } = summaries!;
    if (width === 0n) return;
    const bucket = (time: number): bigint => {
      const shifted = BigInt(time) + BigInt(startSeconds) * 1_000_000_000n - offset;
      return (shifted - (((shifted % width) + width) % width)) / width;
    };
    expect(bucket(min)).toBe(bucket(max));
  }

  #checkExport(): void {
    const exported = new Map<string, number>();
    for (const { series, rows } of this.shard.export().rows) {
      const key = this.shard.index.key(series);
      exported.set(key, (exported.get(key) ?? 0) + rows.count);
    }
    const expected = [...this.model.series].map(([key, points]): [string, number] => [
      key,
      points.size,
    ]);
    expect(exported).toEqual(new Map(expected));
  }

  #checkOldest(): void {
    const oldest = this.#scans.shift();
    if (oldest !== undefined) this.check(oldest);
  }

  #openScan(fixed: Partial<ShardScanRequest> = {}): OpenScan {
    const { index } = this.shard;
    const number = index.findMeasurement(measurement);
    const request = { ...this.#request(), ...fixed, measurement: Math.max(number, 0) };
    const scan =
      number < 0
        ? { fieldTypes: [], series: new Uint32Array(0), cursor: neverRead, close() {} }
        : inOneGo(this.shard.scan(request).slices);
    const keys = new Map([...scan.series].map((series) => [series, index.key(series)]));
    const expected = new Map(
      [...this.model.series.keys()].map((key) => [key, this.model.rows(key, request)]),
    );
    return { scan, request, keys, expected };
  }

  #request(): Omit<ShardScanRequest, 'measurement'> {
    const from = this.#below(lastTime);
    const shape = this.#below(5);
    const wanted = fields.filter(() => this.#below(2) === 0).map(({ name }) => name);
    if (this.#below(10) === 0) wanted.push('unknown');
    const base = {
      from: this.#below(4) === 0 ? -100 : from,
      to: this.#below(4) === 0 ? 1e9 : from + this.#below(lastTime - from),
      fields: wanted.length === 0 ? ['float'] : wanted,
      descending: this.#below(2) === 0,
    };
    if (shape === 0) return { ...base, rowsPerSeries: 1 };
    if (shape === 1) return { ...base, rowsPerSeries: 1 + this.#below(40) };
    if (shape === 2) {
      const width = [0n, 25n, 100n, 1000n][this.#below(4)]!;
      return { ...base, summaries: { width, offset: BigInt(this.#below(200) - 100) } };
    }
    const number = base.fields.findIndex((name) => name === 'float' || name === 'integer');
    if (shape === 3 && number >= 0) {
      const op = (['>', '>=', '<', '<=', '='] as const)[this.#below(5)]!;
      return { ...base, bounds: [{ field: number, op, value: this.#below(100) }] };
    }
    return base;
  }

  delete(): void {
    const keys = Array.from({ length: 1 + this.#below(3) }, () => this.#key());
    const from = this.#below(lastTime);
    const isAll = this.#below(6) === 0;
    const to = from + this.#below(isAll ? 1 : 150);
    const span = isAll ? { from: -1e9, to: 1e9 } : { from, to };
    const entry: Entry = { kind: 'delete', keys, ...span };
    this.#log.push(entry);
    this.shard.appliedIndex = this.#log.length;
    const emptied = new Set(
      keys
        .filter((key) => findSeries(this.shard, key) >= 0)
        .filter((key) => {
          this.model.delete(key, span.from, span.to);
          return !this.model.series.has(key);
        }),
    );
    expect(this.#apply(entry)).toEqual([...emptied].sort());
  }

  /** Returns the keys of the series it removed. */
  #apply(entry: Entry): string[] {
    const { shard } = this;
    if (entry.kind === 'points') {
      appendPoints(shard, measurement, fields, entry.points);
      return [];
    }
    const series = entry.keys.map((key) => findSeries(shard, key)).filter((found) => found >= 0);
    const empty = shard.deleteRange(Uint32Array.from(series), entry.from, entry.to);
    const keys = Array.from(empty, (number) => shard.index.key(number));
    for (const number of empty) shard.index.removeSeries(number);
    return keys.sort();
  }

  #points(): ModelPoint[] {
    if (this.#below(3) > 0) return Array.from({ length: 1 + this.#below(8) }, () => this.#point());
    // A run, as a client sends it.
    const key = this.#key();
    const start = this.#below(lastTime);
    const stride = 1 + this.#below(3);
    return Array.from({ length: 5 + this.#below(60) }, (_, i) => ({
      key,
      time: start + i * stride,
      values: this.#values(1),
    }));
  }

  #point(): ModelPoint {
    return { key: this.#key(), time: this.#below(lastTime), values: this.#values(2) };
  }

  #values(sparsity: number): Values {
    const values: Values = new Map();
    for (const { name, type } of fields) {
      const odds = name === 'rare' ? 20 : sparsity;
      if (this.#below(odds) === 0) values.set(name, this.#value(type));
    }
    if (values.size === 0) values.set('float', this.#below(100));
    return values;
  }

  #value(type: FieldType): Scalar {
    switch (type) {
      case 'float':
        // Halves add up exactly, in any order.
        return this.#below(200) / 2;
      case 'integer':
        return this.#below(40) === 0 ? 2n ** 62n + BigInt(this.#below(9)) : this.#below(100);
      case 'unsigned':
        return this.#below(60) === 0 ? 2n ** 63n + BigInt(this.#below(9)) : this.#below(100);
      case 'string':
        return `text ${this.#below(5)}`;
      case 'boolean':
        return this.#below(2);
    }
  }

  #key(): string {
    return `${measurement},host=h${this.#below(6)}`;
  }

  #below(n: number): number {
    return Math.floor(this.#rng.next() * n);
  }

  #open(): Shard {
    const clock: Clock = { now: () => this.#now, monotonic: () => this.#now };
    const parts = smallParts();
    const { disk } = this;
    return openShard({ disk, clock, directory, startSeconds, parts, coldAfterMs: 200 });
  }
}

function neverRead(): never {
  throw new Error('there is no series');
}

function meets(row: ModelRow, bounds: ShardScanRequest['bounds'] & {}): boolean {
  return bounds.every(({ field, op, value }) => {
    const is = row.values[field];
    if (typeof is !== 'number' && typeof is !== 'bigint') return false;
    if (op === '>') return is > value;
    if (op === '>=') return is >= value;
    if (op === '<') return is < value;
    if (op === '<=') return is <= value;
    return Number(is) === value;
  });
}
