// Entries of streams: XADD, XLEN, XRANGE, XREVRANGE, XDEL, XSETID, and how an entry is answered.

import type { Arguments } from '../../arguments.ts';
import { equalBytes, Slice, viewed } from '../../bytes.ts';
import { CommandError, noSuchKey, type ReadFault, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Row, type Rows, Shape } from '../../rows.ts';
import {
  isLong,
  runNow,
  shortWork,
  step,
  StepSize,
  type Steps,
  type StepTransform,
} from '../../steps.ts';
import { invalidId, maxIdTextBytes, parseId, parseTimeOnly, StreamId } from './stream-id.ts';
import { Packed, Unpacked } from './stream-bytes.ts';
import {
  addEntry,
  edgeId,
  entriesBetween,
  findEntry,
  findNames,
  maxNamesBytes,
  removeEntry,
  saveNames,
  StreamState,
  type KeyRange,
} from './stream-layout.ts';
import {
  copyOfTrim,
  isLongTrim,
  parseTrim,
  trimInSteps,
  trimNow,
  type Trim,
} from './stream-trim.ts';
import { eachWord, Tally } from './support/long-walks.ts';
import { createRow, typedRow } from './support/typed-row.ts';

const wrongWords = new CommandError("ERR wrong number of arguments for 'xadd' command");
const zeroId = new CommandError('ERR The ID specified in XADD must be greater than 0-0');
const exhausted = new CommandError(
  'ERR The stream has exhausted the last possible ID, unable to add more items',
);
const smallId = new CommandError(
  'ERR The ID specified in XADD is equal or smaller than the target stream top item',
);
const badStart = new CommandError('ERR invalid start ID for the interval');
const badEnd = new CommandError('ERR invalid end ID for the interval');
const negativeAdded = new CommandError('ERR entries_added must be positive');
const smallSetId = new CommandError(
  'ERR The ID specified in XSETID is smaller than the target stream top item',
);
const smallAdded = new CommandError(
  'ERR The entries_added specified in XSETID is smaller than the target stream length',
);
const smallForDeleted = new CommandError(
  'ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id',
);

const state = new StreamState();
const id = new StreamId();
const names = new Slice();
const content = new Packed();
const text = viewed(Buffer.alloc(maxIdTextBytes));

/** The id in a word. Throws unless it is one. */
export function idArgument(args: Arguments, word: number, isEnd: boolean, to: StreamId): void {
  if (!parseId(args.buf, args.starts[word]!, args.lens[word]!, isEnd, to)) throw invalidId;
}

export function answerId(reply: Reply, of: StreamId): void {
  reply.bulk(text, 0, of.writeText(text, 0));
}

// XADD

/** How XADD is to choose the id. */
interface GivenId {
  isGiven: boolean;
  /** Only its time. */
  isTime: boolean;
}
const given: GivenId = { isGiven: false, isTime: false };

function parseGiven(args: Arguments, word: number): void {
  const s = args.starts[word]!;
  const n = args.lens[word]!;
  given.isGiven = !(n === 1 && args.buf[s] === 42);
  given.isTime = false;
  if (!given.isGiven) return;
  if (parseTimeOnly(args.buf, s, n, id)) given.isTime = true;
  else if (!parseId(args.buf, s, n, false, id)) throw invalidId;
}

export function xadd(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const trim = parseTrim(args, parseGiven);
  const first = trim.idWord + 1;
  const words = args.count - first;
  if (words < 2 || words % 2 === 1) throw wrongWords;
  if (given.isGiven && !given.isTime && id.isZero) throw zeroId;
  const found = typedRow(rows, args, 1, Shape.stream);
  if (found === 0 && trim.mustExist) return reply.nil();
  if (words > shortWork.elements || isLongTrim(rows, found, trim, 1)) return xaddInSteps;
  const row = found === 0 ? createRow(rows, args, 1, Shape.stream) : found;
  state.load(rows, row);
  chooseId(rows.now);
  beginContent(rows, row, args, first);
  for (let i = first; i < args.count; i++) packWord(args, i, first);
  append(rows, row, reply);
  if (trim.kind !== 'none') trimNow(rows, row, state, trim);
  state.save(rows, row);
}

/** Makes `id` the one of the new entry. */
function chooseId(now: number): void {
  const { last } = state;
  if (last.isMax) throw exhausted;
  if (!given.isGiven) {
    id.setTime(now);
    if (id.compare(last) <= 0) id.set(last).increment();
    return;
  }
  if (given.isTime && id.hasTimeOf(last) && !id.set(last).incrementSequence()) throw smallId;
  if (id.compare(last) <= 0) throw smallId;
}

/** Whether the new entry refers to the names that the stream's entries have in common. */
let isNamed = false;

/**
 * Begins the content of an entry. While a stream is empty, the common names of its entries become
 * the new entry's.
 */
function beginContent(rows: Rows, row: Row, args: Arguments, first: number): void {
  const pairs = (args.count - first) / 2;
  isNamed = state.hasNames && hasSameNames(rows, row, args, first);
  if (!isNamed && state.length === 0 && namesBytes(args, first) <= maxNamesBytes) {
    content.begin().varint(pairs);
    for (let i = first; i < args.count; i += 2) {
      content.bytes(args.buf, args.starts[i]!, args.lens[i]!);
    }
    saveNames(rows, row, !state.hasNames, content);
    state.hasNames = true;
    isNamed = true;
  }
  content.begin();
  if (isNamed) content.byte(1);
  else content.byte(0).varint(pairs);
}

const knownNames = new Unpacked();

function hasSameNames(rows: Rows, row: Row, args: Arguments, first: number): boolean {
  if (!findNames(rows, row, names)) return false;
  const known = knownNames.open(names);
  let left = known.varint();
  if (left !== (args.count - first) / 2) return false;
  for (let i = first; left > 0; left--, i += 2) {
    known.bytes();
    const { start, length } = known;
    if (!equalBytes(names.b, start, length, args.buf, args.starts[i]!, args.lens[i]!)) return false;
  }
  return true;
}

function namesBytes(args: Arguments, first: number): number {
  let bytes = 0;
  for (let i = first; i < args.count && bytes <= maxNamesBytes; i += 2) bytes += args.lens[i]! + 1;
  return bytes;
}

/** Adds a word to the content: a value, or a name where names are not in common. */
function packWord(args: Arguments, word: number, first: number): void {
  if (isNamed && (word - first) % 2 === 0) return;
  content.bytes(args.buf, args.starts[word]!, args.lens[word]!);
}

/** Adds the entry of `id` and `content`, and answers the id. */
function append(rows: Rows, row: Row, reply: Reply): void {
  addEntry(rows, row, id, content);
  state.last.set(id);
  state.length++;
  state.entriesAdded++;
  answerId(reply, id);
}

function* xaddInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const trim = copyOfTrim(parseTrim(args, parseGiven));
  const first = trim.idWord + 1;
  const entry = new Packed();
  // The names are in the entry itself: to compare that many would be a walk of its own.
  entry.byte(0).varint((args.count - first) / 2);
  yield* eachWord(args, first, args.count, 1, packedUndo(entry), noBegin, (word) => {
    entry.bytes(args.buf, args.starts[word]!, args.lens[word]!);
  });
  yield* step(() => {
    parseGiven(args, trim.idWord);
    const found = typedRow(rows, args, 1, Shape.stream);
    const row = found === 0 ? createRow(rows, args, 1, Shape.stream) : found;
    state.load(rows, row);
    chooseId(rows.now);
    addEntry(rows, row, id, entry);
    state.last.set(id);
    state.length++;
    state.entriesAdded++;
    state.save(rows, row);
    answerId(reply, id);
  });
  if (trim.kind !== 'none') yield* trimInSteps(rows, args, trim);
}

const noBegin = (): void => {};

function packedUndo(of: Packed): { mark(): number; rollback(mark: number): void } {
  return {
    mark: () => of.n,
    rollback(mark) {
      of.n = mark;
    },
  };
}

export function xtrim(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const trim: Trim = parseTrim(args, undefined);
  const row = typedRow(rows, args, 1, Shape.stream);
  if (row === 0) return reply.integer(0);
  if (isLongTrim(rows, row, trim, 0)) {
    return function* (all: Rows, words: Arguments, answer: Reply): Steps {
      const removed = yield* trimInSteps(all, words, copyOfTrim(parseTrim(words, undefined)));
      yield* step(() => answer.integer(removed));
    };
  }
  state.load(rows, row);
  const removed = trimNow(rows, row, state, trim);
  if (removed > 0) state.save(rows, row);
  reply.integer(removed);
}

export function xlen(rows: Rows, args: Arguments, reply: Reply): void {
  const row = typedRow(rows, args, 1, Shape.stream);
  if (row === 0) return reply.integer(0);
  state.load(rows, row);
  reply.integer(state.length);
}

// Answers

/** Answers entries of one row. */
export class EntryAnswer {
  #row: Row = 0;
  #rows: Rows | undefined;
  readonly #names = new Slice();
  #hasNames = false;
  readonly #value = new Unpacked();
  readonly #name = new Unpacked();
  readonly #id = new StreamId();

  /** Before the entries of a row, and again after anything was written. */
  begin(rows: Rows, row: Row): void {
    this.#rows = rows;
    this.#row = row;
    this.#hasNames = findNames(rows, row, this.#names);
  }

  /** Answers the entry under this id; false when there is none. */
  find(reply: Reply, of: StreamId): boolean {
    if (!findEntry(this.#rows!, this.#row, of, found)) return false;
    this.#id.set(of);
    this.#entry(reply, found.b, found.s, found.n);
    return true;
  }

  /** Answers an entry as a walk shows it. */
  show(reply: Reply, kb: Buffer, ks: number, vb: Buffer, vs: number, vn: number): void {
    this.#id.read(kb, ks + 1);
    this.#entry(reply, vb, vs, vn);
  }

  #entry(reply: Reply, b: Buffer, s: number, n: number): void {
    reply.array(2);
    answerId(reply, this.#id);
    const value = this.#value;
    value.b = b;
    value.at = s + 1;
    if (b[s] === 0) {
      const words = value.varint() * 2;
      reply.array(words);
      for (let i = 0; i < words; i++) {
        value.bytes();
        reply.bulk(b, value.start, value.length);
      }
      return;
    }
    if (!this.#hasNames) throw new RangeError(`an entry of ${n} bytes without its names`);
    const name = this.#name.open(this.#names);
    const pairs = name.varint();
    reply.array(pairs * 2);
    for (let i = 0; i < pairs; i++) {
      name.bytes();
      reply.bulk(name.b, name.start, name.length);
      value.bytes();
      reply.bulk(b, value.start, value.length);
    }
  }
}

const found = new Slice();
const answer = new EntryAnswer();

const oneZero = Buffer.alloc(1);

/** Answers entries of a range, `limit` at most, as an array, a step at a time; returns how many there are. */
export function* answerRange(
  rows: Rows,
  args: Arguments,
  word: number,
  range: KeyRange,
  limit: number,
  isReverse: boolean,
  reply: Reply,
): Generator<ReadFault | undefined, number, undefined> {
  const size = new StepSize();
  const mark = reply.open();
  let { from, to } = range;
  let total = 0;
  for (let isOver = false; !isOver; ) {
    const [low, high, most] = [from, to, limit - total];
    const seen = yield* step(() => {
      size.begin();
      const row = typedRow(rows, args, word, Shape.stream);
      const page: { count: number; last: Buffer | undefined } = { count: 0, last: undefined };
      if (row === 0 || most === 0) return page;
      answer.begin(rows, row);
      const want = Math.min(size.elements, most);
      rows.eachStreamRecord(row, low, high, isReverse, want, (kb, ks, kn, vb, vs, vn) => {
        answer.show(reply, kb, ks, vb, vs, vn);
        page.count++;
        if (page.count === most) return true;
        if (!size.add(kn + vn)) return false;
        page.last = Buffer.from(kb.subarray(ks, ks + kn));
        return true;
      });
      return page;
    });
    size.end();
    total += seen.count;
    isOver = seen.last === undefined;
    if (seen.last === undefined) break;
    if (isReverse) to = seen.last;
    else from = Buffer.concat([seen.last, oneZero]);
  }
  yield* step(() => reply.close(mark, 'array', total));
  return total;
}

/** An id of an interval: a leading `(` excludes it. Throws for an invalid one. */
export function boundArgument(args: Arguments, word: number, isEnd: boolean, to: StreamId): void {
  const s = args.starts[word]!;
  const n = args.lens[word]!;
  const first = args.buf[s];
  if (n > 1 && first === 40) {
    if (!parseId(args.buf, s + 1, n - 1, isEnd, to)) throw invalidId;
    if (isEnd && !to.decrement()) throw badEnd;
    if (!isEnd && !to.increment()) throw badStart;
    return;
  }
  if (n === 1 && first === 45) to.setZero();
  else if (n === 1 && first === 43) to.setMax();
  else if (!parseId(args.buf, s, n, isEnd, to)) throw invalidId;
}

interface Range {
  readonly start: StreamId;
  readonly end: StreamId;
  count: number;
}

function parseRange(args: Arguments, isReverse: boolean): Range {
  const range = { start: new StreamId(), end: new StreamId(), count: Infinity };
  boundArgument(args, isReverse ? 3 : 2, false, range.start);
  boundArgument(args, isReverse ? 2 : 3, true, range.end);
  for (let i = 4; i < args.count; i += 2) {
    if (!args.is(i, 'COUNT') || i + 1 >= args.count) throw syntaxError;
    range.count = Math.max(0, args.integer(i + 1));
  }
  return range;
}

function answerRangeOf(isReverse: boolean): StepTransform {
  return function* (rows: Rows, args: Arguments, reply: Reply): Steps {
    const { start, end, count } = parseRange(args, isReverse);
    yield* answerRange(rows, args, 1, entriesBetween(start, end), count, isReverse, reply);
  };
}

const ranges = { forward: answerRangeOf(false), reverse: answerRangeOf(true) };

function rangeOrLong(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  isReverse: boolean,
): StepTransform | void {
  const { count } = parseRange(args, isReverse);
  const row = typedRow(rows, args, 1, Shape.stream);
  if (row === 0) return reply.array(0);
  if (count === 0) return reply.nilArray();
  const form = isReverse ? ranges.reverse : ranges.forward;
  if (isLong(rows, row, count)) return form;
  runNow(form(rows, args, reply));
}

export function xrange(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return rangeOrLong(rows, args, reply, false);
}

export function xrevrange(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return rangeOrLong(rows, args, reply, true);
}

// XDEL and XSETID

export function xdel(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const row = typedRow(rows, args, 1, Shape.stream);
  if (row === 0) return reply.integer(0);
  if (args.count - 2 > shortWork.elements) return xdelInSteps;
  runNow(xdelInSteps(rows, args, reply));
}

function* xdelInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  yield* checkIds(args, 2, args.count);
  let row: Row = 0;
  const deleted = new Tally();
  const of = new StreamState();
  const one = new StreamId();
  yield* eachWord(
    args,
    2,
    args.count,
    1,
    deleted,
    () => {
      row = typedRow(rows, args, 1, Shape.stream);
      if (row !== 0) of.load(rows, row);
    },
    (word) => {
      idArgument(args, word, false, one);
      if (row === 0 || !removeEntry(rows, row, one)) return;
      deleted.value++;
      of.length--;
      if (one.compare(of.maxDeleted) > 0) of.maxDeleted.set(one);
      of.save(rows, row);
    },
  );
  yield* step(() => reply.integer(deleted.value));
}

/** Throws unless words [from, to) are ids: a command is carried out for all of them or none. */
export function* checkIds(args: Arguments, from: number, to: number): Steps {
  const one = new StreamId();
  yield* eachWord(args, from, to, 1, undefined, noBegin, (word) => {
    idArgument(args, word, false, one);
  });
}

export function xsetid(rows: Rows, args: Arguments, reply: Reply): void {
  idArgument(args, 2, false, id);
  const deleted = new StreamId();
  let added = -1;
  for (let i = 3; i < args.count; i += 2) {
    const isLast = i + 1 >= args.count;
    if (args.is(i, 'ENTRIESADDED') && !isLast) {
      added = args.integer(i + 1);
      if (added < 0) throw negativeAdded;
    } else if (args.is(i, 'MAXDELETEDID') && !isLast) {
      idArgument(args, i + 1, false, deleted);
      if (id.compare(deleted) < 0) throw smallForDeleted;
    } else throw syntaxError;
  }
  const row = typedRow(rows, args, 1, Shape.stream);
  if (row === 0) throw noSuchKey;
  state.load(rows, row);
  if (state.length > 0) {
    const last = new StreamId();
    if (edgeId(rows, row, true, last) && id.compare(last) < 0) throw smallSetId;
    if (added !== -1 && state.length > added) throw smallAdded;
  }
  state.last.set(id);
  if (added !== -1) state.entriesAdded = added;
  if (!deleted.isZero) state.maxDeleted.set(deleted);
  state.save(rows, row);
  reply.ok();
}
