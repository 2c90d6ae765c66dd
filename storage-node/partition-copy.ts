// Copies the rows of partitions to those that take their place, while clients go on writing to the old ones: all rows as
// of one moment, then what the log says was done since, again and again until little is left. The rest is copied while
// the sources take no commands.
//
// A row whose key is renamed into another target's slots cannot be followed by its ops alone. Its keys are copied last, as
// they are then.

import { RecordBatchWriter } from '../universal-row/record-batch.ts';
import { ReadFault } from '../universal-row/errors.ts';
import { hashSlot } from '../universal-row/crc16.ts';
import { fromRows, toBatch } from '../universal-row/row-transfer.ts';
import { applySlice, refuseIfFull } from './apply-slice.ts';
import { Pace } from './backup/pace.ts';
import { RowRewriter } from './backup/row-rewriter.ts';
import type { Pod } from './pod.ts';

interface CopySource {
  readonly pod: Pod;
  readonly table: number;
}

export interface CopyTarget extends CopySource {
  /** First and last slot. */
  readonly first: number;
  readonly last: number;
}

export interface PartitionCopyOptions {
  readonly sources: readonly CopySource[];
  /** Their slots are those of the sources. Their tables are empty, and no client reaches them. */
  readonly targets: readonly CopyTarget[];
}

export class CopyCancelled extends Error {}

/** Applying one takes about a millisecond. */
const sliceBytes = 64 * 1024;
/** What is left for when the sources take no commands takes some milliseconds. */
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
    // What is written to disk now need not be while commands wait.
    await this.#durable();
    await this.followUp();
  }

  /** What was written since, until little is left. */
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
    for (const pod of new Set(this.#options.targets.map((target) => target.pod))) {
      await pod.durable();
    }
  }

  /** Lets go of the logs. */
  release(): void {
    for (const { release } of this.#followers.splice(0)) release();
  }

  async #copyAll({ pod, table }: CopySource): Promise<void> {
    // As for a backup: an engine makes one export at a time, and a long command has written a part.
    while (pod.checkpointInProgress || !pod.isWhole) {
      if (pod.checkpointInProgress) await pod.checkpoint();
      else await pod.whole();
    }
    pod.endTurn();
    const { engine, log, pins } = pod.parts;
    const at = log.lastIndex;
    const release = pins?.hold(at) ?? ((): void => {});
    const follower: Follower = { pod, table, at, strays: new Set(), release };
    this.#followers.push(follower);
    const rewriter = this.#rewriter(follower);
    for await (const batch of engine.exportSnapshot((one) => one === table)) {
      await this.#passOn(rewriter, batch, 0, batch.length);
      this.done = Math.min(this.total, this.done + this.#begun(rewriter));
    }
  }

  #begun(rewriter: RowRewriter): number {
    let rows = 0;
    for (const count of rewriter.rows.values()) rows += count;
    rewriter.rows.clear();
    return rows;
  }

  /** What was done since; returns how many bytes that was. */
  async #followUp(follower: Follower): Promise<number> {
    const { pod } = follower;
    pod.endTurn();
    const { log } = pod.parts;
    const to = log.lastIndex;
    if (to === follower.at) return 0;
    const rewriter = this.#rewriter(follower);
    let bytes = 0;
    for await (const { buf, start, end } of log.readBack(follower.at, to)) {
      bytes += await this.#passOn(rewriter, buf, start, end);
    }
    follower.at = to;
    return bytes;
  }

  async #passOn(rewriter: RowRewriter, buf: Buffer, start: number, end: number): Promise<number> {
    let bytes = 0;
    for (const slice of rewriter.add(buf, start, end)) bytes += await this.#apply(slice);
    const rest = rewriter.rest();
    if (rest !== undefined) bytes += await this.#apply(rest);
    return bytes;
  }

  /** A slice holds ops for several targets, which may be in several pods. */
  async #apply(slice: Buffer): Promise<number> {
    await this.#pace.step();
    if (this.#cancelled) throw new CopyCancelled();
    const pods = new Set(this.#options.targets.map(({ pod }) => pod));
    const check = this.#slices++ % memoryCheckSlices === 0;
    for (const pod of pods) {
      if (check) refuseIfFull(pod);
      await applySlice(pod, pods.size === 1 ? slice : this.#partOf(slice, pod));
    }
    return slice.length;
  }

  /** Ops for the targets in one pod. */
  #partOf(slice: Buffer, pod: Pod): Buffer {
    const own = new Set(
      this.#options.targets.filter((target) => target.pod === pod).map(({ table }) => table),
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
          if (this.#options.sources.length > 1) {
            // Rows of the other sources in the same target must stay.
            throw new CopyCancelled('a partition was emptied while it was being merged');
          }
          strays.clear();
          return numbers;
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
          const row = rows.find(key, 0, key.length);
          const copy = fromRows(rows, row, { version: 0, ts: 0 });
          writer.pos = 0;
          if (target.pod.parts.engine.table(target.table).find(key, 0, key.length) !== 0) {
            writer.row(target.table, key, 0, key.length);
            writer.drop();
          }
          if (copy !== undefined) toBatch(copy, target.table, writer);
          break;
        } catch (error) {
          if (!(error instanceof ReadFault)) throw error;
          await error.ready;
        }
      }
      if (writer.pos > 0) await applySlice(target.pod, writer.buf.subarray(0, writer.pos));
    }
    strays.clear();
  }
}
