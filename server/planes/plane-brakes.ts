// What holds writes back on pods whose engine puts work off, as the settings say.

import type { TableModel } from '../../control/metadata/table-definition.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { Engine } from '../../engines/engine.ts';
import { WriteBrake } from '../../storage-node/admission/write-brake.ts';
import { WriteCeiling } from '../../storage-node/admission/write-ceiling.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import type { ConfigKey } from '../settings/schema.ts';
import { adder } from './pod-samples.ts';

interface Braked {
  engine: Engine;
  brake: WriteBrake;
  ceiling: WriteCeiling;
}

export class PlaneBrakes {
  readonly #live: LiveConfig;
  readonly #braked = new Map<TableModel, Braked>();

  constructor(live: LiveConfig) {
    this.#live = live;
  }

  /** Undefined for an engine that puts nothing off. */
  of(model: TableModel, engine: Engine): WriteBrake | undefined {
    if (engine.levelZero === undefined) return undefined;
    const ceiling = new WriteCeiling();
    const brake = new WriteBrake({
      clock: systemClock,
      levelZero: () => engine.levelZero!(),
      looked: (level) => {
        ceiling.observe(level);
        this.#setCeiling({ engine, ceiling });
      },
    });
    this.#braked.set(model, { engine, brake, ceiling });
    this.settingChanged('mech.cr-kvstore-tokens');
    this.settingChanged('mech.cr-ticks');
    return brake;
  }

  settingChanged(key: ConfigKey): void {
    for (const { engine, brake, ceiling } of this.#braked.values()) {
      if (key === 'mech.cr-kvstore-tokens') brake.enabled = this.#isOn(key);
      else if (key === 'mech.cr-ticks') brake.shortTicks = this.#isOn(key);
      else if (key === 'mech.ab-43-r2') this.#setCeiling({ engine, ceiling });
    }
  }

  #setCeiling({ engine, ceiling }: Pick<Braked, 'engine' | 'ceiling'>): void {
    engine.setWriteCeiling?.(this.#isOn('mech.ab-43-r2') ? ceiling.part : 1);
  }

  #isOn(key: ConfigKey): boolean {
    return this.#live.get(key) === 'on';
  }

  samples(): MetricSample[] {
    const samples: MetricSample[] = [];
    for (const [model, { brake, ceiling }] of this.#braked) {
      const { score, waiting, waited, waitedMs } = brake;
      const add = adder(samples, { model });
      add('gauge', 'pod_level0_score', 'Of what waits for compaction; 1 is too much.', score);
      add(
        'gauge',
        'pod_compacting',
        'Whether level 0 is compacted, or was since the last look.',
        ceiling.isCompacting ? 1 : 0,
      );
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
