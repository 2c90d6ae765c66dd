// Commands about the connection or its channels that scripts may call all the same.

import type { Arguments } from '../../../arguments.ts';
import { CommandError } from '../../../errors.ts';
import type { Reply } from '../../../reply.ts';
import type { Rows } from '../../../rows.ts';
import type { ScriptHost } from './host.ts';

type OwnCommand = (rows: Rows, args: Arguments, reply: Reply, host: ScriptHost) => void;

const outOfRange = new CommandError('ERR DB index is out of range');
const otherDatabase = new CommandError(
  'ERR a script keeps to the database that it was called in: SELECT of another one is refused',
);

function echo(_rows: Rows, args: Arguments, reply: Reply): void {
  reply.bulk(args.buf, args.starts[1]!, args.lens[1]!);
}

function ping(rows: Rows, args: Arguments, reply: Reply): void {
  if (args.count === 1) reply.simple('PONG');
  else echo(rows, args, reply);
}

function select(rows: Rows, args: Arguments, reply: Reply): void {
  const table = args.integer(1);
  if (table < 0 || table >= rows.tableCount) throw outOfRange;
  if (table !== rows.table) throw otherDatabase;
  reply.ok();
}

function time(rows: Rows, _args: Arguments, reply: Reply): void {
  reply.array(2);
  reply.text(String(Math.floor(rows.now / 1000)));
  reply.text(String(Math.floor(rows.now % 1000) * 1000));
}

function publish(isSharded: boolean): OwnCommand {
  return (_rows, args, reply, host) => {
    reply.integer(host.publish(args.latin1(1), args.latin1(2), isSharded));
  };
}

export const ownCommands: ReadonlyMap<string, OwnCommand> = new Map([
  ['echo', echo],
  ['ping', ping],
  ['select', select],
  ['time', time],
  ['publish', publish(false)],
  ['spublish', publish(true)],
]);
