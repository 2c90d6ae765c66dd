// Finds the end of a line: a newline that is neither inside a quoted string nor after a backslash. The scanner can
// stop at the end of a chunk and continue in the next one, so a line in many pieces is scanned once.
//
// On a well-formed line the scanner agrees with PointReader byte by byte. On other lines it decides how much of the
// input is the bad line, by InfluxDB's rules: a quote counts if there have been more equals signs than commas since
// the key.

import { backslash, comma, equals, hash, isBlank, newline, quote, space } from './characters.ts';

const before = 0;
const comment = 1;
const key = 2;
const fields = 3;
const text = 4;

export class LineEnd {
  private part = before;
  /** Backslashes directly before the next byte. */
  private backslashes = 0;
  /** Equals signs less commas among the fields. */
  private open = 0;

  /** The next byte is the first of a line. */
  restart(): void {
    this.part = before;
    this.backslashes = 0;
    this.open = 0;
  }

  /** The line under way is a comment. */
  get inComment(): boolean {
    return this.part === comment;
  }

  /** Index of the newline that ends the line, or -1 when it continues behind `end`. */
  find(buf: Buffer, start: number, end: number): number {
    let { part, backslashes, open } = this;
    let i = start;
    while (i < end && part === before) {
      const c = buf[i]!;
      if (!isBlank(c)) {
        if (c === newline) return i;
        part = c === hash ? comment : key;
        break;
      }
      i++;
    }
    if (part === comment) {
      const at = buf.indexOf(newline, i);
      this.part = comment;
      return at >= 0 && at < end ? at : -1;
    }
    for (; i < end; i++) {
      const c = buf[i]!;
      if (c === backslash) {
        backslashes++;
        continue;
      }
      if (c === newline) {
        if (part !== text && (backslashes & 1) === 0) return i;
      } else if (part === text) {
        if (c === quote && (backslashes & 1) === 0) part = fields;
      } else if (backslashes === 0) {
        if (part === key) {
          if (c === space) part = fields;
        } else if (c === equals) open++;
        else if (c === comma) open--;
        else if (c === quote && open > 0) part = text;
      }
      backslashes = 0;
    }
    this.part = part;
    this.backslashes = backslashes;
    this.open = open;
    return -1;
  }
}
