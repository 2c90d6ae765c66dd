// Who has a plane's thread next, as the settings say.

import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { TenantAccount } from '../../request-units/meter.ts';
import { PodCapacity } from '../../storage-node/admission/pod-capacity.ts';
import type { PodEntrance } from '../../storage-node/admission/pod-entrance.ts';
import { TurnQueue } from '../../storage-node/admission/turn-queue.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { TenancyUpdate } from '../../contracts/tenancy/definitions.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import type { ConfigKey } from '../settings/schema.ts';
import { adder } from './pod-samples.ts';

/** Of a tenant without a quota. Those with one weigh by it, in terms of this. */
const usualQuota = 10_000;
const chargeEveryMs = 5;

/** A tenant's, by its quota of units a second; 0 for none. */
export function weightOf(ruPerSecond: number): number {
  return (ruPerSecond === 0 ? usualQuota : ruPerSecond) / usualQuota;
}

export interface PlaneTurnsOptions {
  plane: 'redis' | 'influx';
  live: LiveConfig;
  /** What was spent lately, as of now. */
  accounts: () => Iterable<TenantAccount>;
  /** As in `TurnQueueOptions`. */
  sliceMs?: number;
  /** Where requests wait while the pod has too much to do, in place of their turn with the thread. */
  entrance?: PodEntrance;
}

export class PlaneTurns {
  readonly queue: TurnQueue;
  readonly #options: PlaneTurnsOptions;
  /** Units a second that tenants are guaranteed. */
  readonly #quotas = new Map<number, number>();
  #capacity: PodCapacity | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PlaneTurnsOptions) {
    const { sliceMs } = options;
    this.#options = options;
    this.queue = new TurnQueue({
      clock: systemClock,
      ...(sliceMs === undefined ? {} : { sliceMs }),
    });
    this.settingChanged('mech.ab-43-wfq');
    this.settingChanged('mech.ab-43-classes');
    this.settingChanged('mech.xs-52-buckets');
  }

  settingChanged(key: ConfigKey): void {
    const { live, plane } = this.#options;
    switch (key) {
      case 'mech.ab-43-wfq':
        this.queue.enabled = live.get(key) === 'on';
        break;
      case 'mech.ab-43-classes':
        this.queue.order.classes = live.get(key) === 'on';
        break;
      case 'mech.xs-52-buckets':
      case 'mech.xs-52-queue':
      case 'ru.metering':
      case 'admission.mode':
      case `${plane}.ru-per-second`:
        this.#limit();
    }
  }

  /** The pod's buckets, where it is known how much it can do. */
  #limit(): void {
    const { live, plane, accounts, entrance } = this.#options;
    clearInterval(this.#timer);
    const podRate = live.get(`${plane}.ru-per-second`);
    const hasGuarantees = live.get('mech.xs-52-buckets') === 'on';
    const hasQueues = entrance !== undefined && live.get('mech.xs-52-queue') === 'on';
    const isOn =
      podRate > 0 &&
      (hasGuarantees || hasQueues) &&
      live.get('ru.metering') === 'on' &&
      live.get('admission.mode') === 'enforce';
    if (!isOn) {
      this.#capacity = undefined;
      this.queue.setCapacity(undefined);
      entrance?.watch(undefined);
      return;
    }
    const now = systemClock.monotonic();
    const capacity = new PodCapacity({ podRate, accounts, now });
    for (const [tenant, rate] of this.#quotas) capacity.setTenant(tenant, rate, now);
    this.#capacity = capacity;
    // What has been let in has its units.
    this.queue.setCapacity(hasQueues ? undefined : capacity);
    entrance?.watch(hasQueues ? { podRate, capacity, hasGuarantees } : undefined);
    this.#timer = setInterval(() => {
      const at = systemClock.monotonic();
      // The lines before a pod go by what was charged just now.
      if (entrance !== undefined && !entrance.isCalm) entrance.tick(capacity.take(at), at);
      else if (capacity.isDue(at)) {
        const charged = capacity.take(at);
        entrance?.tick(charged, at);
      }
    }, chargeEveryMs);
    this.#timer.unref();
  }

  /** Tenants weigh by their quotas. */
  follow({ tenants }: TenancyUpdate): void {
    for (const { number, limits } of tenants) {
      const { ruPerSecond } = limits;
      this.#quotas.set(number, ruPerSecond);
      this.#capacity?.setTenant(number, ruPerSecond, systemClock.monotonic());
      const weight = weightOf(ruPerSecond);
      this.queue.setWeight(number, weight);
      this.#options.entrance?.setWeight(number, weight);
    }
  }

  forget(tenant: number): void {
    this.#quotas.delete(tenant);
    this.#capacity?.forget(tenant);
    this.queue.forget(tenant);
    this.#options.entrance?.forget(tenant);
  }

  close(): void {
    clearInterval(this.#timer);
    this.queue.setCapacity(undefined);
    this.#options.entrance?.watch(undefined);
  }

  samples(): MetricSample[] {
    const samples: MetricSample[] = [];
    const { plane } = this.#options;
    const add = adder(samples, { plane });
    add('gauge', 'turns_waiting', 'Batches that wait for the thread.', this.queue.length);
    add('counter', 'turns_waited', 'Batches that had to wait for the thread.', this.queue.waited);
    add(
      'counter',
      'turns_wait_seconds',
      'Time that batches waited for the thread.',
      this.queue.waitedMs / 1000,
    );
    if (this.#capacity !== undefined) {
      const left = this.#capacity.balance(systemClock.monotonic());
      add('gauge', 'pod_ru_balance', 'Units that the pod may do at once; below 0 it owes.', left);
    }
    return samples;
  }
}
