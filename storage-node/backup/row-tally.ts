// Summary of tables' contents, equal for two exports of the same rows in any order: rows, elements,
// and a 64-bit checksum over all of them. The order of the elements of an array is part of the
// checksum.

import { crc32 } from 'node:zlib';
import { ContentSum, hashNumber, mix } from '../../universal-row/content-sum.ts';
import { Op } from '../../universal-row/record-batch.ts';
import { Shape } from '../../universal-row/rows.ts';
import type { OpObserver } from './row-rewriter.ts';

export interface TableSum {
  readonly table: number;
  readonly rows: number;
  readonly elements: number;
  /** In hexadecimal. */
  readonly checksum: string;
  /** Rows with an expiry, and those of them that were due at the time of the summary. */
  readonly expiring: number;
  readonly due: number;
}

/** From here on the native checksum is the faster one. */
const nativeFrom = 32;

/** Sees the ops of an export: rows as they are, and no changes of them. */
export class RowTally implements OpObserver {
  readonly #now: number;
  readonly #tables = new Map<number, TableTally>();
  /** Arrays whose elements do not follow at once, and how many have come: large ones, of which there are few. */
  readonly #arrays = new Map<string, number>();
  #table = new TableTally();
  #number = -1;
  #key: Buffer = Buffer.alloc(0);
  #keyHash = 0;
  /** Position of the next element, if the current row is an array. */
  #position: number | undefined;

  /** `now` is in Unix milliseconds. */
  constructor(now: number) {
    this.#now = now;
  }

  /** By ascending number; tables without rows are not there. */
  sums(): TableSum[] {
    return [...this.#tables].sort(([a], [b]) => a - b).map(([table, tally]) => tally.sum(table));
  }

  value(table: number, b: Buffer, ks: number, kn: number, s: number, n: number, at: number): void {
    this.row(table, b, ks, kn);
    this.#table.rows++;
    this.#table.add(this.#keyHash, hashBytes(b, s, n));
    if (at !== 0) this.expire(at);
  }

  row(table: number, b: Buffer, ks: number, kn: number): void {
    if (table === this.#number && b.compare(this.#key, 0, this.#key.length, ks, ks + kn) === 0) {
      return;
    }
    this.#leave();
    this.#use(table);
    this.#key = Buffer.from(b.subarray(ks, ks + kn));
    this.#keyHash = hashBytes(b, ks, kn);
    this.#position = this.#arrays.size === 0 ? undefined : this.#arrays.get(this.#name());
  }

  create(shape: Shape): void {
    this.#table.rows++;
    this.#table.add(mix(this.#keyHash, Op.create), shape);
    this.#position = shape === Shape.array ? 0 : undefined;
  }

  expire(at: number): void {
    this.#table.add(mix(this.#keyHash, Op.expire), hashNumber(at));
    this.#table.expiring++;
    if (at <= this.#now) this.#table.due++;
  }

  state(b: Buffer, s: number, n: number): void {
    this.#table.add(mix(this.#keyHash, Op.streamState), hashBytes(b, s, n));
  }

  element(
    kind: number,
    score: number,
    b: Buffer,
    s: number,
    n: number,
    vs: number,
    vn: number,
  ): void {
    let hash = hashBytes(b, s, n);
    if (kind === Op.score) hash = mix(hash, hashNumber(score));
    else if (kind === Op.field || kind === Op.streamAdd) hash = mix(hash, hashBytes(b, vs, vn));
    else if (kind === Op.tail) {
      if (this.#position === undefined) throw new RangeError('an element of what is no array');
      hash = mix(hash, this.#position++);
    }
    this.#table.elements++;
    this.#table.add(mix(this.#keyHash, kind), hash);
  }

  other(op: number): void {
    throw new RangeError(`an export holds a change (op ${op})`);
  }

  #name(): string {
    return `${this.#number}:${this.#key.toString('latin1')}`;
  }

  /** Small arrays come in one go, so that an array left empty is one whose elements come later. */
  #leave(): void {
    if (this.#position === undefined) return;
    const name = this.#name();
    if (this.#position === 0 || this.#arrays.has(name)) this.#arrays.set(name, this.#position);
  }

  #use(number: number): void {
    if (this.#number === number) return;
    let tally = this.#tables.get(number);
    if (tally === undefined) this.#tables.set(number, (tally = new TableTally()));
    this.#table = tally;
    this.#number = number;
  }
}

class TableTally {
  rows = 0;
  elements = 0;
  expiring = 0;
  due = 0;
  readonly #contents = new ContentSum();

  add(what: number, content: number): void {
    this.#contents.add(what, content);
  }

  sum(table: number): TableSum {
    const { rows, elements, expiring, due } = this;
    return { table, rows, elements, checksum: this.#contents.text, expiring, due };
  }
}

function hashBytes(b: Buffer, s: number, n: number): number {
  if (n >= nativeFrom) return crc32(b.subarray(s, s + n), n) | 0;
  let hash = 0x811c9dc5 ^ n;
  for (let i = s; i < s + n; i++) hash = Math.imul(hash ^ b[i]!, 0x01000193);
  return hash;
}
