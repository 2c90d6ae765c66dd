// XINFO of streams, groups and consumers.

import type { Arguments } from '../../arguments.ts';
import { CommandError, noSuchKey } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Row, type Rows, Shape } from '../../rows.ts';
import { isLong, runNow, shortWork, step, type Steps, type StepTransform } from '../../steps.ts';
import { answerId, answerRange, EntryAnswer } from './stream-entries.ts';
import { ConsumerNames, eachConsumer, findGroup } from './stream-groups.ts';
import { shownWord, StreamId } from './stream-id.ts';
import {
  allEntries,
  allGroups,
  edgeId,
  PendingEntry,
  pendingOfConsumer,
  pendingOfGroup,
  StreamConsumer,
  StreamGroup,
  StreamState,
  type KeyRange,
} from './stream-layout.ts';
import { StreamProgress } from './stream-progress.ts';
import { encodingLimits } from './support/encoding-limits.ts';
import { eachRecordInSteps, Tally } from './support/long-walks.ts';
import { typedRow } from './support/typed-row.ts';

const state = new StreamState();
const group = new StreamGroup();
const progress = new StreamProgress();
const id = new StreamId();
const answer = new EntryAnswer();

const fullByDefault = 10;

function existing(rows: Rows, args: Arguments): Row {
  const row = typedRow(rows, args, 2, Shape.stream);
  if (row === 0) throw noSuchKey;
  return row;
}

function wrongForm(args: Arguments): CommandError {
  return new CommandError(
    `ERR unknown subcommand or wrong number of arguments for '${args.latin1(1, 128)}'. Try XINFO HELP.`,
  );
}

// XINFO STREAM

/** Elements of FULL, 0 for all; undefined without FULL. */
function fullCount(args: Arguments): number | undefined {
  if (args.count === 3) return undefined;
  if ((args.count !== 4 && args.count !== 6) || !args.is(3, 'FULL')) throw wrongForm(args);
  if (args.count === 4) return fullByDefault;
  if (!args.is(4, 'COUNT')) throw wrongForm(args);
  const count = args.integer(5);
  return count < 0 ? fullByDefault : count;
}

export function xinfoStream(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const row = existing(rows, args);
  const count = fullCount(args);
  if (count === undefined) return streamSummary(rows, row, reply);
  if (isLong(rows, row)) return fullInfo;
  runNow(fullInfo(rows, args, reply));
}

/** Fields that both forms begin with. */
function head(rows: Rows, row: Row, reply: Reply): void {
  state.load(rows, row);
  const first = new StreamId();
  if (state.length > 0) edgeId(rows, row, false, first);
  const nodes = Math.ceil(state.length / Math.max(1, encodingLimits.streamNodeEntries));
  reply.text('length');
  reply.integer(state.length);
  reply.text('radix-tree-keys');
  reply.integer(nodes);
  reply.text('radix-tree-nodes');
  reply.integer(nodes + 1);
  reply.text('last-generated-id');
  answerId(reply, state.last);
  reply.text('max-deleted-entry-id');
  answerId(reply, state.maxDeleted);
  reply.text('entries-added');
  reply.integer(state.entriesAdded);
  reply.text('recorded-first-entry-id');
  answerId(reply, first);
}

function streamSummary(rows: Rows, row: Row, reply: Reply): void {
  reply.map(10);
  head(rows, row, reply);
  reply.text('groups');
  reply.integer(state.groups);
  answer.begin(rows, row);
  for (const isLast of [false, true]) {
    reply.text(isLast ? 'last-entry' : 'first-entry');
    if (!edgeId(rows, row, isLast, id) || !answer.find(reply, id)) reply.nil();
  }
}

function* fullInfo(rows: Rows, args: Arguments, reply: Reply): Steps {
  const count = fullCount(args)!;
  const most = count === 0 ? Infinity : count;
  yield* step(() => {
    reply.map(9);
    head(rows, existing(rows, args), reply);
    reply.text('entries');
  });
  yield* answerRange(rows, args, 2, allEntries, most, false, reply);
  const names: Buffer[] = [];
  yield* eachRecordInSteps(
    rows,
    () => existing(rows, args),
    allGroups.from,
    allGroups.to,
    (kb, ks, kn) => {
      names.push(Buffer.from(kb.subarray(ks + 1, ks + kn)));
    },
    {
      mark: () => names.length,
      rollback(mark) {
        names.length = mark;
      },
    },
  );
  yield* step(() => {
    reply.text('groups');
    reply.array(names.length);
  });
  for (const name of names) yield* fullGroup(rows, args, reply, name, most);
}

function findNamed(rows: Rows, args: Arguments, name: Buffer): Row {
  const row = existing(rows, args);
  group.find(rows, row, name, 0, name.length);
  return row;
}

function entriesRead(reply: Reply): void {
  reply.text('entries-read');
  if (group.entriesRead === -1) reply.nil();
  else reply.integer(group.entriesRead);
  reply.text('lag');
  const lag = progress.lag(group);
  if (lag === undefined) reply.nil();
  else reply.integer(lag);
}

function* fullGroup(rows: Rows, args: Arguments, reply: Reply, name: Buffer, most: number): Steps {
  const number = yield* step(() => {
    const row = findNamed(rows, args, name);
    state.load(rows, row);
    progress.begin(rows, row, state);
    reply.map(7);
    reply.text('name');
    reply.bulk(name, 0, name.length);
    reply.text('last-delivered-id');
    answerId(reply, group.last);
    entriesRead(reply);
    reply.text('pel-count');
    reply.integer(group.pending);
    reply.text('pending');
    return group.number;
  });
  yield* fullPending(rows, args, reply, number, pendingOfGroup(number), true, most);
  const consumers: number[] = [];
  const one = new StreamConsumer();
  const tally = new Tally();
  yield* eachConsumer(rows, args, 2, number, one, tally, () => {
    consumers.length = tally.value++;
    consumers.push(one.number);
  });
  yield* step(() => {
    reply.text('consumers');
    reply.array(consumers.length);
  });
  for (const consumer of consumers) {
    yield* step(() => {
      one.load(rows, existing(rows, args), number, consumer);
      reply.map(4);
      reply.text('name');
      reply.bulk(one.name, 0, one.name.length);
      reply.text('seen-time');
      reply.integer(one.seen);
      reply.text('pel-count');
      reply.integer(one.pending);
      reply.text('pending');
    });
    const range = pendingOfConsumer(number, consumer);
    yield* fullPending(rows, args, reply, number, range, false, most);
  }
}

/** Answers pending entries, with the consumers' names if `isOfGroup`. */
function* fullPending(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  number: number,
  range: KeyRange,
  isOfGroup: boolean,
  most: number,
): Steps {
  const names = new ConsumerNames();
  const entry = new PendingEntry();
  const one = new StreamId();
  const mark = reply.open();
  const tally = new Tally();
  let row: Row = 0;
  const find = (): Row => (row = existing(rows, args));
  yield* eachRecordInSteps(
    rows,
    find,
    range.from,
    range.to,
    (kb, ks) => {
      one.read(kb, ks + range.prefix);
      entry.find(rows, row, number, one);
      reply.array(isOfGroup ? 4 : 3);
      answerId(reply, one);
      if (isOfGroup) {
        const name = names.of(rows, row, number, entry.consumer);
        reply.bulk(name, 0, name.length);
      }
      reply.integer(entry.delivered);
      reply.integer(entry.deliveries);
      return ++tally.value >= most;
    },
    tally,
  );
  yield* step(() => reply.close(mark, 'array', tally.value));
}

// XINFO GROUPS and CONSUMERS

export function xinfoGroups(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const row = existing(rows, args);
  state.load(rows, row);
  if (state.groups > shortWork.elements) return groups;
  runNow(groups(rows, args, reply));
}

function* groups(rows: Rows, args: Arguments, reply: Reply): Steps {
  const find = (): Row => {
    const row = existing(rows, args);
    state.load(rows, row);
    progress.begin(rows, row, state);
    return row;
  };
  yield* step(() => {
    find();
    reply.array(state.groups);
  });
  yield* eachRecordInSteps(rows, find, allGroups.from, allGroups.to, (kb, ks, kn) => {
    group.find(rows, existing(rows, args), kb, ks + 1, kn - 1);
    reply.map(6);
    reply.text('name');
    reply.bulk(kb, ks + 1, kn - 1);
    reply.text('consumers');
    reply.integer(group.consumers);
    reply.text('pending');
    reply.integer(group.pending);
    reply.text('last-delivered-id');
    answerId(reply, group.last);
    entriesRead(reply);
  });
}

export function xinfoConsumers(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  findForConsumers(rows, args);
  if (group.consumers > shortWork.elements) return consumers;
  runNow(consumers(rows, args, reply));
}

function findForConsumers(rows: Rows, args: Arguments): void {
  if (findGroup(rows, existing(rows, args), args, 3, group)) return;
  throw new CommandError(
    `NOGROUP No such consumer group '${shownWord(args, 3)}' for key name '${shownWord(args, 2)}'`,
  );
}

function* consumers(rows: Rows, args: Arguments, reply: Reply): Steps {
  const number = yield* step(() => {
    findForConsumers(rows, args);
    reply.array(group.consumers);
    return group.number;
  });
  const one = new StreamConsumer();
  yield* eachConsumer(rows, args, 2, number, one, new Tally(), () => {
    reply.map(3);
    reply.text('name');
    reply.bulk(one.name, 0, one.name.length);
    reply.text('pending');
    reply.integer(one.pending);
    reply.text('idle');
    reply.integer(Math.max(0, rows.now - one.seen));
  });
}
