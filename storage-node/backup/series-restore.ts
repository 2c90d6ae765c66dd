// Puts time series of backups into this server's pod: first into shadow databases (shadow.ts), where they are
// compared with the backup, then all at once under their names.

import { ExportTally, type ShardSum } from '../../engines/tsm/ops/export-tally.ts';
import {
  type SeriesImporter,
  type SeriesShare,
  SeriesShareError,
} from '../../engines/series-engine.ts';
import { ContentSum } from '../../universal-row/content-sum.ts';
import type { SeriesPod } from '../series-pod.ts';
import { BytesByDatabase } from './bytes-by-database.ts';
import { type PlacedPart, shardSources } from './chain.ts';
import type { ChunkDisk } from './chunk-format.ts';
import { readChunks } from './chunk-reader.ts';
import { Pace } from './pace.ts';
import { BackupCancelled } from './part-backup.ts';
import { NotEmptyError, RestoreMismatchError, type RestoredShard } from './restore-report.ts';
import { decoding } from './row-restore.ts';
import { placeOfModel, type SeriesPlace, shareOf } from './series-share.ts';
import { isShadowDatabase, ownerOf, shadowDatabase, tenantDatabase } from './shadow.ts';

/** Tenant whose databases are moved, by number in the backup, and the tenant that receives them. */
export interface TenantMove {
  readonly from: number;
  readonly to: number;
  /** Those to be restored, from 0 on; absent: all that there are. */
  readonly partitions?: readonly number[] | undefined;
}

interface SeriesRestoreOptions {
  disk: ChunkDisk;
  pod: SeriesPod;
  /** Position of the pod among those of time series; absent if time series are undivided. */
  place?: SeriesPlace;
  /** The parts of each pod of the backup that has series of this one, oldest first. */
  sources: readonly (readonly PlacedPart[])[];
  moves: readonly TenantMove[];
  /** Existing databases are replaced. */
  replace: boolean;
}

export class SeriesRestore {
  done = 0;
  readonly total: number;
  readonly #options: SeriesRestoreOptions;
  readonly #targets: ReadonlyMap<number, number>;
  /** Term of the log in which it is loaded: under another leader its databases are dropped. */
  readonly #term: number | undefined;
  readonly #pace = new Pace();
  /** For sources that are divided otherwise. */
  readonly #share: SeriesShare;
  #cancelled = false;

  constructor(options: SeriesRestoreOptions) {
    this.#options = options;
    try {
      this.#share = shareOf(this.#place, options.sources);
    } catch (error) {
      throw withRemedy(error, options.sources);
    }
    this.#term = termOf(options.pod);
    this.#targets = new Map(options.moves.map(({ from, to }) => [from, to]));
    let total = 0;
    for (const { files } of options.sources.flat())
      for (const { rawBytes } of files) total += rawBytes;
    this.total = total;
  }

  get #place(): SeriesPlace {
    return this.#options.place ?? { partition: 0, of: 1 };
  }

  /** Throws `NotEmptyError` when there are points that are not to be replaced. */
  refuseRows(): void {
    if (this.#options.replace) return;
    const shards = this.#options.pod.parts.engine.shards();
    const held = shards.find(({ database }) => this.#isTarget(database));
    if (held === undefined) return;
    throw new NotEmptyError(`database ${ownerOf(held.database).name} holds points`);
  }

  #isTarget(database: string): boolean {
    if (isShadowDatabase(database)) return false;
    const { tenant } = ownerOf(database);
    return [...this.#targets.values()].includes(tenant);
  }

  /** Fills the shadow databases, and compares them with the backup. Rejects when they are not the same. */
  async load(): Promise<{ shards: RestoredShard[]; expired: number }> {
    const { pod, sources } = this.#options;
    this.refuseRows();
    await dropShadowDatabases(pod);
    const wanted: ShardSum[] = [];
    try {
      for (const parts of sources) wanted.push(...(await this.#apply(parts)));
    } catch (error) {
      throw withRemedy(error, sources);
    }
    if (sources.length === 0) return { shards: [], expired: 0 };
    return this.#compare(wanted, await this.#sums());
  }

  /** Gives the restored databases their names and drops the tenants' previous databases, in one log entry. */
  async commit(): Promise<void> {
    this.refuseRows();
    const { pod } = this.#options;
    if (termOf(pod) !== this.#term) {
      throw new Error('another node leads the group that was being restored: restore it again');
    }
    const { engine, log, pins } = pod.parts;
    const names = pod.databases().map(({ name }) => name);
    const shadows = names.filter(isShadowDatabase);
    const restored = new Set(shadows.map(realName));
    pins?.clear();
    await pod.ingest(() => {
      for (const name of names) {
        if (!this.#isTarget(name) || restored.has(name)) continue;
        engine.prepareChange({ kind: 'dropDatabase', database: name }, log.writer);
      }
      for (const name of shadows) engine.prepareRename(name, realName(name), log.writer);
    });
  }

  cancel(): void {
    this.#cancelled = true;
  }

  async release(): Promise<void> {
    await dropShadowDatabases(this.#options.pod);
  }

  /** The shadow database of a database in the backup; undefined if the database was not requested. */
  readonly #rename = (database: string): string | undefined => {
    const { tenant, name } = ownerOf(database);
    const to = this.#targets.get(tenant);
    return to === undefined ? undefined : shadowDatabase(tenantDatabase(to, name));
  };

  async #apply(parts: readonly PlacedPart[]): Promise<ShardSum[]> {
    const { engine } = this.#options.pod.parts;
    const sources = shardSources(parts);
    const isSame = placeOfModel(parts.at(-1)!.model).of === this.#place.of;
    const share = isSame ? undefined : this.#share;
    const importer = engine.importer(this.#rename, share);
    const sums: ShardSum[] = [];
    // The newest first: it says which databases and shards there are.
    for (const part of parts.toReversed()) {
      const isOurs = (shard: number): boolean => sources.get(shard) === part;
      const tally = new ExportTally(isOurs, share);
      try {
        await this.#applyPart(part, isOurs, tally, importer);
      } finally {
        this.#charge(tally);
      }
      sums.push(...tally.sums().filter(({ number }) => isOurs(number)));
    }
    return sums;
  }

  async #applyPart(
    part: PlacedPart,
    isOurs: (shard: number) => boolean,
    tally: ExportTally,
    importer: SeriesImporter,
  ): Promise<void> {
    const { pod, disk } = this.#options;
    const { log } = pod.parts;
    for await (const frame of readChunks(disk, part.directory, part.files)) {
      await decoding(frame, async () => {
        for (const _ of tally.add(frame.bytes)) await this.#pace.step();
        const steps = importer.put(frame.bytes, isOurs, log.writer);
        for (let ended = false; !ended; ) {
          if (this.#cancelled) throw new BackupCancelled();
          await pod.ingest(() => {
            ended = steps.next().done === true;
          });
          await this.#pace.step();
        }
      });
      this.done += frame.bytes.length;
    }
  }

  /** Charged to the tenant that is restored. */
  #charge(tally: ExportTally): void {
    const { background } = this.#options.pod.parts;
    if (background === undefined) return;
    const put = new BytesByDatabase();
    for (const { number, database } of tally.sums()) {
      const shadow = this.#rename(database);
      if (shadow !== undefined) put.add(realName(shadow), tally.bytesOf(number));
    }
    background.restored(put.all());
  }

  async #sums(): Promise<ExportTally> {
    const { pod } = this.#options;
    pod.endTick();
    const tally = new ExportTally();
    const read = new BytesByDatabase();
    const selection = {
      database: isShadowDatabase,
      given: (database: string, bytes: number) => read.add(realName(database), bytes),
    };
    for await (const entry of pod.parts.engine.exportSnapshot(selection)) {
      for (const _ of tally.add(entry)) await this.#pace.step();
      if (this.#cancelled) throw new BackupCancelled();
    }
    pod.parts.background?.copied(read.all());
    return tally;
  }

  #compare(
    wanted: readonly ShardSum[],
    tally: ExportTally,
  ): { shards: RestoredShard[]; expired: number } {
    const found = new Map(tally.sums().map((sum) => [keyOf(sum), sum]));
    const shards: RestoredShard[] = [];
    let expired = 0;
    for (const sum of together(wanted)) {
      const database = this.#rename(sum.database);
      if (database === undefined) continue;
      const other = found.get(keyOf({ ...sum, database }));
      if (other === undefined && sum.rows === 0 && this.#isDivided) continue;
      const where = `${ownerOf(sum.database).name}.${sum.policy} from ${sum.startSeconds} on`;
      if (other === undefined) {
        if (!this.#isExpired(database, sum)) {
          throw new RestoreMismatchError(`the points of ${where} were not restored`);
        }
        expired++;
        continue;
      }
      if (other.rows !== sum.rows || other.checksum !== sum.checksum) {
        throw new RestoreMismatchError(
          `of ${where} ${other.rows} points with checksum ${other.checksum} were restored, and the backup has ${sum.rows} with ${sum.checksum}`,
        );
      }
      const { policy, startSeconds, rows, values, checksum } = other;
      shards.push({ database: realName(database), policy, startSeconds, rows, values, checksum });
    }
    return { shards, expired };
  }

  /** Shards without series of this partition are not made. */
  get #isDivided(): boolean {
    return this.#options.sources.some(
      (parts) => placeOfModel(parts.at(-1)!.model).of !== this.#place.of,
    );
  }

  /** Whether its policy keeps nothing so old: retention may have dropped it already. */
  #isExpired(database: string, { policy, startSeconds, seconds }: ShardSum): boolean {
    const policies = this.#options.pod.database(database)?.retentionPolicies ?? [];
    const duration = policies.find(({ name }) => name === policy)?.duration ?? 0n;
    return duration !== 0n && startSeconds + seconds <= Date.now() / 1000 - Number(duration) / 1e9;
  }
}

/** Partitions that do not come together can be restored beside each other. */
function withRemedy(error: unknown, sources: SeriesRestoreOptions['sources']): unknown {
  if (!(error instanceof SeriesShareError)) return error;
  const of = Math.max(...sources.map((parts) => placeOfModel(parts.at(-1)!.model).of));
  return new SeriesShareError(
    `${error.what}. Restore them with polyrow restore --into DIRECTORY, or into a server or a cluster that was begun with --influx.partitions ${of}, or a multiple of it`,
  );
}

/** Shards of several sources that are one here. */
function together(sums: readonly ShardSum[]): ShardSum[] {
  const found = new Map<string, ShardSum>();
  for (const sum of sums) {
    const known = found.get(keyOf(sum));
    if (known === undefined) {
      found.set(keyOf(sum), sum);
      continue;
    }
    const contents = new ContentSum();
    for (const { checksum } of [known, sum]) contents.addSum(checksum);
    const rows = known.rows + sum.rows;
    const values = known.values + sum.values;
    found.set(keyOf(sum), { ...known, rows, values, checksum: contents.text });
  }
  return [...found.values()];
}

function termOf(pod: SeriesPod): number | undefined {
  return pod.parts.log.status().replication?.term;
}

/** At a start, and around a restore. */
export async function dropShadowDatabases(pod: SeriesPod): Promise<void> {
  const { engine, log } = pod.parts;
  for (const { name } of pod.databases()) {
    if (!isShadowDatabase(name)) continue;
    await pod.ingest(() =>
      engine.prepareChange({ kind: 'dropDatabase', database: name }, log.writer),
    );
  }
}

function realName(shadow: string): string {
  return shadow.slice(shadowDatabase('').length);
}

function keyOf({ database, policy, startSeconds }: ShardSum | RestoredShard): string {
  return JSON.stringify([database, policy, startSeconds]);
}
