import { beforeEach, expect, test } from 'vitest';
import { Arguments } from '../../../universal-row/arguments.ts';
import { Action, type Command } from '../../../universal-row/command.ts';
import type { RowCommands } from '../../../universal-row/executor.ts';
import { dbsize } from '../../../universal-row/transforms/redis/databases.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import { allCommands } from '../commands/all.ts';
import { CommandRegistry } from '../commands/registry.ts';
import { LongAnswer, RespWriter } from '../resp-writer.ts';
import { PartitionedTable } from './partitioned-table.ts';

const table = 1;
const entry = new CommandRegistry(allCommands).get('dbsize')!;
/** Rows of each partition, by its number. */
let rows: Map<number, number>;
let subject: PartitionedTable;
/** Called before a partition answers, once. */
let before: Map<number, () => Promise<void>>;

const pod = {
  async execute(command: Command, reply: Reply) {
    const act = before.get(command.table);
    before.delete(command.table);
    await act?.();
    reply.integer(rows.get(command.table) ?? 0);
  },
} as unknown as RowCommands;

function divide(epoch: number, ...numbers: number[]): void {
  const size = 16384 / numbers.length;
  const partitions = numbers.map((number, at) => ({
    ...{ number, first: at * size, last: (at + 1) * size - 1, model: 'memory' },
  }));
  subject.setMap({ epoch, partitions }, () => pod);
}

beforeEach(() => {
  rows = new Map([
    [101, 10],
    [102, 20],
  ]);
  before = new Map();
  subject = new PartitionedTable({ table, entries: new Map([[entry.fullName, entry]]) });
  divide(1, 101, 102);
});

async function size(): Promise<string> {
  const args = new Arguments();
  args.count = 1;
  const command: Command = {
    ...{ action: Action.fetch, name: 'dbsize', transform: dbsize, grows: false, table, args },
    span: { first: table, count: 1 },
  };
  const reply = new RespWriter(64);
  const answer = (await subject.execute(command, reply)) ?? reply;
  if (answer instanceof LongAnswer) return Buffer.concat(answer.take()).toString();
  return reply.buf.toString('latin1', 0, reply.pos);
}

test('every partition counts once', async () => {
  expect(await size()).toBe(':30\r\n');
});

test('a partition that takes no commands for a while counts once', async () => {
  const [, second] = subject.lanes;
  await second!.pause();
  const answer = size();
  await new Promise(setImmediate);
  second!.resume();
  expect(await answer).toBe(':30\r\n');
});

test('where a partition gives way to others all are asked anew', async () => {
  // The second partition is split while the first one answers; its rows are gone by then.
  before.set(101, async () => {
    const [, second] = subject.lanes;
    await second!.pause();
    rows = new Map([
      [101, 10],
      [103, 12],
      [104, 8],
    ]);
    divide(2, 101, 103, 104);
    second!.resume();
  });
  expect(await size()).toBe(':30\r\n');
});

test('words of a command that waits are its own: others come in their buffer', async () => {
  const words = Buffer.from('KEYS one');
  const args = new Arguments();
  args.buf = words;
  args.count = 2;
  args.starts.set([0, 5]);
  args.lens.set([4, 3]);
  const seen: string[] = [];
  const keys = {
    async execute(command: Command, reply: Reply) {
      await new Promise(setImmediate);
      seen.push(command.args.text(1));
      reply.array(0);
    },
  } as unknown as RowCommands;
  const registry = new CommandRegistry(allCommands);
  const entries = new Map([['keys', registry.get('keys')!]]);
  const divided = new PartitionedTable({ table, entries });
  const partitions = [101, 102].map((number, at) => ({
    ...{ number, first: at * 8192, last: at * 8192 + 8191, model: 'memory' as const },
  }));
  divided.setMap({ epoch: 1, partitions }, () => keys);
  const [first] = divided.lanes;
  await first!.pause();
  const command: Command = {
    ...{ action: Action.fetch, name: 'keys', transform: () => {}, grows: false, table, args },
    span: { first: table, count: 1 },
  };
  const done = divided.execute(command, new RespWriter(64));
  // As the connection does with a command that has not been answered at once.
  command.args = args.copy();
  words.fill('x');
  first!.resume();
  await done;
  expect(seen).toEqual(['one', 'one']);
});

test('also where it gives way while the command waits for it', async () => {
  const [, second] = subject.lanes;
  await second!.pause();
  const answer = size();
  await new Promise(setImmediate);
  rows = new Map([[105, 31]]);
  divide(2, 105);
  second!.resume();
  expect(await answer).toBe(':31\r\n');
});

test('the answer waits for what all partitions have done, whichever ticks they answered in', async () => {
  const held: number[] = [];
  const noting = {
    async execute(command: Command, reply: Reply) {
      const { table: number } = command;
      await new Promise(setImmediate);
      command.holds!.push(() => void held.push(number));
      reply.integer(1);
    },
  } as unknown as RowCommands;
  const partitions = [103, 104].map((number, at) => ({
    ...{ number, first: at * 8192, last: (at + 1) * 8192 - 1, model: 'memory' },
  }));
  subject.setMap({ epoch: 2, partitions }, () => noting);
  const answer = size();
  await new Promise(setImmediate);
  expect(held).toEqual([]);
  expect(await answer).toBe(':2\r\n');
  expect(held).toEqual([103, 104]);
});
