// Nodes in one process that keep one tenant's time series, each with an InfluxDB listener of its own.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { InfluxServer } from '../../access/influx/http/server.ts';
import { type ClusterView, type GroupDefinition, ownLevel } from '../../contracts/cluster.ts';
import type { Consistency } from '../../contracts/table-properties.ts';
import { modelProperties } from '../../contracts/table-properties.ts';
import { TsmEngine, type TsmEngineOptions } from '../../engines/tsm/tsm-engine.ts';
import type { SeriesPod } from '../../storage-node/series-pod.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { replicaId } from '../../storage-node/replicator/raft/replica-id.ts';
import { systemClock } from '../../universal-row/environment.ts';
import { ClusterSeries } from '../../server/planes/cluster-series.ts';
import { InfluxTables } from '../../server/planes/influx-tables.ts';
import { freePort } from './free-port.ts';

const secret = randomBytes(32);
export const numbers = [1, 2, 3, 4];
/** The fourth node has no replica. */
const members = [1, 2, 3];

export class Node {
  readonly number: number;
  readonly failures: string[] = [];
  readonly tables = new InfluxTables([]);
  series!: ClusterSeries;
  server: InfluxServer | undefined;
  port = 0;
  #incarnation = 0;
  readonly #root: string;
  #view: ClusterView;
  readonly #engine: Partial<TsmEngineOptions>;

  constructor(
    number: number,
    root: string,
    view: ClusterView,
    engine: Partial<TsmEngineOptions> = {},
  ) {
    this.number = number;
    this.#root = root;
    this.#view = view;
    this.#engine = engine;
  }

  /** Where it has a replica of the group, and is not stopped. */
  podOfGroup(group: number): SeriesPod | undefined {
    if (this.server === undefined) return undefined;
    return this.series.named().find((one) => one.group === group)?.pod;
  }

  async start(): Promise<void> {
    const { number } = this;
    const place = this.#view.nodes.find(({ node }) => node === number)!.addresses.influx;
    this.series = await ClusterSeries.open({
      data: {
        id: 77,
        node: number,
        incarnation: ++this.#incarnation,
        secret,
        host: '127.0.0.1',
        port: Number(place.split(':')[1]),
        maxWriteBytes: 64 * 1024 * 1024,
        view: this.#view,
      },
      tables: this.tables,
      directory: join(this.#root, String(number)),
      fsync: 'always',
      segmentBytes: 64 * 1024,
      acceptLoss: false,
      newEngine: (directory) => new TsmEngine({ directory, disk: realDisk, ...this.#engine }),
      podOptions: () => ({
        checkpointBytes: 1 << 20,
        retentionIntervalMs: 1 << 30,
        clock: systemClock,
        tables: this.tables,
      }),
      chargedTo: () => 0,
      leaderWaitMs: 8000,
      report: (level, message, fields) => {
        if (level === 'error') this.failures.push(`${message} ${JSON.stringify(fields)}`);
      },
      fatal: (error) => this.failures.push(String(error)),
    });
    await this.series.setView(this.#view);
    const server = new InfluxServer({
      host: '127.0.0.1',
      port: 0,
      store: this.series.store,
      forwarder: this.series.forwarder,
      writeTimeoutMs: 10_000,
      report: () => {},
    });
    this.series.serve((connection) => server.serveForwarded(connection));
    this.port = await server.listen();
    this.server = server;
  }

  /** Learns where groups are. */
  async setView(view: ClusterView): Promise<void> {
    this.#view = view;
    await this.series.setView(view);
  }

  async stop(): Promise<void> {
    const { server } = this;
    if (server === undefined) return;
    this.server = undefined;
    await server.close();
    await this.series.close();
  }

  async post(path: string, body: string): Promise<{ status: number; text: string }> {
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`, { method: 'POST', body });
    return { status: response.status, text: await response.text() };
  }

  /** How the database's reads are from now on. */
  setConsistency(consistency: Consistency): void {
    const properties = { ...modelProperties('series'), consistency };
    this.tables.set([{ ...properties, model: 'series', tenant: 0, name: 'db' }]);
    this.series.tablesChanged();
  }

  get readHere(): number {
    return this.server!.metrics().queriesReadHere;
  }

  /** With headers: the count of points, and the token of the session. */
  async count(headers: Record<string, string>): Promise<{ count: unknown; token: string | null }> {
    const q = encodeURIComponent('SELECT count(v) FROM m');
    const url = `http://127.0.0.1:${this.port}/query?db=db&epoch=ns&q=${q}`;
    const response = await fetch(url, { headers });
    const text = await response.text();
    const [, count] = /\[0,(\d+)\]/.exec(text) ?? [];
    return { count: count ?? text, token: response.headers.get('x-polyrow-session') };
  }

  async query(q: string): Promise<{ error?: string; series?: { values: unknown[][] }[] }> {
    const path = `/query?db=db&epoch=ns&q=${encodeURIComponent(q)}`;
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`);
    const { results, error } = (await response.json()) as {
      results?: { error?: string; series?: { values: unknown[][] }[] }[];
      error?: string;
    };
    return results?.[0] ?? { error: error ?? 'no result' };
  }
}

/** `partitions`: into how many the series of tenant 0 are divided. */
export async function viewOf(partitions = 1): Promise<ClusterView> {
  const places = await Promise.all(
    numbers.map(async (node) => ({
      node,
      zone: '',
      state: 'up' as const,
      addresses: {
        control: '',
        redis: '',
        influx: `127.0.0.1:${await freePort()}`,
        redisClients: '',
        influxClients: '',
        admin: '',
      },
      incarnation: 1,
      build: { level: ownLevel, incarnation: 1 },
      joinId: '',
    })),
  );
  const replicas = members.map((node) => ({
    replica: replicaId(node),
    node,
    state: 'voter' as const,
  }));
  const initial = replicas.map(({ replica }) => replica);
  const groups = Array.from(
    { length: partitions },
    (_, partition): GroupDefinition => ({
      ...{ group: 20 + partition, tenant: 0, model: 'tsm', epoch: 1, replicas, initial },
      ...(partitions > 1 && { series: { partition, of: partitions } }),
    }),
  );
  return { nodes: places, groups };
}

/** Like clients: a write answered with 503 is sent again. */
export async function write(node: Node, line: string): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const { status, text } = await node.post('/write?db=db', line);
    if (status === 204) return;
    expect([status, text]).toEqual([503, expect.any(String)]);
    await pause(50);
  }
  throw new Error('never written');
}

export async function read(node: Node, q: string): Promise<unknown[][]> {
  let error: string | undefined;
  for (let tries = 0; tries < 100; tries++) {
    const answer = await node.query(q);
    if (answer.error === undefined) return answer.series?.[0]?.values ?? [];
    error = answer.error;
    await pause(50);
  }
  throw new Error(`never answered: ${error}`);
}
