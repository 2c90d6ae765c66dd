// The I/O schedulers of pods whose engine reads rows from disk, as settings and quotas configure them.

import type { TableModel } from '../../control/metadata/table-definition.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import { IoScheduler } from '../../storage-node/admission/disk/io-scheduler.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { TenancyUpdate } from '../../contracts/tenancy/definitions.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import type { ConfigKey } from '../settings/schema.ts';
import { weightOf } from './plane-pod-admission.ts';
import { adder } from './pod-samples.ts';

export class PlaneReads {
  readonly #live: LiveConfig;
  readonly #ownerOf: (table: number) => number | undefined;
  readonly #schedulers = new Map<TableModel, IoScheduler>();
  readonly #weights = new Map<number, number>();

  constructor(live: LiveConfig, ownerOf: (table: number) => number | undefined) {
    this.#live = live;
    this.#ownerOf = ownerOf;
  }

  /** Undefined for a model whose rows are all in memory. */
  gateOf(model: TableModel): IoScheduler | undefined {
    if (model === 'memory') return undefined;
    const scheduler = new IoScheduler({ clock: systemClock, ownerOf: this.#ownerOf });
    for (const [tenant, weight] of this.#weights) scheduler.setWeight(tenant, weight);
    scheduler.enabled = this.#isOn();
    this.#schedulers.set(model, scheduler);
    return scheduler;
  }

  settingChanged(key: ConfigKey): void {
    if (key !== 'admission.fair-scheduling') return;
    for (const scheduler of this.#schedulers.values()) scheduler.enabled = this.#isOn();
  }

  #isOn(): boolean {
    return this.#live.get('admission.fair-scheduling') === 'on';
  }

  /** Tenants are weighted by their quotas. */
  follow({ tenants }: TenancyUpdate): void {
    for (const { number, limits } of tenants) {
      const weight = weightOf(limits.ruPerSecond);
      this.#weights.set(number, weight);
      for (const scheduler of this.#schedulers.values()) scheduler.setWeight(number, weight);
    }
  }

  forget(tenant: number): void {
    this.#weights.delete(tenant);
    for (const scheduler of this.#schedulers.values()) scheduler.forget(tenant);
  }

  /** No read waits any longer. */
  close(): void {
    for (const scheduler of this.#schedulers.values()) scheduler.close();
  }

  samples(): MetricSample[] {
    const samples: MetricSample[] = [];
    for (const [model, { length, running, waited, waitedMs, extraReads }] of this.#schedulers) {
      const add = adder(samples, { model });
      add('gauge', 'pod_reads_waiting', 'Queued disk reads.', length);
      add('gauge', 'pod_reads_running', 'Running disk reads, while several tenants read.', running);
      add('counter', 'pod_reads_waited', 'Disk reads that were queued.', waited);
      add(
        'counter',
        'pod_reads_wait_seconds',
        'Time that disk reads were queued.',
        waitedMs / 1000,
      );
      add('counter', 'pod_reads_extra', 'Disk reads by an extra worker.', extraReads);
    }
    return samples;
  }
}
