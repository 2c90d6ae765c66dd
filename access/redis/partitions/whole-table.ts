// Commands on a whole table of several partitions. The partitions are asked one after the other, and their answers
// are combined. A concurrent write may be visible in one partition and not in another.

import { Arguments } from '../../../universal-row/arguments.ts';
import { Action, type Command, holdAnswer } from '../../../universal-row/command.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import { dbsize } from '../../../universal-row/transforms/redis/databases.ts';
import { parseScanCursor } from '../../../universal-row/transforms/redis/support/scan-options.ts';
import { CommandError } from '../../../universal-row/errors.ts';
import { lastSlot } from '../../../contracts/partition-map.ts';
import { LongAnswer, minus, RespWriter } from '../resp-writer.ts';
import type { PartitionLane } from './partition-lane.ts';
import { scanCursor, scanPlace } from './scan-cursor.ts';

/** How the answers of partitions become one. */
export type WholeTableCommand = 'concatenate' | 'add' | 'clearAll' | 'anyOf' | 'scan';

const commands: ReadonlyMap<string, WholeTableCommand> = new Map([
  ['keys', 'concatenate'],
  ['dbsize', 'add'],
  ['flushdb', 'clearAll'],
  ['flushall', 'clearAll'],
  ['randomkey', 'anyOf'],
  ['scan', 'scan'],
]);

/** Undefined for a command that is about no table as a whole. */
export function wholeTable(fullName: string): WholeTableCommand | undefined {
  return commands.get(fullName);
}

/** Times that it begins again, as the table was divided otherwise meanwhile. */
const mostTries = 5;
const lineFeed = 10;
const answerBytes = 4096;
const noArguments = new Arguments();
noArguments.count = 1;

/** A table, by its partitions. */
interface LaneTable {
  readonly epoch: number;
  readonly lanes: readonly PartitionLane[];
  /** Whether this partition is asked. */
  asks(lane: PartitionLane): boolean;
  /** The partition that has the slot. */
  laneOf(slot: number): PartitionLane;
  run(lane: PartitionLane, command: Command, reply: Reply): MaybePromise<Reply | void>;
}

function asked(table: LaneTable): PartitionLane[] {
  return table.lanes.filter((lane) => table.asks(lane));
}

/** The first slot from this one on whose partition is asked; beyond the last one if there is none. */
function askedSlot(table: LaneTable, from: number): number {
  let slot = from;
  while (slot <= lastSlot && !table.asks(table.laneOf(slot))) {
    slot = table.laneOf(slot).partition.last + 1;
  }
  return slot;
}

const gathering: Record<
  WholeTableCommand,
  (table: LaneTable, command: Command, out: RespWriter) => Promise<void>
> = { concatenate, add, clearAll, anyOf, scan };

/** The answer of one partition. */
interface PartAnswer {
  readonly parts: readonly Buffer[];
  /** First line, without its type and line break. */
  readonly head: string;
  readonly isError: boolean;
  /** Where the first part continues behind that line. */
  readonly from: number;
}

export async function gather(
  table: LaneTable,
  how: WholeTableCommand,
  command: Command,
  reply: Reply,
): Promise<Reply> {
  const out = reply.fork(reply.mark()) as RespWriter;
  // Partitions get commands of their own. The caller, which keeps the words of one that waits, knows of none of them.
  const own: Command = { ...command, args: command.args.copy(), holds: [] };
  for (let left = mostTries; ; left--) {
    try {
      await gathering[how](table, own, out);
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      out.rollback(0);
      if (error instanceof Replaced && left > 0) continue;
      out.error(error.message);
    }
    // Each partition has answered in a tick of its own.
    command.holds?.push(...own.holds!);
    holdAnswer(own);
    return out;
  }
}

/** The table is divided otherwise by now. */
class Replaced extends CommandError {}

async function ask(
  table: LaneTable,
  lane: PartitionLane,
  command: Command,
  out: RespWriter,
): Promise<PartAnswer> {
  const writer = new RespWriter(answerBytes);
  writer.version = out.version;
  writer.keeper = out.keeper;
  const part: Command = { ...command, isPart: true, notRun: undefined };
  const answer = (await table.run(lane, part, writer)) ?? writer;
  if (part.notRun?.why === 'replaced') {
    if (answer instanceof LongAnswer) answer.take();
    throw new Replaced('CLUSTERDOWN The table was being divided otherwise');
  }
  const parts = answer instanceof LongAnswer ? answer.take() : [writer.buf.subarray(0, writer.pos)];
  const [first] = parts;
  if (first === undefined) throw new CommandError('ERR internal error');
  const end = first.indexOf(lineFeed);
  return {
    parts,
    head: first.toString('latin1', 1, end - 1),
    isError: first[0] === minus,
    from: end + 1,
  };
}

/** As `ask`; an error becomes the answer of the whole command. */
async function askFor(
  table: LaneTable,
  lane: PartitionLane,
  command: Command,
  out: RespWriter,
): Promise<PartAnswer> {
  const answer = await ask(table, lane, command, out);
  if (answer.isError) throw new CommandError(answer.head);
  return answer;
}

async function concatenate(table: LaneTable, command: Command, out: RespWriter): Promise<void> {
  const answers: PartAnswer[] = [];
  for (const lane of asked(table)) answers.push(await askFor(table, lane, command, out));
  out.array(answers.reduce((sum, { head }) => sum + Number(head), 0));
  for (const answer of answers) await append(out, answer);
}

/** Appends the part after the first line. */
async function append(out: RespWriter, { parts, from }: PartAnswer): Promise<void> {
  for (const [i, part] of parts.entries()) {
    if (i > 0) await new Promise(setImmediate);
    const start = i === 0 ? from : 0;
    out.rawBytes(part, start, part.length - start);
  }
}

async function add(table: LaneTable, command: Command, out: RespWriter): Promise<void> {
  let sum = 0;
  for (const lane of asked(table)) {
    sum += Number((await askFor(table, lane, command, out)).head);
  }
  out.integer(sum);
}

async function clearAll(table: LaneTable, command: Command, out: RespWriter): Promise<void> {
  for (const lane of asked(table)) {
    const own = command.name === 'flushall' ? ofOneTable(command, lane) : command;
    await askFor(table, lane, own, out);
  }
  out.ok();
}

/** FLUSHALL covers a span of tables: here it is the partition's alone. */
function ofOneTable(command: Command, { partition }: PartitionLane): Command {
  return { ...command, span: { first: partition.number, count: 1 } };
}

/** A partition is chosen by its part of the rows. */
async function anyOf(table: LaneTable, command: Command, out: RespWriter): Promise<void> {
  const counts: { lane: PartitionLane; rows: number }[] = [];
  const size: Command = {
    ...command,
    action: Action.fetch,
    name: 'dbsize',
    transform: dbsize,
    args: noArguments,
  };
  for (const lane of asked(table)) {
    const { head } = await askFor(table, lane, size, out);
    counts.push({ lane, rows: Number(head) });
  }
  while (counts.length > 0) {
    const all = counts.reduce((sum, { rows }) => sum + rows, 0);
    let left = Math.random() * all;
    let at = counts.findIndex(({ rows }) => (left -= rows) < 0);
    if (at < 0) at = counts.length - 1;
    const [chosen] = counts.splice(at, 1);
    const { parts, head } = await askFor(table, chosen!.lane, command, out);
    // Its rows have expired, or are gone.
    if (head === '-1' || head === '') continue;
    for (const part of parts) out.rawBytes(part, 0, part.length);
    return;
  }
  out.nil();
}

async function scan(table: LaneTable, command: Command, out: RespWriter): Promise<void> {
  const place = scanPlace(
    parseScanCursor(command.args, 1),
    table.epoch,
    (slot) => slot <= lastSlot && isHashed(table.laneOf(slot)),
  );
  const from = askedSlot(table, place.slot);
  if (from > lastSlot) {
    out.array(2);
    out.text('0');
    out.array(0);
    return;
  }
  const lane = table.laneOf(from);
  const { first, last } = lane.partition;
  const { epoch } = table;
  let cursor = from === place.slot ? place.cursor : 0;
  const begun = scanCursor(epoch, { slot: first, cursor }, isHashed(lane));
  const pages: PartAnswer[] = [];
  let keys = 0;
  let next = 0;
  for (;;) {
    const page = scanPage(
      await askFor(table, lane, { ...command, args: at(command, cursor) }, out),
    );
    pages.push(page.keys);
    keys += Number(page.keys.head);
    cursor = page.cursor;
    if (cursor === 0) {
      const slot = askedSlot(table, last + 1);
      next = slot > lastSlot ? 0 : scanCursor(epoch, { slot, cursor: 0 }, false);
      break;
    }
    next = scanCursor(epoch, { slot: first, cursor }, isHashed(lane));
    // The lowest bits of a position are left out: a walk that came no further continues at once.
    if (next !== begun) break;
  }
  out.array(2);
  out.text(String(next));
  out.array(keys);
  for (const page of pages) await append(out, page);
}

function isHashed({ partition }: PartitionLane): boolean {
  return partition.model !== 'memory';
}

/** The command with another cursor. */
function at({ args }: Command, cursor: number): Arguments {
  const copy = new Arguments(args.count);
  copy.buf = args.buf;
  copy.count = args.count;
  copy.starts.set(args.starts.subarray(0, args.count));
  copy.lens.set(args.lens.subarray(0, args.count));
  copy.replace(1, Buffer.from(String(cursor)));
  return copy;
}

/** `*2`, the cursor as a bulk string, and the keys. */
function scanPage({ parts, from }: PartAnswer): { cursor: number; keys: PartAnswer } {
  const all = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  const length = all.indexOf(lineFeed, from);
  const cursor = all.indexOf(lineFeed, length + 1);
  const count = all.indexOf(lineFeed, cursor + 1);
  return {
    cursor: Number(all.toString('latin1', length + 1, cursor - 1)),
    keys: {
      parts: [all],
      head: all.toString('latin1', cursor + 2, count - 1),
      isError: false,
      from: count + 1,
    },
  };
}
