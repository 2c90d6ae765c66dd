// Expiry times of rows: a binary heap of (time, row), with the position of each row in the heap. Nothing is allocated
// until the first row gets an expiry.

import { FloatColumn, IntColumn } from './long-column.ts';

export class ExpiryHeap {
  size = 0;
  private readonly times = new FloatColumn();
  private readonly rows = new IntColumn();
  /** By row, its index in the heap plus one; 0 for none. */
  private readonly places = new IntColumn();
  private scratch = new Int32Array(0);

  /** 0 for never. */
  get(row: number): number {
    if (this.size === 0 || row >= this.places.length) return 0;
    const place = this.places.at(row);
    return place === 0 ? 0 : this.times.at(place - 1);
  }

  /** Sets the row's time, or with 0 forgets the row. */
  set(row: number, time: number): void {
    const place = this.places.get(row);
    if (time === 0) {
      if (place !== 0) this.#removeAt(place - 1);
      return;
    }
    if (place !== 0) {
      this.#settle(place - 1, time, row);
      return;
    }
    this.places.reserve(row + 1);
    this.rows.reserve(this.size + 1);
    this.times.reserve(this.size + 1);
    this.#settle(this.size++, time, row);
  }

  /** Rows due at or before `now`, at most `limit`, the soonest first and then about in order. */
  due(now: number, limit: number, visit: (row: number) => void): void {
    if (this.size === 0 || this.times.at(0) > now || limit <= 0) return;
    // Breadth first through the part of the heap that is due, collected first: `visit` may drop rows.
    const most = Math.min(limit, this.size);
    if (this.scratch.length < most) this.scratch = new Int32Array(most);
    const found = this.scratch;
    found[0] = 0;
    let count = 1;
    for (let i = 0; i < count && count < most; i++) {
      const child = 2 * found[i]! + 1;
      for (let c = child; c < child + 2 && c < this.size && count < most; c++) {
        if (this.times.at(c) <= now) found[count++] = c;
      }
    }
    for (let i = 0; i < count; i++) found[i] = this.rows.at(found[i]!);
    for (let i = 0; i < count; i++) {
      const row = found[i]!;
      const time = this.get(row);
      if (time !== 0 && time <= now) visit(row);
    }
  }

  /** One of them, by a number from 0 to below 1; 0 when there is none. */
  any(random: number): number {
    return this.size === 0 ? 0 : this.rows.get(Math.floor(random * this.size));
  }

  bytes(): number {
    return (
      this.times.byteLength +
      this.rows.byteLength +
      this.places.byteLength +
      this.scratch.byteLength
    );
  }

  #removeAt(i: number): void {
    this.places.set(this.rows.at(i), 0);
    const last = --this.size;
    if (i !== last) this.#settle(i, this.times.at(last), this.rows.at(last));
    if (last === 0) this.#release();
  }

  #release(): void {
    if (this.rows.length < 1024) return;
    this.times.clear();
    this.rows.clear();
    this.places.clear();
    this.scratch = new Int32Array(0);
  }

  /** Puts the row at `i`, whose old content is of no use, or where it belongs above or below. */
  #settle(i: number, time: number, row: number): void {
    const { times, rows, places } = this;
    let at = i;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (times.at(parent) <= time) break;
      times.set(at, times.at(parent));
      const moved = rows.at(parent);
      rows.set(at, moved);
      places.set(moved, at + 1);
      at = parent;
    }
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.size) break;
      if (child + 1 < this.size && times.at(child + 1) < times.at(child)) child++;
      if (times.at(child) >= time) break;
      times.set(at, times.at(child));
      const moved = rows.at(child);
      rows.set(at, moved);
      places.set(moved, at + 1);
      at = child;
    }
    times.set(at, time);
    rows.set(at, row);
    places.set(row, at + 1);
  }
}
