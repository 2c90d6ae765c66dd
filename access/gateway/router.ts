// The routes of tables: which executor runs the commands on a table.

import type { RowPricer } from '../../request-units/row-pricer.ts';
import type { QuotaMode } from '../../contracts/table-properties.ts';
import type { ReadBounds } from '../../universal-row/command.ts';
import type { RowCommands, TickMember } from '../../universal-row/executor.ts';
import type { GroupExecutor } from './pods/group-executor.ts';
import type { RemoteExecutor } from './pods/remote-executor.ts';

export interface Route {
  /** A pod; for a table of several partitions, a router to the pod of each command. */
  executor: RowCommands;
  /** All pods that may have rows of the table, or the object that ends their ticks. */
  pods: readonly TickMember[];
  /** The executor may answer later than in the same tick. */
  mayWait: boolean;
  /** Prices the work; absent where work is not metered. */
  pricer?: RowPricer | undefined;
  /** The same executor, if it is a group of replicas. */
  group?: GroupExecutor | undefined;
  /**
   * The same executor, if its pods are in another process: commands can be sent to it before earlier answers have
   * arrived.
   */
  remote?: RemoteExecutor | undefined;
  /**
   * There are several replicas, and all of them may answer reads: within `bounds`, and for clients
   * that request it.
   */
  isReplicated?: boolean | undefined;
  /** Staleness bounds of the table; absent where reads need the latest state. */
  bounds?: ReadBounds | undefined;
  /** Quota mode of the table; if absent, the server's setting applies. */
  quotaMode?: QuotaMode | undefined;
}

// Tables below this number are looked up in an array, others in a map: few of those have a route of their own.
const nearTables = 4096;

export class Router {
  private readonly near: Route[] = [];
  private readonly far = new Map<number, Route>();
  private usual: Route | undefined;
  private resolve: ((table: number) => Route) | undefined;
  private partitions: ReadonlyMap<number, number> = new Map();
  private distinct: TickMember[] = [];

  /**
   * Uses the `usual` route for all tables except those in `exceptions`. `partitions` maps the number of a partition to its
   * table.
   */
  set(
    usual: Route,
    exceptions: ReadonlyMap<number, Route> = new Map(),
    partitions: ReadonlyMap<number, number> = new Map(),
  ): void {
    this.usual = usual;
    this.resolve = undefined;
    this.partitions = partitions;
    this.far.clear();
    for (let table = 0; table < nearTables; table++) this.near[table] = usual;
    for (const [table, route] of exceptions) {
      if (table < nearTables) this.near[table] = route;
      else this.far.set(table, route);
    }
    const routes = [usual, ...exceptions.values()];
    this.distinct = [...new Set(routes.flatMap((route) => route.pods))];
  }

  /** Each table has its own route, resolved when the table is first used. `members` end the ticks of all routes. */
  setByTable(
    resolve: (table: number) => Route,
    members: readonly TickMember[],
    partitions: ReadonlyMap<number, number>,
  ): void {
    this.usual = undefined;
    this.resolve = resolve;
    this.partitions = partitions;
    this.near.length = 0;
    this.far.clear();
    this.distinct = [...members];
  }

  to(table: number): Route {
    const route = table < nearTables ? this.near[table] : (this.far.get(table) ?? this.usual);
    return route ?? this.#resolved(table);
  }

  #resolved(table: number): Route {
    if (this.resolve === undefined) throw new RangeError(`no table ${table}`);
    const route = this.resolve(table);
    if (table < nearTables) this.near[table] = route;
    else this.far.set(table, route);
    return route;
  }

  /** Table of a partition; a table's own number is returned unchanged. */
  tableOf(number: number): number {
    return this.partitions.size === 0 ? number : (this.partitions.get(number) ?? number);
  }

  /** Every pod once. */
  executors(): readonly TickMember[] {
    return this.distinct;
  }
}
