// Requests that wait before the pod, while it has more to do than it can. Writes that have waited too long are
// refused in the words after which clients send them again; queries say so in their result.

import type { Clock } from '../../../universal-row/environment.ts';
import type { Entrance, Guest } from '../../../contracts/entrance.ts';
import { QueryError } from '../influxql/result.ts';
import type { QueryTask } from '../statements/query-registry.ts';
import type { Exchange } from './exchange.ts';
import { HttpError } from './http-error.ts';
import { untilLetIn } from './waiting.ts';

/** Seconds after which clients may try again. */
const retryAfter = 1;

export class InfluxEntrance {
  readonly #entrance: Entrance;
  readonly #clock: Clock;

  constructor(entrance: Entrance, clock: Clock) {
    this.#entrance = entrance;
    this.#clock = clock;
  }

  get isWatched(): boolean {
    return this.#entrance.isWatched;
  }

  /** Writes need not ask. */
  get isCalm(): boolean {
    return this.#entrance.isCalm;
  }

  /** Whether the request was let in at once; if not it is to `write` or `query`. */
  mayBegin(exchange: Exchange, guest: Guest): boolean {
    if (!this.#entrance.mayBegin(guest, this.#clock.monotonic())) return false;
    this.#settles(exchange, guest);
    return true;
  }

  /** Waits. Throws the `HttpError` it is refused with; `ClientGone`. */
  async write(exchange: Exchange, guest: Guest): Promise<void> {
    exchange.isRefused = true;
    if (!(await this.#turn(exchange, guest))) throw refusal(exchange.isV2);
    exchange.isRefused = false;
  }

  /** As `write`. What keeps it from being run is thrown as `QueryError`. */
  async query(exchange: Exchange, guest: Guest, task: QueryTask): Promise<void> {
    exchange.isRefused = true;
    if (!(await this.#turn(exchange, guest, task))) {
      throw new QueryError('timeout: the server has more to do than it can');
    }
    exchange.isRefused = false;
  }

  /** Resolves to whether it was let in. */
  #turn(exchange: Exchange, guest: Guest, task?: QueryTask): Promise<boolean> {
    const enter = (ended: (letIn: boolean) => void): boolean => {
      guest.end = (letIn) => {
        if (letIn) this.#settles(exchange, guest);
        ended(letIn);
      };
      return this.#entrance.wait(guest, this.#clock.monotonic());
    };
    return untilLetIn(exchange, { enter, leave: () => this.#entrance.leave(guest) }, task);
  }

  #settles(exchange: Exchange, guest: Guest): void {
    exchange.settleAdmission = (units) =>
      this.#entrance.settle(guest, units, this.#clock.monotonic());
  }
}

export function guestOf(tenant: number, database: string, isWrite: boolean): Guest {
  return { tenant, database, isWrite, taken: 0, end: () => {} };
}

/** 5xx with the word `timeout` over 1.x, whose clients throw away what any 4xx answers. */
function refusal(isV2: boolean): HttpError {
  const text = 'the server has more to do than it can';
  return new HttpError(isV2 ? 503 : 500, isV2 ? text : `timeout: ${text}`, {
    headers: { 'Retry-After': String(retryAfter) },
  });
}
