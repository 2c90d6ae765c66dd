// The key-value engine: rows as records in LevelDB, with a cache of the records in use above it.
//
// Reads of what is in memory answer at once; others throw `ReadFault` and are read together. Writes
// are visible at once and go to disk in batches of whole log entries (write-queue.ts). A caller
// that writes a lot without reading should wait for `drained()` while `congested`.

import { assert } from '../../universal-row/assert.ts';
import type { Arguments } from '../../universal-row/arguments.ts';
import { emptyBytes } from '../../universal-row/bytes.ts';
import { ReadFault } from '../../universal-row/errors.ts';
import { AppliedIndexes, localGroup } from '../applied-indexes.ts';
import { applyOps } from '../apply.ts';
import type { Engine, EngineStats, ReadScheduler, Savepoint } from '../engine.ts';
import { KeyFilter } from './key-filter.ts';
import {
  formatVersion,
  manyGroupsVersion,
  purgeKey,
  stateBytes,
  stateKey,
  tableKey,
  tableOfKey,
} from './key-layout.ts';
import {
  type LevelBatch,
  type LevelOptions,
  type LevelSnapshot,
  LevelStore,
  eachWith,
} from './level-store.ts';
import type { KvRows, TableHost } from './kv-rows.ts';
import { statsOf } from './kv-stats.ts';
import { KvTable } from './kv-table.ts';
import { Purger } from './purge.ts';
import type { SuspendedJournal } from './journal.ts';
import { RecordStore, type StoreOwner } from './record-store.ts';
import { type ExportedTable, SnapshotReader } from './snapshot.ts';
import { readTableState, TableState, tableStateBytes } from './table-state.ts';
import type { Note } from './write-queue.ts';

export interface KvEngineOptions {
  directory: string;
  /** Size of the cache of rows and records above LevelDB. Default 256 MiB. */
  cacheBytes?: number;
  /** Size of records not yet on disk, beyond which writers should wait. Default 64 MiB. */
  waitingLimitBytes?: number;
  /** Tables whose keys are stored on disk in key order. Takes effect when a table is first used or next cleared. */
  isOrdered?: (table: number) => boolean;
  /**
   * Consulted before records are read from disk; without a scheduler, all misses of a tick are read
   * together.
   */
  readScheduler?: ReadScheduler | undefined;
  level?: LevelOptions;
  /** In place of LevelDB in the directory, for tests. */
  levelStore?: LevelStore;
}

const mebibyte = 1024 * 1024;
const diskSizeEveryMs = 2000;

export class KvEngine implements Engine, StoreOwner, TableHost {
  readonly model = 'kv';
  readonly store: RecordStore;
  readonly #level: LevelStore;
  readonly #purger: Purger;
  readonly #isOrdered: (table: number) => boolean;
  #bypassing: ReadonlySet<number> = new Set();
  readonly #tables = new Map<number, KvTable>();
  readonly #changedTables = new Set<number>();
  /** Tables to be deleted from disk, and tables whose deletion has been written. */
  readonly #forgotten = new Set<number>();
  readonly #gone = new Set<number>();
  readonly #applied = new AppliedIndexes();
  #nextRow = 1;
  #nextGeneration = 1;
  /** While rows are imported: the states that are to be replaced in the end. */
  #replaced: Map<number, TableState | undefined> | undefined = undefined;
  #diskBytes = 0;
  #diskSizedAt = -Infinity;
  #isOpen = false;

  constructor(options: KvEngineOptions) {
    this.#level = options.levelStore ?? new LevelStore(options.directory, options.level);
    this.#isOrdered = options.isOrdered ?? (() => false);
    this.#purger = new Purger(this.#level);
    this.store = new RecordStore(this.#level, this, {
      cacheBytes: options.cacheBytes ?? 256 * mebibyte,
      waitingLimitBytes: options.waitingLimitBytes ?? 64 * mebibyte,
      readScheduler: options.readScheduler,
    });
  }

  // ---- life

  async open(): Promise<void> {
    await this.#level.open();
    this.#isOpen = true;
    try {
      await this.#readState();
    } catch (error) {
      await this.#level.close();
      this.#isOpen = false;
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`the LevelDB in ${this.#level.directory} is damaged: ${reason}`, {
        cause: error,
      });
    }
  }

  async #readState(): Promise<void> {
    const state = await this.#level.get(stateKey);
    if (state === undefined) {
      const some = await this.#level.keys(Buffer.alloc(1), Buffer.alloc(1, 255), 1);
      if (some.length > 0) throw new Error('it holds records, but not the one that describes them');
      return;
    }
    if (state[0] !== formatVersion && state[0] !== manyGroupsVersion) {
      throw new Error(`its format ${state[0]} is not known`);
    }
    this.#applied.local = state.readDoubleBE(1);
    this.#applied.readOthers(state.subarray(stateBytes));
    this.#nextRow = state.readUIntBE(9, 6);
    this.#nextGeneration = state.readUInt32BE(15);
    await eachWith(this.#level, 'T', (key, value) => {
      const id = tableOfKey(key);
      const generation = readTableState(id, value);
      generation.bypassesCache = this.#bypassing.has(id);
      this.#tables.set(id, new KvTable(this, id, generation));
    });
    await eachWith(this.#level, 't', (key) => {
      this.#purger.add({ key, value: undefined, row: key.readUIntBE(1, 6) });
    });
    await eachWith(this.#level, 'g', (key) => {
      this.#purger.add({ key, value: undefined, generation: key.readUInt32BE(1) });
    });
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await Promise.all([this.#purger.stop(), this.store.loader.close()]);
    try {
      await this.store.queue.close();
    } finally {
      await this.#level.close();
    }
  }

  // ---- tables

  table(id: number): KvTable {
    const table = this.#tables.get(id);
    if (table !== undefined) return table;
    const created = new KvTable(this, id, this.#newState(id));
    this.#tables.set(id, created);
    if (this.#replaced !== undefined) this.#shadow(created, undefined);
    return created;
  }

  holds(id: number): boolean {
    return (this.#tables.get(id)?.state.rows ?? 0) > 0;
  }

  tables(): number[] {
    const ids: number[] = [];
    for (const { id, state } of this.#tables.values()) if (state.rows > 0) ids.push(id);
    return ids.sort((a, b) => a - b);
  }

  swapTables(a: number, b: number): void {
    if (a === b) return;
    const first = this.table(a);
    const second = this.table(b);
    const swap = (): void => {
      const { state } = first;
      first.state = second.state;
      second.state = state;
      for (const table of [first, second]) {
        table.state.table = table.id;
        this.#setBypass(table);
      }
    };
    swap();
    this.store.journal.push({ undo: swap });
    this.tableChanged(a);
    this.tableChanged(b);
  }

  forget(id: number): void {
    const table = this.#tables.get(id);
    if (table === undefined || table.state.rows > 0 || this.#replaced !== undefined) return;
    this.#tables.delete(id);
    this.#forgotten.add(id);
    this.store.queue.stateChanged = true;
  }

  #newState(table: number): TableState {
    const state = new TableState(table, this.#nextGeneration++, this.#isOrdered(table));
    state.filter = new KeyFilter();
    state.bypassesCache = this.#bypassing.has(table);
    return state;
  }

  setCacheBypass(tables: ReadonlySet<number>): void {
    this.#bypassing = tables;
    for (const table of this.#tables.values()) this.#setBypass(table);
  }

  #setBypass({ id, state }: KvTable): void {
    state.bypassesCache = this.#bypassing.has(id);
  }

  newRowNumber(): number {
    return this.#nextRow++;
  }

  tableChanged(table: number): void {
    this.#changedTables.add(table);
  }

  replaceState(table: KvRows): void {
    const old = table.state;
    table.state = this.#newState(table.id);
    this.store.cache.addEmptyStretch(table.state.meta);
    this.store.cache.addEmptyStretch(table.state.expiry);
    old.dropped = true;
    this.tableChanged(table.id);
    this.store.journal.push({
      undo: () => {
        table.state = old;
        old.dropped = false;
      },
    });
    this.store.note(purgeNote(old));
    this.#abandon(old);
  }

  #abandon({ meta, expiry }: TableState): void {
    this.store.abandon(meta);
    this.store.abandon(expiry);
  }

  /**
   * Has the rows that the running command names, `args[first], args[first + step] ... args[last]`, read
   * in one go; throws one `ReadFault` for all that are not in memory.
   */
  expectRows(table: number, args: Arguments, first: number, last: number, step: number): void {
    this.table(table).expect(args, first, last, step);
  }

  // ---- entries

  get appliedIndex(): number {
    return this.#applied.local;
  }

  appliedIndexOf(group: number): number {
    return this.#applied.of(group);
  }

  commit(index: number, group = localGroup): void {
    if (group === localGroup) this.#applied.local = index;
    else this.#applied.set(group, index);
    this.store.queue.stateChanged = true;
    this.store.journal.commit();
  }

  rollback(): void {
    this.store.journal.rollback();
  }

  suspend(): SuspendedJournal | undefined {
    return this.store.journal.suspend();
  }

  resume(entry: SuspendedJournal | undefined): void {
    this.store.journal.resume(entry);
  }

  savepoint(): Savepoint {
    return { changes: this.store.journal.savepoint() };
  }

  rollbackTo({ changes }: Savepoint): void {
    this.store.journal.rollbackTo(changes);
  }

  endTick(): void {
    this.store.endTick();
  }

  get holdsBack(): boolean {
    return this.store.holdsBack;
  }

  set holdsBack(holdsBack: boolean) {
    this.store.holdsBack = holdsBack;
  }

  get failure(): Error | undefined {
    return this.store.queue.failure;
  }

  /** More waits to be written than should. */
  get congested(): boolean {
    return this.store.queue.overLimit;
  }

  /** Resolves when no more waits to be written than should. */
  drained(): Promise<void> {
    return this.store.queue.drained();
  }

  addState(batch: LevelBatch): void {
    const applied = this.#applied;
    const state = Buffer.allocUnsafe(stateBytes);
    state[0] = applied.hasOthers ? manyGroupsVersion : formatVersion;
    state.writeDoubleBE(applied.local, 1);
    state.writeUIntBE(this.#nextRow, 9, 6);
    state.writeUInt32BE(this.#nextGeneration, 15);
    batch.put(stateKey, applied.hasOthers ? Buffer.concat([state, applied.encodeOthers()]) : state);
    if (this.#replaced !== undefined) return;
    for (const id of this.#changedTables) this.#putTable(batch, id);
    this.#changedTables.clear();
    for (const id of this.#forgotten) {
      this.#gone.add(id);
      this.#putTable(batch, id);
    }
    this.#forgotten.clear();
  }

  #putTable(batch: LevelBatch, id: number): void {
    const table = this.#tables.get(id);
    if (table === undefined) {
      batch.del(tableKey(id));
      return;
    }
    table.state.writtenBytes = table.state.bytes;
    batch.put(tableKey(id), tableStateBytes(table.state));
  }

  stateLost(): void {
    for (const id of this.#gone) this.#forgotten.add(id);
    for (const id of this.#tables.keys()) this.#changedTables.add(id);
  }

  notesWritten(notes: readonly Note[]): void {
    for (const note of notes) this.#purger.add(note);
  }

  async checkpoint(group = localGroup): Promise<number> {
    const index = this.#applied.of(group);
    await this.store.queue.settled();
    await this.#level.flush();
    return index;
  }

  // ---- snapshots

  exportSnapshot(wants: (table: number) => boolean = () => true): AsyncIterable<Buffer> {
    let snapshot: LevelSnapshot | undefined;
    const tables: ExportedTable[] = this.tables()
      .filter((table) => wants(table))
      .map((table) => ({ table, generation: this.table(table).state.generation }));
    const taken = this.store.queue.settled(() => {
      snapshot = this.#level.snapshot();
    });
    // The iterator throws the failure.
    taken.catch(() => {});
    const level = this.#level;
    return (async function* () {
      await taken;
      assert(snapshot !== undefined, 'the snapshot is taken once the queue has settled');
      try {
        yield* new SnapshotReader(level, snapshot).batches(tables);
      } finally {
        await snapshot.close();
      }
    })();
  }

  /** Imports rows next to the existing rows. At the end they replace the existing rows in one step. */
  async importSnapshot(
    batches: AsyncIterable<Buffer>,
    appliedIndex: number,
    group = localGroup,
  ): Promise<void> {
    assert(this.#replaced === undefined, 'one import at a time');
    await this.store.queue.settled();
    this.#replaced = new Map();
    for (const table of this.#tables.values()) {
      const { state } = table;
      table.state = this.#newState(table.id);
      this.#shadow(table, state);
    }
    try {
      for await (const batch of batches) await this.#importBatch(batch);
      await this.store.queue.settled();
    } catch (error) {
      this.#abandonImport();
      throw error;
    }
    this.#finishImport();
    this.commit(appliedIndex, group);
    await this.checkpoint();
  }

  /** Until the import ends its generation is one to be purged, in case it never does. */
  #shadow(table: KvTable, replaced: TableState | undefined): void {
    this.#replaced!.set(table.id, replaced);
    const { generation } = table.state;
    this.store.queue.notes.push({ key: purgeKey(generation), value: emptyBytes });
  }

  async #importBatch(batch: Buffer): Promise<void> {
    for (;;) {
      try {
        applyOps(this, batch, 0, batch.length);
        break;
      } catch (error) {
        this.store.journal.rollback();
        if (!(error instanceof ReadFault)) throw error;
        await error.ready;
      }
    }
    this.store.journal.commit();
    this.store.endTick();
    await this.drained();
    if (this.failure !== undefined) throw this.failure;
  }

  #finishImport(): void {
    const { notes } = this.store.queue;
    for (const [id, old] of this.#replaced!) {
      const { generation } = this.table(id).state;
      notes.push({ key: purgeKey(generation), value: undefined });
      if (old !== undefined) {
        old.dropped = true;
        this.#abandon(old);
        notes.push(purgeNote(old));
      }
      this.tableChanged(id);
    }
    this.#replaced = undefined;
  }

  #abandonImport(): void {
    for (const [id, old] of this.#replaced!) {
      const table = this.table(id);
      const imported = table.state;
      imported.dropped = true;
      this.#abandon(imported);
      table.state = old ?? this.#newState(id);
      this.store.queue.notes.push(purgeNote(imported));
      this.tableChanged(id);
    }
    this.#replaced = undefined;
    this.store.queue.endTick();
  }

  // ---- maintenance

  background(budgetMs: number): boolean {
    if (!this.#isOpen) return false;
    // Items that are not read any more go, even without further requests.
    if (this.store.cache.lru.passingBytes > 0) this.store.endTick();
    else this.store.queue.endTick();
    this.#purger.run(budgetMs);
    this.#sizeDisk();
    const more = this.#sweep(budgetMs);
    return more || this.#purger.hasWork || this.store.queue.notesUnderWay > 0;
  }

  /** Frees memory of dropped rows; true when there is more. */
  #sweep(budgetMs: number): boolean {
    const deadline = performance.now() + budgetMs;
    while (this.store.sweep(1000)) if (performance.now() > deadline) return true;
    return false;
  }

  #sizeDisk(): void {
    const now = performance.now();
    if (now - this.#diskSizedAt < diskSizeEveryMs) return;
    this.#diskSizedAt = now;
    this.#level.approximateBytes().then(
      (bytes) => {
        this.#diskBytes = bytes;
      },
      // The store is being closed or reopened; the last figure stands.
      () => {},
    );
  }

  stats(): EngineStats {
    return statsOf(this.store, this.#level, this.#purger, this.#tables.values(), this.#diskBytes);
  }
}

/** The generation is to be purged. */
function purgeNote({ generation }: TableState): Note {
  return { key: purgeKey(generation), value: emptyBytes, generation };
}
