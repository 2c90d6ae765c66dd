// The pod's admission stage as HTTP exchanges meet it: `admitWrite` or `admitQuery`, then `charge` on the request that was
// admitted. An exchange waits once at most, in the admission queue or in the CPU scheduler. A write that has waited for
// too long is refused with a status after which clients send it again; a query fails in its result.

import {
  type AdmitResult,
  largeWorkBytes,
  type PodAdmission,
  type PodRequest,
} from '../../../contracts/pod-admission.ts';
import type { Clock } from '../../../universal-row/environment.ts';
import type { AdmittedRequest, Exchange } from '../http/exchange.ts';
import { HttpError } from '../http/http-error.ts';
import { QueryError } from '../influxql/result.ts';
import type { QueryTask } from '../statements/query-registry.ts';
import { untilAdmitted } from './queued-exchange.ts';

/** Seconds after which clients may try again. */
const retryAfter = 1;

class ExchangeRequest implements PodRequest, AdmittedRequest {
  readonly tenant: number;
  readonly kind: 'read' | 'write';
  readonly database: string;
  readonly isLarge: boolean;
  debited = 0;
  readonly #stage: PodStage;
  #ended: ((isAdmitted: boolean) => void) | undefined;

  constructor(
    stage: PodStage,
    { caller, bodyLength }: Exchange,
    kind: 'read' | 'write',
    database: string,
  ) {
    this.#stage = stage;
    this.tenant = caller!.space.number;
    this.kind = kind;
    this.database = database;
    this.isLarge = kind === 'write' && bodyLength > largeWorkBytes;
  }

  resume(isAdmitted: boolean): void {
    this.#ended?.(isAdmitted);
  }

  charge(units: number): void {
    this.#stage.charge(this, units);
  }

  enter(ended: (isAdmitted: boolean) => void): void {
    this.#ended = ended;
  }

  leave(): boolean {
    return this.#stage.leave(this);
  }
}

export class PodStage {
  readonly #pod: PodAdmission;
  readonly #clock: Clock;

  constructor(pod: PodAdmission, clock: Clock) {
    this.#pod = pod;
    this.#clock = clock;
  }

  /**
   * Undefined when the write is admitted at once, or resolves when it is. Rejects with the `HttpError` it is refused
   * with, or with `ClientGone`.
   */
  admitWrite(exchange: Exchange, database: string): Promise<void> | undefined {
    const request = new ExchangeRequest(this, exchange, 'write', database);
    const result = this.#admit(exchange, request);
    if (result === 'admitted') return undefined;
    return this.#queue(exchange, request, result, () => refusal(exchange.isV2));
  }

  /** As `admitWrite`. Rejects with the `QueryError` that it is answered with. */
  admitQuery(exchange: Exchange, database: string, task: QueryTask): Promise<void> | undefined {
    const request = new ExchangeRequest(this, exchange, 'read', database);
    const result = this.#admit(exchange, request);
    if (result === 'admitted') return undefined;
    const failure = (): QueryError =>
      new QueryError('timeout: the server has more to do than it can');
    return this.#queue(exchange, request, result, failure, task);
  }

  #admit(exchange: Exchange, request: ExchangeRequest): AdmitResult {
    exchange.podRequest = request;
    return this.#pod.admit(request, this.#clock.monotonic());
  }

  async #queue(
    exchange: Exchange,
    request: ExchangeRequest,
    result: AdmitResult,
    failure: () => Error,
    task?: QueryTask,
  ): Promise<void> {
    exchange.isRefused = true;
    const isAdmitted = result === 'queued' && (await untilAdmitted(exchange, request, task));
    if (!isAdmitted) throw failure();
    exchange.isRefused = false;
  }

  /** The exchange is over and has cost so many request units. */
  charge(request: PodRequest, units: number): void {
    this.#pod.charge(request, units, this.#clock.monotonic());
  }

  /** Takes a request out of the queue. Whether it was still in it. */
  leave(request: PodRequest): boolean {
    return this.#pod.leave(request);
  }
}

/** 5xx with the word `timeout` over 1.x, whose clients drop the points after any 4xx. */
function refusal(isV2: boolean): HttpError {
  const text = 'the server has more to do than it can';
  return new HttpError(isV2 ? 503 : 500, isV2 ? text : `timeout: ${text}`, {
    headers: { 'Retry-After': String(retryAfter) },
  });
}
