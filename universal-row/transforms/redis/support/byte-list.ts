import { copyBytes, emptyBytes, viewed } from '../../../bytes.ts';

const keptBytes = 64 * 1024;
const keptItems = 4096;

/**
 * Copies of byte strings, each with a number, one after another in one buffer: data a command keeps
 * beyond the next write. A command may keep one for all its runs and `clear` it: then a run
 * allocates nothing unless it needs more room than any before.
 */
export class ByteList {
  buf: Buffer = emptyBytes;
  count = 0;
  private ends = new Float64Array(8);
  private scores = new Float64Array(8);

  add(b: Buffer, s: number, n: number, score = 0): void {
    const count = this.count;
    if (count === this.ends.length) this.growItems();
    const at = count === 0 ? 0 : this.ends[count - 1]!;
    if (at + n > this.buf.length) this.growBytes(at, n);
    copyBytes(this.buf, at, b, s, n);
    this.ends[count] = at + n;
    this.scores[count] = score;
    this.count = count + 1;
  }

  /** Total size. */
  get bytes(): number {
    return this.start(this.count);
  }

  /** Keeps the first so many. */
  cut(count: number): void {
    this.count = count;
  }

  mark(): number {
    return this.count;
  }

  rollback(mark: number): void {
    this.count = mark;
  }

  start(i: number): number {
    return i === 0 ? 0 : this.ends[i - 1]!;
  }

  length(i: number): number {
    return this.ends[i]! - this.start(i);
  }

  score(i: number): number {
    return this.scores[i]!;
  }

  setScore(i: number, score: number): void {
    this.scores[i] = score;
  }

  /** Empties the list, and gives memory back if it was unusually much. */
  clear(): void {
    this.count = 0;
    if (this.buf.length > keptBytes) this.buf = emptyBytes;
    if (this.ends.length > keptItems) {
      this.ends = new Float64Array(8);
      this.scores = new Float64Array(8);
    }
  }

  private growItems(): void {
    const ends = new Float64Array(this.ends.length * 2);
    ends.set(this.ends);
    this.ends = ends;
    const scores = new Float64Array(ends.length);
    scores.set(this.scores);
    this.scores = scores;
  }

  private growBytes(used: number, more: number): void {
    const bytes = Math.max(256, used + more, this.buf.length * 2);
    const larger = viewed(Buffer.allocUnsafeSlow(bytes));
    this.buf.copy(larger, 0, 0, used);
    this.buf = larger;
  }
}
