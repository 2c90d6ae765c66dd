// Entries of exports as entries of this engine's log: databases under other names, shards under new numbers.
// Series keep the numbers they have in the export, for a new shard has none.

import type { RecordBatchWriter } from '../../../universal-row/record-batch.ts';
import { type SeriesImporter, ShardGoneError } from '../../series-engine.ts';
import type { CatalogState, EngineChange } from '../catalog.ts';
import { putChange, putShard } from './change-codec.ts';
import { ExportWalker } from './export-walker.ts';

interface ImportTarget {
  /** The first number that no shard of the engine ever had. */
  nextShard(): number;
  has(shard: number): boolean;
}

export class ExportImporter implements SeriesImporter {
  readonly #rename: (database: string) => string | undefined;
  readonly #target: ImportTarget;
  readonly #walker = new ExportWalker();
  /** The new number of each shard of the first export. */
  #numbers: Map<number, number> | undefined;

  constructor(rename: (database: string) => string | undefined, target: ImportTarget) {
    this.#rename = rename;
    this.#target = target;
  }

  /** Throws `ShardGoneError` where what was made for the import was dropped meanwhile. */
  *put(entry: Buffer, wants: (shard: number) => boolean, into: RecordBatchWriter): Generator<void> {
    yield* this.#walker.walk(entry, {
      state: (state) => {
        if (this.#numbers === undefined) this.#putState(state, into);
      },
      rows: ({ shard }, buf, start, end) => {
        const number = wants(shard) ? this.#numbers?.get(shard) : undefined;
        if (number === undefined) return;
        if (!this.#target.has(number)) throw new ShardGoneError();
        into.reserve(end - start);
        const at = into.pos;
        buf.copy(into.buf, at, start, end);
        into.buf.writeUInt32LE(number, at + 1);
        into.pos = at + end - start;
      },
    });
  }

  #putState(state: CatalogState, into: RecordBatchWriter): void {
    const names = new Map<string, string>();
    for (const saved of state.databases) {
      const database = this.#rename(saved.name);
      if (database === undefined) continue;
      names.set(saved.name, database);
      const change: EngineChange = { kind: 'adoptDatabase', database, saved };
      putChange(into, change);
    }
    const numbers = new Map<number, number>();
    let number = this.#target.nextShard();
    for (const span of state.shards) {
      const database = names.get(span.database);
      if (database === undefined) continue;
      numbers.set(span.number, number);
      putShard(into, { ...span, number, database });
      number++;
    }
    this.#numbers = numbers;
  }
}
