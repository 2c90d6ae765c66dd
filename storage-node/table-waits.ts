// Waiting for tables that long commands hold.

import type { MaybePromise } from '../universal-row/maybe-promise.ts';
import type { Reply } from '../universal-row/reply.ts';
import type { HeldTable } from './long-run.ts';
import type { TableHolds } from './table-holds.ts';

const tooManyWait = 'BUSY a long command holds the table, and too many other commands wait for it';
const retryMs = 20;

/** The answer of `then`, called once the first held table is free; undefined if all are free. */
export function waitForTables(
  holds: TableHolds,
  tables: readonly HeldTable[],
  reply: Reply,
  then: (own: Reply) => MaybePromise<Reply | void>,
): Promise<Reply | void> | undefined {
  for (const { table, isWrite } of tables) {
    if (holds.mayRun(table, isWrite)) continue;
    const own = reply.fork(reply.mark());
    return new Promise((resolve, reject) => {
      const run = (): void => {
        try {
          const done = then(own);
          if (done instanceof Promise) done.then((other) => resolve(other ?? own), reject);
          else resolve(done ?? own);
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      const refuse = (text: string): void => {
        own.error(text);
        resolve(own);
      };
      if (!holds.wait(table, isWrite, run, refuse)) refuse(tooManyWait);
    });
  }
  return undefined;
}

/** Resolves when no command holds the table, in the instant in which that is so. */
export async function tableFreed(holds: TableHolds, table: number): Promise<void> {
  while (!holds.mayRun(table, true)) {
    const isQueued = await new Promise<boolean>((resolve) => {
      if (!holds.wait(table, true, () => resolve(true))) resolve(false);
    });
    if (isQueued && holds.mayRun(table, true)) return;
    await new Promise((resolve) => setTimeout(resolve, retryMs));
  }
}
