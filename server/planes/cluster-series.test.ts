// Three nodes in one process that keep one tenant's time series, each with an InfluxDB listener of its own, while the one
// that leads goes and comes back.

import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { InfluxServer } from '../../access/influx/http/server.ts';
import type { ClusterView } from '../../contracts/cluster.ts';
import { TsmEngine } from '../../engines/tsm/tsm-engine.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { replicaId } from '../../storage-node/replicator/raft/replica-id.ts';
import { systemClock } from '../../universal-row/environment.ts';
import { ClusterSeries } from './cluster-series.ts';
import { freePort } from '../../test/support/free-port.ts';

const secret = randomBytes(32);
const numbers = [1, 2, 3, 4];
/** The fourth node has no replica. */
const members = [1, 2, 3];

class Node {
  readonly number: number;
  readonly failures: string[] = [];
  series!: ClusterSeries;
  server: InfluxServer | undefined;
  port = 0;
  #incarnation = 0;
  readonly #root: string;
  readonly #view: ClusterView;

  constructor(number: number, root: string, view: ClusterView) {
    this.number = number;
    this.#root = root;
    this.#view = view;
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
        view: this.#view,
      },
      directory: join(this.#root, String(number)),
      newEngine: (directory) => new TsmEngine({ directory, disk: realDisk }),
      podOptions: () => ({
        checkpointBytes: 1 << 20,
        retentionIntervalMs: 1 << 30,
        clock: systemClock,
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

let nodes: Node[] = [];
let root = '';
afterEach(async () => {
  for (const node of nodes) await node.stop();
  rmSync(root, { recursive: true, force: true });
});

async function viewOf(): Promise<ClusterView> {
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
      joinId: '',
    })),
  );
  const replicas = members.map((node) => ({
    replica: replicaId(node),
    node,
    state: 'voter' as const,
  }));
  const initial = replicas.map(({ replica }) => replica);
  return {
    nodes: places,
    groups: [{ group: 20, tenant: 0, model: 'tsm', epoch: 1, replicas, initial }],
  };
}

/** As clients do: what is answered 5xx is sent again. */
async function write(node: Node, line: string): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const { status, text } = await node.post('/write?db=db', line);
    if (status === 204) return;
    expect([status, text]).toEqual([503, expect.any(String)]);
    await pause(50);
  }
  throw new Error('never written');
}

async function read(node: Node, q: string): Promise<unknown[][]> {
  let error: string | undefined;
  for (let tries = 0; tries < 100; tries++) {
    const answer = await node.query(q);
    if (answer.error === undefined) return answer.series?.[0]?.values ?? [];
    error = answer.error;
    await pause(50);
  }
  throw new Error(`never answered: ${error}`);
}

test('every node answers, whoever leads, and nothing that was acknowledged is lost', async () => {
  root = mkdtempSync(join(tmpdir(), 'polyrow-cluster-series-'));
  const view = await viewOf();
  nodes = numbers.map((number) => new Node(number, root, view));
  for (const node of nodes) await node.start();
  const [first, , , fourth] = nodes as [Node, Node, Node, Node];
  const made = await first.post(`/query?q=${encodeURIComponent('CREATE DATABASE db')}`, '');
  expect([made.status, made.text]).toEqual([200, '{"results":[{"statement_id":0}]}\n']);
  let written = 0;
  const next = (): string => `m,s=${written % 5} v=${written} ${++written}`;
  for (let i = 0; i < 40; i++) await write(nodes[i % 4]!, next());
  for (const node of nodes) expect(await read(node, 'SELECT count(v) FROM m')).toEqual([[0, 40]]);
  for (let round = 0; round < 2; round++) {
    const leader = nodes.find(({ series }) => series.forwarder.leads(0))!;
    const others = nodes.filter((node) => node !== leader);
    const writes = others.map(async (node) => {
      for (let i = 0; i < 20; i++) await write(node, next());
    });
    await leader.stop();
    await Promise.all(writes);
    expect(await read(fourth, 'SELECT count(v) FROM m')).toEqual([[0, written]]);
    await leader.start();
  }
  for (const node of nodes) {
    expect(await read(node, 'SELECT count(v), max(v) FROM m')).toEqual([[0, written, written - 1]]);
    expect(await read(node, 'SHOW TAG VALUES WITH KEY = s')).toHaveLength(5);
    expect(await read(node, 'SHOW FIELD KEYS')).toEqual([['v', 'float']]);
  }
  const deletion = encodeURIComponent("DELETE FROM m WHERE s = '1'");
  const deleted = await fourth.post(`/query?db=db&q=${deletion}`, '');
  expect(deleted.text).toBe('{"results":[{"statement_id":0}]}\n');
  for (const node of nodes) {
    expect(await read(node, 'SELECT count(v) FROM m')).toEqual([[0, written - written / 5]]);
  }
  const status = nodes.flatMap(({ series }) => series.status());
  expect(status.map(({ role }) => role).sort()).toEqual(['follower', 'follower', 'leader']);
  expect(nodes.flatMap(({ failures }) => failures)).toEqual([]);
}, 120_000);
