// Commands that are about another one: COMMAND GETKEYS, ACL DRYRUN, RU EXPLAIN.

import { Arguments } from '../../../../universal-row/arguments.ts';

/** The words from `from` on, as a command of their own. */
export function innerCommand(args: Arguments, from: number): Arguments {
  const inner = new Arguments();
  inner.reserve(args.count - from);
  inner.buf = args.buf;
  inner.count = args.count - from;
  for (let i = from; i < args.count; i++) {
    inner.starts[i - from] = args.starts[i]!;
    inner.lens[i - from] = args.lens[i]!;
  }
  return inner;
}
