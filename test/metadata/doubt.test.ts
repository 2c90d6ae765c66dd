// Writes that nothing came back from, and a database that is not what it was.

import { setTimeout as sleep } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { MetadataUnavailable } from '../../control/metadata/document-store.ts';
import { MongoDocumentStore } from '../../control/metadata/mongo/mongo-document-store.ts';
import { availableServers, MongoServer } from './mongo-server.ts';
import { TcpProxy } from './tcp-proxy.ts';

const { kinds, missing } = await availableServers();
test.runIf(kinds.length === 0)(`not tried: ${missing.join('. ')}`, (context) => context.skip());

const collection = 'things';

describe.each(kinds)('$name', (kind) => {
  let server: MongoServer;
  let databases = 0;
  const closers: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    server = await MongoServer.start(kind);
  });
  afterAll(() => server?.remove());
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  function open(database: string, port?: number, historyLength?: number): MongoDocumentStore {
    const uri = server.uri(database, port);
    const length = historyLength === undefined ? {} : { historyLength };
    const store = new MongoDocumentStore({ uri, restoredAfterMs: 300, ...length });
    closers.push(() => store.close());
    return store;
  }

  /** A store whose next write to the log breaks its connections, before it is sent or once it is made. */
  async function breaking(database: string, when: 'sent' | 'made'): Promise<MongoDocumentStore> {
    const proxy = await TcpProxy.start(server.port);
    closers.push(() => proxy.close());
    const store = open(database, proxy.port);
    await store.get(collection, 'a');
    let isSent = false;
    const breakOff = () => {
      proxy.onRequest = undefined;
      proxy.onReply = undefined;
      setTimeout(() => proxy.open(), 100);
      return 'cut' as const;
    };
    proxy.onRequest = (chunk) => {
      if (!chunk.includes('insert')) return undefined;
      isSent = true;
      return when === 'sent' ? breakOff() : undefined;
    };
    proxy.onReply = () => (isSent ? breakOff() : undefined);
    return store;
  }

  const write = (store: MongoDocumentStore, id: string) =>
    store.write([{ collection, id, body: id, expected: 0 }]);

  test('a write that got lost is made once', async () => {
    const database = `doubt${databases++}`;
    // Its first place was given up, for the lost message may still arrive.
    expect(await write(await breaking(database, 'sent'), 'a')).toEqual([2]);
    const other = open(database);
    expect(await other.list(collection)).toMatchObject([{ id: 'a', revision: 2 }]);
    expect(await other.changes(0)).toMatchObject([{ id: 'a', revision: 2 }]);
    expect(await write(other, 'b')).toEqual([3]);
  });

  test('a write whose answer got lost is not made again', async () => {
    const database = `doubt${databases++}`;
    expect(await write(await breaking(database, 'made'), 'a')).toEqual([1]);
    const other = open(database);
    expect(await other.changes(0)).toMatchObject([{ id: 'a', revision: 1 }]);
    expect(await write(other, 'b')).toEqual([2]);
  });

  test('a slow write that others have gone on from stays', async () => {
    const database = `doubt${databases++}`;
    const proxy = await TcpProxy.start(server.port);
    closers.push(() => proxy.close());
    // Every write makes a checkpoint.
    const store = open(database, proxy.port, 10);
    const other = open(database, server.port, 10);
    await store.get(collection, 'a');
    proxy.onRequest = (chunk) => {
      if (!chunk.includes('insert')) return undefined;
      proxy.onRequest = undefined;
      // The server gets it, and what it answers is held up.
      proxy.stall();
      return undefined;
    };
    const writing = write(store, 'a');
    await expect.poll(() => other.list(collection)).toHaveLength(1);
    expect(await write(other, 'b')).toEqual([2]);
    const client = new MongoClient(server.uri(database));
    closers.push(() => client.close());
    const checkpoints = client.db(database).collection('checkpoints');
    await expect.poll(() => checkpoints.countDocuments()).toBe(1);
    await sleep(1100);
    proxy.open();
    expect(await writing).toEqual([1]);
    expect(await other.changes(0)).toMatchObject([{ id: 'a' }, { id: 'b' }]);
    const third = open(database, server.port, 10);
    expect(await third.changes(0)).toMatchObject([{ id: 'a' }, { id: 'b' }]);
  });

  test('a database that was restored is noticed, and followed', async () => {
    const database = `doubt${databases++}`;
    const store = open(database);
    for (const id of ['a', 'b', 'c', 'd']) await write(store, id);
    const client = new MongoClient(server.uri(database));
    closers.push(() => client.close());
    const log = client.db(database).collection<{ _id: string }>('log');
    await log.deleteMany({ _id: { $gt: '0000000000000002' } });
    const seen: string[] = [];
    let missed = 0;
    store.watch(
      ({ id }) => seen.push(id),
      () => missed++,
    );
    const read = () => store.list(collection).then((all) => all.map(({ id }) => id));
    // Looked for no more often than once a second.
    await expect
      .poll(() => read().catch((error: unknown) => error))
      .toBeInstanceOf(MetadataUnavailable);
    await expect.poll(() => read().catch(() => [])).toEqual(['a', 'b']);
    await expect.poll(() => missed).toBe(1);
    expect(await write(store, 'e')).toEqual([3]);
    await expect.poll(() => seen).toEqual(['e']);
    expect(await open(database).list(collection)).toHaveLength(3);
  });

  test('a newer format is not touched', async () => {
    const database = `doubt${databases++}`;
    await write(open(database), 'a');
    const client = new MongoClient(server.uri(database));
    closers.push(() => client.close());
    const format = client.db(database).collection<{ _id: string; version: number }>('store');
    await format.updateOne({ _id: 'format' }, { $set: { version: 2 } });
    await expect(open(database).get(collection, 'a')).rejects.toThrow(
      'the metadata was written by a newer Polyrow (format 2; this one reads up to 1)',
    );
  });
});
