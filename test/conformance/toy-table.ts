// The rows of a toy table, in maps and arrays. Bytes are latin1 strings inside.

import type { RowTable } from '../../engines/engine.ts';
import type { Slice } from '../../universal-row/bytes.ts';
import {
  Shape,
  type BytesVisitor,
  type FieldVisitor,
  type LexRange,
  type RankedVisitor,
  type Row,
  type ScoreRange,
} from '../../universal-row/rows.ts';

/** `seq` orders rows and fields for scans: a cursor is the seq to go on from. */
interface Field {
  seq: number;
  value: string;
  score: number;
}

export interface ToyRow {
  seq: Row;
  key: string;
  shape: Shape;
  expireAt: number;
  bytes: string;
  fields: Map<string, Field>;
  elements: string[];
}

const text = (b: Buffer, s: number, n: number): string => b.toString('latin1', s, s + n);
export const bytesOf = (t: string): Buffer => Buffer.from(t, 'latin1');
const fill = (out: Slice, t: string): void => out.set(bytesOf(t), 0, t.length);
type Scored = [member: string, score: number];
const byScore = (a: Scored, b: Scored): number =>
  a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;

/** State the tables share with their engine. */
export interface ToyTransaction {
  nextSeq: number;
  readonly bySeq: Map<Row, ToyRow>;
  /** May throw a `ReadFault`. */
  maybeFault(): void;
  undo(step: () => void): void;
  isFirstChange(row: ToyRow): boolean;
}

const copyOf = (row: ToyRow): ToyRow => ({
  ...row,
  fields: new Map(row.fields),
  elements: row.elements.slice(),
});

export class ToyTable implements RowTable {
  #reserved: Row = 0;
  rows = new Map<string, ToyRow>();
  readonly #tx: ToyTransaction;
  readonly #sorted = new WeakMap<Map<string, Field>, Scored[]>();

  constructor(tx: ToyTransaction) {
    this.#tx = tx;
  }

  #row(row: Row): ToyRow {
    const found = this.#tx.bySeq.get(row);
    if (found === undefined) throw new Error(`no row ${row}`);
    return found;
  }

  /** The row, about to change: `rollback` brings back what it was. */
  #change(row: ToyRow): ToyRow {
    if (this.#tx.isFirstChange(row)) {
      const before = copyOf(row);
      this.#tx.undo(() => Object.assign(row, before));
    }
    this.#sorted.delete(row.fields);
    return row;
  }

  #add(key: string, shape: Shape): ToyRow {
    const old = this.rows.get(key);
    if (old !== undefined) this.drop(old.seq);
    const fields = new Map<string, Field>();
    const seq = old?.seq ?? this.#tx.nextSeq++;
    return this.#attach({ seq, key, shape, expireAt: 0, bytes: '', fields, elements: [] });
  }

  #attach(row: ToyRow): ToyRow {
    const { rows } = this;
    this.#tx.undo(() => void (rows.delete(row.key), this.#tx.bySeq.delete(row.seq)));
    rows.set(row.key, row);
    this.#tx.bySeq.set(row.seq, row);
    return row;
  }

  #dropIfEmpty(row: ToyRow): void {
    if (row.fields.size === 0 && row.elements.length === 0) this.drop(row.seq);
  }

  find(b: Buffer, s: number, n: number): Row {
    this.#tx.maybeFault();
    return this.rows.get(text(b, s, n))?.seq ?? 0;
  }
  rowCount = (): number => this.rows.size;
  key = (row: Row, out: Slice): void => fill(out, this.#row(row).key);
  shape = (row: Row): Shape => (row === 0 ? Shape.none : this.#row(row).shape);
  count(row: Row): number {
    const found = this.#tx.bySeq.get(row);
    if (found === undefined) return 0;
    if (found.shape >= Shape.stream) return found.fields.size;
    return found.bytes.length + found.fields.size + found.elements.length;
  }
  expireAt = (row: Row): number => this.#row(row).expireAt;
  footprint(row: Row): number {
    const { key, bytes, fields, elements } = this.#row(row);
    let sum = 64 + key.length + bytes.length;
    for (const [name, { value }] of fields) sum += 32 + name.length + value.length;
    return elements.reduce((total, element) => total + 16 + element.length, sum);
  }
  value = (row: Row, out: Slice): void => fill(out, this.#row(row).bytes);

  field(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    this.#tx.maybeFault();
    const field = this.#row(row).fields.get(text(b, s, n));
    if (field !== undefined && out !== undefined) fill(out, field.value);
    return field !== undefined;
  }
  fieldAt(row: Row, index: number, field: Slice, value: Slice): void {
    const [name, found] = [...this.#row(row).fields][index]!;
    fill(field, name);
    fill(value, found.value);
  }
  eachField(row: Row, visit: FieldVisitor): void {
    for (const [name, { value }] of this.#row(row).fields) {
      if (visit(bytesOf(name), 0, name.length, bytesOf(value), 0, value.length)) return;
    }
  }
  scanFields(row: Row, cursor: number, budget: number, visit: FieldVisitor): number {
    let left = budget;
    for (const [name, { seq, value }] of this.#row(row).fields) {
      if (seq < cursor) continue;
      if (left-- === 0) return seq;
      if (visit(bytesOf(name), 0, name.length, bytesOf(value), 0, value.length)) return seq + 1;
    }
    return 0;
  }

  #ranked(row: Row): Scored[] {
    const { fields } = this.#row(row);
    let sorted = this.#sorted.get(fields);
    if (sorted === undefined) {
      sorted = [...fields].map(([name, { score }]): Scored => [name, score]).sort(byScore);
      this.#sorted.set(fields, sorted);
    }
    return sorted;
  }
  #walk(
    found: Scored[],
    reverse: boolean,
    from: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    const ordered = reverse ? found.toReversed() : found;
    for (const [member, score] of ordered.slice(from, from + limit)) {
      if (visit(bytesOf(member), 0, member.length, score)) return;
    }
  }
  #inScores(row: Row, { min, minExclusive, max, maxExclusive }: ScoreRange): Scored[] {
    return this.#ranked(row).filter(
      ([, score]) =>
        (minExclusive ? score > min : score >= min) && (maxExclusive ? score < max : score <= max),
    );
  }
  #inLex(row: Row, range: LexRange): Scored[] {
    const min = range.min && Buffer.from(range.min).toString('latin1');
    const max = range.max && Buffer.from(range.max).toString('latin1');
    return this.#ranked(row).filter(
      ([member]) =>
        (min === undefined || (range.minExclusive ? member > min : member >= min)) &&
        (max === undefined || (range.maxExclusive ? member < max : member <= max)),
    );
  }
  score(row: Row, b: Buffer, s: number, n: number): number {
    this.#tx.maybeFault();
    return this.#row(row).fields.get(text(b, s, n))?.score ?? NaN;
  }
  rank(row: Row, b: Buffer, s: number, n: number): number {
    const member = text(b, s, n);
    return this.#ranked(row).findIndex(([name]) => name === member);
  }
  eachByRank(row: Row, from: number, count: number, reverse: boolean, visit: RankedVisitor): void {
    this.#walk(this.#ranked(row), reverse, from, count, visit);
  }
  eachByScore(
    ...[row, range, reverse, offset, limit, visit]: Parameters<RowTable['eachByScore']>
  ): void {
    this.#walk(this.#inScores(row, range), reverse, offset, limit, visit);
  }
  countByScore = (row: Row, range: ScoreRange): number => this.#inScores(row, range).length;
  eachByLex(
    ...[row, range, reverse, offset, limit, visit]: Parameters<RowTable['eachByLex']>
  ): void {
    this.#walk(this.#inLex(row, range), reverse, offset, limit, visit);
  }
  countByLex = (row: Row, range: LexRange): number => this.#inLex(row, range).length;

  element(row: Row, index: number, out: Slice): boolean {
    const element = this.#row(row).elements[index];
    if (element !== undefined) fill(out, element);
    return element !== undefined;
  }
  eachElement(row: Row, from: number, count: number, reverse: boolean, visit: BytesVisitor): void {
    const { elements } = this.#row(row);
    const step = reverse ? -1 : 1;
    for (let i = from, left = count; left > 0 && elements[i] !== undefined; i += step, left--) {
      if (visit(bytesOf(elements[i]!), 0, elements[i]!.length)) return;
    }
  }

  scan(cursor: number, budget: number, visit: (row: Row) => void): number {
    const rest = [...this.rows.values()].filter((row) => row.seq >= cursor);
    rest.sort((a, b) => a.seq - b.seq);
    for (const row of rest.slice(0, budget)) visit(row.seq);
    return rest[budget]?.seq ?? 0;
  }
  anyRow(random: number): Row {
    return [...this.rows.values()][Math.floor(random * this.rows.size)]?.seq ?? 0;
  }
  storedBytes(): number {
    let bytes = 0;
    for (const row of this.rows.values()) {
      bytes += row.key.length + row.bytes.length;
      for (const [name, { value }] of row.fields) bytes += name.length + value.length;
      for (const element of row.elements) bytes += element.length;
    }
    return bytes;
  }
  get expiringRows(): number {
    return this.#expiring().length;
  }
  #expiring = (): ToyRow[] => [...this.rows.values()].filter((row) => row.expireAt !== 0);
  expired(now: number, limit: number, visit: (row: Row) => void): void {
    const due = this.#expiring().filter((row) => row.expireAt <= now);
    due.sort((a, b) => a.expireAt - b.expireAt);
    for (const row of due.slice(0, limit)) visit(row.seq);
  }

  putValue(...[b, s, n, vb, vs, vn, expireAt]: Parameters<RowTable['putValue']>): Row {
    const value = text(vb, vs, vn);
    const row = this.#add(text(b, s, n), Shape.value);
    row.bytes = value;
    row.expireAt = expireAt;
    return row.seq;
  }
  reserveValue(...[b, s, n, bytes, expireAt]: Parameters<RowTable['reserveValue']>): Row {
    this.#reserved = this.putValue(b, s, n, Buffer.alloc(bytes), 0, bytes, expireAt);
    return this.#reserved;
  }
  fillValue(offset: number, vb: Buffer, vs: number, vn: number): void {
    this.patchValue(this.#reserved, offset, vb, vs, vn);
  }
  patchValue(row: Row, offset: number, vb: Buffer, vs: number, vn: number): void {
    const found = this.#change(this.#row(row));
    const head = found.bytes.padEnd(offset, '\0').slice(0, offset);
    found.bytes = head + text(vb, vs, vn) + found.bytes.slice(offset + vn);
  }
  create = (b: Buffer, s: number, n: number, shape: Shape): Row =>
    this.#add(text(b, s, n), shape).seq;
  drop(row: Row): void {
    const found = this.#row(row);
    const { rows } = this;
    this.#tx.undo(() => void (rows.set(found.key, found), this.#tx.bySeq.set(row, found)));
    rows.delete(found.key);
    this.#tx.bySeq.delete(row);
  }
  setExpireAt = (row: Row, at: number): void => void (this.#change(this.#row(row)).expireAt = at);
  rename(row: Row, b: Buffer, s: number, n: number): Row {
    const found = this.#row(row);
    const key = text(b, s, n);
    if (key === found.key) return row;
    this.drop(row);
    const old = this.rows.get(key);
    if (old !== undefined) this.drop(old.seq);
    return this.#attach({ ...copyOf(found), key, seq: this.#tx.nextSeq++ }).seq;
  }

  #set(row: Row, name: string, value: string, score: number): boolean {
    const { fields } = this.#change(this.#row(row));
    const old = fields.get(name);
    fields.set(name, { seq: old?.seq ?? this.#tx.nextSeq++, value, score });
    return old === undefined;
  }
  putField = (...[row, fb, fs, fn, vb, vs, vn]: Parameters<RowTable['putField']>): boolean =>
    this.#set(row, text(fb, fs, fn), text(vb, vs, vn), 0);
  putScore = (row: Row, b: Buffer, s: number, n: number, score: number): boolean =>
    this.#set(row, text(b, s, n), '', score + 0);
  removeField(row: Row, b: Buffer, s: number, n: number): boolean {
    const found = this.#change(this.#row(row));
    const removed = found.fields.delete(text(b, s, n));
    this.#dropIfEmpty(found);
    return removed;
  }

  #splice(row: Row, index: number, remove: number, ...elements: string[]): void {
    const found = this.#change(this.#row(row));
    found.elements.splice(index, remove, ...elements);
    this.#dropIfEmpty(found);
  }
  push = (row: Row, atHead: boolean, b: Buffer, s: number, n: number): void =>
    this.#splice(row, atHead ? 0 : this.#row(row).elements.length, 0, text(b, s, n));
  pop = (row: Row, atHead: boolean): void => this.#splice(row, atHead ? 0 : -1, 1);
  setElement = (row: Row, index: number, b: Buffer, s: number, n: number): void =>
    this.#splice(row, index, 1, text(b, s, n));
  insertElement = (row: Row, index: number, b: Buffer, s: number, n: number): void =>
    this.#splice(row, index, 0, text(b, s, n));
  removeElements = (row: Row, index: number, count: number): void =>
    this.#splice(row, index, count);

  streamState = (row: Row, out: Slice): void => fill(out, this.#row(row).bytes);
  streamRecord = (row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean =>
    this.field(row, b, s, n, out);
  eachStreamRecord(
    ...[row, from, to, reverse, , visit]: Parameters<RowTable['eachStreamRecord']>
  ): void {
    this.#tx.maybeFault();
    const names = this.#between(row, from, to);
    for (const name of reverse ? names.toReversed() : names) {
      const { value } = this.#row(row).fields.get(name)!;
      if (visit(bytesOf(name), 0, name.length, bytesOf(value), 0, value.length)) return;
    }
  }
  #between(row: Row, from: Buffer, to: Buffer): string[] {
    const [low, high] = [from.toString('latin1'), to.toString('latin1')];
    return [...this.#row(row).fields.keys()].filter((key) => key >= low && key < high).sort();
  }
  setStreamState = (row: Row, b: Buffer, s: number, n: number): void =>
    void (this.#change(this.#row(row)).bytes = text(b, s, n));
  addStreamRecord = (...record: Parameters<RowTable['addStreamRecord']>): void =>
    void this.putField(...record);
  setStreamRecord = (...record: Parameters<RowTable['setStreamRecord']>): void =>
    void this.putField(...record);
  removeStreamRecord = (row: Row, b: Buffer, s: number, n: number): boolean =>
    this.#change(this.#row(row)).fields.delete(text(b, s, n));
  removeStreamRecords(row: Row, from: Buffer, to: Buffer): number {
    const names = this.#between(row, from, to);
    const found = this.#change(this.#row(row));
    for (const name of names) found.fields.delete(name);
    return names.length;
  }

  clear(): void {
    const { rows } = this;
    this.#tx.undo(() => void (this.rows = rows));
    this.rows = new Map();
  }
}
