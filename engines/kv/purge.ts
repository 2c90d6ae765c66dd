// Deletes, in slices, what dropped rows and cleared tables left on disk. What is to be purged is itself
// on disk ('t' and 'g' records), so that a crash forgets none of it.

import { Shape } from '../../universal-row/rows.ts';
import {
  expiryPrefix,
  metaPrefix,
  prefixEnd,
  purgeKey,
  subPrefix,
  trashKey,
} from './key-layout.ts';
import { LevelBatch, type LevelStore } from './level-store.ts';
import { type RowForm, decodeRow, emptyRow } from './record.ts';
import type { Note } from './write-queue.ts';

const sliceKeys = 2000;
const slicePageBytes = 256 * 1024;

export class Purger {
  /** Records deleted since the start. */
  records = 0;
  pendingBytes = 0;
  readonly #level: LevelStore;
  readonly #rows: { row: number; bytes: number }[] = [];
  readonly #generations: { generation: number; bytes: number }[] = [];
  #running: Promise<void> | undefined = undefined;
  #stopped = false;

  constructor(level: LevelStore) {
    this.#level = level;
  }

  add({ row, generation, bytes = 0 }: Note): void {
    if (row !== undefined) this.#rows.push({ row, bytes });
    if (generation !== undefined) this.#generations.push({ generation, bytes });
    if (row !== undefined || generation !== undefined) this.pendingBytes += bytes;
  }

  get hasWork(): boolean {
    return this.#running !== undefined || this.#rows.length > 0 || this.#generations.length > 0;
  }

  /** Begins a slice of about so many milliseconds, unless one is under way. */
  run(budgetMs: number): void {
    if (this.#running !== undefined || !this.hasWork || this.#stopped) return;
    this.#running = this.#slice(performance.now() + budgetMs)
      // A database that fails says so on the next write, and the purge is taken up again.
      .catch(() => {})
      .finally(() => {
        this.#running = undefined;
      });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #slice(deadline: number): Promise<void> {
    const isOver = (): boolean => this.#stopped || performance.now() > deadline;
    for (let row = this.#rows[0]; row !== undefined; row = this.#rows[0]) {
      if (!(await this.#purgeRow(row.row, isOver))) return;
      await this.#deleteOne(trashKey(row.row));
      this.pendingBytes -= row.bytes;
      this.#rows.shift();
      if (isOver()) return;
    }
    for (let next = this.#generations[0]; next !== undefined; next = this.#generations[0]) {
      if (!(await this.#purgeGeneration(next.generation, isOver))) return;
      await this.#deleteOne(purgeKey(next.generation));
      this.pendingBytes -= next.bytes;
      this.#generations.shift();
      if (isOver()) return;
    }
  }

  async #purgeRow(row: number, isOver: () => boolean): Promise<boolean> {
    const prefix = subPrefix(row);
    return this.#deleteAll(prefix, isOver);
  }

  /** Deletes every key with the prefix; false when time ran out before the end. */
  async #deleteAll(prefix: Buffer, isOver: () => boolean): Promise<boolean> {
    let from = prefix;
    for (;;) {
      const keys = await this.#level.keys(from, prefixEnd(prefix), sliceKeys);
      await this.#delete(keys);
      if (keys.length < sliceKeys) return true;
      if (isOver()) return false;
      // What was deleted is not looked at again on the way.
      from = keys[keys.length - 1]!;
    }
  }

  /** Rows one after the other: sub-records first, for the meta record tells where they are. */
  async #purgeGeneration(generation: number, isOver: () => boolean): Promise<boolean> {
    const prefix = metaPrefix(generation);
    let from = prefix;
    for (;;) {
      const page = await this.#level.page(
        from,
        prefixEnd(prefix),
        false,
        sliceKeys,
        slicePageBytes,
      );
      const done: Buffer[] = [];
      for (let i = 0; i < page.keys.length; i++) {
        const row = containerNumber(page.values[i]!);
        if (row !== 0 && !(await this.#purgeRow(row, isOver))) break;
        done.push(page.keys[i]!);
        if (row !== 0 && isOver()) break;
      }
      await this.#delete(done);
      if (done.length === page.keys.length && page.ended) break;
      if (isOver()) return false;
      from = done[done.length - 1] ?? from;
    }
    return this.#deleteAll(expiryPrefix(generation), isOver);
  }

  async #delete(keys: readonly Buffer[]): Promise<void> {
    if (keys.length === 0) return;
    const batch = new LevelBatch();
    for (const key of keys) batch.del(key);
    await this.#level.write(batch);
    this.records += keys.length;
  }

  #deleteOne(key: Buffer): Promise<void> {
    return this.#delete([key]);
  }
}

/** The number under which a row's sub-records are, or 0 if it has none. */
function containerNumber(meta: Buffer): number {
  if (meta[0] === Shape.value) return 0;
  const row: RowForm = { ...emptyRow };
  decodeRow(row, meta);
  return row.number;
}
