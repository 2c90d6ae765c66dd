// Requests of tenants with a limit of request units. A write is let in before its body is read: over its quota it
// waits first, with the socket unread, and is then refused in the words after which clients send it again. A query
// takes what queries of its kind have cost from what the tenant's last minute left over, or waits in line for it.

import { StatementHistory } from '../../../request-units/estimate.ts';
import type { QuotaMode } from '../../../contracts/table-properties.ts';
import type { Clock } from '../../../universal-row/environment.ts';
import type { GatewayAdmission } from '../../admission/gateway-admission.ts';
import type { LimitedQuery } from '../../admission/query-limiter.ts';
import type { LimiterWaiter } from '../../admission/admission-rules.ts';
import type { TenantLimiter } from '../../admission/tenant-limiter.ts';
import type { Statement } from '../influxql/ast.ts';
import { QueryError } from '../influxql/result.ts';
import type { QueryTask } from '../statements/query-registry.ts';
import type { Exchange, Grant } from './exchange.ts';
import { HttpError } from './http-error.ts';
import { statementKind } from './statement-kind.ts';
import { untilLetIn } from './waiting.ts';

/** Writes of a tenant that wait; more are refused at once. Each of them holds a connection. */
const maxWaitingWrites = 1000;
/** Nobody is told to stay away for longer: by then the quota may be another one. */
const longestRetrySeconds = 30;
/** Seconds of its share that a write costs which is more than one among many. */
const expensiveSeconds = 0.01;
/** What tells of queries, or ends them, may owe so many seconds of the share before it has to wait like others. */
const helpersMayOweSeconds = 10;

export interface QueryAsked {
  readonly text: string;
  readonly statements: readonly Statement[];
  readonly task: QueryTask;
  /** How long it may wait; 0 for no limit. */
  readonly timeoutMs: number;
}

export class InfluxAdmission {
  readonly #gateway: GatewayAdmission;
  readonly #clock: Clock;
  /** As long as a limiter lasts. */
  readonly #histories = new WeakMap<TenantLimiter, StatementHistory>();
  /** Of all writes that passed a limiter unseen. */
  readonly #passages = new WeakMap<TenantLimiter, Grant>();

  constructor(gateway: GatewayAdmission, clock: Clock) {
    this.#gateway = gateway;
    this.#clock = clock;
  }

  /** Undefined for a tenant without a limit. */
  limiterOf(tenant: number): TenantLimiter | undefined {
    return this.#gateway.limiterOf(tenant);
  }

  // ---- writes

  /** Lets a write in that need not be looked at by itself, as there is plenty; if not it is to `write`. */
  passes(exchange: Exchange, limiter: TenantLimiter): boolean {
    if (!limiter.passCharged(this.#clock.monotonic())) return false;
    exchange.grant = this.#passageOf(limiter);
    return true;
  }

  #passageOf(limiter: TenantLimiter): Grant {
    let passage = this.#passages.get(limiter);
    if (passage === undefined) {
      passage = {
        settle: (units) => {
          // A dear one is owed from now on, and not only when it is looked again.
          if (units > expensiveSeconds * limiter.quota.perSecond)
            limiter.settle(this.#clock.monotonic());
        },
      };
      this.#passages.set(limiter, passage);
    }
    return passage;
  }

  /** Lets it in, now or later. Throws the `HttpError` it is refused with; `ClientGone`. */
  async write(exchange: Exchange, limiter: TenantLimiter, modeOf: () => QuotaMode): Promise<void> {
    const { writeWaitMs } = this.#gateway.rules;
    const now = this.#clock.monotonic();
    if (limiter.admit(now, writeWaitMs, modeOf())) {
      this.#hold(exchange, limiter);
      return;
    }
    exchange.isRefused = true;
    const mayWait = writeWaitMs > 0 && limiter.waiting < maxWaitingWrites;
    const isIn = mayWait && (await this.#turn(exchange, limiter, now + writeWaitMs, modeOf));
    if (!isIn) {
      await this.#delayed(exchange);
      throw refusal(limiter, limiter.refuse(this.#clock.monotonic()), exchange.isV2);
    }
    exchange.isRefused = false;
  }

  /** Waits in line. Resolves to whether it was let in. */
  #turn(
    exchange: Exchange,
    limiter: TenantLimiter,
    deadline: number,
    modeOf: () => QuotaMode,
    task?: QueryTask,
  ): Promise<boolean> {
    let whenEnded = (_letIn: boolean): void => {};
    const waiter: LimiterWaiter = {
      deadline,
      get quotaMode() {
        return modeOf();
      },
      end: (admitted) => {
        if (admitted) this.#hold(exchange, limiter);
        whenEnded(admitted);
      },
    };
    const enter = (ended: (letIn: boolean) => void): boolean => {
      whenEnded = ended;
      limiter.wait(waiter, this.#clock.monotonic());
      return true;
    };
    return untilLetIn(exchange, { enter, leave: () => limiter.leave(waiter) }, task);
  }

  #hold(exchange: Exchange, limiter: TenantLimiter): void {
    const hold = limiter.hold();
    exchange.grant = {
      settle: () => {
        limiter.settleHeld(hold, this.#clock.monotonic());
        this.#succeeded(exchange);
      },
    };
  }

  // ---- refusals that take as long as successes do

  #succeeded({ isRefused, startedAt, response }: Exchange): void {
    const { errorDelay } = this.#gateway;
    if (!errorDelay.options.enabled || isRefused || response.statusCode >= 400) return;
    errorDelay.succeeded(performance.now() - startedAt);
  }

  /** What waits is the exchange with its body unread. */
  async #delayed({ startedAt }: Exchange): Promise<void> {
    const ms = this.#gateway.errorDelay.delay(performance.now() - startedAt);
    if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
  }

  // ---- queries

  /** One of those that the tenant's queries have to pass, if there is one. */
  queryLimiterOf(tenant: number): TenantLimiter | undefined {
    return this.limiterOf(tenant) ?? this.#gateway.classLimiterOf(tenant);
  }

  /** As `write`. What keeps it from being run is thrown as `QueryError`: it is answered as a statement that failed. */
  async query(exchange: Exchange, { tenant }: TenantLimiter, asked: QueryAsked): Promise<void> {
    exchange.isRefused = true;
    const queryGate = this.#gateway.classLimiterOf(tenant);
    if (queryGate !== undefined && !isHelper(asked.statements)) {
      await this.#queryWithinItsLimit(exchange, queryGate, asked);
    }
    const limiter = this.limiterOf(tenant);
    if (limiter !== undefined) {
      const own = exchange.grant;
      await this.#queryOnSavings(exchange, limiter, asked);
      if (own !== undefined) exchange.grant = bothOf(own, exchange.grant);
    }
    exchange.isRefused = false;
  }

  /** The limit that queries have of their own: in order, as long as it may wait. */
  async #queryWithinItsLimit(
    exchange: Exchange,
    limiter: TenantLimiter,
    { task, timeoutMs }: QueryAsked,
  ): Promise<void> {
    const now = this.#clock.monotonic();
    const waitMs = timeoutMs === 0 ? Infinity : timeoutMs;
    if (limiter.admit(now, waitMs)) {
      this.#hold(exchange, limiter);
      return;
    }
    const isFull = limiter.waiting >= this.#gateway.rules.queryQueueLength;
    if (isFull || !(await this.#turn(exchange, limiter, now + waitMs, alone, task))) {
      await this.#delayed(exchange);
      throw new QueryError(queryText(limiter, limiter.refuse(this.#clock.monotonic())));
    }
  }

  async #queryOnSavings(
    exchange: Exchange,
    limiter: TenantLimiter,
    asked: QueryAsked,
  ): Promise<void> {
    const { text, statements, timeoutMs } = asked;
    const history = this.#historyOf(limiter);
    const kind = statementKind(text);
    const arrivedAt = this.#clock.monotonic();
    const query: LimitedQuery = {
      cost: history.expected(kind),
      arrivedAt,
      deadline: timeoutMs === 0 ? Infinity : arrivedAt + timeoutMs,
      end: () => {},
    };
    if (isHelper(statements) && mayOwe(limiter)) limiter.queryLimiter.pass(query);
    else await this.#lineUp(query, exchange, limiter, asked);
    exchange.grant = {
      settle: (units) => {
        limiter.settleQuery(query.cost, units, this.#clock.monotonic());
        if (!exchange.isRefused) history.observe(kind, units);
        this.#succeeded(exchange);
      },
    };
  }

  async #lineUp(
    query: LimitedQuery,
    exchange: Exchange,
    limiter: TenantLimiter,
    { task }: QueryAsked,
  ): Promise<void> {
    const answer = limiter.queryLimiter.arrive(query, this.#clock.monotonic());
    if (answer === 'full' || answer === 'too expensive') await this.#delayed(exchange);
    switch (answer) {
      case 'run':
        return;
      case 'full':
        throw new QueryError(`RU limit: tenant=${limiter.name}: too many queries wait already`);
      case 'too expensive':
        throw new QueryError(
          `RU limit: tenant=${limiter.name}: the query would cost about ${Math.ceil(query.cost)} RU, more than a minute of the quota`,
        );
      case 'wait':
        await this.#inLine(query, exchange, limiter, task);
    }
  }

  /** It has arrived there. */
  async #inLine(
    query: LimitedQuery,
    exchange: Exchange,
    limiter: TenantLimiter,
    task: QueryTask,
  ): Promise<void> {
    const enter = (ended: (letIn: boolean) => void): boolean => {
      query.end = ended;
      return true;
    };
    const leave = (): boolean => limiter.queryLimiter.leave(query, this.#clock.monotonic());
    if (!(await untilLetIn(exchange, { enter, leave }, task))) {
      throw new QueryError('query-timeout limit exceeded');
    }
  }

  #historyOf(limiter: TenantLimiter): StatementHistory {
    let history = this.#histories.get(limiter);
    if (history === undefined) this.#histories.set(limiter, (history = new StatementHistory()));
    return history;
  }
}

/** They get others out of the line. */
export function isHelper(statements: readonly Statement[]): boolean {
  return statements.every(
    (statement) =>
      statement.kind === 'killQuery' || (statement.kind === 'show' && statement.what === 'queries'),
  );
}

function mayOwe({ queries, quota }: TenantLimiter): boolean {
  return queries.units.balance > -helpersMayOweSeconds * quota.perSecond;
}

/** Beyond a limit of its own there is nothing, whatever is to be used for the rest. */
const alone = (): QuotaMode => 'server';

/** Of a query that has passed two limiters. */
function bothOf(first: Grant, second: Grant | undefined): Grant {
  return {
    settle: (units) => {
      first.settle(units);
      second?.settle(units);
    },
  };
}

/** Whole seconds. */
function retryAfter(ms: number): number {
  return Math.min(longestRetrySeconds, Math.ceil(ms / 1000));
}

function quotaText({ name }: TenantLimiter, afterMs: number): string {
  return `RU limit, tenant=${name} retry after ${retryAfter(afterMs)} s`;
}

function queryText({ name }: TenantLimiter, afterMs: number): string {
  return `RU limit, tenant=${name} kind=query retry after ${retryAfter(afterMs)} s`;
}

/** 5xx with the word `timeout` over 1.x, whose clients throw away what any 4xx answers. */
function refusal(limiter: TenantLimiter, afterMs: number, isV2: boolean): HttpError {
  const text = quotaText(limiter, afterMs);
  return new HttpError(isV2 ? 429 : 500, isV2 ? text : `timeout: ${text}`, {
    headers: { 'Retry-After': String(retryAfter(afterMs)) },
  });
}
