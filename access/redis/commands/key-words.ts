// Where the keys of a command are.

import type { Arguments } from '../../../universal-row/arguments.ts';
import type { CommandSpec } from './spec.ts';

/** The word number of a command's first key; undefined where it has none. */
export function firstKeyWord(spec: CommandSpec, args: Arguments): number | undefined {
  const { keys } = spec;
  if (typeof keys === 'function') return keys(args)[0];
  const last = keys === undefined || keys.last >= 0 ? keys?.last : args.count + keys.last;
  if (last === undefined || keys!.first === 0 || keys!.first > last) return undefined;
  return keys!.first < args.count ? keys!.first : undefined;
}

/** The word numbers of a command's keys. */
export function keyWords(spec: CommandSpec, args: Arguments): number[] {
  const { keys } = spec;
  if (keys === undefined) return [];
  if (typeof keys === 'function') return keys(args);
  if (keys.first === 0) return [];
  const last = keys.last < 0 ? args.count + keys.last : keys.last;
  const words: number[] = [];
  for (let i = keys.first; i <= last && i < args.count; i += keys.step) words.push(i);
  return words;
}
