// The control plane's part in limits: for each data plane the scheduler that shares out quotas to the gateways of its
// pool, and warnings of tenants that come near theirs.

import { PoolScheduler } from '../../access/admission/pool-scheduler.ts';
import type { PoolRules } from '../../access/admission/pool-tenant.ts';
import { QuotaWatch } from '../../access/admission/quota-watch.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { TenancyUpdate } from '../../contracts/tenancy/definitions.ts';
import type { FromGateway } from '../../contracts/tenancy/pool-messages.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import type { PlaneHost, Planes } from './plane-host.ts';

const callTimeoutMs = 5000;

interface Pool {
  plane: PlaneHost;
  scheduler: PoolScheduler;
  watch: QuotaWatch;
}

export interface GatewayPoolsOptions {
  planes: Planes;
  config: LiveConfig;
  /** A tenant comes near its quota. */
  warn: (fields: Record<string, unknown>, message: string) => void;
}

export class GatewayPools {
  readonly #config: LiveConfig;
  readonly #warn: GatewayPoolsOptions['warn'];
  readonly #pools: Pool[];
  /** Names and quotas of tenants, by number; those without a limit too. */
  readonly #tenants = new Map<number, { name: string; quota: number }>();
  readonly #timer: NodeJS.Timeout;

  constructor({ planes, config, warn }: GatewayPoolsOptions) {
    this.#config = config;
    this.#warn = warn;
    this.#pools = Object.values(planes).map((plane: PlaneHost) => ({
      plane,
      scheduler: new PoolScheduler({
        clock: systemClock,
        rules: rulesOf(config),
        // It lives and dies with the gateways: there are none that it has yet to hear of.
        learnMs: 0,
        send: (_, message) => {
          if (!plane.isUp) return;
          // What is not answered will be said again.
          plane.call('pool', message, callTimeoutMs).catch(() => {});
        },
      }),
      watch: new QuotaWatch({ alarmAt: alarmAt(config) }),
    }));
    config.onChange((key) => {
      if (key.startsWith('admission.') || key.startsWith('mech.')) this.#applySettings();
    });
    this.#timer = setInterval(() => this.#second(), 1000).unref();
  }

  #applySettings(): void {
    for (const { scheduler, watch } of this.#pools) {
      scheduler.setRules(rulesOf(this.#config));
      watch.options.alarmAt = alarmAt(this.#config);
    }
  }

  /** What has changed of tenants. */
  follow({ whole, tenants, gone }: TenancyUpdate): void {
    const names = new Set(whole ? tenants.map(({ name }) => name) : gone.tenants);
    for (const [number, { name }] of this.#tenants) {
      if (names.has(name) !== whole) this.#forget(number);
    }
    for (const { number, name, limits } of tenants) {
      this.#tenants.set(number, { name, quota: limits.ruPerSecond });
    }
    const quotas = tenants.map(({ number, limits }) => [number, limits.ruPerSecond] as const);
    for (const { scheduler } of this.#pools) scheduler.setQuotas(quotas);
  }

  #forget(tenant: number): void {
    this.#tenants.delete(tenant);
    for (const { scheduler, watch } of this.#pools) {
      scheduler.forget(tenant);
      watch.forget(tenant);
    }
  }

  /** A gateway of the plane's pool says something. */
  hear(plane: PlaneHost, message: FromGateway): void {
    const pool = this.#pools.find((one) => one.plane === plane);
    if (pool === undefined) return;
    if (message.type === 'report') {
      message.tenants.forEach((tenant, i) => pool.watch.count(tenant, message.used[i]!));
    }
    pool.scheduler.hear(message);
  }

  #second(): void {
    for (const { plane, scheduler, watch } of this.#pools) {
      scheduler.second();
      const quotaOf = (tenant: number): number => this.#tenants.get(tenant)?.quota ?? 0;
      for (const { tenant, quota, used } of watch.second(quotaOf, systemClock.monotonic())) {
        const name = this.#tenants.get(tenant)!.name;
        const percent = Math.round((100 * used) / quota);
        this.#warn(
          { tenant: name, plane: plane.name, quotaRu: quota, usedRu: Math.round(used) },
          `tenant ${name} uses ${percent} % of its request units on the ${plane.name} plane`,
        );
      }
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

function rulesOf(config: LiveConfig): Partial<PoolRules> {
  return {
    moves: config.get('mech.xs-52-autoscale') === 'on',
    lends: config.get('mech.xs-52-waitq') === 'on',
  };
}

function alarmAt(config: LiveConfig): number {
  const percent = config.get('admission.alarm-percent');
  const isOn = config.get('mech.aws-visibility') === 'on' && percent > 0;
  return isOn ? percent / 100 : Infinity;
}
