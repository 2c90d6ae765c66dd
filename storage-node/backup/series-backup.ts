// A pod's time series as part of a backup: the whole catalog, and the points of all shards or of the shards that have
// changed since the previous backup. Most shards are in the past and do not change.

import type { SeriesShard } from '../../engines/series-engine.ts';
import type { SeriesBackgroundWork } from '../background-work.ts';
import type { SeriesPod } from '../series-pod.ts';
import { BytesByDatabase } from './bytes-by-database.ts';
import { ChunkWriter } from './chunk-writer.ts';
import type { LogPoint, PodPart } from './manifest-content.ts';
import { BackupCancelled, chunkPrefix, type PartBackup, type PartOptions } from './part-backup.ts';

interface SeriesBackupOptions extends PartOptions {
  pod: SeriesPod;
  model: string;
  wants: (database: string) => boolean;
}

export class SeriesBackup implements PartBackup {
  readonly model: string;
  readonly group: number | undefined;
  readonly point: LogPoint;
  readonly lsn: number;
  /** Shards. */
  done = 0;
  readonly total: number;
  readonly #at = Date.now();
  readonly #tenant: number | undefined;
  readonly #since: LogPoint | string | undefined;
  readonly #shards: readonly SeriesShard[];
  readonly #included: ReadonlySet<number>;
  readonly #writer: ChunkWriter;
  readonly #entries: AsyncIterator<Buffer>;
  readonly #background: SeriesBackgroundWork | undefined;
  readonly #given = new BytesByDatabase();
  #cancelled = false;
  #began = false;

  /** Fixes the point. */
  constructor(options: SeriesBackupOptions) {
    const { pod, model, group, tenant, wants, since } = options;
    pod.endTick();
    const { engine, log, background } = pod.parts;
    this.#background = background;
    const { volume, appendedLsn } = log.status();
    this.model = model;
    this.group = group;
    this.#tenant = tenant;
    this.point = { volume, index: log.lastIndex };
    this.lsn = appendedLsn;
    this.#since = since;
    this.#shards = engine.shards().filter(({ database }) => wants(database));
    const isWanted = ({ changedAt }: SeriesShard): boolean =>
      typeof since !== 'object' || changedAt > since.index;
    this.#included = new Set(this.#shards.filter(isWanted).map(({ number }) => number));
    this.total = this.#included.size;
    this.#writer = new ChunkWriter(options.disk, options.directory, chunkPrefix('influx', this));
    this.#entries = engine
      .exportSnapshot({
        database: wants,
        shard: (number) => this.#included.has(number),
        given: (database, bytes) => this.#given.add(database, bytes),
      })
      [Symbol.asyncIterator]();
  }

  get bytes(): number {
    return this.#writer.bytes;
  }

  async run(): Promise<PodPart> {
    this.#began = true;
    const seen = new Set<number>();
    try {
      for (;;) {
        const next = await this.#entries.next();
        if (this.#cancelled) throw new BackupCancelled();
        if (next.done === true) break;
        await this.#writer.add(next.value);
        // An entry may hold the end of one shard and the beginning of the next; this is for people to see.
        if (next.value.length > 5) seen.add(next.value.readUInt32LE(1));
        this.done = Math.max(0, Math.min(this.total, seen.size - 1));
        await new Promise(setImmediate);
      }
      this.done = this.total;
    } catch (error) {
      this.#writer.abandon();
      throw error;
    } finally {
      // Also when it came to nothing.
      this.#background?.copied(this.#given.all());
    }
    return this.#part(await this.#writer.finish());
  }

  cancel(): void {
    this.#cancelled = true;
  }

  async release(): Promise<void> {
    // Only a generator that has begun can be ended, and closes the files it reads.
    if (!this.#began) await this.#entries.next().catch(() => {});
    await this.#entries.return?.();
  }

  #part(files: PodPart['files']): PodPart {
    const shards = this.#shards.map(({ number, database, policy, startSeconds, seconds }) => ({
      shard: number,
      database,
      policy,
      startSeconds,
      seconds,
      included: this.#included.has(number),
    }));
    const { model, group, point } = this;
    const whose = group === undefined ? {} : { group, tenant: this.#tenant! };
    const common = { model, ...whose, point, at: this.#at, files, shards };
    if (typeof this.#since === 'object') {
      return { ...common, kind: 'shards', after: this.#since.index };
    }
    return { ...common, kind: 'all', ...(this.#since && { reason: this.#since }) };
  }
}
