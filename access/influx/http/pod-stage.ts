// The pod's admission stage for HTTP exchanges. A write that has waited for too long is refused with a status after which
// clients send it again; a query says so in its result.

import type { AdmitResult, PodAdmission, PodRequest } from '../../../contracts/pod-admission.ts';
import type { Clock } from '../../../universal-row/environment.ts';
import { QueryError } from '../influxql/result.ts';
import type { QueryTask } from '../statements/query-registry.ts';
import type { Exchange } from './exchange.ts';
import { HttpError } from './http-error.ts';
import { untilLetIn } from './waiting.ts';

/** Seconds after which clients may try again. */
const retryAfter = 1;

export class ExchangeRequest implements PodRequest {
  readonly tenant: number;
  readonly kind: 'read' | 'write';
  readonly database: string;
  readonly isLarge: boolean;
  debited = 0;
  /** Of `admit`, kept by the stage. */
  result: AdmitResult = 'admitted';
  ended: ((isAdmitted: boolean) => void) | undefined;

  constructor(tenant: number, kind: 'read' | 'write', database: string, isLarge: boolean) {
    this.tenant = tenant;
    this.kind = kind;
    this.database = database;
    this.isLarge = isLarge;
  }

  resume(isAdmitted: boolean): void {
    this.ended?.(isAdmitted);
  }
}

export class PodStage {
  readonly #pod: PodAdmission;
  readonly #clock: Clock;

  constructor(pod: PodAdmission, clock: Clock) {
    this.#pod = pod;
    this.#clock = clock;
  }

  /** Whether it is admitted at once; if not `write` or `query` is to follow. */
  admit(exchange: Exchange, request: ExchangeRequest): boolean {
    request.result = this.#pod.admit(request, this.#clock.monotonic());
    exchange.settleAdmission = (units) => this.#pod.charge(request, units, this.#clock.monotonic());
    return request.result === 'admitted';
  }

  /** Waits until it is admitted. Throws the `HttpError` it is refused with; `ClientGone`. */
  async write(exchange: Exchange, request: ExchangeRequest): Promise<void> {
    exchange.isRefused = true;
    if (!(await this.#wait(exchange, request))) throw refusal(exchange.isV2);
    exchange.isRefused = false;
  }

  /** As `write`. What keeps it from being run is thrown as `QueryError`. */
  async query(exchange: Exchange, request: ExchangeRequest, task: QueryTask): Promise<void> {
    exchange.isRefused = true;
    if (!(await this.#wait(exchange, request, task))) {
      throw new QueryError('timeout: the server has more to do than it can');
    }
    exchange.isRefused = false;
  }

  /** Resolves to whether it was admitted. */
  #wait(exchange: Exchange, request: ExchangeRequest, task?: QueryTask): Promise<boolean> {
    const enter = (ended: (isAdmitted: boolean) => void): boolean => {
      request.ended = ended;
      return request.result === 'queued';
    };
    return untilLetIn(exchange, { enter, leave: () => this.#pod.leave(request) }, task);
  }
}

/** 5xx with the word `timeout` over 1.x, whose clients throw away what any 4xx answers. */
function refusal(isV2: boolean): HttpError {
  const text = 'the server has more to do than it can';
  return new HttpError(isV2 ? 503 : 500, isV2 ? text : `timeout: ${text}`, {
    headers: { 'Retry-After': String(retryAfter) },
  });
}
