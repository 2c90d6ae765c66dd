// Time or frequency of the rows' use, for eviction. Stored beside the rows by their ids, only while
// the policy needs it.

import type { Rng } from '../../universal-row/environment.ts';
import type { Row, RowUse } from '../../universal-row/rows.ts';

// As Redis has them: a new row starts with this count, which grows the more slowly the larger it is, and loses one a minute.
const firstCount = 5;
const mostCount = 255;
const logFactor = 10;
const minuteMs = 60_000;
const minutesMask = 0xffffff;
const firstRows = 1024;

export class AccessClock {
  /** Counts how often, in place of noting when. */
  readonly isFrequency: boolean;
  readonly #rng: Rng;
  readonly #tables = new Map<number, Uint32Array>();
  /** Rows that were not used since count as used then; wall clock, ms. */
  readonly #since: number;

  constructor(isFrequency: boolean, rng: Rng, now: number) {
    this.isFrequency = isFrequency;
    this.#rng = rng;
    this.#since = now;
  }

  /** The row is used, or new. `now` is wall clock, ms. */
  touch(table: number, row: Row, now: number): void {
    let used = this.#tables.get(table);
    if (used === undefined || row >= used.length) used = this.#grow(table, row);
    used[row] = this.isFrequency ? this.#counted(used[row]!, now) : Math.floor(now / 1000);
  }

  /** The row was used at another time than now, or another number of times; ignored where the other is kept. */
  set(table: number, row: Row, { idleMs, frequency }: RowUse, now: number): void {
    const value = this.isFrequency ? frequency : idleMs;
    if (value === undefined) return;
    let used = this.#tables.get(table);
    if (used === undefined || row >= used.length) used = this.#grow(table, row);
    used[row] = this.isFrequency
      ? (minutes(now) << 8) | value
      : Math.max(1, Math.floor((now - value) / 1000));
  }

  #grow(table: number, row: Row): Uint32Array {
    const before = this.#tables.get(table);
    const used = new Uint32Array(Math.max(firstRows, row + 1, 2 * (before?.length ?? 0)));
    if (before !== undefined) used.set(before);
    this.#tables.set(table, used);
    return used;
  }

  /** The row is gone: its id may be another's. */
  forget(table: number, row: Row): void {
    const used = this.#tables.get(table);
    if (used !== undefined && row < used.length) used[row] = 0;
  }

  swap(a: number, b: number): void {
    const first = this.#tables.get(a);
    const second = this.#tables.get(b);
    this.#set(a, second);
    this.#set(b, first);
  }

  #set(table: number, used: Uint32Array | undefined): void {
    if (used === undefined) this.#tables.delete(table);
    else this.#tables.set(table, used);
  }

  clear(table: number): void {
    this.#tables.delete(table);
  }

  idleMs(table: number, row: Row, now: number): number {
    const at = this.#tables.get(table)?.[row] ?? 0;
    return Math.max(0, now - (at === 0 ? this.#since : at * 1000));
  }

  /** Redis's logarithmic count, 0 to 255, as of now. */
  frequency(table: number, row: Row, now: number): number {
    return decayed(this.#tables.get(table)?.[row] ?? 0, now);
  }

  #counted(before: number, now: number): number {
    let count = before === 0 ? firstCount : decayed(before, now);
    if (before !== 0 && count < mostCount) {
      const above = Math.max(0, count - firstCount);
      if (this.#rng.next() < 1 / (above * logFactor + 1)) count++;
    }
    return (minutes(now) << 8) | count;
  }
}

function minutes(now: number): number {
  return Math.floor(now / minuteMs) & minutesMask;
}

function decayed(value: number, now: number): number {
  const elapsed = (minutes(now) - (value >>> 8)) & minutesMask;
  return Math.max(0, (value & 0xff) - elapsed);
}
