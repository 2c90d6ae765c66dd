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

export interface QueryQueueOptions {
  /** Queries that may wait. */
  length: number;
  /** One that costs more than could ever be there: refused, or run when nothing more can be saved up. */
  strict: boolean;
}

export const queryQueueDefaults: QueryQueueOptions = { length: 1000, strict: false };

/** `run` at once, `wait` in line, or not at all. */
export type QueryAnswer = 'run' | 'wait' | 'full' | 'too dear';

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
   * `mostUnits` is what can ever be there for the tenant: a query that costs more runs when there is so much.
   * `mostInPool` is what its gateways could hold together.
   */
  arrive(query: Q, mostUnits: number, mostInPool = mostUnits): QueryAnswer {
    if (this.options.strict && query.cost > mostInPool) return 'too dear';
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

  /** Units that the head lacks. */
  lack(mostUnits: number): number {
    const head = this.#waiting[0];
    return head === undefined ? 0 : Math.min(head.cost, mostUnits) - this.units.balance;
  }

  #takeFor(query: Q, mostUnits: number): boolean {
    if (query.cost <= mostUnits) return this.units.spend(query.cost);
    // There will never be enough: it runs on all that can be saved, and the rest is owed.
    if (this.units.balance < mostUnits * (1 - 1e-9)) return false;
    this.units.settle(query.cost);
    return true;
  }
}

/**
 * Once a second: who has waited longest on any gateway gets what he lacks from the gateways that have most. Returns
 * the units that moved.
 */
export function lendUnits<Q extends WaitingQuery>(
  queues: readonly QueryQueue<Q>[],
  mostUnits: number,
): number {
  const needy = queues.filter((queue) => queue.lack(mostUnits) > 0);
  needy.sort((a, b) => a.head()!.arrivedAt - b.head()!.arrivedAt);
  let moved = 0;
  for (const queue of needy) {
    let lack = queue.lack(mostUnits);
    // Whoever waits himself has nothing to give: he comes next.
    const donors = queues.filter((other) => other !== queue && other.length === 0);
    donors.sort((a, b) => b.units.balance - a.units.balance);
    for (const donor of donors) {
      if (lack <= 0) break;
      const lent = donor.units.giveUp(lack);
      queue.units.receive(lent);
      lack -= lent;
      moved += lent;
    }
  }
  return moved;
}
