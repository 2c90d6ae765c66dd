// Times in commands: seconds or milliseconds, from now or since 1970, all within 64 bits once they are
// milliseconds since 1970.

import type { Arguments } from '../../../arguments.ts';
import { CommandError } from '../../../errors.ts';

export const seconds = 1000;
export const milliseconds = 1;

const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

export function invalidExpireTime(command: string): CommandError {
  return new CommandError(`ERR invalid expire time in '${command}' command`);
}

/** The word's number of `unit`s after `base`, in milliseconds since 1970. It may lie in the past. */
export function expiryTime(
  args: Arguments,
  word: number,
  unit: number,
  base: number,
  outOfRange: CommandError,
): number {
  const time = args.integer(word) * unit + base;
  if (Number.isSafeInteger(time)) return time;
  const exact = args.bigInteger(word) * BigInt(unit);
  if (exact < int64Min || exact + BigInt(base) > int64Max) throw outOfRange;
  return Number(exact + BigInt(base));
}

/** As `expiryTime`, where a number that is not positive is out of range too. */
export function positiveExpiryTime(
  args: Arguments,
  word: number,
  unit: number,
  base: number,
  outOfRange: CommandError,
): number {
  if (args.integer(word) <= 0) throw outOfRange;
  return expiryTime(args, word, unit, base, outOfRange);
}
