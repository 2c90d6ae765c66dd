// The plane's gateway in its pool: what it tells the scheduler of shares, and operators, of tenants with a limit.

import { randomBytes } from 'node:crypto';
import type { GatewayAdmission } from '../../access/admission/gateway-admission.ts';
import { PoolAgent } from '../../access/admission/pool-agent.ts';
import { QuotaWatch } from '../../access/admission/quota-watch.ts';
import type { TenantGate } from '../../access/admission/tenant-gate.ts';
import {
  type AdmissionQuery,
  type TenantAdmission,
  usedPartOf,
} from '../../control/monitor/tenant-admission.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { FromGateway, ToGateway } from '../../contracts/tenancy/pool-messages.ts';

type ClassTold = Pick<
  TenantAdmission,
  'classQuotaRu' | 'classUsedRu' | 'waiting' | 'waited' | 'refused' | 'wouldWait' | 'wouldRefuse'
>;

const nothingTold: TenantAdmission = {
  tenant: 0,
  quotaRu: 0,
  shareRu: 0,
  usedRu: 0,
  usedRuMinute: 0,
  savedRu: 0,
  warmupRu: 0,
  classQuotaRu: 0,
  classUsedRu: 0,
  waiting: 0,
  waitingQueries: 0,
  waited: 0,
  refused: 0,
  burstRu: 0,
  spareRu: 0,
  wouldWait: 0,
  wouldRefuse: 0,
};

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
    for (const gate of this.#admission.classGates()) {
      if (tenant !== undefined && gate.tenant !== tenant) continue;
      if (this.#admission.gateOf(gate.tenant) === undefined) all.push(this.#tellOfClass(gate));
    }
    return all.sort((a, b) => usedPartOf(b) - usedPartOf(a) || a.tenant - b.tenant).slice(0, limit);
  }

  /** Of a tenant with no other limit. */
  #tellOfClass(gate: TenantGate): TenantAdmission {
    return { ...nothingTold, tenant: gate.tenant, ...this.#ofClass(gate.tenant, nothingTold) };
  }

  /** What its scans, or queries, add to what is told of the tenant. */
  #ofClass(tenant: number, before: ClassTold): ClassTold {
    const gate = this.#admission.classGateOf(tenant);
    if (gate === undefined) return before;
    const { counters, waiting } = gate;
    return {
      classQuotaRu: gate.quota.perSecond,
      classUsedRu: this.#admission.classRu(tenant),
      waiting: before.waiting + waiting,
      waited: before.waited + counters.waited,
      refused: before.refused + counters.refused,
      wouldWait: before.wouldWait + counters.wouldWait,
      wouldRefuse: before.wouldRefuse + counters.wouldRefuse,
    };
  }

  #tellOf(gate: TenantGate): TenantAdmission {
    const { tenant, counters, line } = gate;
    const ofClass = this.#ofClass(tenant, {
      classQuotaRu: 0,
      classUsedRu: 0,
      waiting: gate.waiting,
      waited: counters.waited + line.counters.waited,
      refused: counters.refused + counters.partitionRefused + line.counters.refused,
      wouldWait: counters.wouldWait + line.counters.wouldWait,
      wouldRefuse: counters.wouldRefuse + counters.partitionWouldRefuse,
    });
    return {
      tenant,
      quotaRu: gate.quota.perSecond,
      shareRu: gate.share,
      usedRu: this.#watch.lastSecond(tenant),
      usedRuMinute: this.#watch.lastMinute(tenant) / 60,
      savedRu: gate.queries.units.balance,
      warmupRu: gate.warmupLeft(systemClock.monotonic()),
      waitingQueries: line.waiting,
      burstRu: counters.burstRu,
      spareRu: counters.spareRu,
      ...ofClass,
    };
  }
}
