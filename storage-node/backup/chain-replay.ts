// Replays the rows of a chain of backups in a separate engine, to compute their sums. On disk: a
// chain may hold more than memory does.

import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { applyOps } from '../../engines/apply.ts';
import { KvEngine } from '../../engines/kv/kv-engine.ts';
import type { Disk } from '../../universal-row/environment.ts';
import { ReadFault } from '../../universal-row/errors.ts';
import { podOf, type PlacedPart } from './chain.ts';
import { readChunks } from './chunk-reader.ts';
import { decoding } from './row-restore.ts';
import { RowRewriter } from './row-rewriter.ts';
import { RowTally, type TableSum } from './row-tally.ts';

const sliceBytes = 256 * 1024;

/** Accumulated state of one pod of a chain. */
class Replay {
  /** Log entry up to which it has everything, of this log. */
  index = -1;
  volume = -1;
  readonly #engine: KvEngine;
  #commits = 0;

  constructor(directory: string) {
    this.#engine = new KvEngine({ directory });
  }

  open(): Promise<void> {
    return this.#engine.open();
  }

  close(): Promise<void> {
    return this.#engine.close();
  }

  async apply(disk: Disk, part: PlacedPart): Promise<void> {
    const rewriter = new RowRewriter((table) => table, sliceBytes);
    for await (const frame of readChunks(disk, part.directory, part.files)) {
      await decoding(frame, async () => {
        for (const slice of rewriter.add(frame.bytes, 0, frame.bytes.length)) {
          await this.#applySlice(slice);
        }
        const rest = rewriter.rest();
        if (rest !== undefined) await this.#applySlice(rest);
      });
    }
    this.index = part.point.index;
    this.volume = part.point.volume;
  }

  async #applySlice(slice: Buffer): Promise<void> {
    const engine = this.#engine;
    for (;;) {
      if (engine.congested) await engine.drained();
      try {
        applyOps(engine, slice, 0, slice.length);
      } catch (error) {
        engine.rollback();
        if (!(error instanceof ReadFault)) throw error;
        await error.ready;
        continue;
      }
      engine.commit(++this.#commits);
      return;
    }
  }

  async sums(): Promise<Map<number, TableSum>> {
    const tally = new RowTally(0);
    const rewriter = new RowRewriter((table) => table, Infinity, tally);
    for await (const batch of this.#engine.exportSnapshot()) {
      for (const _ of rewriter.add(batch, 0, batch.length));
      rewriter.rest();
    }
    return new Map(tally.sums().map((sum) => [sum.table, sum]));
  }
}

/**
 * Replays of chains whose backups are checked one after the other. Each replay continues from the end of the previous
 * one.
 */
export class ChainReplays {
  readonly #scratch: string;
  #directory: string | undefined;
  readonly #replays = new Map<string, Replay>();
  #made = 0;

  /** `scratch` is a directory for files of its own, which go with `close`. */
  constructor(scratch: string) {
    this.#scratch = scratch;
  }

  /** Tables as they are after the last of these parts: of one pod, oldest first. */
  async sums(
    disk: Disk,
    chain: string,
    parts: readonly PlacedPart[],
  ): Promise<Map<number, TableSum>> {
    const last = parts.at(-1)!;
    const name = `${chain} ${podOf(last)}`;
    const known = this.#replays.get(name);
    const done = parts.findIndex(
      ({ point }) => point.index === known?.index && point.volume === known.volume,
    );
    const replay = done < 0 || known === undefined ? await this.#begin(name) : known;
    for (const part of parts.slice(done + 1)) await replay.apply(disk, part);
    return replay.sums();
  }

  async #begin(name: string): Promise<Replay> {
    await this.#replays.get(name)?.close();
    this.#directory ??= mkdtempSync(join(this.#scratch, 'polyrow-verify-'));
    const replay = new Replay(join(this.#directory, String(++this.#made)));
    this.#replays.set(name, replay);
    await replay.open();
    return replay;
  }

  async close(): Promise<void> {
    for (const replay of this.#replays.values()) await replay.close();
    if (this.#directory !== undefined) rmSync(this.#directory, { recursive: true, force: true });
  }
}
