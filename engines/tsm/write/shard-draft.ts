// Changes that a batch will make to a shard: its state after the encoded operations are applied, as
// an overlay over the current shard, which may not exist yet.

import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type { ShardSpan } from '../catalog.ts';
import type { FieldInfo, SeriesIndex } from '../parts.ts';
import type { HandleNumbers } from './handle-numbers.ts';

/** The draft's state of a measurement beyond the index. */
interface MeasurementDraft {
  /** Number of fields before, which are in the index. */
  readonly indexed: number;
  /** New ones, by name. */
  readonly fields: Map<string, FieldInfo>;
  newSeries: number;
}

export class ShardDraft {
  readonly span: ShardSpan;
  /** Undefined for a shard that is yet to be made. */
  readonly index: SeriesIndex | undefined;
  readonly handles: HandleNumbers;
  /**
   * Bounds of the shard in the batch's time, `last` inclusive, and the base of the shard's times.
   */
  first = 0;
  last = 0;
  delta = 0;
  /** The shard is there, or the ops say that it is to be made. */
  isKnown: boolean;
  /** The next series' number. */
  seriesCount: number;
  /** Handles of new series; their numbers are undone if the batch is discarded. */
  readonly newHandles: number[] = [];
  #measurementCount: number;
  readonly #newMeasurements = new Map<string, number>();
  readonly #measurements = new Map<number, MeasurementDraft>();

  constructor(
    span: ShardSpan,
    index: SeriesIndex | undefined,
    handles: HandleNumbers,
    baseSeconds: number,
  ) {
    this.span = span;
    this.index = index;
    this.handles = handles;
    this.begin(baseSeconds);
    this.isKnown = index !== undefined;
    this.seriesCount = index?.seriesCount ?? 0;
    this.#measurementCount = index?.measurementCount ?? 0;
  }

  /** A batch begins. */
  begin(baseSeconds: number): void {
    const { startSeconds, seconds } = this.span;
    this.first = (startSeconds - baseSeconds) * 1e9;
    this.last = this.first + (seconds * 1e9 - 1);
    this.delta = -this.first;
  }

  /** -1 when it is new. */
  findMeasurement(name: string): number {
    const found = this.index?.findMeasurement(name) ?? -1;
    return found >= 0 ? found : (this.#newMeasurements.get(name) ?? -1);
  }

  addMeasurement(name: string): number {
    this.#newMeasurements.set(name, this.#measurementCount);
    return this.#measurementCount++;
  }

  /** The measurement may be -1. */
  findField(measurement: number, name: string): FieldInfo | undefined {
    if (measurement < 0) return undefined;
    return (
      (this.#isIndexed(measurement) ? this.index!.findField(measurement, name) : undefined) ??
      this.#measurements.get(measurement)?.fields.get(name)
    );
  }

  addField(measurement: number, name: string, type: FieldType): FieldInfo {
    const { indexed, fields } = this.#draftOf(measurement);
    const field = { number: indexed + fields.size, name, type };
    fields.set(name, field);
    return field;
  }

  countNewSeries(measurement: number, count: number): void {
    if (count > 0) this.#draftOf(measurement).newSeries += count;
  }

  /** Series of the measurement, new ones included. */
  seriesOf(measurement: number): number {
    if (measurement < 0) return 0;
    const indexed = this.#isIndexed(measurement) ? this.index!.liveSeriesOf(measurement) : 0;
    return indexed + (this.#measurements.get(measurement)?.newSeries ?? 0);
  }

  #isIndexed(measurement: number): boolean {
    return this.index !== undefined && measurement < this.index.measurementCount;
  }

  #draftOf(measurement: number): MeasurementDraft {
    let draft = this.#measurements.get(measurement);
    if (draft === undefined) {
      const indexed = this.#isIndexed(measurement) ? this.index!.fields(measurement).length : 0;
      draft = { indexed, fields: new Map(), newSeries: 0 };
      this.#measurements.set(measurement, draft);
    }
    return draft;
  }
}
