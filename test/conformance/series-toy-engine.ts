// The simplest engine of time series that conforms: points in maps, words in JSON, everything looked at
// again for each answer. It shows what the contract asks for, tries the kit, and is what random operations
// on other engines are compared with.

import type { SeriesEngine, SeriesEngineStats } from '../../engines/series-engine.ts';
import type { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import type { Column, SeriesRows } from '../../universal-row/series/column.ts';
import type { FieldType } from '../../universal-row/series/field-type.ts';
import type { PointBatch } from '../../universal-row/series/point-batch.ts';
import { compareText, decodeSeriesKey } from '../../universal-row/series/series-key.ts';
import {
  SeriesError,
  type CatalogChange,
  type Database,
  type FieldKey,
  type RetentionPolicyChange,
  type ScanRequest,
  type SeriesFilter,
  type SeriesScan,
  type SeriesSelection,
  type WriteOutcome,
} from '../../universal-row/series/series-store.ts';
import {
  decodeText,
  encodeText,
  pointsOf,
  type ToyPoint,
  type ToyValue,
} from './series-toy-words.ts';

const second = 1_000_000_000n;
const hour = 3600n * second;
const day = 24n * hour;

interface ToySeries {
  key: string;
  measurement: string;
  tags: Map<string, string>;
  rows: Map<bigint, Map<string, ToyValue>>;
}

interface ToyShard {
  start: bigint;
  end: bigint;
  /** By measurement. */
  fields: Map<string, Map<string, FieldType>>;
  series: Map<string, ToySeries>;
}

interface ToyPolicy {
  name: string;
  duration: bigint;
  shardGroupDuration: bigint;
  replicaN: number;
  shards: ToyShard[];
}

interface ToyDatabase {
  name: string;
  policies: ToyPolicy[];
  standard: string;
}
