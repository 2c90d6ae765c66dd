// Use of tenants' limits on request units, as text.

import type { TenantAdmission } from '../../control/monitor/tenant-admission.ts';
import { type Column, grid } from './grid.ts';
import { formatNumber, shorten } from './values.ts';

/** As the admin API tells it: with the tenant's name in place of its number. */
export type AdmissionView = Omit<TenantAdmission, 'tenant'> & { plane: string; tenant: string };

export function admissionText(
  rows: readonly AdmissionView[],
  tells: 'tenant' | 'plane',
): Promise<string> {
  const dry = rows.some(({ wouldWait, wouldRefuse }) => wouldWait + wouldRefuse > 0);
  const columns = [
    ...(tells === 'tenant' ? [tenant] : []),
    ...usual,
    ...(rows.some(({ warmupRu }) => warmupRu > 0) ? warmupColumns : []),
    ...(rows.some(({ classQuotaRu }) => classQuotaRu > 0) ? classColumns : []),
    ...(dry ? dryColumns : []),
  ];
  return grid(columns, rows, 'no tenant has a limit on request units');
}

/** Use of the limit, in whole per cents. */
export function percentText(part: number): string {
  return `${Math.round(100 * part)} %`;
}

function partText(used: number, limit: number): string {
  return limit === 0 ? '-' : percentText(used / limit);
}

const tenant: Column<AdmissionView> = { title: 'tenant', value: (row) => shorten(row.tenant, 24) };

function numbers(
  all: readonly (readonly [title: string, of: (row: AdmissionView) => number])[],
): Column<AdmissionView>[] {
  return all.map(([title, of]) => ({ title, value: (row) => formatNumber(of(row)), right: true }));
}

const usual: Column<AdmissionView>[] = [
  { title: 'plane', value: ({ plane }) => plane },
  ...numbers([
    ['limit', ({ quotaRu }) => quotaRu],
    ['RU/s', ({ usedRu }) => usedRu],
  ]),
  { title: 'used', value: ({ usedRu, quotaRu }) => partText(usedRu, quotaRu), right: true },
  {
    title: 'minute',
    value: ({ usedRuMinute, quotaRu }) => partText(usedRuMinute, quotaRu),
    right: true,
  },
  ...numbers([
    ['waiting', ({ waiting, waitingQueries }) => waiting + waitingQueries],
    ['waited', ({ waited }) => waited],
    ['refused', ({ refused }) => refused],
    ['burst RU', ({ burstRu }) => burstRu],
    ['spare RU', ({ spareRu }) => spareRu],
    ['saved RU', ({ savedRu }) => savedRu],
  ]),
];

/** Remaining warm-up credit of a new tenant. */
const warmupColumns = numbers([['warm-up RU', ({ warmupRu }) => warmupRu]]);

/** Use of the limits on Redis scans and InfluxDB queries. */
const classColumns = numbers([
  ['scan/query limit', ({ classQuotaRu }) => classQuotaRu],
  ['scan/query RU/s', ({ classUsedRu }) => classUsedRu],
]);

const dryColumns = numbers([
  ['would wait', ({ wouldWait }) => wouldWait],
  ['would refuse', ({ wouldRefuse }) => wouldRefuse],
]);
