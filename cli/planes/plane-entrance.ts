// What requests wait for before the pod of the InfluxDB plane, as databases' properties and the settings say: units, and
// slots.

import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import { CpuSlots } from '../../storage-node/admission/cpu-slots.ts';
import { PodEntrance } from '../../storage-node/admission/pod-entrance.ts';
import { SlotEntrance } from '../../storage-node/admission/slot-entrance.ts';
import { systemClock } from '../../universal-row/environment.ts';
import { modelProperties } from '../../universal-row/table-properties.ts';
import type { LiveConfig } from '../config/live-config.ts';
import type { ConfigKey } from '../config/schema.ts';
import { keptName } from './influx-databases.ts';
import type { InfluxTables } from './influx-tables.ts';
import { adder } from './pod-samples.ts';

const usualPriority = modelProperties('series').writePriority;

/** How often it is looked how late the event loop is. */
const lookEveryMs = 5;

export interface SeriesEntrance {
  units: PodEntrance;
  slots: SlotEntrance;
}

export function seriesEntrance(tables: InfluxTables): SeriesEntrance {
  const options = {
    clock: systemClock,
    priorityOf: (tenant: number, name: string) =>
      tables.get(keptName({ tenant, name }))?.writePriority ?? usualPriority,
  };
  const units = new PodEntrance(options);
  return { units, slots: new SlotEntrance({ ...options, units }) };
}

/** How many long requests are under way at a time, by how late the plane's event loop is. */
export class PlaneSlots {
  readonly #live: LiveConfig;
  readonly #entrance: SlotEntrance;
  #timer: NodeJS.Timeout | undefined;

  constructor(live: LiveConfig, entrance: SlotEntrance) {
    this.#live = live;
    this.#entrance = entrance;
    this.settingChanged('mech.cr-cpu-slots');
  }

  settingChanged(key: ConfigKey): void {
    if (key !== 'mech.cr-cpu-slots') return;
    const isOn = this.#live.get(key) === 'on';
    if (isOn === (this.#timer !== undefined)) return;
    if (!isOn) return this.close();
    this.#entrance.setSlots(new CpuSlots());
    let dueAt = systemClock.monotonic() + lookEveryMs;
    const look = (): void => {
      const now = systemClock.monotonic();
      this.#entrance.tick(Math.max(0, now - dueAt), now);
      dueAt = now + lookEveryMs;
      this.#timer?.refresh();
    };
    this.#timer = setTimeout(look, lookEveryMs);
    this.#timer.unref();
  }

  /** Nobody waits for a slot any more. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#entrance.setSlots(undefined);
  }

  samples(): MetricSample[] {
    const samples: MetricSample[] = [];
    const { slots, waiting, counts } = this.#entrance;
    if (slots === undefined) return samples;
    const add = adder(samples, { plane: 'influx' });
    add('gauge', 'pod_slots', 'Long requests that may be under way at a time.', slots.slots);
    add('gauge', 'pod_slots_used', 'Long requests that are under way.', slots.used);
    add('gauge', 'pod_slots_waiting', 'Long requests that wait for a slot.', waiting);
    add('counter', 'pod_slots_waited', 'Requests that waited for a slot.', counts.waited);
    add(
      'counter',
      'pod_slots_wait_seconds',
      'Time that requests waited for a slot.',
      counts.waitedMs / 1000,
    );
    add('counter', 'pod_slots_refused', 'Requests refused for want of a slot.', counts.refused);
    return samples;
  }
}

export function entranceSamples(plane: string, entrance: PodEntrance): MetricSample[] {
  const samples: MetricSample[] = [];
  for (const kind of ['read', 'write'] as const) {
    const add = adder(samples, { plane, kind });
    const { waited, waitedMs, refused } = entrance.counts[kind];
    add('gauge', 'pod_waiting', 'Requests that wait for the pod.', entrance.waitingOf(kind));
    add('counter', 'pod_waited', 'Requests that had to wait for the pod.', waited);
    add('counter', 'pod_wait_seconds', 'Time that requests waited for the pod.', waitedMs / 1000);
    add('counter', 'pod_refused', 'Requests refused because the pod had too much to do.', refused);
  }
  return samples;
}
