// The server killed, paused and cut off while several stores write to it and one follows: every
// acknowledged write is there, none is torn, and the follower is told each once, whole and in order.
//
//   POLYROW_FULL=1    more rounds, and a feed that is cut for a minute
//   FAULT_SEED=n      repeats the choices of a run

import { setTimeout as sleep } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { afterEach, describe, expect, test } from 'vitest';
import { Follower } from '../../control/metadata/conformance/trial.ts';
import { MetadataUnavailable } from '../../control/metadata/document-store.ts';
import type { LogRecord } from '../../control/metadata/mongo/layout.ts';
import { MongoDocumentStore } from '../../control/metadata/mongo/mongo-document-store.ts';
import { Random } from '../support/random.ts';
import { FamilyWriter } from './families.ts';
import { checkLog, checkTold } from './feed-check.ts';
import { availableServers, MongoServer } from './mongo-server.ts';
import { TcpProxy } from './tcp-proxy.ts';
import { seedFrom } from '../support/seed.ts';

const full = process.env['POLYROW_FULL'] === '1';
const rounds = full ? 50 : 2;
const seed = seedFrom('FAULT_SEED');
const timeoutMs = 1000;
/** In the long form no more may be written in a minute than the history keeps. */
const pauseMs = full ? 200 : 30;

const { kinds, missing } = await availableServers();
test.runIf(kinds.length === 0)(`not tried: ${missing.join('. ')}`, (context) => context.skip());

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A server, writers on stores of their own, the first behind a proxy, and a follower. */
class Scene {
  readonly random = new Random(seed);
  readonly writers = ['a', 'b', 'c'].map((name) => new FamilyWriter(name, this.random, pauseMs));
  server!: MongoServer;
  proxy!: TcpProxy;
  follower!: Follower;
  readonly #stores: MongoDocumentStore[] = [];

  static async set(kind: (typeof kinds)[number]): Promise<Scene> {
    const scene = new Scene();
    scene.server = await MongoServer.start(kind);
    closers.push(() => scene.server.remove());
    scene.proxy = await TcpProxy.start(scene.server.port);
    closers.push(() => scene.proxy.close());
    for (const port of [scene.proxy.port, undefined, undefined]) {
      scene.#stores.push(scene.store(port));
    }
    scene.follower = new Follower(scene.store(scene.proxy.port));
    closers.push(() => scene.follower.close());
    await scene.follower.reaches(0);
    return scene;
  }

  store(port?: number): MongoDocumentStore {
    const store = new MongoDocumentStore({ uri: this.server.uri('faults', port), timeoutMs });
    closers.push(() => store.close());
    return store;
  }

  /** Something goes wrong under load; then all must be as acknowledged. */
  async whileWriting(trouble: (scene: Scene) => Promise<void>): Promise<void> {
    const stop = new AbortController();
    const writing = this.writers.map((writer, i) => writer.run(this.#stores[i]!, stop.signal));
    const stopped = Promise.all(writing);
    // A failure of the load ends the trouble, not the other way round.
    await Promise.race([trouble(this), stopped]);
    stop.abort();
    await stopped;
    await this.check();
  }

  get acknowledged(): number {
    return this.writers.reduce((sum, writer) => sum + writer.acknowledged, 0);
  }

  async check(): Promise<void> {
    const { revision, documents } = await this.#snapshot();
    for (const writer of this.writers) writer.check(documents, `seed ${seed}`);
    await this.follower.reaches(revision);
    const { told, snapshots, documents: followed } = this.follower;
    expect(snapshots).toBe(1);
    const toldNow = [...told];
    checkTold(toldNow, this.writers, `seed ${seed}`);
    checkLog(toldNow, await this.log(), `seed ${seed}`);
    expect(followed.size).toBe(documents.length);
    for (const { id, body } of documents) expect(followed.get(id)).toEqual(body);
  }

  /** The log as stored. */
  async log(): Promise<LogRecord[]> {
    const client = new MongoClient(this.server.uri('faults'));
    try {
      const log = client.db('faults').collection<LogRecord>('log');
      return await log.find().sort({ _id: 1 }).toArray();
    } finally {
      await client.close();
    }
  }

  /** A write of the first that does not reach the server, without other writes. */
  async loseWrite(): Promise<void> {
    const { proxy } = this;
    proxy.onRequest = (chunk) => {
      if (!chunk.includes('insert')) return undefined;
      proxy.onRequest = undefined;
      setTimeout(() => proxy.open(), 20);
      return 'cut';
    };
    await this.writers[0]!.step(this.#stores[0]!).catch((error: unknown) => {
      if (!(error instanceof MetadataUnavailable)) throw error;
    });
  }

  async #snapshot() {
    for (;;) {
      try {
        return await this.#stores[1]!.snapshot();
      } catch (error) {
        if (!(error instanceof MetadataUnavailable)) throw error;
        await sleep(100);
      }
    }
  }
}

// All of them in the long form; the first is one that keeps what it has acknowledged.
describe.each(full ? kinds : kinds.slice(0, 1))('$name', (kind) => {
  test.runIf(kind.durable)(
    `killed ${rounds} times under load`,
    { timeout: 3_600_000 },
    async () => {
      const scene = await Scene.set(kind);
      await scene.whileWriting(async ({ server, random }) => {
        for (let round = 0; round < rounds; round++) {
          await sleep(200 + random.below(500));
          await server.kill();
          await sleep(random.below(1000));
          await server.start();
        }
        const before = scene.acknowledged;
        await expect.poll(() => scene.acknowledged).toBeGreaterThan(before);
      });
    },
  );

  test(`paused ${rounds} times under load`, { timeout: 3_600_000 }, async () => {
    const scene = await Scene.set(kind);
    await scene.whileWriting(async ({ server, random }) => {
      for (let round = 0; round < rounds; round++) {
        await sleep(200 + random.below(500));
        server.pause();
        await sleep(100 + random.below(2 * timeoutMs));
        server.resume();
      }
      const before = scene.acknowledged;
      await expect.poll(() => scene.acknowledged).toBeGreaterThan(before);
    });
  });

  test(`cut off ${rounds} times under load`, { timeout: 3_600_000 }, async () => {
    const scene = await Scene.set(kind);
    await scene.whileWriting(async ({ proxy, random }) => {
      for (let round = 0; round < rounds; round++) {
        await sleep(200 + random.below(500));
        if (random.chance(0.5)) proxy.cut();
        else proxy.stall();
        await sleep(100 + random.below(3 * timeoutMs));
        proxy.open();
      }
      // The one that was cut off goes on as the others do.
      const [behind] = scene.writers;
      const before = behind!.acknowledged;
      const isBack = () => behind!.acknowledged > before || behind!.lastFailure?.message;
      await expect.poll(isBack).toBe(true);
    });
  });

  test('a place that is given up is told as nothing', async () => {
    const scene = await Scene.set(kind);
    const heldPlaces = async () =>
      (await scene.log()).filter(({ changes }) => changes.length === 0);
    // The loss may also be noticed too late.
    do await scene.loseWrite();
    while ((await heldPlaces()).length === 0);
    await scene.whileWriting(() => sleep(300));
    expect(scene.acknowledged).toBeGreaterThan(3);
    const told = new Set(scene.follower.told.map(({ revision }) => revision));
    for (const { last } of await heldPlaces()) expect(told).not.toContain(last);
  });

  test('a call to a server that stands still ends', async () => {
    const scene = await Scene.set(kind);
    const store = scene.store();
    const write = () => store.write([{ collection: 'c', id: 'a', body: 1, expected: 0 }]);
    await store.get('c', 'a');
    scene.server.pause();
    // Each of its threads has to come to a halt.
    await sleep(100);
    for (const call of [() => store.get('c', 'a'), () => store.list('c'), write, write]) {
      await expect(call()).rejects.toThrow(MetadataUnavailable);
    }
    scene.server.resume();
    await expect
      .poll(() =>
        store.get('c', 'a').then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
  });

  const cutMs = full ? 60_000 : 5000;
  test(`a feed that is cut for ${cutMs / 1000} s loses no event`, {
    timeout: 600_000,
  }, async () => {
    const scene = await Scene.set(kind);
    let told = 0;
    // Only the follower and the first writer are behind the proxy: the others write on.
    await scene.whileWriting(async ({ proxy }) => {
      await sleep(300);
      proxy.cut();
      // It may still be reporting earlier changes.
      do {
        told = scene.follower.told.length;
        await sleep(2000);
      } while (scene.follower.told.length > told);
      const before = scene.acknowledged;
      await sleep(cutMs);
      await expect.poll(() => scene.acknowledged).toBeGreaterThan(before + 10);
      expect(scene.follower.told.length).toBe(told);
      proxy.open();
    });
    expect(scene.follower.told.length).toBeGreaterThan(told);
  });
});
