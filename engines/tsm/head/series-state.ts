// A head's state by series number: position of the newest row, and time range of the rows.

const initialSeries = 64;
/** Size of all arrays together, per series. */
const seriesBytes = 29;

export class SeriesState {
  /** The newest row in its table plus one; 0 when the series has none. */
  last = new Uint32Array(initialSeries);
  /** Ordinal of its table. */
  table = new Uint32Array(initialSeries);
  /** Rows it has, deleted ones too. */
  rows = new Uint32Array(initialSeries);
  minTime = new Float64Array(initialSeries);
  maxTime = new Float64Array(initialSeries);
  /** 1 when its rows are not in the order of their times, or two have the same. */
  unordered = new Uint8Array(initialSeries);
  bytes = initialSeries * seriesBytes;

  get capacity(): number {
    return this.last.length;
  }

  /** Makes room for the series numbered `series`. */
  reserve(series: number): void {
    let capacity = this.capacity;
    if (series < capacity) return;
    while (capacity <= series) capacity *= 2;
    const larger = <T extends Uint32Array | Float64Array | Uint8Array>(old: T, fresh: T): T => {
      fresh.set(old);
      return fresh;
    };
    this.last = larger(this.last, new Uint32Array(capacity));
    this.table = larger(this.table, new Uint32Array(capacity));
    this.rows = larger(this.rows, new Uint32Array(capacity));
    this.minTime = larger(this.minTime, new Float64Array(capacity));
    this.maxTime = larger(this.maxTime, new Float64Array(capacity));
    this.unordered = larger(this.unordered, new Uint8Array(capacity));
    this.bytes = capacity * seriesBytes;
  }

  has(series: number): boolean {
    return series < this.capacity && this.last[series] !== 0;
  }
}
