// Metering of HTTP requests, charged to the tenant that sent them. Work is counted where it is
// done, in the exchange's `SeriesWork`; request-units/ computes the price.

import { ChargeClass, type Meter } from '../../../request-units/meter.ts';
import { costLayout } from '../../../request-units/row-pricer.ts';
import type { SeriesPricer, SeriesWork } from '../../../request-units/series-pricer.ts';
import type { HotNames } from '../../gateway/hot-names.ts';

/** The part of an exchange that is metered. */
interface MeteredExchange {
  readonly caller:
    | { readonly space: { readonly number: number; readonly name: string } }
    | undefined;
  readonly route: string;
  readonly work: SeriesWork;
  readonly isRefused: boolean;
  readonly response: { readonly statusCode: number };
}

interface InfluxMeteringOptions {
  meter: Meter;
  /** Learns which series are written. */
  hot?: HotNames | undefined;
  pricer: SeriesPricer;
}

/** Name of the header, or of the trailer where the answer's length is unknown at its beginning. */
export const costHeader = 'X-Polyrow-RU';
/** On a request, asks for the same header on the answer: the work of the request, in JSON. */
export const workHeader = 'X-Polyrow-Work';

const digits = 3;

export class InfluxMetering {
  readonly meter: Meter;
  readonly hot: HotNames | undefined;
  readonly #pricer: SeriesPricer;
  // Bounded as the meter's accounts are.
  readonly #names = new Map<number, string>();

  constructor({ meter, hot, pricer }: InfluxMeteringOptions) {
    this.meter = meter;
    this.hot = hot;
    this.#pricer = pricer;
  }

  /** Name of a tenant that was charged. */
  nameOf(tenant: number): string | undefined {
    return this.#names.get(tenant);
  }

  forget(tenant: number): void {
    this.#names.delete(tenant);
    this.meter.forget(tenant);
  }

  /** Cost of the exchange so far, by `costLayout`. */
  costOf({ work }: MeteredExchange): Float64Array {
    const cost = new Float64Array(costLayout.length);
    this.#pricer.price(work, cost);
    return cost;
  }

  /**
   * Processor time in milliseconds at which the work so far is priced. It depends neither on the machine nor on its
   * load.
   */
  processorMsOf({ work }: MeteredExchange): number {
    return this.#pricer.processorMs(work);
  }

  /** As the header tells it. */
  textOf(exchange: MeteredExchange): string {
    if (isRejected(exchange)) return '0';
    return String(Number(this.costOf(exchange)[costLayout.lru]!.toFixed(digits)));
  }

  /** The exchange is over. Returns the units charged: 0 if its client was not authenticated. */
  settle(exchange: MeteredExchange, status: number): number {
    const { caller, work } = exchange;
    if (caller === undefined) return 0;
    const { number, name } = caller.space;
    const account = this.meter.account(number);
    if (account.tenant === number) this.#names.set(number, name);
    if (isRejected(exchange)) {
      account.reject();
      return 0;
    }
    const cost = new Float64Array(costLayout.length);
    this.#pricer.charge(account, classOf(exchange), status >= 400, work, cost);
    return cost[costLayout.lru]!;
  }
}

/** Answered with an error before anything was done for it. */
function isRejected({ isRefused, work, response }: MeteredExchange): boolean {
  if (isRefused) return true;
  return (
    response.statusCode >= 400 &&
    work.lineBytes === 0 &&
    work.logBytes === 0 &&
    work.rows === 0 &&
    work.statements === 0
  );
}

function classOf({ route, work }: MeteredExchange): ChargeClass {
  if (route === 'write') return ChargeClass.write;
  if (work.statements === 0) return ChargeClass.other;
  return work.logBytes > 0 && work.rows === 0 ? ChargeClass.write : ChargeClass.scan;
}
