// Changes to whole tables of a pod that no client's command makes.

import type { TableSpan } from '../universal-row/command.ts';
import { ReadFault } from '../universal-row/errors.ts';
import type { PodTurn } from './pod-turn.ts';
import type { TableHolds } from './table-holds.ts';
import { tableFreed } from './table-waits.ts';

/** See `Pod.dropTables`. */
export async function dropTables(
  turn: PodTurn,
  holds: TableHolds,
  { first, count }: TableSpan,
): Promise<void> {
  const { engine } = turn;
  const end = first + count;
  for (const table of engine.tables()) {
    if (table < first || table >= end) continue;
    for (;;) {
      await tableFreed(holds, table);
      const waits = clearTable(turn, table);
      if (waits === undefined) break;
      await waits;
    }
  }
  await turn.durable();
  for (let table = first; table < end; table++) engine.forget?.(table);
  turn.tx.refresh();
}

/** Promise to wait for before trying again, if the engine has to read something first. */
function clearTable(turn: PodTurn, table: number): Promise<void> | undefined {
  const { engine, replica, tx } = turn;
  if (turn.writeFailure !== undefined) throw turn.writeFailure;
  if (replica?.isShut === true) {
    if (replica.ready === undefined) throw new Error(replica.refusal);
    return replica.ready;
  }
  if (engine.congested === true) return engine.drained!();
  const fault = turn.changeTable(table, () => tx.clear());
  return fault instanceof ReadFault ? fault.ready : undefined;
}

/** See `Pod.swapTables`. */
export function swapTables(turn: PodTurn, pairs: readonly (readonly [number, number])[]): void {
  const { engine, log, observers, tx } = turn;
  if (turn.writeFailure !== undefined) throw turn.writeFailure;
  if (turn.replica?.isShut === true) throw new Error(turn.replica.refusal);
  turn.end();
  // Whether a key is in them need not be looked up: its observers look again.
  tx.touched.push(...observers.touchedIn(pairs.flat(), () => true));
  log.begin();
  for (const [a, b] of pairs) {
    log.writer.swap(a, b);
    engine.swapTables(a, b);
  }
  turn.listener?.tablesChanged(pairs.flat());
  for (const [a, b] of pairs) tx.clock?.swap(a, b);
  const index = log.end();
  if (index !== 0) turn.committed(index);
  turn.end();
}
