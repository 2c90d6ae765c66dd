// Requests at a node of a cluster: which of them are answered here, by the leader or by a replica that follows, and
// which by the node that leads.

import { setTimeout as pause } from 'node:timers/promises';
import { isFinal, NotLeaderError, UnavailableError } from '../../../contracts/series-store.ts';
import type { Clock } from '../../../universal-row/environment.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import { offered, repeated } from '../../../universal-row/series/batch-identity.ts';
import { type DividedSeries, type Forwarder, notLeading } from '../forwarding/forwarder.ts';
import type { Caller } from '../tenants/caller.ts';
import type { Exchange } from './exchange.ts';
import { asHttpError, HttpError } from './http-error.ts';
import type { InfluxCounters } from './influx-metrics.ts';
import type { QueryHandler } from './query-handler.ts';
import type { BodyLimits } from './request-body.ts';
import type { Handle, Route } from './routes.ts';

interface ClusterExchangesOptions {
  readonly forwarder: Forwarder;
  readonly queries: QueryHandler;
  readonly counters: InfluxCounters;
  readonly body: BodyLimits;
  readonly clock: Clock;
}

/** `answered`: by another node, or with its refusal; `copy`: the replica here is read, within the bounds of the exchange; `here`: this node leads. */
type Place = 'answered' | 'copy' | 'here';

/** Size of points kept while they are offered to one leader after another. */
const maxHeldBytes = 1024 * 1024;
const retryMs = 25;

export class ClusterExchanges {
  readonly #options: ClusterExchangesOptions;

  constructor(options: ClusterExchangesOptions) {
    this.#options = options;
  }

  async run(exchange: Exchange, caller: Caller, route: Route, isForwarded: boolean): Promise<void> {
    const { forwarder } = this.#options;
    const { handle } = route.action as { handle: Handle };
    const tenant = caller.space.number;
    const divided = isForwarded ? undefined : forwarder.dividedOf(tenant);
    if (divided !== undefined && (await this.#isGathered(exchange, caller, route, divided))) return;
    if (
      divided === undefined &&
      !isForwarded &&
      route.name === 'write' &&
      exchange.bodyLength <= maxHeldBytes
    ) {
      return await this.#writeSomewhere(exchange, handle, caller);
    }
    const until = forwarder.deadline();
    for (;;) {
      const place = forwarder.leads(tenant)
        ? 'here'
        : await this.#elsewhere(exchange, caller, route, isForwarded);
      if (place === 'answered') return;
      if (place === 'copy') break;
      try {
        if (route.name === 'write') return await this.#writeHere(exchange, handle, caller);
        await this.#confirm(exchange, caller, route);
        break;
      } catch (error) {
        const mayGoOn = error instanceof NotLeaderError && !exchange.isGiven && exchange.isOpen;
        if (!mayGoOn || performance.now() > until) return this.#fail(exchange, route, error);
        exchange.giveUpAdmission();
        if (isForwarded) return exchange.reply(notLeading);
      }
      await pause(retryMs);
    }
    await handle(exchange, caller);
  }

  /** Clients of queries want failures in the form that they asked for. */
  #fail(exchange: Exchange, { hasForm }: Route, error: unknown): void {
    if (!hasForm) throw error;
    this.#options.queries.fail(exchange, asHttpError(error) ?? error);
  }

  /**
   * Makes sure that this node leads: one that was stopped for a while may not have heard of the next leader, nor of what that one has
   * changed. Rejects with `NotLeaderError`. A request that only lists or ends queries of this node needs no leader.
   */
  async #confirm(exchange: Exchange, caller: Caller, { hasForm }: Route): Promise<void> {
    const { forwarder, queries } = this.#options;
    if (hasForm && (await queries.isControl(exchange, caller))) return;
    exchange.reads = (await forwarder.confirm(caller.space.number)) ?? exchange.reads;
  }

  /** Rejects with `NotLeaderError` where the database or policy is unknown because this node leads no more. */
  async #writeHere(exchange: Exchange, handle: Handle, caller: Caller): Promise<void> {
    try {
      await handle(exchange, caller);
    } catch (error) {
      if (!isNotFound(error) || exchange.isGiven) throw error;
      await this.#options.forwarder.confirm(caller.space.number);
      throw error;
    }
  }

  /**
   * Whether this node has answered the exchange itself, by asking all groups of the tenant. Changes of databases and
   * policies are ordered by the node that leads the first partition, and are forwarded to that node.
   */
  async #isGathered(
    exchange: Exchange,
    caller: Caller,
    route: Route,
    divided: DividedSeries,
  ): Promise<boolean> {
    const { handle } = route.action as { handle: Handle };
    if (route.name === 'write') {
      await this.#gatherWrite(exchange, handle, caller, divided);
      return true;
    }
    const { forwarder, queries, counters } = this.#options;
    let release = (): void => {};
    try {
      if (route.hasForm) await queries.readForm(exchange);
      const onlyReads = route.hasForm
        ? await queries.onlyReads(exchange, caller)
        : exchange.method === 'GET' || exchange.method === 'HEAD';
      if (!onlyReads) return false;
      const bounds = forwarder.boundsOf(exchange, caller.space.number);
      if (bounds !== undefined && (await divided.mayBeLate(bounds))) counters.queriesReadHere++;
      else {
        exchange.reads = 'strong';
        release = await divided.refresh();
      }
    } catch (error) {
      this.#fail(exchange, route, error);
      return true;
    }
    await handled(() => handle(exchange, caller), release);
    return true;
  }

  /** Points without a time are of when they came, also when they are given to the store again. */
  async #gatherWrite(
    exchange: Exchange,
    handle: Handle,
    caller: Caller,
    divided: DividedSeries,
  ): Promise<void> {
    const { clock, body } = this.#options;
    exchange.receivedAt = clock.now();
    exchange.identity = this.#options.forwarder.newIdentity();
    if (exchange.bodyLength > maxHeldBytes) {
      const release = await divided.refresh();
      return await handled(() => handle(exchange, caller), release);
    }
    await exchange.hold(body);
    try {
      return await handle(exchange, caller);
    } catch (error) {
      // A database that another node has just made may not be known here yet.
      if (!isNotFound(error)) throw error;
    }
    this.#markRepeated(exchange);
    exchange.giveUpAdmission();
    const release = await divided.refresh();
    await handled(() => handle(exchange, caller), release);
  }

  /** Its points are about to be given to the store once more: batches before the one that failed may be stored. */
  #markRepeated(exchange: Exchange): void {
    if (exchange.isGiven) exchange.identity = repeated(exchange.identity);
  }

  /** A body of points is kept until it is stored: it may be given to one leader after another. */
  async #writeSomewhere(exchange: Exchange, handle: Handle, caller: Caller): Promise<void> {
    const { forwarder, clock, body } = this.#options;
    const { metering } = exchange;
    const tenant = caller.space.number;
    exchange.receivedAt = clock.now();
    exchange.identity = forwarder.newIdentity();
    await exchange.hold(body);
    const until = forwarder.deadline();
    for (;;) {
      try {
        // The other node charges the request.
        exchange.metering = undefined;
        if (!forwarder.leads(tenant) && (await forwarder.forward(exchange, tenant, until))) return;
        exchange.metering = metering;
        exchange.identity = offered(exchange.identity);
        return await this.#writeHere(exchange, handle, caller);
      } catch (error) {
        exchange.giveUpAdmission();
        const isOver = performance.now() > until || !exchange.isOpen;
        if (isOver || !(error instanceof UnavailableError) || isFinal(error)) throw error;
        this.#markRepeated(exchange);
      }
      await pause(retryMs);
    }
  }

  /** Where this node does not lead, or did not when it was asked. */
  async #elsewhere(
    exchange: Exchange,
    caller: Caller,
    route: Route,
    isForwarded: boolean,
  ): Promise<Place> {
    if (isForwarded) {
      exchange.reply(notLeading);
      return 'answered';
    }
    const { forwarder, queries } = this.#options;
    try {
      // Parameters and credentials may be in it; then it goes on as it was read.
      if (route.hasForm) await queries.readForm(exchange);
      if (route.hasForm && (await this.#mayReadHere(exchange, caller))) return 'copy';
      const { metering } = exchange;
      // The other node charges the request.
      exchange.metering = undefined;
      if (await forwarder.forward(exchange, caller.space.number)) return 'answered';
      exchange.metering = metering;
      return 'here';
    } catch (error) {
      this.#fail(exchange, route, error);
      return 'answered';
    }
  }

  /** Whether the replica here, which does not lead, answers the query. */
  async #mayReadHere(exchange: Exchange, caller: Caller): Promise<boolean> {
    const { forwarder, queries, counters } = this.#options;
    if (!(await forwarder.mayReadHere(exchange, caller.space.number))) return false;
    if (!(await queries.onlyReads(exchange, caller))) return false;
    counters.queriesReadHere++;
    return true;
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof HttpError && error.message.includes('not found');
}

async function handled(handle: () => MaybePromise<void>, release: () => void): Promise<void> {
  try {
    await handle();
  } finally {
    release();
  }
}
