// The short way from a line's key to the form of series-key.ts, for keys as nearly all are: ASCII, and
// nothing escaped. When there are many new series, this is where their time would go.

import { backslash, comma, equals } from './characters.ts';

/** Sorted by insertion, so not too many. */
const maxTags = 64;
const time = Buffer.from('time');
const noKey = Buffer.alloc(0);

export class PlainKey {
  /** The key with its tags sorted: `key[0 .. length)`. */
  key: Buffer = noKey;
  view: DataView = new DataView(noKey.buffer, noKey.byteOffset, 0);
  length = 0;
  /** Where its measurement ends. */
  measurementEnd = 0;
  // Positions of each tag: start of its key, its equals sign, its end.
  private readonly starts = new Int32Array(maxTags);
  private readonly middles = new Int32Array(maxTags);
  private readonly ends = new Int32Array(maxTags);

  /** False when the key needs a closer look: it is not plain, not right, or has a tag named `time`. */
  read(buf: Buffer, start: number, end: number): boolean {
    const { starts, middles, ends } = this;
    let tags = 0;
    let middle = 0;
    let partStart = start;
    let measurementEnd = end;
    for (let i = start; ; i++) {
      const c = i < end ? buf[i]! : comma;
      if (c >= 0x80 || c === backslash) return false;
      if (c === comma) {
        if (tags === 0 && measurementEnd === end) {
          if (i === start) return false;
          measurementEnd = i;
        } else {
          if (tags === maxTags || middle === 0 || middle + 1 === i) return false;
          starts[tags] = partStart;
          middles[tags] = middle;
          ends[tags] = i;
          if (!this.insert(buf, tags)) return false;
          tags++;
        }
        if (i === end) break;
        partStart = i + 1;
        middle = 0;
      } else if (c === equals && measurementEnd !== end) {
        if (middle !== 0 || i === partStart) return false;
        middle = i;
      }
    }
    this.write(buf, start, end, measurementEnd, tags);
    return true;
  }

  /** Moves the last tag to its place; false when it has none. */
  private insert(buf: Buffer, last: number): boolean {
    const { starts, middles, ends } = this;
    const start = starts[last]!;
    const middle = middles[last]!;
    const end = ends[last]!;
    if (middle - start === time.length && buf.compare(time, 0, 4, start, middle) === 0)
      return false;
    let i = last;
    for (; i > 0; i--) {
      const order = compare(buf, starts[i - 1]!, middles[i - 1]!, start, middle);
      if (order === 0) return false;
      if (order < 0) break;
      starts[i] = starts[i - 1]!;
      middles[i] = middles[i - 1]!;
      ends[i] = ends[i - 1]!;
    }
    starts[i] = start;
    middles[i] = middle;
    ends[i] = end;
    return true;
  }

  private write(
    buf: Buffer,
    start: number,
    end: number,
    measurementEnd: number,
    tags: number,
  ): void {
    if (this.key.length < end - start) {
      this.key = Buffer.allocUnsafeSlow(Math.max(1024, (end - start) * 2));
      this.view = new DataView(this.key.buffer, this.key.byteOffset, this.key.length);
    }
    const { key } = this;
    let n = 0;
    for (let i = start; i < measurementEnd; i++) key[n++] = buf[i]!;
    this.measurementEnd = n;
    for (let tag = 0; tag < tags; tag++) {
      key[n++] = comma;
      const stop = this.ends[tag]!;
      for (let i = this.starts[tag]!; i < stop; i++) key[n++] = buf[i]!;
    }
    this.length = n;
  }
}

function compare(buf: Buffer, a: number, aEnd: number, b: number, bEnd: number): number {
  const length = Math.min(aEnd - a, bEnd - b);
  for (let i = 0; i < length; i++) {
    const difference = buf[a + i]! - buf[b + i]!;
    if (difference !== 0) return difference;
  }
  return aEnd - a - (bEnd - b);
}
