// Work of one command that is cut into slices: between two of them other clients are served.

import type { Arguments } from '../../universal-row/arguments.ts';
import { CommandError } from '../../universal-row/errors.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { Client } from './client.ts';
import type { RespWriter } from './resp-writer.ts';
import { sharedSlices } from './shared-slices.ts';

const sliceSteps = 1024;
/** Bytes that the steps of one slice read: a pattern is compiled in some ten nanoseconds a byte. */
const sliceBytes = 64 * 1024;

/**
 * Runs `count` steps in slices of `sliceSteps` steps or `sliceBytes` bytes, one slice per round of the event loop.
 * Within EXEC, where commands have few words, all steps run at once. A step may write a whole answer or message, and
 * returns the number of bytes it has read. `endSlice` is called after each slice. The steps end when the connection
 * closes.
 */
export function inSlices(
  connection: Client,
  args: Arguments,
  count: number,
  reply: RespWriter,
  step: (i: number, words: Arguments, out: RespWriter) => number,
  endSlice: () => void,
): MaybePromise<void> {
  let i = 0;
  const run = (words: Arguments, out: RespWriter): void => {
    const end = connection.isExecuting ? count : Math.min(count, i + sliceSteps);
    let left = connection.isExecuting ? Infinity : sliceBytes;
    try {
      while (i < end && left > 0) {
        left -= step(i, words, out);
        i++;
      }
    } catch (error) {
      // Replies of earlier steps stay.
      connection.writeError(error, out);
      i = count;
    }
    endSlice();
  };
  run(args, reply);
  if (i === count) return undefined;
  return new Promise((resolve) => {
    const next = (): void => {
      // The words have been moved when the first slice was over.
      if (!connection.closed) run(connection.arguments, connection.answer());
      if (connection.closed || i === count) resolve();
      else sharedSlices.add(next);
    };
    sharedSlices.add(next);
  });
}

const sliceItems = 256;
/** Slices that are one step within EXEC. */
const slicesAtOnce = 8;
const tooMany = new CommandError('ERR too many to be shown within a transaction');

/**
 * Visits all items, `perSlice` or `sliceBytes` in each round of the event loop; all at once within EXEC, or when there are
 * few. `visit` may return the bytes that it has read. Throws `CommandError` within EXEC when there are too many for that.
 */
export function eachInSlices<T>(
  connection: Pick<Client, 'isExecuting'>,
  items: readonly T[],
  visit: (item: T) => number | void,
  perSlice = sliceItems,
): MaybePromise<void> {
  if (connection.isExecuting && items.length > slicesAtOnce * perSlice) throw tooMany;
  let i = 0;
  const slice = (): void => {
    const end = connection.isExecuting ? items.length : Math.min(items.length, i + perSlice);
    let left = connection.isExecuting ? Infinity : sliceBytes;
    while (i < end && left > 0) left -= visit(items[i++]!) ?? 0;
  };
  slice();
  if (i === items.length) return undefined;
  return new Promise((resolve, reject) => {
    const next = (): void => {
      try {
        slice();
      } catch (error) {
        reject(error as Error);
        return;
      }
      if (i < items.length) sharedSlices.add(next);
      else resolve();
    };
    sharedSlices.add(next);
  });
}
