// Large values are stored in steps: first a row of the final size, then its bytes, some in each step. No other command
// sees the row before its last step.

import type { Arguments } from '../../../arguments.ts';
import { emptyBytes, Slice } from '../../../bytes.ts';
import type { ReadFault } from '../../../errors.ts';
import type { Reply } from '../../../reply.ts';
import type { Rows } from '../../../rows.ts';
import { shortWork, step, stepBytes, type Steps } from '../../../steps.ts';
import type { Find } from './long-walks.ts';

const value = new Slice();

/** Whether a value of so many bytes is stored in steps. */
export function isLargeValue(bytes: number): boolean {
  return bytes > 2 * shortWork.bytes;
}

/** As `putValue`. */
export function* putValueInSteps(
  rows: Rows,
  key: Buffer,
  ks: number,
  kn: number,
  vb: Buffer,
  vs: number,
  vn: number,
  expireAt: number,
): Steps {
  yield* step(() => {
    rows.reserveValue(key, ks, kn, vn, expireAt);
  });
  for (let at = 0; at < vn; at += stepBytes) {
    const from = at;
    yield* step(() => rows.fillValue(from, vb, vs + from, Math.min(stepBytes, vn - from)));
  }
}

/** As `putValue` of a word. */
export function* putWordInSteps(
  rows: Rows,
  { buf, starts, lens }: Arguments,
  keyWord: number,
  valueWord: number,
  expireAt: number,
): Steps {
  const vn = lens[valueWord]!;
  yield* putValueInSteps(
    rows,
    buf,
    starts[keyWord]!,
    lens[keyWord]!,
    buf,
    starts[valueWord]!,
    vn,
    expireAt,
  );
}

/** Overwrites bytes of a value by a word, from `offset` on, as `patchValue` does. */
export function* patchWordInSteps(
  rows: Rows,
  { buf, starts, lens }: Arguments,
  keyWord: number,
  offset: number,
  patchWord: number,
): Steps {
  const vs = starts[patchWord]!;
  const vn = lens[patchWord]!;
  // The last bytes first: they take the value to its size, which may be refused, and then nothing has been changed.
  for (let at = vn - (vn % stepBytes || stepBytes); at >= 0; at -= stepBytes) {
    const from = at;
    yield* step(() => {
      const row = rows.find(buf, starts[keyWord]!, lens[keyWord]!);
      rows.patchValue(row, offset + from, buf, vs + from, Math.min(stepBytes, vn - from));
    });
  }
}

/** Answers `n` bytes of a value from `from` on, or as many as there are; no other command changes it meanwhile. */
export function* answerValueInSteps(
  rows: Rows,
  find: Find,
  reply: Reply,
  from = 0,
  n = Infinity,
): Steps {
  const end = yield* step(() => {
    const stop = Math.min(rows.count(find()), from + n);
    reply.bulkHead(stop - from);
    return stop;
  });
  for (let at = from; at < end; at += stepBytes) {
    const start = at;
    yield* step(() => {
      rows.value(find(), value);
      reply.bulkPart(value.b, value.s + start, Math.min(stepBytes, end - start));
      value.b = emptyBytes;
    });
  }
  reply.bulkTail();
}

/** A copy of the bytes of a value, which no other command changes meanwhile. */
export function* copyValueInSteps(
  rows: Rows,
  find: Find,
): Generator<ReadFault | undefined, Buffer, undefined> {
  const to = yield* step(() => Buffer.allocUnsafeSlow(rows.count(find())));
  for (let at = 0; at < to.length; at += stepBytes) {
    const from = at;
    yield* step(() => {
      rows.value(find(), value);
      const { b, s } = value;
      b.copy(to, from, s + from, s + Math.min(to.length, from + stepBytes));
      value.b = emptyBytes;
    });
  }
  return to;
}
