// What holds writes back on pods whose engine puts work off, as the settings say.

import type { TableModel } from '../../control/metadata/table-definition.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { Engine } from '../../engines/engine.ts';
import { WriteBrake } from '../../storage-node/admission/write-brake.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { LiveConfig } from '../config/live-config.ts';
import type { ConfigKey } from '../config/schema.ts';
import { adder } from './pod-samples.ts';

export class PlaneBrakes {
  readonly #live: LiveConfig;
  readonly #brakes = new Map<TableModel, WriteBrake>();

  constructor(live: LiveConfig) {
    this.#live = live;
  }

  /** Undefined for an engine that puts nothing off. */
  of(model: TableModel, engine: Engine): WriteBrake | undefined {
    if (engine.levelZero === undefined) return undefined;
    const brake = new WriteBrake({ clock: systemClock, levelZero: () => engine.levelZero!() });
    this.#brakes.set(model, brake);
    this.settingChanged('mech.cr-kvstore-tokens');
    return brake;
  }

  settingChanged(key: ConfigKey): void {
    if (key !== 'mech.cr-kvstore-tokens') return;
    for (const brake of this.#brakes.values()) brake.enabled = this.#live.get(key) === 'on';
  }

  samples(): MetricSample[] {
    const samples: MetricSample[] = [];
    for (const [model, { score, waiting, waited, waitedMs }] of this.#brakes) {
      const add = adder(samples, { model });
      add('gauge', 'pod_level0_score', 'Of what waits for compaction; 1 is too much.', score);
      add('gauge', 'pod_writes_waiting', 'Writes that wait for compaction.', waiting);
      add('counter', 'pod_writes_waited', 'Writes that waited for compaction.', waited);
      add(
        'counter',
        'pod_writes_wait_seconds',
        'Time that writes waited for compaction.',
        waitedMs / 1000,
      );
    }
    return samples;
  }
}
