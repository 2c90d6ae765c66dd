// Walks the entries of an export (snapshot.ts) without an engine: the kind of each op and the
// position of its bytes. It keeps the state that later ops depend on: the number of fields of a
// shard's measurements.

import { type FieldType, fieldTypes } from '../../../universal-row/series/field-type.ts';
import type { CatalogState } from '../catalog.ts';
import { readState } from './change-codec.ts';
import { readRows, type EncodedRows } from './row-codec.ts';
import { Op, OpReader } from './op-codec.ts';

interface WalkedField {
  readonly name: string;
  readonly type: FieldType;
}

/** Some rows of one measurement in one shard, in memory of the walker. */
export interface WalkedRows extends EncodedRows {
  readonly shard: number;
  readonly measurement: string;
  /** By number, as the columns. */
  readonly fields: readonly WalkedField[];
}

/** Receives the contents of an export, in order. */
export interface ExportVisitor {
  state(state: CatalogState): void;
  /** The op is `buf[start, end)`; its shard's number is the u32 after the first byte. */
  rows(rows: WalkedRows, buf: Buffer, start: number, end: number): void;
  /** The number of a series in its shard, and its key in `buf`. Called before the rows that use it. */
  series?(shard: number, number: number, buf: Buffer, start: number, end: number): void;
}

interface Measurement {
  readonly name: string;
  readonly fields: WalkedField[];
}

export class ExportWalker {
  readonly #reader = new OpReader();
  /** Shards follow one another: state is kept for the current one only. */
  #shard = -1;
  #series = 0;
  #measurements: Measurement[] = [];

  /** One op a step. Throws `RangeError` for anything but an entry of an export. */
  *walk(entry: Buffer, visitor: ExportVisitor): Generator<void> {
    const reader = this.#reader;
    reader.begin(entry, 0, entry.length);
    while (reader.pos < reader.end) {
      const start = reader.pos;
      reader.scratch.clear();
      const code = reader.u8();
      if (code === Op.state) {
        this.#shard = -1;
        visitor.state(readState(reader));
      } else if (code === Op.rows) {
        const rows = this.#rows(reader, visitor);
        visitor.rows(rows, entry, start, reader.pos);
      } else reader.damaged(`op ${code} in an export`);
      yield;
    }
  }

  #rows(reader: OpReader, visitor: ExportVisitor): WalkedRows {
    const shard = reader.u32();
    if (shard !== this.#shard) {
      this.#shard = shard;
      this.#series = 0;
      this.#measurements = [];
    }
    const { name, fields } = this.#measurement(reader);
    this.#newSeries(reader, shard, visitor);
    const rows = readRows(reader, fields.length);
    for (let i = 0; i < rows.rows; i++) {
      if (rows.series[i]! >= this.#series) reader.damaged(`no series ${rows.series[i]}`);
    }
    return { ...rows, shard, measurement: name, fields };
  }

  #measurement(reader: OpReader): Measurement {
    const number = reader.u32();
    if (reader.u8() === 1) {
      const name = reader.text();
      if (number !== this.#measurements.length) {
        reader.damaged(`measurement ${number} is not the next one`);
      }
      this.#measurements.push({ name, fields: [] });
    }
    const measurement = this.#measurements[number];
    if (measurement === undefined) return reader.damaged(`no measurement ${number}`);
    for (let left = reader.u32(); left > 0; left--) {
      const field = reader.u32();
      const type = fieldTypes[reader.u8()];
      const name = reader.text();
      if (type === undefined) return reader.damaged('type of field');
      if (field !== measurement.fields.length) reader.damaged(`field ${field} is not the next one`);
      measurement.fields.push({ name, type });
    }
    return measurement;
  }

  #newSeries(reader: OpReader, shard: number, visitor: ExportVisitor): void {
    const count = reader.u32();
    if (count === 0) return;
    if (reader.u32() !== this.#series) reader.damaged('series are not the next ones');
    for (let i = 0; i < count; i++) {
      reader.u32();
      const length = reader.u32();
      const start = reader.skip(length);
      visitor.series?.(shard, this.#series, reader.buf, start, start + length);
      this.#series++;
    }
  }
}
