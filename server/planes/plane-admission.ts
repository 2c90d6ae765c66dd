// The limits on request units in a plane: the settings that are about them, as the rules of its limiters.

import type { AdmissionRules } from '../../access/admission/admission-rules.ts';
import type { QuotaShare } from '../../access/admission/shares/shared-quotas.ts';
import { GatewayAdmission } from '../../access/admission/gateway-admission.ts';
import type { TenantAccount } from '../../request-units/meter.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import type { ConfigKey } from '../settings/schema.ts';
import type { PodAdmission } from '../../contracts/pod-admission.ts';

/** Settings beside `admission.*` that the rules follow from. */
const otherKeys: ReadonlySet<ConfigKey> = new Set([
  'ru.metering',
  'redis.ru-per-second',
  'influx.ru-per-second',
]);

interface PlaneAdmissionOptions {
  plane: 'redis' | 'influx';
  live: LiveConfig;
  /** Account that is charged for a tenant's use. */
  accountOf: (tenant: number) => TenantAccount | undefined;
  pod: PodAdmission;
  /** Number of nodes of the cluster. Each node has an equal share of all limits until it is assigned another share. */
  nodes: number;
  /** A tenant comes near its quota. */
  warn: (fields: Record<string, unknown>, message: string) => void;
}

export class PlaneAdmission {
  readonly gateway: GatewayAdmission;
  readonly #options: PlaneAdmissionOptions;
  readonly #timer: NodeJS.Timeout;
  #isDue = false;
  #isClosed = false;

  constructor(options: PlaneAdmissionOptions) {
    this.#options = options;
    const { live, plane, accountOf, pod, warn } = options;
    const rules = rulesOf(live, plane);
    this.gateway = new GatewayAdmission({
      clock: systemClock,
      rules,
      pod,
      accountOf,
      classLimit: plane === 'redis' ? 'scanRuPerSecond' : 'queryRuPerSecond',
      alarm: ({ name, quota: { perSecond } }, used) => {
        const percent = Math.round((100 * used) / perSecond);
        warn(
          { tenant: name, plane, quotaRu: perSecond, usedRu: Math.round(used) },
          `tenant ${name} uses ${percent} % of its request units on the ${plane} plane`,
        );
      },
    });
    this.setShares({ usual: 1 / Math.max(1, options.nodes), shares: [] });
    this.#timer = setInterval(() => this.gateway.endSecond(), 1000);
    this.#timer.unref();
  }

  /** A setting has changed. If it is about limits they follow, not before the request is over that changed it. */
  settingChanged(key: ConfigKey): void {
    const isOurs = key.startsWith('admission.') || otherKeys.has(key);
    if (!isOurs || this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      const { live, plane } = this.#options;
      if (!this.#isClosed) this.gateway.setRules(rulesOf(live, plane));
    });
  }

  /** Parts of limits that hold for all nodes of a cluster. */
  setShares({ usual, shares }: { usual: number; shares: readonly QuotaShare[] }): void {
    this.gateway.setShares(new Map(shares.map(({ tenant, share }) => [tenant, share])), usual);
  }

  /** Ends admission; no request waits any longer. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.gateway.close();
  }
}

// A large body of points can cost many seconds of a quota. All of its cost is owed: if a part were forgiven, large
// bodies would bypass the quota. The debt is cleared at once when the quota is raised or removed.
const debtSeconds = { redis: 10, influx: 3600 } as const;

/** Without metering no request has a known cost: then nothing is limited. */
function rulesOf(live: LiveConfig, plane: 'redis' | 'influx'): Partial<AdmissionRules> {
  const mode = live.get('admission.mode');
  return {
    enabled: mode !== 'off' && live.get('ru.metering') === 'on',
    dryRun: mode === 'dry-run',
    commandWaitMs: live.get('admission.command-wait-ms'),
    writeWaitMs: live.get('admission.write-wait-ms'),
    allocation: live.get('admission.allocation'),
    gatewayRu: live.get(`${plane}.ru-per-second`),
    burstRu: live.get('admission.burst-ru'),
    debtSeconds: debtSeconds[plane],
    warmupSeconds: live.get('admission.warmup-seconds'),
    delaysErrors: live.get('admission.error-delay') === 'on',
  };
}
