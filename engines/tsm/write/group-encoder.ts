// The ops for the rows of a group that go to one shard.

import type { RecordBatchWriter } from '../../../universal-row/record-batch.ts';
import type {
  PointBatch,
  PointColumn,
  PointGroup,
} from '../../../universal-row/series/point-batch.ts';
import { hashKey } from '../../../universal-row/series/series-key.ts';
import type { FieldInfo } from '../parts.ts';
import { putShard } from '../ops/change-codec.ts';
import {
  putColumn,
  putNewField,
  putSeriesNumbers,
  putStrings,
  putTimes,
} from '../ops/row-codec.ts';
import type { Scratch } from '../ops/scratch.ts';
import { Op, putText, putU32, putU8 } from '../ops/op-codec.ts';
import type { ShardDraft } from './shard-draft.ts';

/** The rows of a group that go to one shard: `selected`, or the first `count` when that is undefined. */
export interface SelectedRows {
  count: number;
  selected: Uint32Array | undefined;
}

export class GroupEncoder {
  readonly #batch: PointBatch;
  readonly #scratch: Scratch;
  readonly #into: RecordBatchWriter;

  constructor(batch: PointBatch, scratch: Scratch, into: RecordBatchWriter) {
    this.#batch = batch;
    this.#scratch = scratch;
    this.#into = into;
  }

  /** `series` by row; `added` are the handles of the new ones. */
  put(
    draft: ShardDraft,
    group: PointGroup,
    measurement: number,
    isNew: boolean,
    added: readonly number[],
    rows: SelectedRows,
    series: Uint32Array,
  ): void {
    const into = this.#into;
    const scratch = this.#scratch;
    const { count, selected } = rows;
    if (!draft.isKnown) putShard(into, draft.span);
    draft.isKnown = true;
    putU8(into, Op.rows);
    putU32(into, draft.span.number);
    putU32(into, measurement);
    putU8(into, isNew ? 1 : 0);
    if (isNew) putText(into, group.measurement);
    const fields = this.#putFields(draft, group, measurement, rows);
    this.#putNewSeries(draft, added);
    putU32(into, count);
    putSeriesNumbers(into, scratch, series, count, draft.seriesCount);
    putTimes(into, scratch, this.#shardTimes(draft, group.times, rows), count);
    const columnsAt = into.pos;
    putU32(into, 0);
    let columns = 0;
    const strings: PointColumn[] = [];
    for (const [i, column] of group.columns.entries()) {
      const field = fields[i];
      if (field === undefined) continue;
      const values = putColumn(into, scratch, field.number, column, count, selected, this.#batch);
      if (values === 0) continue;
      columns++;
      if (column.type === 'string') strings.push(column);
    }
    into.buf.writeUInt32LE(columns, columnsAt);
    const textAt = into.pos;
    putU32(into, 0);
    for (const column of strings) putStrings(into, column, count, selected, this.#batch);
    into.buf.writeUInt32LE(into.pos - textAt - 4, textAt);
  }

  /** By column: its field; undefined where no row has it. */
  #putFields(
    draft: ShardDraft,
    group: PointGroup,
    measurement: number,
    rows: SelectedRows,
  ): (FieldInfo | undefined)[] {
    const into = this.#into;
    const countAt = into.pos;
    putU32(into, 0);
    let added = 0;
    const fields = group.columns.map((column) => {
      const { field: name, type } = column;
      const known = draft.findField(measurement, name);
      if (known !== undefined) return known.type === type ? known : undefined;
      if (!hasValues(column, rows)) return undefined;
      const field = draft.addField(measurement, name, type);
      putNewField(into, field.number, type, name);
      added++;
      return field;
    });
    into.buf.writeUInt32LE(added, countAt);
    return fields;
  }

  #putNewSeries(draft: ShardDraft, added: readonly number[]): void {
    const into = this.#into;
    const { cache } = this.#batch;
    putU32(into, added.length);
    if (added.length === 0) return;
    putU32(into, draft.seriesCount - added.length);
    for (const handle of added) {
      const start = cache.keyStart(handle);
      const length = cache.keyEnd(handle) - start;
      const keys = cache.keys(handle);
      putU32(into, hashKey(keys, start, start + length));
      putU32(into, length);
      into.reserve(length);
      keys.copy(into.buf, into.pos, start, start + length);
      into.pos += length;
    }
  }

  #shardTimes(draft: ShardDraft, times: Float64Array, rows: SelectedRows): Float64Array {
    const { delta } = draft;
    const { count, selected } = rows;
    if (delta === 0 && selected === undefined) return times;
    const shifted = this.#scratch.f64(count);
    if (selected === undefined) {
      for (let i = 0; i < count; i++) shifted[i] = times[i]! + delta;
    } else {
      for (let i = 0; i < count; i++) shifted[i] = times[selected[i]!]! + delta;
    }
    return shifted;
  }
}

/** Whether one of the rows has the column. */
export function hasValues(column: PointColumn, { count, selected }: SelectedRows): boolean {
  const { present } = column;
  if (column.count === 0) return false;
  if (present === undefined || selected === undefined) return true;
  for (let i = 0; i < count; i++) if (present[selected[i]!] === 1) return true;
  return false;
}
