// Queries of one tenant at its gate: they take what they are expected to cost from what the last minute left over, or
// wait in line for it (X-Stor, section 5.2). None is refused for want of units as long as it may wait.

import type { AdmissionRules } from './gateway-admission.ts';
import type { QueryAnswer, QueryQueue, WaitingQuery } from './query-queue.ts';

/** A query as it waits in line. */
export interface LineQuery extends WaitingQuery {
  /** Its turn, or its time is up: it waits no more. `cost` is then what was taken for it. */
  end(admitted: boolean): void;
}

export interface LineCounters {
  /** Queries that were let in at once or later. */
  admitted: number;
  /** Those that waited, and milliseconds of it, also of those that were not let in or left. */
  waited: number;
  waitedMs: number;
  /** There were too many in line, or their time was up, or they cost more than could ever be saved. */
  refused: number;
  /** Where nothing is enforced: those that would have waited. */
  wouldWait: number;
}

/** What a line has of its gate. */
export interface LineGate {
  readonly rules: AdmissionRules;
  readonly queries: QueryQueue<LineQuery>;
  /** Units a second. */
  readonly quota: { readonly perSecond: number };
  /** Puts what nobody wants any more to what queries live on. */
  collect(now: number): void;
  /** Somebody waits: the line is to be served from time to time. */
  wakeLine(): void;
}

export class QueryLine {
  readonly counters: LineCounters = {
    admitted: 0,
    waited: 0,
    waitedMs: 0,
    refused: 0,
    wouldWait: 0,
  };
  readonly #gate: LineGate;

  constructor(gate: LineGate) {
    this.#gate = gate;
  }

  get waiting(): number {
    return this.#gate.queries.length;
  }

  /** Most units that can be accumulated. */
  get #mostUnits(): number {
    const { queries, quota } = this.#gate;
    return queries.units.limit(quota.perSecond);
  }

  /** `run` and `wait` are followed by `settleQuery` of the gate and by `end`; the others by nothing. */
  arrive(query: LineQuery, now: number): QueryAnswer {
    const gate = this.#gate;
    const { queries, rules } = gate;
    gate.collect(now);
    if (rules.dryRun) {
      if (!queries.units.spend(query.cost)) {
        this.counters.wouldWait++;
        queries.units.settle(query.cost);
      }
      this.counters.admitted++;
      return 'run';
    }
    const answer = queries.arrive(query, this.#mostUnits);
    if (answer === 'wait') gate.wakeLine();
    else if (answer === 'run') this.counters.admitted++;
    else this.counters.refused++;
    return answer;
  }

  /** What must not wait, as it helps others out of the line: it owes what is not there. */
  pass(query: LineQuery): void {
    this.#gate.queries.units.settle(query.cost);
    this.counters.admitted++;
  }

  /** Its client has gone, or somebody ended it. */
  leave(query: LineQuery, now: number): boolean {
    if (!this.#gate.queries.remove(query)) return false;
    this.#hasWaited(query, now);
    return true;
  }

  /** Ends those whose time is up, and lets in those at the head for which there are units now. */
  serve(now: number): void {
    const { queries } = this.#gate;
    if (queries.length === 0) return;
    this.#gate.collect(now);
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

  /** Lets all of them in: nothing is limited any more. */
  release(now: number): void {
    for (let head = this.#gate.queries.head(); head !== undefined; ) {
      this.#gate.queries.remove(head);
      // Nothing was taken for it.
      head.cost = 0;
      this.#letIn(head, now);
      head = this.#gate.queries.head();
    }
  }

  #letIn(query: LineQuery, now: number): void {
    this.counters.admitted++;
    this.#hasWaited(query, now);
    query.end(true);
  }

  #hasWaited({ arrivedAt }: LineQuery, now: number): void {
    this.counters.waited++;
    this.counters.waitedMs += now - arrivedAt;
  }
}
