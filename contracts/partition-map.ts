// How a table of rows is divided into partitions: ranges of Redis slots, each of which is a table of an engine under a
// number of its own. A table that was never divided is one partition under the table's number.

import { slotCount } from '../universal-row/crc16.ts';

export interface Partition {
  /** Of the engine's table. Never used again for another partition. */
  readonly number: number;
  /** First and last slot. */
  readonly first: number;
  readonly last: number;
  /** The engine that holds its rows. */
  readonly model: string;
}

export interface PartitionMap {
  /** Counts the changes of the map; 1 as the table was made. */
  readonly epoch: number;
  /** By ascending slots; every slot is in one of them. */
  readonly partitions: readonly Partition[];
}

/** Numbers of partitions begin here; those of tables are below it. */
export const firstPartition = 0x4000_0000;
/** Numbers of partitions are below it; engines use those from here on for function libraries and restores. */
export const endOfPartitions = 0x7000_0000;
/** Partitions of one table at most. */
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

/** Says what is wrong with a map, or undefined. */
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
