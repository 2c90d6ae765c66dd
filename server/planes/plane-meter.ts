// The meter of a plane: its cost table, its per-second work, and its reports.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { HotNames } from '../../access/gateway/hot-names.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { TopEntry, TopKind, TopQuery } from '../../control/monitor/top.ts';
import { checkCostTable, type CostTableData } from '../../request-units/cost-table.ts';
import {
  chargeClasses,
  Meter,
  type MeterSnapshot,
  otherTenants,
  type TenantAccount,
} from '../../request-units/meter.ts';
import { dimensions } from '../../request-units/pru.ts';
import { shippedTable } from '../../request-units/pru-table.ts';
import { systemClock, systemRng } from '../../universal-row/environment.ts';
import type { Config } from '../settings/schema.ts';
import { adder } from './pod-samples.ts';

/** Tenants that have metrics of their own: those that come first. The others share one label. */
const labelledTenants = 100;

/** The table that `ru.table` names, or the one that comes with the server. */
export function costTable(config: Config): CostTableData {
  const path = config['ru.table'];
  if (path === '') return shippedTable;
  try {
    return checkCostTable(JSON.parse(readFileSync(resolve(path), 'utf8')));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`ru.table: ${path}: ${reason}`, { cause: error });
  }
}

export class PlaneMeter {
  readonly meter: Meter;
  /** Names that requests touch. */
  readonly hot = new HotNames(systemClock, systemRng);
  readonly #beforeSecond: (accounts: Iterable<TenantAccount>) => void;
  readonly #beforeReading: () => void;
  readonly #timer: NodeJS.Timeout;
  readonly #labelled = new Map<number, string>();

  /**
   * `beforeSecond` is called at the end of each second, to charge background work; `beforeReading`
   * before usage is reported, to charge deferred work.
   */
  constructor(
    plane: string,
    beforeSecond: (accounts: Iterable<TenantAccount>) => void,
    beforeReading: () => void = () => {},
  ) {
    this.#beforeReading = beforeReading;
    this.meter = new Meter({ plane, run: randomBytes(8).toString('hex') });
    this.#beforeSecond = beforeSecond;
    this.#timer = setInterval(() => this.#second(), 1000);
    this.#timer.unref();
  }

  #second(): void {
    this.#beforeReading();
    this.#beforeSecond(this.meter.activeAccounts());
    this.meter.tick();
    this.hot.tick();
  }

  /**
   * Names that requests of a tenant, or of all, touch most. Samples' weights are scaled to the
   * total charged.
   */
  top(kind: TopKind, { by, limit, tenant }: TopQuery): TopEntry[] {
    this.#beforeReading();
    let charged = 0;
    for (const account of this.meter.all()) charged += account.lru;
    const { spent } = this.hot;
    const scale = spent === 0 ? 0 : charged / spent;
    return this.hot.top(by, limit, tenant).map((hot) => ({ kind, ...hot, ru: hot.ru * scale }));
  }

  usage(since: number): MeterSnapshot {
    this.#beforeReading();
    return this.meter.snapshot(Date.now(), since);
  }

  /** The tenant is no more. */
  forget(tenant: number): void {
    this.meter.forget(tenant);
    this.#labelled.delete(tenant);
  }

  /** Metrics by tenant. `nameOf` is undefined for tenants that are not known. */
  samples(nameOf: (tenant: number) => string | undefined): MetricSample[] {
    this.#beforeReading();
    const byLabel = new Map<string, TenantAccount[]>();
    for (const account of this.meter.all()) {
      const label = this.labelOf(account.tenant, nameOf);
      const accounts = byLabel.get(label);
      if (accounts === undefined) byLabel.set(label, [account]);
      else accounts.push(account);
    }
    const samples: MetricSample[] = [];
    for (const [tenant, accounts] of byLabel) this.#add(samples, tenant, accounts);
    this.#addPhysical(samples);
    return samples;
  }

  /** Totals of all tenants: usage by resource. */
  #addPhysical(samples: MetricSample[]): void {
    const { plane } = this.meter;
    const usages = Array.from(this.meter.all(), (account) => account.usage());
    for (const name of chargeClasses) {
      dimensions.forEach((dimension, d) => {
        const value = usages.reduce((sum, { classes }) => sum + classes[name].pru[d]!, 0);
        if (value === 0) return;
        const add = adder(samples, { plane, class: name, dimension });
        add('counter', 'pru', 'Physical request units spent.', value);
      });
    }
  }

  /** A tenant's label in metrics. Once it has one it keeps it, so that its counters never fall. */
  labelOf(tenant: number, nameOf: (tenant: number) => string | undefined): string {
    const known = this.#labelled.get(tenant);
    if (known !== undefined) return known;
    const name = tenant === otherTenants ? undefined : nameOf(tenant);
    if (name === undefined || this.#labelled.size >= labelledTenants) return otherLabel;
    this.#labelled.set(tenant, name);
    return name;
  }

  #add(samples: MetricSample[], tenant: string, accounts: readonly TenantAccount[]): void {
    const { plane } = this.meter;
    const usages = accounts.map((account) => account.usage());
    for (const name of chargeClasses) {
      const add = adder(samples, { tenant, plane, class: name });
      const of = usages.map((usage) => usage.classes[name]);
      const total = (get: (usage: (typeof of)[number]) => number): number =>
        of.reduce((sum, usage) => sum + get(usage), 0);
      const requests = total((usage) => usage.requests);
      if (requests === 0) continue;
      add(
        'counter',
        'tenant_ru',
        'Request units spent.',
        total((usage) => usage.lru),
      );
      add('counter', 'tenant_requests', 'Requests charged.', requests);
      add(
        'counter',
        'tenant_errors',
        'Requests answered by an error.',
        total((usage) => usage.errors),
      );
    }
    const add = adder(samples, { tenant, plane });
    const sum = (get: (usage: (typeof usages)[number]) => number): number =>
      usages.reduce((total, usage) => total + get(usage), 0);
    add(
      'counter',
      'tenant_rejected',
      'Requests refused, at no cost.',
      sum((usage) => usage.rejected),
    );
    add(
      'counter',
      'tenant_received_bytes',
      'Bytes of requests.',
      sum((usage) => usage.bytesIn),
    );
    add(
      'counter',
      'tenant_sent_bytes',
      'Bytes of answers.',
      sum((usage) => usage.bytesOut),
    );
    add(
      'gauge',
      'tenant_ru_rate',
      'Request units of the last second.',
      sum((usage) => usage.lastSecondLru),
    );
  }
}

/** No tenant's name: they begin with a letter. */
const otherLabel = '_other';
