// Files of segments. A new one begins with a header, and the table of the log's groups.

import type { Disk, DiskFile } from '../../../universal-row/environment.ts';
import {
  FrameKind,
  frameHeaderBytes,
  type LogIdentity,
  paddedLength,
  putFrameHeader,
  putSegmentHeader,
  sealFrame,
  segmentHeaderBytes,
  segmentName,
} from './format.ts';
import { isDiskFull } from './log-errors.ts';
import type { Segment } from './segment.ts';
import { type LogTable, putTable, tableBytes } from './table.ts';

interface NewSegment {
  identity: LogIdentity;
  number: number;
  baseLsn: number;
  durableLsn: number;
  table: LogTable;
}

/**
 * Creates a segment under its temporary name. Nothing waits for the disk. Undefined when there is no file descriptor to
 * be had.
 */
export function createSegment(
  disk: Disk,
  directory: string,
  made: NewSegment,
): Segment | undefined {
  const { identity, number, baseLsn, durableLsn, table } = made;
  const { groups } = table;
  const frameLength = frameHeaderBytes + tableBytes(table);
  const openingBytes = segmentHeaderBytes + paddedLength(frameLength);
  const b = Buffer.alloc(openingBytes);
  putSegmentHeader(b, { ...identity, number, baseLsn });
  const frame = b.subarray(segmentHeaderBytes);
  putTable(frame, frameHeaderBytes, table);
  putFrameHeader(frame, frameLength, FrameKind.table, 0, groups.length, 0, 0, 0);
  sealFrame(frame, number, durableLsn);

  const path = `${directory}/${segmentName(number, false)}`;
  let file: DiskFile | undefined;
  try {
    file = disk.open(path, 'create');
    file.write(b, 0, openingBytes, 0);
  } catch (error) {
    file?.close();
    if (disk.exists(path)) disk.remove(path);
    if (isOutOfFiles(error)) return undefined;
    throw error;
  }
  return {
    number,
    baseLsn,
    size: openingBytes,
    named: false,
    nameSynced: false,
    hasUnsyncedCut: false,
    openingBytes,
    firstIndexes: new Map(groups.map((g) => [g.group, g.lastIndex + 1])),
    file,
  };
}

/** Throws when the file ends before. */
export function readSegment(disk: Disk, path: string, offset: number, length: number): Buffer {
  const file = disk.open(path, 'read');
  try {
    const b = Buffer.allocUnsafe(length);
    if (file.read(b, 0, length, offset) < length) {
      throw new Error(`${path} ends before ${offset + length}`);
    }
    return b;
  } finally {
    file.close();
  }
}

/** False when the disk is full. */
export function writtenUnlessFull(
  file: DiskFile,
  b: Buffer,
  length: number,
  position: number,
): boolean {
  try {
    file.write(b, 0, length, position);
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    return false;
  }
  return true;
}

function isOutOfFiles(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code === 'EMFILE' || code === 'ENFILE';
}
