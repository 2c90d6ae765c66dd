// A tenant's quota and what became of it, as INFO and RU STATS show it.

import type { TenantAccount } from '../../../request-units/meter.ts';
import type { TenantGate } from '../../admission/tenant-gate.ts';

export interface QuotaFields {
  /** Requests and milliseconds. */
  counts: [name: string, value: number][];
  /** Request units, and percents. */
  units: [name: string, value: number][];
}

/** Nothing for a tenant without a limit. */
export function quotaFields(gate: TenantGate | undefined, account: TenantAccount): QuotaFields {
  if (gate === undefined) return { counts: [], units: [] };
  const { counters, quota, share, waiting } = gate;
  return {
    counts: [
      ['waiting', waiting],
      ['waited', counters.waited],
      ['waited_ms', Math.round(counters.waitedMs)],
      ['refused', counters.refused],
      ['would_wait', counters.wouldWait],
      ['would_refuse', counters.wouldRefuse],
    ],
    units: [
      ['quota', quota.perSecond],
      ['quota_burst', quota.burst],
      ['share', share],
      ['balance', gate.balance(performance.now())],
      ['share_used_percent', share === 0 ? 0 : (account.lastSecondLru / share) * 100],
      ['burst_ru', counters.burstRu],
      ['over_quota_ru', counters.burstRu + counters.spareRu],
    ],
  };
}
