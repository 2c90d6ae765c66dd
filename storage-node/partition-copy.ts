// Copies the rows of partitions to those that take their place, while clients continue writing to the
// old ones: all rows as of one moment, then the log entries since, repeatedly until little is left.
// The rest is copied while the sources take no commands.
//
// A row whose key is renamed into another target's slots cannot be followed by its ops alone. Its
// keys are copied last, in their final state.

import { RecordBatchWriter } from '../universal-row/record-batch.ts';
import { ReadFault } from '../universal-row/errors.ts';
import { hashSlot } from '../universal-row/crc16.ts';
import { appendRow } from '../universal-row/row-copy.ts';
import { applySlice, refuseIfFull } from './apply-slice.ts';
import { Pace } from './backup/pace.ts';
import { RowRewriter } from './backup/row-rewriter.ts';
import type { Pod } from './pod.ts';

interface CopySource {
  readonly pod: Pod;
  readonly table: number;
}

/** Takes rows, for one target or several. */
export interface CopySink {
  /** Ops as an entry of its log. */
  apply(slice: Buffer): Promise<void>;
  /** Applies the ops of one row. They replace the existing row, if there is one. */
  put(table: number, key: Buffer, ops: Buffer): Promise<void>;
  /** Throws where it has no room for more. */
  refuseIfFull(): void;
  /** Resolves when all of it is durable. */
  durable(): Promise<void>;
}

interface CopyTarget {
  readonly sink: CopySink;
  readonly table: number;
  /** First and last slot. */
  readonly first: number;
  readonly last: number;
}

interface PartitionCopyOptions {
  readonly sources: readonly CopySource[];
  /**
   * Their slots equal those of the sources. Their tables are empty, and not accessible to clients.
   */
  readonly targets: readonly CopyTarget[];
  /** Rows of other sources go to the same targets. */
  readonly isMerge: boolean;
}

/** A pod of this process as a sink. */
export class PodSink implements CopySink {
  readonly #pod: Pod;

  constructor(pod: Pod) {
    this.#pod = pod;
  }

  apply(slice: Buffer): Promise<void> {
    return applySlice(this.#pod, slice);
  }

  put(table: number, key: Buffer, ops: Buffer): Promise<void> {
    return putRow(this.#pod, table, key, ops, async (slice) => {
      if (slice.length > 0) await applySlice(this.#pod, slice);
    });
  }

  refuseIfFull(): void {
    refuseIfFull(this.#pod);
  }

  durable(): Promise<void> {
    return this.#pod.durable();
  }
}

/** See `CopySink.put`: `apply` is given nothing where there is no row, nor was. */
export async function putRow(
  pod: Pod,
  table: number,
  key: Buffer,
  ops: Buffer,
  apply: (slice: Buffer) => Promise<void>,
): Promise<void> {
  for (;;) {
    try {
      const writer = new RecordBatchWriter();
      if (pod.parts.engine.table(table).find(key, 0, key.length) !== 0) {
        writer.row(table, key, 0, key.length);
        writer.drop();
      }
      return await apply(Buffer.concat([writer.buf.subarray(0, writer.pos), ops]));
    } catch (error) {
      if (!(error instanceof ReadFault)) throw error;
      await error.ready;
    }
  }
}

class CopyCancelled extends Error {}

/** Keeps the entries of the log after this one; returns how to let them go. */
function holdLog(pod: Pod, index: number): () => void {
  return pod.parts.pins?.hold(index) ?? ((): void => {});
}

/** Applying one takes about a millisecond. */
const sliceBytes = 64 * 1024;
/**
 * Size of a remainder that takes some milliseconds to copy while the sources accept no commands.
 */
const littleBytes = 128 * 1024;
const mostRounds = 64;
const memoryCheckSlices = 64;

/** One source, and how far it was copied. */
interface Follower extends CopySource {
  /** The last entry of its log that was looked at. */
  at: number;
  /** Renamed into slots of another target: by key, as latin1. */
  readonly strays: Set<string>;
  release: () => void;
}

export class PartitionCopy {
  /** Rows copied so far of those there were at the beginning. */
  done = 0;
  readonly total: number;
  readonly #options: PartitionCopyOptions;
  readonly #followers: Follower[] = [];
  readonly #pace = new Pace();
  #cancelled = false;
  #slices = 0;

  constructor(options: PartitionCopyOptions) {
    this.#options = options;
    this.total = options.sources.reduce(
      (sum, { pod, table }) => sum + pod.tableSize(table).rows,
      0,
    );
  }

  cancel(): void {
    this.#cancelled = true;
  }

  /** Resolves when little is left to be copied. Rejects with `CopyCancelled`, or when a pod takes no writes. */
  async copy(): Promise<void> {
    for (const source of this.#options.sources) await this.#copyAll(source);
    await this.followUp();
    // Written to disk now, so that commands do not wait for it later.
    await this.#durable();
    await this.followUp();
  }

  /** Copies later changes until little is left. */
  async followUp(): Promise<void> {
    for (let round = 0; round < mostRounds; round++) {
      let bytes = 0;
      for (const follower of this.#followers) bytes += await this.#followUp(follower);
      if (bytes < littleBytes) return;
    }
  }

  /** The sources take no commands any more: copies the rest. Resolves when all of it is durable. */
  async finish(): Promise<void> {
    for (const follower of this.#followers) {
      await this.#followUp(follower);
      await this.#copyStrays(follower);
    }
    await this.#durable();
  }

  async #durable(): Promise<void> {
    await Promise.all(this.#sinks.map((sink) => sink.durable()));
  }

  get #sinks(): CopySink[] {
    return [...new Set(this.#options.targets.map(({ sink }) => sink))];
  }

  /** Releases the logs. */
  release(): void {
    for (const { release } of this.#followers.splice(0)) release();
  }

  async #copyAll({ pod, table }: CopySource): Promise<void> {
    await pod.exportable();
    pod.endTick();
    const at = pod.parts.log.lastIndex;
    const follower: Follower = { pod, table, at, strays: new Set(), release: holdLog(pod, at) };
    this.#followers.push(follower);
    const { index, batches } = await pod.committedRows((one) => one === table);
    follower.at = index;
    const rewriter = this.#rewriter(follower);
    for await (const batch of batches) {
      await this.#passOn(rewriter, batch, 0, batch.length);
      await this.#passRest(rewriter);
      this.done = Math.min(this.total, this.done + this.#begun(rewriter));
    }
  }

  #begun(rewriter: RowRewriter): number {
    let rows = 0;
    for (const count of rewriter.rows.values()) rows += count;
    rewriter.rows.clear();
    return rows;
  }

  /** Copies changes since the last call; returns their size in bytes. */
  async #followUp(follower: Follower): Promise<number> {
    const { pod } = follower;
    pod.endTick();
    const { log } = pod.parts;
    const to = log.lastIndex;
    if (to === follower.at) return 0;
    const rewriter = this.#rewriter(follower);
    let bytes = 0;
    for await (const { buf, start, end } of log.readBack(follower.at, to)) {
      bytes += await this.#passOn(rewriter, buf, start, end);
    }
    // Many entries are one slice: each costs its sink an entry, which may be replicated.
    bytes += await this.#passRest(rewriter);
    follower.at = to;
    const { release } = follower;
    follower.release = holdLog(pod, to);
    release();
    return bytes;
  }

  async #passOn(rewriter: RowRewriter, buf: Buffer, start: number, end: number): Promise<number> {
    let bytes = 0;
    for (const slice of rewriter.add(buf, start, end)) bytes += await this.#apply(slice);
    return bytes;
  }

  async #passRest(rewriter: RowRewriter): Promise<number> {
    const rest = rewriter.rest();
    return rest === undefined ? 0 : await this.#apply(rest);
  }

  /** A slice holds ops for several targets, which may be in several pods. */
  async #apply(slice: Buffer): Promise<number> {
    await this.#pace.step();
    if (this.#cancelled) throw new CopyCancelled();
    const sinks = this.#sinks;
    const check = this.#slices++ % memoryCheckSlices === 0;
    const applied = sinks.map(async (sink) => {
      if (check) sink.refuseIfFull();
      const part = sinks.length === 1 ? slice : this.#partOf(slice, sink);
      if (part.length > 0) await sink.apply(part);
    });
    await Promise.all(applied);
    return slice.length;
  }

  /** Ops for the targets of one sink. */
  #partOf(slice: Buffer, sink: CopySink): Buffer {
    const own = new Set(
      this.#options.targets.filter((target) => target.sink === sink).map(({ table }) => table),
    );
    const rewriter = new RowRewriter((table) => (own.has(table) ? table : undefined), Infinity);
    for (const _ of rewriter.add(slice, 0, slice.length));
    return rewriter.rest() ?? Buffer.alloc(0);
  }

  #targetOf(b: Buffer, s: number, n: number): CopyTarget {
    const slot = hashSlot(b, s, n);
    return this.#options.targets.find(({ first, last }) => slot >= first && slot <= last)!;
  }

  #rewriter({ table, strays }: Follower): RowRewriter {
    const { targets } = this.#options;
    const numbers = targets.map((target) => target.table);
    return new RowRewriter(
      (from, b, s, n) => {
        if (from !== table || b === undefined) return undefined;
        if (strays.size > 0 && strays.has(b.toString('latin1', s!, s! + n!))) return undefined;
        return this.#targetOf(b, s!, n!).table;
      },
      sliceBytes,
      undefined,
      {
        cleared: (from) => {
          if (from !== table) return [];
          if (this.#options.isMerge) {
            // Rows of the other sources in the same target must stay.
            throw new CopyCancelled('a partition was emptied while it was being merged');
          }
          strays.clear();
          return numbers;
        },
        swapped: (a, b) => {
          // Of the rows that come into its place nothing was copied.
          if (a === table || b === table) {
            throw new CopyCancelled('the table was swapped with another one while it was copied');
          }
        },
        renamed: (from, key, b, s, n) => {
          if (from !== table) return true;
          const isSame = this.#targetOf(key, 0, key.length) === this.#targetOf(b, s, n);
          const [old, name] = [key.toString('latin1'), b.toString('latin1', s, s + n)];
          if (isSame && !strays.has(old) && !strays.has(name)) return true;
          strays.add(old).add(name);
          return false;
        },
      },
    );
  }

  async #copyStrays({ pod, table, strays }: Follower): Promise<void> {
    for (const name of strays) {
      const key = Buffer.from(name, 'latin1');
      const target = this.#targetOf(key, 0, key.length);
      const writer = new RecordBatchWriter();
      for (;;) {
        try {
          const rows = pod.parts.engine.table(table);
          appendRow(rows, rows.find(key, 0, key.length), target.table, writer);
          break;
        } catch (error) {
          if (!(error instanceof ReadFault)) throw error;
          writer.pos = 0;
          await error.ready;
        }
      }
      await target.sink.put(target.table, key, writer.buf.subarray(0, writer.pos));
    }
    strays.clear();
  }
}
