// Taking many named fields or members out of a row, a step at a time.

import type { Arguments } from '../../../arguments.ts';
import type { Reply } from '../../../reply.ts';
import type { Row, Rows, Shape } from '../../../rows.ts';
import type { Steps } from '../../../steps.ts';
import { eachWord, Tally } from './long-walks.ts';
import { sizeOf, typedRow } from './typed-row.ts';

/** HDEL, SREM and ZREM: the fields are the words from 2 on. Answers how many there were. */
export function* removeFieldsInSteps(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  shape: Shape,
): Steps {
  const removed = new Tally();
  let row: Row = 0;
  let left = 0;
  yield* eachWord(
    args,
    2,
    args.count,
    1,
    removed,
    () => {
      row = typedRow(rows, args, 1, shape);
      left = sizeOf(rows, row);
    },
    (word) => {
      if (left === 0) return true;
      if (!rows.removeField(row, args.buf, args.starts[word]!, args.lens[word]!)) return false;
      removed.value++;
      left--;
      return left === 0;
    },
  );
  reply.integer(removed.value);
}
