// Two tenants on a private server: A floods, B is measured. Shared by the demonstration and the live experiments.

import { setTimeout as sleep } from 'node:timers/promises';
import { DemoServer, type Use } from './demo-server.ts';
import { Generator } from './load/generator.ts';
import type { LoadReport } from './load/load-messages.ts';
import { bystander, flooder, type Workload } from './workloads.ts';

/** A second of a phase. */
export interface Sample {
  seconds: number;
  /** Requests of A a second: due, answered as asked, refused, failed; and those queued at the rate limiter now. */
  offered: number;
  served: number;
  refused: number;
  failed: number;
  waiting: number;
  /** Units a second that A was charged. */
  ru: number;
  /** Requests of B a second; its refusals and failures; milliseconds of its requests. */
  rate: number;
  notServed: number;
  latencies: Float64Array;
  /** CPU microseconds a second that the load generators use. */
  floodCpu: number;
  steadyCpu: number;
  /** The words of something that failed. */
  failure?: string | undefined;
}

/** The throughput of a flood without limits. */
export interface Capacity {
  /** Requests and units a second that the plane does for A when it is alone. */
  requests: number;
  ru: number;
  /** How many times as much A could have sent. */
  headroom: number;
}

export interface Pins {
  server: readonly string[];
  flood: readonly string[];
  steady: readonly string[];
}

interface NeighbourOptions {
  /** Prepares the tenants' data, and returns their workload. */
  prepare: (server: DemoServer) => Promise<Workload>;
  /** Words before the commands of the processes, as of taskset. */
  pin?: Pins;
  flags?: readonly string[];
  /** Aborts everything; requests in flight fail. Without it, a signal that ends this process ends the server as well. */
  signal?: AbortSignal | undefined;
}

/** Offered load, in requests a second. */
export interface Rates {
  flood: number;
  /** Steady rate; the workload's own by default. */
  steady?: number;
}

export interface PhaseOptions {
  /** Rates of the given second of the phase, counted from 0. */
  rates: (second: number) => Rates;
  /** Samples, of so many seconds each. */
  samples: number;
  sampleSeconds?: number;
  /** Seconds before the first one; by default those after which A has settled. */
  settle?: number;
  /**
   * Whether the server is polled for A's use each second, also while A is idle: polling costs the
   * server the same in all phases. False if another client uses the admin API up to its limit.
   */
  asks?: boolean;
}

const noPins: Pins = { server: [], flood: [], steady: [] };
const aloneSettleSeconds = 1;

export class Neighbours {
  readonly server: DemoServer;
  readonly workload: Workload;
  readonly #flood: Generator;
  readonly #steady: Generator;
  #floods = false;

  static async start(options: NeighbourOptions): Promise<Neighbours> {
    const { prepare, pin = noPins, flags = [], signal } = options;
    const endsOnSignals = signal === undefined;
    const server = await DemoServer.start({ flags, pin: pin.server, endsOnSignals });
    const generators: Generator[] = [];
    signal?.addEventListener('abort', () => generators.forEach((one) => one.kill()));
    try {
      await server.makeTenant(flooder);
      await server.makeTenant(bystander);
      const workload = await prepare(server);
      for (const [load, words] of [
        [workload.flood, pin.flood],
        [workload.steady, pin.steady],
      ] as const) {
        signal?.throwIfAborted();
        generators.push(await Generator.make(load, words));
      }
      return new Neighbours(server, workload, generators[0]!, generators[1]!);
    } catch (error) {
      for (const generator of generators) generator.kill();
      await server.stop();
      throw error;
    }
  }

  private constructor(server: DemoServer, workload: Workload, flood: Generator, steady: Generator) {
    this.server = server;
    this.workload = workload;
    this.#flood = flood;
    this.#steady = steady;
  }

  /** B for a while: code that is not compiled yet is slower than it ever will be again. */
  async warmUp(seconds: number): Promise<void> {
    await this.#steady.start(this.workload.steadyRate);
    await sleep(seconds * 1000);
    await this.#steady.stop();
  }

  /** As many of A's requests as are answered, nothing else running. */
  async capacity(seconds: number): Promise<Capacity> {
    await this.#flood.start(Infinity);
    await sleep(seconds * 1000);
    const { report, ru } = await this.flooded(seconds);
    await this.#flood.stop();
    return {
      requests: report.served / report.seconds,
      ru,
      headroom: (1e6 * report.seconds) / report.cpuMicros,
    };
  }

  /** Outcomes of A's requests and its units a second while it floods. */
  async flooded(seconds: number): Promise<{ report: LoadReport; ru: number }> {
    const before = await this.#useOfFlooder();
    await this.#flood.take();
    await sleep(seconds * 1000);
    const after = await this.#useOfFlooder();
    const report = await this.#flood.take();
    return { report, ru: (1000 * (after.ru - before.ru)) / (after.at - before.at) };
  }

  /** Runs `look` while A sends alone, at `rate` or as fast as it is answered. */
  async whileFlooding<T>(rate: number, look: () => Promise<T>): Promise<T> {
    await this.#flood.start(rate);
    try {
      return await look();
    } finally {
      await this.#flood.stop();
    }
  }

  /**
   * Runs A and B for a while, with a sample each second. Samples before A has settled are omitted.
   */
  async *phase({
    rates,
    samples,
    sampleSeconds = 1,
    settle,
    asks = true,
  }: PhaseOptions): AsyncGenerator<Sample> {
    const { workload } = this;
    await workload.refresh();
    let now = this.#ratesOf(rates(0));
    this.#floods = now.flood > 0;
    if (this.#floods) await this.#flood.start(now.flood);
    await this.#steady.start(now.steady);
    try {
      const wait = this.#floods ? workload.settleSeconds : aloneSettleSeconds;
      await sleep(1000 * (settle ?? wait));
      await this.#takeBoth();
      let use = await this.#use(asks);
      for (let n = 0; n < samples; n++) {
        const next = this.#ratesOf(rates(n * sampleSeconds));
        if (this.#floods && next.flood !== now.flood) await this.#flood.change(next.flood);
        if (next.steady !== now.steady) await this.#steady.change(next.steady);
        now = next;
        await sleep(sampleSeconds * 1000);
        const [flood, steady] = await this.#takeBoth();
        const after = await this.#use(asks);
        yield sampleOf(flood, steady, use, after);
        use = after;
      }
    } finally {
      if (this.#floods) await this.#flood.stop();
      await this.#steady.stop();
    }
    if (this.#floods) await sleep(1000 * workload.chargedSeconds);
  }

  #ratesOf({ flood, steady = this.workload.steadyRate }: Rates): { flood: number; steady: number } {
    return { flood, steady };
  }

  async #takeBoth(): Promise<[LoadReport | undefined, LoadReport]> {
    const flood = this.#floods ? this.#flood.take() : undefined;
    const steady = this.#steady.take();
    return [await flood, await steady];
  }

  async #use(asks: boolean): Promise<Use> {
    return asks ? await this.#useOfFlooder() : noUse;
  }

  #useOfFlooder(): Promise<Use> {
    return this.server.use(this.workload.plane, flooder);
  }

  async stop(): Promise<void> {
    await this.#flood.close();
    await this.#steady.close();
    await this.server.stop();
  }
}

const noUse: Use = { at: 0, ru: 0, waiting: 0, refused: 0 };

function sampleOf(
  flood: LoadReport | undefined,
  steady: LoadReport,
  before: Use,
  after: Use,
): Sample {
  const of = (count: number | undefined, { seconds }: LoadReport): number => (count ?? 0) / seconds;
  const a = flood ?? steady;
  return {
    seconds: steady.seconds,
    offered: of(flood?.offered, a),
    served: of(flood?.served, a),
    refused: of(flood?.refused, a),
    failed: of(flood?.failed, a),
    waiting: after.waiting,
    ru: flood === undefined ? 0 : (1000 * (after.ru - before.ru)) / (after.at - before.at),
    rate: of(steady.served, steady),
    notServed: steady.refused + steady.failed,
    latencies: steady.latencies,
    floodCpu: of(flood?.cpuMicros, a),
    steadyCpu: of(steady.cpuMicros, steady),
    failure: flood?.failure ?? steady.failure,
  };
}
