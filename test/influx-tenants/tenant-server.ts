// The InfluxDB listener with tenants on a real pod, in this process: what the plane is made of, without the
// threads. The control plane is played by `TestControl`. TEST_SERIES_PARTITIONS=4 divides the time series,
// TEST_SERIES_CARRIER=tcp puts their pods behind the link that gateways in other processes use.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Principals } from '../../access/gateway/principals.ts';
import { InfluxServer, type InfluxServerOptions } from '../../access/influx/http/server.ts';
import { TenantAuthenticator } from '../../access/influx/tenants/tenant-authenticator.ts';
import { userChanges } from '../../server/planes/influx-users.ts';
import { TsmEngine } from '../../engines/tsm/tsm-engine.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { LocalSeries } from '../../server/planes/local-series.ts';
import { systemClock } from '../../universal-row/environment.ts';
import { type RemotePartitions, remotePartitions } from '../pod-carrier/remote-partitions.ts';
import { TestControl } from './test-control.ts';

const defaultPartitions = Number(process.env['TEST_SERIES_PARTITIONS'] ?? 1);
const defaultCarrier = process.env['TEST_SERIES_CARRIER'] === 'tcp' ? 'tcp' : 'none';

interface Answer {
  status: number;
  text: string;
  headers: Headers;
}

export class TenantServer {
  readonly url: string;
  readonly control: TestControl;
  readonly principals: Principals;
  readonly authenticator: TenantAuthenticator;
  readonly series: LocalSeries;
  /** Logged lines. */
  readonly logged: string[];
  readonly #server: InfluxServer;
  readonly #directory: string;
  readonly #remote: RemotePartitions | undefined;

  private constructor(
    url: string,
    parts: Pick<TenantServer, 'control' | 'principals' | 'authenticator' | 'series' | 'logged'>,
    server: InfluxServer,
    directory: string,
    remote: RemotePartitions | undefined,
  ) {
    this.url = url;
    this.control = parts.control;
    this.principals = parts.principals;
    this.authenticator = parts.authenticator;
    this.series = parts.series;
    this.logged = parts.logged;
    this.#server = server;
    this.#directory = directory;
    this.#remote = remote;
  }

  static async start(
    options: Partial<InfluxServerOptions> = {},
    partitions = defaultPartitions,
    carrier: 'tcp' | 'none' = defaultCarrier,
  ): Promise<TenantServer> {
    const directory = mkdtempSync(join(tmpdir(), 'polyrow-tenants-'));
    const logged: string[] = [];
    const report = (level: string, message: string, fields?: object): void => {
      logged.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`);
    };
    // Made after the engines that ask it.
    const made: { authenticator?: TenantAuthenticator } = {};
    const series = await LocalSeries.open({
      newEngine: (path) => {
        const engine = new TsmEngine({ directory: path, disk: realDisk });
        engine.seriesAllowance = (database) => made.authenticator?.seriesAllowance(database);
        return engine;
      },
      partitions,
      disk: realDisk,
      directory: join(directory, 'influx'),
      fsync: 'no',
      segmentBytes: 2 ** 24,
      checkpointBytes: 2 ** 30,
      retentionIntervalMs: 3_600_000,
      acceptLoss: false,
      clock: systemClock,
      report,
      fatal: (error) => {
        throw error;
      },
    });
    const remote = carrier === 'tcp' ? await remotePartitions(series.pods, report) : undefined;
    const store = remote?.store ?? series.store;
    const principals = new Principals({ databases: 16 });
    const control = new TestControl(principals);
    const changeUsers = userChanges(principals, control);
    const authenticator = new TenantAuthenticator({
      principals,
      store,
      changeUsers,
      clock: systemClock,
      onIgnored: (address) => report('info', `ignored credentials of ${address}`),
    });
    made.authenticator = authenticator;
    const server = new InfluxServer({
      host: '127.0.0.1',
      port: 0,
      store,
      authenticator,
      report,
      ...options,
    });
    const url = `http://127.0.0.1:${await server.listen()}`;
    const parts = { control, principals, authenticator, series, logged };
    return new TenantServer(url, parts, server, directory, remote);
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** As `user:password`; '' sends no credentials. */
  async query(
    who: string,
    q: string,
    parameters: Record<string, string> = {},
    method = 'POST',
  ): Promise<Answer> {
    const query = new URLSearchParams({ db: 'd', ...parameters, q });
    return await this.send(who, `/query?${query.toString()}`, { method });
  }

  /** The result of one statement that must succeed. */
  async result(who: string, q: string, parameters: Record<string, string> = {}): Promise<unknown> {
    const { status, text } = await this.query(who, q, parameters);
    if (status !== 200) throw new Error(`${q} by ${who}: ${status} ${text}`);
    const { results } = JSON.parse(text) as { results: { series?: unknown; error?: string }[] };
    const [result] = results;
    if (result?.error !== undefined) throw new Error(`${q} by ${who}: ${result.error}`);
    return result?.series;
  }

  async write(who: string, lines: string, db = 'd'): Promise<Answer> {
    return await this.send(who, `/write?db=${encodeURIComponent(db)}`, {
      method: 'POST',
      body: lines,
    });
  }

  async send(who: string, path: string, init: RequestInit = {}): Promise<Answer> {
    const headers = new Headers(init.headers);
    if (who !== '') headers.set('Authorization', `Basic ${Buffer.from(who).toString('base64')}`);
    const response = await fetch(`${this.url}${path}`, { ...init, headers });
    return { status: response.status, text: await response.text(), headers: response.headers };
  }

  /** As an operator stops it. */
  async drain(graceMs: number): Promise<void> {
    await this.#server.drain(graceMs);
  }

  async close(): Promise<void> {
    await this.#server.close();
    await this.#remote?.close();
    await this.series.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
