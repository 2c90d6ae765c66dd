// Output of `polyrow top`: tenants by spent units, and their most expensive keys and series.

import { percentText } from './admission-view.ts';
import { type Column, grid } from './grid.ts';
import { formatBytes, formatNumber, shorten } from './values.ts';

/** A tenant's rates per second. */
export interface TenantRate {
  tenant: string;
  ru: number;
  /** Request units by class of work. */
  ruByClass: Readonly<Record<string, number>>;
  requests: number;
  errors: number;
  /** Request units a second it may spend; 0 no limit, and where that is not known. */
  ruLimit: number;
  /** Fraction of the limit in use, on the plane where it is highest. */
  ofLimit: number;
  /** Requests that wait for request units now, and that were refused for want of them, a second. */
  waiting: number;
  refused: number;
}

export interface HotName {
  kind: string;
  tenant: string;
  database: number | string;
  name: string;
  ru: number;
  rate: number;
  bytes: number;
}

export interface TopView {
  /** The time that the rates of tenants are of; 0 before there are any. */
  seconds: number;
  tenants: TenantRate[];
  hot: HotName[];
}

/** In so many lines, which the two lists share as they need them. */
export async function topText(view: TopView, lines: number, columns: number): Promise<string> {
  const { seconds, tenants, hot } = view;
  // Two titles, and the empty line between.
  const room = Math.max(2, lines - 3);
  const forTenants = Math.min(tenants.length, Math.max(room >> 1, room - hot.length));
  const forHot = Math.min(hot.length, room - forTenants);
  const upper = await grid(
    tenantColumns,
    tenants.slice(0, forTenants),
    seconds === 0 ? 'looking …' : 'no tenant spends anything',
  );
  const lower = await grid(hotColumns(columns), hot.slice(0, forHot), 'no hot keys or series');
  return `${upper}\n\n${lower}`;
}

const classes = ['read', 'write', 'scan', 'background'];

const tenantColumns: Column<TenantRate>[] = [
  { title: 'tenant', value: ({ tenant }) => shorten(tenant, 24) },
  { title: 'RU/s', value: ({ ru }) => formatNumber(ru), right: true },
  { title: 'of limit', value: shareOfLimit, right: true },
  ...classes.map((kind) => ({
    title: kind,
    value: ({ ruByClass }: TenantRate) => classText(ruByClass, kind),
    right: true,
  })),
  { title: 'requests/s', value: ({ requests }) => formatNumber(requests), right: true },
  { title: 'errors/s', value: ({ errors }) => formatNumber(errors), right: true },
  { title: 'waiting', value: ({ waiting }) => formatNumber(waiting), right: true },
  { title: 'refused/s', value: ({ refused }) => formatNumber(refused), right: true },
];

/** Nothing where it was not told apart. */
function classText(ruByClass: TenantRate['ruByClass'], kind: string): string {
  return Object.keys(ruByClass).length === 0 ? '' : formatNumber(ruByClass[kind] ?? 0);
}

function shareOfLimit({ ofLimit, ruLimit }: TenantRate): string {
  return ruLimit === 0 ? '-' : percentText(ofLimit);
}

function hotColumns(columns: number): Column<HotName>[] {
  // The rest of a line beside the other columns.
  const nameLength = Math.max(16, columns - 76);
  return [
    { title: 'hot', value: ({ kind }) => kind },
    { title: 'tenant', value: ({ tenant }) => shorten(tenant, 16) },
    { title: 'database', value: ({ database }) => shorten(String(database), 16) },
    { title: 'RU', value: ({ ru }) => formatNumber(ru), right: true },
    { title: 'requests/s', value: ({ rate }) => formatNumber(rate), right: true },
    { title: 'size', value: ({ bytes }) => (bytes === 0 ? '' : formatBytes(bytes)), right: true },
    { title: 'name', value: ({ name }) => shorten(name, nameLength) },
  ];
}
