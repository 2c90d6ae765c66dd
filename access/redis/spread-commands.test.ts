import { beforeEach, expect, test } from 'vitest';
import { Arguments } from '../../universal-row/arguments.ts';
import { Action, type Command } from '../../universal-row/command.ts';
import { AnswerFlag, Refusal } from '../../universal-row/protocol/row-messages.ts';
import { ValueWriter } from '../../universal-row/protocol/values.ts';
import { WireError, WireReader } from '../../universal-row/protocol/wire.ts';
import type { Reply } from '../../universal-row/reply.ts';
import type { GroupExecutor } from '../gateway/pods/group-executor.ts';
import type { RemoteExecutor } from '../gateway/pods/remote-executor.ts';
import type { LaneUser } from '../gateway/pods/request-lane.ts';
import type { CommandEntry } from './commands/registry.ts';
import type { AnsweredRun } from './kept-commands.ts';
import type { PlacedPartition } from './partitions/partition-lane.ts';
import { RespWriter } from './resp-writer.ts';
import { SpreadCommands, type SpreadOwner } from './spread-commands.ts';

const entryOf = (fullName: string): CommandEntry =>
  ({
    ...{ fullName, action: Action.fetch, run: () => {}, grows: false, isPeeking: false },
  }) as unknown as CommandEntry;
const get = entryOf('get');
/** Of a later release. */
const added = entryOf('added');

/** A group that another process leads, or this one. */
class Group {
  isHere = false;
  isUp = true;
  /** Its leader is of an older release. */
  isOld = false;
  /** Answers that are held, by their number, and those that were sent since. */
  holds = 0;
  readonly held: number[] = [];
  readonly sent: { key: string; user: LaneUser }[] = [];
  /** Commands that run here wait for it. */
  gate: Promise<void> | undefined;
  readonly link = {
    isUp: true,
    isFull: false,
    numberOf: (name: string) => (name === 'added' && this.isOld ? undefined : 0),
    takeLane: () => ({}),
    giveBack: () => {},
    leave: () => {},
    command: (_lane: unknown, _session: unknown, _head: unknown, args: Arguments, user: LaneUser) =>
      void this.sent.push({ key: args.latin1(1), user }),
  };
  readonly executor = { link: this.link } as unknown as RemoteExecutor;

  get remote(): RemoteExecutor | undefined {
    return this.isUp && !this.isHere ? this.executor : undefined;
  }

  takeNumber = (): number => 0;
  releaseNumber = (): void => {};
  written = (): void => {};
  refusedBy = (): void => {};

  hold(): () => void {
    const number = ++this.holds;
    return () => void this.held.push(number);
  }

  execute(command: Command, reply: Reply): Promise<void> | undefined {
    reply.simple(command.args.latin1(1));
    return this.gate;
  }

  /** The other process answers the next command. */
  answer(): void {
    const { key, user } = this.sent.shift()!;
    const values = new ValueWriter(64);
    values.simple(key);
    user.values(0, new WireReader(values.buf, 0, values.pos));
    user.done();
  }

  /** The other process does not lead any more: it refuses all. */
  refuse(): void {
    for (const { user } of this.sent.splice(0)) user.refused(Refusal.notLeader, 0, '2');
  }

  get place(): PlacedPartition {
    return { pod: this as unknown as GroupExecutor, number: 70_000 } as unknown as PlacedPartition;
  }
}

const output = new RespWriter();
const settled: string[] = [];
/** How many of them were settled together, for each such call. */
const runs: number[] = [];
let closed = false;
let answered = 0;
let lent = 0;
/** Commands that had been settled when a tick was to begin. */
const ticks: number[] = [];
/** Where answers begin whose outcome is known. */
const known: number[] = [];
let spread: SpreadCommands;

beforeEach(() => {
  output.reset();
  settled.length = 0;
  runs.length = 0;
  closed = false;
  answered = 0;
  lent = 0;
  ticks.length = 0;
  known.length = 0;
  const tick = {
    schedule: () => void ticks.push(settled.length),
    evaluated: (mark: number) => void known.push(mark),
    borrowWriter: () => {
      lent++;
      return new RespWriter();
    },
    giveBackWriter: () => void lent--,
  };
  const owner = {
    ...{ id: 1, version: 2, table: 0, tenant: { number: 0 }, noTouch: false },
    get closed() {
      return closed;
    },
    meter: { begin: () => undefined },
    server: { metering: undefined, tick },
    answer: () => output,
    settleSent: (_entry: CommandEntry, args: Arguments) => void settled.push(args.latin1(1)),
    settleRun: ({ kept, from, to }: AnsweredRun) => {
      runs.push(to - from);
      for (let at = from; at < to; at++) settled.push(kept.words(at).latin1(1));
    },
    countError: () => {},
    sentAreAnswered: () => void answered++,
    fail: (error: unknown) => {
      throw error as Error;
    },
  };
  spread = new SpreadCommands(owner as unknown as SpreadOwner, { span: { first: 0, count: 1 } });
});

function words(key: string): Arguments {
  const args = new Arguments();
  args.buf = Buffer.from(`get${key}`);
  args.count = 2;
  args.starts.set([0, 3]);
  args.lens.set([3, key.length]);
  return args;
}

function begin(group: Group, key: string): void {
  const command = { span: { first: 0, count: 1 }, args: words(key) } as unknown as Command;
  spread.begin(group.place, group.executor, undefined, command, get, 1);
}

const send = (group: Group, key: string, epoch = 1): boolean =>
  spread.send(group.place, undefined, get, words(key), epoch);

const told = (): string[] =>
  output.buf.toString('latin1', 0, output.pos).split('\r\n').slice(0, -1);

test('an answer from elsewhere is not charged with the time since the last tick', () => {
  const group = new Group();
  begin(group, 'a');
  send(group, 'b');
  expect(ticks).toEqual([]);
  group.answer();
  group.answer();
  expect(settled).toEqual(['a', 'b']);
  expect(ticks).toEqual([0, 0]);
});

test('answers of one kind are settled together, an error by itself, and others before', () => {
  const group = new Group();
  const set = entryOf('set');
  begin(group, 'a');
  for (const key of ['b', 'c']) send(group, key);
  spread.send(group.place, undefined, set, words('d'), 1);
  for (const key of ['e', 'f']) send(group, key);
  for (let i = 0; i < 4; i++) group.answer();
  expect(runs).toEqual([3]);
  group.answer();
  expect(runs).toEqual([3, 1]);
  group.sent.shift()!.user.refused(1, 0, 'ERR no');
  expect(runs).toEqual([3, 1, 1]);
  expect(settled).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  expect(told()).toEqual(['+a', '+b', '+c', '+d', '+e', '-ERR no']);
});

test('what was answered is settled when no more answers come for now', () => {
  const group = new Group();
  begin(group, 'a');
  send(group, 'b');
  const { user } = group.sent[0]!;
  group.answer();
  expect(settled).toEqual([]);
  user.rest!();
  expect(settled).toEqual(['a']);
  group.answer();
  expect(settled).toEqual(['a', 'b']);
});

test('answers are in the order of the commands, whichever group answers first', () => {
  const [one, other, here] = [new Group(), new Group(), new Group()];
  here.isHere = true;
  begin(one, 'a');
  expect([send(other, 'b'), send(here, 'c'), send(one, 'd'), send(other, 'e')]).not.toContain(
    false,
  );
  expect(settled).toEqual(['c']);
  other.answer();
  expect(told()).toEqual([]);
  expect([here.holds, here.held]).toEqual([1, []]);
  one.answer();
  expect(told()).toEqual(['+a', '+b', '+c']);
  // Local answers are sent with this tick, and wait for the state they depend on.
  expect(here.held).toEqual([1]);
  // Those of other processes wait for nothing any more.
  expect(known).toEqual([0, 4]);
  other.answer();
  expect([told().length, answered, spread.isWaiting]).toEqual([3, 0, true]);
  one.answer();
  expect(told()).toEqual(['+a', '+b', '+c', '+d', '+e']);
  expect(known).toEqual([0, 4, 12, 16]);
  expect([answered, spread.isWaiting, lent]).toEqual([1, false, 0]);
});

test('a command that another map places waits for all that went by the one before', () => {
  const [old, successor] = [new Group(), new Group()];
  begin(old, 'a');
  expect(send(successor, 'a', 2)).toBe(false);
  expect(send(old, 'b')).toBe(true);
  for (let i = 0; i < 2; i++) old.answer();
  expect([told(), spread.isWaiting]).toEqual([['+a', '+b'], false]);
});

test('a command that an older node does not know waits for those before it', () => {
  const group = new Group();
  group.isOld = true;
  begin(group, 'a');
  const isSent = spread.send(group.place, undefined, added, words('b'), 1);
  expect(isSent).toBe(false);
  group.answer();
  expect([told(), spread.isWaiting]).toEqual([['+a'], false]);
});

test('commands that come to an older leader, of which it does not know one, run one by one', async () => {
  const group = new Group();
  begin(group, 'a');
  send(group, 'b');
  spread.send(group.place, undefined, added, words('c'), 1);
  group.isOld = true;
  group.refuse();
  await expect.poll(() => told().length).toBe(3);
  expect([told(), group.sent.length, answered]).toEqual([['+a', '+b', '+c'], 0, 1]);
});

test('an answer that breaks off leaves none of its bytes, and its read runs again', async () => {
  const group = new Group();
  begin(group, 'a');
  const { user } = group.sent.shift()!;
  const values = new ValueWriter(64);
  values.array(2);
  values.simple('half');
  values.u8(99);
  expect(() => user.values(0, new WireReader(values.buf, 0, values.pos))).toThrow(WireError);
  user.takeBack!();
  user.failed();
  await expect.poll(() => answered).toBe(1);
  expect(told()).toEqual(['+a']);
});

test('a command waits where its group has no link, or what runs here takes its time', async () => {
  const [one, other, here] = [new Group(), new Group(), new Group()];
  begin(one, 'a');
  other.isUp = false;
  expect(send(other, 'b')).toBe(false);
  here.isHere = true;
  let open = (): void => {};
  here.gate = new Promise((resolve) => (open = resolve));
  expect(send(here, 'c')).toBe(true);
  expect(send(one, 'd')).toBe(false);
  one.answer();
  expect([told(), answered]).toEqual([['+a'], 0]);
  open();
  await new Promise(setImmediate);
  expect([told(), answered]).toEqual([['+a', '+c'], 1]);
});

test('no more are under way than may be', () => {
  const one = new Group();
  begin(one, 'a');
  let sent = 1;
  while (send(one, `k${sent}`)) sent++;
  expect(sent).toBe(1024);
  while (one.sent.length > 0) one.answer();
  expect([told().length, answered]).toEqual([1024, 1]);
});

test('a refusal is an error in the place of its answer, and an empty answer nothing', () => {
  const [one, other] = [new Group(), new Group()];
  begin(one, 'a');
  send(other, 'b');
  const { user } = one.sent.shift()!;
  user.values(AnswerFlag.isEmpty, new WireReader(Buffer.alloc(0)));
  user.done();
  other.sent.shift()!.user.refused(1, 0, 'ERR no');
  expect(told()).toEqual(['-ERR no']);
  expect(answered).toBe(1);
});

test('a connection that is gone is told once all groups have answered', () => {
  const [one, other] = [new Group(), new Group()];
  begin(one, 'a');
  send(other, 'b');
  closed = true;
  spread.leave();
  other.answer();
  expect(answered).toBe(0);
  one.answer();
  expect([told(), answered, spread.isWaiting]).toEqual([[], 1, false]);
});
