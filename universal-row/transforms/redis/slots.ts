// Keys of one slot of a cluster. All keys are looked through, in slices.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes, Slice } from '../../bytes.ts';
import { hashSlot, slotCount } from '../../crc16.ts';
import { CommandError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import type { Rows } from '../../rows.ts';
import { step, type Steps, StepSize, type StepTransform } from '../../steps.ts';
import { Tally } from './support/long-walks.ts';

const key = new Slice();
const wrongSlot = new CommandError('ERR Invalid slot');
const wrongCount = new CommandError('ERR Invalid slot or number of keys');

function slotIn(args: Arguments, word: number, error: CommandError): number {
  const slot = args.integer(word);
  if (slot < 0 || slot >= slotCount) throw error;
  return slot;
}

/**
 * Calls for each key of the slot until `visit` says that it is enough; `undo` drops a step's
 * results.
 */
function* eachKeyOf(
  rows: Rows,
  slot: number,
  found: { mark(): number; rollback(mark: number): void },
  visit: () => boolean,
): Steps {
  const size = new StepSize();
  let cursor = 0;
  let isEnough = false;
  do {
    const from = cursor;
    const before = found.mark();
    cursor = yield* step(() => {
      found.rollback(before);
      size.begin();
      return rows.scan(from, size.elements, (row) => {
        rows.key(row, key);
        size.add(key.n);
        if (!isEnough && hashSlot(key.b, key.s, key.n) === slot) isEnough = visit();
      });
    });
    size.end();
  } while (cursor !== 0 && !isEnough);
  key.b = emptyBytes;
}

/** CLUSTER COUNTKEYSINSLOT slot */
export function countKeysInSlot(_rows: Rows, args: Arguments): StepTransform {
  const slot = slotIn(args, 2, wrongSlot);
  return function* (rows: Rows, _args: Arguments, reply: Reply): Steps {
    const tally = new Tally();
    yield* eachKeyOf(rows, slot, tally, () => {
      tally.value++;
      return false;
    });
    reply.integer(tally.value);
  };
}

// More are not asked for in one command.
const maxKeys = 100_000;

/** CLUSTER GETKEYSINSLOT slot count */
export function getKeysInSlot(_rows: Rows, args: Arguments): StepTransform {
  const slot = slotIn(args, 2, wrongCount);
  const count = args.integer(3);
  if (count < 0) throw wrongCount;
  const most = Math.min(count, maxKeys);
  return function* (rows: Rows, _args: Arguments, reply: Reply): Steps {
    const found: Buffer[] = [];
    const undo = {
      mark: () => found.length,
      rollback: (mark: number) => {
        found.length = mark;
      },
    };
    if (most > 0) {
      yield* eachKeyOf(rows, slot, undo, () => {
        found.push(Buffer.from(key.b.subarray(key.s, key.s + key.n)));
        return found.length >= most;
      });
    }
    reply.array(found.length);
    for (const one of found) reply.bulk(one, 0, one.length);
  };
}
