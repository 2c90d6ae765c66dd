// Integers that must lie within limits: counts, numbers of keys.

import type { Arguments } from '../../../arguments.ts';
import { CommandError } from '../../../errors.ts';

const mustBePositive = new CommandError('ERR value is out of range, must be positive');
const beyondLong = new CommandError(
  'ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807',
);
const beyondHalfLong = new CommandError('ERR value is out of range');
const beyondInt = new CommandError(
  'ERR value is out of range, value must between -2147483648 and 2147483647',
);

const longMin = -(2n ** 63n);
const halfLong = 2n ** 62n - 1n;

/** Parses an integer of at least `min`; replies `error` for anything else. */
export function integerAtLeast(
  args: Arguments,
  word: number,
  min: number,
  error: CommandError = mustBePositive,
): number {
  const value = args.integerOrNaN(word);
  if (!(value >= min)) throw error;
  return value;
}

/**
 * How many random elements: any integer but the least one. Twice as many must fit too once
 * `checkRandomPairs` is called, for then each comes with its value.
 */
export function randomCount(args: Arguments, word: number): number {
  const value = args.integer(word);
  if (value < -(2 ** 53) && args.bigInteger(word) === longMin) throw beyondLong;
  return value;
}

export function checkRandomPairs(args: Arguments, word: number): void {
  const value = args.bigInteger(word);
  if (value < -halfLong || value > halfLong) throw beyondHalfLong;
}

/** Parses a 32-bit integer. Replies `error`, if given, for anything else. */
export function intArgument(args: Arguments, word: number, error?: CommandError): number {
  const value = error === undefined ? args.integer(word) : args.integerOrNaN(word);
  if (value >= -(2 ** 31) && value < 2 ** 31) return value;
  throw error ?? beyondInt;
}
