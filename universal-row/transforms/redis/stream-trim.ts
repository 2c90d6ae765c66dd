// Trimming streams from their first entry on: the options of XADD and XTRIM, and the removal.
//
// redis-server keeps entries in nodes of a hundred, and trims approximately by whole nodes. Here
// entries are removed in the same numbers: the result is the same, as long as XDEL removed none and
// entries are small.

import type { Arguments } from '../../arguments.ts';
import { CommandError, type ReadFault, syntaxError } from '../../errors.ts';
import { type Row, type Rows, Shape } from '../../rows.ts';
import { isLong, shortWork, step, stepElements } from '../../steps.ts';
import { invalidId, parseId, StreamId } from './stream-id.ts';
import { allEntries, entriesBetween, StreamState, type KeyRange } from './stream-layout.ts';
import { encodingLimits } from './support/encoding-limits.ts';
import { eachRecordInSteps, Tally } from './support/long-walks.ts';
import { typedRow } from './support/typed-row.ts';

const twoStrategies = new CommandError(
  'ERR syntax error, MAXLEN and MINID options at the same time are not compatible',
);
const negativeLength = new CommandError('ERR The MAXLEN argument must be >= 0.');
const negativeLimit = new CommandError('ERR The LIMIT argument must be >= 0.');
const limitAlone = new CommandError(
  'ERR syntax error, LIMIT cannot be used without specifying a trimming strategy',
);
const noStrategy = new CommandError(
  'ERR syntax error, XTRIM must be called with a trimming strategy',
);
const exactLimit = new CommandError(
  'ERR syntax error, LIMIT cannot be used without the special ~ option',
);

const mostByDefault = 1_000_000;

export interface Trim {
  kind: 'none' | 'maxLength' | 'minId';
  isApproximate: boolean;
  maxLength: number;
  readonly minId: StreamId;
  /** Entries to remove at most. */
  limit: number;
  /** For XADD: do not create the stream. */
  mustExist: boolean;
  /** For XADD: position of the id among the arguments. */
  idWord: number;
}

const trim: Trim = {
  kind: 'none',
  isApproximate: false,
  maxLength: 0,
  minId: new StreamId(),
  limit: Infinity,
  mustExist: false,
  idWord: 0,
};

/** Copy for a long command: the object `parseTrim` returns is reused. */
export function copyOfTrim(of: Trim): Trim {
  return { ...of, minId: new StreamId().set(of.minId) };
}

/**
 * Parses the arguments from the third on; for XADD, `readId` is called with the position of the id.
 */
export function parseTrim(
  args: Arguments,
  readId: ((args: Arguments, word: number) => void) | undefined,
): Trim {
  trim.kind = 'none';
  trim.isApproximate = false;
  trim.mustExist = false;
  let limit = -1;
  let i = 2;
  for (; i < args.count; i++) {
    const more = args.count - 1 - i;
    if (readId !== undefined && args.lens[i] === 1 && args.buf[args.starts[i]!] === 42) break;
    if (args.is(i, 'MAXLEN') && more > 0) i = strategy(args, i, 'maxLength');
    else if (args.is(i, 'MINID') && more > 0) i = strategy(args, i, 'minId');
    else if (args.is(i, 'LIMIT') && more > 0) {
      limit = args.integer(++i);
      if (limit < 0) throw negativeLimit;
    } else if (readId === undefined) throw syntaxError;
    else if (args.is(i, 'NOMKSTREAM')) trim.mustExist = true;
    else break;
  }
  trim.idWord = i;
  if (readId !== undefined && i < args.count) readId(args, i);
  if (limit > 0 && trim.kind === 'none') throw limitAlone;
  if (readId === undefined && trim.kind === 'none') throw noStrategy;
  if (limit >= 0 && !trim.isApproximate) throw exactLimit;
  trim.limit = Infinity;
  if (limit > 0) trim.limit = limit;
  else if (limit < 0 && trim.isApproximate)
    trim.limit = Math.min(mostByDefault, 100 * nodeEntries());
  return trim;
}

/** Reads the threshold after MAXLEN or MINID; returns its last argument. */
function strategy(args: Arguments, word: number, kind: 'maxLength' | 'minId'): number {
  if (trim.kind !== 'none') throw twoStrategies;
  let i = word + 1;
  trim.isApproximate = false;
  if (i + 1 < args.count && (args.is(i, '~') || args.is(i, '='))) {
    trim.isApproximate = args.is(i, '~');
    i++;
  }
  if (kind === 'maxLength') {
    trim.maxLength = args.integer(i);
    if (trim.maxLength < 0) throw negativeLength;
  } else if (!parseId(args.buf, args.starts[i]!, args.lens[i]!, false, trim.minId)) throw invalidId;
  trim.kind = kind;
  return i;
}

/** As many entries go at a time when trimming is approximate. */
function nodeEntries(): number {
  return encodingLimits.streamNodeEntries > 0 ? encodingLimits.streamNodeEntries : 100;
}

/**
 * Number of removable entries that are removed. Nodes begin at multiples of the node size, counted
 * over all entries ever added.
 */
function rounded(entries: number, { isApproximate, limit }: Trim, state: StreamState): number {
  if (!isApproximate) return entries;
  const node = nodeEntries();
  const mayGo = Math.min(entries, limit);
  // The last node may be only begun.
  if (mayGo >= state.length) return state.length;
  const first = node - (Math.max(0, state.entriesAdded - state.length) % node);
  return mayGo < first ? 0 : first + Math.floor((mayGo - first) / node) * node;
}

const lengths = new StreamState();

/** Whether trimming is long, once `added` entries were added. */
export function isLongTrim(rows: Rows, row: Row, of: Trim, added: number): boolean {
  if (row === 0 || of.kind === 'none') return false;
  if (of.kind === 'maxLength') {
    lengths.load(rows, row);
    const entries = rounded(lengths.length + added - of.maxLength, of, lengths);
    return entries > 0 && isLong(rows, row, entries);
  }
  if (!isLong(rows, row)) return false;
  const most = Math.min(of.limit, shortWork.elements + 1);
  return countBelow(rows, row, of.minId, most) >= most;
}

function countBelow(rows: Rows, row: Row, minId: StreamId, most: number): number {
  const { from, to } = below(minId);
  let count = 0;
  rows.eachStreamRecord(row, from, to, false, most, () => ++count >= most);
  return count;
}

/** Entries before this id. */
function below(minId: StreamId): KeyRange {
  const { from } = entriesBetween(minId, minId);
  return { from: allEntries.from, to: from, prefix: allEntries.prefix };
}

/** Removes the few entries to trim; returns their number. The caller saves the state afterwards. */
export function trimNow(rows: Rows, row: Row, state: StreamState, of: Trim): number {
  let removed = 0;
  if (of.kind === 'maxLength') {
    const entries = rounded(state.length - of.maxLength, of, state);
    removed = removeFirst(rows, row, allEntries, entries, state.length);
  } else if (!of.isApproximate) {
    const { from, to } = below(of.minId);
    removed = rows.removeStreamRecords(row, from, to);
  } else {
    const entries = rounded(countBelow(rows, row, of.minId, of.limit), of, state);
    removed = removeFirst(rows, row, allEntries, entries, state.length);
  }
  state.length -= removed;
  return removed;
}

/** Removes the first `entries` of the range, which has `total`. */
function removeFirst(
  rows: Rows,
  row: Row,
  { from, to }: KeyRange,
  entries: number,
  total: number,
): number {
  if (entries <= 0) return 0;
  if (entries >= total) return rows.removeStreamRecords(row, from, to);
  let left = entries;
  let end = from;
  rows.eachStreamRecord(row, from, to, false, entries, (kb, ks, kn) => {
    if (--left > 0) return false;
    end = Buffer.allocUnsafe(kn + 1);
    kb.copy(end, 0, ks, ks + kn);
    end[kn] = 0;
    return true;
  });
  return rows.removeStreamRecords(row, from, end);
}

/** Removes records of a range, about `limit` of them at most, a step at a time; returns how many. */
export function* removeInSteps(
  rows: Rows,
  args: Arguments,
  word: number,
  range: KeyRange,
  limit: number,
  removed: (row: Row, count: number) => void,
): Generator<ReadFault | undefined, number, undefined> {
  let total = 0;
  while (total < limit) {
    const most = Math.min(stepElements, limit - total);
    const count = yield* step(() => {
      const row = typedRow(rows, args, word, Shape.stream);
      if (row === 0) return 0;
      const some = removeFirst(rows, row, range, most, Infinity);
      if (some > 0) removed(row, some);
      return some;
    });
    total += count;
    if (count < most) break;
  }
  return total;
}

/** As `trimNow`, of the stream in word 1, a step at a time; saves the state. */
export function* trimInSteps(
  rows: Rows,
  args: Arguments,
  of: Trim,
): Generator<ReadFault | undefined, number, undefined> {
  const state = new StreamState();
  const find = (): Row => typedRow(rows, args, 1, Shape.stream);
  let range = allEntries;
  let entries = Infinity;
  yield* step(() => state.load(rows, find()));
  if (of.kind === 'maxLength') entries = rounded(state.length - of.maxLength, of, state);
  else {
    range = below(of.minId);
    if (of.isApproximate) {
      const tally = new Tally();
      yield* eachRecordInSteps(
        rows,
        find,
        range.from,
        range.to,
        () => ++tally.value >= of.limit,
        tally,
      );
      entries = rounded(tally.value, of, state);
    }
  }
  return yield* removeInSteps(rows, args, 1, range, entries, (row, count) => {
    state.load(rows, row);
    state.length -= count;
    state.save(rows, row);
  });
}
