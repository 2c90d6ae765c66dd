// Finding the row a command is about, and making it when it is missing.

import type { Arguments } from '../../../arguments.ts';
import { wrongType } from '../../../errors.ts';
import { type Row, type Rows, Shape } from '../../../rows.ts';

/** Thrown for a hash with fields that expire where a plain one is wanted: see `withTimedFields`. */
export const hasTimedFields = new Error('a hash with fields that expire');

/** The row under the key in this word, or 0. Throws when it is of another shape. */
export function typedRow(rows: Rows, args: Arguments, word: number, shape: Shape): Row {
  const row = rows.find(args.buf, args.starts[word]!, args.lens[word]!);
  if (row !== 0 && rows.shape(row) !== shape) throw mismatch(rows, row, shape);
  return row;
}

function mismatch(rows: Rows, row: Row, shape: Shape): Error {
  return shape === Shape.map && rows.shape(row) === Shape.timed ? hasTimedFields : wrongType;
}

/** As `typedRow`, but an empty row in place of none. */
export function typedRowToFill(rows: Rows, args: Arguments, word: number, shape: Shape): Row {
  const row = typedRow(rows, args, word, shape);
  return row !== 0 ? row : createRow(rows, args, word, shape);
}

/** An empty row under the key in this argument, replacing any existing one. */
export function createRow(rows: Rows, args: Arguments, word: number, shape: Shape): Row {
  return rows.create(args.buf, args.starts[word]!, args.lens[word]!, shape);
}

/** Drops any row under the key in this argument. */
export function dropRow(rows: Rows, args: Arguments, word: number): void {
  const row = rows.find(args.buf, args.starts[word]!, args.lens[word]!);
  if (row !== 0) rows.drop(row);
}

/** How many elements the row has; 0 for no row. */
export function sizeOf(rows: Rows, row: Row): number {
  return row === 0 ? 0 : rows.count(row);
}
