// Applies an op of rows to its shard: first new series and fields to the index, then the rows to
// the head. Series and fields that the index has already were made durable before a crash, and are
// skipped.

import { fieldTypes } from '../../../universal-row/series/field-type.ts';
import type { SeriesIndex } from '../parts.ts';
import type { Shard } from '../shard/shard.ts';
import { readRows } from './row-codec.ts';
import type { OpReader } from './op-codec.ts';

/** Returns how many series were added. Without `keepsRows` they are only read. */
export function applyRows(reader: OpReader, shard: Shard, keepsRows: boolean): number {
  const { index } = shard;
  const measurement = readMeasurement(reader, index);
  readFields(reader, index, measurement);
  const added = readNewSeries(reader, index);
  const { rows, series, times, columns, texts } = readRows(
    reader,
    index.fields(measurement).length,
  );
  for (let i = 0; i < rows; i++) {
    if (series[i]! >= index.seriesCount) reader.damaged(`no series ${series[i]}`);
  }
  if (keepsRows) shard.append(measurement, rows, series, times, columns, texts);
  return added;
}

function readMeasurement(reader: OpReader, index: SeriesIndex): number {
  const measurement = reader.u32();
  if (reader.u8() === 1) {
    const name = reader.text();
    if (measurement >= index.measurementCount && index.addMeasurement(name) !== measurement) {
      reader.damaged(`measurement ${measurement} is not the next one`);
    }
  }
  if (measurement >= index.measurementCount) reader.damaged(`no measurement ${measurement}`);
  return measurement;
}

function readFields(reader: OpReader, index: SeriesIndex, measurement: number): void {
  for (let left = reader.u32(); left > 0; left--) {
    const number = reader.u32();
    const type = fieldTypes[reader.u8()];
    const name = reader.text();
    if (type === undefined) return reader.damaged('type of field');
    if (number < index.fields(measurement).length) continue;
    if (index.addField(measurement, name, type).number !== number) {
      reader.damaged(`field ${number} is not the next one`);
    }
  }
}

function readNewSeries(reader: OpReader, index: SeriesIndex): number {
  const count = reader.u32();
  if (count === 0) return 0;
  const first = reader.u32();
  let added = 0;
  for (let number = first; number < first + count; number++) {
    // Its hash, by `hashKey`: the index makes its own.
    reader.u32();
    const length = reader.u32();
    const start = reader.skip(length);
    if (number < index.seriesCount) continue;
    if (index.addSeries(reader.buf, start, start + length) !== number) {
      reader.damaged(`series ${number} is not the next one`);
    }
    added++;
  }
  return added;
}
