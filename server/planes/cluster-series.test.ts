// Three nodes in one process that keep one tenant's time series, each with an InfluxDB listener of its own, while the one
// that leads goes and comes back.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { until } from '../../test/support/until.ts';
import { Node, numbers, read, viewOf, write } from '../../test/support/series-nodes.ts';

let nodes: Node[] = [];
let root = '';
afterEach(async () => {
  for (const node of nodes) await node.stop();
  rmSync(root, { recursive: true, force: true });
});

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

test('the log of each node has segments of the size that the settings say', async () => {
  await startAll();
  const segments = (): number[] =>
    [1, 2, 3].map(
      (number) =>
        readdirSync(join(root, String(number), 'wal')).filter((name) => name.startsWith('seg-'))
          .length,
    );
  expect(segments()).toEqual([1, 1, 1]);
  const text = 'x'.repeat(30_000);
  for (let i = 0; i < 4; i++) await write(nodes[0]!, `m text="${text}" ${i + 2}`);
  await until(() => segments().every((count) => count > 1));
});

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
