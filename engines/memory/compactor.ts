// Returns memory to the system after many scattered deletions: empties the least filled chunks by
// moving their blocks to others, visiting all rows and collections a slice at a time. Blocks
// written meanwhile may be missed; they then stay where they are.

import type { Clock } from '../../universal-row/environment.ts';
import type { Arena } from './arena.ts';
import type { MemoryTable } from './memory-table.ts';

const blocksPerSlice = 1024;

export class Compactor {
  readonly #arena: Arena;
  readonly #clock: Clock;
  /** Tables still to go through, the current one last; undefined when nothing is under way. */
  #tables: MemoryTable[] | undefined = undefined;
  #nextRow = 0;
  #collection = 0;
  #nextBlock = 0;

  constructor(arena: Arena, clock: Clock) {
    this.#arena = arena;
    this.#clock = clock;
  }

  /** Works for about `budgetMs` if there is anything to gain; true when more is left. */
  run(budgetMs: number, tables: Iterable<MemoryTable>): boolean {
    if (this.#tables === undefined) {
      if (!this.#arena.isSparse()) return false;
      this.#arena.beginCompaction();
      this.#tables = [...tables];
    }
    const end = this.#clock.monotonic() + budgetMs;
    for (;;) {
      const table = this.#tables.at(-1);
      if (table === undefined) {
        this.stop();
        return false;
      }
      if (!this.#step(table)) {
        this.#tables.pop();
        this.#nextRow = 0;
        this.#collection = 0;
        this.#nextBlock = 0;
      }
      if (this.#clock.monotonic() >= end) return true;
    }
  }

  /** Stops the current compaction. */
  stop(): void {
    if (this.#tables === undefined) return;
    this.#tables = undefined;
    this.#arena.endCompaction();
  }

  #step(table: MemoryTable): boolean {
    if (this.#nextRow < table.map.nextId) {
      table.map.compact(this.#nextRow, blocksPerSlice);
      this.#nextRow += blocksPerSlice;
      return true;
    }
    if (this.#collection >= table.collections.length) return false;
    const collection = table.collections[this.#collection];
    if (collection !== undefined && this.#nextBlock < collection.extent) {
      collection.compact(this.#nextBlock, blocksPerSlice);
      this.#nextBlock += blocksPerSlice;
    } else {
      this.#collection++;
      this.#nextBlock = 0;
    }
    return true;
  }
}
