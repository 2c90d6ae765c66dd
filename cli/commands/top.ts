// `polyrow top`: the tenants, keys and series that use the most request units now.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import { type TopOrder, topOrders } from '../../control/monitor/top.ts';
import type { AdmissionView } from '../output/admission-view.ts';
import { answer } from '../output/answer.ts';
import { type HotName, topText, type TenantRate, type TopView } from '../output/top-view.ts';
import type { AdminClient } from './admin-client.ts';
import { addTenantFlag, positive, wholeNumber } from './argument-values.ts';
import { admissionOf } from './limit.ts';
import { allTenants } from './pages.ts';
import { type AccessFlags, withServer } from './server-access.ts';
import type { UsageAnswer, UsageView } from './usage.ts';

interface TopFlags extends AccessFlags {
  tenant?: string;
  by: TopOrder;
  limit: number;
  interval: number;
  once?: true;
}

export function topCommand(program: Command): void {
  withServer(
    addTenantFlag(
      program
        .command('top')
        .description('Show the tenants that spend most, and on which keys and series; live.')
        .addOption(
          new Option('--by <order>', 'order of keys and series')
            .choices([...topOrders])
            .default('ru'),
        )
        .option('--limit <number>', 'limit of each list, with --once', wholeNumber, 20)
        .option('--interval <seconds>', 'time between two looks', positive, 2)
        .option('--once', 'print once, and end; the default for programs and without a terminal'),
      'only of this tenant',
    ),
    top,
  );
}

async function top(client: AdminClient, flags: TopFlags): Promise<void> {
  const watcher = new Watcher(client, flags);
  if (flags.once || flags.json || !process.stdout.isTTY) {
    await watcher.look();
    await sleep(flags.interval * 1000);
    const view = await watcher.look();
    await answer(flags, view, (all) =>
      topText(all, 2 * flags.limit + 3, process.stdout.columns ?? 120),
    );
    return;
  }
  const { showLive } = await import('../output/live-screen.ts');
  const where = flags.tenant === undefined ? '' : `, tenant ${flags.tenant}`;
  await showLive({
    intervalMs: flags.interval * 1000,
    draw: async (rows, columns) => {
      const head = `polyrow top  ${client.url}${where}  ${new Date().toLocaleTimeString()}  (q ends)`;
      return `${head}\n\n${await topText(await watcher.look(), rows - 3, columns)}`;
    },
  });
}

/** Units that a tenant has spent since the first sample. */
interface Total {
  ru: number;
  ruByClass: Record<string, number>;
  requests: number;
  errors: number;
}

const minuteMs = 60_000;
// As many as the admin API answers at once.
const mostRows = 10_000;
const mostAdmissions = 1000;
const limitsEveryMs = 30_000;
// A screen shows no more; programs use `polyrow ru`.
const mostTenants = 100;

/** Samples totals and computes rates. */
class Watcher {
  readonly #client: AdminClient;
  readonly #flags: TopFlags;
  /** Begin of a minute. Sums from here on only ever grow. */
  readonly #from = Math.floor(Date.now() / minuteMs) * minuteMs - minuteMs;
  #before = new Map<string, Total>();
  #limits = new Map<string, number>();
  /** Requests refused in all, by tenant. */
  #refused = new Map<string, number>();
  #limitsAt = -Infinity;
  #lookedAt = 0;
  /** There are more tenants than can be asked for by class. */
  #areMany = false;

  constructor(client: AdminClient, flags: TopFlags) {
    this.#client = client;
    this.#flags = flags;
  }

  /** Since the look before; the first one tells no rates. */
  async look(): Promise<TopView> {
    const { tenant, by, limit } = this.#flags;
    const [usage, { top: hot }, admission] = await Promise.all([
      this.#usage(),
      this.#client.get<{ top: HotName[] }>('/v1/top', { tenant, by, limit }),
      admissionOf(this.#client, { tenant, limit: mostAdmissions }),
      this.#lookAtLimits(),
    ]);
    const now = performance.now();
    const seconds = this.#lookedAt === 0 ? 0 : (now - this.#lookedAt) / 1000;
    const totals = totalsOf(usage);
    const tenants = seconds === 0 ? [] : this.#rates(totals, seconds, byTenant(admission));
    this.#before = totals;
    this.#refused = refusedBy(admission);
    this.#lookedAt = now;
    return { seconds, tenants: tenants.slice(0, mostTenants), hot };
  }

  async #usage(): Promise<UsageView[]> {
    const { tenant } = this.#flags;
    const about = { tenant, slot: 'minute', from: this.#from, limit: mostRows };
    if (!this.#areMany) {
      const by = { by: 'tenant,class' };
      const { usage, more } = await this.#client.get<UsageAnswer>('/v1/ru', { ...about, ...by });
      if (!more) return usage;
      // Another way of counting begins anew.
      this.#areMany = true;
      this.#lookedAt = 0;
    }
    return (await this.#client.get<UsageAnswer>('/v1/ru', { ...about, by: 'tenant' })).usage;
  }

  /** They seldom change, and there may be many. */
  async #lookAtLimits(): Promise<void> {
    if (performance.now() - this.#limitsAt < limitsEveryMs) return;
    this.#limitsAt = performance.now();
    const tenants = await allTenants(this.#client);
    this.#limits = new Map(tenants.map(({ name, limits }) => [name, limits.ruPerSecond]));
  }

  #rates(
    totals: Map<string, Total>,
    seconds: number,
    limited: Map<string, AdmissionView[]>,
  ): TenantRate[] {
    const rates: TenantRate[] = [];
    for (const [tenant, total] of totals) {
      const before = this.#before.get(tenant) ?? emptyTotal();
      const ruByClass: Record<string, number> = {};
      for (const [kind, ru] of Object.entries(total.ruByClass)) {
        ruByClass[kind] = Math.max(0, ru - (before.ruByClass[kind] ?? 0)) / seconds;
      }
      const rate = (of: 'ru' | 'requests' | 'errors') =>
        Math.max(0, total[of] - before[of]) / seconds;
      rates.push({
        tenant,
        ru: rate('ru'),
        ruByClass,
        requests: rate('requests'),
        errors: rate('errors'),
        ruLimit: this.#limits.get(tenant) ?? 0,
        ...this.#pressure(tenant, limited.get(tenant) ?? [], seconds),
      });
    }
    return rates.sort((a, b) => b.ru - a.ru || (a.tenant < b.tenant ? -1 : 1));
  }

  /** How near a tenant is to its limit, which holds on each plane for itself. */
  #pressure(
    tenant: string,
    rows: readonly AdmissionView[],
    seconds: number,
  ): Pick<TenantRate, 'ofLimit' | 'waiting' | 'refused'> {
    const refused = rows.reduce((sum, row) => sum + row.refused, 0);
    return {
      ofLimit: Math.max(0, ...rows.map(({ usedRu, quotaRu }) => usedRu / quotaRu)),
      waiting: rows.reduce((sum, row) => sum + row.waiting + row.waitingQueries, 0),
      refused: Math.max(0, refused - (this.#refused.get(tenant) ?? refused)) / seconds,
    };
  }
}

function byTenant(admission: readonly AdmissionView[]): Map<string, AdmissionView[]> {
  const all = new Map<string, AdmissionView[]>();
  for (const row of admission) all.set(row.tenant, [...(all.get(row.tenant) ?? []), row]);
  return all;
}

function refusedBy(admission: readonly AdmissionView[]): Map<string, number> {
  const all = new Map<string, number>();
  for (const { tenant, refused } of admission) all.set(tenant, (all.get(tenant) ?? 0) + refused);
  return all;
}

function totalsOf(rows: readonly UsageView[]): Map<string, Total> {
  const totals = new Map<string, Total>();
  for (const { tenant = '', class: kind, ru, requests, errors } of rows) {
    let total = totals.get(tenant);
    if (total === undefined) totals.set(tenant, (total = emptyTotal()));
    total.ru += ru;
    total.requests += requests;
    total.errors += errors;
    if (kind !== undefined) total.ruByClass[kind] = (total.ruByClass[kind] ?? 0) + ru;
  }
  return totals;
}

function emptyTotal(): Total {
  return { ru: 0, ruByClass: {}, requests: 0, errors: 0 };
}
