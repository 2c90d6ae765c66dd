// The words that SCAN, HSCAN, SSCAN and ZSCAN share: a cursor, then MATCH, COUNT and for SCAN also TYPE.

import type { Arguments } from '../../../arguments.ts';
import { CommandError, syntaxError } from '../../../errors.ts';
import { Glob } from '../glob.ts';

const invalidCursor = new CommandError('ERR invalid cursor');
const cursorLimit = 2n ** 53n;
/** COUNT is a hint. One reply is one step, whatever COUNT says. */
const mostScanned = 8192;

interface ScanOptions {
  /** How many to look at. */
  count: number;
  /** Undefined when everything matches. */
  pattern: Glob | undefined;
  /** The word that holds the type; 0 when any will do. */
  typeWord: number;
}

/** Accepts the input of strtoul: an optional sign, digits, or nothing at all. */
export function parseScanCursor(args: Arguments, word: number): number {
  const text = args.bytes(word).toString('latin1');
  if (!/^(?:[+-]?\d+)?$/.test(text)) throw invalidCursor;
  if (text.length <= 15) return Math.abs(Number(text));
  const digits = text.replace(/^[+-]?0*/, '');
  // Converting a number of millions of digits takes seconds.
  if (digits.length > 20) throw invalidCursor;
  const cursor = BigInt(digits);
  if (cursor >= 2n ** 64n) throw invalidCursor;
  // No cursor of ours is this large. Redis accepts any number, and masks the bits it does not use.
  return Number(cursor % cursorLimit);
}

/** The options from word `from` on. For HSCAN and the like call it after the row was found. */
export function parseScanOptions(args: Arguments, from: number, takesType: boolean): ScanOptions {
  const options: ScanOptions = { count: 10, pattern: undefined, typeWord: 0 };
  for (let i = from; i < args.count; i += 2) {
    const hasValue = i + 1 < args.count;
    if (hasValue && args.is(i, 'COUNT')) {
      options.count = args.integer(i + 1);
      if (options.count < 1) throw syntaxError;
      options.count = Math.min(options.count, mostScanned);
    } else if (hasValue && args.is(i, 'MATCH')) {
      const everything = args.lens[i + 1] === 1 && args.buf[args.starts[i + 1]!] === 42;
      options.pattern = everything
        ? undefined
        : new Glob(args.buf, args.starts[i + 1]!, args.lens[i + 1]!);
    } else if (hasValue && takesType && args.is(i, 'TYPE')) {
      options.typeWord = i + 1;
    } else {
      throw syntaxError;
    }
  }
  return options;
}
