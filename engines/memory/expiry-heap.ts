// When rows cease to be: a binary heap of (time, row) with each row's place in it. Nothing is
// allocated until the first row gets an expiry.

const noNumbers = new Int32Array(0);

export class ExpiryHeap {
  size = 0;
  private times = new Float64Array(0);
  private rows = noNumbers;
  /** By row, its index in the heap plus one; 0 for none. */
  private places = noNumbers;
  private scratch = noNumbers;

  /** 0 for never. */
  get(row: number): number {
    if (this.size === 0 || row >= this.places.length) return 0;
    const place = this.places[row]!;
    return place === 0 ? 0 : this.times[place - 1]!;
  }

  /** Sets the row's time, or with 0 forgets the row. */
  set(row: number, time: number): void {
    const place = row < this.places.length ? this.places[row]! : 0;
    if (time === 0) {
      if (place !== 0) this.#removeAt(place - 1);
      return;
    }
    if (place !== 0) {
      this.#settle(place - 1, time, row);
      return;
    }
    if (row >= this.places.length) this.places = grown(this.places, row + 1);
    if (this.size === this.rows.length) {
      this.rows = grown(this.rows, this.size + 1);
      const times = new Float64Array(this.rows.length);
      times.set(this.times);
      this.times = times;
    }
    this.#settle(this.size++, time, row);
  }

  /** Rows due at or before `now`, at most `limit`, the soonest first and then about in order. */
  due(now: number, limit: number, visit: (row: number) => void): void {
    if (this.size === 0 || this.times[0]! > now || limit <= 0) return;
    // Breadth first through the part of the heap that is due, collected first: `visit` may drop rows.
    const most = Math.min(limit, this.size);
    if (this.scratch.length < most) this.scratch = new Int32Array(most);
    const found = this.scratch;
    found[0] = 0;
    let count = 1;
    for (let i = 0; i < count && count < most; i++) {
      const child = 2 * found[i]! + 1;
      for (let c = child; c < child + 2 && c < this.size && count < most; c++) {
        if (this.times[c]! <= now) found[count++] = c;
      }
    }
    for (let i = 0; i < count; i++) found[i] = this.rows[found[i]!]!;
    for (let i = 0; i < count; i++) {
      const row = found[i]!;
      const time = this.get(row);
      if (time !== 0 && time <= now) visit(row);
    }
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
    this.places[this.rows[i]!] = 0;
    const last = --this.size;
    if (i !== last) this.#settle(i, this.times[last]!, this.rows[last]!);
    if (last === 0) this.#release();
  }

  #release(): void {
    if (this.rows.length < 1024) return;
    this.times = new Float64Array(0);
    this.rows = noNumbers;
    this.places = noNumbers;
    this.scratch = noNumbers;
  }

  /** Puts the row at `i`, whose old content is of no use, or where it belongs above or below. */
  #settle(i: number, time: number, row: number): void {
    const { times, rows, places } = this;
    let at = i;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (times[parent]! <= time) break;
      times[at] = times[parent]!;
      places[(rows[at] = rows[parent]!)] = at + 1;
      at = parent;
    }
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.size) break;
      if (child + 1 < this.size && times[child + 1]! < times[child]!) child++;
      if (times[child]! >= time) break;
      times[at] = times[child]!;
      places[(rows[at] = rows[child]!)] = at + 1;
      at = child;
    }
    times[at] = time;
    rows[at] = row;
    places[row] = at + 1;
  }
}

function grown(from: Int32Array, need: number): Int32Array<ArrayBuffer> {
  const to = new Int32Array(Math.max(16, need, from.length + (from.length >>> 1)));
  to.set(from);
  return to;
}
