// A copy of a row's contents that outlives the next write, to be stored under another key or in
// another table.

import { emptyBytes, Slice } from '../../../bytes.ts';
import { endOfRecords, type Row, type Rows, Shape } from '../../../rows.ts';
import { step, type Steps } from '../../../steps.ts';
import { ByteList } from './byte-list.ts';
import { copyValueInSteps, putValueInSteps } from './large-values.ts';
import {
  eachElementInSteps,
  eachFieldInSteps,
  eachRankInSteps,
  eachRecordInSteps,
  eachSized,
  type Find,
} from './long-walks.ts';

export class RowCopy {
  #shape: Shape = Shape.none;
  #expireAt = 0;
  /** The value; elements or members; or fields (keys of records) and their values in turn. */
  readonly #items = new ByteList();
  readonly #value = new Slice();
  /** The value, where it is taken in steps. */
  #large: Buffer = emptyBytes;
  /** For a stream, its state. */
  #state: Buffer = emptyBytes;

  take(rows: Rows, row: Row): void {
    const items = this.#items;
    items.clear();
    this.#shape = rows.shape(row);
    this.#expireAt = rows.expireAt(row);
    const size = rows.count(row);
    switch (this.#shape) {
      case Shape.value:
        rows.value(row, this.#value);
        items.add(this.#value.b, this.#value.s, this.#value.n);
        this.#value.b = emptyBytes;
        break;
      case Shape.map:
        rows.eachField(row, (fb, fs, fn, vb, vs, vn) => {
          items.add(fb, fs, fn);
          items.add(vb, vs, vn);
        });
        break;
      case Shape.set:
        rows.eachField(row, (b, s, n) => items.add(b, s, n));
        break;
      case Shape.ranked:
        rows.eachByRank(row, 0, size, false, (b, s, n, score) => items.add(b, s, n, score));
        break;
      case Shape.array:
        rows.eachElement(row, 0, size, false, (b, s, n) => items.add(b, s, n));
        break;
      case Shape.timed:
      case Shape.stream:
        this.#takeState(rows, row);
        rows.eachStreamRecord(
          row,
          emptyBytes,
          endOfRecords,
          false,
          size,
          (kb, ks, kn, vb, vs, vn) => {
            items.add(kb, ks, kn);
            items.add(vb, vs, vn);
          },
        );
        break;
      default:
        break;
    }
  }

  /** As `take`, in steps. */
  *takeInSteps(rows: Rows, find: Find): Steps {
    const items = this.#items;
    items.clear();
    const row = find();
    this.#shape = rows.shape(row);
    this.#expireAt = rows.expireAt(row);
    const size = rows.count(row);
    switch (this.#shape) {
      case Shape.value:
        this.#large = yield* copyValueInSteps(rows, find);
        break;
      case Shape.map:
        yield* eachFieldInSteps(
          rows,
          find,
          (fb, fs, fn, vb, vs, vn) => {
            items.add(fb, fs, fn);
            items.add(vb, vs, vn);
          },
          items,
        );
        break;
      case Shape.set:
        yield* eachFieldInSteps(rows, find, (b, s, n) => items.add(b, s, n), items);
        break;
      case Shape.ranked:
        yield* eachRankInSteps(
          rows,
          find,
          size,
          (b, s, n, score) => items.add(b, s, n, score),
          items,
        );
        break;
      case Shape.timed:
      case Shape.stream:
        this.#takeState(rows, row);
        yield* eachRecordInSteps(
          rows,
          find,
          emptyBytes,
          endOfRecords,
          (kb, ks, kn, vb, vs, vn) => {
            items.add(kb, ks, kn);
            items.add(vb, vs, vn);
          },
          items,
        );
        break;
      default:
        yield* eachElementInSteps(
          rows,
          find,
          0,
          size,
          false,
          (b, s, n) => items.add(b, s, n),
          items,
        );
    }
  }

  /** A timed map's expiry in the engine follows from its own time and those of its fields. */
  get #expires(): boolean {
    return this.#expireAt !== 0 || this.#shape === Shape.timed;
  }

  #takeState(rows: Rows, row: Row): void {
    rows.streamState(row, this.#value);
    this.#state = this.#value.copy();
    this.#value.b = emptyBytes;
  }

  #create(rows: Rows, b: Buffer, s: number, n: number): Row {
    const row = rows.create(b, s, n, this.#shape);
    if (this.#shape >= Shape.stream) rows.setStreamState(row, this.#state, 0, this.#state.length);
    return row;
  }

  /** As `put`, in steps. */
  *putInSteps(rows: Rows, b: Buffer, s: number, n: number): Steps {
    const items = this.#items;
    if (this.#shape === Shape.value) {
      const { length } = this.#large;
      yield* putValueInSteps(rows, b, s, n, this.#large, 0, length, this.#expireAt);
      this.#large = emptyBytes;
      return;
    }
    yield* step(() => {
      this.#create(rows, b, s, n);
    });
    let into: Row = 0;
    let last = -1;
    yield* eachSized(
      items.count,
      (i) => items.length(i),
      (i) => {
        // Each step begins anew with the row, and with where the one before it ended.
        if (i !== last + 1 || i % 64 === 0 || into === 0) into = rows.find(b, s, n);
        last = i;
        this.#putItem(rows, into, i);
      },
    );
    yield* step(() => {
      if (this.#expires) rows.setExpireAt(rows.find(b, s, n), this.#expireAt);
    });
  }

  /** Stores the copied row under this key, with the same expiry. */
  put(rows: Rows, b: Buffer, s: number, n: number): void {
    const items = this.#items;
    if (this.#shape === Shape.value) {
      rows.putValue(b, s, n, items.buf, 0, items.length(0), this.#expireAt);
      return;
    }
    const row = this.#create(rows, b, s, n);
    for (let i = 0; i < items.count; i++) this.#putItem(rows, row, i);
    if (this.#expires) rows.setExpireAt(row, this.#expireAt);
  }

  clear(): void {
    this.#items.clear();
  }

  #putItem(rows: Rows, row: Row, i: number): void {
    const items = this.#items;
    const { buf } = items;
    const s = items.start(i);
    const n = items.length(i);
    switch (this.#shape) {
      case Shape.map:
        if (i % 2 === 1) {
          rows.putField(row, buf, items.start(i - 1), items.length(i - 1), buf, s, n);
        }
        break;
      case Shape.timed:
      case Shape.stream:
        if (i % 2 === 1) {
          rows.addStreamRecord(row, buf, items.start(i - 1), items.length(i - 1), buf, s, n);
        }
        break;
      case Shape.set:
        rows.putField(row, buf, s, n, emptyBytes, 0, 0);
        break;
      case Shape.ranked:
        rows.putScore(row, buf, s, n, items.score(i));
        break;
      default:
        rows.push(row, false, buf, s, n);
        break;
    }
  }
}
