// The admission stage of a plane's pods, as settings, quotas and table properties configure it.

import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { TenancyUpdate } from '../../contracts/tenancy/definitions.ts';
import type { TenantAccount } from '../../request-units/meter.ts';
import { AdmissionController } from '../../storage-node/admission/admission-controller.ts';
import { MeasuredCapacity } from './measured-capacity.ts';
import { PodCapacity } from '../../storage-node/admission/pod/pod-capacity.ts';
import type { AdmissionQueueOptions } from '../../storage-node/admission/pod/admission-queue.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import type { ConfigKey } from '../settings/schema.ts';
import { adder } from './pod-samples.ts';

/** Request units a second that weigh as much as no quota at all. */
const usualQuota = 10_000;
const chargeEveryMs = 5;

/** The weight of a tenant by its quota of request units a second; 0 for none. */
export function weightOf(ruPerSecond: number): number {
  return (ruPerSecond === 0 ? usualQuota : ruPerSecond) / usualQuota;
}

interface PlanePodAdmissionOptions {
  plane: 'redis' | 'influx';
  live: LiveConfig;
  /** Accounts that were charged lately, up to date. */
  accounts: () => Iterable<TenantAccount>;
  /** As in `AdmissionControllerOptions`. */
  sliceMs?: number;
  priorityOf?: AdmissionQueueOptions['priorityOf'];
  /** Where the measured capacity is kept. */
  directory: string;
  warn: (message: string, fields: object) => void;
}

export class PlanePodAdmission {
  readonly controller: AdmissionController;
  readonly #options: PlanePodAdmissionOptions;
  /** Request units a second that tenants are guaranteed. */
  readonly #quotas = new Map<number, number>();
  #capacity: PodCapacity | undefined;
  readonly #measured: MeasuredCapacity;
  /** Called when `podRate` has changed. */
  rateChanged: () => void = () => {};
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PlanePodAdmissionOptions) {
    const { sliceMs, priorityOf, live } = options;
    this.#options = options;
    this.controller = new AdmissionController({
      clock: systemClock,
      ...(sliceMs === undefined ? {} : { sliceMs }),
      ...(priorityOf === undefined ? {} : { priorityOf }),
    });
    this.controller.cpu.enabled = live.get('admission.fair-scheduling') === 'on';
    this.#measured = new MeasuredCapacity({
      directory: options.directory,
      warn: options.warn,
      accounts: options.accounts,
      isLimiting: () => this.#isLimiting(),
      changed: () => this.#rateChanged(),
    });
    this.#limit();
  }

  settingChanged(key: ConfigKey): void {
    const { live, plane } = this.#options;
    switch (key) {
      case 'admission.fair-scheduling':
        this.controller.cpu.enabled = live.get(key) === 'on';
        break;
      case 'ru.metering':
      case 'admission.mode':
      case `${plane}.ru-per-second`:
        this.#limit();
        this.rateChanged();
    }
  }

  /** Request units a second that the plane can do, as set or as measured; 0 while it is not known. */
  get podRate(): number {
    const { live, plane } = this.#options;
    const isCharged = live.get('ru.metering') === 'on' && live.get('admission.mode') === 'enforce';
    const set = live.get(`${plane}.ru-per-second`);
    return set > 0 || !isCharged ? set : this.#measured.perSecond;
  }

  #isLimiting(): boolean {
    const { queue } = this.controller;
    return queue !== undefined && queue.waitingOf('read') + queue.waitingOf('write') > 0;
  }

  #rateChanged(): void {
    const { live, plane } = this.#options;
    if (live.get(`${plane}.ru-per-second`) > 0) return;
    const { queue } = this.controller;
    if (queue?.isActive === true) queue.setRate(this.podRate, systemClock.monotonic());
    else this.#limit();
    this.rateChanged();
  }

  /** Sets up the pod's buckets and queue where its capacity is known. */
  #limit(): void {
    const { live, plane, accounts } = this.#options;
    const { cpu, queue } = this.controller;
    clearInterval(this.#timer);
    const { podRate } = this;
    const isSet = live.get(`${plane}.ru-per-second`) > 0;
    // A measured rate orders requests where there is a queue. The CPU scheduler orders them by
    // quotas without a rate, and would waste capacity while the rate is too low.
    const isOn =
      podRate > 0 &&
      (isSet || queue !== undefined) &&
      live.get('ru.metering') === 'on' &&
      live.get('admission.mode') === 'enforce';
    if (!isOn) {
      this.#capacity = undefined;
      cpu.setCapacity(undefined);
      queue?.watch(undefined);
      return;
    }
    const now = systemClock.monotonic();
    const capacity = new PodCapacity({ podRate, accounts, now });
    for (const [tenant, rate] of this.#quotas) capacity.setTenant(tenant, rate, now);
    this.#capacity = capacity;
    // Where there is an admission queue, it has debited the request's units before the CPU scheduler sees it.
    if (queue === undefined) cpu.setCapacity(capacity);
    else {
      // A measured capacity is no limit for a tenant without competitors, even while its own requests are queued.
      const isContended = (at: number): boolean => isSet || cpu.hasSeveralTenants(at);
      queue.watch({ podRate, capacity, isContended });
    }
    this.#timer = setInterval(() => {
      const at = systemClock.monotonic();
      // The admission queue uses charges up to this moment.
      if (queue !== undefined && !queue.isUncongested) queue.tick(capacity.take(at), at);
      else if (capacity.isDue(at)) {
        const charged = capacity.take(at);
        queue?.tick(charged, at);
      }
    }, chargeEveryMs);
    this.#timer.unref();
  }

  /** Tenants are weighted by their quotas. */
  follow({ tenants }: TenancyUpdate): void {
    const { cpu, queue } = this.controller;
    for (const { number, limits } of tenants) {
      const { ruPerSecond } = limits;
      this.#quotas.set(number, ruPerSecond);
      this.#capacity?.setTenant(number, ruPerSecond, systemClock.monotonic());
      const weight = weightOf(ruPerSecond);
      cpu.setWeight(number, weight);
      queue?.setWeight(number, weight);
    }
  }

  forget(tenant: number): void {
    this.#quotas.delete(tenant);
    this.#capacity?.forget(tenant);
    this.controller.cpu.forget(tenant);
    this.controller.queue?.forget(tenant);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#measured.close();
    this.controller.cpu.setCapacity(undefined);
    this.controller.queue?.watch(undefined);
  }

  samples(): MetricSample[] {
    const samples: MetricSample[] = [];
    const { plane } = this.#options;
    const { cpu } = this.controller;
    const add = adder(samples, { plane });
    add('gauge', 'cpu_queue_length', 'Batches in the queue of the CPU scheduler.', cpu.length);
    add('counter', 'cpu_queued', 'Batches that the CPU scheduler queued.', cpu.queued);
    const queuedSeconds = cpu.queuedMs / 1000;
    add('counter', 'cpu_queue_seconds', 'Time that batches were queued.', queuedSeconds);
    if (this.#capacity !== undefined) {
      const balance = this.#capacity.balance(systemClock.monotonic());
      add('gauge', 'pod_ru_balance', 'Request units in the pod bucket; below 0 is debt.', balance);
    }
    add(
      'gauge',
      'pod_ru_capacity',
      'Request units a second that the plane can do, as set or measured; 0 if unknown.',
      this.podRate,
    );
    this.#queueSamples(samples);
    return samples;
  }

  #queueSamples(samples: MetricSample[]): void {
    const { queue } = this.controller;
    if (queue === undefined) return;
    for (const kind of ['read', 'write'] as const) {
      const add = adder(samples, { plane: this.#options.plane, kind });
      const { queued, queuedMs, refused } = queue.counts[kind];
      add('gauge', 'pod_waiting', 'Requests in the admission queue.', queue.waitingOf(kind));
      add('counter', 'pod_waited', 'Requests that the admission queue held.', queued);
      add('counter', 'pod_wait_seconds', 'Time in the admission queue.', queuedMs / 1000);
      add('counter', 'pod_refused', 'Requests refused by the admission queue.', refused);
    }
  }
}
