// OBJECT: the encoding Redis would use for a row, from its contents and the limits in CONFIG; and
// the memory the row takes here.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes, parseInteger, Slice } from '../../bytes.ts';
import { CommandError, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Row, type Rows, Shape } from '../../rows.ts';
import { encodingLimits as limits, maxCompactEntries } from './support/encoding-limits.ts';

const noFrequencies = new CommandError(
  'ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.',
);

const noIdleTimes = new CommandError(
  'ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.',
);

const embeddedBytes = 44;
const sharedIntegers = 10_000;
const sharedReferences = 2_147_483_647;

const value = new Slice();

function encodingOf(rows: Rows, row: Row): string {
  switch (rows.shape(row)) {
    case Shape.value:
      return stringEncoding(rows, row);
    case Shape.map:
      return isCompact(rows, row, limits.hashEntries, limits.hashValueBytes)
        ? 'listpack'
        : 'hashtable';
    case Shape.set:
      if (isFew(rows, row, limits.setIntegers) && isAllIntegers(rows, row)) return 'intset';
      return isCompact(rows, row, limits.setEntries, limits.setValueBytes)
        ? 'listpack'
        : 'hashtable';
    case Shape.ranked:
      return isCompact(rows, row, limits.rankedEntries, limits.rankedValueBytes)
        ? 'listpack'
        : 'skiplist';
    case Shape.stream:
      return 'stream';
    case Shape.timed:
      return rows.footprint(row) <= limits.hashEntries * limits.hashValueBytes
        ? 'listpackex'
        : 'hashtable';
    default:
      return 'quicklist';
  }
}

function stringEncoding(rows: Rows, row: Row): string {
  if (!Number.isNaN(integerValue(rows, row))) return 'int';
  return rows.count(row) <= embeddedBytes ? 'embstr' : 'raw';
}

/** NaN when the row is not a value that is an integer. */
function integerValue(rows: Rows, row: Row): number {
  if (rows.shape(row) !== Shape.value) return NaN;
  rows.value(row, value);
  const integer = parseInteger(value.b, value.s, value.n);
  value.b = emptyBytes;
  return integer;
}

function isFew(rows: Rows, row: Row, entries: number): boolean {
  return rows.count(row) <= Math.min(entries, maxCompactEntries);
}

/** Whether it has no more fields or members, and none is longer. */
function isCompact(rows: Rows, row: Row, entries: number, bytes: number): boolean {
  if (!isFew(rows, row, entries)) return false;
  let short = true;
  if (rows.shape(row) === Shape.ranked) {
    rows.eachByRank(row, 0, rows.count(row), false, (_b, _s, n) => {
      short = n <= bytes;
      return !short;
    });
  } else {
    rows.eachField(row, (_fb, _fs, fn, _vb, _vs, vn) => {
      short = fn <= bytes && vn <= bytes;
      return !short;
    });
  }
  return short;
}

function isAllIntegers(rows: Rows, row: Row): boolean {
  let integers = true;
  rows.eachField(row, (b, s, n) => {
    integers = !Number.isNaN(parseInteger(b, s, n));
    return !integers;
  });
  return integers;
}

/** The row under the key in word 2; answers nil when there is none. */
function rowOrNil(rows: Rows, args: Arguments, reply: Reply): Row {
  const row = rows.find(args.buf, args.starts[2]!, args.lens[2]!);
  if (row === 0) reply.nil();
  return row;
}

export function objectEncoding(rows: Rows, args: Arguments, reply: Reply): void {
  const row = rowOrNil(rows, args, reply);
  if (row !== 0) reply.text(encodingOf(rows, row));
}

export function objectRefcount(rows: Rows, args: Arguments, reply: Reply): void {
  const row = rowOrNil(rows, args, reply);
  if (row === 0) return;
  const integer = integerValue(rows, row);
  reply.integer(integer >= 0 && integer < sharedIntegers ? sharedReferences : 1);
}

/** 0 where the engine does not track use. */
export function objectIdletime(rows: Rows, args: Arguments, reply: Reply): void {
  const row = rowOrNil(rows, args, reply);
  if (row === 0) return;
  if (rows.frequency?.(row) !== undefined) throw noIdleTimes;
  reply.integer(Math.floor((rows.idleMs?.(row) ?? 0) / 1000));
}

export function objectFreq(rows: Rows, args: Arguments, reply: Reply): void {
  const row = rowOrNil(rows, args, reply);
  if (row === 0) return;
  const frequency = rows.frequency?.(row);
  if (frequency === undefined) throw noFrequencies;
  reply.integer(frequency);
}

export function memoryUsage(rows: Rows, args: Arguments, reply: Reply): void {
  for (let i = 3; i < args.count; i += 2) {
    if (i + 1 === args.count || !args.is(i, 'SAMPLES')) throw syntaxError;
    // The engine counts a row's memory exactly, so no sampling is needed.
    if (args.integer(i + 1) < 0) throw syntaxError;
  }
  const row = rowOrNil(rows, args, reply);
  if (row !== 0) reply.integer(Math.round(rows.footprint(row)));
}

export function memoryPurge(_rows: Rows, _args: Arguments, reply: Reply): void {
  reply.ok();
}

export function memoryMallocStats(_rows: Rows, _args: Arguments, reply: Reply): void {
  reply.verbatim('Stats not supported for the current allocator');
}
