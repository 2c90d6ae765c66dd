// A map whose fields may expire, each at a time of its own: the contents of a row of shape `timed`.
// Times are milliseconds since 1970, 0 for never. A map without such fields is a row of shape
// `map`, which knows nothing of this.
//
//   state     ff | time of the row f64 | time of the next field f64 | seed u32 | fields u48 | fields with a time u48
//   01 hash u48, field              the field: its time u48 | its value
//   02 time u48, hash u48, field    the fields with a time, the soonest first; nothing inside
//
// Fields lie in the order of a hash that the seed makes hard to foresee, so that a walk has a
// number for a cursor. An engine has the earlier of the row's time and the next field's as the
// row's expiry. Code that hides expired rows calls `isTimedRowOver`, and drops fields by
// `dropDueFields` once they are due; until then readers hide them.

import { emptyBytes, Slice } from './bytes.ts';
import type { Row, RowReads, Rows } from './rows.ts';
import { Shape } from './rows.ts';

const stateBytes = 33;
/** No stream's state begins with it. */
const stateMark = 0xff;
const Kind = { field: 1, time: 2, end: 3 } as const;
const timeBytes = 6;
const hashBytes = 6;
const fieldAt = 1 + hashBytes;
const fieldOfTimeAt = 1 + timeBytes + hashBytes;
/** Times are below it. */
export const latestFieldTime = 2 ** 46;

type Reads = Pick<RowReads, 'streamState' | 'streamRecord' | 'eachStreamRecord'>;

/** Sees one field and its time; a truthy answer stops the walk. */
type TimedVisitor = (
  fb: Buffer,
  fs: number,
  fn: number,
  vb: Buffer,
  vs: number,
  vn: number,
  time: number,
) => boolean | void;

const slice = new Slice();
const times = Buffer.of(Kind.time);
const end = Buffer.of(Kind.end);
let key = Buffer.allocUnsafe(256);
let content = Buffer.allocUnsafe(256);

export class TimedMap {
  /** When the row as a whole ceases to be. */
  rowTime = 0;
  /** When the next field does. */
  nextTime = 0;
  fields = 0;
  timed = 0;
  #seed = 0;

  /** Begins a map under a key, replacing any row there. */
  create(rows: Rows, b: Buffer, s: number, n: number, rowTime: number): Row {
    const row = rows.create(b, s, n, Shape.timed);
    this.rowTime = rowTime;
    this.nextTime = 0;
    this.fields = 0;
    this.timed = 0;
    this.#seed = Math.floor(rows.random() * 2 ** 32);
    this.save(rows, row);
    return row;
  }

  load(rows: Reads, row: Row): void {
    rows.streamState(row, slice);
    const { b, s } = slice;
    // A row that was only just created has none yet.
    const isNew = slice.n === 0;
    this.rowTime = isNew ? 0 : b.readDoubleBE(s + 1);
    this.nextTime = isNew ? 0 : b.readDoubleBE(s + 9);
    this.#seed = isNew ? 0 : b.readUInt32BE(s + 17);
    this.fields = isNew ? 0 : b.readUIntBE(s + 21, 6);
    this.timed = isNew ? 0 : b.readUIntBE(s + 27, 6);
  }

  /** The state, as bytes that are good until the next call. */
  packState(): Buffer {
    content[0] = stateMark;
    content.writeDoubleBE(this.rowTime, 1);
    content.writeDoubleBE(this.nextTime, 9);
    content.writeUInt32BE(this.#seed, 17);
    content.writeUIntBE(this.fields, 21, 6);
    content.writeUIntBE(this.timed, 27, 6);
    return content;
  }

  /** Saves the state, and has the row's expiry follow it. Without fields the row goes. */
  save(rows: Rows, row: Row, isNew = true): void {
    if (this.fields === 0 && !isNew) {
      rows.drop(row);
      return;
    }
    rows.setStreamState(row, this.packState(), 0, stateBytes);
    rows.setExpireAt(row, this.rowTime);
  }

  /** The field's time, -1 when there is no such field; its value in `out`. Fields that are due are found, too. */
  find(rows: Reads, row: Row, b: Buffer, s: number, n: number, out?: Slice): number {
    const length = this.#fieldKey(b, s, n);
    if (!rows.streamRecord(row, key, 0, length, slice)) return -1;
    const time = slice.b.readUIntBE(slice.s, timeBytes);
    out?.set(slice.b, slice.s + timeBytes, slice.n - timeBytes);
    return time;
  }

  /** Sets a field, and its time; whether it is new. Call `save` when all is done. */
  put(rows: Rows, row: Row, fb: Buffer, fs: number, fn: number, v: Slice, time: number): boolean {
    const { b, s, n } = v;
    const old = this.find(rows, row, fb, fs, fn);
    // The value may lie in the row itself, which changes from here on.
    if (timeBytes + n > content.length) content = Buffer.allocUnsafe((timeBytes + n) * 2);
    content.writeUIntBE(time, 0, timeBytes);
    b.copy(content, timeBytes, s, s + n);
    if (old > 0 && old !== time) this.#removeTime(rows, row, old, fb, fs, fn);
    if (time > 0 && old !== time) this.#addTime(rows, row, time, fb, fs, fn);
    const length = this.#fieldKey(fb, fs, fn);
    if (old >= 0) rows.setStreamRecord(row, key, 0, length, content, 0, timeBytes + n);
    else {
      rows.addStreamRecord(row, key, 0, length, content, 0, timeBytes + n);
      this.fields++;
    }
    if (content.length > 1 << 20) content = Buffer.allocUnsafe(256);
    return old < 0;
  }

  /** Removes a field; false when there is none. Call `save` when all is done. */
  remove(rows: Rows, row: Row, b: Buffer, s: number, n: number): boolean {
    const time = this.find(rows, row, b, s, n);
    if (time < 0) return false;
    if (time > 0) this.#removeTime(rows, row, time, b, s, n);
    rows.removeStreamRecord(row, key, 0, this.#fieldKey(b, s, n));
    this.fields--;
    return true;
  }

  /**
   * Walks fields that are not due from a cursor, 0 at first, about `budget` of all, and returns the cursor to continue
   * from, 0 at the end.
   */
  each(
    rows: Reads,
    row: Row,
    now: number,
    cursor: number,
    budget: number,
    visit: TimedVisitor,
  ): number {
    const from = Buffer.allocUnsafe(fieldAt);
    from[0] = Kind.field;
    from.writeUIntBE(cursor, 1, hashBytes);
    let left = budget;
    let last = -1;
    let next = 0;
    rows.eachStreamRecord(row, from, times, false, budget, (kb, ks, kn, vb, vs, vn) => {
      const hash = kb.readUIntBE(ks + 1, hashBytes);
      // Fields of one hash are seen together: the cursor is a hash.
      if (left-- <= 0 && hash !== last) {
        next = hash;
        return true;
      }
      last = hash;
      const time = vb.readUIntBE(vs, timeBytes);
      if (time !== 0 && time <= now) return false;
      const at = ks + fieldAt;
      return visit(kb, at, kn - fieldAt, vb, vs + timeBytes, vn - timeBytes, time) === true;
    });
    return next;
  }

  /** When the next field ceases to be that is not due; 0 when none does. */
  nextAfter(rows: Reads, row: Row, now: number): number {
    let time = 0;
    rows.eachStreamRecord(row, dueFieldTimes(now).to, end, false, 1, (kb, ks) => {
      time = kb.readUIntBE(ks + 1, timeBytes);
      return true;
    });
    return time;
  }

  /** How many fields are due, counted up to about `most`. */
  countDue(rows: Reads, row: Row, now: number, most: number): number {
    if (this.nextTime === 0 || this.nextTime > now) return 0;
    let due = 0;
    rows.eachStreamRecord(row, times, end, false, 64, (kb, ks) => {
      if (kb.readUIntBE(ks + 1, timeBytes) > now) return true;
      return ++due > most;
    });
    return due;
  }

  /** Removes up to `limit` of the fields that are due, and saves; returns how many. */
  dropDue(rows: Rows, row: Row, now: number, limit: number): number {
    const due: Buffer[] = [];
    rows.eachStreamRecord(row, times, end, false, limit, (kb, ks, kn) => {
      if (due.length === limit || kb.readUIntBE(ks + 1, timeBytes) > now) return true;
      due.push(Buffer.from(kb.subarray(ks + fieldOfTimeAt, ks + kn)));
      return false;
    });
    for (const field of due) this.remove(rows, row, field, 0, field.length);
    this.save(rows, row, false);
    return due.length;
  }

  #removeTime(rows: Rows, row: Row, time: number, b: Buffer, s: number, n: number): void {
    rows.removeStreamRecord(row, key, 0, this.#timeKey(time, b, s, n));
    this.timed--;
    if (time === this.nextTime) this.nextTime = edgeTime(rows, row, false);
  }

  #addTime(rows: Rows, row: Row, time: number, b: Buffer, s: number, n: number): void {
    rows.addStreamRecord(row, key, 0, this.#timeKey(time, b, s, n), emptyBytes, 0, 0);
    this.timed++;
    if (this.nextTime === 0 || time < this.nextTime) this.nextTime = time;
  }

  /** Puts the key of the field's record into `key`; returns its length. */
  #fieldKey(b: Buffer, s: number, n: number): number {
    reserve(fieldAt + n);
    key[0] = Kind.field;
    return this.#putField(1, b, s, n);
  }

  #timeKey(time: number, b: Buffer, s: number, n: number): number {
    reserve(fieldOfTimeAt + n);
    key[0] = Kind.time;
    key.writeUIntBE(time, 1, timeBytes);
    return this.#putField(1 + timeBytes, b, s, n);
  }

  #putField(at: number, b: Buffer, s: number, n: number): number {
    let high = this.#seed | 0;
    let low = ~this.#seed;
    for (let i = s; i < s + n; i++) {
      high = Math.imul(high ^ b[i]!, 0x9e3779b1);
      high ^= high >>> 15;
      low = Math.imul(low ^ b[i]! ^ high, 0x85ebca77);
      low ^= low >>> 13;
    }
    key.writeUIntBE(high & 0xffff, at, 2);
    key.writeUInt32BE(low >>> 0, at + 2);
    b.copy(key, at + hashBytes, s, s + n);
    return at + hashBytes + n;
  }
}

function reserve(n: number): void {
  if (n > key.length) key = Buffer.allocUnsafe(n * 2);
}

/** The soonest time of a field, or the last; 0 when none has one. */
function edgeTime(rows: Reads, row: Row, isLast: boolean): number {
  let time = 0;
  rows.eachStreamRecord(row, times, end, isLast, 1, (kb, ks) => {
    time = kb.readUIntBE(ks + 1, timeBytes);
    return true;
  });
  return time;
}

const map = new TimedMap();

/** Whether nothing of the row is left at this time: it is due itself, or all of its fields are. */
export function isTimedRowOver(rows: Reads, row: Row, now: number): boolean {
  map.load(rows, row);
  if (map.rowTime !== 0 && map.rowTime <= now) return true;
  return map.fields > 0 && map.timed === map.fields && edgeTime(rows, row, true) <= now;
}

/** The row's own time. */
export function timeOfTimedRow(rows: Reads, row: Row): number {
  map.load(rows, row);
  return map.rowTime;
}

/** Sets the row's own time; returns the expiry to set in the engine. */
export function setTimeOfTimedRow(
  rows: Reads & Pick<Rows, 'setStreamState'>,
  row: Row,
  time: number,
): number {
  map.load(rows, row);
  if (map.rowTime !== time) {
    map.rowTime = time;
    rows.setStreamState(row, map.packState(), 0, stateBytes);
  }
  if (map.nextTime === 0) return time;
  return time === 0 ? map.nextTime : Math.min(time, map.nextTime);
}

/** Removes up to `limit` fields of the row that are due at this time; returns how many. */
export function dropDueFields(rows: Rows, row: Row, now: number, limit: number): number {
  const due = new TimedMap();
  due.load(rows, row);
  return due.dropDue(rows, row, now, limit);
}

/** The keys of a row's records, one for each field that is due at this time. */
export function dueFieldTimes(now: number): { from: Buffer; to: Buffer } {
  const to = Buffer.alloc(1 + timeBytes);
  to[0] = Kind.time;
  to.writeUIntBE(now + 1, 1, timeBytes);
  return { from: times, to };
}
