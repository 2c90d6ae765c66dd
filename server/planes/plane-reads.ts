// Who reads the disk next, on pods whose engine does not have all rows in memory, as the settings say.

import type { TableModel } from '../../control/metadata/table-definition.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import { IoLine } from '../../storage-node/admission/io-line.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { TenancyUpdate } from '../../contracts/tenancy/definitions.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import type { ConfigKey } from '../settings/schema.ts';
import { weightOf } from './plane-pod-admission.ts';
import { adder } from './pod-samples.ts';

export class PlaneReads {
  readonly #live: LiveConfig;
  readonly #ownerOf: (table: number) => number | undefined;
  readonly #lines = new Map<TableModel, IoLine>();
  readonly #weights = new Map<number, number>();

  constructor(live: LiveConfig, ownerOf: (table: number) => number | undefined) {
    this.#live = live;
    this.#ownerOf = ownerOf;
  }

  /** Undefined for a model whose rows are all in memory. */
  gateOf(model: TableModel): IoLine | undefined {
    if (model === 'memory') return undefined;
    const line = new IoLine({ clock: systemClock, ownerOf: this.#ownerOf });
    for (const [tenant, weight] of this.#weights) line.setWeight(tenant, weight);
    line.enabled = this.#isOn();
    this.#lines.set(model, line);
    return line;
  }

  settingChanged(key: ConfigKey): void {
    if (key !== 'admission.fair-scheduling') return;
    for (const line of this.#lines.values()) line.enabled = this.#isOn();
  }

  #isOn(): boolean {
    return this.#live.get('admission.fair-scheduling') === 'on';
  }

  /** Tenants weigh by their quotas. */
  follow({ tenants }: TenancyUpdate): void {
    for (const { number, limits } of tenants) {
      const weight = weightOf(limits.ruPerSecond);
      this.#weights.set(number, weight);
      for (const line of this.#lines.values()) line.setWeight(number, weight);
    }
  }

  forget(tenant: number): void {
    this.#weights.delete(tenant);
    for (const line of this.#lines.values()) line.forget(tenant);
  }

  /** Nobody waits any longer. */
  close(): void {
    for (const line of this.#lines.values()) line.close();
  }

  samples(): MetricSample[] {
    const samples: MetricSample[] = [];
    for (const [model, { length, running, waited, waitedMs, extraReads }] of this.#lines) {
      const add = adder(samples, { model });
      add('gauge', 'pod_reads_waiting', 'Reads of the disk that wait for others.', length);
      add('gauge', 'pod_reads_running', 'Reads of the disk under way, of those in line.', running);
      add('counter', 'pod_reads_waited', 'Reads of the disk that had to wait.', waited);
      add(
        'counter',
        'pod_reads_wait_seconds',
        'Time that reads of the disk waited for others.',
        waitedMs / 1000,
      );
      add(
        'counter',
        'pod_reads_extra',
        'Reads of the disk by an extra worker, while one tenant had all others.',
        extraReads,
      );
    }
    return samples;
  }
}
