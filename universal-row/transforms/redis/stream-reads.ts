// Reading entries behind an id: XREAD, and XREADGROUP, which records the deliveries to consumers.
// Both may block.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes } from '../../bytes.ts';
import { CommandError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Row, type Rows, Shape } from '../../rows.ts';
import {
  isLong,
  runNow,
  shortWork,
  step,
  stepElements,
  StepSize,
  type Steps,
  type StepTransform,
} from '../../steps.ts';
import { answerId, answerRange, EntryAnswer, idArgument } from './stream-entries.ts';
import { maxIdTextBytes, shownWord, StreamId } from './stream-id.ts';
import {
  allEntries,
  entriesFrom,
  type KeyRange,
  PendingEntry,
  pendingBetween,
  StreamConsumer,
  StreamGroup,
  StreamState,
} from './stream-layout.ts';
import { parseRead, type Read } from './stream-read-arguments.ts';
import { StreamProgress } from './stream-progress.ts';
import { ByteList } from './support/byte-list.ts';
import { typedRow } from './support/typed-row.ts';

const lastInGroup = new CommandError(
  'ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.',
);
const newInRead = new CommandError(
  'ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.',
);
const keyGone = new CommandError('UNBLOCKED the stream key no longer exists');
const groupGone = new CommandError(
  'NOGROUP the consumer group this client was blocked on no longer exists',
);

const state = new StreamState();
const last = new StreamId();
const allIds = new StreamId().setMax();

function isWord(args: Arguments, word: number, character: number): boolean {
  return args.lens[word] === 1 && args.buf[args.starts[word]!] === character;
}

/** Whether there is an entry behind the id. */
function hasBehind(rows: Rows, row: Row, of: StreamState, id: StreamId): boolean {
  if (row === 0 || of.length === 0 || of.last.compare(id) <= 0) return false;
  let found = false;
  const { from, to } = entriesBehind(id);
  rows.eachStreamRecord(row, from, to, false, 1, () => {
    found = true;
    return true;
  });
  return found;
}

function entriesBehind(id: StreamId): KeyRange {
  const next = new StreamId().set(id);
  // Behind the greatest id there is nothing, and the range is empty.
  if (!next.increment()) return { ...allEntries, to: emptyBytes };
  return entriesFrom(next);
}

// XREAD

/** A stream that has something for the command. */
interface Found {
  readonly word: number;
  readonly behind: StreamId;
  /** For a group: reads entries that are already pending. */
  readonly isHistory: boolean;
}

/** The streams with entries to be answered. Notes the ids that `$` stands for, so that they stay the same. */
function findEntries(rows: Rows, args: Arguments, read: Read): Found[] {
  const found: Found[] = [];
  const { keyWord, keys } = read;
  rows.expect(keyWord, keyWord + keys - 1, 1);
  const pinned: { word: number; id: StreamId }[] = [];
  for (let i = 0; i < keys; i++) {
    const idWord = keyWord + keys + i;
    const row = typedRow(rows, args, keyWord + i, Shape.stream);
    if (row === 0) state.clear();
    else state.load(rows, row);
    const behind = new StreamId();
    if (isWord(args, idWord, 36)) {
      behind.set(state.last);
      pinned.push({ word: idWord, id: behind });
    } else if (isWord(args, idWord, 62)) throw newInRead;
    else idArgument(args, idWord, false, behind);
    if (hasBehind(rows, row, state, behind)) {
      found.push({ word: keyWord + i, behind, isHistory: false });
    }
  }
  if (found.length === 0 && read.blockWord !== 0) for (const pin of pinned) pinId(args, pin);
  return found;
}

function pinId(args: Arguments, { word, id }: { word: number; id: StreamId }): void {
  const text = Buffer.alloc(maxIdTextBytes);
  args.replace(word, text.subarray(0, id.writeText(text, 0)));
}

export function xread(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const read = parseRead(args, false);
  const found = findEntries(rows, args, read);
  if (found.length === 0) {
    if (read.blockWord === 0) reply.nilArray();
    return;
  }
  const isMuch = found.some(({ word }) =>
    isLong(rows, typedRow(rows, args, word, Shape.stream), read.count),
  );
  if (isMuch || found.length > shortWork.elements) return xreadInSteps;
  runNow(answerFound(rows, args, reply, read, found));
}

function* xreadInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const read = parseRead(args, false);
  const found = yield* step(() => findEntries(rows, args, read));
  yield* answerFound(rows, args, reply, read, found);
}

function* answerFound(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  read: Read,
  found: readonly Found[],
): Steps {
  yield* step(() => begin(reply, found.length));
  for (const { word, behind } of found) {
    yield* step(() => answerKey(args, reply, word));
    yield* answerRange(rows, args, word, entriesBehind(behind), read.count, false, reply);
  }
}

function begin(reply: Reply, streams: number): void {
  if (reply.version > 2) reply.map(streams);
  else reply.array(streams);
}

function answerKey(args: Arguments, reply: Reply, word: number): void {
  if (reply.version < 3) reply.array(2);
  reply.bulk(args.buf, args.starts[word]!, args.lens[word]!);
}

// XREADGROUP

const group = new StreamGroup();
const consumer = new StreamConsumer();
const pending = new PendingEntry();
const progress = new StreamProgress();
const answer = new EntryAnswer();

/** The error of a key or group that is not there. */
function noGroup(args: Arguments, keyWord: number, groupWord: number, where: string): CommandError {
  const [key, name] = [shownWord(args, keyWord), shownWord(args, groupWord)];
  return new CommandError(`NOGROUP No such key '${key}' or consumer group '${name}'${where}`);
}

/** Loads the group of XREADGROUP for a key, and returns its row. */
function groupRow(rows: Rows, args: Arguments, word: number, groupWord: number): Row {
  const { buf, starts, lens } = args;
  const row = rows.find(buf, starts[word]!, lens[word]!);
  const isStream = row !== 0 && rows.shape(row) === Shape.stream;
  if (args.hasWaited && !isStream) throw keyGone;
  if (row !== 0 && !isStream) typedRow(rows, args, word, Shape.stream);
  if (row === 0 || !group.find(rows, row, buf, starts[groupWord]!, lens[groupWord]!)) {
    if (args.hasWaited) throw groupGone;
    throw noGroup(args, word, groupWord, ' in XREADGROUP with GROUP option');
  }
  return row;
}

function findForGroup(rows: Rows, args: Arguments, read: Read): Found[] {
  const found: Found[] = [];
  const { keyWord, keys, groupWord } = read;
  rows.expect(keyWord, keyWord + keys - 1, 1);
  for (let i = 0; i < keys; i++) {
    const word = keyWord + i;
    const idWord = word + keys;
    const row = groupRow(rows, args, word, groupWord);
    if (isWord(args, idWord, 36)) throw lastInGroup;
    const behind = new StreamId();
    if (!isWord(args, idWord, 62)) {
      idArgument(args, idWord, false, behind);
      // The greatest id stands for new entries, as in redis-server.
      if (!behind.isMax) {
        found.push({ word, behind, isHistory: true });
        continue;
      }
    }
    state.load(rows, row);
    if (hasBehind(rows, row, state, group.last)) found.push({ word, behind, isHistory: false });
  }
  return found;
}

export function xreadgroup(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const read = parseRead(args, true);
  if (read.keys === 1 && read.count <= shortCount && isWord(args, read.keyWord + 1, 62)) {
    deliverFew(rows, args, reply, read);
    return;
  }
  const found = findForGroup(rows, args, read);
  if (found.length === 0) {
    if (read.blockWord === 0) reply.nilArray();
    return;
  }
  const isMuch = found.some(({ word }) =>
    isLong(rows, typedRow(rows, args, word, Shape.stream), read.count * 2),
  );
  if (isMuch || found.length > shortWork.elements) return xreadgroupInSteps;
  runNow(deliver(rows, args, reply, read, found));
}

/** Entries of which so many are delivered without looking how many more there are. */
const shortCount = stepElements >>> 2;

/** New entries of one stream. */
function deliverFew(rows: Rows, args: Arguments, reply: Reply, read: Read): void {
  const { keyWord } = read;
  const row = groupRow(rows, args, keyWord, read.groupWord);
  state.load(rows, row);
  if (state.length > 0 && state.last.compare(group.last) > 0) {
    const start = reply.mark();
    begin(reply, 1);
    answerKey(args, reply, keyWord);
    const mark = reply.open();
    let total = 0;
    for (;;) {
      const { count, isOver } = deliverNew(rows, args, reply, read, row, read.count - total);
      total += count;
      if (isOver || total >= read.count) break;
    }
    if (total > 0) {
      reply.close(mark, 'array', total);
      return;
    }
    reply.rollback(start);
  }
  if (read.blockWord === 0) reply.nilArray();
}

function* xreadgroupInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const read = parseRead(args, true);
  const found = yield* step(() => findForGroup(rows, args, read));
  yield* deliver(rows, args, reply, read, found);
}

function* deliver(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  read: Read,
  found: readonly Found[],
): Steps {
  yield* step(() => begin(reply, found.length));
  for (const one of found) {
    yield* step(() => answerKey(args, reply, one.word));
    const mark = reply.open();
    let total = 0;
    let behind: StreamId | undefined = one.behind;
    while (behind !== undefined) {
      const from: StreamId = behind;
      const most = Math.min(stepElements >>> 2, read.count - total);
      const isHistory = one.isHistory;
      const seen: Delivered = yield* step(() =>
        isHistory
          ? deliverAgain(rows, args, reply, read, one.word, from, most)
          : deliverMore(rows, args, reply, read, one.word, most),
      );
      total += seen.count;
      behind = seen.isOver || total >= read.count ? undefined : seen.last;
    }
    const count = total;
    yield* step(() => reply.close(mark, 'array', count));
  }
}

interface Delivered {
  readonly count: number;
  readonly last: StreamId;
  readonly isOver: boolean;
}

/** The consumer of the group that is loaded; it is made if there is none. */
function loadConsumer(rows: Rows, args: Arguments, read: Read, row: Row): void {
  const nameWord = read.groupWord + 1;
  const [s, n] = [args.starts[nameWord]!, args.lens[nameWord]!];
  if (!consumer.find(rows, row, group.number, args.buf, s, n)) {
    consumer.create(rows, row, group, args.buf, s, n);
  }
  consumer.seen = rows.now;
}

function saveBoth(rows: Rows, row: Row, args: Arguments, groupWord: number): void {
  consumer.save(rows, row);
  group.save(rows, row, args.buf, args.starts[groupWord]!, args.lens[groupWord]!);
}

const delivered = new ByteList();

/** As `deliverNew`, in a step of its own. */
function deliverMore(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  read: Read,
  word: number,
  most: number,
): Delivered {
  const row = groupRow(rows, args, word, read.groupWord);
  state.load(rows, row);
  return deliverNew(rows, args, reply, read, row, most);
}

/**
 * Answers up to `most` entries that the group has not seen, and makes them pending. The stream's state and the group are
 * loaded.
 */
function deliverNew(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  read: Read,
  row: Row,
  most: number,
): Delivered {
  progress.begin(rows, row, state, group);
  answer.begin(rows, row);
  delivered.clear();
  const size = new StepSize();
  size.elements = most;
  size.begin();
  let isOver = true;
  const { from, to } = entriesBehind(group.last);
  rows.eachStreamRecord(row, from, to, false, most, (kb, ks, kn, vb, vs, vn) => {
    answer.show(reply, kb, ks, vb, vs, vn);
    delivered.add(kb, ks + 1, kn - 1);
    last.read(kb, ks + 1);
    progress.advance(group, last);
    if (!size.add(kn + vn)) return false;
    isOver = false;
    return true;
  });
  if (delivered.count === 0) return { count: 0, last, isOver };
  loadConsumer(rows, args, read, row);
  if (!read.isWithoutPending) {
    for (let i = 0; i < delivered.count; i++) {
      last.read(delivered.buf, delivered.start(i));
      makePending(rows, row, last);
    }
  }
  saveBoth(rows, row, args, read.groupWord);
  const { count } = delivered;
  delivered.clear();
  return { count, last, isOver };
}

/** Gives the entry to the consumer. It may be pending already: the group may have been set back. */
function makePending(rows: Rows, row: Row, id: StreamId): void {
  const isKnown = id.compare(group.highest) <= 0 && pending.find(rows, row, group.number, id);
  pending.delivered = rows.now;
  pending.deliveries = 1;
  if (!isKnown) {
    pending.consumer = consumer.number;
    pending.add(rows, row, group.number, id);
    group.pending++;
    consumer.pending++;
    if (id.compare(group.highest) > 0) group.highest.set(id);
    return;
  }
  giveTo(rows, row, id, consumer);
  pending.save(rows, row, group.number, id);
}

const owner = new StreamConsumer();

/** `pending` is of the entry: it becomes `to`'s, and is to be saved. Of `to`, which is to be saved as well. */
function giveTo(rows: Rows, row: Row, id: StreamId, to: StreamConsumer): void {
  passOn(rows, row, pending, id, to);
}

/** As `giveTo`, of another record of a pending entry. */
export function passOn(
  rows: Rows,
  row: Row,
  entry: PendingEntry,
  id: StreamId,
  to: StreamConsumer,
): void {
  if (entry.consumer === to.number) return;
  if (owner.load(rows, row, to.group, entry.consumer)) {
    owner.pending--;
    owner.save(rows, row);
  }
  entry.removeFrom(rows, row, to.group, id);
  entry.consumer = to.number;
  entry.addTo(rows, row, to.group, id);
  to.pending++;
}

/** Answers up to `most` entries behind an id that are pending with the consumer, as delivered once more. */
function deliverAgain(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  read: Read,
  word: number,
  behind: StreamId,
  most: number,
): Delivered {
  const row = groupRow(rows, args, word, read.groupWord);
  loadConsumer(rows, args, read, row);
  const next = new StreamId().set(behind);
  const end = new StreamId().set(behind);
  delivered.clear();
  if (next.increment()) {
    const { from, to, prefix } = pendingBetween(group.number, consumer.number, next, allIds);
    rows.eachStreamRecord(row, from, to, false, most, (kb, ks, kn) => {
      delivered.add(kb, ks + prefix, kn - prefix);
      return delivered.count >= most;
    });
  }
  answer.begin(rows, row);
  for (let i = 0; i < delivered.count; i++) {
    end.read(delivered.buf, delivered.start(i));
    const isThere = answer.find(reply, end);
    delivered.setScore(i, isThere ? 1 : 0);
    if (isThere) continue;
    reply.array(2);
    answerId(reply, end);
    reply.nilArray();
  }
  for (let i = 0; i < delivered.count; i++) {
    if (delivered.score(i) === 0) continue;
    last.read(delivered.buf, delivered.start(i));
    if (!pending.find(rows, row, group.number, last)) continue;
    pending.delivered = rows.now;
    pending.deliveries++;
    pending.save(rows, row, group.number, last);
  }
  saveBoth(rows, row, args, read.groupWord);
  const { count } = delivered;
  delivered.clear();
  return { count, last: end, isOver: count < most };
}
