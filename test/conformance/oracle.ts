// Reference model of an engine in the simplest form: rows by key, containers as arrays with linear
// search. It shares no code with any engine.

import {
  array,
  compareRanked,
  expiring,
  map,
  ranked,
  rowName,
  set,
  stream,
  value,
  type EngineContents,
  type RowContent,
} from '../../engines/conformance/contents.ts';
import { Shape, type LexRange, type ScoreRange } from '../../universal-row/rows.ts';

type Pair = [name: string, value: string];
export type Scored = [member: string, score: number];

export interface OracleRow {
  shape: Shape;
  expireAt: number;
  bytes: string;
  /** Fields of a map or set; records of a stream, in any order. */
  fields: Pair[];
  /** In order. */
  scores: Scored[];
  elements: string[];
}

export type OracleTable = Map<string, OracleRow>;

export class Oracle {
  tables: OracleTable[];

  constructor(tables: number) {
    this.tables = Array.from({ length: tables }, () => new Map());
  }

  copy(): Oracle {
    const copy = new Oracle(0);
    copy.tables = structuredClone(this.tables);
    return copy;
  }

  contents(): EngineContents {
    const contents: EngineContents = new Map();
    this.tables.forEach((table, number) => {
      for (const [key, row] of table) contents.set(rowName(number, key), contentOf(row));
    });
    return contents;
  }
}

export function newRow(shape: Shape): OracleRow {
  return { shape, expireAt: 0, bytes: '', fields: [], scores: [], elements: [] };
}

export function countOf(row: OracleRow): number {
  if (row.shape === Shape.stream) return row.fields.length;
  return row.bytes.length + row.fields.length + row.scores.length + row.elements.length;
}

export function contentOf(row: OracleRow): RowContent {
  const content =
    row.shape === Shape.value
      ? value(row.bytes)
      : row.shape === Shape.map
        ? map(...row.fields.flat())
        : row.shape === Shape.set
          ? set(...row.fields.map(([name]) => name))
          : row.shape === Shape.ranked
            ? ranked(...row.scores.flat())
            : row.shape === Shape.stream
              ? stream(row.bytes, ...row.fields.flat())
              : array(...row.elements);
  return expiring(content, row.expireAt);
}

/** Drops a container whose last element went. */
export function dropIfEmpty(table: OracleTable, key: string): void {
  const row = table.get(key);
  if (row === undefined || row.shape === Shape.value || row.shape === Shape.stream) return;
  if (countOf(row) === 0) table.delete(key);
}

export function putField(row: OracleRow, name: string, bytes: string): boolean {
  const pair = row.fields.find(([found]) => found === name);
  if (pair === undefined) row.fields.push([name, bytes]);
  else pair[1] = bytes;
  return pair === undefined;
}

export function putScore(row: OracleRow, member: string, score: number): boolean {
  const isNew = !row.scores.some(([found]) => found === member);
  row.scores = row.scores.filter(([found]) => found !== member);
  row.scores.push([member, score === 0 ? 0 : score]);
  row.scores.sort(compareRanked);
  return isNew;
}

export function removeField(table: OracleTable, key: string, name: string): boolean {
  const row = table.get(key)!;
  const before = countOf(row);
  row.fields = row.fields.filter(([found]) => found !== name);
  row.scores = row.scores.filter(([found]) => found !== name);
  const removed = countOf(row) < before;
  dropIfEmpty(table, key);
  return removed;
}

export function patch(row: OracleRow, offset: number, bytes: string): void {
  const head = row.bytes.padEnd(offset, '\0').slice(0, offset);
  row.bytes = head + bytes + row.bytes.slice(offset + bytes.length);
}

export function inScores(row: OracleRow, range: ScoreRange): Scored[] {
  return row.scores.filter(
    ([, score]) =>
      (range.minExclusive ? score > range.min : score >= range.min) &&
      (range.maxExclusive ? score < range.max : score <= range.max),
  );
}

export function inLex(row: OracleRow, range: LexRange): Scored[] {
  const min = range.min && Buffer.from(range.min).toString('latin1');
  const max = range.max && Buffer.from(range.max).toString('latin1');
  return row.scores.filter(
    ([member]) =>
      (min === undefined || (range.minExclusive ? member > min : member >= min)) &&
      (max === undefined || (range.maxExclusive ? member < max : member <= max)),
  );
}
