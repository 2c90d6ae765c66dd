// The memory that a plane spends on requests under way, as the settings say.

import { memoryUses, RequestMemory } from '../../access/admission/request-memory.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import type { ConfigKey } from '../settings/schema.ts';
import { adder } from './pod-samples.ts';

export class PlaneMemory {
  readonly memory: RequestMemory;
  readonly #plane: 'redis' | 'influx';
  readonly #live: LiveConfig;

  constructor(plane: 'redis' | 'influx', live: LiveConfig) {
    this.#plane = plane;
    this.#live = live;
    this.memory = new RequestMemory({ maxBytes: this.#maxBytes });
  }

  settingChanged(key: ConfigKey): void {
    if (key === `${this.#plane}.max-request-memory`) this.memory.maxBytes = this.#maxBytes;
  }

  get #maxBytes(): number {
    const bytes = this.#live.get(`${this.#plane}.max-request-memory`);
    return bytes === 0 ? Infinity : bytes;
  }

  samples(): MetricSample[] {
    const samples: MetricSample[] = [];
    const { memory } = this;
    for (const use of memoryUses) {
      const add = adder(samples, { plane: this.#plane, use });
      add('gauge', 'request_memory_bytes', 'Memory of requests under way.', memory.usedFor(use));
    }
    const add = adder(samples, { plane: this.#plane });
    const { peakBytes, refused, tenants } = memory;
    add('gauge', 'request_memory_peak_bytes', 'The most that it has been.', peakBytes);
    add('gauge', 'request_memory_tenants', 'Tenants that hold some of it.', tenants);
    add('counter', 'request_memory_refused', 'Requests refused for want of it.', refused);
    return samples;
  }
}
