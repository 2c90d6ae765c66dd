// One column of a batch while it is being filled. As long as every point so far has the field, the reader
// appends to `numbers` directly; everything rarer goes through `claim`.

import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type { PointColumn } from '../../../universal-row/series/point-batch.ts';

const lowWord = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? 0 : 1;

const noNumbers = new Float64Array(0);

export class BatchColumn implements PointColumn {
  readonly field: string;
  readonly type: FieldType;
  numbers: Float64Array = noNumbers;
  wide: BigInt64Array | undefined = undefined;
  present: Uint8Array | undefined = undefined;
  /** Not updated while `ready` is 0 or more: `settle` sets it then. */
  count = 0;
  /**
   * The next row that can be appended directly. It is one beyond the current row if that row has the field already. -1 if
   * the column needs `claim`: it is not in the batch yet, has gaps, or is wide.
   */
  ready = -1;
  /** In the batch under way. */
  active = false;
  /** For values that are read and then left out. */
  readonly ignored: boolean;
  private words: Int32Array | undefined = undefined;
  private sparePresent: Uint8Array | undefined = undefined;

  constructor(field: string, type: FieldType, ignored: boolean) {
    this.field = field;
    this.type = type;
    this.ignored = ignored;
  }

  activate(capacity: number): void {
    this.active = true;
    this.reserve(capacity);
    this.ready = 0;
    this.count = 0;
  }

  /** Leaves the batch, and keeps its arrays for the next one. */
  clear(): void {
    this.active = false;
    this.ready = -1;
    this.count = 0;
    this.wide = undefined;
    this.words = undefined;
    if (this.present !== undefined) this.sparePresent = this.present;
    this.present = undefined;
  }

  reserve(capacity: number): void {
    if (this.numbers.length < capacity) {
      const numbers = new Float64Array(capacity);
      numbers.set(this.numbers);
      this.numbers = numbers;
    }
    if (this.wide !== undefined && this.wide.length < capacity) {
      const wide = new BigInt64Array(capacity);
      wide.set(this.wide);
      this.setWide(wide);
    }
    if (this.present !== undefined && this.present.length < capacity) {
      const present = new Uint8Array(capacity);
      present.set(this.present);
      this.present = present;
    }
  }

  private setWide(wide: BigInt64Array): void {
    this.wide = wide;
    this.words = new Int32Array(wide.buffer);
  }

  /** Marks that `row`, the row being read, has the field. The row may be marked already. */
  claim(row: number): void {
    if (this.ready >= 0) {
      if (this.ready >= row) {
        this.ready = row + 1;
        return;
      }
      this.count = this.ready;
      this.ready = -1;
      this.leaveGaps();
    } else if (this.present === undefined) {
      if (this.count >= row) {
        this.count = row + 1;
        return;
      }
      this.leaveGaps();
    }
    const present = this.present!;
    if (present[row] === 0) {
      present[row] = 1;
      this.count++;
    }
  }

  /** From now on it is written down which rows have the field: the first `count` so far. */
  private leaveGaps(): void {
    let present = this.sparePresent;
    if (present === undefined || present.length < this.numbers.length) {
      present = new Uint8Array(this.numbers.length);
    } else {
      present.fill(0, this.count);
    }
    present.fill(1, 0, this.count);
    this.present = present;
  }

  /** The row under way does not have the field after all. */
  disclaim(row: number): void {
    if (this.ready >= 0) {
      if (this.ready > row) this.ready = row;
    } else if (this.present === undefined) {
      if (this.count > row) this.count = row;
    } else if (this.present[row] === 1) {
      this.present[row] = 0;
      this.count--;
    }
  }

  /** Sets the value of a claimed row. */
  setNumber(row: number, value: number): void {
    if (this.words === undefined) this.numbers[row] = value;
    else this.setWords(row, Math.floor(value / 0x100000000) | 0, value | 0);
  }

  /** The same with a 64-bit integer, which makes the column wide. */
  setInteger(row: number, high: number, low: number): void {
    if (this.words === undefined) {
      const wide = new BigInt64Array(this.numbers.length);
      for (let i = 0; i < row; i++) {
        if (this.present === undefined || this.present[i] === 1) wide[i] = BigInt(this.numbers[i]!);
      }
      this.setWide(wide);
      if (this.ready >= 0) {
        this.count = this.ready;
        this.ready = -1;
      }
    }
    this.setWords(row, high, low);
  }

  private setWords(row: number, high: number, low: number): void {
    this.words![row * 2 + lowWord] = low;
    this.words![row * 2 + 1 - lowWord] = high;
  }

  /** The batch is full: makes `count` and `present` right. */
  settle(rows: number): void {
    if (this.ready >= 0) {
      this.count = this.ready;
      this.ready = -1;
    }
    if (this.present === undefined && this.count < rows) this.leaveGaps();
  }
}
