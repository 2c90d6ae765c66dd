// Tables for people: a line of titles, then a line for each thing, in columns.

import { styleText } from 'node:util';
import { printable } from './values.ts';

export interface Column<T> {
  title: string;
  /** Text, or a number for a column of numbers, which stand to the right. */
  value: (row: T) => string | number;
  right?: boolean;
}

/** Whether the output is a terminal with colours. */
function isColoured(stream: { isTTY?: boolean } = process.stdout): boolean {
  if (process.env['NO_COLOR']) return false;
  return stream.isTTY === true && process.env['TERM'] !== 'dumb';
}

/** The lines joined, without an end of line after the last one. `nothing` is said of an empty list. */
export async function grid<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  nothing = 'none',
): Promise<string> {
  if (rows.length === 0) return nothing;
  // Loaded only here: a start has no need of it.
  const { default: Table } = await import('cli-table3');
  const blank = { top: '', 'top-mid': '', 'top-left': '', 'top-right': '' };
  const bottom = { bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' };
  const middle = { left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '' };
  const table = new Table({
    chars: { ...blank, ...bottom, ...middle, middle: '  ' },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
    colAligns: columns.map(({ right }) => (right ? 'right' : 'left')),
  });
  const title = (text: string): string => (isColoured() ? styleText('bold', text) : text);
  table.push(columns.map((column) => title(column.title)));
  for (const row of rows) {
    table.push(columns.map(({ value }) => printable(String(value(row)))));
  }
  return withoutEnds(table.toString());
}

/** Names and values of one thing, a line each. */
export function card(lines: readonly (readonly [name: string, value: string | number])[]): string {
  const width = Math.max(...lines.map(([name]) => name.length));
  return lines
    .map(([name, value]) => `${name.padEnd(width)}  ${printable(String(value))}`.trimEnd())
    .join('\n');
}

function withoutEnds(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}
