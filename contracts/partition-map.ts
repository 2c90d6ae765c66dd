// How a table of rows is divided into partitions: ranges of Redis slots, each of which is a table of an engine under a
// number of its own. A table that was never divided is one partition under the table's number.

import { slotCount } from '../universal-row/crc16.ts';

export interface Partition {
  /** Number of the engine's table. Never reused for another partition. */
  readonly number: number;
  /** First and last slot. */
  readonly first: number;
  readonly last: number;
  /** The engine that holds its rows. */
  readonly model: string;
  /** Whether the rows were copied from other partitions. */
  readonly isCopy?: boolean | undefined;
}

/** State of a partition in a cluster while partitions change. */
export const MarkState = {
  /** Of a target: rows are being copied to it. */
  filling: 1,
  /** Of a target: it has all rows, and is served. */
  whole: 2,
  /** Of a source: the last rows are being copied. */
  frozen: 3,
  /** Of a source: its targets have taken its place, permanently. */
  closed: 4,
  /** Of a source: this attempt and all earlier attempts are void and can never be decided. */
  void: 5,
} as const;
/** Mark of a partition that copies other partitions or is copied (storage-node/partition-marks.ts). */
export interface PartitionMark {
  readonly state: (typeof MarkState)[keyof typeof MarkState];
  readonly attempt: number;
  /** The first source of the change. */
  readonly home: number;
}

/** What the leader of a source asks the leader of another group while partitions change (storage-node/partition-marks.ts). */
export type PartitionQuestion =
  /**
   * Delivers rows for a target: one slice in base64. `slices` is the number of slices before it. With `key`, `ops`
   * replaces the row under that key.
   */
  | {
      readonly kind: 'fill';
      readonly target: number;
      readonly source: number;
      readonly attempt: number;
      readonly slices: number;
      readonly key?: string;
      readonly ops: string;
    }
  /** Answered once the target has `slices` slices and they are durable. */
  | {
      readonly kind: 'durable';
      readonly target: number;
      readonly source: number;
      readonly attempt: number;
      readonly slices: number;
    }
  /** Asks for the decision on the attempt, which is final from the answer on: `true` if its sources are closed. */
  | { readonly kind: 'decide'; readonly home: number; readonly attempt: number };

export interface PartitionMap {
  /** Counts the changes of the map; 1 as the table was made. */
  readonly epoch: number;
  /** In ascending order of slots. Every slot belongs to exactly one partition. */
  readonly partitions: readonly Partition[];
}

/** First number of partitions; numbers of tables are below it. */
export const firstPartition = 0x4000_0000;
/** End of the range of partition numbers. Engines use larger numbers for function libraries and restores. */
export const endOfPartitions = 0x7000_0000;
/** Limit of partitions of one table. */
export const mostPartitions = 1024;
export const lastSlot = slotCount - 1;

export function isPartition(number: number): boolean {
  return number >= firstPartition && number < endOfPartitions;
}

/** The map of a table that was never divided. */
export function undivided(table: number, model: string): PartitionMap {
  return { epoch: 1, partitions: [{ number: table, first: 0, last: lastSlot, model }] };
}

/** Ranges of nearly equal length: `[first, last]` of each. */
export function evenRanges(count: number, first = 0, last = lastSlot): [number, number][] {
  const slots = last - first + 1;
  return Array.from({ length: count }, (_, i) => [
    first + Math.floor((i * slots) / count),
    first + Math.floor(((i + 1) * slots) / count) - 1,
  ]);
}

/** Returns the error of a map, or undefined. */
export function partitionMapError({ partitions }: PartitionMap): string | undefined {
  if (partitions.length === 0 || partitions.length > mostPartitions) {
    return `a table has 1 to ${mostPartitions} partitions, not ${partitions.length}`;
  }
  let next = 0;
  for (const { number, first, last } of partitions) {
    if (first !== next || last < first) return `partition ${number} has slots ${first} to ${last}`;
    next = last + 1;
  }
  return next === slotCount ? undefined : `no partition has slot ${next}`;
}

/** The map in which `targets` have taken the place of the partitions numbered `sources`. */
export function replaced(
  { epoch, partitions }: PartitionMap,
  sources: readonly number[],
  targets: readonly Partition[],
): PartitionMap {
  const kept = partitions.filter(({ number }) => !sources.includes(number));
  return { epoch: epoch + 1, partitions: [...kept, ...targets].sort((a, b) => a.first - b.first) };
}

/** Position in the map of the partition of each slot. */
export function slotIndex({ partitions }: PartitionMap): Uint16Array {
  const index = new Uint16Array(slotCount);
  for (const [i, { first, last }] of partitions.entries()) index.fill(i, first, last + 1);
  return index;
}
