// A plane's report on tenants with a limit on request units: use of the limit, waiting and refused requests.

export interface AdmissionQuery {
  /** Restricts the report to this tenant number. */
  tenant?: number;
  /** Number of tenants shown, by use of their quotas. */
  limit: number;
}

export interface TenantAdmission {
  /** The tenant's number. */
  tenant: number;
  /** Request units a second. */
  quotaRu: number;
  /** Request units of the last second, and of the last minute, a second. */
  usedRu: number;
  usedRuMinute: number;
  /** Unspent units of the last minute, which queries may spend. */
  savedRu: number;
  /** Units beyond the quota that it may still spend because it is new. */
  warmupRu: number;
  /**
   * Limit on scans, or on queries, of this gateway in units a second, and their cost in the last
   * second; or 0.
   */
  classQuotaRu: number;
  classUsedRu: number;
  /** Requests, and queries, that wait just now. */
  waiting: number;
  waitingQueries: number;
  /** Requests and queries that waited, and that were refused, since the limit was set. */
  waited: number;
  refused: number;
  /** Units spent beyond the quota since the limit was set: from the burst package, and borrowed from other tenants. */
  burstRu: number;
  spareRu: number;
  /** Since then, requests that would have waited or been refused if limits were enforced. */
  wouldWait: number;
  wouldRefuse: number;
}

/** Fraction of the limit in use, for the limit with the highest fraction. */
export function usedPartOf(told: Omit<TenantAdmission, 'tenant'>): number {
  const { usedRu, usedRuMinute, quotaRu, classUsedRu, classQuotaRu } = told;
  const ofAll = quotaRu === 0 ? 0 : Math.max(usedRu, usedRuMinute) / quotaRu;
  return Math.max(ofAll, classQuotaRu === 0 ? 0 : classUsedRu / classQuotaRu);
}
