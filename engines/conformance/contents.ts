// An engine's contents as plain values, with unordered collections sorted, so that two engines can
// be compared. Bytes are strings of one character a byte (latin1), so that cases read easily.

import assert from 'node:assert/strict';
import { Op, RecordBatchReader } from '../../universal-row/record-batch.ts';
import { Shape } from '../../universal-row/rows.ts';

export interface RowContent {
  shape: Shape;
  expireAt: number;
  /**
   * value: the bytes. map: field, value, field, value ... by field. set: members, sorted. ranked:
   * member, score, member, score ... in the row's order. array: elements. stream: state, then key, value,
   * key, value ... by key.
   */
  items: readonly (string | number)[];
}

/** Rows by table and key, as `rowName` writes them. */
export type EngineContents = Map<string, RowContent>;

export function rowName(table: number, key: string): string {
  return `${table}/${key}`;
}

export function value(bytes: string): RowContent {
  return { shape: Shape.value, expireAt: 0, items: [bytes] };
}

/** Field, value, field, value ... in any order. */
export function map(...items: string[]): RowContent {
  const pairs = pairsOf(items).sort((a, b) => compareText(a[0], b[0]));
  return { shape: Shape.map, expireAt: 0, items: pairs.flat() };
}

export function set(...members: string[]): RowContent {
  return { shape: Shape.set, expireAt: 0, items: members.slice().sort(compareText) };
}

/** Member, score, member, score ... in any order. */
export function ranked(...items: (string | number)[]): RowContent {
  const pairs = pairsOf(items) as [string, number][];
  return { shape: Shape.ranked, expireAt: 0, items: pairs.sort(compareRanked).flat() };
}

export function array(...elements: string[]): RowContent {
  return { shape: Shape.array, expireAt: 0, items: elements };
}

/** Key, value, key, value ... in any order. */
export function stream(state: string, ...items: string[]): RowContent {
  const pairs = pairsOf(items).sort((a, b) => compareText(a[0], b[0]));
  return { shape: Shape.stream, expireAt: 0, items: [state, ...pairs.flat()] };
}

export function expiring(content: RowContent, expireAt: number): RowContent {
  return { ...content, expireAt };
}

export function pairsOf<T>(items: readonly T[]): [T, T][] {
  const pairs: [T, T][] = [];
  for (let i = 0; i < items.length; i += 2) pairs.push([items[i]!, items[i + 1]!]);
  return pairs;
}

/** The order of bytes: JavaScript compares strings by code unit, and here each unit is a byte. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function compareRanked(a: [string, number], b: [string, number]): number {
  return a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : compareText(a[0], b[0]);
}

/** Fails with the first rows that differ, cut to a readable length. */
export function assertSameContents(
  actual: EngineContents,
  expected: EngineContents,
  what: string,
): void {
  const differences: string[] = [];
  for (const name of new Set([...expected.keys(), ...actual.keys()])) {
    const found = actual.get(name);
    const wanted = expected.get(name);
    if (found === undefined || wanted === undefined || !sameRow(found, wanted)) {
      differences.push(describeDifference(name, found, wanted));
    }
    if (differences.length === 3) break;
  }
  assert.ok(differences.length === 0, `${what}:\n${differences.join('\n')}`);
}

function sameRow(a: RowContent, b: RowContent): boolean {
  if (a.shape !== b.shape || a.expireAt !== b.expireAt) return false;
  if (a.items.length !== b.items.length) return false;
  // Object.is tells -0, which is never stored, from 0.
  return a.items.every((item, i) => Object.is(item, b.items[i]));
}

function describeDifference(
  name: string,
  found: RowContent | undefined,
  wanted: RowContent | undefined,
): string {
  let from = 0;
  if (found !== undefined && wanted !== undefined) {
    while (from < wanted.items.length && Object.is(found.items[from], wanted.items[from])) from++;
  }
  const from0 = Math.max(0, from - 1);
  return (
    `  row ${brief(name)}\n    is        ${describeRow(found, from0)}\n` +
    `    should be ${describeRow(wanted, from0)}`
  );
}

function describeRow(row: RowContent | undefined, from: number): string {
  if (row === undefined) return 'not there';
  const shape = Object.keys(Shape).find((name) => Shape[name as keyof typeof Shape] === row.shape);
  const items = row.items.slice(from, from + 6).map((item) => brief(item));
  const expiry = row.expireAt === 0 ? '' : ` expiring at ${row.expireAt}`;
  const start = from === 0 ? '' : `from item ${from} on `;
  return `${shape}${expiry} of ${row.items.length} items, ${start}${items.join(' ')}`;
}

function brief(item: string | number): string {
  if (typeof item === 'number') return Object.is(item, -0) ? '-0' : String(item);
  if (item.length <= 40) return JSON.stringify(item);
  return `${JSON.stringify(item.slice(0, 30))}...(${item.length} bytes)`;
}

// A batch is to be of at most about 512 KiB.
const batchBytesLimit = 768 * 1024;

/** Reads an export on its own, without an engine. Checks the size of its batches as well. */
export async function decodeSnapshot(batches: AsyncIterable<Buffer>): Promise<EngineContents> {
  const rows = new Map<string, ExportedRow>();
  for await (const batch of batches) {
    const largest = decodeBatch(batch, rows);
    assert.ok(
      batch.length <= batchBytesLimit || batch.length - largest <= batchBytesLimit,
      `a batch of ${batch.length} bytes whose largest element has ${largest}`,
    );
  }
  const contents: EngineContents = new Map();
  for (const [name, row] of rows) contents.set(name, row.content());
  return contents;
}

class ExportedRow {
  readonly shape: Shape;
  expireAt = 0;
  bytes = '';
  readonly fields = new Map<string, string>();
  readonly scores = new Map<string, number>();
  readonly elements: string[] = [];

  constructor(shape: Shape) {
    this.shape = shape;
  }

  content(): RowContent {
    const content = this.#withoutExpiry();
    assert.ok(content.items.length > 0, 'an exported container is not empty');
    return expiring(content, this.expireAt);
  }

  #withoutExpiry(): RowContent {
    switch (this.shape) {
      case Shape.map:
        return map(...[...this.fields].flat());
      case Shape.set:
        return set(...this.fields.keys());
      case Shape.ranked:
        return ranked(...[...this.scores].flat());
      case Shape.array:
        return array(...this.elements);
      case Shape.timed:
        return { ...stream(this.bytes, ...[...this.fields].flat()), shape: Shape.timed };
      case Shape.stream:
        return stream(this.bytes, ...[...this.fields].flat());
      default:
        return value(this.bytes);
    }
  }
}

/** Returns the bytes of the largest key, field, value or element. */
function decodeBatch(batch: Buffer, rows: Map<string, ExportedRow>): number {
  const r = new RecordBatchReader(batch, 0, batch.length);
  let name = '';
  let largest = 0;
  const bytes = (): string => {
    r.bytes();
    largest = Math.max(largest, r.length);
    return batch.toString('latin1', r.start, r.start + r.length);
  };
  const current = (): ExportedRow => {
    const row = rows.get(name);
    assert.ok(row !== undefined, `an export fills the row ${brief(name)} that it did not create`);
    return row;
  };
  const newRow = (shape: Shape): ExportedRow => {
    assert.ok(!rows.has(name), `an export has the row ${brief(name)} twice`);
    const row = new ExportedRow(shape);
    rows.set(name, row);
    return row;
  };
  while (r.pos < r.end) {
    const op = r.byte();
    switch (op) {
      case Op.row:
        name = rowName(r.varint(), bytes());
        break;
      case Op.value:
      case Op.valueForever: {
        name = rowName(r.varint(), bytes());
        const row = newRow(Shape.value);
        if (op === Op.value) row.expireAt = r.double();
        row.bytes = bytes();
        break;
      }
      case Op.patch: {
        const row = current();
        const offset = r.varint();
        const patch = bytes();
        const head = row.bytes.padEnd(offset, '\0').slice(0, offset);
        row.bytes = head + patch + row.bytes.slice(offset + patch.length);
        break;
      }
      case Op.create:
        newRow(r.byte() as Shape);
        break;
      case Op.expire:
        current().expireAt = r.double();
        break;
      case Op.streamState:
        current().bytes = bytes();
        break;
      case Op.field:
      case Op.streamAdd: {
        const field = bytes();
        current().fields.set(field, bytes());
        break;
      }
      case Op.member:
        current().fields.set(bytes(), '');
        break;
      case Op.score: {
        const score = r.double();
        current().scores.set(bytes(), score);
        break;
      }
      case Op.tail:
        current().elements.push(bytes());
        break;
      case Op.head:
        current().elements.unshift(bytes());
        break;
      default:
        assert.fail(`an export holds op ${op}, which nothing needs in one`);
    }
  }
  return largest;
}
