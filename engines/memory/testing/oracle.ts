// The rows of a table as plain maps and arrays, slow and obviously right: the reference in tests.

import { Slice } from '../../../universal-row/bytes.ts';
import { Shape } from '../../../universal-row/rows.ts';
import type { RowTable } from '../../engine.ts';

export type OracleRow = { expireAt: number } & (
  | { shape: typeof Shape.value; bytes: string }
  | { shape: typeof Shape.map; fields: Map<string, string> }
  | { shape: typeof Shape.set; members: Set<string> }
  | { shape: typeof Shape.ranked; scores: Map<string, number> }
  | { shape: typeof Shape.array; elements: string[] }
);

export type Oracle = Map<string, OracleRow>;

/** Text is one character a byte throughout. */
export function bytes(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

function text(b: Buffer, s: number, n: number): string {
  return b.toString('latin1', s, s + n);
}

export function find(table: RowTable, key: string): number {
  const k = bytes(key);
  return table.find(k, 0, k.length);
}

export function put(table: RowTable, key: string, value: string, expireAt = 0): number {
  const k = bytes(key);
  const v = bytes(value);
  return table.putValue(k, 0, k.length, v, 0, v.length, expireAt);
}

export function create(table: RowTable, key: string, shape: Shape): number {
  const k = bytes(key);
  return table.create(k, 0, k.length, shape);
}

export function putField(table: RowTable, row: number, field: string, value: string): boolean {
  const f = bytes(field);
  const v = bytes(value);
  return table.putField(row, f, 0, f.length, v, 0, v.length);
}

export function putScore(table: RowTable, row: number, member: string, score: number): boolean {
  const m = bytes(member);
  return table.putScore(row, m, 0, m.length, score);
}

export function removeField(table: RowTable, row: number, field: string): boolean {
  const f = bytes(field);
  return table.removeField(row, f, 0, f.length);
}

export function push(table: RowTable, row: number, atHead: boolean, element: string): void {
  const e = bytes(element);
  table.push(row, atHead, e, 0, e.length);
}

/** Everything a table says of its rows, by key. */
export function contents(table: RowTable): Oracle {
  const found: Oracle = new Map();
  let cursor = 0;
  do {
    cursor = table.scan(cursor, 100, (row) => {
      const out = new Slice();
      table.key(row, out);
      found.set(text(out.b, out.s, out.n), rowContents(table, row));
    });
  } while (cursor !== 0);
  return found;
}

function rowContents(table: RowTable, row: number): OracleRow {
  const expireAt = table.expireAt(row);
  const shape = table.shape(row);
  const out = new Slice();
  if (shape === Shape.value) {
    table.value(row, out);
    return { shape, expireAt, bytes: text(out.b, out.s, out.n) };
  }
  if (shape === Shape.map) {
    const fields = new Map<string, string>();
    table.eachField(row, (fb, fs, fn, vb, vs, vn) => {
      fields.set(text(fb, fs, fn), text(vb, vs, vn));
    });
    return { shape, expireAt, fields };
  }
  if (shape === Shape.set) {
    const members = new Set<string>();
    table.eachField(row, (fb, fs, fn) => {
      members.add(text(fb, fs, fn));
    });
    return { shape, expireAt, members };
  }
  if (shape === Shape.ranked) {
    const scores = new Map<string, number>();
    table.eachByRank(row, 0, Infinity, false, (b, s, n, score) => {
      scores.set(text(b, s, n), score);
    });
    return { shape, expireAt, scores };
  }
  const elements: string[] = [];
  table.eachElement(row, 0, Infinity, false, (b, s, n) => {
    elements.push(text(b, s, n));
  });
  return { shape: Shape.array, expireAt, elements };
}

/** Numbers from a seed, so that a failed run can be run again. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Below `n`. */
  below(n: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t ^= t + Math.imul(t ^ (t >>> 7), 61 | t);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 0x100000000) * n);
  }

  /** Mostly short, now and then of a length where a representation changes. */
  text(): string {
    const lengths = [0, 1, 5, 10, 20, 100, 127, 128, 200];
    const long = [255, 256, 1000, 5000, 9000, 17_000, 70_000];
    const n = this.below(40) === 0 ? long[this.below(long.length)]! : lengths[this.below(9)]!;
    return String.fromCharCode(this.below(256)).repeat(n) + String.fromCharCode(this.below(256));
  }
}
