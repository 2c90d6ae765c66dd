// Admission of one tenant's queries. The estimated cost of a query is debited from the units unspent in the last minute; a
// query that lacks units is queued (X-Stor, section 5.2). A query is refused only if the queue is full or its deadline
// passes.

import type { AdmissionRules } from './admission-rules.ts';
import type { QueryAnswer, QueryQueue, WaitingQuery } from './query-queue.ts';

/** A queued query. */
export interface LimitedQuery extends WaitingQuery {
  /** Ends the wait: the query is admitted, or its time is up. `cost` is then the debited amount. */
  end(admitted: boolean): void;
}

interface QueryCounters {
  /** Queries that were admitted, at once or later. */
  admitted: number;
  /**
   * Queries that waited, and their waiting time in milliseconds, including queries rejected or
   * abandoned.
   */
  waited: number;
  waitedMs: number;
  /** The queue was full, or their time was up. */
  refused: number;
  /** In a dry run: queries that would have waited. */
  wouldWait: number;
}

/** Services a queue needs from its limiter. */
export interface QueryLimiterHost {
  readonly rules: AdmissionRules;
  readonly queries: QueryQueue<LimitedQuery>;
  /** Units a second. */
  readonly quota: { readonly perSecond: number };
  /** Accumulates unspent units for queries. */
  collect(now: number): void;
  /** A query waits: the queue is to be served from time to time. */
  wakeQueries(): void;
}

export class QueryLimiter {
  readonly counters: QueryCounters = {
    admitted: 0,
    waited: 0,
    waitedMs: 0,
    refused: 0,
    wouldWait: 0,
  };
  readonly #limiter: QueryLimiterHost;

  constructor(limiter: QueryLimiterHost) {
    this.#limiter = limiter;
  }

  get waiting(): number {
    return this.#limiter.queries.length;
  }

  /** Most units that can be accumulated. */
  get #mostUnits(): number {
    const { queries, quota } = this.#limiter;
    return queries.units.limit(quota.perSecond);
  }

  /**
   * Admits, queues or refuses a query. After `run` and `wait` the caller calls `settleQuery` of the limiter and `end`;
   * after a refusal, neither.
   */
  arrive(query: LimitedQuery, now: number): QueryAnswer {
    const limiter = this.#limiter;
    const { queries, rules } = limiter;
    limiter.collect(now);
    if (rules.dryRun) {
      if (!queries.units.spend(query.cost)) {
        this.counters.wouldWait++;
        queries.units.settle(query.cost);
      }
      this.counters.admitted++;
      return 'run';
    }
    const answer = queries.arrive(query, this.#mostUnits);
    if (answer === 'wait') limiter.wakeQueries();
    else if (answer === 'run') this.counters.admitted++;
    else this.counters.refused++;
    return answer;
  }

  /**
   * Admits a query that must not wait because it unblocks the queue; the units it lacks become
   * debt.
   */
  pass(query: LimitedQuery): void {
    this.#limiter.queries.units.settle(query.cost);
    this.counters.admitted++;
  }

  /** Removes a waiting query whose client disconnected or that was killed. Returns whether the query was waiting. */
  leave(query: LimitedQuery, now: number): boolean {
    if (!this.#limiter.queries.remove(query)) return false;
    this.#hasWaited(query, now);
    return true;
  }

  /** Refuses queries whose deadline has passed, and admits queries from the head of the queue while there are units. */
  serve(now: number): void {
    const { queries } = this.#limiter;
    if (queries.length === 0) return;
    this.#limiter.collect(now);
    for (const late of queries.expire(now)) {
      this.counters.refused++;
      this.#hasWaited(late, now);
      late.end(false);
    }
    const mostUnits = this.#mostUnits;
    for (let next = queries.next(mostUnits); next !== undefined; next = queries.next(mostUnits)) {
      this.#letIn(next, now);
    }
  }

  /** Admits all waiting queries, because the limit was removed. */
  release(now: number): void {
    for (let head = this.#limiter.queries.head(); head !== undefined; ) {
      this.#limiter.queries.remove(head);
      // No units were debited for this query.
      head.cost = 0;
      this.#letIn(head, now);
      head = this.#limiter.queries.head();
    }
  }

  #letIn(query: LimitedQuery, now: number): void {
    this.counters.admitted++;
    this.#hasWaited(query, now);
    query.end(true);
  }

  #hasWaited({ arrivedAt }: LimitedQuery, now: number): void {
    this.counters.waited++;
    this.counters.waitedMs += now - arrivedAt;
  }
}
