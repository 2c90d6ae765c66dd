// All rows of an engine as record batches, as of the moment this is made.

import { DumpWriter } from './dump-writer.ts';
import type { MemoryTable } from './memory-table.ts';
import type { Reclaimer } from './reclaimer.ts';
import { TableDump } from './table-dump.ts';
import type { Dump } from './table-dump.ts';

export class SnapshotExport implements AsyncIterableIterator<Buffer> {
  readonly #out = new DumpWriter();
  /** What is to be dumped: the large rows found so far, then the tables. */
  readonly #dumps: Dump[] = [];
  readonly #onEnd: () => void;
  #ended = false;

  constructor(
    tables: Iterable<readonly [number, MemoryTable]>,
    reclaimer: Reclaimer,
    onEnd: () => void,
  ) {
    this.#onEnd = onEnd;
    for (const [number, table] of tables) {
      if (table.rowCount() === 0) continue;
      this.#dumps.push(
        new TableDump(number, table, this.#out, reclaimer, (dump) => this.#dumps.push(dump)),
      );
    }
  }

  async next(): Promise<IteratorResult<Buffer, undefined>> {
    // A tick of the event loop between batches, however fast they are asked for.
    await new Promise((resolve) => setImmediate(resolve));
    for (;;) {
      const batch = this.#out.take();
      if (batch !== undefined) return { done: false, value: batch };
      const dump = this.#dumps.at(-1);
      if (dump === undefined) {
        if (this.#ended) return { done: true, value: undefined };
        this.#out.flush();
        this.#end();
      } else if (!dump.step() && this.#dumps.at(-1) === dump) {
        this.#dumps.pop();
        dump.end();
      }
    }
  }

  /** Abandons the export. From here on it adds no work to writes. */
  return(): Promise<IteratorResult<Buffer, undefined>> {
    for (const dump of this.#dumps) dump.end();
    this.#dumps.length = 0;
    this.#end();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#onEnd();
  }
}
