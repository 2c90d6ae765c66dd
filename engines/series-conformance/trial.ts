// One engine under test, driven as a pod drives it: changes are encoded, kept in a log, and applied
// from the log's bytes. Bytes and batches are overwritten as soon as the contract permits.

import assert from 'node:assert/strict';
import { setImmediate as nextTick } from 'node:timers/promises';
import { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import type { CatalogChange, WriteOutcome } from '../../contracts/series-store.ts';
import type { PointBatch } from '../../universal-row/series/point-batch.ts';
import type { SeriesEngine, SeriesReads } from '../series-engine.ts';
import { batchesOf, scribbleOver, SimpleSeriesCache } from './batch-builder.ts';
import type { Point } from './points.ts';
import { database, type ReadOptions, type Selected, View } from './view.ts';

/** An engine as the kit sees it. */
export interface SeriesSubject {
  readonly model: string;
  /** An engine that is not open. With the directory of a closed one it carries on from there. */
  create(directory: string): SeriesEngine;
  /** Returns an unused directory. */
  newDirectory(): string;
  /** A way to the engine from another process: points are written by it, and each state is read by it, too. */
  readonly carrier?: SeriesCarrier;
}

export interface SeriesCarrier {
  /** Has `store` called there with a batch that is equal to this one, or several that are it together. */
  write(
    database: string,
    policy: string,
    batch: PointBatch,
    store: (batch: PointBatch) => WriteOutcome,
  ): Promise<WriteOutcome>;
  /** Runs the check on what the engine answers there. */
  check(engine: SeriesEngine, check: (reads: SeriesReads) => void): Promise<void>;
}

interface LogEntry {
  readonly index: number;
  readonly words: Buffer;
}

interface WriteOptions {
  database?: string;
  policy?: string;
  /** Unix milliseconds. */
  now?: number;
}

const settleMs = 20_000;
const scribble = 0xee;

export class SeriesTrial {
  readonly subject: SeriesSubject;
  readonly directory: string;
  engine: SeriesEngine;
  readonly cache = new SimpleSeriesCache();
  /** All entries since the first opening. */
  readonly log: LogEntry[] = [];
  /** Log index of the last entry. */
  index = 0;
  readonly #writer = new RecordBatchWriter();
  readonly #others: SeriesTrial[] = [];
  #ticks = 0;

  private constructor(subject: SeriesSubject, directory: string) {
    this.subject = subject;
    this.directory = directory;
    this.engine = subject.create(directory);
  }

  static async open(
    subject: SeriesSubject,
    directory = subject.newDirectory(),
  ): Promise<SeriesTrial> {
    const trial = new SeriesTrial(subject, directory);
    assert.equal(trial.engine.model, subject.model);
    await trial.engine.open();
    return trial;
  }

  async close(): Promise<void> {
    await this.engine.close();
    for (const other of this.#others.splice(0)) await other.close();
  }

  /** Another engine of the same kind, closed together with this one. */
  async another(): Promise<SeriesTrial> {
    const other = await SeriesTrial.open(this.subject);
    this.#others.push(other);
    return other;
  }

  get view(): View {
    return new View(this.engine);
  }

  read(options: ReadOptions = {}): Point[] {
    return this.view.read(options);
  }

  // ---- changes

  /** Appends one entry to the log; none when `prepare` encodes nothing. */
  run<T>(prepare: (into: RecordBatchWriter) => T): T {
    const into = this.#writer;
    // An odd place, where no typed array could lie over it.
    into.pos = 1 + (this.index % 7);
    const start = into.pos;
    let result: T;
    try {
      result = prepare(into);
    } catch (error) {
      this.engine.discard();
      throw error;
    }
    if (into.pos === start) return result;
    this.log.push({
      index: ++this.index,
      words: Buffer.from(into.buf.subarray(start, into.pos)),
    });
    this.engine.apply(into.buf, start, into.pos, this.index);
    into.buf.fill(scribble, start, into.pos);
    assert.equal(this.engine.appliedIndex, this.index, 'appliedIndex is the last entry');
    return result;
  }

  /** Bytes that `prepare` encodes for a change that is then discarded. */
  discarded(prepare: (into: RecordBatchWriter) => unknown): Buffer {
    const into = new RecordBatchWriter();
    prepare(into);
    this.engine.discard();
    return into.buf.subarray(0, into.pos);
  }

  /** Writes the points to the default policy of `db`, unless told. */
  async write(points: readonly Point[], options: WriteOptions = {}): Promise<WriteOutcome> {
    const total: WriteOutcome = { written: 0, dropped: 0, error: undefined };
    for (const batch of batchesOf(this.cache, points)) {
      while (this.engine.congested) await this.engine.drained();
      const { database: name = database, policy = '', now = 0 } = options;
      const store = (rows: PointBatch): WriteOutcome =>
        this.run((into) => this.engine.prepareWrite(name, policy, rows, now, into));
      const { carrier } = this.subject;
      const { written, dropped, error } =
        carrier === undefined ? store(batch) : await carrier.write(name, policy, batch, store);
      scribbleOver(batch);
      assert.equal(written + dropped, batch.rows, 'each point is written or dropped');
      assert.equal(error !== undefined, dropped > 0, 'an error if points are dropped');
      total.written += written;
      total.dropped += dropped;
      total.error ??= error;
    }
    if (++this.#ticks % 16 === 0) await nextTick();
    return total;
  }

  /** Writes points all of which must be taken; makes the database where need be. */
  async given(points: readonly Point[], options: WriteOptions = {}): Promise<void> {
    this.change({ kind: 'createDatabase', database: options.database ?? database });
    const outcome = await this.write(points, options);
    assert.deepEqual(outcome, { written: points.length, dropped: 0, error: undefined });
  }

  change(change: CatalogChange): void {
    this.run((into) => this.engine.prepareChange(change, into));
  }

  delete(kind: 'points' | 'series', selected: Selected = {}): void {
    for (const part of this.engine.deletion(kind, { database, ...selected })) {
      if (part !== undefined) this.run(part);
    }
  }

  /** `now` in Unix milliseconds. */
  retain(now: number): void {
    this.run((into) => this.engine.prepareRetention(now, into));
  }

  // ---- opening and closing
  //

  /** Does all the work that was left for later. */
  async settle(): Promise<void> {
    const end = performance.now() + settleMs;
    while (this.engine.background(20)) {
      await nextTick();
      if (performance.now() > end) assert.fail(`background work has not ended in ${settleMs} ms`);
    }
    assert.equal(this.engine.failure, undefined, 'no failure');
  }

  async checkpoint(): Promise<void> {
    const index = await this.engine.checkpoint();
    assert.equal(
      index,
      this.index,
      'a checkpoint holds all that was applied when it was asked for',
    );
  }

  /** Reopens the engine, with the part of the log beyond the checkpoint. */
  async reopen(): Promise<void> {
    await this.engine.close();
    this.engine = this.subject.create(this.directory);
    await this.engine.open();
    assert.ok(this.engine.appliedIndex <= this.index, 'nothing that was never applied');
    await this.replay(this.engine.appliedIndex);
  }

  /** Applies the entries beyond `index`. */
  async replay(index: number): Promise<void> {
    for (const entry of this.log) if (entry.index > index) this.applyEntry(entry);
    assert.equal(this.engine.appliedIndex, this.index, 'appliedIndex after the replay');
  }

  applyEntry({ index, words }: LogEntry): void {
    const buf = Buffer.concat([Buffer.alloc(3), words, Buffer.alloc(5, scribble)]);
    this.engine.apply(buf, 3, 3 + words.length, index);
    buf.fill(scribble);
  }

  /** Appends entries of the log of the engine that its state came from. */
  follow(leader: SeriesTrial): void {
    for (const entry of leader.log) {
      if (entry.index <= this.index) continue;
      this.log.push(entry);
      this.index = entry.index;
      this.applyEntry(entry);
    }
  }

  /** Another engine with this one's export. */
  async copy(): Promise<SeriesTrial> {
    const other = await this.another();
    await other.take(this.engine.exportSnapshot(), this.engine.appliedIndex);
    return other;
  }

  /** Takes the place of all it has; the entries' bytes are its own only until it asks for the next. */
  async take(entries: AsyncIterable<Buffer>, index: number): Promise<void> {
    await this.engine.importSnapshot(lent(entries), index);
    assert.equal(this.engine.appliedIndex, index, 'appliedIndex after an import');
    this.index = index;
    this.log.length = 0;
  }

  /**
   * Runs the check in each state that applied entries can be in: in memory, on disk, replayed,
   * copied.
   */
  async everywhere(check: (view: View) => void): Promise<void> {
    const states: [name: string, reach: () => Promise<SeriesTrial | void>][] = [
      ['as applied', async () => {}],
      ['replayed', () => this.reopen()],
      ['after the background work', () => this.settle()],
      ['after a checkpoint', () => this.checkpoint()],
      ['reopened', () => this.reopen()],
      ['copied', () => this.copy()],
    ];
    for (const [name, reach] of states) {
      try {
        const reached = await reach();
        const { engine, view, subject } = reached ?? this;
        check(view);
        await subject.carrier?.check(engine, (reads) => check(new View(reads)));
      } catch (error) {
        throw new Error(`${name}: ${(error as Error).message}`, { cause: error });
      }
    }
  }
}

export async function* lent(entries: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  for await (const entry of entries) {
    const copy = Buffer.from(entry);
    yield copy;
    copy.fill(scribble);
  }
}
