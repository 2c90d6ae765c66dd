// An engine with all rows in memory. Every read and write is answered at once, so there is nothing to roll back and
// no read faults. With a directory, a checkpoint is a snapshot file in it, and the log has the changes since.

import { assert } from '../../universal-row/assert.ts';
import { syncDirectoryAsync } from '../../universal-row/durable-names.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { Clock, Disk } from '../../universal-row/environment.ts';
import { AppliedIndexes, localGroup } from '../applied-indexes.ts';
import { applyOps } from '../apply.ts';
import type { Engine, EngineStats } from '../engine.ts';
import { Arena } from './arena.ts';
import { Compactor } from './compactor.ts';
import { MemoryTable } from './memory-table.ts';
import { Reclaimer } from './reclaimer.ts';
import { SnapshotExport } from './snapshot-export.ts';
import { newestSnapshot, readSnapshot, writeSnapshot } from './snapshot-file.ts';

interface MemoryEngineOptions {
  /** Where snapshots go. Without one nothing outlives the process. */
  directory?: string;
  /** Required with a directory. */
  disk?: Disk;
  clock?: Clock;
}

/** Memory a row takes besides its block: its part of the hash index and its address. */
const indexBytesPerRow = 12;

export class MemoryEngine implements Engine {
  readonly model = 'memory';
  readonly failure: Error | undefined = undefined;
  holdsBack = false;

  readonly #applied = new AppliedIndexes();
  readonly #arena = new Arena();
  readonly #tables = new Map<number, MemoryTable>();
  readonly #reclaimer: Reclaimer;
  readonly #compactor: Compactor;
  readonly #disk: Disk | undefined;
  readonly #directory: string | undefined;
  #export: SnapshotExport | undefined = undefined;
  #exportEnded: Promise<void> = Promise.resolve();
  #endExport: () => void = () => {};
  /** The import under way. After a failed one it stays rejected: half a snapshot must not be written or exported. */
  #imported: Promise<void> | undefined = undefined;
  #checkpoint: Promise<AppliedIndexes> | undefined = undefined;
  #diskBytes = 0;

  constructor(options: MemoryEngineOptions = {}) {
    assert(
      options.directory === undefined || options.disk !== undefined,
      'a directory needs a disk to be on',
    );
    this.#disk = options.disk;
    this.#directory = options.directory;
    const clock = options.clock ?? systemClock;
    this.#reclaimer = new Reclaimer(clock);
    this.#compactor = new Compactor(this.#arena, clock);
  }

  async open(): Promise<void> {
    if (this.#disk === undefined || this.#directory === undefined) return;
    const newest = newestSnapshot(this.#disk, this.#directory);
    if (newest === 0) return;
    // The log drops entries that the snapshot has: its name must survive a power cut.
    await syncDirectoryAsync(this.#disk, this.#directory);
    this.#diskBytes = readSnapshot(
      this.#disk,
      this.#directory,
      newest,
      this.#applied,
      (batch, length) => {
        applyOps(this, batch, 0, length);
      },
    );
  }

  async close(): Promise<void> {
    // A checkpoint in progress fails or ends by itself; its result is no longer needed.
    if (this.#checkpoint !== undefined) await this.#checkpoint.catch(() => {});
    await this.#export?.return();
  }

  table(id: number): MemoryTable {
    let table = this.#tables.get(id);
    if (table === undefined) {
      table = new MemoryTable(this.#arena, this.#reclaimer);
      this.#tables.set(id, table);
    }
    return table;
  }

  holds(id: number): boolean {
    return (this.#tables.get(id)?.rowCount() ?? 0) > 0;
  }

  tables(): number[] {
    const ids: number[] = [];
    for (const [id, table] of this.#tables) if (table.rowCount() > 0) ids.push(id);
    return ids.sort((a, b) => a - b);
  }

  swapTables(a: number, b: number): void {
    const first = this.table(a);
    this.#tables.set(a, this.table(b));
    this.#tables.set(b, first);
  }

  forget(id: number): void {
    // A snapshot under way may still be about to read rows that were dropped.
    const table = this.#tables.get(id);
    if (this.#export !== undefined || table === undefined || table.rowCount() > 0) return;
    table.map.dismantle(Infinity);
    this.#tables.delete(id);
  }

  get appliedIndex(): number {
    return this.#applied.local;
  }

  appliedIndexOf(group: number): number {
    return this.#applied.of(group);
  }

  commit(index: number, group = localGroup): void {
    if (group === localGroup) this.#applied.local = index;
    else this.#applied.set(group, index);
  }

  /** Nothing to undo: a command that cannot fault is never given up halfway. */
  rollback(): void {}

  endTick(): void {}

  async checkpoint(group = localGroup): Promise<number> {
    this.#checkpoint ??= this.#takeCheckpoint().finally(() => {
      this.#checkpoint = undefined;
    });
    return (await this.#checkpoint).of(group);
  }

  async #takeCheckpoint(): Promise<AppliedIndexes> {
    if (this.#disk === undefined || this.#directory === undefined) return new AppliedIndexes();
    while (this.exporting !== undefined) await this.exporting;
    const applied = this.#applied.copy();
    // The empty beginning needs no file.
    if (applied.isEmpty) return applied;
    const batches = this.exportSnapshot();
    try {
      this.#diskBytes = await writeSnapshot(this.#disk, this.#directory, applied, batches);
    } finally {
      await batches.return();
    }
    return applied;
  }

  /** Snapshots and checkpoints also wait for the end of an import. */
  get exporting(): Promise<void> | undefined {
    return this.#imported ?? (this.#export === undefined ? undefined : this.#exportEnded);
  }

  /** Only one snapshot at a time. The previous one must have been read to its end, or ended by `return`. */
  exportSnapshot(wants: (table: number) => boolean = () => true): SnapshotExport {
    if (this.#export !== undefined) throw new Error('a snapshot is being taken already');
    if (this.#imported !== undefined) throw new Error('a snapshot is being imported');
    this.#compactor.stop();
    this.#exportEnded = new Promise((resolve) => (this.#endExport = resolve));
    const tables = [...this.#tables].filter(([number]) => wants(number));
    this.#export = new SnapshotExport(tables, this.#reclaimer, () => {
      this.#export = undefined;
      this.#endExport();
    });
    return this.#export;
  }

  importSnapshot(
    batches: AsyncIterable<Buffer>,
    appliedIndex: number,
    group = localGroup,
  ): Promise<void> {
    this.#imported = this.#import(batches, appliedIndex, group).then(() => {
      this.#imported = undefined;
    });
    return this.#imported;
  }

  async #import(
    batches: AsyncIterable<Buffer>,
    appliedIndex: number,
    group: number,
  ): Promise<void> {
    for (const table of this.#tables.values()) table.clear();
    for await (const batch of batches) applyOps(this, batch, 0, batch.length);
    this.commit(appliedIndex, group);
  }

  background(budgetMs: number): boolean {
    if (this.#reclaimer.run(budgetMs)) return true;
    // A snapshot knows the nodes of arrays by their addresses.
    if (this.#export !== undefined) return false;
    return this.#compactor.run(budgetMs, this.#tables.values());
  }

  stats(): EngineStats {
    let rows = 0;
    let expiryBytes = 0;
    for (const table of this.#tables.values()) {
      rows += table.rowCount();
      expiryBytes += table.expiry.bytes();
    }
    const pending = this.#reclaimer.pendingBytes();
    return {
      rows,
      memoryBytes: this.#arena.heldBytes + this.#arena.indexBytes + expiryBytes,
      usedBytes: this.#arena.usedBytes - pending + indexBytesPerRow * rows,
      diskBytes: this.#diskBytes,
      pendingReclaimBytes: pending,
      cacheHits: 0,
      cacheMisses: 0,
      extra: {
        memory_arena_held_bytes: this.#arena.heldBytes,
        memory_arena_used_bytes: this.#arena.usedBytes,
        memory_index_bytes: this.#arena.indexBytes + expiryBytes,
      },
    };
  }
}
