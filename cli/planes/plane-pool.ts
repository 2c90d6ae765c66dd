// The plane's gateway in its pool: what it tells the scheduler of shares, and operators, of tenants with a limit.

import { randomBytes } from 'node:crypto';
import type { GatewayAdmission } from '../../access/admission/gateway-admission.ts';
import { PoolAgent } from '../../access/admission/pool-agent.ts';
import { QuotaWatch } from '../../access/admission/quota-watch.ts';
import type { TenantGate } from '../../access/admission/tenant-gate.ts';
import type { AdmissionQuery, TenantAdmission } from '../../control/monitor/tenant-admission.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { FromGateway, ToGateway } from '../../universal-row/tenancy/pool-messages.ts';

export class PlanePool {
  readonly #admission: GatewayAdmission;
  readonly #agent: PoolAgent;
  /** Who is warned of is for the scheduler to say, which hears of all gateways. */
  readonly #watch = new QuotaWatch({ alarmAt: Infinity });

  constructor(plane: string, admission: GatewayAdmission, send: (message: FromGateway) => void) {
    this.#admission = admission;
    this.#agent = new PoolAgent({
      gateway: `${plane}-${randomBytes(8).toString('hex')}`,
      admission,
      clock: systemClock,
      // A plane has one gateway.
      firstPart: 1,
      send: (message) => {
        if (message.type === 'report') {
          message.tenants.forEach((tenant, i) => this.#watch.count(tenant, message.used[i]!));
        }
        send(message);
      },
    });
  }

  hear(message: ToGateway): void {
    this.#agent.hear(message);
  }

  /** To be called each second, after that of the gates. */
  second(): void {
    this.#agent.second();
    this.#watch.second(() => 0, systemClock.monotonic());
  }

  /** The tenant is no more. */
  forget(tenant: number): void {
    this.#agent.forget(tenant);
    this.#watch.forget(tenant);
  }

  /** It serves nobody any more. */
  close(): void {
    this.#agent.goodbye();
  }

  /** Of the tenant's quota, what was used in the last second. */
  usedPart({ tenant, quota }: TenantGate): number {
    return this.#watch.lastSecond(tenant) / quota.perSecond;
  }

  /** Those that use most of their quotas first. */
  tell({ tenant, limit }: AdmissionQuery): TenantAdmission[] {
    const all: TenantAdmission[] = [];
    for (const gate of this.#admission.gates()) {
      if (tenant === undefined || gate.tenant === tenant) all.push(this.#tellOf(gate));
    }
    const part = ({ usedRu, usedRuMinute, quotaRu }: TenantAdmission): number =>
      Math.max(usedRu, usedRuMinute) / quotaRu;
    return all.sort((a, b) => part(b) - part(a) || a.tenant - b.tenant).slice(0, limit);
  }

  #tellOf(gate: TenantGate): TenantAdmission {
    const { tenant, counters, line } = gate;
    return {
      tenant,
      quotaRu: gate.quota.perSecond,
      shareRu: gate.share,
      usedRu: this.#watch.lastSecond(tenant),
      usedRuMinute: this.#watch.lastMinute(tenant) / 60,
      savedRu: gate.queries.units.balance,
      waiting: gate.waiting,
      waitingQueries: line.waiting,
      waited: counters.waited + line.counters.waited,
      refused: counters.refused + line.counters.refused,
      burstRu: counters.burstRu,
      spareRu: counters.spareRu,
      wouldWait: counters.wouldWait + line.counters.wouldWait,
      wouldRefuse: counters.wouldRefuse,
    };
  }
}
