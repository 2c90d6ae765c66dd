// The /metrics page: prom-client's registry, refilled from the samples of the parts on every scrape. The parts keep
// plain counters. Neither requests nor the start of the server run Prometheus code.

import type * as Prometheus from 'prom-client';
import type { Counter, Gauge, Registry } from 'prom-client';
import type { MetricSample } from '../monitor/metric-sample.ts';

type SampleSource = () => Promise<readonly MetricSample[]>;

// A label without a bound would let the page and the scraper's storage grow without a bound.
const mostSeries = 10_000;

export class MetricsPage {
  readonly #sources: SampleSource[] = [];
  #registry: Promise<SampleRegistry> | undefined;

  addSource(source: SampleSource): void {
    this.#sources.push(source);
  }

  /** From here on the process's own metrics are collected, too. */
  async load(): Promise<void> {
    await this.#loaded();
  }

  /** All metrics; or only those with the tenant's name, and none of the process. */
  async page(tenant?: string): Promise<{ contentType: string; text: string }> {
    const all = await this.#loaded();
    const samples = (await Promise.all(this.#sources.map((source) => source()))).flat();
    if (tenant === undefined) {
      return { contentType: all.contentType, text: await all.textOf(samples) };
    }
    const registry = new SampleRegistry(await import('prom-client'));
    const own = samples.filter(({ labels }) => labels?.['tenant'] === tenant);
    return { contentType: registry.contentType, text: await registry.textOf(own) };
  }

  #loaded(): Promise<SampleRegistry> {
    this.#registry ??= import('prom-client').then((prometheus) => {
      const registry = new SampleRegistry(prometheus);
      registry.collectProcess();
      return registry;
    });
    return this.#registry;
  }
}

class SampleRegistry {
  readonly #prometheus: typeof Prometheus;
  readonly #registry: Registry;
  readonly #metrics = new Map<string, Counter | Gauge>();
  /** By metric: all labels that its samples have used. */
  readonly #labels = new Map<string, Set<string>>();

  constructor(prometheus: typeof Prometheus) {
    this.#prometheus = prometheus;
    this.#registry = new prometheus.Registry();
  }

  collectProcess(): void {
    // Every 10 ms, the default, would be most of what a process without work costs.
    const eventLoopMonitoringPrecision = 100;
    this.#prometheus.collectDefaultMetrics({
      register: this.#registry,
      eventLoopMonitoringPrecision,
    });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  async textOf(samples: readonly MetricSample[]): Promise<string> {
    const shown = samples.slice(0, mostSeries);
    for (const sample of shown) this.#noteLabels(sample);
    for (const metric of this.#metrics.values()) metric.reset();
    for (const sample of shown) this.#put(sample);
    return await this.#registry.metrics();
  }

  /** Samples of one metric may have different labels, but it must know all of them from the start. */
  #noteLabels({ name, labels = {} }: MetricSample): void {
    let known = this.#labels.get(name);
    if (known === undefined) {
      known = new Set();
      this.#labels.set(name, known);
    }
    for (const label of Object.keys(labels)) {
      if (known.has(label)) continue;
      known.add(label);
      if (this.#metrics.delete(name)) this.#registry.removeSingleMetric(name);
    }
  }

  #put({ name, help, type, value, labels = {} }: MetricSample): void {
    let metric = this.#metrics.get(name);
    if (metric === undefined) {
      const options = {
        name,
        help,
        labelNames: [...(this.#labels.get(name) ?? [])],
        registers: [this.#registry],
      };
      const { Counter, Gauge } = this.#prometheus;
      metric = type === 'counter' ? new Counter(options) : new Gauge(options);
      this.#metrics.set(name, metric);
    }
    // One number that makes no sense must not take the whole page away.
    if (!Number.isFinite(value) || (type === 'counter' && value < 0)) return;
    // After a reset both are zero, so that a counter's total is the added amount.
    metric.inc(labels, value);
  }
}
