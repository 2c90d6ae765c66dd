// Puts rows of backups into tables of this server's pods: first into shadow tables (shadow.ts), where they
// are compared with the backup, then all at once into their places.

import type { Disk } from '../../universal-row/environment.ts';
import { applySlice, clearTable, refuseIfFull } from '../apply-slice.ts';
import type { CopiedRows } from '../background-work.ts';
import type { Pod } from '../pod.ts';
import type { PlacedPart } from './chain.ts';
import { type Frame, readChunks } from './chunk-reader.ts';
import { DamagedBackupError } from './damage.ts';
import { Pace } from './pace.ts';
import { BackupCancelled } from './part-backup.ts';
import { NotEmptyError, type RestoredTable, RestoreMismatchError } from './restore-report.ts';
import { RowRewriter } from './row-rewriter.ts';
import { RowTally, type TableSum } from './row-tally.ts';
import { isShadowTable, shadowTables } from './shadow.ts';

/** A table of the backup, and where it goes. */
export interface TableMove {
  readonly from: number;
  readonly to: number;
}

interface RowRestoreOptions {
  disk: Disk;
  /** The parts of each pod of the backup, oldest first. */
  sources: readonly (readonly PlacedPart[])[];
  /** At most `shadowTables.count`. */
  moves: readonly TableMove[];
  /** The pod that a table of this server is in. */
  podOf: (table: number) => Pod;
  /** What is there goes. */
  replace: boolean;
}

/** What a table has to come to. */
interface Expected {
  rows: number;
  checksum: string | undefined;
}

/** Applying one takes about a millisecond. */
const sliceBytes = 64 * 1024;
const memoryCheckSlices = 64;

export class RowRestore {
  /** Bytes of the backup read, and to be read. */
  done = 0;
  readonly total: number;
  readonly #options: RowRestoreOptions;
  /** By table of the backup: the shadow table, and the pod it is in. */
  readonly #places = new Map<number, { shadow: number; pod: Pod; to: number }>();
  readonly #pods: ReadonlySet<Pod>;
  readonly #pace = new Pace();
  #cancelled = false;
  #slices = 0;

  constructor(options: RowRestoreOptions) {
    const { moves, podOf, sources } = options;
    if (moves.length > shadowTables.count) throw new RangeError('too many tables for one restore');
    this.#options = options;
    for (const [i, { from, to }] of moves.entries()) {
      this.#places.set(from, { shadow: shadowTables.first + i, pod: podOf(to), to });
    }
    this.#pods = new Set([...this.#places.values()].map(({ pod }) => pod));
    let total = 0;
    for (const { files } of sources.flat()) for (const { rawBytes } of files) total += rawBytes;
    this.total = total;
  }

  /** Throws `NotEmptyError` when there are rows that are not to be replaced. */
  refuseRows(): void {
    if (this.#options.replace) return;
    for (const { pod, to } of this.#places.values()) {
      const { rows } = pod.tableSize(to);
      if (rows > 0) throw new NotEmptyError(`table ${to} holds ${rows} rows`);
    }
  }

  /** Fills the shadow tables, and compares them with the backup. Rejects when they are not the same. */
  async load(): Promise<RestoredTable[]> {
    this.refuseRows();
    for (const pod of this.#pods) await dropShadowTables(pod);
    const expected = new Map<number, Expected>();
    for (const parts of this.#options.sources) {
      const tally = await this.#applyAll(parts);
      this.#expect(expected, parts, tally);
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

  /** The tables take their places, those of each pod in one entry of its log. */
  commit(): void {
    this.refuseRows();
    for (const pod of this.#pods) {
      const places = [...this.#places.values()].filter((place) => place.pod === pod);
      // From here on the log does not tell all: the rows come from tables that backups leave out.
      pod.parts.pins?.clear();
      pod.swapTables(places.map(({ shadow, to }) => [shadow, to]));
    }
  }

  cancel(): void {
    this.#cancelled = true;
  }

  /** Drops what the shadow tables hold: what was loaded, or what was there before. */
  async release(): Promise<void> {
    for (const pod of this.#pods) await dropShadowTables(pod);
  }

  /** The tally means something when there is nothing but one export. */
  async #applyAll(parts: readonly PlacedPart[]): Promise<RowTally | undefined> {
    const tally = parts.length === 1 ? new RowTally(Date.now()) : undefined;
    for (const part of parts) {
      for (const pod of this.#pods) await this.#applyPart(part, pod, tally);
    }
    return tally;
  }

  async #applyPart(part: PlacedPart, pod: Pod, tally: RowTally | undefined): Promise<void> {
    const shadowOf = (table: number): number | undefined => {
      const place = this.#places.get(table);
      return place?.pod === pod ? place.shadow : undefined;
    };
    const rewriter = new RowRewriter(shadowOf, sliceBytes, tally);
    try {
      for await (const frame of readChunks(this.#options.disk, part.directory, part.files)) {
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
    const targets = new Map([...this.#places.values()].map(({ shadow, to }) => [shadow, to]));
    return rewriter
      .copied()
      .map((copied) => ({ ...copied, table: targets.get(copied.table) ?? copied.table }));
  }

  async #apply(pod: Pod, slice: Buffer): Promise<void> {
    await this.#pace.step();
    if (this.#cancelled) throw new BackupCancelled();
    if (this.#slices++ % memoryCheckSlices === 0) refuseIfFull(pod);
    await applySlice(pod, slice);
  }

  #expect(
    expected: Map<number, Expected>,
    parts: readonly PlacedPart[],
    tally: RowTally | undefined,
  ): void {
    const sums = new Map(tally?.sums().map((sum) => [sum.table, sum]));
    for (const { table, rows, checksum } of parts.at(-1)?.tables ?? []) {
      const place = this.#places.get(table);
      if (place === undefined || rows === 0) continue;
      if (expected.has(place.shadow)) {
        throw new RestoreMismatchError(`the backup has rows of table ${table} in two engines`);
      }
      // Of what one export holds; of a chain what its last part says.
      const sum = tally === undefined ? checksum : sums.get(place.shadow)?.checksum;
      expected.set(place.shadow, { rows, checksum: sum });
    }
  }

  async #compare(pod: Pod, expected: ReadonlyMap<number, Expected>): Promise<RestoredTable[]> {
    const places = [...this.#places].filter(([, place]) => place.pod === pod);
    const found = await this.#sumsOf(pod);
    return places.flatMap(([from, { shadow, to }]) => {
      const sum = found.get(shadow) ?? emptySum(shadow);
      const { rows } = sum;
      const wanted = expected.get(shadow);
      if (rows !== (wanted?.rows ?? 0)) {
        throw new RestoreMismatchError(
          `of table ${from} ${rows} rows were restored, and the backup has ${wanted?.rows ?? 0}`,
        );
      }
      const other = wanted?.checksum;
      if (other !== undefined && other !== sum.checksum) {
        throw new RestoreMismatchError(
          `table ${from} has checksum ${sum.checksum} when restored, and ${other} in the backup`,
        );
      }
      if (rows === 0) return [];
      const { expiring, due, checksum } = sum;
      return [{ table: to, rows, expiring, due, checksum, checksumCompared: other !== undefined }];
    });
  }

  async #sumsOf(pod: Pod): Promise<Map<number, TableSum>> {
    while (pod.checkpointInProgress) await pod.checkpoint();
    pod.endTurn();
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

/** At a start, and around a restore. */
export async function dropShadowTables(pod: Pod): Promise<void> {
  for (const table of pod.heldTables().filter(isShadowTable)) await clearTable(pod, table);
}

/** Says where in the backup is what cannot be understood, though its checksum is right. */
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
