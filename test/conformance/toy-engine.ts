// The engine contract without regard for speed: a subject for the kit's own tests, and the shortest
// complete example for authors of engines.

import { AppliedIndexes, localGroup } from '../../engines/applied-indexes.ts';
import { applyOps } from '../../engines/apply.ts';
import type { Engine, EngineStats } from '../../engines/engine.ts';
import { ReadFault } from '../../universal-row/errors.ts';
import { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import { Shape, type Row } from '../../universal-row/rows.ts';
import { bytesOf, ToyTable, type ToyRow, type ToyTransaction } from './toy-table.ts';

const batchBytes = 256 * 1024;

// Stands for a disk: what a checkpoint left in a directory.
const disks = new Map<string, { applied: AppliedIndexes; batches: Buffer[] }>();

export class ToyEngine implements Engine, ToyTransaction {
  readonly model = 'toy';
  readonly failure = undefined;
  #applied = new AppliedIndexes();
  nextSeq = 1;
  readonly bySeq = new Map<Row, ToyRow>();
  readonly #directory: string;
  readonly #faultEvery: number;
  #reads = 0;
  #faultAt: number;
  #tables = new Map<number, ToyTable>();
  #undo: (() => void)[] = [];
  #changed = new Set<ToyRow>();

  /** With `faultEvery`, a read throws a `ReadFault` after about so many; 0 for none. */
  constructor(directory: string, faultEvery = 0) {
    this.#directory = directory;
    this.#faultEvery = faultEvery;
    this.#faultAt = faultEvery;
  }

  maybeFault(): void {
    if (this.#faultEvery === 0 || ++this.#reads < this.#faultAt) return;
    // The step runs again, and gets twice as far before the next fault.
    this.#reads = 0;
    this.#faultAt *= 2;
    throw new ReadFault(Promise.resolve());
  }
  undo(step: () => void): void {
    this.#undo.push(step);
  }
  isFirstChange(row: ToyRow): boolean {
    const first = !this.#changed.has(row);
    this.#changed.add(row);
    return first;
  }
  get appliedIndex(): number {
    return this.#applied.local;
  }
  appliedIndexOf(group: number): number {
    return this.#applied.of(group);
  }
  commit(index: number, group = localGroup): void {
    this.#forget();
    this.#faultAt = this.#faultEvery;
    this.#applied.set(group, index);
  }
  rollback(): void {
    for (const step of this.#undo.reverse()) step();
    this.#forget();
  }
  #forget(): void {
    this.#undo = [];
    this.#changed.clear();
  }

  table = (id: number): ToyTable => {
    const table = this.#tables.get(id) ?? new ToyTable(this);
    this.#tables.set(id, table);
    return table;
  };
  holds = (id: number): boolean => (this.#tables.get(id)?.rowCount() ?? 0) > 0;
  tables(): number[] {
    const ids = [...this.#tables.keys()].filter((id) => this.holds(id));
    return ids.sort((a, b) => a - b);
  }
  swapTables(a: number, b: number): void {
    const [first, second] = [this.table(a), this.table(b)];
    const set = (one: ToyTable, other: ToyTable): void => {
      this.#tables.set(a, one);
      this.#tables.set(b, other);
    };
    this.undo(() => set(first, second));
    set(second, first);
  }

  async open(): Promise<void> {
    const disk = disks.get(this.#directory);
    if (disk === undefined) return;
    this.#load(disk.batches);
    this.#applied = disk.applied.copy();
  }
  async close(): Promise<void> {}
  endTick(): void {}
  background = (): boolean => false;
  async checkpoint(group = localGroup): Promise<number> {
    const applied = this.#applied.copy();
    disks.set(this.#directory, { applied, batches: this.#batches() });
    return applied.of(group);
  }

  async *#each(batches: Buffer[]): AsyncIterable<Buffer> {
    yield* batches;
  }
  exportSnapshot(wants: (table: number) => boolean = () => true): AsyncIterable<Buffer> {
    return this.#each(this.#batches(wants));
  }
  async importSnapshot(
    batches: AsyncIterable<Buffer>,
    index: number,
    group?: number,
  ): Promise<void> {
    const copies: Buffer[] = [];
    for await (const batch of batches) copies.push(Buffer.from(batch));
    this.#load(copies);
    this.commit(index, group);
  }
  #load(batches: Buffer[]): void {
    this.#tables.clear();
    this.bySeq.clear();
    this.#faultAt = Infinity;
    for (const batch of batches) applyOps(this, batch, 0, batch.length);
    this.#forget();
  }
  #batches(wants: (table: number) => boolean = () => true): Buffer[] {
    const batches: Buffer[] = [];
    const w = new RecordBatchWriter();
    const cut = (): void => {
      batches.push(Buffer.from(w.buf.subarray(0, w.pos)));
      w.pos = 0;
    };
    for (const id of this.tables().filter(wants)) {
      for (const { key, shape, expireAt, bytes, fields, elements } of this.table(
        id,
      ).rows.values()) {
        if (w.pos >= batchBytes) cut();
        const keyBytes = bytesOf(key);
        if (shape === Shape.value) {
          w.value(id, keyBytes, 0, key.length, bytesOf(bytes), 0, bytes.length, expireAt);
        } else {
          w.row(id, keyBytes, 0, key.length);
          w.create(shape);
          if (shape >= Shape.stream) w.streamState(bytesOf(bytes), 0, bytes.length);
        }
        const next = (): void => {
          if (w.pos < batchBytes) return;
          cut();
          w.row(id, keyBytes, 0, key.length);
        };
        for (const [name, { value, score }] of fields) {
          if (shape === Shape.ranked) w.score(score, bytesOf(name), 0, name.length);
          else if (shape >= Shape.stream) {
            w.streamRecord(true, bytesOf(name), 0, name.length, bytesOf(value), 0, value.length);
          } else w.field(bytesOf(name), 0, name.length, bytesOf(value), 0, value.length);
          next();
        }
        for (const element of elements) {
          w.push(false, bytesOf(element), 0, element.length);
          next();
        }
        if (shape !== Shape.value && expireAt !== 0) w.expire(expireAt);
      }
    }
    cut();
    return batches;
  }

  stats(): EngineStats {
    let rows = 0;
    let bytes = 0;
    for (const id of this.tables()) {
      rows += this.table(id).rowCount();
      for (const { seq } of this.table(id).rows.values()) bytes += this.table(id).footprint(seq);
    }
    const none = { diskBytes: 0, pendingReclaimBytes: 0, cacheHits: 0, cacheMisses: 0, extra: {} };
    return { rows, memoryBytes: bytes, usedBytes: bytes, ...none };
  }
}
