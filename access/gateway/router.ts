// Where a table's rows are: which executor answers for it.

import type { Executor } from '../../universal-row/executor.ts';

export interface Route {
  executor: Executor;
  /** The executor may answer later than in the same tick. */
  mayWait: boolean;
}

export class Router {
  private routes: Route[] = [];
  private distinct: Executor[] = [];

  /** `routes[n]` is the way to table n. */
  set(routes: readonly Route[]): void {
    this.routes = [...routes];
    this.distinct = [...new Set(routes.map((route) => route.executor))];
  }

  get tableCount(): number {
    return this.routes.length;
  }

  to(table: number): Route {
    const route = this.routes[table];
    if (route === undefined) throw new RangeError(`no table ${table}`);
    return route;
  }

  /** The tables that an executor answers for, ascending. */
  tablesOf(executor: Executor): number[] {
    const tables: number[] = [];
    this.routes.forEach((route, table) => {
      if (route.executor === executor) tables.push(table);
    });
    return tables;
  }

  /** Every executor once. */
  executors(): readonly Executor[] {
    return this.distinct;
  }
}
