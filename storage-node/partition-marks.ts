// Marks: the states of partitions of a group that are copied to others, or are copies themselves. Marks are rows of a
// separate table of the group, and therefore part of its log entries, checkpoints and snapshots.
//
//   key     varint number of the partition                 value   u8 state, varint attempt, varint home
//   key     varint number of a target, varint of a source  value   u8 0, varint attempt, varint slices
//
// A change is made in attempts with increasing numbers. The first source is the home of the change: the log entry that
// closes the home decides the change. Until then the home may declare an attempt void, and frozen partitions are served
// again.

import { MarkState, type PartitionMark } from '../contracts/partition-map.ts';
import { Slice } from '../universal-row/bytes.ts';
import type { Command, NotRun } from '../universal-row/command.ts';
import { answerIfDone } from '../universal-row/once.ts';
import type { Reply } from '../universal-row/reply.ts';
import type { RecordBatchWriter } from '../universal-row/record-batch.ts';
import { WireReader, WireWriter } from '../universal-row/protocol/wire.ts';
import type { Engine } from '../engines/engine.ts';

/** In no tenant's span, beside that of numbered writes (universal-row/once.ts). */
const marksTable = 0x6fff_fffe;

const none: ReadonlyMap<number, PartitionMark> = new Map();
const scanBudget = 1000;

export class PartitionMarks {
  readonly #engine: Engine;
  /** Undefined when it has to be read again. */
  #known: ReadonlyMap<number, PartitionMark> | undefined;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Rows of the group are others than they were. */
  changed(): void {
    this.#known = undefined;
  }

  /** There may be some. Asked before each command. */
  get isAny(): boolean {
    if (this.#known !== undefined) return this.#known.size > 0;
    if (this.#engine.holds(marksTable)) return true;
    this.#known = none;
    return false;
  }

  /** Whether the partitions that the command needs must be checked. */
  mayShut({ table, usesSpan }: Pick<Command, 'table' | 'usesSpan'>): boolean {
    if (!this.isAny) return false;
    return usesSpan === true || this.#known === undefined || this.shut(table) !== undefined;
  }

  /** By number of the partition. Throws a `ReadFault`. */
  all(): ReadonlyMap<number, PartitionMark> {
    this.#known ??= this.#engine.holds(marksTable) ? readAll(this.#engine) : none;
    return this.#known;
  }

  /** Throws a `ReadFault`. */
  get(number: number): PartitionMark | undefined {
    return this.isAny ? this.all().get(number) : undefined;
  }

  /** Why commands on the partition are not run here. Throws a `ReadFault`. */
  shut(number: number): PartitionMark | undefined {
    const mark = this.get(number);
    return mark !== undefined && isShut(mark) ? mark : undefined;
  }

  /** Slices of an attempt that a target has of a source. Throws a `ReadFault`. */
  slicesOf(target: number, source: number, attempt: number): number {
    if (!this.#engine.holds(marksTable)) return 0;
    const table = this.#engine.table(marksTable);
    const key = slicesKey(target, source);
    const row = table.find(key, 0, key.length);
    if (row === 0) return 0;
    const value = new Slice();
    table.value(row, value);
    const reader = new WireReader(value.b, value.s, value.s + value.n);
    reader.u8();
    return reader.varint() === attempt ? reader.varint() : 0;
  }
}

/** Whether commands on the partition are not run. */
export function isShut({ state }: PartitionMark): boolean {
  return state !== MarkState.whole && state !== MarkState.void;
}

function readAll(engine: Engine): Map<number, PartitionMark> {
  const found = new Map<number, PartitionMark>();
  const table = engine.table(marksTable);
  const [key, value] = [new Slice(), new Slice()];
  let cursor = 0;
  do {
    cursor = table.scan(cursor, scanBudget, (row) => {
      table.key(row, key);
      const number = new WireReader(key.b, key.s, key.s + key.n).varint();
      table.value(row, value);
      const reader = new WireReader(value.b, value.s, value.s + value.n);
      const state = reader.u8();
      if (state === 0) return;
      const mark = {
        state: state as PartitionMark['state'],
        attempt: reader.varint(),
        home: reader.varint(),
      };
      found.set(number, mark);
    });
  } while (cursor !== 0);
  return found;
}

/** Key of how many slices a target has of a source. */
export function slicesKey(target: number, source: number): Buffer {
  const key = new WireWriter(16);
  key.varint(target);
  key.varint(source);
  return Buffer.from(key.view());
}

/** A row of the table of marks. */
export function putMarkRow(
  to: RecordBatchWriter,
  key: Buffer,
  numbers: readonly [number, ...number[]],
): void {
  const value = new WireWriter(32);
  value.u8(numbers[0]);
  for (const number of numbers.slice(1)) value.varint(number);
  const bytes = Buffer.from(value.view());
  to.value(marksTable, key, 0, key.length, bytes, 0, bytes.length, 0);
}

/**
 * Refuses commands on a partition that is not served here, and says why. A write that may have been done before it was
 * closed is answered where it has been; where not, it never will be here. Throws a `ReadFault`.
 */
export function shutRefusal(
  { state }: PartitionMark,
  commands: readonly Command[],
  engine: Engine,
  reply: Reply,
): NotRun | undefined {
  const [first] = commands;
  if (state === MarkState.closed) {
    if (answerIfDone(first!.transform, engine, reply)) return undefined;
    reply.error('ERR the partition is closed');
    return { why: 'replaced', leader: 0 };
  }
  reply.error('ERR the partition is being handed over');
  return { why: 'moved', leader: 0 };
}
