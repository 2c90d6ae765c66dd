// A pod's rows as part of a backup: all of them, as an export of one moment, or the log entries
// since the backup before. The latter also has the sums of the rows: a checksum over each table at
// the point, so that a restore can tell whether a chain is complete.

import { assert } from '../../universal-row/assert.ts';
import type { BackgroundWork } from '../background-work.ts';
import type { Pod } from '../pod.ts';
import type { LogEntry } from '../replicator/wal/log-reader.ts';
import { ChunkWriter } from './chunk-writer.ts';
import type { LogPoint, PodPart, TableCount } from './manifest-content.ts';
import { Pace } from './pace.ts';
import type { LogPins } from './log-pins.ts';
import { BackupCancelled, chunkPrefix, type PartBackup, type PartOptions } from './part-backup.ts';
import { RowRewriter } from './row-rewriter.ts';
import { RowTally } from './row-tally.ts';

interface RowBackupOptions extends PartOptions {
  pod: Pod;
  model: string;
  wants: (table: number) => boolean;
  /** Sums up the rows that there are, where only the changes of them are written. That reads all of them. */
  sums?: boolean;
}

/** Rows as of the point; only its index where they are not needed. */
interface PointRows {
  readonly index: number;
  readonly batches: AsyncIterable<Buffer> | undefined;
}

/** Size of a slice passed on: filling it takes about a millisecond. */
const sliceBytes = 256 * 1024;

/** Record batches, each of which begins with a row of its own. */
type Batches = AsyncIterator<{ buf: Buffer; start: number; end: number }>;

export class RowBackup implements PartBackup {
  readonly model: string;
  readonly group: number | undefined;
  readonly point: LogPoint;
  readonly lsn: number;
  done = 0;
  readonly total: number;
  readonly #at = Date.now();
  readonly #after: number | undefined;
  readonly #reason: string | undefined;
  readonly #background: BackgroundWork | undefined;
  readonly #pins: LogPins | undefined;
  /** Rows are counted as they are read, because the engine's counts may be ahead of the commit. */
  readonly #countsAll: boolean;
  #tables: TableCount[];
  readonly #writer: ChunkWriter;
  readonly #rewriter: RowRewriter;
  readonly #batches: Batches;
  /** All rows of the point, to be summed up. */
  readonly #rows: Batches | undefined;
  readonly #tally = new RowTally(0);
  readonly #counter = new RowRewriter((table) => table, Infinity, this.#tally);
  readonly #letGo: () => void;
  #cancelled = false;
  #began = false;

  /** Fixes the point of the backup. */
  static async begin(options: RowBackupOptions): Promise<RowBackup> {
    const { pod } = options;
    await pod.exportable();
    // The open tick is written to the log, so that the log has the point.
    pod.endTick();
    const { wants, since, sums = false } = options;
    const { engine, log } = pod.parts;
    const counts = engine
      .tables()
      .filter(wants)
      .map((table) => ({ table, rows: engine.table(table).rowCount() }));
    const needsRows = sums || log.mayLose || typeof since !== 'object';
    const state = needsRows
      ? await pod.committedRows(wants)
      : { index: log.lastIndex, batches: undefined };
    return new RowBackup(options, counts, state);
  }

  private constructor(options: RowBackupOptions, counts: TableCount[], state: PointRows) {
    const { pod, model, group, wants, since } = options;
    const { log, pins, background } = pod.parts;
    this.#background = background;
    this.#pins = pins;
    this.#countsAll = log.mayLose;
    const { volume, appendedLsn } = log.status();
    this.model = model;
    this.group = group;
    this.point = { volume, index: state.index };
    this.lsn = appendedLsn;
    this.#tables = counts;
    this.#rewriter = new RowRewriter((table) => (wants(table) ? table : undefined), sliceBytes);
    this.#writer = new ChunkWriter(options.disk, options.directory, chunkPrefix('redis', this));
    this.#letGo = pins?.hold(typeof since === 'object' ? since.index : state.index) ?? (() => {});
    if (typeof since === 'object') {
      this.#after = since.index;
      const rows = this.#tables.reduce((sum, table) => sum + table.rows, 0);
      const rest = state.batches === undefined ? 0 : rows;
      this.total = rest + this.point.index - since.index;
      // Rows changed from now on are kept for the export, which writes them first.
      if (state.batches !== undefined) this.#rows = whole(state.batches);
      this.#batches = entries(log.readBack(since.index, this.point.index), (index) => {
        this.done = rest + index - since.index;
      });
      return;
    }
    this.#reason = since;
    this.total = this.#tables.reduce((sum, { rows }) => sum + rows, 0);
    this.#batches = whole(state.batches!);
  }

  get bytes(): number {
    return this.#writer.bytes;
  }

  async run(): Promise<PodPart> {
    this.#began = true;
    try {
      if (this.#rows !== undefined) await this.#sumUp(this.#rows);
      for (;;) {
        const next = await this.#batches.next();
        if (this.#cancelled) throw new BackupCancelled();
        if (next.done === true) break;
        await this.#add(next.value);
      }
      await this.#hand(this.#rewriter.rest());
    } catch (error) {
      this.#writer.abandon();
      if (!(error instanceof RangeError) || this.#after === undefined) throw error;
      // A restore, of which this node was not told.
      this.#pins?.clear();
      const why = `the log since the last backup does not tell all: ${error.message}`;
      throw new Error(`${why}; the next backup is a full one`, { cause: error });
    } finally {
      // Also when it came to nothing.
      this.#background?.copied([...this.#counter.copied(), ...this.#rewriter.copied()]);
    }
    return this.#part(await this.#writer.finish());
  }

  cancel(): void {
    this.#cancelled = true;
  }

  async release(): Promise<void> {
    // A generator never begun runs no cleanup on return, and would keep its snapshot open.
    for (const batches of [this.#batches, this.#rows]) {
      if (!this.#began) await batches?.next().catch(() => {});
      await batches?.return?.();
    }
    this.#letGo();
  }

  async #sumUp(batches: Batches): Promise<void> {
    const pace = new Pace();
    for (;;) {
      const next = await batches.next();
      if (this.#cancelled) throw new BackupCancelled();
      if (next.done === true) break;
      const { buf, start, end } = next.value;
      for (const _ of this.#counter.add(buf, start, end));
      this.#counter.rest();
      this.done = this.#rowsOf(this.#counter);
      await pace.step();
    }
    if (this.#countsAll) {
      this.#tables = this.#tally
        .sums()
        .map(({ table, rows, checksum }) => ({ table, rows, checksum }));
      return;
    }
    const sums = new Map(this.#tally.sums().map(({ table, checksum }) => [table, checksum]));
    this.#tables = this.#tables.map(({ table, rows }) => {
      const checksum = sums.get(table);
      return { table, rows, ...(checksum === undefined ? {} : { checksum }) };
    });
  }

  async #add({ buf, start, end }: { buf: Buffer; start: number; end: number }): Promise<void> {
    for (const slice of this.#rewriter.add(buf, start, end)) await this.#hand(slice);
  }

  async #hand(slice: Buffer | undefined): Promise<void> {
    if (this.#cancelled) throw new BackupCancelled();
    if (slice !== undefined) await this.#writer.add(slice);
    if (this.#after === undefined) this.done = this.#rowsOf(this.#rewriter);
  }

  #rowsOf(rewriter: RowRewriter): number {
    let rows = 0;
    for (const count of rewriter.rows.values()) rows += count;
    return rows;
  }

  #part(files: PodPart['files']): PodPart {
    const { model, group, point } = this;
    const common = { model, ...(group && { group }), point, at: this.#at, files };
    const tables =
      this.#countsAll && this.#after === undefined
        ? Array.from(this.#rewriter.rows, ([table, rows]) => ({ table, rows }))
        : this.#tables;
    if (this.#after !== undefined)
      return { ...common, kind: 'entries', after: this.#after, tables };
    for (const { table, rows } of tables) {
      const found = this.#rewriter.rows.get(table) ?? 0;
      assert(found === rows, `the export of table ${table} has ${found} rows instead of ${rows}`);
    }
    const why = this.#reason === undefined ? {} : { reason: this.#reason };
    return { ...common, ...why, kind: 'all', tables };
  }
}

async function* whole(
  batches: AsyncIterable<Buffer>,
): AsyncGenerator<{ buf: Buffer; start: number; end: number }> {
  for await (const batch of batches) yield { buf: batch, start: 0, end: batch.length };
}

async function* entries(
  source: AsyncIterable<LogEntry>,
  seen: (index: number) => void,
): AsyncGenerator<{ buf: Buffer; start: number; end: number }> {
  for await (const entry of source) {
    yield entry;
    seen(entry.index);
  }
}
