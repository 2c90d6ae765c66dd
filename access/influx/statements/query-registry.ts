// The queries that run, as SHOW QUERIES lists and KILL QUERY ends them.

import type { Clock } from '../../../universal-row/environment.ts';
import { QueryError } from '../influxql/result.ts';

interface QueryRegistryOptions {
  clock: Clock;
  /** Queries at once; 0 for any number. */
  maxConcurrent: number;
}

/** One running query. Its runner calls `throwIfKilled` between two slices of work. */
export interface QueryTask {
  readonly id: number;
  readonly text: string;
  /** '' when the request named none. */
  readonly database: string;
  /** Name of the user; '' without authentication. */
  readonly user: string;
  readonly killed: boolean;
  /** Error of the query, or its future error once it was cancelled. */
  readonly reason: string | undefined;
  /** The query is not admitted yet: see `wait`. */
  readonly waiting: boolean;
  /** How long it has run, or waited. */
  elapsedMs(): number;
  /** Marks the query as waiting, until `begin`. */
  wait(): void;
  begin(): void;
  /** Makes it fail with that message at its next look; InfluxDB's own when there is none. */
  cancel(reason?: string): void;
  /** Throws `QueryError` once it was cancelled. */
  throwIfKilled(): void;
  /** Calls back when it is cancelled, at once if it already was. */
  whenKilled(then: () => void): void;
  /** Removes the query, successful or not. */
  end(): void;
}

export class QueryRegistry {
  readonly #options: QueryRegistryOptions;
  readonly #tasks = new Map<number, RegisteredQuery>();
  #lastId = 0;
  /** Since the start. */
  executed = 0;
  finished = 0;

  constructor(options: QueryRegistryOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#tasks.size;
  }

  /** Throws `QueryError` when too many are running. */
  start(text: string, database: string, user = ''): QueryTask {
    const { clock, maxConcurrent } = this.#options;
    if (maxConcurrent > 0 && this.#tasks.size >= maxConcurrent) {
      const running = this.#tasks.size;
      throw new QueryError(`max-concurrent-queries limit exceeded(${running}, ${maxConcurrent})`);
    }
    const task = new RegisteredQuery(++this.#lastId, { text, database, user }, clock, (ended) => {
      if (this.#tasks.delete(ended.id)) this.finished++;
    });
    this.#tasks.set(task.id, task);
    this.executed++;
    return task;
  }

  /** In the order in which they were started. */
  list(): readonly QueryTask[] {
    return [...this.#tasks.values()];
  }

  /** Throws `QueryError` when there is none of that number. */
  kill(id: number): void {
    const task = this.#tasks.get(id);
    if (task === undefined) throw new QueryError(`no such query id: ${id}`);
    task.cancel();
  }
}

class RegisteredQuery implements QueryTask {
  readonly id: number;
  readonly text: string;
  readonly database: string;
  readonly user: string;
  readonly #clock: Clock;
  #startedAt: number;
  readonly #ended: (task: RegisteredQuery) => void;
  reason: string | undefined;
  waiting = false;
  #listeners: (() => void)[] = [];

  constructor(
    id: number,
    asked: { text: string; database: string; user: string },
    clock: Clock,
    ended: (task: RegisteredQuery) => void,
  ) {
    this.id = id;
    this.text = asked.text;
    this.database = asked.database;
    this.user = asked.user;
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
    this.#ended = ended;
  }

  get killed(): boolean {
    return this.reason !== undefined;
  }

  wait(): void {
    this.waiting = true;
  }

  begin(): void {
    this.waiting = false;
    this.#startedAt = this.#clock.monotonic();
  }

  elapsedMs(): number {
    return this.#clock.monotonic() - this.#startedAt;
  }

  cancel(reason = 'query interrupted'): void {
    if (this.reason !== undefined) return;
    this.reason = reason;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const then of listeners) then();
  }

  throwIfKilled(): void {
    if (this.reason !== undefined) throw new QueryError(this.reason);
  }

  whenKilled(then: () => void): void {
    if (this.killed) then();
    else this.#listeners.push(then);
  }

  end(): void {
    this.#listeners = [];
    this.#ended(this);
  }
}
