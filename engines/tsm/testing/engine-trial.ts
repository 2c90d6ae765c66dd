// An engine and its log, as in a pod: prepared entries are logged and applied, and replayed over
// the state that the disk kept.

import { inOneGo } from '../../../universal-row/slices.ts';
import type { Disk } from '../../../universal-row/environment.ts';
import { RecordBatchWriter } from '../../../universal-row/record-batch.ts';
import {
  maxTime,
  minTime,
  type SeriesSelection,
  type WriteOutcome,
} from '../../../contracts/series-store.ts';
import { TsmEngine, type TsmEngineOptions } from '../tsm-engine.ts';
import { batchOf, type FieldValue, type TestPoint, TestSeriesCache } from './point-batches.ts';
import { type ReadPoint, readAll } from './read-points.ts';

export const directory = 'data/tsm';
const all = { from: minTime, to: maxTime };

/** A disk that can lose power: the remaining state is another disk. */
interface CrashableDisk extends Disk {
  crash(): CrashableDisk;
  kill(): CrashableDisk;
  /** Asked before each call: the code of the error with which it fails. */
  fault: (...call: never[]) => string | undefined;
}

export class EngineTrial {
  disk: CrashableDisk;
  engine: TsmEngine;
  readonly cache = new TestSeriesCache();
  log: Buffer[] = [];
  readonly options: Partial<TsmEngineOptions>;
  now = 0;

  constructor(disk: CrashableDisk, options: Partial<TsmEngineOptions> = {}) {
    this.options = options;
    this.disk = disk;
    this.engine = this.#newEngine();
  }

  /** One that has the database `d`. */
  static async open(
    disk: CrashableDisk,
    options: Partial<TsmEngineOptions> = {},
  ): Promise<EngineTrial> {
    const trial = new EngineTrial(disk, options);
    await trial.engine.open();
    trial.change({ kind: 'createDatabase', database: 'd' });
    return trial;
  }

  #newEngine(): TsmEngine {
    return new TsmEngine({ directory, disk: this.disk, ...this.options });
  }

  /** One entry of the log. */
  enter<T>(prepare: (into: RecordBatchWriter) => T): T {
    const into = new RecordBatchWriter();
    const start = 8 + (this.log.length % 5);
    into.pos = start;
    const result = prepare(into);
    if (into.pos === start) {
      this.engine.discard();
      return result;
    }
    this.log.push(Buffer.from(into.buf.subarray(start, into.pos)));
    this.engine.apply(into.buf, start, into.pos, this.log.length);
    return result;
  }

  change(change: Parameters<TsmEngine['prepareChange']>[0]): void {
    this.enter((into) => this.engine.prepareChange(change, into));
  }

  write(points: readonly TestPoint[], policy = '', baseSeconds?: number): WriteOutcome {
    return this.writeTo('d', points, policy, baseSeconds);
  }

  writeTo(
    database: string,
    points: readonly TestPoint[],
    policy = '',
    baseSeconds?: number,
  ): WriteOutcome {
    const batch = batchOf(this.cache, points, baseSeconds);
    return this.enter((into) => this.engine.prepareWrite(database, policy, batch, this.now, into));
  }

  delete(kind: 'points' | 'series', selection: Partial<SeriesSelection> = {}): void {
    for (const part of this.engine.deletion(kind, { database: 'd', ...selection })) {
      if (part !== undefined) this.enter(part);
    }
  }

  read(
    fields: readonly string[] = ['v'],
    request: Partial<Parameters<TsmEngine['scan']>[0]> = {},
  ): ReadPoint[] {
    const scan = this.engine.scan({
      database: 'd',
      retentionPolicy: '',
      measurement: 'm',
      ...all,
      descending: false,
      ...request,
      fields,
    });
    return readAll(inOneGo(scan), fields);
  }

  /** Closes it, kills it or cuts the power, and reopens it with the entries of the log beyond its state. */
  async reopen(how: 'close' | 'kill' | 'crash'): Promise<number> {
    if (how === 'crash') this.disk = this.disk.crash();
    else if (how === 'kill') this.disk = this.disk.kill();
    else await this.engine.close();
    this.cache.empty();
    this.engine = this.#newEngine();
    await this.engine.open();
    const { appliedIndex } = this.engine;
    this.engine.logEndsAt(this.log.length);
    for (const [i, entry] of this.log.entries()) {
      this.engine.apply(entry, 0, entry.length, i + 1);
    }
    return appliedIndex;
  }
}

export const point = (series: string, time: bigint, v: FieldValue, field = 'v'): TestPoint => ({
  series,
  fields: { [field]: v },
  time,
});

export const i = (value: number | bigint): FieldValue => ({ integer: value });
