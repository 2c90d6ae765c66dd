// All rows of a LevelDB snapshot as record batches.

import { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import { Shape } from '../../universal-row/rows.ts';
import {
  fieldHeaderBytes,
  hashKeyBytes,
  metaPrefix,
  Part,
  partEnd,
  prefixEnd,
  recordHeaderBytes,
  subPrefix,
} from './key-layout.ts';
import type { LevelSnapshot, LevelStore, Page } from './level-store.ts';
import { type RowForm, decodeRow, emptyRow, hasState } from './record.ts';

const batchBytes = 512 * 1024;
const pageRecords = 4096;
const pageBytes = 1024 * 1024;

/** One table of the snapshot. */
export interface ExportedTable {
  table: number;
  generation: number;
}

interface Entry {
  key: Buffer;
  value: Buffer;
}

export class SnapshotReader {
  readonly #level: LevelStore;
  readonly #snapshot: LevelSnapshot;
  readonly #writer = new RecordBatchWriter();

  constructor(level: LevelStore, snapshot: LevelSnapshot) {
    this.#level = level;
    this.#snapshot = snapshot;
  }

  async *batches(tables: readonly ExportedTable[]): AsyncGenerator<Buffer> {
    for (const { table, generation } of tables) {
      const prefix = metaPrefix(generation);
      for await (const { key, value } of this.#entries(prefix, prefixEnd(prefix))) {
        const keyStart = prefix.length + hashKeyBytes;
        yield* this.#row(table, key, keyStart, value);
      }
    }
    yield* this.#flush(batchBytes);
  }

  async *#row(table: number, key: Buffer, keyStart: number, meta: Buffer): AsyncGenerator<Buffer> {
    const writer = this.#writer;
    const keyLength = key.length - keyStart;
    const row: RowForm = { ...emptyRow };
    decodeRow(row, meta);
    if (row.shape === Shape.value) {
      yield* this.#flush(keyLength + row.count);
      const { value, valueStart, count, expireAt } = row;
      writer.value(table, key, keyStart, keyLength, value, valueStart, count, expireAt);
      return;
    }
    yield* this.#flush(keyLength);
    writer.row(table, key, keyStart, keyLength);
    writer.create(row.shape);
    if (row.expireAt !== 0) writer.expire(row.expireAt);
    if (hasState(row.shape)) writer.streamState(row.value, 0, row.value.length);
    const prefix = subPrefix(row.number);
    const part = partOf[row.shape];
    const from = Buffer.concat([prefix, Buffer.from(part)]);
    const to = Buffer.concat([prefix, Buffer.from(partEnd[part])]);
    for await (const { key: subKey, value } of this.#entries(from, to)) {
      if (writer.pos + subKey.length + value.length > batchBytes) {
        yield* this.#flush(batchBytes);
        writer.row(table, key, keyStart, keyLength);
      }
      const header = part === Part.record ? recordHeaderBytes : fieldHeaderBytes;
      const start = prefix.length + header;
      const length = subKey.length - start;
      if (part === Part.element) writer.push(false, value, 0, value.length);
      else if (part === Part.member) writer.score(value.readDoubleBE(0), subKey, start, length);
      else if (part === Part.record) {
        writer.streamRecord(true, subKey, start, length, value, 0, value.length);
      } else writer.field(subKey, start, length, value, 0, value.length);
    }
  }

  /** Emits the buffered bytes unless `more` bytes still fit. */
  *#flush(more: number): Generator<Buffer> {
    const writer = this.#writer;
    if (writer.pos === 0 || writer.pos + more + 64 < batchBytes) return;
    const batch = writer.buf.subarray(0, writer.pos);
    writer.pos = 0;
    yield batch;
  }

  async *#entries(from: Buffer, to: Buffer): AsyncGenerator<Entry> {
    let at = from;
    for (;;) {
      const page: Page = await this.#level.page(
        at,
        to,
        false,
        pageRecords,
        pageBytes,
        this.#snapshot,
      );
      for (let i = 0; i < page.keys.length; i++) {
        yield { key: page.keys[i]!, value: page.values[i]! };
      }
      const last = page.keys[page.keys.length - 1];
      if (page.ended || last === undefined) return;
      at = Buffer.concat([last, Buffer.alloc(1)]);
    }
  }
}

const partOf: Record<Shape, 'f' | 'z' | 'e' | 'r'> = {
  [Shape.none]: Part.field,
  [Shape.value]: Part.field,
  [Shape.map]: Part.field,
  [Shape.set]: Part.field,
  [Shape.ranked]: Part.member,
  [Shape.array]: Part.element,
  [Shape.stream]: Part.record,
  [Shape.timed]: Part.record,
};
