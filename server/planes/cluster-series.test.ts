// Three nodes in one process that keep one tenant's time series, each with an InfluxDB listener of its own, while the one
// that leads goes and comes back.

import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { InfluxServer } from '../../access/influx/http/server.ts';
import { type ClusterView, ownLevel } from '../../contracts/cluster.ts';
import type { Consistency } from '../../contracts/table-properties.ts';
import { modelProperties } from '../../contracts/table-properties.ts';
import { TsmEngine } from '../../engines/tsm/tsm-engine.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { replicaId } from '../../storage-node/replicator/raft/replica-id.ts';
import { systemClock } from '../../universal-row/environment.ts';
import { ClusterSeries } from './cluster-series.ts';
import { InfluxTables } from './influx-tables.ts';
import { freePort } from '../../test/support/free-port.ts';
import { until } from '../../test/support/until.ts';

const secret = randomBytes(32);
const numbers = [1, 2, 3, 4];
/** The fourth node has no replica. */
const members = [1, 2, 3];

class Node {
  readonly number: number;
  readonly failures: string[] = [];
  readonly tables = new InfluxTables([]);
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
        maxWriteBytes: 64 * 1024 * 1024,
        view: this.#view,
      },
      tables: this.tables,
      directory: join(this.#root, String(number)),
      fsync: 'always',
      acceptLoss: false,
      newEngine: (directory) => new TsmEngine({ directory, disk: realDisk }),
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
});

/** Three replicas with a point, and a node without one. */
async function startAll(): Promise<void> {
  root = mkdtempSync(join(tmpdir(), 'polyrow-cluster-series-'));
  const view = await viewOf();
  nodes = numbers.map((number) => new Node(number, root, view));
  for (const node of nodes) await node.start();
  await nodes[0]!.post(`/query?q=${encodeURIComponent('CREATE DATABASE db')}`, '');
  await write(nodes[0]!, 'm v=1 1');
}

const leads = (node: Node): boolean => node.series.forwarder.leads(0);

/** Those with a replica that follows, once they have all and know it. */
async function followers(): Promise<[Node, Node]> {
  const all = nodes.filter((node) => !leads(node) && node.series.podOf(0) !== undefined);
  const bounds = { maxStalenessMs: 60_000, maxLagEntries: 0 };
  await until(() => all.every(({ series }) => series.podOf(0)!.isWithin(bounds)));
  return all as [Node, Node];
}

test('the replica at hand answers queries that may be late, without a leader', async () => {
  await startAll();
  const [one, other] = await followers();
  const header = (consistency: string) => ({ 'X-Polyrow-Consistency': consistency });
  expect(await one.count(header('eventual'))).toEqual({ count: '1', token: null });
  expect(await one.count(header('bounded; ms=60000'))).toEqual({ count: '1', token: null });
  expect(await one.count({})).toEqual({ count: '1', token: null });
  expect([one.readHere, other.readHere]).toEqual([2, 0]);
  // Statements that change something go to the leader, together with those before them.
  const into = encodeURIComponent('SELECT v FROM m; SELECT v INTO n FROM m');
  const response = await fetch(`http://127.0.0.1:${one.port}/query?db=db&q=${into}`, {
    method: 'POST',
    headers: header('eventual'),
  });
  expect(await response.text()).toContain('"written"');
  expect(one.readHere).toBe(2);
  const wrong = await one.count(header('late'));
  expect(wrong.count).toContain('invalid X-Polyrow-Consistency header');
  // Of three there is one left.
  for (const node of [nodes.find(leads)!, other]) await node.stop();
  await until(() => one.series.podOf(0)!.leader === 0);
  expect((await one.count(header('eventual'))).count).toBe('1');
  expect((await one.count(header('bounded; ms=0'))).count).toContain('no leader');
});

test('a database says how late its reads may be, and a request may say otherwise', async () => {
  await startAll();
  const [one] = await followers();
  one.setConsistency({ kind: 'eventual' });
  expect((await one.count({})).count).toBe('1');
  expect(one.readHere).toBe(1);
  expect((await one.count({ 'X-Polyrow-Consistency': 'strong' })).count).toBe('1');
  expect(one.readHere).toBe(1);
  one.setConsistency({ kind: 'bounded', maxStalenessMs: 60_000, maxLagEntries: 10 });
  expect((await one.count({})).count).toBe('1');
  expect(one.readHere).toBe(2);
});

test('a session reads all that it has seen and written, at any node', async () => {
  await startAll();
  await followers();
  let token = '';
  for (let n = 2; n <= 30; n++) {
    const at = nodes[n % 4]!;
    const response = await fetch(`http://127.0.0.1:${at.port}/write?db=db`, {
      method: 'POST',
      body: `m v=1 ${n}`,
      headers: { 'X-Polyrow-Consistency': 'session', 'X-Polyrow-Session': token || 'AQ' },
    });
    expect(response.status).toBe(204);
    token = response.headers.get('x-polyrow-session')!;
    const read = await nodes[(n + 1) % 4]!.count({ 'X-Polyrow-Session': token });
    expect(read.count).toBe(String(n));
    token = read.token!;
  }
  const here = nodes.reduce((sum, { readHere }) => sum + readHere, 0);
  expect(here).toBeGreaterThan(0);
  // A long answer tells at its end what it has seen.
  const q = encodeURIComponent('SELECT * FROM m');
  const url = `http://127.0.0.1:${nodes[0]!.port}/query?db=db&chunked=true&chunk_size=1&q=${q}`;
  const long = await fetch(url, { headers: { 'X-Polyrow-Session': token } });
  expect(long.headers.get('x-polyrow-session')).not.toBeNull();
  expect((await long.text()).trim().split('\n')).toHaveLength(30);
});

test('a database with leases is read without a question to other replicas', async () => {
  await startAll();
  for (const node of nodes) node.setConsistency({ kind: 'lease' });
  const leader = nodes.find(leads)!;
  const { log } = leader.series.podOf(0)!.parts;
  await until(() => {
    let isAnswered = false;
    // At once, within this call, only by a lease.
    log.readBarrier((outcome) => (isAnswered = outcome === 'committed'));
    return isAnswered;
  });
  expect((await leader.count({})).count).toBe('1');
});
