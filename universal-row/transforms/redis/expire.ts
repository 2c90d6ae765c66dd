// Commands for the expiry of rows.

import type { Arguments } from '../../arguments.ts';
import { CommandError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import type { Rows } from '../../rows.ts';
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

export function expire(rows: Rows, args: Arguments, reply: Reply): void {
  setExpiry(rows, args, reply, seconds, rows.now, invalidExpire);
}

export function pexpire(rows: Rows, args: Arguments, reply: Reply): void {
  setExpiry(rows, args, reply, milliseconds, rows.now, invalidPexpire);
}

export function expireat(rows: Rows, args: Arguments, reply: Reply): void {
  setExpiry(rows, args, reply, seconds, 0, invalidExpireat);
}

export function pexpireat(rows: Rows, args: Arguments, reply: Reply): void {
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

export function ttl(rows: Rows, args: Arguments, reply: Reply): void {
  answerExpiry(rows, args, reply, seconds, rows.now);
}

export function pttl(rows: Rows, args: Arguments, reply: Reply): void {
  answerExpiry(rows, args, reply, milliseconds, rows.now);
}

export function expiretime(rows: Rows, args: Arguments, reply: Reply): void {
  answerExpiry(rows, args, reply, seconds, 0);
}

export function pexpiretime(rows: Rows, args: Arguments, reply: Reply): void {
  answerExpiry(rows, args, reply, milliseconds, 0);
}

export function persist(rows: Rows, args: Arguments, reply: Reply): void {
  const row = rows.find(args.buf, args.starts[1]!, args.lens[1]!);
  const expires = row !== 0 && rows.expireAt(row) !== 0;
  if (expires) rows.setExpireAt(row, 0);
  reply.integer(expires ? 1 : 0);
}
