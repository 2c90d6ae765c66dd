// The fields of a hash, whether it has fields that expire or not, for commands that set their times.

import type { Arguments } from '../../../arguments.ts';
import { Slice } from '../../../bytes.ts';
import { wrongType } from '../../../errors.ts';
import { type Row, type Rows, Shape } from '../../../rows.ts';
import { step, type Steps } from '../../../steps.ts';
import { TimedMap } from '../../../timed-map.ts';
import { ByteList } from '../support/byte-list.ts';
import { eachFieldInSteps, eachSized } from '../support/long-walks.ts';
import { createRow } from '../support/typed-row.ts';

export class HashFields {
  #rows: Rows | undefined;
  #row: Row = 0;
  #isTimed = false;
  readonly #map = new TimedMap();
  /** Value of the field found last; valid until the next write. */
  readonly value = new Slice();

  /** Opens the hash under the key in word 1; there may be none. */
  open(rows: Rows, args: Arguments): this {
    this.#rows = rows;
    this.#row = rows.find(args.buf, args.starts[1]!, args.lens[1]!);
    const shape = rows.shape(this.#row);
    if (this.#row !== 0 && shape !== Shape.map && shape !== Shape.timed) throw wrongType;
    this.#isTimed = shape === Shape.timed;
    if (this.#isTimed) this.#map.load(rows, this.#row);
    return this;
  }

  get isThere(): boolean {
    return this.#row !== 0;
  }

  get isTimed(): boolean {
    return this.#isTimed;
  }

  /** The time of the field in this word: 0 for never, -1 when there is no such field. Sets `value`. */
  find(args: Arguments, word: number): number {
    const { buf, starts, lens } = args;
    const rows = this.#rows!;
    if (this.#row === 0) return -1;
    if (!this.#isTimed) {
      return rows.field(this.#row, buf, starts[word]!, lens[word]!, this.value) ? 0 : -1;
    }
    const time = this.#map.find(rows, this.#row, buf, starts[word]!, lens[word]!, this.value);
    return time > 0 && time <= rows.now ? -1 : time;
  }

  /** Sets the field. A time other than 0 is only for a hash that is timed. */
  put(args: Arguments, word: number, value: Slice, time: number): void {
    const { buf, starts, lens } = args;
    const rows = this.#rows!;
    if (this.#row === 0) this.#row = createRow(rows, args, 1, Shape.map);
    const s = starts[word]!;
    if (!this.#isTimed) {
      const { b, s: vs, n } = value;
      rows.putField(this.#row, buf, s, lens[word]!, b, vs, n);
      return;
    }
    this.#map.put(rows, this.#row, buf, s, lens[word]!, value, time);
    this.#map.save(rows, this.#row);
  }

  remove(args: Arguments, word: number): void {
    const { buf, starts, lens } = args;
    const rows = this.#rows!;
    const isLast = rows.count(this.#row) === 1 || (this.#isTimed && this.#map.fields === 1);
    if (this.#isTimed) {
      this.#map.remove(rows, this.#row, buf, starts[word]!, lens[word]!);
      this.#map.save(rows, this.#row, false);
    } else rows.removeField(this.#row, buf, starts[word]!, lens[word]!);
    if (!isLast) return;
    this.#row = 0;
    this.#isTimed = false;
  }
}

/** Makes the hash under the key in word 1, or none, one whose fields can have times. */
export function* makeTimed(rows: Rows, args: Arguments): Steps {
  const { buf, starts, lens } = args;
  const find = (): Row => rows.find(buf, starts[1]!, lens[1]!);
  const shape = yield* step(() => rows.shape(find()));
  if (shape === Shape.timed) return;
  const items = new ByteList();
  let rowTime = 0;
  if (shape === Shape.map) {
    rowTime = yield* step(() => rows.expireAt(find()));
    yield* eachFieldInSteps(
      rows,
      find,
      (fb, fs, fn, vb, vs, vn) => {
        items.add(fb, fs, fn);
        items.add(vb, vs, vn);
      },
      items,
    );
  }
  const map = new TimedMap();
  yield* step(() => {
    const row = find();
    if (row !== 0) rows.drop(row);
    map.create(rows, buf, starts[1]!, lens[1]!, rowTime);
  });
  const value = new Slice();
  yield* eachSized(
    items.count / 2,
    (i) => items.length(2 * i) + items.length(2 * i + 1),
    (i) => {
      const row = find();
      map.load(rows, row);
      value.set(items.buf, items.start(2 * i + 1), items.length(2 * i + 1));
      map.put(rows, row, items.buf, items.start(2 * i), items.length(2 * i), value, 0);
      map.save(rows, row);
    },
  );
}
