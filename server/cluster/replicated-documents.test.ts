// The metadata of a cluster on real logs: the suite of all document stores with one replica and with three, and what
// comes of leaders that are lost.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { StoreSubject } from '../../control/metadata/conformance/trial.ts';
import {
  type DocumentChange,
  type DocumentStore,
  MetadataUnavailable,
  RevisionConflict,
} from '../../control/metadata/document-store.ts';
import { casesFor, runCase } from '../../control/metadata/document-store-conformance.ts';
import { ReplicatedDocumentStore } from '../../control/metadata/replicated/replicated-document-store.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { loadEngineModule } from '../../storage-node/replicator/engine/wasm-engine.ts';
import { firstPosition } from '../../storage-node/replicator/raft/log-position.ts';
import { RaftHost } from '../../storage-node/replicator/raft/raft-host.ts';
import { replicaId } from '../../storage-node/replicator/raft/replica-id.ts';
import { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import { Links } from '../../storage-node/replicator/transport/links-fixture.ts';
import { RaftReplicatedGroup } from './raft-replicated-group.ts';

const module = loadEngineModule();

interface ReplicaOptions {
  historyLength?: number;
  staleAfterMs?: number;
  timeoutMs?: number;
}

class TestReplica {
  readonly node: number;
  store!: ReplicatedDocumentStore;
  group!: RaftReplicatedGroup;
  isUp = false;
  #host!: RaftHost;

  constructor(node: number) {
    this.node = node;
  }

  async start(root: string, all: readonly TestReplica[], links: Links, options: ReplicaOptions) {
    const { node } = this;
    this.#host = await RaftHost.open({
      disk: realDisk,
      directory: join(root, String(node), 'wal'),
      ids: { cluster: 1, node },
      transport: links.of(node),
      onFatal: (error) => {
        throw error;
      },
      ...{ tickMs: 10, electionTicks: 10, heartbeatTicks: 2, module },
      limits: { checkpointEntries: 20, keptEntries: 5 },
    });
    const isCut = (to: number): boolean => links.cut.has(node) || links.cut.has(to);
    this.store = await ReplicatedDocumentStore.open({
      path: join(root, String(node), 'documents'),
      node,
      async forward(to, bytes) {
        const other = all.find((one) => one.node === to && one.isUp);
        if (other === undefined || isCut(to)) throw new MetadataUnavailable('no link');
        const answer = await other.store.serveWrite(bytes);
        if (isCut(to)) throw new Error('the link is lost');
        return answer;
      },
      others: () => all.map((one) => one.node),
      ...options,
    });
    this.group = new RaftReplicatedGroup({
      host: this.#host,
      group: 1,
      replica: replicaId(node),
      first: firstPosition(all.map((one) => replicaId(one.node))),
      machine: this.store.machine,
    });
    this.store.attach(this.group);
    this.isUp = true;
  }

  async stop(): Promise<void> {
    if (!this.isUp) return;
    this.isUp = false;
    await this.#host.close();
    await this.store.close();
  }
}

class TestCluster {
  readonly root = mkdtempSync(join(tmpdir(), 'polyrow-documents-'));
  readonly links = new Links();
  readonly replicas: TestReplica[];

  constructor(count: number) {
    this.replicas = Array.from({ length: count }, (_, i) => new TestReplica(i + 1));
  }

  async start(options: ReplicaOptions = {}): Promise<void> {
    for (const one of this.replicas) if (!one.isUp) await this.startOne(one, options);
  }

  startOne(one: TestReplica, options: ReplicaOptions = {}): Promise<void> {
    return one.start(this.root, this.replicas, this.links, options);
  }

  async stop(): Promise<void> {
    for (const one of this.replicas) await one.stop();
  }

  async leader(of: readonly TestReplica[] = this.replicas): Promise<TestReplica> {
    for (let left = 1000; left > 0; left--) {
      const found = of.find(({ isUp, group }) => isUp && group.isLeader);
      if (found) return found;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error('no leader');
  }
}

/** Each store of a trial is another node's; closing all of them and opening one restarts the cluster. */
function subjectOf(count: number): StoreSubject {
  return {
    shared: count > 1,
    place() {
      const cluster = new TestCluster(count);
      const open = new Set<DocumentStore>();
      let next = 0;
      return Promise.resolve({
        async open(historyLength: number) {
          await cluster.start({ historyLength });
          const { store } = cluster.replicas[next++ % count]!;
          const opened: DocumentStore = new Proxy(store, {
            get(target, name) {
              if (name === 'close') {
                return async () => {
                  if (open.delete(opened) && open.size === 0) await cluster.stop();
                };
              }
              const value: unknown = Reflect.get(target, name, target);
              return typeof value === 'function' ? value.bind(target) : value;
            },
          });
          open.add(opened);
          return opened;
        },
        async remove() {
          await cluster.stop();
          rmSync(cluster.root, { recursive: true });
        },
      });
    },
  };
}

describe.each([1, 3])('%i replicas', (count) => {
  const subject = subjectOf(count);
  for (const each of casesFor(subject)) test(each.name, () => runCase(each, subject), 60_000);
});

describe('when something is lost', () => {
  const open: TestCluster[] = [];
  afterEach(async () => {
    for (const cluster of open.splice(0)) {
      await cluster.stop();
      rmSync(cluster.root, { recursive: true });
    }
  });

  async function cluster(options: ReplicaOptions = {}): Promise<TestCluster> {
    const made = new TestCluster(3);
    open.push(made);
    await made.start(options);
    return made;
  }

  const put = (store: DocumentStore, id: string, body: number, expected = 0): Promise<number[]> =>
    store.write([{ collection: 'things', id, body, expected }]);

  test('a leader is cut off: writes go on, none is made twice, and it catches up', async () => {
    const all = await cluster();
    const old = await all.leader();
    const others = all.replicas.filter((one) => one !== old);
    let expected = 0;
    let count = 0;
    // Each write needs the one before: one that was made and reported otherwise would be found out.
    for (; count < 60; count++) {
      if (count === 20) all.links.cut.add(old.node);
      [expected] = (await put(others[count % 2]!.store, 'counter', count, expected)) as [number];
    }
    expect(expected).toBe(60);
    await expect(old.store.write([])).resolves.toEqual([]);
    all.links.cut.clear();
    expect((await old.store.get('things', 'counter'))?.body).toBe(59);
    expect(old.store.revision).toBe(60);
    const next = await all.leader();
    expect((await put(old.store, 'after', 1))[0]).toBe(61);
    expect((await next.store.get('things', 'after'))?.body).toBe(1);
  });

  test('a node that is cut off refuses writes, and reads only from its copy if it may', async () => {
    const all = await cluster({ timeoutMs: 1500 });
    await all.leader();
    await put(all.replicas[0]!.store, 'a', 1);
    for (const { store } of all.replicas) expect((await store.get('things', 'a'))?.body).toBe(1);
    const cut = all.replicas[2]!;
    await cut.stop();
    await all.startOne(cut, { timeoutMs: 1500, staleAfterMs: 300 });
    expect(await cut.store.isLatest(5000)).toBe(true);
    all.links.cut.add(cut.node);
    expect((await cut.store.get('things', 'a'))?.body).toBe(1);
    expect(cut.store.status.up).toBe(false);
    await expect(put(cut.store, 'b', 1)).rejects.toThrow(MetadataUnavailable);
    all.links.cut.clear();
    all.links.cut.add(1).add(2);
    await expect(all.replicas[0]!.store.get('things', 'a')).rejects.toThrow(MetadataUnavailable);
    all.links.cut.clear();
    expect((await put(cut.store, 'c', 1))[0]).toBeGreaterThan(1);
    for (let left = 500; !cut.store.status.up && left > 0; left--) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(cut.store.status.up).toBe(true);
  });

  test('a node that was away gets a snapshot, from disk and then from others, and tells its watchers', async () => {
    const all = await cluster();
    const leader = await all.leader();
    const [away, writer] = all.replicas.filter((one) => one !== leader) as [
      TestReplica,
      TestReplica,
    ];
    for (let i = 0; i < 30; i++) await put(writer.store, `before ${i}`, i);
    await away.stop();
    // More than the log keeps for those that are behind.
    for (let i = 0; i < 100; i++) await put(writer.store, `after ${i}`, i);
    await all.startOne(away);
    const told: DocumentChange[] = [];
    let missed = 0;
    const stop = away.store.watch(
      (change) => told.push(change),
      () => void missed++,
    );
    expect((await away.store.list('things')).length).toBe(130);
    expect(missed).toBe(1);
    await put(away.store, 'new', 1);
    stop();
    expect(told.at(-1)).toMatchObject({ id: 'new', revision: 131 });
    // Its state is on its own disk now.
    await all.stop();
    await all.start();
    expect((await away.store.list('things')).length).toBe(131);
    await expect(put(away.store, 'new', 2)).rejects.toThrow(RevisionConflict);
  });

  test('links are cut at random while clients count', async () => {
    const all = await cluster({ timeoutMs: 5000 });
    const random = new Random(7);
    const count = { made: 0, unknown: 0 };
    let isDone = false;
    const missed = [0, 0, 0];
    const feeds = all.replicas.map(({ store }, i) => {
      const told: number[] = [];
      store.watch(
        ({ body }) => told.push(Number(body)),
        () => void missed[i]!++,
      );
      return told;
    });
    const counting = all.replicas.map(async ({ store }) => {
      while (!isDone) {
        try {
          const found = await store.get('things', 'counter');
          await put(store, 'counter', Number(found?.body ?? 0) + 1, found?.revision ?? 0);
          count.made++;
        } catch (error) {
          if (error instanceof MetadataUnavailable && error.outcome === 'unknown') count.unknown++;
          else if (!(error instanceof RevisionConflict || error instanceof MetadataUnavailable)) {
            throw error;
          }
        }
      }
    });
    for (let cuts = 0; cuts < 12; cuts++) {
      all.links.cut.clear();
      await new Promise((resolve) => setTimeout(resolve, random.below(300)));
      all.links.cut.add(1 + random.below(3));
      await new Promise((resolve) => setTimeout(resolve, random.below(400)));
    }
    all.links.cut.clear();
    await vi.waitUntil(() => count.made > 10, { timeout: 60_000 });
    isDone = true;
    await Promise.all(counting);
    const bodies = await Promise.all(
      all.replicas.map(async ({ store }) => (await store.get('things', 'counter'))?.body),
    );
    expect(new Set(bodies).size).toBe(1);
    expect(bodies[0]).toBeGreaterThanOrEqual(count.made);
    expect(bodies[0]).toBeLessThanOrEqual(count.made + count.unknown);
    // Each number was written once: watchers are told them in order, but for what a snapshot has left out.
    for (const [i, told] of feeds.entries()) {
      const steps = told.slice(1).map((number, at) => number - told[at]!);
      const gaps = steps.filter((step) => step !== 1);
      expect(gaps.every((gap) => gap > 1)).toBe(true);
      expect(gaps.length).toBeLessThanOrEqual(missed[i]!);
      expect(told.at(-1)).toBeLessThanOrEqual(Number(bodies[0]));
    }
  });

  test('all nodes are restarted in turn while clients count', async () => {
    const all = await cluster({ timeoutMs: 30_000 });
    let isDone = false;
    const count = { made: 0, unknown: 0 };
    const counting = all.replicas.map(async (_, i) => {
      for (let tries = 0; !isDone; tries++) {
        const { store, isUp } = all.replicas[(i + tries) % 3]!;
        if (!isUp) {
          await new Promise((resolve) => setTimeout(resolve, 10));
          continue;
        }
        try {
          const found = await store.get('things', 'counter');
          await put(store, 'counter', Number(found?.body ?? 0) + 1, found?.revision ?? 0);
          count.made++;
        } catch (error) {
          if (error instanceof RevisionConflict) continue;
          // The store was closed under it.
          if (!(error instanceof MetadataUnavailable)) throw error;
          if (error.outcome === 'unknown') count.unknown++;
        }
      }
    });
    for (const one of all.replicas) {
      await one.stop();
      await new Promise((resolve) => setTimeout(resolve, 200));
      await all.startOne(one, { timeoutMs: 30_000 });
      expect(await one.store.isLatest(20_000)).toBe(true);
    }
    await vi.waitUntil(() => count.made > 10, { timeout: 60_000 });
    isDone = true;
    await Promise.all(counting);
    const found = Number((await all.replicas[0]!.store.get('things', 'counter'))?.body);
    expect(found).toBeGreaterThanOrEqual(count.made);
    expect(found).toBeLessThanOrEqual(count.made + count.unknown);
  });
});
