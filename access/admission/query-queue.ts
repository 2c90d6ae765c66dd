// Queue of a tenant's queries that wait on a gateway for request units, first in, first out (X-Stor, section 5.2).

import { AccumulatedUnits } from './accumulated-units.ts';

export interface WaitingQuery {
  /** Estimated request units. */
  cost: number;
  /** Monotonic milliseconds, as `deadline`. */
  arrivedAt: number;
  /** Time at which the client stops waiting. */
  deadline: number;
}

interface QueryQueueOptions {
  /** Queries that may wait. */
  length: number;
}

const queryQueueDefaults: QueryQueueOptions = { length: 1000 };

/**
 * Outcome of an arrival: the query runs at once (`run`), is queued (`wait`), or is refused because the queue is full
 * (`full`).
 */
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

  /** Removes and returns the head of the queue if there are enough units for it now; otherwise undefined. */
  next(mostUnits: number): Q | undefined {
    const head = this.#waiting[0];
    if (head === undefined || !this.#takeFor(head, mostUnits)) return undefined;
    return this.#waiting.shift();
  }

  /** Removes a query from the queue. Returns false if the query is not queued. */
  remove(query: Q): boolean {
    const at = this.#waiting.indexOf(query);
    if (at < 0) return false;
    this.#waiting.splice(at, 1);
    return true;
  }

  /** Removes and returns the queries whose deadline has passed. */
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
