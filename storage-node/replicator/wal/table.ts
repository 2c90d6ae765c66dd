// The body of a TABLE frame: the state of deleted segments that recovery needs.
//
//   table = incarnation u64 | groups u32 | 0 u32 | group*
//   group = group u64 | term u64 | vote u64 | commit u64 | last index u64 | checkpoint index u64
//           | oldest segment still needed u64 | 0 u32 | configuration length u32
//           | configuration | zeros to a multiple of 8

import { getU32, getU64, paddedLength, putU32, putU64 } from './format.ts';

export interface GroupState {
  group: number;
  term: number;
  vote: number;
  commit: number;
  lastIndex: number;
  /** An engine holds everything up to here durably: the log needs entries after it only. */
  checkpointIndex: number;
  oldestSegment: number;
  configuration: Uint8Array;
}

export interface LogTable {
  incarnation: number;
  groups: readonly GroupState[];
}

const tableHeaderBytes = 16;
const groupBytes = 64;

export function newGroupState(group: number): GroupState {
  return {
    group,
    term: 1,
    vote: 0,
    commit: 0,
    lastIndex: 0,
    checkpointIndex: 0,
    oldestSegment: 0,
    configuration: new Uint8Array(0),
  };
}

/**
 * Marks a replica as removed: its log is useless, and neither it nor an earlier one returns. Later
 * tables keep the mark.
 */
export function bury(state: GroupState, replica: number): GroupState {
  const { lastIndex } = state;
  const configuration = new Uint8Array(0);
  return Object.assign(state, { vote: replica, checkpointIndex: lastIndex, configuration });
}

/** The replica that was removed, where the log has none of the group since; else 0. */
export function buriedReplica({ vote, configuration }: GroupState): number {
  return configuration.length === 0 ? vote : 0;
}

export function tableBytes(table: LogTable): number {
  let n = tableHeaderBytes;
  for (const g of table.groups) n += groupBytes + paddedLength(g.configuration.length);
  return n;
}

export function putTable(b: Buffer, start: number, table: LogTable): void {
  b.fill(0, start, start + tableBytes(table));
  putU64(b, start, table.incarnation);
  putU32(b, start + 8, table.groups.length);
  let p = start + tableHeaderBytes;
  for (const g of table.groups) {
    putU64(b, p, g.group);
    putU64(b, p + 8, g.term);
    putU64(b, p + 16, g.vote);
    putU64(b, p + 24, g.commit);
    putU64(b, p + 32, g.lastIndex);
    putU64(b, p + 40, g.checkpointIndex);
    putU64(b, p + 48, g.oldestSegment);
    putU32(b, p + 60, g.configuration.length);
    b.set(g.configuration, p + groupBytes);
    p += groupBytes + paddedLength(g.configuration.length);
  }
}

/** Reads a table whose checksum was right: only a bug of ours makes one that ends early. */
export function getTable(b: Buffer, start: number, end: number): LogTable {
  const groups: GroupState[] = [];
  let p = start + tableHeaderBytes;
  for (let left = getU32(b, start + 8); left > 0; left--) {
    const configurationBytes = getU32(b, p + 60);
    const next = p + groupBytes + paddedLength(configurationBytes);
    if (next > end) throw new RangeError('table frame: cut short');
    groups.push({
      group: getU64(b, p),
      term: getU64(b, p + 8),
      vote: getU64(b, p + 16),
      commit: getU64(b, p + 24),
      lastIndex: getU64(b, p + 32),
      checkpointIndex: getU64(b, p + 40),
      oldestSegment: getU64(b, p + 48),
      configuration: Uint8Array.from(
        b.subarray(p + groupBytes, p + groupBytes + configurationBytes),
      ),
    });
    p = next;
  }
  return { incarnation: getU64(b, start), groups };
}
