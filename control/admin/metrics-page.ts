// The /metrics page: prom-client's registry, filled anew from the parts' samples on every scrape. The
// parts keep plain counters; nothing of Prometheus is on the way of a request.

import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import type { MetricSample } from '../monitor/metric-sample.ts';

export type SampleSource = () => Promise<readonly MetricSample[]>;

// A label that grows without bound would make the page, and whoever stores it, grow with it.
const mostSeries = 10_000;

export class MetricsPage {
  readonly #registry = new Registry();
  readonly #sources: SampleSource[] = [];
  readonly #metrics = new Map<string, Counter | Gauge>();

  constructor() {
    collectDefaultMetrics({ register: this.#registry });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  addSource(source: SampleSource): void {
    this.#sources.push(source);
  }

  async text(): Promise<string> {
    const samples = (await Promise.all(this.#sources.map((source) => source()))).flat();
    for (const metric of this.#metrics.values()) metric.reset();
    for (const sample of samples.slice(0, mostSeries)) this.#put(sample);
    return await this.#registry.metrics();
  }

  #put({ name, help, type, value, labels = {} }: MetricSample): void {
    let metric = this.#metrics.get(name);
    if (metric === undefined) {
      const options = { name, help, labelNames: Object.keys(labels), registers: [this.#registry] };
      metric = type === 'counter' ? new Counter(options) : new Gauge(options);
      this.#metrics.set(name, metric);
    }
    // One number that makes no sense must not take the whole page away.
    if (!Number.isFinite(value) || (type === 'counter' && value < 0)) return;
    // After a reset both are at zero, so that a counter's total is what is added to it.
    metric.inc(labels, value);
  }
}
