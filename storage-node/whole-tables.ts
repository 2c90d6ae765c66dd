// Changes to whole tables of a pod that no client's command makes.

import type { TableSpan } from '../universal-row/command.ts';
import { ReadFault } from '../universal-row/errors.ts';
import type { PodTick } from './pod-tick.ts';
import type { TableHolds } from './table-holds.ts';
import { tableFreed } from './table-waits.ts';

/** See `Pod.dropTables`. */
export async function dropTables(
  tick: PodTick,
  holds: TableHolds,
  { first, count }: TableSpan,
): Promise<void> {
  const { engine } = tick;
  const end = first + count;
  for (const table of engine.tables()) {
    if (table < first || table >= end) continue;
    for (;;) {
      await tableFreed(holds, table);
      const waits = clearTable(tick, table);
      if (waits === undefined) break;
      await waits;
    }
  }
  await tick.durable();
  for (let table = first; table < end; table++) engine.forget?.(table);
  tick.tx.refresh();
}

/** Promise to wait for before trying again, if the engine has to read something first. */
function clearTable(tick: PodTick, table: number): Promise<void> | undefined {
  const { engine, replica, tx } = tick;
  if (tick.writeFailure !== undefined) throw tick.writeFailure;
  if (replica?.isShut === true) {
    if (replica.ready === undefined) throw new Error(replica.refusal);
    return replica.ready;
  }
  if (engine.congested === true) return engine.drained!();
  const fault = tick.changeTable(table, () => tx.clear());
  return fault instanceof ReadFault ? fault.ready : undefined;
}

/** See `Pod.swapTables`. */
export function swapTables(tick: PodTick, pairs: readonly (readonly [number, number])[]): void {
  const { engine, log, observers, tx } = tick;
  if (tick.writeFailure !== undefined) throw tick.writeFailure;
  if (tick.replica?.isShut === true) throw new Error(tick.replica.refusal);
  tick.end();
  // Whether a key is in them need not be looked up: its observers look again.
  tx.touched.push(...observers.touchedIn(pairs.flat(), () => true));
  log.begin();
  for (const [a, b] of pairs) {
    log.writer.swap(a, b);
    engine.swapTables(a, b);
  }
  tick.listener?.tablesChanged(pairs.flat());
  for (const [a, b] of pairs) tx.clock?.swap(a, b);
  const index = log.end();
  if (index !== 0) tick.committed(index);
  tick.end();
}
