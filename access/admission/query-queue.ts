// Queries of a tenant that wait on a gateway until it has units for them, in the order they came (X-Stor, section 5.2).

import { AccumulatedUnits } from './accumulated-units.ts';

export interface WaitingQuery {
  /** Estimated request units. */
  cost: number;
  /** Monotonic milliseconds, as the next one. */
  arrivedAt: number;
  /** When its client gives up. */
  deadline: number;
}

interface QueryQueueOptions {
  /** Queries that may wait. */
  length: number;
}

const queryQueueDefaults: QueryQueueOptions = { length: 1000 };

/** Run it at once, it is queued, or it is refused. */
export type QueryAnswer = 'run' | 'wait' | 'full';

export class QueryQueue<Q extends WaitingQuery> {
  readonly units: AccumulatedUnits;
  /** May change while queries wait. */
  readonly options: QueryQueueOptions;
  readonly #waiting: Q[] = [];

  constructor(options: Partial<QueryQueueOptions> = {}, units = new AccumulatedUnits()) {
    this.options = { ...queryQueueDefaults, ...options };
    this.units = units;
  }

  get length(): number {
    return this.#waiting.length;
  }

  head(): Q | undefined {
    return this.#waiting[0];
  }

  /**
   * `mostUnits` is the most the tenant can accumulate: a query that costs more runs when there are
   * that many.
   */
  arrive(query: Q, mostUnits: number): QueryAnswer {
    if (this.#waiting.length === 0 && this.#takeFor(query, mostUnits)) return 'run';
    if (this.#waiting.length >= this.options.length) return 'full';
    this.#waiting.push(query);
    return 'wait';
  }

  /** The head, if there are units for it now: it is to be run. */
  next(mostUnits: number): Q | undefined {
    const head = this.#waiting[0];
    if (head === undefined || !this.#takeFor(head, mostUnits)) return undefined;
    return this.#waiting.shift();
  }

  /** Its client has gone. */
  remove(query: Q): boolean {
    const at = this.#waiting.indexOf(query);
    if (at < 0) return false;
    this.#waiting.splice(at, 1);
    return true;
  }

  /** Takes out those whose clients have given up. */
  expire(now: number): Q[] {
    const expired = this.#waiting.filter((query) => query.deadline <= now);
    for (const query of expired) this.remove(query);
    return expired;
  }

  #takeFor(query: Q, mostUnits: number): boolean {
    if (query.cost <= mostUnits) return this.units.spend(query.cost);
    // The cost exceeds the maximum balance: the query runs at that balance, and the rest becomes debt.
    if (this.units.balance < mostUnits * (1 - 1e-9)) return false;
    this.units.settle(query.cost);
    return true;
  }
}
