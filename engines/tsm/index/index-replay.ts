// Reads the records of an index file back into an index.

import { fieldTypes } from '../../../universal-row/series/field-type.ts';
import { BadRecordError, Op, RecordReader } from './index-records.ts';
import type { IndexState } from './index-state.ts';
import type { KeyShape } from './measurement-index.ts';

export class IndexReplay {
  readonly #state: IndexState;
  readonly #reader = new RecordReader();
  readonly #values: number[] = [];

  constructor(state: IndexState) {
    this.#state = state;
  }

  /** Throws `BadRecordError` where something is said that cannot be. */
  apply(buf: Buffer, start: number, end: number): void {
    const reader = this.#reader;
    reader.reset(buf, start, end);
    while (!reader.atEnd) this.#applyOne(reader.u8());
  }

  #applyOne(op: number): void {
    const reader = this.#reader;
    const state = this.#state;
    switch (op) {
      case Op.series:
        this.#series();
        break;
      case Op.measurement:
        reader.run();
        state.addMeasurement(reader.buf, reader.runStart, reader.pos);
        break;
      case Op.field: {
        const measurement = known(state.measurements, reader.varint());
        const type = known(fieldTypes, reader.u8());
        reader.run();
        measurement.addField(reader.buf.toString('utf8', reader.runStart, reader.pos), type);
        break;
      }
      case Op.tag: {
        const measurement = known(state.measurements, reader.varint());
        reader.run();
        measurement.addTag(reader.buf, reader.runStart, reader.pos);
        break;
      }
      case Op.shape: {
        const parent = known(state.rows.shapes, reader.varint());
        state.addShape(parent, known(parent.measurement.tags, reader.varint()));
        break;
      }
      case Op.removed: {
        const series = reader.varint();
        if (series >= state.rows.count || state.rows.isRemoved(series)) {
          throw new BadRecordError(`there is no series ${series}`);
        }
        state.removeSeries(series);
        break;
      }
      case Op.gone: {
        const measurement = known(state.measurements, reader.varint());
        state.skipSeries(measurement, reader.varint());
        break;
      }
      default:
        throw new BadRecordError(`unknown record ${op}`);
    }
  }

  #series(): void {
    const reader = this.#reader;
    const shape: KeyShape = known(this.#state.rows.shapes, reader.varint());
    // Its hash, by `hashKey`: the table goes by another.
    reader.u32();
    const tags = shape.tags;
    const values = this.#values;
    for (let i = 0; i < tags.length; i++) {
      const dictionary = tags[i]!.values;
      let value = reader.varint();
      if (value === 0) {
        reader.run();
        value = dictionary.intern(reader.buf, reader.runStart, reader.pos);
      } else if (value > dictionary.count) throw new BadRecordError(`no such value ${value}`);
      values[i] = value;
    }
    this.#state.restoreSeries(shape, values);
  }
}

function known<T>(things: readonly T[], number: number): T {
  const thing = things[number];
  if (thing === undefined) throw new BadRecordError(`a number is too high: ${number}`);
  return thing;
}
