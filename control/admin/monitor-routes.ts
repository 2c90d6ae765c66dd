// Current activity: request units spent, the most expensive keys and series, slow requests.

import type { FastifyInstance } from 'fastify';
import type { ChargeClassName } from '../../request-units/meter.ts';
import { usedPartOf } from '../monitor/tenant-admission.ts';
import type { TopOrder } from '../monitor/top.ts';
import {
  type UsageGroup,
  UsageHistory,
  type UsageQuery,
  type UsageRow,
  type UsageSlot,
} from '../monitor/usage-history.ts';
import type { TenantCatalog } from '../tenants/tenant-catalog.ts';
import type { PlaneAccess } from './plane-access.ts';
import { scopeOf } from './principal.ts';
import { addRoute, callerOf } from './route.ts';
import * as schema from './schemas.ts';

export interface MonitorSources {
  tenants: TenantCatalog;
  planes: readonly PlaneAccess[];
  usage: UsageHistory;
  /** Brings the history up to now. */
  refreshUsage: () => Promise<void>;
  /** Usage through other nodes of a cluster; absent on a single server. */
  usageElsewhere?: ((query: UsageQuery) => Promise<UsageRow[]>) | undefined;
}

interface UsageParameters {
  tenant?: string;
  plane?: string;
  class?: ChargeClassName;
  slot?: UsageSlot;
  from?: number;
  to?: number;
  by?: string;
  limit?: number;
}

interface PlaneParameters {
  tenant?: string;
  plane?: string;
  limit?: number;
}

const usualRows = 1000;
const usualEntries = 50;

export function monitorRoutes(app: FastifyInstance, sources: MonitorSources): void {
  const { tenants, planes, usage, refreshUsage, usageElsewhere } = sources;
  /** The number of the tenant that an answer is about; undefined for all. */
  const numberOf = (tenant: string | undefined): { tenant?: number } =>
    tenant === undefined ? {} : { tenant: tenants.find(tenant).number };
  const nameOf = (number: number): string => tenants.byNumber(number)?.name ?? `#${number}`;
  const asked = (plane: string | undefined): PlaneAccess[] =>
    planes.filter(({ name }) => plane === undefined || name === plane);

  addRoute<undefined, UsageParameters>(
    app,
    {
      method: 'GET',
      url: '/v1/ru',
      access: 'read',
      summary: 'Request units spent, by time slot. Default: the last hour, by tenant.',
      query: schema.usageQuery,
      answer: schema.usageAnswer,
    },
    async ({ request, query }) => {
      const { tenant, slot = 'minute', by = 'tenant', limit = usualRows, ...rest } = query;
      const scope = scopeOf(callerOf(request), tenant);
      await refreshUsage();
      const from = query.from ?? (query.to ?? Date.now()) - hourMs;
      const wish = { ...rest, ...numberOf(scope), slot, from, by: by.split(',') as UsageGroup[] };
      const own = usage.rows(wish);
      const others = await usageElsewhere?.(wish);
      const rows = others === undefined ? own : UsageHistory.sum([...own, ...others]);
      const usageOf = ({ tenant: number, ...row }: UsageRow) =>
        number === undefined ? row : { tenant: nameOf(number), ...row };
      return { slot, from, usage: rows.slice(0, limit).map(usageOf), more: rows.length > limit };
    },
  );

  addRoute<undefined, PlaneParameters & { by?: TopOrder }>(
    app,
    {
      method: 'GET',
      url: '/v1/top',
      access: 'read',
      summary: 'Keys and series that cost most lately, the most first.',
      query: schema.topQuery,
      answer: schema.listOf('top', schema.topEntry),
    },
    async ({ request, query }) => {
      const { tenant, plane, by = 'ru', limit = usualEntries } = query;
      const wish = { ...numberOf(scopeOf(callerOf(request), tenant)), by, limit };
      const found = await Promise.all(
        asked(plane).map(async (one) => {
          const entries = await one.top(wish);
          return entries.map((entry) => ({ plane: one.name, ...entry }));
        }),
      );
      const top = found.flat().sort((a, b) => b[by] - a[by]);
      return {
        top: top.slice(0, limit).map((entry) => ({ ...entry, tenant: nameOf(entry.tenant) })),
      };
    },
  );

  addRoute<undefined, PlaneParameters>(
    app,
    {
      method: 'GET',
      url: '/v1/admission',
      access: 'read',
      summary:
        'Tenants with a limit on request units: its use, queued and refused requests; ordered by use.',
      query: schema.admissionQuery,
      answer: schema.listOf('admission', schema.tenantAdmission),
    },
    async ({ request, query }) => {
      const { tenant, plane, limit = usualEntries } = query;
      const wish = { ...numberOf(scopeOf(callerOf(request), tenant)), limit };
      const found = await Promise.all(
        asked(plane).map(async (one) => {
          const entries = await one.admission(wish);
          return entries.map((entry) => ({ plane: one.name, ...entry }));
        }),
      );
      const all = found.flat().sort((a, b) => usedPartOf(b) - usedPartOf(a));
      return {
        admission: all.slice(0, limit).map((entry) => ({ ...entry, tenant: nameOf(entry.tenant) })),
      };
    },
  );

  addRoute<undefined, PlaneParameters>(
    app,
    {
      method: 'GET',
      url: '/v1/slowlog',
      access: 'read',
      summary: 'Requests that took long, the newest first.',
      query: schema.slowlogQuery,
      answer: schema.listOf('slowlog', schema.slowlogEntry),
    },
    async ({ request, query }) => {
      const { tenant, plane, limit = usualEntries } = query;
      const wish = { ...numberOf(scopeOf(callerOf(request), tenant)), limit };
      const found = await Promise.all(
        asked(plane).map(async (one) => {
          const entries = await one.slowlog(wish);
          return entries.map((entry) => ({ plane: one.name, ...entry }));
        }),
      );
      const slowlog = found.flat().sort((a, b) => b.at - a.at);
      return {
        slowlog: slowlog
          .slice(0, limit)
          .map((entry) => ({ ...entry, tenant: nameOf(entry.tenant) })),
      };
    },
  );

  addRoute<undefined, PlaneParameters>(
    app,
    {
      method: 'GET',
      url: '/v1/steps',
      access: 'read',
      summary:
        'Synchronous steps of more than 25 ms, which blocked all other clients of a plane, the newest first.',
      query: schema.slowlogQuery,
      answer: schema.listOf('steps', schema.stepEntry),
    },
    async ({ request, query }) => {
      const { tenant, plane, limit = usualEntries } = query;
      const wish = { ...numberOf(scopeOf(callerOf(request), tenant)), limit };
      const found = await Promise.all(
        asked(plane).map(async (one) => {
          const entries = await one.steps(wish);
          return entries.map((entry) => ({ plane: one.name, ...entry }));
        }),
      );
      const steps = found.flat().sort((a, b) => b.at - a.at);
      return {
        steps: steps.slice(0, limit).map((entry) => ({
          ...entry,
          // Background work is no tenant's.
          tenant: entry.tenant < 0 ? '' : nameOf(entry.tenant),
        })),
      };
    },
  );
}

const hourMs = 3_600_000;
