// Checks whether a partition is served here. Commands on other partitions are refused, or wait while this is unknown.

import type { Command } from '../universal-row/command.ts';
import { ReadFault } from '../universal-row/errors.ts';
import type { MaybePromise } from '../universal-row/maybe-promise.ts';
import type { Reply } from '../universal-row/reply.ts';
import type { HeldTable } from './long-run.ts';
import { shutRefusal } from './partition-marks.ts';
import type { PodRuns } from './pod-runs.ts';
import type { PodTick } from './pod-tick.ts';
import type { Replica } from './replica.ts';
import type { TableRulesByNumber } from './table-rules.ts';
import { tableFreed } from './table-waits.ts';

/** The answer of `then`, once rows may be touched; or a refusal, where this replica does not lead. */
export function whileShut(
  { ready, refusal, notRun }: Replica,
  first: Command | undefined,
  reply: Reply,
  then: (own: Reply) => MaybePromise<Reply | void>,
): MaybePromise<Reply | void> {
  if (ready === undefined) {
    reply.error(refusal);
    if (first !== undefined) first.notRun = notRun;
    return;
  }
  const own = reply.fork(reply.mark());
  return ready.then(async () => (await then(own)) ?? own);
}

export class PartitionGuard {
  readonly #tick: PodTick;
  readonly #tables: TableRulesByNumber;

  constructor(tick: PodTick, tables: TableRulesByNumber) {
    this.#tick = tick;
    this.#tables = tables;
  }

  /** Refuses commands whose partition is not served here. Returns false where all partitions are served. */
  ifShut(
    tables: readonly HeldTable[],
    commands: readonly Command[],
    reply: Reply,
    then: (own: Reply) => MaybePromise<Reply | void>,
  ): MaybePromise<Reply | void> | false {
    const [first] = commands;
    try {
      for (const { table } of tables) {
        const mark = this.#tick.marks!.shut(table);
        if (mark === undefined) continue;
        if (!this.#tick.isOpen) this.#tick.open();
        first!.notRun = shutRefusal(mark, commands, this.#tick.engine, reply);
        return;
      }
      return false;
    } catch (error) {
      if (!(error instanceof ReadFault)) throw error;
      const own = reply.fork(reply.mark());
      return error.ready.then(async () => (await then(own)) ?? own);
    }
  }

  /**
   * Checks again between the tasks of a flow, because this replica may have lost the leadership and tables may be
   * held by now. Returns the promise to wait for, undefined after a refusal, or false if commands may run.
   */
  ifShutBetween(
    longs: PodRuns,
    commands: readonly Command[],
    reply: Reply,
  ): Promise<void> | undefined | false {
    const { replica, marks } = this.#tick;
    if (replica?.isShut === true) {
      if (replica.ready !== undefined) return replica.ready;
      reply.error(replica.refusal);
      commands[0]!.notRun = replica.notRun;
      return undefined;
    }
    const { holds } = longs;
    if (holds.size === 0 && marks?.isAny !== true) return false;
    const tables = longs.tablesOf(commands);
    const held = tables.find(({ table, isWrite }) => !holds.mayRun(table, isWrite));
    if (held !== undefined) return tableFreed(holds, held.table);
    if (marks?.isAny !== true) return false;
    const shut = this.ifShut(tables, commands, reply, () => {});
    if (shut instanceof Promise) return shut.then(() => {});
    return shut === false ? false : undefined;
  }

  /** A copied partition may be read here only when it has all rows, according to the marks. */
  mayRead({ table }: Command): boolean | Promise<void> {
    const { marks } = this.#tick;
    const isCopy = this.#tables.get(table)?.isCopy === true;
    if (!isCopy && marks?.isAny !== true) return true;
    try {
      const mark = marks?.get(table);
      return mark === undefined ? !isCopy : marks!.shut(table) === undefined;
    } catch (error) {
      if (!(error instanceof ReadFault)) throw error;
      return error.ready;
    }
  }
}
