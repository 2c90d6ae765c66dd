// Consumer groups: XGROUP, XACK, XPENDING.

import type { Arguments } from '../../arguments.ts';
import { CommandError, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Row, type Rows, Shape } from '../../rows.ts';
import { runNow, shortWork, step, StepSize, type Steps, type StepTransform } from '../../steps.ts';
import { answerId, boundArgument, checkIds, idArgument } from './stream-entries.ts';
import { shownWord, StreamId } from './stream-id.ts';
import {
  consumerNames,
  consumersOf,
  PendingEntry,
  pendingBetween,
  pendingByConsumers,
  pendingOfConsumer,
  pendingOfGroup,
  StreamConsumer,
  StreamGroup,
  StreamState,
  type KeyRange,
} from './stream-layout.ts';
import { removeInSteps } from './stream-trim.ts';
import { eachRecordInSteps, eachWord, Tally } from './support/long-walks.ts';
import { createRow, typedRow } from './support/typed-row.ts';

const negativeRead = new CommandError('ERR value for ENTRIESREAD must be positive or -1');
const keyMissing = new CommandError(
  'ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.',
);
const busyGroup = new CommandError('BUSYGROUP Consumer Group name already exists');

const state = new StreamState();
const group = new StreamGroup();
const consumer = new StreamConsumer();
const pending = new PendingEntry();
const id = new StreamId();

function unknownForm(args: Arguments, command: string): CommandError {
  return new CommandError(
    `ERR unknown subcommand or wrong number of arguments for '${args.latin1(1, 128)}'. Try ${command} HELP.`,
  );
}

/** Loads the group that a word names; false when the stream has none such. */
export function findGroup(
  rows: Rows,
  row: Row,
  args: Arguments,
  word: number,
  into: StreamGroup,
): boolean {
  return row !== 0 && into.find(rows, row, args.buf, args.starts[word]!, args.lens[word]!);
}

export function saveGroup(
  rows: Rows,
  row: Row,
  args: Arguments,
  word: number,
  from: StreamGroup,
): void {
  from.save(rows, row, args.buf, args.starts[word]!, args.lens[word]!);
}

// XGROUP. Word 2 is the key, word 3 the group.

interface GroupOptions {
  makesStream: boolean;
  entriesRead: number;
}

function groupOptions(args: Arguments, mayMake: boolean): GroupOptions {
  const options = { makesStream: false, entriesRead: -1 };
  for (let i = 5; i < args.count; i++) {
    if (mayMake && args.is(i, 'MKSTREAM')) options.makesStream = true;
    else if (args.is(i, 'ENTRIESREAD') && i + 1 < args.count) {
      options.entriesRead = args.integer(++i);
      if (options.entriesRead < -1) throw negativeRead;
    } else throw unknownForm(args, 'XGROUP');
  }
  return options;
}

function missingGroup(args: Arguments): CommandError {
  return new CommandError(
    `NOGROUP No such consumer group '${shownWord(args, 3)}' for key name '${shownWord(args, 2)}'`,
  );
}

/** The stream, with its group loaded. */
function groupRow(rows: Rows, args: Arguments): Row {
  const row = typedRow(rows, args, 2, Shape.stream);
  if (row === 0) throw keyMissing;
  if (!findGroup(rows, row, args, 3, group)) throw missingGroup(args);
  return row;
}

function isLastId(args: Arguments): boolean {
  return args.lens[4] === 1 && args.buf[args.starts[4]!] === 36;
}

export function xgroupCreate(rows: Rows, args: Arguments, reply: Reply): void {
  const options = groupOptions(args, true);
  const found = typedRow(rows, args, 2, Shape.stream);
  if (found === 0 && !options.makesStream) throw keyMissing;
  // Options that come twice.
  if (args.count > 8) throw unknownForm(args, 'XGROUP');
  if (found === 0) state.clear();
  else state.load(rows, found);
  if (isLastId(args)) id.set(state.last);
  else idArgument(args, 4, false, id);
  const row = found === 0 ? createRow(rows, args, 2, Shape.stream) : found;
  if (findGroup(rows, row, args, 3, group)) throw busyGroup;
  group.number = state.nextGroup++;
  group.last.set(id);
  group.highest.setZero();
  group.entriesRead = options.entriesRead;
  group.consumers = 0;
  group.pending = 0;
  group.nextConsumer = 0;
  group.add(rows, row, args.buf, args.starts[3]!, args.lens[3]!);
  state.groups++;
  state.save(rows, row);
  reply.ok();
}

export function xgroupSetid(rows: Rows, args: Arguments, reply: Reply): void {
  const { entriesRead } = groupOptions(args, false);
  const row = groupRow(rows, args);
  if (args.count > 7) throw unknownForm(args, 'XGROUP');
  if (isLastId(args)) {
    state.load(rows, row);
    id.set(state.last);
  } else boundArgumentOrId(args);
  group.last.set(id);
  group.entriesRead = entriesRead;
  saveGroup(rows, row, args, 3, group);
  reply.ok();
}

/** Here `-` and `+` are the least and the greatest id. */
function boundArgumentOrId(args: Arguments): void {
  const first = args.buf[args.starts[4]!];
  if (args.lens[4] === 1 && (first === 43 || first === 45)) boundArgument(args, 4, false, id);
  else idArgument(args, 4, false, id);
}

export function xgroupDestroy(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const row = typedRow(rows, args, 2, Shape.stream);
  if (row === 0) throw keyMissing;
  if (!findGroup(rows, row, args, 3, group)) return reply.integer(0);
  if (group.pending * 2 + group.consumers > shortWork.elements) return destroy;
  runNow(destroy(rows, args, reply));
}

function* destroy(rows: Rows, args: Arguments, reply: Reply): Steps {
  const number = yield* step(() => {
    groupRow(rows, args);
    return group.number;
  });
  const ranges: KeyRange[] = [
    consumerNames(number),
    consumersOf(number),
    pendingOfGroup(number),
    pendingByConsumers(number),
  ];
  for (const range of ranges) yield* removeInSteps(rows, args, 2, range, Infinity, noMatter);
  yield* step(() => {
    const row = groupRow(rows, args);
    StreamGroup.remove(rows, row, args.buf, args.starts[3]!, args.lens[3]!);
    state.load(rows, row);
    state.groups--;
    state.save(rows, row);
    reply.integer(1);
  });
}

const noMatter = (): void => {};

export function xgroupCreateConsumer(rows: Rows, args: Arguments, reply: Reply): void {
  const row = groupRow(rows, args);
  const { buf, starts, lens } = args;
  if (consumer.find(rows, row, group.number, buf, starts[4]!, lens[4]!)) return reply.integer(0);
  consumer.create(rows, row, group, buf, starts[4]!, lens[4]!);
  saveGroup(rows, row, args, 3, group);
  reply.integer(1);
}

export function xgroupDelConsumer(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const row = groupRow(rows, args);
  const { buf, starts, lens } = args;
  if (!consumer.find(rows, row, group.number, buf, starts[4]!, lens[4]!)) return reply.integer(0);
  if (consumer.pending > shortWork.elements) return deleteConsumer;
  runNow(deleteConsumer(rows, args, reply));
}

function* deleteConsumer(rows: Rows, args: Arguments, reply: Reply): Steps {
  const { buf, starts, lens } = args;
  const find = (): Row => {
    const row = groupRow(rows, args);
    consumer.find(rows, row, group.number, buf, starts[4]!, lens[4]!);
    return row;
  };
  const removed = yield* step(() => {
    find();
    return consumer.pending;
  });
  const size = new StepSize(2);
  for (let left = removed; left > 0; ) {
    const most = Math.min(size.elements, left);
    yield* step(() => {
      const row = find();
      const entries: StreamId[] = [];
      const { from, to, prefix } = pendingOfConsumer(group.number, consumer.number);
      rows.eachStreamRecord(row, from, to, false, most, (kb, ks) => {
        const one = new StreamId();
        one.read(kb, ks + prefix);
        entries.push(one);
        return entries.length >= most;
      });
      pending.consumer = consumer.number;
      for (const one of entries) pending.remove(rows, row, group.number, one);
      group.pending -= entries.length;
      consumer.pending -= entries.length;
      consumer.save(rows, row);
      saveGroup(rows, row, args, 3, group);
    });
    left -= most;
    size.end();
  }
  yield* step(() => {
    const row = find();
    consumer.remove(rows, row);
    group.consumers--;
    saveGroup(rows, row, args, 3, group);
    reply.integer(removed);
  });
}

// XACK

export function xack(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const row = typedRow(rows, args, 1, Shape.stream);
  if (!findGroup(rows, row, args, 2, group)) return reply.integer(0);
  if (args.count - 3 > shortWork.elements) return acknowledge;
  runNow(acknowledge(rows, args, reply));
}

function* acknowledge(rows: Rows, args: Arguments, reply: Reply): Steps {
  if (args.count > 4) yield* checkIds(args, 3, args.count);
  let row: Row = 0;
  const done = new Tally();
  yield* eachWord(
    args,
    3,
    args.count,
    1,
    done,
    () => {
      row = typedRow(rows, args, 1, Shape.stream);
      findGroup(rows, row, args, 2, group);
    },
    (word) => {
      idArgument(args, word, false, id);
      if (!pending.find(rows, row, group.number, id)) return;
      release(rows, row, group, pending, id);
      saveGroup(rows, row, args, 2, group);
      done.value++;
    },
  );
  yield* step(() => reply.integer(done.value));
}

/** The entry is pending no more. The group is to be saved afterwards. */
export function release(
  rows: Rows,
  row: Row,
  of: StreamGroup,
  entry: PendingEntry,
  one: StreamId,
): void {
  entry.remove(rows, row, of.number, one);
  of.pending--;
  if (!consumer.load(rows, row, of.number, entry.consumer)) return;
  consumer.pending--;
  consumer.save(rows, row);
}

// XPENDING

interface PendingQuery {
  readonly start: StreamId;
  readonly end: StreamId;
  count: number;
  minIdle: number;
  /** 0 for all consumers. */
  consumerWord: number;
}

function parsePending(args: Arguments): PendingQuery {
  const query = {
    start: new StreamId(),
    end: new StreamId(),
    count: 0,
    minIdle: 0,
    consumerWord: 0,
  };
  if (args.count === 3) return query;
  if (args.count < 6 || args.count > 9) throw syntaxError;
  let at = 3;
  if (args.is(3, 'IDLE')) {
    query.minIdle = args.integer(4);
    if (args.count < 8) throw syntaxError;
    at += 2;
  }
  query.count = Math.max(0, args.integer(at + 2));
  boundArgument(args, at, false, query.start);
  boundArgument(args, at + 1, true, query.end);
  if (at + 3 < args.count) query.consumerWord = at + 3;
  return query;
}

/** The stream of XPENDING, XCLAIM and XAUTOCLAIM, with its group loaded. */
export function claimRow(rows: Rows, args: Arguments, into: StreamGroup): Row {
  const row = typedRow(rows, args, 1, Shape.stream);
  if (findGroup(rows, row, args, 2, into)) return row;
  throw new CommandError(
    `NOGROUP No such key '${shownWord(args, 1)}' or consumer group '${shownWord(args, 2)}'`,
  );
}

export function xpending(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const { count, minIdle } = parsePending(args);
  claimRow(rows, args, group);
  const seen = args.count === 3 ? group.consumers : Math.min(group.pending, count);
  const isMuch = minIdle > 0 ? group.pending > shortWork.elements : seen > shortWork.elements;
  const form = args.count === 3 ? summary : pendingEntries;
  if (isMuch) return form;
  runNow(form(rows, args, reply));
}

function* summary(rows: Rows, args: Arguments, reply: Reply): Steps {
  const number = yield* step(() => {
    const row = claimRow(rows, args, group);
    reply.array(4);
    reply.integer(group.pending);
    if (group.pending === 0) {
      reply.nil();
      reply.nil();
      reply.nilArray();
      return -1;
    }
    const { from, to, prefix } = pendingOfGroup(group.number);
    for (const isReverse of [false, true]) {
      rows.eachStreamRecord(row, from, to, isReverse, 1, (kb, ks) => {
        id.read(kb, ks + prefix);
        return true;
      });
      answerId(reply, id);
    }
    return group.number;
  });
  if (number === -1) return;
  const mark = reply.open();
  const tally = new Tally();
  const one = new StreamConsumer();
  yield* eachConsumer(rows, args, 1, number, one, tally, () => {
    if (one.pending === 0) return;
    tally.value++;
    reply.array(2);
    reply.bulk(one.name, 0, one.name.length);
    reply.text(String(one.pending));
  });
  yield* step(() => reply.close(mark, 'array', tally.value));
}

/** The consumers of a group in the order of their names; `visit` finds each in `one`. */
export function* eachConsumer(
  rows: Rows,
  args: Arguments,
  word: number,
  number: number,
  one: StreamConsumer,
  tally: Tally,
  visit: () => void,
): Steps {
  const { from, to } = consumerNames(number);
  const find = (): Row => typedRow(rows, args, word, Shape.stream);
  yield* eachRecordInSteps(
    rows,
    find,
    from,
    to,
    (_kb, _ks, _kn, vb, vs) => {
      const row = find();
      if (one.load(rows, row, number, vb.readUInt32BE(vs))) visit();
    },
    tally,
  );
}

/** Names of consumers by number, as far as they were asked for. */
export class ConsumerNames {
  readonly #names = new Map<number, Buffer>();
  readonly #one = new StreamConsumer();

  of(rows: Rows, row: Row, number: number, consumerNumber: number): Buffer {
    let name = this.#names.get(consumerNumber);
    if (name === undefined) {
      this.#one.load(rows, row, number, consumerNumber);
      name = this.#one.name;
      if (this.#names.size > 1000) this.#names.clear();
      this.#names.set(consumerNumber, name);
    }
    return name;
  }
}

function* pendingEntries(rows: Rows, args: Arguments, reply: Reply): Steps {
  const { start, end, count, minIdle, consumerWord } = parsePending(args);
  const range = yield* step(() => {
    const row = claimRow(rows, args, group);
    if (consumerWord === 0) return pendingBetween(group.number, undefined, start, end);
    const { buf, starts, lens } = args;
    const [s, n] = [starts[consumerWord]!, lens[consumerWord]!];
    if (!consumer.find(rows, row, group.number, buf, s, n)) return undefined;
    return pendingBetween(group.number, consumer.number, start, end);
  });
  if (range === undefined || count === 0) {
    yield* step(() => reply.array(0));
    return;
  }
  const mark = reply.open();
  const tally = new Tally();
  yield* answerPending(rows, args, reply, range, count, minIdle, tally);
  yield* step(() => reply.close(mark, 'array', tally.value));
}

function* answerPending(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  range: KeyRange,
  count: number,
  minIdle: number,
  tally: Tally,
): Steps {
  const names = new ConsumerNames();
  const entry = new PendingEntry();
  const one = new StreamId();
  let row: Row = 0;
  const find = (): Row => {
    row = claimRow(rows, args, group);
    return row;
  };
  yield* eachRecordInSteps(
    rows,
    find,
    range.from,
    range.to,
    (kb, ks) => {
      one.read(kb, ks + range.prefix);
      entry.find(rows, row, group.number, one);
      const idle = rows.now - entry.delivered;
      if (minIdle !== 0 && idle < minIdle) return false;
      const name = names.of(rows, row, group.number, entry.consumer);
      reply.array(4);
      answerId(reply, one);
      reply.bulk(name, 0, name.length);
      reply.integer(Math.max(0, idle));
      reply.integer(entry.deliveries);
      return ++tally.value >= count;
    },
    tally,
  );
}
