import { CommandError } from '../../../errors.ts';
import { type Arguments, parseFloatBytes } from '../../../arguments.ts';

const notATimeout = new CommandError('ERR timeout is not a float or out of range');
const negativeTimeout = new CommandError('ERR timeout is negative');

/** Throws unless the word is a time-out in seconds. */
export function checkTimeout(args: Arguments, word: number): void {
  // A number too large for a double is one all the same.
  const seconds = parseFloatBytes(args.buf, args.starts[word]!, args.lens[word]!);
  if (Number.isNaN(seconds)) throw notATimeout;
  const milliseconds = Math.ceil(seconds * 1000);
  // Redis keeps it as a 64-bit integer, which a larger number turns negative.
  if (milliseconds < 0 || milliseconds >= 2 ** 63) throw negativeTimeout;
}
