// The words of commands that set times of fields, in the order in which Redis 7.4 and 8.0 look at them.

import type { Arguments } from '../../../arguments.ts';
import { CommandError } from '../../../errors.ts';
import { latestFieldTime } from '../../../timed-map.ts';

const noFields = new CommandError(
  'ERR Mandatory argument FIELDS is missing or not at the right position',
);
const fewFields = new CommandError('ERR Parameter `numFields` should be greater than 0');
const notPositive = new CommandError('ERR Number of fields must be a positive integer');
const otherCount = new CommandError(
  'ERR The `numfields` parameter must match the number of arguments',
);
const negativeTime = new CommandError('ERR invalid expire time, must be >= 0');

/** A number of units from `base` on, as milliseconds since 1970. */
export interface TimeForm {
  unit: 1 | 1000;
  isRelative: boolean;
}

/** Parses the time in an argument. Throws for a negative one or one beyond the range of fields. */
export function fieldTime(
  args: Arguments,
  word: number,
  form: TimeForm,
  now: number,
  outOfRange: CommandError,
): number {
  const number = args.integer(word);
  if (number < 0) throw negativeTime;
  const time = number * form.unit + (form.isRelative ? now : 0);
  if (number > latestFieldTime / form.unit || time > latestFieldTime) throw outOfRange;
  return time;
}

export function badTime(command: string): CommandError {
  return new CommandError(`ERR invalid expire time in '${command}' command`);
}

/**
 * Reads `FIELDS count field...` from `word` on, `stride` words a field, up to the end; returns the word of the first
 * field.
 */
export function fieldWords(args: Arguments, word: number, stride: 1 | 2, isNewer: boolean): number {
  if (word >= args.count || !args.is(word, 'FIELDS') || word + 1 >= args.count) throw noFields;
  const wrong = isNewer ? notPositive : fewFields;
  let count: number;
  try {
    count = args.integer(word + 1);
  } catch (error) {
    if (error instanceof CommandError) throw wrong;
    throw error;
  }
  if (count < 1) throw wrong;
  if (count * stride !== args.count - word - 2) throw otherCount;
  return word + 2;
}

const forms: Readonly<Record<string, TimeForm>> = {
  EX: { unit: 1000, isRelative: true },
  PX: { unit: 1, isRelative: true },
  EXAT: { unit: 1000, isRelative: false },
  PXAT: { unit: 1, isRelative: false },
};

/** `EX seconds`, `PX`, `EXAT` or `PXAT` at a word; undefined when it is none of them. */
export function timeOption(
  args: Arguments,
  word: number,
  now: number,
  outOfRange: CommandError,
): number | undefined {
  for (const [name, form] of Object.entries(forms)) {
    if (!args.is(word, name)) continue;
    if (word + 1 >= args.count) throw noFields;
    return fieldTime(args, word + 1, form, now, outOfRange);
  }
  return undefined;
}
