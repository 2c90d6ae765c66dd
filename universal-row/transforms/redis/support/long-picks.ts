// Random elements, many of them: of HRANDFIELD, SRANDMEMBER and ZRANDMEMBER with a count.

import { emptyBytes, Slice } from '../../../bytes.ts';
import type { Row, Rows } from '../../../rows.ts';
import { isLong, shortWork, type Steps } from '../../../steps.ts';
import { eachFieldInSteps, eachPosition, type Find } from './long-walks.ts';
import { isFew, pickOne, WalkPicker } from './random-picks.ts';

/** Answers one element; members have an empty value. Called with the row as `row`. */
export type Answered = (
  fb: Buffer,
  fs: number,
  fn: number,
  vb: Buffer,
  vs: number,
  vn: number,
  row: Row,
) => void;

const picksPerStep = 256;

/** Whether to pick `wanted` elements, again and again the same ones if it is negative, is long. */
export function isLongPick(rows: Rows, row: Row, wanted: number): boolean {
  if (row === 0) return false;
  const count = rows.count(row);
  if (wanted >= 0) return isLong(rows, row, isFew(wanted, count) ? wanted : count);
  const average = rows.footprint(row) / count;
  return -wanted > shortWork.elements || -wanted * average > shortWork.bytes;
}

export function* randomInSteps(
  rows: Rows,
  find: Find,
  wanted: number,
  answer: Answered,
  begin: (count: number) => void,
): Steps {
  const row = find();
  const size = rows.count(row);
  const count = wanted < 0 ? -wanted : Math.min(wanted, size);
  begin(count);
  if (wanted >= 0 && !isFew(count, size)) {
    const picker = new WalkPicker(rows, count, size);
    yield* eachFieldInSteps(
      rows,
      find,
      (fb, fs, fn, vb, vs, vn) => {
        if (picker.take()) answer(fb, fs, fn, vb, vs, vn, find());
      },
      picker,
    );
    return;
  }
  let picked: number[] | undefined;
  if (wanted >= 0) {
    const found = new Set<number>();
    while (found.size < count) {
      yield;
      for (let i = 0; i < picksPerStep && found.size < count; i++) found.add(pickOne(rows, size));
    }
    picked = Array.from(found);
  }
  const field = new Slice();
  const value = new Slice();
  yield* eachPosition(count, (at, want, taken) => {
    const from = find();
    const end = at + want;
    for (let i = at; i < end; i++) {
      rows.fieldAt(from, picked === undefined ? pickOne(rows, size) : picked[i]!, field, value);
      answer(field.b, field.s, field.n, value.b, value.s, value.n, from);
      if (taken.add(field.n + value.n)) break;
    }
    field.b = emptyBytes;
    value.b = emptyBytes;
  });
}
