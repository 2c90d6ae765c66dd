import type { Arguments } from '../../../arguments.ts';
import type { Row, Rows } from '../../../rows.ts';
import { Shape } from '../../../rows.ts';
import { step, type Steps } from '../../../steps.ts';
import type { ByteList } from './byte-list.ts';
import { eachSized } from './long-walks.ts';
import { createRow, dropRow, typedRow } from './typed-row.ts';

/**
 * Stores a sorted set of these members under the key in this argument; with none, drops the
 * existing row.
 */
export function storeScored(rows: Rows, args: Arguments, word: number, members: ByteList): void {
  if (members.count === 0) {
    dropRow(rows, args, word);
    return;
  }
  const row = createRow(rows, args, word, Shape.ranked);
  for (let i = 0; i < members.count; i++) {
    rows.putScore(row, members.buf, members.start(i), members.length(i), members.score(i));
  }
}

/** As `storeScored`. */
export function* storeScoredInSteps(
  rows: Rows,
  args: Arguments,
  word: number,
  members: ByteList,
): Steps {
  yield* step(() => {
    if (members.count === 0) dropRow(rows, args, word);
    else createRow(rows, args, word, Shape.ranked);
  });
  let row: Row = 0;
  yield* eachSized(
    members.count,
    (i) => members.length(i),
    (i) => {
      if (i % 64 === 0 || row === 0) row = typedRow(rows, args, word, Shape.ranked);
      rows.putScore(row, members.buf, members.start(i), members.length(i), members.score(i));
    },
  );
}
