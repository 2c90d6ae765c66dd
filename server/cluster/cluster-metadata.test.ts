// Nodes' control planes in one process, over real links: how a cluster is formed, grows, loses nodes and shrinks.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { levelOf, type NodeAddresses, ownLevel } from '../../contracts/cluster.ts';
import { EmbeddedDocumentStore } from '../../control/metadata/embedded-document-store.ts';
import { ControlError } from './cluster-metadata.ts';
import type { ClusterMetadata, ClusterMetadataOptions } from './cluster-metadata.ts';
import { admitNode } from './join.ts';
import { readNodeIdentity } from './node-identity.ts';
import { openClusterMetadata } from './open-cluster-metadata.ts';
import { until } from '../../test/support/until.ts';

const secret = Buffer.from('a secret of this test only');
const host = '127.0.0.1';

const addressesAt = (port: number): NodeAddresses => ({
  control: `${host}:${port}`,
  redis: `${host}:${port + 1}`,
  influx: `${host}:${port + 2}`,
  redisClients: `${host}:6379`,
  influxClients: `${host}:8086`,
  admin: `${host}:7070`,
});

class TestNode {
  readonly name: string;
  readonly directory: string;
  meta!: ClusterMetadata;
  isUp = false;
  failures: string[] = [];
  reports: string[] = [];
  #port = 0;

  constructor(root: string, name: string) {
    this.name = name;
    this.directory = join(root, name);
    mkdirSync(this.directory, { recursive: true });
  }

  get number(): number {
    return this.meta.identity.node;
  }

  get seed(): string {
    return `${host}:${this.#port}`;
  }

  async start(options: Partial<ClusterMetadataOptions>): Promise<this> {
    this.meta = await openClusterMetadata({
      directory: this.directory,
      listen: { host, port: this.#port },
      secret,
      zone: '',
      addresses: addressesAt,
      begin: 'join',
      seeds: [],
      onFatal: ({ message }) => void this.failures.push(message),
      report: (_level, message) => void this.reports.push(message),
      ...options,
    });
    this.#port = this.meta.port;
    this.isUp = true;
    return this;
  }

  async kill(): Promise<void> {
    this.isUp = false;
    await this.meta.abandon();
  }

  async stop(): Promise<void> {
    if (!this.isUp) return;
    this.isUp = false;
    await this.meta.close();
  }

  async put(id: string, body: number, expected = 0): Promise<number> {
    const writes = [{ collection: 'things', id, body, expected }];
    return (await this.meta.store.write(writes))[0]!;
  }

  async get(id: string): Promise<unknown> {
    return (await this.meta.store.get('things', id))?.body;
  }
}

const numbersOf = (nodes: readonly TestNode[]): number[] =>
  nodes.map((node) => node.number).sort((a, b) => a - b);

class TestCluster {
  readonly root = mkdtempSync(join(tmpdir(), 'polyrow-cluster-'));
  readonly nodes: TestNode[] = [];

  add(name: string): TestNode {
    const node = new TestNode(this.root, name);
    this.nodes.push(node);
    return node;
  }

  async form(name = 'a', options: Partial<ClusterMetadataOptions> = {}): Promise<TestNode> {
    return await this.add(name).start({ begin: 'form', ...options });
  }

  join(
    name: string,
    seed: TestNode,
    options: Partial<ClusterMetadataOptions> = {},
  ): Promise<TestNode> {
    return this.add(name).start({ seeds: [seed.seed], ...options });
  }

  get up(): TestNode[] {
    return this.nodes.filter(({ isUp }) => isUp);
  }

  async leader(): Promise<TestNode> {
    await until(() => this.up.some(({ meta }) => meta.isLeader));
    return this.up.find(({ meta }) => meta.isLeader)!;
  }

  async members(voters: number[], learners: number[]): Promise<void> {
    let seen = '';
    try {
      await until(async () => {
        const leader = this.up.find(({ meta }) => meta.isLeader);
        const status = await leader?.meta.status();
        const sorted = (list: readonly number[] = []) => [...list].sort((a, b) => a - b);
        seen = `${sorted(status?.voters).join()}; ${sorted(status?.learners).join()}`;
        return seen === `${voters.join()}; ${learners.join()}`;
      });
    } catch {
      throw new Error(`members ${seen}, not ${voters.join()}; ${learners.join()}`);
    }
  }

  async close(): Promise<void> {
    for (const node of this.nodes) await node.stop();
    rmSync(this.root, { recursive: true });
  }
}

const open: TestCluster[] = [];
afterEach(async () => {
  for (const cluster of open.splice(0)) await cluster.close();
});

function newCluster(): TestCluster {
  const cluster = new TestCluster();
  open.push(cluster);
  return cluster;
}

async function ofThree(): Promise<[TestCluster, TestNode, TestNode, TestNode]> {
  const cluster = newCluster();
  const a = await cluster.form();
  const [b, c] = await Promise.all([cluster.join('b', a), cluster.join('c', a)]);
  await cluster.members([1, 2, 3], []);
  return [cluster, a, b, c];
}

describe('a cluster', () => {
  test('is formed, grows, loses its leader, takes it back, gives one up and takes another', async () => {
    const [cluster, a, b, c] = await ofThree();
    expect(new Set([a, b, c].map((node) => node.number))).toEqual(new Set([1, 2, 3]));
    for (const [i, node] of cluster.nodes.entries()) {
      await node.put(`of ${node.name}`, i);
      for (const other of cluster.nodes) expect(await other.get(`of ${node.name}`)).toBe(i);
      const known = node.meta.nodes().map((one) => [one.node, one.state, levelOf(one)]);
      expect(known).toEqual([1, 2, 3].map((number) => [number, 'up', ownLevel]));
    }

    const killed = await cluster.leader();
    const others = cluster.nodes.filter((node) => node !== killed);
    await killed.kill();
    // Nodes that still take the killed node for the leader report their own view.
    for (const { meta } of others) {
      const seen = await meta.status();
      expect(seen.leader).not.toBe(killed.number);
      expect(seen.nodes.length).toBe(3);
    }
    let expected = 0;
    for (let i = 0; i < 20; i++) expected = await others[i % 2]!.put('counter', i, expected);
    const leader = await cluster.leader();
    const status = await others.find((node) => node !== leader)!.meta.status();
    expect(status.leader).toBe(leader.number);
    expect(status.nodes.filter(({ reachable }) => !reachable).map(({ node }) => node)).toEqual([
      killed.number,
    ]);

    await killed.start({});
    expect(await killed.get('counter')).toBe(19);
    await killed.put('back', 1);

    const removed = await cluster.leader();
    const rest = cluster.nodes.filter((node) => node !== removed);
    await rest[0]!.meta.remove(removed.number);
    await until(() => removed.failures.length > 0);
    expect(removed.failures[0]).toMatch(/was removed from the cluster/);
    await removed.kill();
    await cluster.members(numbersOf(rest), []);

    const d = await cluster.join('d', rest[0]!);
    expect(d.number).toBe(4);
    await cluster.members([...numbersOf(rest), 4], []);
    expect(await d.get('counter')).toBe(19);
    await d.put('of d', 4);
    expect(await rest[1]!.get('of d')).toBe(4);
    // A removed node is not let in again.
    await expect(removed.start({})).rejects.toThrow('was removed from the cluster');
  });

  test('of five nodes has five voters; all are stopped, and started in another order', async () => {
    const cluster = newCluster();
    const a = await cluster.form();
    for (const name of ['b', 'c', 'd']) await cluster.join(name, a);
    await cluster.members([1, 2, 3], [4]);
    await cluster.join('e', a);
    await cluster.members([1, 2, 3, 4, 5], []);
    for (let i = 0; i < 5; i++) await cluster.nodes[i]!.put(`${i}`, i);
    await Promise.all(cluster.nodes.map((node) => node.stop()));
    await Promise.all([...cluster.nodes].reverse().map((node) => node.start({})));
    for (let i = 0; i < 5; i++) expect(await cluster.nodes[4 - i]!.get(`${i}`)).toBe(i);
    // Every start is a life of its own, which the others learn of.
    await until(() => a.meta.nodes().every(({ incarnation }) => incarnation === 2));
  });

  test('gives the vote of a node that is lost for long to another one', async () => {
    const cluster = newCluster();
    const options = { replaceVoterMs: () => 500 };
    const a = await cluster.form('a', options);
    for (const name of ['b', 'c', 'd']) await cluster.join(name, a, options);
    await cluster.members([1, 2, 3], [4]);
    const lost = cluster.nodes.slice(0, 3).find(({ meta }) => !meta.isLeader)!;
    await lost.kill();
    await cluster.members(
      [1, 2, 3, 4].filter((node) => node !== lost.number),
      [lost.number],
    );
    await lost.start(options);
    await lost.put('back', 1);
    // The node is a member again, without a vote.
    await cluster.members(
      [1, 2, 3, 4].filter((node) => node !== lost.number),
      [lost.number],
    );
  });

  test('goes on in a directory that was a single server', async () => {
    const cluster = newCluster();
    const a = cluster.add('a');
    const embedded = await EmbeddedDocumentStore.open(join(a.directory, 'metadata'));
    await embedded.write([
      { collection: 'tenants', id: 'one', body: { limit: 5 }, expected: 0 },
      { collection: 'tenants', id: 'two', body: { limit: 6 }, expected: 0 },
    ]);
    await embedded.close();
    await a.start({ begin: 'form' });
    const bodies = async ({ meta }: TestNode) =>
      (await meta.store.list('tenants')).map(({ id, body }) => [id, body]);
    const both = [
      ['one', { limit: 5 }],
      ['two', { limit: 6 }],
    ];
    expect(await bodies(a)).toEqual(both);
    const b = await cluster.join('b', a);
    expect(await bodies(b)).toEqual(both);
    // A restart does not overwrite later changes.
    const [, two] = await b.meta.store.list('tenants');
    await b.meta.store.write([{ ...two!, body: { limit: 7 }, expected: two!.revision }]);
    await a.stop();
    await a.start({ begin: 'form' });
    expect((await bodies(a))[1]).toEqual(['two', { limit: 7 }]);
    expect(readNodeIdentity(a.directory)).toMatchObject({ node: 1, incarnation: 2 });
  });
});

describe('a node that is to join', () => {
  test('waits for a cluster, never forms one, and keeps its number when it is killed meanwhile', async () => {
    const cluster = newCluster();
    const late = cluster.add('late');
    const given = new AbortController();
    const options = { seeds: [`${host}:1`], signal: given.signal };
    const waiting = late.start(options);
    setTimeout(() => given.abort(new Error('enough')), 700);
    await expect(waiting).rejects.toThrow('enough');
    expect(readNodeIdentity(late.directory)).toBeUndefined();
    const a = await cluster.form();
    await late.start({ seeds: [`${host}:1`, a.seed] });
    expect(late.number).toBe(2);
    await late.kill();
    await late.start({ seeds: [`${host}:1`] });
    expect(late.number).toBe(2);
    expect((await cluster.join('c', late)).number).toBe(3);
  });

  test('is of no earlier release than all nodes of the cluster', async () => {
    const cluster = newCluster();
    const { store } = (await cluster.form()).meta;
    const request = { joinId: '0'.repeat(32), zone: '', addresses: addressesAt(1) };
    await expect(admitNode(store, 1, request)).rejects.toThrow('of an earlier release, of level 1');
    expect((await admitNode(store, 1, { ...request, level: ownLevel })).node).toBe(2);
  });

  test('must know the secret', async () => {
    const cluster = newCluster();
    const a = await cluster.form();
    const stranger = cluster.add('stranger');
    const signal = AbortSignal.timeout(1500);
    const other = Buffer.from('another secret altogether');
    await expect(stranger.start({ seeds: [a.seed], secret: other, signal })).rejects.toThrow();
    expect(a.meta.nodes().length).toBe(1);
  });
});

describe('questions', () => {
  test('are answered by name, at this node or another one, or refused in words', async () => {
    const [, a, b] = await ofThree();
    b.meta.handlers.on('sum', (body, peer) => {
      const numbers = body as number[];
      if (numbers.length === 0) throw Object.assign(new Error('nothing to add'), { code: 'EMPTY' });
      return { sum: numbers.reduce((x, y) => x + y, 0), for: peer.node };
    });
    b.meta.handlers.on('never', () => new Promise(() => undefined));
    expect(() => b.meta.handlers.on('sum', () => null)).toThrow();
    for (const asking of [a, b]) {
      const ask = (name: string, body: number[] = [], ms = 2000) =>
        asking.meta.ask(b.number, name, body, ms);
      expect(await ask('sum', [1, 2])).toEqual({ sum: 3, for: asking.number });
      const refused = { outcome: 'refused', code: 'EMPTY', message: 'nothing to add' };
      await expect(ask('sum')).rejects.toMatchObject(refused);
      await expect(ask('nothing')).rejects.toMatchObject({ outcome: 'refused' });
      await expect(ask('never', [], 100)).rejects.toMatchObject({ outcome: 'unknown' });
    }
    await expect(a.meta.ask(77, 'sum', [], 1000)).rejects.toThrow(ControlError);
    const told = expect(a.meta.ask(b.number, 'never', [], 20_000)).rejects.toMatchObject({
      outcome: 'unknown',
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    await b.kill();
    await told;
    await expect(a.meta.ask(b.number, 'sum', [1], 3000)).rejects.toMatchObject({
      outcome: 'unreachable',
    });
    await b.start({});
    b.meta.handlers.on('sum', () => 'again');
    await until(async () => {
      return (await a.meta.ask(b.number, 'sum', [1], 1000).catch(() => null)) === 'again';
    });
  });

  test('leaders and nodes that come and go are told', async () => {
    const [cluster, a, b, c] = await ofThree();
    const leader = await cluster.leader();
    const watcher = [a, b, c].find((node) => node !== leader)!;
    const told: string[] = [];
    watcher.meta.onReachable((node, reachable) => told.push(`${node} ${reachable}`));
    let leads = 0;
    watcher.meta.onLeader((_isLeader, node) => void (leads = node));
    // An orderly stop hands over first.
    await leader.stop();
    await until(() => told.includes(`${leader.number} false`));
    await until(() => leads !== 0 && leads !== leader.number);
    await leader.start({});
    await until(() => told.includes(`${leader.number} true`));
  });
});
