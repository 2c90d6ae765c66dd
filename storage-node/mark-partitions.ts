// Entries of a group's log about its marks (partition-marks.ts), and rows for partitions that are being filled.

import { MarkState, type PartitionMark } from '../contracts/partition-map.ts';
import { WireWriter } from '../universal-row/protocol/wire.ts';
import { RecordBatchWriter } from '../universal-row/record-batch.ts';
import { applySlice } from './apply-slice.ts';
import { isShut, putMarkRow, slicesKey } from './partition-marks.ts';
import type { Pod } from './pod.ts';

/** `may` is asked in the instant of the change, and throws where it must not be made; false where the mark is set already. */
type MayMark = (old: PartitionMark | undefined) => boolean;

/**
 * Sets the mark of a partition in its group's log, and removes all rows of the partition with it if `isCleared`. Resolves
 * once that is committed; rejects if that is not known.
 */
export async function setMark(
  pod: Pod,
  number: number,
  mark: PartitionMark,
  may: MayMark,
  isCleared = false,
): Promise<void> {
  const key = new WireWriter(8);
  key.varint(number);
  const writer = new RecordBatchWriter();
  if (isCleared) writer.clear(number);
  putMarkRow(writer, Buffer.from(key.view()), [mark.state, mark.attempt, mark.home]);
  const marks = pod.marks!;
  await applySlice(pod, writer.buf.subarray(0, writer.pos), {
    may: () => may(marks.get(number)),
    done: () => {
      marks.changed();
      if (isShut(mark)) pod.rowsMoved();
    },
  });
  await pod.durable();
}

/** Writes rows to a target that has `slices` slices of the source: the next slice. */
export async function fillPartition(
  pod: Pod,
  to: { target: number; source: number; attempt: number; slices: number },
  slice: Buffer,
): Promise<void> {
  const { target, source, attempt, slices } = to;
  const writer = new RecordBatchWriter();
  writer.reserve(slice.length);
  slice.copy(writer.buf, 0);
  writer.pos = slice.length;
  putMarkRow(writer, slicesKey(target, source), [0, attempt, slices + 1]);
  const marks = pod.marks!;
  await applySlice(pod, writer.buf.subarray(0, writer.pos), {
    may: () => {
      const mark = marks.get(target);
      if (mark?.state !== MarkState.filling || mark.attempt !== attempt) {
        throw new Error(`partition ${target} takes no rows of attempt ${attempt}`);
      }
      // What an earlier leader has evaluated may be lost.
      const has = marks.slicesOf(target, source, attempt);
      if (has !== slices) throw new Error(`partition ${target} has ${has} slices, not ${slices}`);
      return true;
    },
  });
}
