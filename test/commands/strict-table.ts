// A table that keeps rows in plain Maps and is as unforgiving as the contract in rows.ts allows: bytes it
// hands out turn to 0xdd at the next write or when a visitor returns, a handle dies with its row, and
// misuse throws. What runs right on it relies on nothing an engine does not promise.

import { hashBytes, type Slice } from '../../universal-row/bytes.ts';
import { assert } from '../../universal-row/assert.ts';
import {
  Shape,
  type BytesVisitor,
  type FieldVisitor,
  type LexRange,
  type RankedVisitor,
  type Row,
  type RowReads,
  type RowWrites,
  type ScoreRange,
} from '../../universal-row/rows.ts';

interface StrictRow {
  key: string;
  shape: Shape;
  expireAt: number;
  value: Buffer;
  /** Fields or members, by their bytes as latin1. */
  fields: Map<string, Buffer>;
  scores: Map<string, number>;
  elements: Buffer[];
}

type RecordArguments = Parameters<RowWrites['addStreamRecord']>;

const nothing = Buffer.alloc(0);
const text = (b: Buffer, s: number, n: number) => b.toString('latin1', s, s + n);
const bytes = (t: string) => Buffer.from(t, 'latin1');

export class StrictTables {
  readonly #tables: StrictTable[] = Array.from({ length: 16 }, () => new StrictTable());

  table(id: number): StrictTable {
    return this.#tables[id]!;
  }
  swapTables(a: number, b: number): void {
    const tables = this.#tables;
    [tables[a], tables[b]] = [tables[b]!, tables[a]!];
  }
  endCommand(): void {
    for (const table of this.#tables) table.endCommand();
  }
}

class StrictTable implements RowReads, RowWrites {
  readonly #keys = new Map<string, Row>();
  #reserved: Row = 0;
  readonly #rows = new Map<Row, StrictRow>();
  /** Dropped since `endCommand`: their count may still be asked for. */
  readonly #dropped = new Set<Row>();
  #lent: Buffer[] = [];
  #nextRow = 1;

  /** Everything a command must have left in order. */
  endCommand(): void {
    this.#dropped.clear();
    this.#spoil();
    for (const row of this.#rows.values()) {
      const mayBeEmpty = row.shape === Shape.value || row.shape >= Shape.stream;
      assert(mayBeEmpty || size(row) > 0, `empty container at ${row.key}`);
    }
  }

  find(b: Buffer, s: number, n: number): Row {
    return this.#keys.get(text(b, s, n)) ?? 0;
  }
  rowCount(): number {
    return this.#rows.size;
  }
  key(row: Row, out: Slice): void {
    this.#lend(bytes(this.#get(row).key), out);
  }
  shape(row: Row): Shape {
    return row === 0 ? Shape.none : this.#get(row).shape;
  }
  count(row: Row): number {
    return this.#dropped.has(row) ? 0 : size(this.#get(row));
  }
  expireAt(row: Row): number {
    return this.#get(row).expireAt;
  }
  footprint(row: Row): number {
    return 64 + this.#get(row).key.length + size(this.#get(row)) * 16;
  }

  value(row: Row, out: Slice): void {
    this.#lend(this.#get(row, Shape.value).value, out);
  }

  field(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    const value = this.#get(row, Shape.map, Shape.set, Shape.ranked).fields.get(text(b, s, n));
    if (value !== undefined && out !== undefined) this.#lend(value, out);
    return value !== undefined;
  }
  fieldAt(row: Row, index: number, field: Slice, value: Slice): void {
    const entry = [...this.#get(row, Shape.map, Shape.set, Shape.ranked).fields][index];
    assert(entry !== undefined, `field ${index} is out of range`);
    this.#lend(bytes(entry[0]), field);
    this.#lend(entry[1], value);
  }
  eachField(row: Row, visit: FieldVisitor): void {
    this.#walkFields([...this.#get(row, Shape.map, Shape.set, Shape.ranked).fields], visit);
  }
  scanFields(row: Row, cursor: number, budget: number, visit: FieldVisitor): number {
    const { fields } = this.#get(row, Shape.map, Shape.set, Shape.ranked);
    const [some, next] = scanByHash([...fields], cursor, budget);
    this.#walkFields(some, visit);
    return next;
  }

  score(row: Row, b: Buffer, s: number, n: number): number {
    return this.#get(row, Shape.ranked).scores.get(text(b, s, n)) ?? NaN;
  }
  rank(row: Row, b: Buffer, s: number, n: number): number {
    return this.#ranked(row).findIndex(([member]) => member === text(b, s, n));
  }
  eachByRank(row: Row, from: number, count: number, reverse: boolean, visit: RankedVisitor): void {
    const members = this.#ranked(row);
    if (reverse) members.reverse();
    this.#walkRanked(members.slice(from, from + count), visit);
  }
  eachByScore(
    row: Row,
    range: ScoreRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    const members = this.#ranked(row).filter(([, score]) => inScores(range, score));
    if (reverse) members.reverse();
    this.#walkRanked(members.slice(offset, limit < 0 ? undefined : offset + limit), visit);
  }
  countByScore(row: Row, range: ScoreRange): number {
    return this.#ranked(row).filter(([, score]) => inScores(range, score)).length;
  }
  eachByLex(
    row: Row,
    range: LexRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    const members = this.#ranked(row).filter(([member]) => inLex(range, member));
    if (reverse) members.reverse();
    this.#walkRanked(members.slice(offset, limit < 0 ? undefined : offset + limit), visit);
  }
  countByLex(row: Row, range: LexRange): number {
    return this.#ranked(row).filter(([member]) => inLex(range, member)).length;
  }

  element(row: Row, index: number, out: Slice): boolean {
    const element = this.#get(row, Shape.array).elements[index];
    if (element === undefined || index < 0) return false;
    this.#lend(element, out);
    return true;
  }
  eachElement(row: Row, from: number, count: number, reverse: boolean, visit: BytesVisitor): void {
    const { elements } = this.#get(row, Shape.array);
    assert(from >= 0 && from < elements.length, `element ${from} is out of range`);
    let left = count;
    for (let i = from; i >= 0 && i < elements.length && left > 0; left--) {
      if (this.#show(elements[i]!, (b) => visit(b, 0, b.length))) return;
      i += reverse ? -1 : 1;
    }
  }

  scan(cursor: number, budget: number, visit: (row: Row) => void): number {
    const [some, next] = scanByHash([...this.#keys], cursor, budget);
    for (const [, row] of some) visit(row);
    return next;
  }
  anyRow(random: number): Row {
    const rows = [...this.#keys.values()];
    return rows[Math.floor(random * rows.length)] ?? 0;
  }

  putValue(
    b: Buffer,
    s: number,
    n: number,
    vb: Buffer,
    vs: number,
    vn: number,
    expireAt: number,
  ): Row {
    const value = Buffer.from(vb.subarray(vs, vs + vn));
    const row = this.create(b, s, n, Shape.value);
    this.#get(row).value = value;
    this.#get(row).expireAt = expireAt;
    return row;
  }
  reserveValue(b: Buffer, s: number, n: number, bytes: number, expireAt: number): Row {
    // Whatever was in that memory.
    const row = this.putValue(b, s, n, Buffer.alloc(bytes, 0xa5), 0, bytes, expireAt);
    this.#reserved = row;
    return row;
  }
  fillValue(offset: number, vb: Buffer, vs: number, vn: number): void {
    this.patchValue(this.#reserved, offset, vb, vs, vn);
  }
  patchValue(row: Row, offset: number, vb: Buffer, vs: number, vn: number): void {
    const r = this.#get(row, Shape.value);
    const patched = Buffer.alloc(Math.max(r.value.length, offset + vn));
    r.value.copy(patched);
    vb.copy(patched, offset, vs, vs + vn);
    this.#spoil();
    r.value = patched;
  }
  create(b: Buffer, s: number, n: number, shape: Shape): Row {
    const key = text(b, s, n);
    const old = this.#keys.get(key);
    if (old !== undefined) this.drop(old);
    this.#spoil();
    const row = this.#nextRow++;
    this.#keys.set(key, row);
    this.#rows.set(row, {
      key,
      shape,
      expireAt: 0,
      value: nothing,
      fields: new Map(),
      scores: new Map(),
      elements: [],
    });
    return row;
  }
  drop(row: Row): void {
    this.#keys.delete(this.#get(row).key);
    this.#rows.delete(row);
    this.#dropped.add(row);
    this.#spoil();
  }
  setExpireAt(row: Row, expireAt: number): void {
    this.#get(row).expireAt = expireAt;
    this.#spoil();
  }
  rename(row: Row, b: Buffer, s: number, n: number): Row {
    const r = this.#get(row);
    const key = text(b, s, n);
    const old = this.#keys.get(key);
    if (old !== undefined && old !== row) this.drop(old);
    this.#keys.delete(r.key);
    this.#rows.delete(row);
    const renamed = this.#nextRow++;
    r.key = key;
    this.#keys.set(key, renamed);
    this.#rows.set(renamed, r);
    this.#spoil();
    return renamed;
  }

  putField(
    row: Row,
    fb: Buffer,
    fs: number,
    fn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): boolean {
    const r = this.#get(row, Shape.map, Shape.set);
    assert(r.shape === Shape.map || vn === 0, 'a member of a set has no value');
    const field = text(fb, fs, fn);
    const value = Buffer.from(vb.subarray(vs, vs + vn));
    const added = !r.fields.has(field);
    r.fields.set(field, value);
    this.#spoil();
    return added;
  }
  removeField(row: Row, b: Buffer, s: number, n: number): boolean {
    const r = this.#get(row, Shape.map, Shape.set, Shape.ranked);
    const removed = r.fields.delete(text(b, s, n));
    r.scores.delete(text(b, s, n));
    this.#afterRemoval(row);
    return removed;
  }
  putScore(row: Row, b: Buffer, s: number, n: number, score: number): boolean {
    const r = this.#get(row, Shape.ranked);
    assert(!Number.isNaN(score), 'a score is a number');
    const member = text(b, s, n);
    const added = !r.fields.has(member);
    r.fields.set(member, nothing);
    r.scores.set(member, score === 0 ? 0 : score);
    this.#spoil();
    return added;
  }

  push(row: Row, atHead: boolean, b: Buffer, s: number, n: number): void {
    this.insertElement(row, atHead ? 0 : this.count(row), b, s, n);
  }
  pop(row: Row, atHead: boolean): void {
    this.removeElements(row, atHead ? 0 : this.count(row) - 1, 1);
  }
  setElement(row: Row, index: number, b: Buffer, s: number, n: number): void {
    const { elements } = this.#get(row, Shape.array);
    assert(index >= 0 && index < elements.length, `element ${index} is out of range`);
    elements[index] = Buffer.from(b.subarray(s, s + n));
    this.#spoil();
  }
  insertElement(row: Row, index: number, b: Buffer, s: number, n: number): void {
    const { elements } = this.#get(row, Shape.array);
    assert(index >= 0 && index <= elements.length, `element ${index} is out of range`);
    elements.splice(index, 0, Buffer.from(b.subarray(s, s + n)));
    this.#spoil();
  }
  removeElements(row: Row, index: number, count: number): void {
    const { elements } = this.#get(row, Shape.array);
    assert(index >= 0 && count >= 0 && index + count <= elements.length, 'range is out of range');
    elements.splice(index, count);
    this.#afterRemoval(row);
  }

  streamState(row: Row, out: Slice): void {
    this.#lend(this.#get(row, Shape.stream, Shape.timed).value, out);
  }
  streamRecord(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    const value = this.#get(row, Shape.stream, Shape.timed).fields.get(text(b, s, n));
    if (value !== undefined && out !== undefined) this.#lend(value, out);
    return value !== undefined;
  }
  eachStreamRecord(
    row: Row,
    from: Buffer,
    to: Buffer,
    reverse: boolean,
    _want: number,
    visit: FieldVisitor,
  ): void {
    const keys = this.#keysBetween(row, from, to);
    if (reverse) keys.reverse();
    const { fields } = this.#get(row, Shape.stream, Shape.timed);
    this.#walkFields(
      keys.map((key) => [key, fields.get(key)!]),
      visit,
    );
  }
  setStreamState(row: Row, b: Buffer, s: number, n: number): void {
    this.#get(row, Shape.stream, Shape.timed).value = Buffer.from(b.subarray(s, s + n));
    this.#spoil();
  }
  addStreamRecord(...[row, kb, ks, kn, vb, vs, vn]: RecordArguments): void {
    const { fields } = this.#get(row, Shape.stream, Shape.timed);
    const key = text(kb, ks, kn);
    assert(!fields.has(key), 'a record that is added is new');
    fields.set(key, Buffer.from(vb.subarray(vs, vs + vn)));
    this.#spoil();
  }
  setStreamRecord(...[row, kb, ks, kn, vb, vs, vn]: RecordArguments): void {
    const { fields } = this.#get(row, Shape.stream, Shape.timed);
    const key = text(kb, ks, kn);
    assert(fields.has(key), 'a record that is set is there');
    fields.set(key, Buffer.from(vb.subarray(vs, vs + vn)));
    this.#spoil();
  }
  removeStreamRecord(row: Row, b: Buffer, s: number, n: number): boolean {
    const removed = this.#get(row, Shape.stream, Shape.timed).fields.delete(text(b, s, n));
    this.#spoil();
    return removed;
  }
  removeStreamRecords(row: Row, from: Buffer, to: Buffer): number {
    const keys = this.#keysBetween(row, from, to);
    for (const key of keys) this.#get(row, Shape.stream, Shape.timed).fields.delete(key);
    this.#spoil();
    return keys.length;
  }
  #keysBetween(row: Row, from: Buffer, to: Buffer): string[] {
    const low = from.toString('latin1');
    const high = to.toString('latin1');
    const keys = [...this.#get(row, Shape.stream, Shape.timed).fields.keys()];
    return keys.filter((key) => key >= low && key < high).sort();
  }

  clear(): void {
    for (const row of this.#rows.keys()) this.drop(row);
  }

  #get(row: Row, ...shapes: Shape[]): StrictRow {
    const found = this.#rows.get(row);
    assert(found !== undefined, `row ${row} is no more`);
    assert(shapes.length === 0 || shapes.includes(found.shape), 'a row of another shape');
    return found;
  }

  #ranked(row: Row): [string, number][] {
    return [...this.#get(row, Shape.ranked).scores].sort((a, b) => a[1] - b[1] || byName(a, b));
  }

  #afterRemoval(row: Row): void {
    this.#spoil();
    if (size(this.#get(row)) === 0) this.drop(row);
  }

  #lend(value: Buffer, out: Slice): void {
    // Not at the start of its buffer, as in an engine.
    const copy = Buffer.concat([Buffer.from('..'), value, Buffer.from('..')]);
    this.#lent.push(copy);
    out.set(copy, 2, value.length);
  }

  #show<T>(value: Buffer, to: (b: Buffer) => T): T {
    const copy = Buffer.from(value);
    const answer = to(copy);
    copy.fill(0xdd);
    return answer;
  }

  #walkFields(fields: [string, Buffer][], visit: FieldVisitor): void {
    for (const [field, value] of fields) {
      const stop = this.#show(bytes(field), (f) =>
        this.#show(value, (v) => visit(f, 0, f.length, v, 0, v.length)),
      );
      if (stop) return;
    }
  }

  #walkRanked(members: [string, number][], visit: RankedVisitor): void {
    for (const [member, score] of members) {
      if (this.#show(bytes(member), (m) => visit(m, 0, m.length, score))) return;
    }
  }

  #spoil(): void {
    for (const lent of this.#lent) lent.fill(0xdd);
    this.#lent = [];
  }
}

function size(row: StrictRow): number {
  if (row.shape === Shape.value) return row.value.length;
  return row.shape === Shape.array ? row.elements.length : row.fields.size;
}

/** About `budget` entries whose names hash to `cursor` or more, in that order, and the next cursor. */
function scanByHash<T>(
  entries: [string, T][],
  cursor: number,
  budget: number,
): [[string, T][], number] {
  const hash = ([name]: [string, T]) => hashBytes(bytes(name), 0, name.length);
  const left = entries.filter((e) => hash(e) >= cursor).sort((a, b) => hash(a) - hash(b));
  const last = left[budget - 1];
  if (last === undefined) return [left, 0];
  const next = hash(last) + 1;
  const some = left.filter((e) => hash(e) < next);
  return [some, some.length < left.length ? next : 0];
}

function byName(a: [string, unknown], b: [string, unknown]): number {
  return a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;
}

function inScores(range: ScoreRange, score: number): boolean {
  const { min, minExclusive, max, maxExclusive } = range;
  return (minExclusive ? score > min : score >= min) && (maxExclusive ? score < max : score <= max);
}

function inLex(range: LexRange, member: string): boolean {
  const { min, minExclusive, max, maxExclusive } = range;
  const m = bytes(member);
  const low = min === undefined ? 1 : Buffer.compare(m, min);
  const high = max === undefined ? -1 : Buffer.compare(m, max);
  return (minExclusive ? low > 0 : low >= 0) && (maxExclusive ? high < 0 : high <= 0);
}
