// Parts of strings.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes, Slice } from '../../bytes.ts';
import { CommandError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Row, type Rows, Shape } from '../../rows.ts';
import { step, type Steps, type StepTransform } from '../../steps.ts';
import {
  answerValueInSteps,
  isLargeValue,
  patchWordInSteps,
  putWordInSteps,
} from './support/large-values.ts';
import { stringLimit } from './support/string-limit.ts';
import { typedRow } from './support/typed-row.ts';

const tooLong = new CommandError('ERR string exceeds maximum allowed size (proto-max-bulk-len)');
const offsetOutOfRange = new CommandError('ERR offset is out of range');

const value = new Slice();

export function append(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const { buf, starts, lens } = args;
  if (isLargeValue(lens[2]!)) return appendInSteps;
  const row = typedRow(rows, args, 1, Shape.value);
  const more = lens[2]!;
  if (row === 0) {
    rows.putValue(buf, starts[1]!, lens[1]!, buf, starts[2]!, more, 0);
    reply.integer(more);
    return;
  }
  const length = rows.count(row);
  if (length + more > stringLimit.bytes) throw tooLong;
  rows.patchValue(row, length, buf, starts[2]!, more);
  reply.integer(length + more);
}

function* appendInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const more = args.lens[2]!;
  const length = yield* step(() => {
    const row = typedRow(rows, args, 1, Shape.value);
    return row === 0 ? -1 : rows.count(row);
  });
  if (length + more > stringLimit.bytes) throw tooLong;
  if (length < 0) yield* putWordInSteps(rows, args, 1, 2, 0);
  else yield* patchWordInSteps(rows, args, 1, length, 2);
  reply.integer(Math.max(0, length) + more);
}

export function getrange(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const first = args.integer(2);
  const last = args.integer(3);
  const row = typedRow(rows, args, 1, Shape.value);
  const { from, n } = rangeOf(first, last, row === 0 ? 0 : rows.count(row));
  if (n === 0) {
    reply.bulk(emptyBytes, 0, 0);
    return;
  }
  if (isLargeValue(n)) return getrangeInSteps;
  rows.value(row, value);
  reply.bulk(value.b, value.s + from, n);
  value.b = emptyBytes;
}

function* getrangeInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const find = (): Row => typedRow(rows, args, 1, Shape.value);
  const { from, n } = yield* step(() =>
    rangeOf(args.integer(2), args.integer(3), rows.count(find())),
  );
  yield* answerValueInSteps(rows, find, reply, from, n);
}

/** Where GETRANGE begins in a string of this length, and how many bytes it answers. */
function rangeOf(first: number, last: number, length: number): { from: number; n: number } {
  let from = first;
  let to = last;
  // Decided before the negative ones are counted from the end, for then they may be cut off to 0.
  const backwards = from < 0 && to < 0 && from > to;
  if (from < 0) from = Math.max(0, length + from);
  if (to < 0) to = Math.max(0, length + to);
  if (to >= length) to = length - 1;
  return { from, n: backwards || from > to || length === 0 ? 0 : to - from + 1 };
}

export function setrange(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const { buf, starts, lens } = args;
  const offset = args.integer(2);
  if (offset < 0) throw offsetOutOfRange;
  const found = typedRow(rows, args, 1, Shape.value);
  const length = found === 0 ? 0 : rows.count(found);
  const n = lens[3]!;
  if (n === 0) {
    reply.integer(length);
    return;
  }
  if (offset + n > stringLimit.bytes) throw tooLong;
  if (isLargeValue(n)) return setrangeInSteps;
  const row = found !== 0 ? found : rows.putValue(buf, starts[1]!, lens[1]!, emptyBytes, 0, 0, 0);
  rows.patchValue(row, offset, buf, starts[3]!, n);
  reply.integer(Math.max(length, offset + n));
}

/** The offset has been checked. */
function* setrangeInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const { buf, starts, lens } = args;
  const offset = args.integer(2);
  const length = yield* step(() => {
    const found = typedRow(rows, args, 1, Shape.value);
    if (found === 0) rows.putValue(buf, starts[1]!, lens[1]!, emptyBytes, 0, 0, 0);
    return found === 0 ? 0 : rows.count(found);
  });
  yield* patchWordInSteps(rows, args, 1, offset, 3);
  reply.integer(Math.max(length, offset + lens[3]!));
}
