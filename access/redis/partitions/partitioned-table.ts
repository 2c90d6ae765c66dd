// A table of several partitions: sends each command to the pod of the partition that has its keys, and commands about the
// table as a whole to all of them. While a partition is handed over to another, its commands wait here.

import type { Partition, PartitionMap } from '../../../contracts/partition-map.ts';
import { slotIndex } from '../../../contracts/partition-map.ts';
import type { Arguments } from '../../../universal-row/arguments.ts';
import type { Command } from '../../../universal-row/command.ts';
import { hashSlot, slotCount } from '../../../universal-row/crc16.ts';
import { CommandError } from '../../../universal-row/errors.ts';
import type {
  Refusable,
  RowCommands,
  RowObserver,
  TransactionWatch,
} from '../../../universal-row/executor.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import type { CommandEntry } from '../commands/registry.ts';
import { PartitionLane, type PlacedPartition } from './partition-lane.ts';
import { crossing, noKeys, partitionOfKeys } from './command-slots.ts';
import { gather, wholeTable, type WholeTableCommand } from './whole-table.ts';

interface PartitionedTableOptions {
  readonly table: number;
  /** All commands, by full name. */
  readonly entries: ReadonlyMap<string, CommandEntry>;
  /** Whether commands about the whole table are to ask a partition; all of them when left out. */
  readonly asksOf?: ((pod: RowCommands) => boolean) | undefined;
}

const crossSlot = new CommandError("CROSSSLOT Keys in request don't hash to the same slot");
const tooManyWait = 'BUSY a partition is being handed over, and too many commands wait for it';
const wholeInTransaction =
  'EXECABORT Transaction discarded: a command about a whole table of several partitions cannot be part of one';
const wholeInScript =
  'ERR commands about a whole table of several partitions are not allowed from script';
const otherDatabase = new CommandError(
  'ERR this command cannot take rows from or to a table of several partitions, nor swap one',
);
const sortByKeys = new CommandError(
  'ERR BY and GET options of SORT denied for a table of several partitions when keys formed by the pattern may be in different slots.',
);
const star = 42;

export class PartitionedTable implements RowCommands {
  readonly #options: PartitionedTableOptions;
  #epoch = 0;
  #lanes: PartitionLane[] = [];
  #index: Uint16Array = new Uint16Array(slotCount);

  constructor(options: PartitionedTableOptions) {
    this.#options = options;
  }

  get epoch(): number {
    return this.#epoch;
  }

  get lanes(): readonly PartitionLane[] {
    return this.#lanes;
  }

  /** Commands about the whole table ask it. */
  asks({ partition }: PartitionLane): boolean {
    return this.#options.asksOf?.(partition.pod) !== false;
  }

  /** The partition that has the slot. */
  laneOf(slot: number): PartitionLane {
    return this.#lanes[this.#index[slot]!]!;
  }

  /** Partitions that stay keep the commands that wait for them. */
  setMap(map: PartitionMap, podOf: (partition: Partition) => RowCommands): void {
    const known = new Map(this.#lanes.map((lane) => [lane.partition.number, lane]));
    this.#epoch = map.epoch;
    this.#lanes = map.partitions.map(
      (partition) =>
        known.get(partition.number) ?? new PartitionLane({ ...partition, pod: podOf(partition) }),
    );
    this.#index = slotIndex(map);
  }

  /** The partition that a command needs; undefined if its keys alone do not determine it, or the partition is paused. */
  partitionFor({ spec, usesSpan }: CommandEntry, args: Arguments): PlacedPartition | undefined {
    if (usesSpan || spec.name === 'sort' || spec.name === 'sort_ro') return undefined;
    const at = partitionOfKeys(spec, args, this.#index);
    const lane = at < 0 ? undefined : this.#lanes[at];
    return lane?.isPaused === false ? lane.partition : undefined;
  }

  refusal({ grows }: Refusable): string | undefined {
    for (const { partition } of this.#lanes) {
      const refusal = partition.pod.refusal({ table: partition.number, grows });
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  execute(command: Command, reply: Reply): MaybePromise<Reply | void> {
    const at = this.#place(command);
    if (typeof at === 'number') return this.run(this.#lanes[at]!, command, reply);
    if (at instanceof CommandError) {
      reply.error(at.message);
      return;
    }
    return gather(this, at, command, reply);
  }

  /** The lane by its position; the operation on all partitions; or the error. */
  #place(command: Command): number | WholeTableCommand | CommandError {
    const entry = this.#options.entries.get(command.likeCommand ?? command.name);
    const { args } = command;
    if (entry === undefined || this.#lanes.length === 0) return 0;
    if (command.usesSpan === true && usesOtherTable(entry, command)) return otherDatabase;
    const at = partitionOfKeys(entry.spec, args, this.#index);
    if (at === crossing) return crossSlot;
    const isOne = this.#lanes.length === 1;
    if (at !== noKeys) return !isOne && isSortByKeys(entry, command) ? sortByKeys : at;
    const whole = wholeTable(entry.fullName);
    return whole === undefined || (isOne && whole !== 'clearAll') ? 0 : whole;
  }

  /** Why a script that runs on the partition with this number may not run the command, if so. */
  scriptRefusal(entry: CommandEntry, args: Arguments, number: number): string | undefined {
    if (this.#lanes.length === 1) return undefined;
    if (wholeTable(entry.fullName) !== undefined) return wholeInScript;
    const at = partitionOfKeys(entry.spec, args, this.#index);
    if (at === noKeys || this.#lanes[at]?.partition.number === number) return undefined;
    return crossSlot.message;
  }

  /**
   * Runs a command on one partition. If the partition was replaced, a part of a whole-table command is not run, and fails
   * with an error that says so: it cannot run elsewhere.
   */
  run(lane: PartitionLane, command: Command, reply: Reply): MaybePromise<Reply | void> {
    const isPart = command.isPart === true;
    if (lane.isPaused) {
      return this.#wait(lane, reply, (own) =>
        isPart ? this.run(lane, command, own) : this.execute(command, own),
      );
    }
    if (isPart && !this.#lanes.includes(lane)) {
      command.notRun = { why: 'replaced', leader: 0 };
      return;
    }
    const { partition } = lane;
    const { usesSpan } = command;
    command.table = partition.number;
    command.usesSpan = false;
    const done = partition.pod.execute(command, reply);
    if (!(done instanceof Promise)) {
      command.table = this.#options.table;
      command.usesSpan = usesSpan;
      return;
    }
    return lane.track(done).finally(() => {
      command.table = this.#options.table;
      command.usesSpan = usesSpan;
    });
  }

  #wait(
    lane: PartitionLane,
    reply: Reply,
    run: (own: Reply) => MaybePromise<Reply | void>,
  ): Promise<Reply | void> {
    const own = reply.fork(reply.mark());
    return new Promise((resolve, reject) => {
      const isWaiting = lane.wait(() => {
        Promise.resolve(run(own)).then((other) => resolve(other ?? own), reject);
      });
      if (isWaiting) return;
      own.error(tooManyWait);
      resolve(own);
    });
  }

  executeAll(
    commands: readonly Command[],
    reply: Reply,
    before: (reply: Reply) => boolean,
    watch?: TransactionWatch,
  ): MaybePromise<Reply | void> {
    let found: number | undefined;
    for (const command of commands) {
      const entry = this.#options.entries.get(command.name);
      // Commands on the connection or the server have no rows.
      if (entry?.run === undefined) continue;
      const at = this.#place(command);
      if (typeof at !== 'number') {
        reply.error(at instanceof CommandError ? at.message : wholeInTransaction);
        return;
      }
      if (found !== undefined && found !== at) {
        reply.error(crossSlot.message);
        return;
      }
      found = at;
    }
    const lane = this.#lanes[found ?? 0]!;
    if (lane.isPaused) {
      return this.#wait(lane, reply, (own) => this.executeAll(commands, own, before, watch));
    }
    for (const command of commands) {
      command.table = lane.partition.number;
      command.usesSpan = false;
    }
    const done = lane.partition.pod.executeAll(commands, reply, before, watch);
    const end = (): void => {
      for (const command of commands) command.table = this.#options.table;
    };
    if (done instanceof Promise) return lane.track(done).finally(end);
    end();
  }

  observe(_table: number, key: Buffer, observer: RowObserver): void {
    const { number, pod } = this.laneOf(hashSlot(key, 0, key.length)).partition;
    pod.observe(number, key, observer);
  }

  unobserve(_table: number, key: Buffer, observer: RowObserver): void {
    const { number, pod } = this.laneOf(hashSlot(key, 0, key.length)).partition;
    pod.unobserve(number, key, observer);
  }
}

/** MOVE, SWAPDB, and COPY with DB. */
function usesOtherTable(entry: CommandEntry, { args }: Command): boolean {
  if (entry.fullName === 'flushall') return false;
  if (entry.fullName !== 'copy') return true;
  for (let i = 3; i < args.count; i++) if (args.is(i, 'DB')) return true;
  return false;
}

/** SORT that looks at keys which its pattern makes. */
function isSortByKeys(entry: CommandEntry, { args }: Command): boolean {
  if (entry.fullName !== 'sort' && entry.fullName !== 'sort_ro') return false;
  for (let i = 2; i + 1 < args.count; i++) {
    if ((args.is(i, 'BY') || args.is(i, 'GET')) && args.bytes(i + 1).includes(star)) return true;
  }
  return false;
}
