// The arguments of XREAD and XREADGROUP.

import type { Arguments } from '../../arguments.ts';
import { CommandError, syntaxError } from '../../errors.ts';

const unbalanced = new CommandError(
  "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.",
);
const groupInRead = new CommandError(
  'ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.',
);
const noAckInRead = new CommandError(
  'ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.',
);
const noGroupOption = new CommandError('ERR Missing GROUP option for XREADGROUP');
const notATimeout = new CommandError('ERR timeout is not an integer or out of range');
const negativeTimeout = new CommandError('ERR timeout is negative');

/** Entries a command is given that has waited and names no count. */
const countAfterWait = 1000;

export interface Read {
  /** The word with the time-out, or 0. */
  blockWord: number;
  count: number;
  isWithoutPending: boolean;
  /** The word of the group, with the consumer behind it, or 0. */
  groupWord: number;
  /** The word of the first key. */
  keyWord: number;
  keys: number;
}

export function parseRead(args: Arguments, isGroup: boolean): Read {
  const read: Read = {
    blockWord: 0,
    count: 0,
    isWithoutPending: false,
    groupWord: 0,
    keyWord: 0,
    keys: 0,
  };
  for (let i = 1; i < args.count && read.keyWord === 0; i++) {
    const more = args.count - 1 - i;
    if (args.is(i, 'BLOCK') && more > 0) read.blockWord = timeoutWord(args, ++i);
    else if (args.is(i, 'COUNT') && more > 0) read.count = Math.max(0, args.integer(++i));
    else if (args.is(i, 'STREAMS') && more > 0) {
      if (more % 2 === 1) throw unbalanced;
      read.keyWord = i + 1;
      read.keys = more / 2;
    } else if (args.is(i, 'GROUP') && more > 1) {
      if (!isGroup) throw groupInRead;
      read.groupWord = i + 1;
      i += 2;
    } else if (args.is(i, 'NOACK')) {
      if (!isGroup) throw noAckInRead;
      read.isWithoutPending = true;
    } else throw syntaxError;
  }
  if (read.keyWord === 0) throw syntaxError;
  if (isGroup && read.groupWord === 0) throw noGroupOption;
  if (args.isOfScript && read.blockWord !== 0) throw blockInScript(args);
  if (read.count === 0) read.count = args.hasWaited ? countAfterWait : Infinity;
  return read;
}

function blockInScript(args: Arguments): CommandError {
  return new CommandError(
    `ERR ${args.latin1(0)} command is not allowed with BLOCK option from scripts`,
  );
}

function timeoutWord(args: Arguments, word: number): number {
  const ms = args.integerOrNaN(word);
  if (Number.isNaN(ms)) throw notATimeout;
  if (ms < 0) throw negativeTimeout;
  return word;
}

/** The word of BLOCK's time-out, 0 when there is none. */
export function readTimeoutWord(args: Arguments): number {
  for (let i = 1; i < args.count; i++) {
    if (args.is(i, 'STREAMS')) return 0;
    if (args.is(i, 'GROUP')) i += 2;
    else if (args.is(i, 'COUNT')) i++;
    else if (args.is(i, 'BLOCK')) return i + 1;
  }
  return 0;
}

/** Where the keys are, for those that look them up without carrying the command out. */
export function readKeyWords(args: Arguments): number[] {
  for (let i = 1; i < args.count; i++) {
    if (args.is(i, 'STREAMS')) {
      const keys = Math.floor((args.count - 1 - i) / 2);
      return Array.from({ length: keys }, (_, k) => i + 1 + k);
    }
    if (args.is(i, 'GROUP')) i += 2;
    else if (args.is(i, 'BLOCK') || args.is(i, 'COUNT')) i++;
  }
  return [];
}
