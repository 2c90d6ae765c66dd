// Deletes, in slices, the records of dropped rows and cleared tables. The list of purges is itself
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
const slicePageBytes = 4 * 1024 * 1024;

interface Job {
  kind: 'row' | 'generation';
  number: number;
  bytes: number;
  /** Progress: deleted keys are not read again. */
  from: Buffer | undefined;
  rowsFrom: Buffer | undefined;
  rowsDone: boolean;
}

export class Purger {
  /** Records deleted since the start. */
  records = 0;
  pendingBytes = 0;
  readonly #level: LevelStore;
  readonly #jobs: Job[] = [];
  #running: Promise<void> | undefined = undefined;
  #stopped = false;

  constructor(level: LevelStore) {
    this.#level = level;
  }

  add({ row, generation, bytes = 0 }: Note): void {
    const number = row ?? generation;
    if (number === undefined) return;
    const kind = row === undefined ? 'generation' : 'row';
    this.#jobs.push({ kind, number, bytes, from: undefined, rowsFrom: undefined, rowsDone: false });
    this.pendingBytes += bytes;
  }

  get hasWork(): boolean {
    return this.#running !== undefined || this.#jobs.length > 0;
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
    for (let job = this.#jobs[0]; job !== undefined; job = this.#jobs[0]) {
      const done =
        job.kind === 'row'
          ? await this.#deleteAll(job, subPrefix(job.number), isOver)
          : await this.#purgeGeneration(job, isOver);
      if (!done) return;
      await this.#delete([job.kind === 'row' ? trashKey(job.number) : purgeKey(job.number)]);
      this.pendingBytes -= job.bytes;
      this.#jobs.shift();
      if (isOver()) return;
    }
  }

  /** Deletes every key with the prefix; false when time ran out before the end. */
  async #deleteAll(job: Job, prefix: Buffer, isOver: () => boolean): Promise<boolean> {
    const end = prefixEnd(prefix);
    for (;;) {
      const from = job.from ?? prefix;
      const keys = await this.#level.keys(from, end, sliceKeys);
      await this.#delete(keys);
      if (keys.length < sliceKeys) {
        job.from = undefined;
        return true;
      }
      job.from = keys[keys.length - 1]!;
      if (isOver()) return false;
    }
  }

  /** Rows one after the other: sub-records first, for the meta record tells where they are. */
  async #purgeGeneration(job: Job, isOver: () => boolean): Promise<boolean> {
    const prefix = metaPrefix(job.number);
    const end = prefixEnd(prefix);
    while (!job.rowsDone) {
      const from = job.rowsFrom ?? prefix;
      const page = await this.#level.page(from, end, false, sliceKeys, slicePageBytes);
      const done: Buffer[] = [];
      for (let i = 0; i < page.keys.length; i++) {
        const row = containerNumber(page.values[i]!);
        if (row !== 0 && !(await this.#deleteAll(job, subPrefix(row), isOver))) break;
        done.push(page.keys[i]!);
        if (row !== 0 && isOver()) break;
      }
      await this.#delete(done);
      job.rowsFrom = done[done.length - 1] ?? from;
      job.rowsDone = page.ended && done.length === page.keys.length;
      if (isOver()) return false;
    }
    return this.#deleteAll(job, expiryPrefix(job.number), isOver);
  }

  async #delete(keys: readonly Buffer[]): Promise<void> {
    if (keys.length === 0) return;
    const batch = new LevelBatch();
    for (const key of keys) batch.del(key);
    await this.#level.write(batch);
    this.records += keys.length;
  }
}

/** The number under which a row's sub-records are, or 0 if it has none. */
function containerNumber(meta: Buffer): number {
  if (meta[0] === Shape.value) return 0;
  const row: RowForm = { ...emptyRow };
  decodeRow(row, meta);
  return row.number;
}
