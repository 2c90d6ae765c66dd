// Contents of an index, and the few operations that change them. The caller logs each change
// (series-index.ts) or has read it from the log (index-replay.ts).

import { copyBytes, viewed } from '../../../universal-row/bytes.ts';
import { keyedHash } from '../../../universal-row/keyed-hash.ts';
import { ByteArena } from './byte-arena.ts';
import type { MemoryTally } from './growing.ts';
import { KeyOrder } from './key-order.ts';
import { KeyShape } from './measurement-index.ts';
import { matchBytes } from './match-bytes.ts';
import { MeasurementIndex } from './measurement-index.ts';
import { SeriesRows } from './series-rows.ts';
import { SeriesTable } from './series-table.ts';
import type { Tag } from './tag.ts';
import { ValueDictionary } from './value-dictionary.ts';

/** Assumed size of the objects of a shape. */
const shapeBytes = 200;

export class IndexState {
  readonly tally: MemoryTally = { bytes: 0 };
  readonly arena = new ByteArena(this.tally);
  readonly rows = new SeriesRows(this.arena, this.tally);
  readonly table = new SeriesTable(this.rows, this.tally);
  readonly measurements: MeasurementIndex[] = [];
  /** By measurement. */
  readonly orders: KeyOrder[] = [];
  removedCount = 0;
  #hasSkipped = false;
  readonly #measurementKeys = new ValueDictionary(this.arena, this.tally);
  readonly #measurementsByName = new Map<string, MeasurementIndex>();
  /** The measurement asked for last, likely to be the next. */
  #lately: MeasurementIndex | undefined = undefined;

  measurementNamed(name: string): MeasurementIndex | undefined {
    return this.#measurementsByName.get(name);
  }

  /** The measurement whose name, as in series keys, is these bytes. */
  findMeasurement(buf: Buffer, start: number, end: number): MeasurementIndex | undefined {
    const lately = this.#lately;
    if (lately !== undefined && matchBytes(lately.key, buf, start, end) === end) return lately;
    const number = this.#measurementKeys.find(buf, start, end);
    if (number !== 0) this.#lately = this.measurements[number - 1];
    return number === 0 ? undefined : this.#lately;
  }

  addMeasurement(buf: Buffer, start: number, end: number): MeasurementIndex {
    const number = this.#measurementKeys.intern(buf, start, end) - 1;
    const key = viewed(Buffer.allocUnsafeSlow(end - start));
    copyBytes(key, 0, buf, start, end - start);
    const shape = this.rows.shapes.length;
    const measurement = new MeasurementIndex(number, key, shape, this.arena, this.tally);
    this.measurements.push(measurement);
    this.orders.push(new KeyOrder(this.rows, measurement, this.tally));
    this.#measurementsByName.set(measurement.name, measurement);
    this.#addShape(measurement.root);
    return measurement;
  }

  addShape(parent: KeyShape, tag: Tag): KeyShape {
    return this.#addShape(new KeyShape(this.rows.shapes.length, parent.measurement, parent, tag));
  }

  /** `values` has a number for each tag of the shape; `hash` is the key's `keyedHash`. */
  addSeries(shape: KeyShape, values: readonly number[], hash: number): number {
    const series = this.rows.append(shape, values);
    this.table.add(series, hash);
    return series;
  }

  /** As `addSeries` of one that was stored. */
  restoreSeries(shape: KeyShape, values: readonly number[]): void {
    const series = this.rows.append(shape, values);
    this.table.add(series, this.#hashOf(series));
  }

  removeSeries(series: number): void {
    this.table.remove(series, this.#hashOf(series));
    this.rows.remove(series);
    this.removedCount++;
  }

  get hasRemoved(): boolean {
    return this.#hasSkipped || this.removedCount > 0;
  }

  /** Takes numbers that series removed long ago have had. */
  skipSeries(measurement: MeasurementIndex, count: number): void {
    this.#hasSkipped = true;
    for (let i = 0; i < count; i++) this.rows.appendRemoved(measurement.root);
  }

  #hashOf(series: number): number {
    const keys = this.rows.keyBytes(series);
    return keyedHash(keys, 0, this.rows.keyLength(series));
  }

  #addShape(shape: KeyShape): KeyShape {
    this.rows.shapes.push(shape);
    this.tally.bytes += shapeBytes;
    return shape;
  }
}
