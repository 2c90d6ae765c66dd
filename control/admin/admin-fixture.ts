// An admin server for tests, with two tenants, planes that record their input, and a token of each
// role.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Disk } from '../../universal-row/environment.ts';
import { SeriesTableCatalog } from '../metadata/series-table-catalog.ts';
import { TableCatalog } from '../metadata/table-catalog.ts';
import { Tables } from '../metadata/tables.ts';
import type { MetricSample } from '../monitor/metric-sample.ts';
import type { SlowlogEntry, StepEntry } from '../monitor/slowlog.ts';
import type { TenantAdmission } from '../monitor/tenant-admission.ts';
import type { TopEntry } from '../monitor/top.ts';
import { UsageHistory } from '../monitor/usage-history.ts';
import { MemoryStore } from '../metadata/memory-store-fixture.ts';
import { WorkflowEngine } from '../workflows/workflow-engine.ts';
import { TenantCatalog } from '../tenants/tenant-catalog.ts';
import { AdminServer } from './admin-server.ts';
import type { AdminServerOptions } from './admin-options.ts';
import { AuditLog } from './audit/audit-log.ts';
import { Health } from './health.ts';
import { MetricsPage } from './metrics-page.ts';
import type { PlaneAccess } from './plane-access.ts';

const operatorSecret = 'operator-secret-0123456789';

interface Answer {
  status: number;
  text: string;
  headers: Headers;
  json(): unknown;
}

class FakePlane implements PlaneAccess {
  readonly name: PlaneAccess['name'];
  readonly made = new Map<number, string[]>();
  topEntries: TopEntry[] = [];
  slow: SlowlogEntry[] = [];
  longSteps: StepEntry[] = [];
  limited: TenantAdmission[] = [];

  constructor(name: PlaneAccess['name']) {
    this.name = name;
  }

  async admission({
    tenant,
    limit,
  }: {
    tenant?: number;
    limit: number;
  }): Promise<TenantAdmission[]> {
    return this.limited
      .filter((one) => tenant === undefined || one.tenant === tenant)
      .slice(0, limit);
  }

  async top({ tenant, limit }: { tenant?: number; limit: number }): Promise<TopEntry[]> {
    return this.topEntries
      .filter((one) => tenant === undefined || one.tenant === tenant)
      .slice(0, limit);
  }

  async slowlog({ tenant, limit }: { tenant?: number; limit: number }): Promise<SlowlogEntry[]> {
    return this.slow.filter((one) => tenant === undefined || one.tenant === tenant).slice(0, limit);
  }

  async steps({ tenant, limit }: { tenant?: number; limit: number }): Promise<StepEntry[]> {
    return this.longSteps
      .filter((one) => tenant === undefined || one.tenant === tenant)
      .slice(0, limit);
  }

  async databases(tenant: number): Promise<{ name: string }[]> {
    return (this.made.get(tenant) ?? []).map((name) => ({ name }));
  }

  async createDatabase({ tenant, name }: { tenant: number; name: string }): Promise<void> {
    this.made.set(tenant, [...(this.made.get(tenant) ?? []), name]);
  }

  async dropDatabase({ tenant, name }: { tenant: number; name: string }): Promise<void> {
    const left = (this.made.get(tenant) ?? []).filter((one) => one !== name);
    this.made.set(tenant, left);
  }
}

export class AdminFixture {
  readonly path = mkdtempSync(join(tmpdir(), 'polyrow-admin-'));
  readonly health = new Health();
  readonly redis = new FakePlane('redis');
  readonly influx = new FakePlane('influx');
  readonly usage = new UsageHistory();
  readonly settings = new Map([
    ['log.level', 'info'],
    ['redis.password', ''],
  ]);
  readonly errors: Error[] = [];
  samples: MetricSample[] = [];
  rows = 0;
  url = '';
  tenants!: TenantCatalog;
  workflows!: WorkflowEngine;
  tables!: TableCatalog;
  audit!: AuditLog;
  /** Secrets by name: operator, viewer, shop, mill. */
  readonly secrets: Record<string, string> = { operator: operatorSecret };
  #options!: AdminServerOptions;
  #server: AdminServer | undefined;

  static async start(disk: Disk, change: Partial<AdminServerOptions> = {}): Promise<AdminFixture> {
    const fixture = new AdminFixture();
    await fixture.#open(disk);
    await fixture.restart(change);
    return fixture;
  }

  async #open(disk: Disk): Promise<void> {
    const store = new MemoryStore();
    this.workflows = await WorkflowEngine.open(store, { report: () => {}, leaseMs: 0 });
    this.tenants = await TenantCatalog.open(store, {
      workflows: this.workflows,
      databases: 3,
      hashPassword: async (password) => `scrypt$2$1$1$c2FsdA==$${password.toString('base64')}`,
    });
    await this.tenants.attach({ tenancy: async () => {}, dropData: async () => {} });
    this.workflows.start();
    const options = { databases: 3, defaultModel: 'memory', owners: this.tenants } as const;
    const catalog = await TableCatalog.open(store, options);
    await catalog.attach({
      rowCount: () => Promise.resolve(this.rows),
      setTables: () => Promise.resolve(),
      undefinedTables: () => Promise.resolve([]),
      setDefaultModel: () => Promise.resolve(),
    });
    this.tables = catalog;
    const series = await SeriesTableCatalog.open(store, this.tenants);
    series.attach({
      databases: async (tenant) =>
        (await this.influx.databases(tenant)).map(({ name }) => String(name)),
      createDatabase: (tenant, name) => this.influx.createDatabase({ tenant, name }),
      partitions: () => Promise.resolve([{ number: 1, series: 5 }]),
      setTables: () => Promise.resolve(),
    });
    const metrics = new MetricsPage();
    metrics.addSource(() => Promise.resolve(this.samples));
    this.audit = AuditLog.open({ disk, directory: join(this.path, 'audit') });
    this.#options = {
      health: this.health,
      metrics,
      tables: new Tables(catalog, series),
      tenants: this.tenants,
      planes: [this.redis, this.influx],
      usage: this.usage,
      refreshUsage: async () => {},
      audit: this.audit,
      config: {
        list: () =>
          [...this.settings].map(([key, value]) => {
            const secret = key === 'redis.password';
            return { key, value, source: 'test', live: true, secret, description: key };
          }),
        check: (key) => (this.settings.has(key) ? undefined : `there is no setting ${key}`),
        change: (key, value) => void this.settings.set(key, value),
      },
      operatorTokens: [{ name: 'admin-token', secret: operatorSecret }],
      isLocal: true,
      requestsPerSecond: () => 0,
      version: '1.2.3',
      onError: (error) => void this.errors.push(error),
    };
  }

  /** Two tenants, and a token of every role. */
  async addTenants(): Promise<void> {
    const { adminTokens } = this.tenants;
    this.secrets['viewer'] = (await adminTokens.create('viewer', undefined)).secret;
    for (const name of ['shop', 'mill']) {
      await this.tenants.createTenant({ name, databases: 2, password: 'hush' });
      this.secrets[name] = (await adminTokens.create('tenant', name)).secret;
    }
  }

  async restart(change: Partial<AdminServerOptions> = {}): Promise<void> {
    await this.#server?.close();
    this.#server = new AdminServer({ ...this.#options, ...change });
    this.url = await this.#server.listen('127.0.0.1', 0);
  }

  /** `who` is one of `secrets`, a secret itself, or '' for no credentials. */
  async ask(
    method: string,
    page: string,
    body?: object,
    who = 'operator',
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const all: Record<string, string> = { ...headers };
    if (who !== '') all['authorization'] = `Bearer ${this.secrets[who] ?? who}`;
    if (body !== undefined) all['content-type'] = 'application/json';
    const json = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(this.url + page, { method, headers: all, ...json });
    const text = await response.text();
    return {
      status: response.status,
      text,
      headers: response.headers,
      json: () => JSON.parse(text) as unknown,
    };
  }

  async close(): Promise<void> {
    await this.#server?.close();
    await this.tenants.close();
    await this.audit.close();
    rmSync(this.path, { recursive: true });
  }
}
