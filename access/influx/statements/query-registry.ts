// The queries that run, as SHOW QUERIES lists and KILL QUERY ends them: in a cluster those at all nodes. The ids that clients
// see have the number of the node above 32 bits.

import type { Clock } from '../../../universal-row/environment.ts';
import { clientOfNode, numberAtNode } from '../../../universal-row/command.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import { awaited, type Slices } from '../../../universal-row/slices.ts';
import { QueryError } from '../influxql/result.ts';

/** As SHOW QUERIES shows it. */
export interface ShownQuery {
  readonly id: number;
  readonly text: string;
  readonly database: string;
  readonly user: string;
  readonly elapsedMs: number;
  readonly status: 'running' | 'waiting' | 'killed';
}

/** The other nodes of a cluster. */
export interface QueriesElsewhere {
  /** Number of this node. */
  readonly node: number;
  /** The queries at other nodes; those that do not answer in time are left out. */
  list(): Promise<readonly ShownQuery[]>;
  /** False where the node of the query does not have it. */
  kill(id: number): Promise<boolean>;
}

interface QueryRegistryOptions {
  clock: Clock;
  /** Queries at once; 0 for any number. */
  maxConcurrent: number;
  elsewhere?: QueriesElsewhere | undefined;
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
  /** Makes the query fail with this message at its next check; by default with InfluxDB's own message. */
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

  /** Queries at this node. */
  shownHere(): ShownQuery[] {
    return this.list().map((task) => ({
      id: clientOfNode(this.#node, task.id),
      text: task.text,
      database: task.database,
      user: task.user,
      elapsedMs: task.elapsedMs(),
      status: task.killed ? 'killed' : task.waiting ? 'waiting' : 'running',
    }));
  }

  /** Those at all nodes, of this one first. */
  *shown(): Slices<readonly ShownQuery[]> {
    const here = this.shownHere();
    const { elsewhere } = this.#options;
    if (elsewhere === undefined) return here;
    return [...here, ...(yield* awaited(elsewhere.list()))];
  }

  /** Returns false when this node has no query with this number. */
  killHere(id: number): boolean {
    const task = this.#tasks.get(numberAtNode(id, this.#node) ?? -1);
    task?.cancel();
    return task !== undefined;
  }

  /** Kills a query at any node. Throws, or rejects with, `QueryError` when no query has this number. */
  kill(id: number): MaybePromise<void> {
    if (this.killHere(id)) return;
    const none = new QueryError(`no such query id: ${id}`);
    const { elsewhere } = this.#options;
    if (elsewhere === undefined) throw none;
    return elsewhere.kill(id).then((isKilled) => {
      if (!isKilled) throw none;
    });
  }

  get #node(): number {
    return this.#options.elsewhere?.node ?? 0;
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
