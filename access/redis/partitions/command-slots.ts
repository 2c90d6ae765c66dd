// Which partition of a table a command is for, by the slots of its keys.

import type { Arguments } from '../../../universal-row/arguments.ts';
import { hashSlot } from '../../../universal-row/crc16.ts';
import { keyWords } from '../commands/key-words.ts';
import type { CommandSpec } from '../commands/spec.ts';

/** In place of a partition. */
export const noKeys = -1;
export const crossing = -2;

/**
 * Position in the partition map of the partition with all keys of a command. `index` has the position for each slot. Returns
 * `noKeys` for a command without keys, `crossing` if several partitions have its keys.
 */
export function partitionOfKeys(spec: CommandSpec, args: Arguments, index: Uint16Array): number {
  const { keys } = spec;
  if (keys === undefined) return noKeys;
  const { buf, starts, lens } = args;
  let found = noKeys;
  if (typeof keys !== 'function') {
    if (keys.first === 0) return noKeys;
    const last = Math.min(keys.last < 0 ? args.count + keys.last : keys.last, args.count - 1);
    for (let i = keys.first; i <= last; i += keys.step) {
      const at = index[hashSlot(buf, starts[i]!, lens[i]!)]!;
      if (found === noKeys) found = at;
      else if (found !== at) return crossing;
    }
    return found;
  }
  for (const i of keyWords(spec, args)) {
    const at = index[hashSlot(buf, starts[i]!, lens[i]!)]!;
    if (found === noKeys) found = at;
    else if (found !== at) return crossing;
  }
  return found;
}
