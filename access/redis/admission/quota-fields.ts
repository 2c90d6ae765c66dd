// A tenant's quota and its use, as shown by INFO and RU STATS.

import type { TenantAccount } from '../../../request-units/meter.ts';
import type { TenantLimiter } from '../../admission/tenant-limiter.ts';
import type { TenantLimits } from '../../admission/tenant-limits.ts';

interface QuotaFields {
  /** Requests and milliseconds. */
  counts: [name: string, value: number][];
  /** Request units, and percents. */
  units: [name: string, value: number][];
}

/** Nothing for a tenant without a limit. */
export function quotaFields(
  { limiter, classLimiter }: TenantLimits,
  account: TenantAccount,
): QuotaFields {
  const ofAll = limiter === undefined ? none : fieldsOf(limiter, account);
  const ofScans = classLimiter === undefined ? none : scanFields(classLimiter);
  return {
    counts: [...ofAll.counts, ...ofScans.counts],
    units: [...ofAll.units, ...ofScans.units],
  };
}

const none: QuotaFields = { counts: [], units: [] };

function scanFields(limiter: TenantLimiter): QuotaFields {
  const { counters, quota, waiting } = limiter;
  return {
    counts: [
      ['scans_waiting', waiting],
      ['scans_waited', counters.waited],
      ['scans_refused', counters.refused],
    ],
    units: [
      ['scan_quota', quota.perSecond],
      ['scan_balance', limiter.balance(performance.now())],
    ],
  };
}

function fieldsOf(limiter: TenantLimiter, account: TenantAccount): QuotaFields {
  const { counters, quota, waiting } = limiter;
  const now = performance.now();
  return {
    counts: [
      ['waiting', waiting],
      ['waited', counters.waited],
      ['waited_ms', Math.round(counters.waitedMs)],
      ['refused', counters.refused],
      ['would_wait', counters.wouldWait],
      ['would_refuse', counters.wouldRefuse],
      ['partition_refused', counters.partitionRefused],
      ['partition_would_refuse', counters.partitionWouldRefuse],
    ],
    units: [
      ['quota', quota.perSecond],
      ['quota_burst', quota.burst],
      ['quota_peak', quota.peak],
      ['balance', limiter.balance(now)],
      ['warmup_left', limiter.warmupLeft(now)],
      ['quota_used_percent', (account.lastSecondLru / quota.perSecond) * 100],
      ['burst_ru', counters.burstRu],
      ['over_quota_ru', counters.burstRu + counters.spareRu],
    ],
  };
}
