// The gateway's admission stage for HTTP exchanges: `admitWrite` or `admitQuery`, then `charge` on
// the admitted request. A write is admitted before its body is read: over its quota it waits once,
// with the socket unread, and is then refused in a form that makes clients retry. A query is
// debited the mean cost of its kind from the unspent units of its tenant's last minute, or is
// queued for them.

import { StatementHistory } from '../../../request-units/estimate.ts';
import type { QuotaMode } from '../../../contracts/table-properties.ts';
import type { Clock } from '../../../universal-row/environment.ts';
import type { LimiterWaiter } from '../../admission/admission-rules.ts';
import type { GatewayAdmission } from '../../admission/gateway-admission.ts';
import type { LimitedQuery } from '../../admission/query-limiter.ts';
import type { TenantLimiter } from '../../admission/tenant-limiter.ts';
import type { AdmittedRequest, Exchange } from '../http/exchange.ts';
import { HttpError } from '../http/http-error.ts';
import type { Statement } from '../influxql/ast.ts';
import { QueryError } from '../influxql/result.ts';
import type { QueryTask } from '../statements/query-registry.ts';
import { untilAdmitted } from './queued-exchange.ts';
import { statementKind } from './statement-kind.ts';

/** Queued writes of a tenant, each of which holds a connection; more are refused at once. */
const maxQueuedWrites = 1000;
/** Longest time in a refusal after which to try again: by then the quota may be another one. */
const longestRetrySeconds = 30;
/** A write is expensive, and debited at once, when it costs more than so many seconds of the quota. */
const expensiveSeconds = 0.01;
/** Statements that list or end queries are not queued while the tenant owes less than so many seconds of its quota. */
const controlDebtSeconds = 10;

interface QueryToAdmit {
  readonly text: string;
  readonly statements: readonly Statement[];
  readonly task: QueryTask;
  /** How long it may wait; 0 for no limit. */
  readonly timeoutMs: number;
}

export class GatewayStage {
  readonly #gateway: GatewayAdmission;
  readonly #clock: Clock;
  /** As long as a limiter lasts. */
  readonly #histories = new WeakMap<TenantLimiter, StatementHistory>();
  /** For all writes that a limiter's fast path has admitted. */
  readonly #onFastPath = new WeakMap<TenantLimiter, AdmittedRequest>();

  constructor(gateway: GatewayAdmission, clock: Clock) {
    this.#gateway = gateway;
    this.#clock = clock;
  }

  /** Whether queries of the tenant pass a limiter. */
  limitsQueries(tenant: number): boolean {
    return this.#gateway.limitsOf(tenant).isLimited;
  }

  // ---- writes

  /**
   * Undefined when the write is admitted at once, or resolves when it is. Rejects with the `HttpError` it is refused
   * with, or with `ClientGone`.
   */
  admitWrite(
    exchange: Exchange,
    tenant: number,
    modeOf: () => QuotaMode,
  ): Promise<void> | undefined {
    const { limiter } = this.#gateway.limitsOf(tenant);
    if (limiter === undefined) return undefined;
    const now = this.#clock.monotonic();
    const { writeWaitMs } = this.#gateway.rules;
    if (limiter.passCharged(now)) exchange.gatewayRequest = this.#fastPathOf(limiter);
    else if (limiter.admit(now, writeWaitMs, modeOf())) this.#hold(exchange, limiter);
    else return this.#queueWrite(exchange, limiter, now + writeWaitMs, modeOf);
    return undefined;
  }

  #fastPathOf(limiter: TenantLimiter): AdmittedRequest {
    let request = this.#onFastPath.get(limiter);
    if (request === undefined) {
      request = {
        charge: (units) => {
          if (units > expensiveSeconds * limiter.quota.perSecond)
            limiter.settle(this.#clock.monotonic());
        },
      };
      this.#onFastPath.set(limiter, request);
    }
    return request;
  }

  async #queueWrite(
    exchange: Exchange,
    limiter: TenantLimiter,
    deadline: number,
    modeOf: () => QuotaMode,
  ): Promise<void> {
    exchange.isRefused = true;
    const mayWait = this.#gateway.rules.writeWaitMs > 0 && limiter.waiting < maxQueuedWrites;
    if (!mayWait || !(await this.#untilServed(exchange, limiter, deadline, modeOf))) {
      await this.#delayRefusal(exchange);
      throw refusal(limiter, limiter.refuse(this.#clock.monotonic()), exchange.isV2);
    }
    exchange.isRefused = false;
  }

  /** Waits at a limiter. Resolves to whether the exchange was admitted. */
  #untilServed(
    exchange: Exchange,
    limiter: TenantLimiter,
    deadline: number,
    modeOf: () => QuotaMode,
    task?: QueryTask,
  ): Promise<boolean> {
    let whenEnded = (_isAdmitted: boolean): void => {};
    const waiter: LimiterWaiter = {
      deadline,
      get quotaMode() {
        return modeOf();
      },
      end: (isAdmitted) => {
        if (isAdmitted) this.#hold(exchange, limiter);
        whenEnded(isAdmitted);
      },
    };
    const enter = (ended: (isAdmitted: boolean) => void): void => {
      whenEnded = ended;
      limiter.wait(waiter, this.#clock.monotonic());
    };
    return untilAdmitted(exchange, { enter, leave: () => limiter.leave(waiter) }, task);
  }

  /** Keeps the units that were debited for the exchange until it is charged. */
  #hold(exchange: Exchange, limiter: TenantLimiter): void {
    const hold = limiter.hold();
    exchange.gatewayRequest = {
      charge: () => {
        limiter.settleHeld(hold, this.#clock.monotonic());
        this.#succeeded(exchange);
      },
    };
  }

  // ---- refusals that take as long as successes do

  #succeeded({ isRefused, startedAt, response }: Exchange): void {
    if (isRefused || response.statusCode >= 400) return;
    this.#gateway.errorDelay.succeeded(performance.now() - startedAt);
  }

  /** The exchange waits with its body unread. */
  async #delayRefusal({ startedAt }: Exchange): Promise<void> {
    const ms = this.#gateway.errorDelay.delay(performance.now() - startedAt);
    if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
  }

  // ---- queries

  /** Resolves when the query is admitted. Rejects with the `QueryError` it is answered with, or with `ClientGone`. */
  async admitQuery(exchange: Exchange, tenant: number, query: QueryToAdmit): Promise<void> {
    const { classLimiter, limiter } = this.#gateway.limitsOf(tenant);
    exchange.isRefused = true;
    if (classLimiter !== undefined && !isQueryControl(query.statements)) {
      await this.#admitWithinClass(exchange, classLimiter, query);
    }
    if (limiter !== undefined) {
      const classRequest = exchange.gatewayRequest;
      await this.#admitOnSavings(exchange, limiter, query);
      if (classRequest !== undefined) {
        exchange.gatewayRequest = bothOf(classRequest, exchange.gatewayRequest!);
      }
    }
    exchange.isRefused = false;
  }

  /** The limit that queries have of their own: in order of arrival, as long as the query may wait. */
  async #admitWithinClass(
    exchange: Exchange,
    limiter: TenantLimiter,
    { task, timeoutMs }: QueryToAdmit,
  ): Promise<void> {
    const now = this.#clock.monotonic();
    const waitMs = timeoutMs === 0 ? Infinity : timeoutMs;
    if (limiter.admit(now, waitMs)) {
      this.#hold(exchange, limiter);
      return;
    }
    const isFull = limiter.waiting >= this.#gateway.rules.queryQueueLength;
    const deadline = now + waitMs;
    if (isFull || !(await this.#untilServed(exchange, limiter, deadline, serverMode, task))) {
      await this.#delayRefusal(exchange);
      throw new QueryError(quotaText(limiter, limiter.refuse(this.#clock.monotonic()), 'query'));
    }
  }

  async #admitOnSavings(
    exchange: Exchange,
    limiter: TenantLimiter,
    { text, statements, task, timeoutMs }: QueryToAdmit,
  ): Promise<void> {
    const history = this.#historyOf(limiter);
    const kind = statementKind(text);
    const arrivedAt = this.#clock.monotonic();
    const query: LimitedQuery = {
      cost: history.expected(kind),
      arrivedAt,
      deadline: timeoutMs === 0 ? Infinity : arrivedAt + timeoutMs,
      end: () => {},
    };
    if (isQueryControl(statements) && mayOwe(limiter)) limiter.queryLimiter.pass(query);
    else await this.#queueQuery(query, exchange, limiter, task);
    exchange.gatewayRequest = {
      charge: (units) => {
        limiter.settleQuery(query.cost, units, this.#clock.monotonic());
        if (!exchange.isRefused) history.observe(kind, units);
        this.#succeeded(exchange);
      },
    };
  }

  async #queueQuery(
    query: LimitedQuery,
    exchange: Exchange,
    limiter: TenantLimiter,
    task: QueryTask,
  ): Promise<void> {
    const { name, queryLimiter } = limiter;
    const answer = queryLimiter.arrive(query, this.#clock.monotonic());
    if (answer === 'run') return;
    if (answer === 'full') {
      await this.#delayRefusal(exchange);
      throw new QueryError(`RU limit: tenant=${name}: too many queries wait already`);
    }
    const enter = (ended: (isAdmitted: boolean) => void): void => {
      query.end = ended;
    };
    const leave = (): boolean => queryLimiter.leave(query, this.#clock.monotonic());
    if (!(await untilAdmitted(exchange, { enter, leave }, task))) {
      throw new QueryError('query-timeout limit exceeded');
    }
  }

  #historyOf(limiter: TenantLimiter): StatementHistory {
    let history = this.#histories.get(limiter);
    if (history === undefined) this.#histories.set(limiter, (history = new StatementHistory()));
    return history;
  }
}

/** Whether the statements list or end queries only: operators need them when queries are queued. */
export function isQueryControl(statements: readonly Statement[]): boolean {
  return statements.every(
    (statement) =>
      statement.kind === 'killQuery' || (statement.kind === 'show' && statement.what === 'queries'),
  );
}

function mayOwe({ queries, quota }: TenantLimiter): boolean {
  return queries.units.balance > -controlDebtSeconds * quota.perSecond;
}

/** Class limiters do not borrow, whatever the mode of the database. */
const serverMode = (): QuotaMode => 'server';

/** A query that has passed two limiters. */
function bothOf(first: AdmittedRequest, second: AdmittedRequest): AdmittedRequest {
  return {
    charge: (units) => {
      first.charge(units);
      second.charge(units);
    },
  };
}

/** Converts milliseconds to whole seconds for Retry-After, with an upper limit. */
function retryAfter(ms: number): number {
  return Math.min(longestRetrySeconds, Math.ceil(ms / 1000));
}

function quotaText({ name }: TenantLimiter, afterMs: number, kind?: string): string {
  const ofKind = kind === undefined ? '' : ` kind=${kind}`;
  return `RU limit, tenant=${name}${ofKind} retry after ${retryAfter(afterMs)} s`;
}

/** Status 429 for v2. For 1.x a 500 with the word `timeout`, because those clients drop the points after any 4xx. */
function refusal(limiter: TenantLimiter, afterMs: number, isV2: boolean): HttpError {
  const text = quotaText(limiter, afterMs);
  return new HttpError(isV2 ? 429 : 500, isV2 ? text : `timeout: ${text}`, {
    headers: { 'Retry-After': String(retryAfter(afterMs)) },
  });
}
