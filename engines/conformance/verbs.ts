// A table in the words of a test: rows by key, bytes as latin1 strings. Bytes go in from the middle of
// one buffer that is scribbled over after each call, so an engine that keeps a reference is found out.

import assert from 'node:assert/strict';
import { Slice } from '../../universal-row/bytes.ts';
import {
  Shape,
  type LexRange,
  type RankedVisitor,
  type Row,
  type ScoreRange,
} from '../../universal-row/rows.ts';
import type { RowTable } from '../engine.ts';
import { array, expiring, map, ranked, set, stream, value, type RowContent } from './contents.ts';

// Fill between arguments, and the final contents of the buffer after the call.
const junk = 0xee;
const gap = 3;

let scratch: Buffer = Buffer.alloc(4096, junk);

/** How far a range read goes, and which way. */
export interface Walk {
  reverse?: boolean;
  offset?: number;
  limit?: number;
}

/** More than any row has: no limit. */
export const unlimited = 1e9;

export class Verbs {
  readonly table: RowTable;
  readonly #starts = [0, 0];
  #used = 0;

  constructor(table: RowTable) {
    this.table = table;
  }

  // ---- rows

  find(key: string): Row {
    this.#place(key);
    const row = this.table.find(scratch, this.#starts[0]!, key.length);
    this.#scribble();
    return row;
  }

  /** The row, which must be there. */
  row(key: string): Row {
    const row = this.find(key);
    assert.notEqual(row, 0, `the row ${JSON.stringify(key.slice(0, 40))} is there`);
    return row;
  }

  keyOf(row: Row): string {
    const out = new Slice();
    this.table.key(row, out);
    return text(out);
  }

  put(key: string, bytes: string, expireAt = 0): Row {
    this.#place(key, bytes);
    const [ks, vs] = this.#starts;
    const row = this.table.putValue(scratch, ks!, key.length, scratch, vs!, bytes.length, expireAt);
    this.#scribble();
    return row;
  }

  /** Puts a value that lies wherever a read has pointed. */
  putSlice(key: string, from: Slice, expireAt = 0): Row {
    this.#place(key);
    const row = this.table.putValue(
      scratch,
      this.#starts[0]!,
      key.length,
      from.b,
      from.s,
      from.n,
      expireAt,
    );
    this.#scribble();
    return row;
  }

  /** As `put`, of bytes that come in parts. */
  putInParts(key: string, bytes: string, part: number, expireAt = 0): void {
    this.#place(key);
    this.table.reserveValue(scratch, this.#starts[0]!, key.length, bytes.length, expireAt);
    this.#scribble();
    for (let from = 0; from < bytes.length; from += part) {
      const some = bytes.slice(from, from + part);
      this.#place(some);
      this.table.fillValue(from, scratch, this.#starts[0]!, some.length);
      this.#scribble();
    }
  }

  patch(key: string, offset: number, bytes: string): void {
    const row = this.row(key);
    this.#place(bytes);
    this.table.patchValue(row, offset, scratch, this.#starts[0]!, bytes.length);
    this.#scribble();
  }

  create(key: string, shape: Shape): Row {
    this.#place(key);
    const row = this.table.create(scratch, this.#starts[0]!, key.length, shape);
    this.#scribble();
    assert.notEqual(row, 0, 'create answers a row');
    return row;
  }

  drop(key: string): void {
    this.table.drop(this.row(key));
  }

  expire(key: string, expireAt: number): void {
    this.table.setExpireAt(this.row(key), expireAt);
  }

  rename(from: string, to: string): Row {
    const row = this.row(from);
    this.#place(to);
    const renamed = this.table.rename(row, scratch, this.#starts[0]!, to.length);
    this.#scribble();
    return renamed;
  }

  /** Replaces the row, if any, by this content. */
  fill(key: string, content: RowContent): Row {
    const { shape, items } = content;
    if (shape === Shape.value) return this.put(key, String(items[0]), content.expireAt);
    const row = this.create(key, shape);
    if (shape >= Shape.stream) {
      this.setStateOf(row, String(items[0]));
      this.extend(row, { ...content, items: items.slice(1) });
    } else this.extend(row, content);
    if (content.expireAt !== 0) this.table.setExpireAt(row, content.expireAt);
    return row;
  }

  /** Adds the items to a container; to a stream, keys and values. */
  extend(row: Row, { shape, items }: RowContent): void {
    const step = shape === Shape.set || shape === Shape.array ? 1 : 2;
    for (let i = 0; i < items.length; i += step) {
      const first = String(items[i]);
      if (shape === Shape.map) this.putFieldOf(row, first, String(items[i + 1]));
      else if (shape >= Shape.stream) this.addRecordOf(row, first, String(items[i + 1]));
      else if (shape === Shape.set) this.putFieldOf(row, first, '');
      else if (shape === Shape.ranked) this.putScoreOf(row, first, Number(items[i + 1]));
      else this.pushOf(row, false, first);
    }
  }

  // ---- maps and sets

  /** The row under the key, or a new one of this shape. */
  container(key: string, shape: Shape): Row {
    return this.find(key) || this.create(key, shape);
  }

  putField(key: string, field: string, bytes: string): boolean {
    return this.putFieldOf(this.container(key, Shape.map), field, bytes);
  }

  addMember(key: string, member: string): boolean {
    return this.putFieldOf(this.container(key, Shape.set), member, '');
  }

  putFieldOf(row: Row, field: string, bytes: string): boolean {
    this.#place(field, bytes);
    const [fs, vs] = this.#starts;
    const isNew = this.table.putField(row, scratch, fs!, field.length, scratch, vs!, bytes.length);
    this.#scribble();
    return isNew;
  }

  removeField(key: string, field: string): boolean {
    return this.removeFieldOf(this.row(key), field);
  }

  removeFieldOf(row: Row, field: string): boolean {
    this.#place(field);
    const removed = this.table.removeField(row, scratch, this.#starts[0]!, field.length);
    this.#scribble();
    return removed;
  }

  field(key: string, field: string): string | undefined {
    const out = new Slice();
    return this.#has(key, field, out) ? text(out) : undefined;
  }

  hasField(key: string, field: string): boolean {
    return this.#has(key, field);
  }

  #has(key: string, field: string, out?: Slice): boolean {
    const row = this.row(key);
    this.#place(field);
    const has =
      out === undefined
        ? this.table.field(row, scratch, this.#starts[0]!, field.length)
        : this.table.field(row, scratch, this.#starts[0]!, field.length, out);
    this.#scribble();
    return has;
  }

  // ---- ranked rows

  putScore(key: string, member: string, score: number): boolean {
    return this.putScoreOf(this.container(key, Shape.ranked), member, score);
  }

  putScoreOf(row: Row, member: string, score: number): boolean {
    this.#place(member);
    const isNew = this.table.putScore(row, scratch, this.#starts[0]!, member.length, score);
    this.#scribble();
    return isNew;
  }

  score(key: string, member: string): number {
    const row = this.row(key);
    this.#place(member);
    const score = this.table.score(row, scratch, this.#starts[0]!, member.length);
    this.#scribble();
    return score;
  }

  rank(key: string, member: string): number {
    const row = this.row(key);
    this.#place(member);
    const rank = this.table.rank(row, scratch, this.#starts[0]!, member.length);
    this.#scribble();
    return rank;
  }

  byRank(key: string, from: number, count: number, reverse = false): (string | number)[] {
    return walked((visit) => this.table.eachByRank(this.row(key), from, count, reverse, visit));
  }

  byScore(key: string, range: ScoreRange, walk: Walk = {}): (string | number)[] {
    const { reverse = false, offset = 0, limit = unlimited } = walk;
    return walked((visit) =>
      this.table.eachByScore(this.row(key), range, reverse, offset, limit, visit),
    );
  }

  byLex(key: string, range: LexRange, walk: Walk = {}): (string | number)[] {
    const { reverse = false, offset = 0, limit = unlimited } = walk;
    return walked((visit) =>
      this.table.eachByLex(this.row(key), range, reverse, offset, limit, visit),
    );
  }

  // ---- arrays

  push(key: string, atHead: boolean, element: string): void {
    this.pushOf(this.container(key, Shape.array), atHead, element);
  }

  pushOf(row: Row, atHead: boolean, element: string): void {
    this.#place(element);
    this.table.push(row, atHead, scratch, this.#starts[0]!, element.length);
    this.#scribble();
  }

  pop(key: string, atHead: boolean): void {
    this.table.pop(this.row(key), atHead);
  }

  setElement(key: string, index: number, element: string): void {
    const row = this.row(key);
    this.#place(element);
    this.table.setElement(row, index, scratch, this.#starts[0]!, element.length);
    this.#scribble();
  }

  insertElement(key: string, index: number, element: string): void {
    const row = this.row(key);
    this.#place(element);
    this.table.insertElement(row, index, scratch, this.#starts[0]!, element.length);
    this.#scribble();
  }

  removeElements(key: string, index: number, count: number): void {
    this.table.removeElements(this.row(key), index, count);
  }

  element(key: string, index: number): string | undefined {
    const out = new Slice();
    return this.table.element(this.row(key), index, out) ? text(out) : undefined;
  }

  elements(key: string, from: number, count: number, reverse = false): string[] {
    const seen: string[] = [];
    this.table.eachElement(this.row(key), from, count, reverse, (b, s, n) => {
      seen.push(b.toString('latin1', s, s + n));
    });
    return seen;
  }

  // ---- streams

  setState(key: string, state: string): void {
    this.setStateOf(this.container(key, Shape.stream), state);
  }

  setStateOf(row: Row, state: string): void {
    this.#place(state);
    this.table.setStreamState(row, scratch, this.#starts[0]!, state.length);
    this.#scribble();
  }

  state(key: string): string {
    const out = new Slice();
    this.table.streamState(this.row(key), out);
    return text(out);
  }

  addRecord(key: string, record: string, bytes: string): void {
    this.addRecordOf(this.container(key, Shape.stream), record, bytes);
  }

  addRecordOf(row: Row, record: string, bytes: string): void {
    this.#place(record, bytes);
    const [ks, vs] = this.#starts;
    this.table.addStreamRecord(row, scratch, ks!, record.length, scratch, vs!, bytes.length);
    this.#scribble();
  }

  setRecord(key: string, record: string, bytes: string): void {
    const row = this.row(key);
    this.#place(record, bytes);
    const [ks, vs] = this.#starts;
    this.table.setStreamRecord(row, scratch, ks!, record.length, scratch, vs!, bytes.length);
    this.#scribble();
  }

  removeRecord(key: string, record: string): boolean {
    const row = this.row(key);
    this.#place(record);
    const removed = this.table.removeStreamRecord(row, scratch, this.#starts[0]!, record.length);
    this.#scribble();
    return removed;
  }

  removeRecords(key: string, from: string, to: string): number {
    return this.table.removeStreamRecords(this.row(key), latin1(from), latin1(to));
  }

  record(key: string, record: string): string | undefined {
    const row = this.row(key);
    const out = new Slice();
    this.#place(record);
    const found = this.table.streamRecord(row, scratch, this.#starts[0]!, record.length, out);
    this.#scribble();
    return found ? text(out) : undefined;
  }

  /** Key, value, key, value ... of a walk, at most `limit` records. */
  records(key: string, from: string, to: string, reverse = false, limit = unlimited): string[] {
    const items: string[] = [];
    const row = this.row(key);
    const [low, high] = [latin1(from), latin1(to)];
    this.table.eachStreamRecord(row, low, high, reverse, limit, (fb, fs, fn, vb, vs, vn) => {
      items.push(fb.toString('latin1', fs, fs + fn), vb.toString('latin1', vs, vs + vn));
      return items.length >= 2 * limit;
    });
    return items;
  }

  // ---- whole rows

  value(key: string): string {
    const out = new Slice();
    this.table.value(this.row(key), out);
    return text(out);
  }

  /** Everything of one row, checked against its count. */
  content(key: string): RowContent {
    const row = this.row(key);
    const { table } = this;
    const shape = table.shape(row);
    const content = expiring(this.#items(key, row, shape), table.expireAt(row));
    const pairs = shape === Shape.map || shape === Shape.ranked;
    let size = content.items.length / (pairs ? 2 : 1);
    if (shape === Shape.value) size = String(content.items[0]).length;
    if (shape >= Shape.stream) size = (content.items.length - 1) / 2;
    assert.equal(table.count(row), size, `count of ${JSON.stringify(key.slice(0, 40))}`);
    return content;
  }

  #items(key: string, row: Row, shape: Shape): RowContent {
    switch (shape) {
      case Shape.value:
        return value(this.value(key));
      case Shape.map:
        return map(...this.fields(row));
      case Shape.set: {
        const items = this.fields(row);
        return set(...items.filter((_, i) => i % 2 === 0));
      }
      case Shape.ranked: {
        const items = this.byRank(key, 0, this.table.count(row));
        // Given in the row's own order, so that a wrong order is seen.
        return { ...ranked(), items };
      }
      case Shape.array:
        return array(...this.elements(key, 0, unlimited));
      case Shape.timed:
      case Shape.stream: {
        // Given in the row's own order, so that a wrong order is seen.
        const items = [this.state(key), ...this.records(key, '', '\xff')];
        return { ...stream(''), items, shape };
      }
      default:
        assert.fail(`a row has a shape, not ${shape}`);
    }
  }

  /** field, value, field, value ... as `eachField` gives them. */
  fields(row: Row): string[] {
    const items: string[] = [];
    this.table.eachField(row, (fb, fs, fn, vb, vs, vn) => {
      items.push(fb.toString('latin1', fs, fs + fn), vb.toString('latin1', vs, vs + vn));
    });
    return items;
  }

  // ---- arguments

  #place(first: string, second = ''): void {
    const used = first.length + second.length + 3 * gap;
    if (scratch.length < used) scratch = Buffer.alloc(used * 2, junk);
    scratch.write(first, gap, 'latin1');
    scratch.write(second, 2 * gap + first.length, 'latin1');
    this.#starts[0] = gap;
    this.#starts[1] = 2 * gap + first.length;
    this.#used = used;
  }

  #scribble(): void {
    scratch.fill(junk, 0, this.#used);
  }
}

const latin1 = (of: string): Buffer => Buffer.from(of, 'latin1');

export function text(slice: Slice): string {
  return slice.b.toString('latin1', slice.s, slice.s + slice.n);
}

/** Member, score, member, score ... of a walk. */
function walked(walk: (visit: RankedVisitor) => void): (string | number)[] {
  const seen: (string | number)[] = [];
  walk((b, s, n, score) => {
    seen.push(b.toString('latin1', s, s + n), score);
  });
  return seen;
}
