// Writes of a pod that no client asked for: rows that a restore or a copy puts into a table.

import { applyOps } from '../engines/apply.ts';
import type { Engine } from '../engines/engine.ts';
import { Arguments } from '../universal-row/arguments.ts';
import { ReadFault } from '../universal-row/errors.ts';
import { RecordBatchWriter } from '../universal-row/record-batch.ts';
import { type OpObserver, RowRewriter } from './backup/row-rewriter.ts';
import type { Pod } from './pod.ts';
import { tooLargeText } from './replicator/partition-log.ts';

interface SliceEnds {
  /** Asked in the instant before; false where it is not to be applied. */
  readonly may?: () => boolean;
  /** Called in the instant after. */
  readonly done?: () => void;
}

/** Ops as an entry of the log, and in the engine. Throws, with nothing done, where they are more than an entry may be. */
export async function applySlice(pod: Pod, slice: Buffer, ends: SliceEnds = {}): Promise<void> {
  const { engine, log } = pod.parts;
  if (slice.length > (log.maxWriteBytes ?? Infinity))
    throw new Error(tooLargeText(log.maxWriteBytes!));
  for (;;) {
    if (pod.writeFailure !== undefined) throw pod.writeFailure;
    if (pod.role !== 'leader') throw new Error('this node leads the rows no more');
    await pod.rowsReady;
    if (engine.congested === true) await engine.drained!();
    // Another leader may have been elected meanwhile.
    if (pod.role !== 'leader' || pod.rowsReady !== undefined) continue;
    pod.endTick();
    log.begin();
    const { writer } = log;
    try {
      if (ends.may?.() === false) {
        log.abandon();
        return;
      }
      writer.reserve(slice.length);
      slice.copy(writer.buf, writer.pos);
      writer.pos += slice.length;
      expectRows(engine, slice);
      applyOps(engine, slice, 0, slice.length);
    } catch (error) {
      log.abandon();
      engine.rollback();
      if (!(error instanceof ReadFault)) throw error;
      await error.ready;
      continue;
    }
    engine.commit(log.end());
    // Before anything can fail: nothing else would end a tick that no command has opened.
    pod.endTick();
    ends.done?.();
    return;
  }
}

/** Has an engine on disk read all rows of the slice in one go: else each of them would be a fault of its own. */
function expectRows(engine: Engine, slice: Buffer): void {
  if (engine.expectRows === undefined) return;
  const keys = new Map<number, Arguments>();
  const row = (table: number, b: Buffer, s: number, n: number): void => {
    let args = keys.get(table);
    if (args === undefined) {
      args = new Arguments();
      args.buf = b;
      keys.set(table, args);
    }
    args.reserve(args.count + 1);
    args.starts[args.count] = s;
    args.lens[args.count++] = n;
  };
  for (const _ of new RowRewriter((table) => table, Infinity, new KeyObserver(row)).add(
    slice,
    0,
    slice.length,
  ));
  for (const [table, args] of keys) engine.expectRows(table, args, 0, args.count - 1, 1);
}

class KeyObserver implements OpObserver {
  readonly row: OpObserver['row'];
  constructor(row: OpObserver['row']) {
    this.row = row;
  }
  value(table: number, b: Buffer, ks: number, kn: number): void {
    this.row(table, b, ks, kn);
  }
  create(): void {}
  expire(): void {}
  state(): void {}
  element(): void {}
  other(): void {}
}

export function refuseIfFull(pod: Pod): void {
  if (pod.maxMemoryBytes === Infinity) return;
  const { usedBytes } = pod.parts.engine.stats();
  if (usedBytes <= pod.maxMemoryBytes) return;
  throw new Error(`${usedBytes} bytes of memory are used, more than memory.max-bytes allows`);
}

/** Removes all rows of a table that no client can reach. */
export async function clearTable(pod: Pod, table: number): Promise<void> {
  const writer = new RecordBatchWriter();
  writer.clear(table);
  await applySlice(pod, writer.buf.subarray(0, writer.pos));
}
