// When rows cease to be.

import type { Arguments } from '../../../universal-row/arguments.ts';
import { Action } from '../../../universal-row/command.ts';
import { CommandError } from '../../../universal-row/errors.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import type { Rows } from '../../../universal-row/rows.ts';
import { type CommandSpec, firstKey } from './spec.ts';
import { expiryTime, invalidExpireTime, milliseconds, seconds } from './support/expiry-time.ts';

const nxWithOther = new CommandError(
  'ERR NX and XX, GT or LT options at the same time are not compatible',
);
const gtWithLt = new CommandError('ERR GT and LT options at the same time are not compatible');
const invalidExpire = invalidExpireTime('expire');
const invalidPexpire = invalidExpireTime('pexpire');
const invalidExpireat = invalidExpireTime('expireat');
const invalidPexpireat = invalidExpireTime('pexpireat');

/** Below 2^63, where the 64-bit integers of the protocol end. */
const greatestDouble = 2 ** 63 - 1024;

const nx = 1;
const xx = 2;
const gt = 4;
const lt = 8;

function parseConditions(args: Arguments): number {
  let conditions = 0;
  for (let i = 3; i < args.count; i++) {
    if (args.is(i, 'NX')) conditions |= nx;
    else if (args.is(i, 'XX')) conditions |= xx;
    else if (args.is(i, 'GT')) conditions |= gt;
    else if (args.is(i, 'LT')) conditions |= lt;
    else throw new CommandError(`ERR Unsupported option ${oneLine(args.text(i))}`);
  }
  if ((conditions & nx) !== 0 && conditions !== nx) throw nxWithOther;
  if ((conditions & gt) !== 0 && (conditions & lt) !== 0) throw gtWithLt;
  return conditions;
}

function oneLine(text: string): string {
  return text.replace(/[\r\n]/g, ' ');
}

/** Whether an expiry may change from `current`, 0 for never, to `next`. */
function allows(conditions: number, current: number, next: number): boolean {
  if ((conditions & nx) !== 0 && current !== 0) return false;
  if ((conditions & xx) !== 0 && current === 0) return false;
  if ((conditions & gt) !== 0 && (current === 0 || next <= current)) return false;
  return (conditions & lt) === 0 || current === 0 || next < current;
}

function setExpiry(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  unit: number,
  base: number,
  outOfRange: CommandError,
): void {
  const conditions = args.count > 3 ? parseConditions(args) : 0;
  const expireAt = expiryTime(args, 2, unit, base, outOfRange);
  const row = rows.find(args.buf, args.starts[1]!, args.lens[1]!);
  if (row === 0 || (conditions !== 0 && !allows(conditions, rows.expireAt(row), expireAt))) {
    reply.integer(0);
    return;
  }
  if (expireAt <= rows.now) rows.drop(row);
  else rows.setExpireAt(row, expireAt);
  reply.integer(1);
}

function expire(rows: Rows, args: Arguments, reply: Reply): void {
  setExpiry(rows, args, reply, seconds, rows.now, invalidExpire);
}

function pexpire(rows: Rows, args: Arguments, reply: Reply): void {
  setExpiry(rows, args, reply, milliseconds, rows.now, invalidPexpire);
}

function expireat(rows: Rows, args: Arguments, reply: Reply): void {
  setExpiry(rows, args, reply, seconds, 0, invalidExpireat);
}

function pexpireat(rows: Rows, args: Arguments, reply: Reply): void {
  setExpiry(rows, args, reply, milliseconds, 0, invalidPexpireat);
}

/** Answers the expiry less `since`; -1 for a row that stays, -2 for none. */
function answerExpiry(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  unit: number,
  since: number,
): void {
  const row = rows.find(args.buf, args.starts[1]!, args.lens[1]!);
  const expireAt = row === 0 ? 0 : rows.expireAt(row);
  if (expireAt === 0) {
    reply.integer(row === 0 ? -2 : -1);
    return;
  }
  const time = expireAt - since;
  const units = unit === milliseconds ? time : Math.floor((time + unit / 2) / unit);
  if (Number.isSafeInteger(units)) reply.integer(units);
  else reply.bigInteger(BigInt(Math.min(units, greatestDouble)));
}

function ttl(rows: Rows, args: Arguments, reply: Reply): void {
  answerExpiry(rows, args, reply, seconds, rows.now);
}

function pttl(rows: Rows, args: Arguments, reply: Reply): void {
  answerExpiry(rows, args, reply, milliseconds, rows.now);
}

function expiretime(rows: Rows, args: Arguments, reply: Reply): void {
  answerExpiry(rows, args, reply, seconds, 0);
}

function pexpiretime(rows: Rows, args: Arguments, reply: Reply): void {
  answerExpiry(rows, args, reply, milliseconds, 0);
}

function persist(rows: Rows, args: Arguments, reply: Reply): void {
  const row = rows.find(args.buf, args.starts[1]!, args.lens[1]!);
  const expires = row !== 0 && rows.expireAt(row) !== 0;
  if (expires) rows.setExpireAt(row, 0);
  reply.integer(expires ? 1 : 0);
}

export const expireCommands: readonly CommandSpec[] = [
  {
    name: 'expire',
    arity: -3,
    syntax: 'key seconds [NX | XX | GT | LT]',
    flags: ['write', 'fast'],
    keys: firstKey,
    group: 'generic',
    since: '1.0.0',
    summary: 'Sets how many seconds a key still lives.',
    complexity: 'O(1)',
    action: Action.update,
    run: expire,
  },
  {
    name: 'pexpire',
    arity: -3,
    syntax: 'key milliseconds [NX | XX | GT | LT]',
    flags: ['write', 'fast'],
    keys: firstKey,
    group: 'generic',
    since: '2.6.0',
    summary: 'Sets how many milliseconds a key still lives.',
    complexity: 'O(1)',
    action: Action.update,
    run: pexpire,
  },
  {
    name: 'expireat',
    arity: -3,
    syntax: 'key unix-time-seconds [NX | XX | GT | LT]',
    flags: ['write', 'fast'],
    keys: firstKey,
    group: 'generic',
    since: '1.2.0',
    summary: 'Sets the second since 1970 until which a key lives.',
    complexity: 'O(1)',
    action: Action.update,
    run: expireat,
  },
  {
    name: 'pexpireat',
    arity: -3,
    syntax: 'key unix-time-milliseconds [NX | XX | GT | LT]',
    flags: ['write', 'fast'],
    keys: firstKey,
    group: 'generic',
    since: '2.6.0',
    summary: 'Sets the millisecond since 1970 until which a key lives.',
    complexity: 'O(1)',
    action: Action.update,
    run: pexpireat,
  },
  {
    name: 'ttl',
    arity: 2,
    syntax: 'key',
    flags: ['readonly', 'fast'],
    keys: firstKey,
    group: 'generic',
    since: '1.0.0',
    summary: 'Returns how many seconds a key still lives.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: ttl,
  },
  {
    name: 'pttl',
    arity: 2,
    syntax: 'key',
    flags: ['readonly', 'fast'],
    keys: firstKey,
    group: 'generic',
    since: '2.6.0',
    summary: 'Returns how many milliseconds a key still lives.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: pttl,
  },
  {
    name: 'expiretime',
    arity: 2,
    syntax: 'key',
    flags: ['readonly', 'fast'],
    keys: firstKey,
    group: 'generic',
    since: '7.0.0',
    summary: 'Returns the second since 1970 until which a key lives.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: expiretime,
  },
  {
    name: 'pexpiretime',
    arity: 2,
    syntax: 'key',
    flags: ['readonly', 'fast'],
    keys: firstKey,
    group: 'generic',
    since: '7.0.0',
    summary: 'Returns the millisecond since 1970 until which a key lives.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: pexpiretime,
  },
  {
    name: 'persist',
    arity: 2,
    syntax: 'key',
    flags: ['write', 'fast'],
    keys: firstKey,
    group: 'generic',
    since: '2.2.0',
    summary: 'Makes a key live for ever.',
    complexity: 'O(1)',
    action: Action.update,
    run: persist,
  },
];
