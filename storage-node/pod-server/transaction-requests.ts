// Parts of transactions: the rows they depend on, and commands that would wait outside of one.

import type { Transform } from '../../universal-row/command.ts';
import { WireError, type WireReader } from '../../universal-row/protocol/wire.ts';

/** In a transaction a command that finds nothing to do does not wait. */
export function answeringEmpty(run: Transform, isNil: boolean): Transform {
  return (rows, words, reply) => {
    const mark = reply.mark();
    const long = run(rows, words, reply);
    if (long !== undefined || reply.mark() !== mark) return long;
    if (isNil) reply.nil();
    else reply.nilArray();
  };
}

/** Numbers of observed rows. */
export function watchesOf(reader: WireReader): number[] {
  const count = reader.varint();
  if (count > reader.left) throw new WireError('a transaction watches too much');
  return Array.from({ length: count }, () => reader.varint());
}
