// Reads the ops of an entry in order, and calls the target for each.

import type { StoredBatch } from '../../series-engine.ts';
import type { CatalogState, EngineChange, ShardSpan } from '../catalog.ts';
import { readChange, readShard, readState, readStored } from './change-codec.ts';
import { Op, OpReader } from './op-codec.ts';

/** Receives the operations decoded from an entry. */
export interface EntryTarget {
  state(state: CatalogState): void;
  change(change: EngineChange): void;
  makeShard(span: ShardSpan): void;
  dropShard(shard: number): void;
  /** Reads the rest of the op itself: it has to know the shard for that. */
  rows(shard: number, reader: OpReader): void;
  deletePoints(shard: number, from: number, to: number, series: Uint32Array): void;
  removeSeries(shard: number, series: Uint32Array): void;
  /** The next numbers of the shard's series are those of series that were removed. */
  skipSeries(shard: number, measurement: number, count: number): void;
  readonly stored: ((batch: StoredBatch) => void) | undefined;
}

export class EntryReader {
  readonly #reader = new OpReader();

  read(buf: Buffer, start: number, end: number, target: EntryTarget): void {
    const reader = this.#reader;
    reader.begin(buf, start, end);
    while (reader.pos < end) {
      reader.scratch.clear();
      this.#readOp(reader, target);
    }
  }

  #readOp(reader: OpReader, target: EntryTarget): void {
    const code = reader.u8();
    switch (code) {
      case Op.state:
        return target.state(readState(reader));
      case Op.change:
        return target.change(readChange(reader));
      case Op.shard:
        return target.makeShard(readShard(reader));
      case Op.drop:
        return target.dropShard(reader.u32());
      case Op.rows:
        return target.rows(reader.u32(), reader);
      case Op.delete: {
        const shard = reader.u32();
        const from = reader.f64();
        const to = reader.f64();
        return target.deletePoints(shard, from, to, reader.series());
      }
      case Op.remove: {
        const shard = reader.u32();
        return target.removeSeries(shard, reader.series());
      }
      case Op.gone:
        return target.skipSeries(reader.u32(), reader.u32(), reader.u32());
      case Op.stored: {
        const batch = readStored(reader);
        return target.stored?.(batch);
      }
      default:
        return reader.damaged(`unknown op ${code}`);
    }
  }
}
