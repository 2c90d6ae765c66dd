// A segment of the log in memory, and which groups still need which segments.

import type { DiskFile } from '../../../universal-row/environment.ts';
import { segmentName } from './format.ts';
import type { GroupState } from './table.ts';

export interface Segment {
  number: number;
  baseLsn: number;
  size: number;
  /** Whether it has its final name, and whether that is sure to survive a power cut. */
  named: boolean;
  nameSynced: boolean;
  /** Bytes that were written in part to a full disk were cut off its end; a power cut may bring them back. */
  hasUnsyncedCut: boolean;
  /** Header and table: where the other frames begin. */
  openingBytes: number;
  /** By group: the index of its first entry in this segment or a later one. */
  firstIndexes: Map<number, number>;
  /** Open while it is written to or not synced yet. */
  file: DiskFile | undefined;
}

export function segmentPath(directory: string, { number, named }: Segment): string {
  return `${directory}/${segmentName(number, named)}`;
}

/** Number of the first segment with an entry of the group that is still needed. */
export function oldestNeeded(segments: readonly Segment[], group: GroupState): number | undefined {
  const needed = group.checkpointIndex + 1;
  // A later leader may have replaced entries. The log may then end before the range that a segment records.
  if (needed > group.lastIndex) return undefined;
  for (const [i, segment] of segments.entries()) {
    const end = segments[i + 1]?.firstIndexes.get(group.group) ?? group.lastIndex + 1;
    if (needed < end) return segment.number;
  }
  return undefined;
}

/** Whether the oldest segment has an entry that some group needs. */
export function isOldestNeeded(
  segments: readonly Segment[],
  groups: Iterable<GroupState>,
): boolean {
  for (const group of groups) {
    if (oldestNeeded(segments, group) === segments[0]!.number) return true;
  }
  return false;
}

/** Groups whose entries keep the oldest of several segments. */
export function pinningGroups(
  segments: readonly Segment[],
  groups: Iterable<GroupState>,
): number[] {
  if (segments.length < 2) return [];
  const oldest = segments[0]!.number;
  const pinning: number[] = [];
  for (const group of groups) {
    if (oldestNeeded(segments, group) === oldest) pinning.push(group.group);
  }
  return pinning;
}

/** Segments that may hold entries of the group after an index, ascending. */
export function segmentsAfter(
  segments: readonly Segment[],
  group: GroupState,
  after: number,
): Segment[] {
  const next = (i: number): number =>
    segments[i]?.firstIndexes.get(group.group) ?? group.lastIndex + 1;
  return segments.filter((_, i) => i === segments.length - 1 || next(i + 1) > after + 1);
}
