// The limits on request units in a plane: the settings that are about them, as the rules of its gates.

import { type AdmissionRules, GatewayAdmission } from '../../access/admission/gateway-admission.ts';
import type { TenantAccount } from '../../request-units/meter.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { FromGateway } from '../../contracts/tenancy/pool-messages.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import type { ConfigKey } from '../settings/schema.ts';
import type { Turns } from '../../contracts/turns.ts';
import { PlanePool } from './plane-pool.ts';

/** Keys of other settings than `admission.*` and `mech.*` that are about limits. */
const otherKeys: ReadonlySet<ConfigKey> = new Set([
  'ru.metering',
  'redis.ru-per-second',
  'influx.ru-per-second',
]);

export interface PlaneAdmissionOptions {
  plane: 'redis' | 'influx';
  live: LiveConfig;
  /** Where what a tenant spends is charged. */
  accountOf: (tenant: number) => TenantAccount | undefined;
  turns: Turns;
  /** To the scheduler of the gateway's pool. */
  send: (message: FromGateway) => void;
}

export class PlaneAdmission {
  readonly gateway: GatewayAdmission;
  readonly pool: PlanePool;
  readonly #options: PlaneAdmissionOptions;
  readonly #timer: NodeJS.Timeout;
  #isDue = false;
  #isClosed = false;

  constructor(options: PlaneAdmissionOptions) {
    this.#options = options;
    const { live, plane, accountOf, turns, send } = options;
    const rules = rulesOf(live, plane);
    this.gateway = new GatewayAdmission({
      clock: systemClock,
      rules,
      turns,
      accountOf,
      classLimit: plane === 'redis' ? 'scanRuPerSecond' : 'queryRuPerSecond',
    });
    this.pool = new PlanePool(plane, this.gateway, send);
    this.#timer = setInterval(() => {
      this.gateway.endSecond();
      this.pool.second();
    }, 1000);
    this.#timer.unref();
  }

  /** A setting has changed. If it is about limits they follow, not before the request is over that changed it. */
  settingChanged(key: ConfigKey): void {
    const isOurs = key.startsWith('admission.') || key.startsWith('mech.') || otherKeys.has(key);
    if (!isOurs || this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      const { live, plane } = this.#options;
      if (!this.#isClosed) this.gateway.setRules(rulesOf(live, plane));
    });
  }

  /** Nobody waits any longer. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.pool.close();
    this.gateway.close();
  }
}

// A body of points can cost many seconds of a quota. All of it is owed: were a part forgiven, large bodies would be a
// way around the quota. It is paid at once when the quota is raised or taken away.
const debtSeconds = { redis: 10, influx: 3600 } as const;

/** Without metering nobody knows what anything costs: then nothing is limited. */
function rulesOf(live: LiveConfig, plane: 'redis' | 'influx'): Partial<AdmissionRules> {
  const mode = live.get('admission.mode');
  const isOn = (key: ConfigKey): boolean => live.get(key) === 'on';
  const refuses = isOn('mech.aws-429');
  return {
    enabled: mode !== 'off' && isOn('ru.metering') && isOn('mech.xs-52-quota'),
    dryRun: mode === 'dry-run',
    debit: isOn('mech.aws-debit'),
    commandWaitMs: refuses ? live.get('admission.command-wait-ms') : Infinity,
    writeWaitMs: refuses ? live.get('admission.write-wait-ms') : Infinity,
    refusalCode: live.get('admission.refusal-code'),
    allocation: live.get('admission.allocation'),
    stacks: isOn('mech.aws-stacked'),
    gatewayRu: live.get(`${plane}.ru-per-second`),
    burstRu: isOn('mech.xs-52-burst') ? live.get('admission.burst-ru') : 0,
    queryQueueLength: live.get('admission.query-queue-length'),
    strictQueries: isOn('admission.strict-queries'),
    accumulates: isOn('mech.xs-52-accum'),
    queriesWait: isOn('mech.xs-52-waitq'),
    shedsEarly: isOn('mech.aws-shed'),
    debtSeconds: debtSeconds[plane],
    warmupSeconds: isOn('mech.aws-warmup') ? live.get('admission.warmup-seconds') : 0,
    warmupFactor: live.get('admission.warmup-factor'),
    classQuotas: isOn('mech.aws-cost-quotas'),
    composes: isOn('mech.aws-composed'),
    delaysErrors: isOn('mech.aws-slow-error') && isOn('admission.error-delay'),
  };
}
