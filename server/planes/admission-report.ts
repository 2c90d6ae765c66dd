// Quotas of a plane's tenants and how much of them is used, for the admin API.

import type { GatewayAdmission } from '../../access/admission/gateway-admission.ts';
import type { TenantLimiter } from '../../access/admission/tenant-limiter.ts';
import {
  type AdmissionQuery,
  type TenantAdmission,
  usedPartOf,
} from '../../control/monitor/tenant-admission.ts';
import { systemClock } from '../../universal-row/environment.ts';

type ClassReport = Pick<
  TenantAdmission,
  'classQuotaRu' | 'classUsedRu' | 'waiting' | 'waited' | 'refused' | 'wouldWait' | 'wouldRefuse'
>;

const empty: TenantAdmission = {
  tenant: 0,
  quotaRu: 0,
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

/** Tenants that use most of their quotas come first. */
export function admissionReport(
  admission: GatewayAdmission,
  { tenant, limit }: AdmissionQuery,
): TenantAdmission[] {
  const all: TenantAdmission[] = [];
  for (const limiter of admission.limiters()) {
    if (tenant === undefined || limiter.tenant === tenant) all.push(reportOf(admission, limiter));
  }
  for (const { tenant: number } of admission.classLimiters()) {
    if (tenant !== undefined && number !== tenant) continue;
    if (admission.limiterOf(number) !== undefined) continue;
    all.push({ ...empty, tenant: number, ...withClass(admission, number, empty) });
  }
  return all.sort((a, b) => usedPartOf(b) - usedPartOf(a) || a.tenant - b.tenant).slice(0, limit);
}

/** Adds the tenant's scans or queries, where they have a limit of their own. */
function withClass(admission: GatewayAdmission, tenant: number, before: ClassReport): ClassReport {
  const limiter = admission.classLimiterOf(tenant);
  if (limiter === undefined) return before;
  const { counters, waiting } = limiter;
  return {
    classQuotaRu: limiter.quota.perSecond,
    classUsedRu: limiter.use.lastSecond,
    waiting: before.waiting + waiting,
    waited: before.waited + counters.waited,
    refused: before.refused + counters.refused,
    wouldWait: before.wouldWait + counters.wouldWait,
    wouldRefuse: before.wouldRefuse + counters.wouldRefuse,
  };
}

function reportOf(admission: GatewayAdmission, limiter: TenantLimiter): TenantAdmission {
  const { tenant, counters, queryLimiter, use } = limiter;
  const withoutClass: ClassReport = {
    classQuotaRu: 0,
    classUsedRu: 0,
    waiting: limiter.waiting,
    waited: counters.waited + queryLimiter.counters.waited,
    refused: counters.refused + counters.partitionRefused + queryLimiter.counters.refused,
    wouldWait: counters.wouldWait + queryLimiter.counters.wouldWait,
    wouldRefuse: counters.wouldRefuse + counters.partitionWouldRefuse,
  };
  return {
    tenant,
    quotaRu: limiter.quota.perSecond,
    usedRu: use.lastSecond,
    usedRuMinute: use.lastMinute / 60,
    savedRu: limiter.queries.units.balance,
    warmupRu: limiter.warmupLeft(systemClock.monotonic()),
    waitingQueries: queryLimiter.waiting,
    burstRu: counters.burstRu,
    spareRu: counters.spareRu,
    ...withClass(admission, tenant, withoutClass),
  };
}
