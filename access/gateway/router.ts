// Where a table's rows are: which executor answers for it.

import type { RowPricer } from '../../request-units/row-pricer.ts';
import type { QuotaMode } from '../../contracts/table-properties.ts';
import type { Executor } from '../../universal-row/executor.ts';

export interface Route {
  executor: Executor;
  /** The executor may answer later than in the same tick. */
  mayWait: boolean;
  /** What its work costs; absent where nobody asks. */
  pricer?: RowPricer | undefined;
  /** Absent: as it is set for the server. */
  quotaMode?: QuotaMode | undefined;
}

// Up to here tables are looked up in an array; there are many more of which few have a way of their own.
const nearTables = 4096;

export class Router {
  private readonly near: Route[] = [];
  private readonly far = new Map<number, Route>();
  private usual: Route | undefined;
  private distinct: Executor[] = [];

  /** All tables go the usual way but those in `exceptions`. */
  set(usual: Route, exceptions: ReadonlyMap<number, Route> = new Map()): void {
    this.usual = usual;
    this.far.clear();
    for (let table = 0; table < nearTables; table++) this.near[table] = usual;
    for (const [table, route] of exceptions) {
      if (table < nearTables) this.near[table] = route;
      else this.far.set(table, route);
    }
    const routes = [usual, ...exceptions.values()];
    this.distinct = [...new Set(routes.map((route) => route.executor))];
  }

  to(table: number): Route {
    const route = table < nearTables ? this.near[table] : (this.far.get(table) ?? this.usual);
    if (route === undefined) throw new RangeError(`no table ${table}`);
    return route;
  }

  /** Every executor once. */
  executors(): readonly Executor[] {
    return this.distinct;
  }
}
