import type { Arguments } from '../../../../universal-row/arguments.ts';
import type { Rows } from '../../../../universal-row/rows.ts';
import { Shape } from '../../../../universal-row/rows.ts';
import type { ByteList } from './byte-list.ts';
import { createRow, dropRow } from './typed-row.ts';

/** Puts a sorted set of these members under the key in this word; with none, drops what is there. */
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
