// A hash with fields that expire, as the commands of plain hashes see it: a map without its expired
// fields.

import { Slice } from '../../../bytes.ts';
import type { FieldVisitor, Row, Rows, Shape } from '../../../rows.ts';
import { Shape as Shapes } from '../../../rows.ts';
import { TimedMap } from '../../../timed-map.ts';

/** Methods that hash commands call. */
type MapRows = Pick<
  Rows,
  | 'now'
  | 'random'
  | 'find'
  | 'shape'
  | 'count'
  | 'footprint'
  | 'field'
  | 'fieldAt'
  | 'eachField'
  | 'scanFields'
  | 'putField'
  | 'removeField'
>;

/** Beyond so many fields the one at an index is looked for by its hash. */
const walkedFields = 2048;
const hashes = 2 ** 48;

/** State of one run of one command. */
export class TimedRows implements MapRows {
  readonly #rows: Rows;
  readonly #map = new TimedMap();
  readonly #keepsTimes: boolean;
  readonly #value = new Slice();
  /** Fields that are due, of the row looked at last; -1 before they are counted. */
  #due: number;
  /** Given out by `fieldAt` for other indexes. */
  readonly #given = new Map<string, number>();

  /** With `keepsTimes`, a field that is set keeps its time. `due` fields are known to be due; -1 when that is not known. */
  constructor(rows: Rows, keepsTimes: boolean, due = -1) {
    this.#rows = rows;
    this.#keepsTimes = keepsTimes;
    this.#due = due;
  }

  /** Rows for transforms; those of plain hashes call only methods defined here. */
  get rows(): Rows {
    return this as unknown as Rows;
  }

  get now(): number {
    return this.#rows.now;
  }

  random(): number {
    return this.#rows.random();
  }

  find(b: Buffer, s: number, n: number): Row {
    return this.#rows.find(b, s, n);
  }

  shape(row: Row): Shape {
    const shape = this.#rows.shape(row);
    return shape === Shapes.timed ? Shapes.map : shape;
  }

  footprint(row: Row): number {
    return this.#rows.footprint(row);
  }

  count(row: Row): number {
    if (this.#rows.count(row) === 0) return 0;
    this.#map.load(this.#rows, row);
    if (this.#due < 0) this.#due = this.#map.countDue(this.#rows, row, this.now, Infinity);
    return this.#map.fields - this.#due;
  }

  #isLive(time: number): boolean {
    return time === 0 || time > this.now;
  }

  field(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    this.#map.load(this.#rows, row);
    return this.#isLive(this.#map.find(this.#rows, row, b, s, n, out));
  }

  eachField(row: Row, visit: FieldVisitor): void {
    this.#map.each(this.#rows, row, this.now, 0, Infinity, visit);
  }

  scanFields(row: Row, cursor: number, budget: number, visit: FieldVisitor): number {
    return this.#map.each(this.#rows, row, this.now, cursor, budget, visit);
  }

  /**
   * In a large map, the index selects a position among the hashes, and the first field from there
   * that no other index has selected: nearly uniform.
   */
  fieldAt(row: Row, index: number, field: Slice, value: Slice): void {
    const count = this.count(row);
    const isWalked = count <= walkedFields;
    let left = isWalked ? index : 0;
    let isFound = false;
    const take: FieldVisitor = (fb, fs, fn, vb, vs, vn) => {
      if (left-- > 0 || (!isWalked && !this.#give(fb, fs, fn, index))) return false;
      field.set(fb, fs, fn);
      value.set(vb, vs, vn);
      isFound = true;
      return true;
    };
    const from = isWalked ? 0 : Math.floor((index / count) * hashes);
    this.#map.each(this.#rows, row, this.now, from, Infinity, take);
    if (!isFound) this.#map.each(this.#rows, row, this.now, 0, Infinity, take);
  }

  /** False when the field was given out for another index. */
  #give(b: Buffer, s: number, n: number, index: number): boolean {
    const name = b.toString('latin1', s, s + n);
    if ((this.#given.get(name) ?? index) !== index) return false;
    this.#given.set(name, index);
    return true;
  }

  putField(
    row: Row,
    fb: Buffer,
    fs: number,
    fn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): boolean {
    const rows = this.#rows;
    this.#map.load(rows, row);
    const old = this.#map.find(rows, row, fb, fs, fn);
    const isNew = !this.#isLive(old);
    if (isNew && old > 0) this.#due = -1;
    this.#value.set(vb, vs, vn);
    this.#map.put(rows, row, fb, fs, fn, this.#value, this.#keepsTimes && !isNew ? old : 0);
    this.#map.save(rows, row);
    return isNew;
  }

  removeField(row: Row, b: Buffer, s: number, n: number): boolean {
    const rows = this.#rows;
    if (!this.field(row, b, s, n)) return false;
    this.#map.remove(rows, row, b, s, n);
    this.#map.save(rows, row, false);
    return true;
  }
}
