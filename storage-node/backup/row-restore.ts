// Puts rows of backups into tables of this server's pods: first into shadow tables (shadow.ts), where they
// are compared with the backup, then all at once into their places.

import { ContentSum } from '../../universal-row/content-sum.ts';
import { stringLimit } from '../../universal-row/transforms/redis/support/string-limit.ts';
import { applySlice, clearTable, refuseIfFull } from '../apply-slice.ts';
import type { CopiedRows } from '../background-work.ts';
import type { Pod } from '../pod.ts';
import type { PlacedPart } from './chain.ts';
import type { ChunkDisk } from './chunk-format.ts';
import { type Frame, readChunks } from './chunk-reader.ts';
import { DamagedBackupError } from './damage.ts';
import { Pace } from './pace.ts';
import { BackupCancelled } from './part-backup.ts';
import { NotEmptyError, type RestoredTable, RestoreMismatchError } from './restore-report.ts';
import { type RowPlace, RowPlaces, type TableMove } from './row-places.ts';
import { RowRewriter } from './row-rewriter.ts';
import { RowTally, type TableSum } from './row-tally.ts';
import { isShadowTable } from './shadow.ts';

interface RowRestoreOptions {
  disk: ChunkDisk;
  /** The parts of each pod of the backup, oldest first. */
  sources: readonly (readonly PlacedPart[])[];
  /** At most `shadowTables.count`. */
  moves: readonly TableMove[];
  /** The pod that a table of this server is in. */
  podOf: (table: number) => Pod;
  /** Existing tables are replaced. */
  replace: boolean;
}

/** Expected totals of a shadow table. */
class Expected {
  rows = 0;
  readonly #sum = new ContentSum();
  #hasSum = true;

  add(rows: number, checksum: string | undefined): void {
    this.rows += rows;
    if (checksum === undefined) this.#hasSum = false;
    else this.#sum.addSum(checksum);
  }

  get checksum(): string | undefined {
    return this.#hasSum ? this.#sum.text : undefined;
  }
}

/** Applying one takes about a millisecond. */
const sliceBytes = 64 * 1024;
const memoryCheckSlices = 64;
/** Of a frame beside its longest string: keys, other records, the state of a stream. */
const frameRoom = 64 * 1024 * 1024;

export class RowRestore {
  /** Bytes of the backup read, and to be read. */
  done = 0;
  readonly total: number;
  readonly #options: RowRestoreOptions;
  readonly #places: RowPlaces;
  readonly #pods: ReadonlySet<Pod>;
  /** Terms of the logs in which it is loaded: under another leader its tables are dropped. */
  readonly #terms = new Map<Pod, number | undefined>();
  readonly #pace = new Pace();
  #cancelled = false;
  #slices = 0;

  constructor(options: RowRestoreOptions) {
    const { moves, podOf, sources } = options;
    this.#options = options;
    this.#places = new RowPlaces(moves, podOf);
    this.#pods = this.#places.pods;
    for (const pod of this.#pods) this.#terms.set(pod, termOf(pod));
    let total = 0;
    for (const { files } of sources.flat()) for (const { rawBytes } of files) total += rawBytes;
    this.total = total;
  }

  /** Throws `NotEmptyError` when there are rows that are not to be replaced. */
  refuseRows(): void {
    if (this.#options.replace) return;
    for (const { pod, to } of this.#places.all()) {
      const { rows } = pod.tableSize(to);
      if (rows > 0) throw new NotEmptyError(`table ${to} holds ${rows} rows`);
    }
  }

  /** Fills the shadow tables, and compares them with the backup. Rejects when they are not the same. */
  async load(): Promise<RestoredTable[]> {
    this.refuseRows();
    for (const pod of this.#pods) await dropShadowTables(pod);
    const expected = new Map<number, Expected | undefined>();
    const seen = new Set<number>();
    for (const parts of this.#options.sources) {
      const tally = await this.#applyAll(parts);
      this.#expect(expected, parts, tally, seen);
    }
    const restored: RestoredTable[] = [];
    for (const pod of this.#pods) restored.push(...(await this.#compare(pod, expected)));
    return restored.sort((a, b) => a.table - b.table);
  }

  /** Resolves in an instant in which no long command holds a table. */
  async ready(): Promise<void> {
    while ([...this.#pods].some(({ longRuns }) => longRuns > 0)) {
      for (const pod of this.#pods) await pod.longRunsEnded();
    }
  }

  /**
   * Swaps the tables in, those of each pod in one entry of its log. Resolves when that is durable.
   */
  async commit(): Promise<void> {
    this.refuseRows();
    for (const pod of this.#pods) this.#refuseOtherTerm(pod);
    for (const pod of this.#pods) {
      const places = this.#places.all().filter((place) => place.pod === pod);
      // From here on the log does not tell all: the rows come from tables that backups leave out.
      pod.parts.pins?.clear();
      pod.swapTables(places.map(({ shadow, to }) => [shadow, to]));
    }
    for (const pod of this.#pods) await pod.durable();
  }

  #refuseOtherTerm(pod: Pod): void {
    if (termOf(pod) === this.#terms.get(pod)) return;
    throw new Error('another node leads the group that was being restored: restore it again');
  }

  cancel(): void {
    this.#cancelled = true;
  }

  /** Drops the contents of the shadow tables: the loaded rows, or the previous ones. */
  async release(): Promise<void> {
    for (const pod of this.#pods) await dropShadowTables(pod);
  }

  /** The tally means something when there is nothing but one export. */
  async #applyAll(parts: readonly PlacedPart[]): Promise<RowTally | undefined> {
    const tally = parts.length === 1 ? new RowTally(Date.now()) : undefined;
    const held = (parts.at(-1)?.tables ?? []).filter(({ rows }) => rows > 0);
    for (const pod of this.#pods) {
      const isOf = (place: RowPlace): boolean => place.pod === pod;
      if (!held.some(({ table }) => this.#places.of(table).some(isOf))) continue;
      for (const part of parts) await this.#applyPart(part, pod, tally);
    }
    return tally;
  }

  async #applyPart(part: PlacedPart, pod: Pod, tally: RowTally | undefined): Promise<void> {
    const rewriter = new RowRewriter(
      (table, b, s, n) => this.#places.target(pod, table, b, s, n),
      sliceBytes,
      tally,
      this.#places.spread(pod),
    );
    try {
      const { directory, files } = part;
      for await (const frame of readChunks(this.#options.disk, directory, files, frameLimit())) {
        await decoding(frame, async () => {
          for (const slice of rewriter.add(frame.bytes, 0, frame.bytes.length)) {
            await this.#apply(pod, slice);
          }
          const rest = rewriter.rest();
          if (rest !== undefined) await this.#apply(pod, rest);
        });
        this.done += frame.bytes.length;
      }
    } finally {
      pod.parts.background?.restored(this.#underRealNumbers(rewriter));
    }
  }

  /** Charged to the tenant that is restored. */
  #underRealNumbers(rewriter: RowRewriter): CopiedRows[] {
    const targets = new Map(this.#places.all().map(({ shadow, to }) => [shadow, to]));
    return rewriter
      .copied()
      .map((copied) => ({ ...copied, table: targets.get(copied.table) ?? copied.table }));
  }

  async #apply(pod: Pod, slice: Buffer): Promise<void> {
    await this.#pace.step();
    if (this.#cancelled) throw new BackupCancelled();
    if (this.#slices++ % memoryCheckSlices === 0) {
      refuseIfFull(pod);
      this.#refuseOtherTerm(pod);
    }
    await applySlice(pod, slice);
  }

  #expect(
    expected: Map<number, Expected | undefined>,
    parts: readonly PlacedPart[],
    tally: RowTally | undefined,
    seen: Set<number>,
  ): void {
    const add = (shadow: number, rows: number, checksum: string | undefined): void => {
      const sum = expected.has(shadow) ? expected.get(shadow) : new Expected();
      sum?.add(rows, checksum);
      expected.set(shadow, sum);
    };
    const sums = tally?.sums() ?? [];
    for (const { table, rows, checksum } of parts.at(-1)?.tables ?? []) {
      const places = this.#places.of(table);
      if (places.length === 0 || rows === 0) continue;
      if (seen.has(table)) {
        throw new RestoreMismatchError(`the backup has rows of table ${table} in two engines`);
      }
      seen.add(table);
      // For a single export the tally has the totals; for a chain its last part has them, as far as
      // they are of one table.
      if (tally !== undefined) {
        const told = sums.find((sum) => sum.table === places[0]!.shadow)?.rows ?? 0;
        if (!this.#places.isAlone(table) || told === rows) continue;
        throw new RestoreMismatchError(
          `of table ${table} ${told} rows were restored, and the backup has ${rows}`,
        );
      }
      if (this.#places.isWhole(table)) add(places[0]!.shadow, rows, checksum);
      else for (const { shadow } of places) expected.set(shadow, undefined);
    }
    for (const { table, rows, checksum } of sums) add(table, rows, checksum);
  }

  async #compare(
    pod: Pod,
    expected: ReadonlyMap<number, Expected | undefined>,
  ): Promise<RestoredTable[]> {
    const places = this.#places.all().filter((place) => place.pod === pod);
    const found = await this.#sumsOf(pod);
    return places.flatMap(({ shadow, to }) => {
      const sum = found.get(shadow) ?? emptySum(shadow);
      const { rows, expiring, due, checksum } = sum;
      const isTold = !expected.has(shadow) || expected.get(shadow) !== undefined;
      const wanted = expected.get(shadow);
      if (isTold && rows !== (wanted?.rows ?? 0)) {
        throw new RestoreMismatchError(
          `of table ${to} ${rows} rows were restored, and the backup has ${wanted?.rows ?? 0}`,
        );
      }
      const other = wanted?.checksum;
      if (other !== undefined && other !== checksum) {
        throw new RestoreMismatchError(
          `table ${to} has checksum ${checksum} when restored, and ${other} in the backup`,
        );
      }
      if (rows === 0) return [];
      return [{ table: to, rows, expiring, due, checksum, checksumCompared: other !== undefined }];
    });
  }

  async #sumsOf(pod: Pod): Promise<Map<number, TableSum>> {
    while (pod.checkpointInProgress) await pod.checkpoint();
    await pod.durable();
    const tally = new RowTally(Date.now());
    const rewriter = new RowRewriter((table) => table, Infinity, tally);
    for await (const batch of pod.parts.engine.exportSnapshot(isShadowTable)) {
      for (const _ of rewriter.add(batch, 0, batch.length));
      rewriter.rest();
      await this.#pace.step();
      if (this.#cancelled) throw new BackupCancelled();
    }
    pod.parts.background?.copied(this.#underRealNumbers(rewriter));
    return new Map(tally.sums().map((sum) => [sum.table, sum]));
  }
}

/** A pod with one copy of its log has a single term. */
function termOf(pod: Pod): number | undefined {
  return pod.parts.log.status().replication?.term;
}

/** At a start, and around a restore. */
export async function dropShadowTables(pod: Pod): Promise<void> {
  for (const table of pod.heldTables().filter(isShadowTable)) await clearTable(pod, table);
}

/**
 * Adds the place in the backup to errors of frames that cannot be decoded although their checksum
 * is right.
 */
export async function decoding(frame: Frame, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new DamagedBackupError(frame.path, frame.offset, error.message);
  }
}

function emptySum(table: number): TableSum {
  return { table, rows: 0, elements: 0, checksum: '0'.repeat(16), expiring: 0, due: 0 };
}

/** Maximum decompressed size of a frame. A backup with longer strings can be restored where such strings may be stored. */
function frameLimit(): number {
  return stringLimit.bytes + frameRoom;
}
