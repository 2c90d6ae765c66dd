// Messages to many, and clients with many subscriptions.

import { afterEach, describe, expect, test, vi } from 'vitest';
import { RequestMemory } from '../../access/admission/request-memory.ts';
import { sharedSlices } from '../../access/redis/shared-slices.ts';
import { redisSamples } from '../../server/planes/redis-samples.ts';
import { LimitedServer } from '../admission/limited-server.ts';
import { TenantsServer, type TenantsServerOptions } from '../redis-tenants/tenants-server.ts';
import type { RespClient } from '../support/resp-client.ts';
import type { RespValue } from '../support/resp-value.ts';

/** The texts in an answer. */
function texts(reply: RespValue | undefined): string[] {
  if (reply === undefined) return [];
  if ('items' in reply) return reply.items.flatMap(texts);
  return 'text' in reply ? [reply.text] : ['nil'];
}

let server: TenantsServer;
afterEach(() => server.stop());

async function start(options: TenantsServerOptions = {}): Promise<void> {
  server = await TenantsServer.start(options);
}

async function subscribers(count: number): Promise<RespClient[]> {
  const all = await Promise.all(Array.from({ length: count }, () => server.client()));
  await Promise.all(all.map((client) => client.command('SUBSCRIBE', 'c')));
  return all;
}

function fanOut() {
  return server.redis.tenants.get(0)!.fanOut;
}

describe('PUBLISH', () => {
  test('to many goes out in slices, in order, and tells how many it reached', async () => {
    await start();
    const all = await subscribers(200);
    const publisher = await server.client();
    const received = Promise.all(all.map((client) => client.replies(20)));
    const messages = Array.from({ length: 20 }, (_, i) => ['PUBLISH', 'c', `m${i}`]);
    expect((await publisher.pipeline(messages)).flatMap(texts)).toEqual(messages.map(() => '200'));
    // 64 a slice.
    expect(fanOut().slices).toBeGreaterThanOrEqual(20 * 3);
    for (const replies of await received) {
      expect(replies.map((reply) => texts(reply)[2])).toEqual(messages.map(([, , text]) => text));
    }
  });

  test('to a few costs no slice', async () => {
    await start();
    const [one] = await subscribers(10);
    const publisher = await server.client();
    const message = one!.replies(1);
    expect(await publisher.text('PUBLISH', 'c', 'm')).toBe(':10');
    await message;
    expect(fanOut().slices).toBe(0);
  });

  test('of a large message has no more than a slice in the output buffer', async () => {
    await start();
    await subscribers(40);
    const publisher = await server.client();
    const grown = new Set<number>();
    const { writer } = server.redis;
    const measure = setInterval(() => grown.add(writer.buf.length), 1);
    expect(await publisher.text('PUBLISH', 'c', 'x'.repeat(1024 * 1024))).toBe(':40');
    clearInterval(measure);
    expect(Math.max(...grown, writer.buf.length)).toBeLessThan(8 * 1024 * 1024);
    expect(fanOut().slices).toBeGreaterThanOrEqual(40);
  });

  test('within EXEC is answered at once, and all get it', async () => {
    await start();
    const all = await subscribers(100);
    const received = Promise.all(all.map((client) => client.replies(2)));
    const publisher = await server.client();
    const replies = await publisher.pipeline([
      ['MULTI'],
      ['PUBLISH', 'c', '1'],
      ['PUBLISH', 'c', '2'],
      ['EXEC'],
    ]);
    expect(texts(replies[3])).toEqual(['100', '100']);
    await received;
  });

  test('skips those that have left meanwhile', async () => {
    await start();
    const all = await subscribers(300);
    const publisher = await server.client();
    const sent = publisher.pipeline(Array.from({ length: 10 }, () => ['PUBLISH', 'c', 'm']));
    for (const client of all.slice(0, 150)) client.close();
    expect(await sent).toHaveLength(10);
    expect(await publisher.text('PING')).toBe('+PONG');
  });

  test('of a name that patterns would look at for long is refused, and an event of such a key is dropped', async () => {
    await start();
    const subscriber = await server.client();
    const pattern = (i: number) => `*[a-b]${'[a-z]'.repeat(10)}${i}.*`;
    await subscriber.pipeline(Array.from({ length: 2000 }, (_, i) => ['PSUBSCRIBE', pattern(i)]));
    const publisher = await server.client();
    const error = /^-ERR channel name is too long to be matched/;
    const name = (length: number) => `${'a'.repeat(length)}1999.`;
    expect(await publisher.text('PUBLISH', name(100), 'm')).toBe(':1');
    expect(await publisher.text('PUBLISH', name(20_000), 'm')).toMatch(error);
    expect(await publisher.text('PUBLISH', 'a'.repeat(70_000), 'm')).toMatch(error);
    const script = "return redis.call('PUBLISH', ARGV[1], 'm')";
    expect(await publisher.text('EVAL', script, 0, name(100))).toBe(':1');
    expect(await publisher.text('EVAL', script, 0, name(20_000))).toMatch(error);
    expect(await publisher.text('SPUBLISH', 'a'.repeat(70_000), 'm')).toBe(':0');
    const { changes } = server.redis;
    changes.classes = 'K$';
    const dropped = (): number =>
      redisSamples(server.redis, []).find(
        ({ name }) => name === 'polyrow_redis_keyspace_events_dropped_total',
      )!.value;
    const before = dropped();
    expect(await publisher.text('SET', 'a'.repeat(70_000), 'v')).toBe('+OK');
    await expect.poll(() => dropped() - before).toBe(1);
  });

  test("waits for its tenant's units", async () => {
    const limited = await LimitedServer.start(100, { commandWaitMs: 0 });
    server = limited.tenants;
    const red = await limited.client();
    limited.owe(5);
    expect(texts(await red.command('PUBLISH', 'c', 'm'))[0]).toMatch(/quota|units|limit/i);
    expect(texts(await red.command('SUBSCRIBE', 'c'))[0]).toMatch(/quota|units|limit/i);
    expect(await red.text('PING')).toBe('+PONG');
  });
});

describe('CLIENT REPLY OFF', () => {
  test.each([2, 3] as const)(
    'keeps back no message and no acknowledgement, RESP%d',
    async (version) => {
      await start();
      const client = await server.client('default', undefined, version);
      const other = await server.client();
      client.send('CLIENT REPLY OFF\r\nPING\r\nNOSUCH\r\nGET\r\nSUBSCRIBE c\r\n');
      expect(texts((await client.replies(1))[0])[0]).toBe('subscribe');
      expect(await other.text('PUBLISH', 'c', 'm')).toBe(':1');
      expect(texts((await client.replies(1))[0])[2]).toBe('m');
    },
  );

  test('of a publisher takes no message from subscribers', async () => {
    await start();
    const subscriber = await server.client();
    await subscriber.command('SUBSCRIBE', 'c');
    const messages = subscriber.replies(3);
    const publisher = await server.client();
    publisher.send(
      'CLIENT REPLY OFF\r\nPUBLISH c 1\r\nPUBLISH c 2\r\nPUBLISH c 3\r\nCLIENT REPLY ON\r\nPING\r\n',
    );
    const got = (await messages).map((reply) => texts(reply)[2]);
    expect(got).toEqual(['1', '2', '3']);
    expect(await publisher.replies(2)).toHaveLength(2);
  });
});

describe('subscriptions', () => {
  test('to many channels are made in slices, and others are served in between', async () => {
    await start();
    const client = await server.client();
    const names = Array.from({ length: 20_000 }, (_, i) => `c${i}`);
    const acks = client.pipeline([['SUBSCRIBE', ...names]]);
    await acks;
    const last = await client.replies(names.length - 1);
    expect(texts(last.at(-1))).toEqual(['subscribe', 'c19999', '20000']);
    await client.command('UNSUBSCRIBE');
    expect(texts((await client.replies(names.length - 1)).at(-1))).toEqual([
      'unsubscribe',
      'c19999',
      '0',
    ]);
    expect(server.redis.tenants.get(0)!.pubsub.channels.size).toBe(0);
  });

  test('with long names are listed and counted in slices', async () => {
    await start();
    const client = await server.client();
    const names = Array.from({ length: 4000 }, (_, i) => `${'\xe4'.repeat(500)}${i}`);
    await client.pipeline([['SUBSCRIBE', ...names.map((name) => Buffer.from(name, 'latin1'))]]);
    await client.replies(names.length - 1);
    const other = await server.client();
    const slices = vi.spyOn(sharedSlices, 'add');
    const listed = await other.command('PUBSUB', 'CHANNELS');
    const leastSlices = Math.floor((names.length * 500) / (64 * 1024));
    // Each name is looked at, and then written.
    expect(slices.mock.calls.length).toBeGreaterThanOrEqual(2 * leastSlices - 2);
    expect(texts(listed).sort()).toEqual(names.sort());
    slices.mockClear();
    const words = names.map((name) => Buffer.from(name, 'latin1'));
    const counted = await other.command('PUBSUB', 'NUMSUB', ...words, 'none');
    expect(slices.mock.calls.length).toBeGreaterThanOrEqual(2 * leastSlices - 2);
    expect(texts(counted)).toEqual([...names.flatMap((name) => [name, '1']), 'none', '0']);
    slices.mockRestore();
  });

  test('by long patterns are made a few at a time', async () => {
    await start();
    const client = await server.client();
    const patterns = Array.from({ length: 40 }, (_, i) => `*${'a'.repeat(30_000 + i)}b`);
    const { pubsub } = server.redis.tenants.get(0)!;
    const sizes = new Set<number>();
    const acks = client.pipeline([['PSUBSCRIBE', ...patterns]]);
    while (pubsub.patterns.size < patterns.length) {
      sizes.add(pubsub.patterns.size);
      await new Promise(setImmediate);
    }
    await acks;
    // 64 kB a slice: three of these.
    expect(sizes.size).toBeGreaterThanOrEqual(patterns.length / 3);
    await client.replies(patterns.length - 1);
    await client.command('PUNSUBSCRIBE');
    await client.replies(patterns.length - 1);
    expect(pubsub.patterns.size).toBe(0);
  });

  test('of a client that is gone are forgotten in slices, and it gets no more messages', async () => {
    await start();
    const client = await server.client();
    const names = Array.from({ length: 5000 }, (_, i) => `c${i}`);
    await client.pipeline([['SUBSCRIBE', ...names]]);
    await client.replies(names.length - 1);
    const { pubsub } = server.redis.tenants.get(0)!;
    const sizes: number[] = [];
    client.close();
    while (pubsub.channels.size > 0) {
      if (sizes.at(-1) !== pubsub.channels.size) sizes.push(pubsub.channels.size);
      await new Promise(setImmediate);
    }
    expect(sizes.slice(1).length).toBeGreaterThan(2);
    const other = await server.client();
    expect(await other.text('PUBLISH', 'c4999', 'm')).toBe(':0');
  });

  test('are bounded by number', async () => {
    await start();
    const client = await server.client();
    const names = Array.from({ length: 65_537 }, (_, i) => `c${i}`);
    client.pipeline([['SUBSCRIBE', ...names]]).catch(() => {});
    const replies = await client.replies(65_536);
    // To list as many is one step within a transaction.
    const other = await server.client();
    await other.pipeline([['MULTI'], ['PUBSUB', 'CHANNELS', 'x*'], ['PING']]);
    expect(await other.command('EXEC')).toMatchObject({
      items: [
        { type: '-', text: 'ERR too many to be shown within a transaction' },
        { text: 'PONG' },
      ],
    });
    expect(await other.command('PUBSUB', 'CHANNELS', 'x*')).toMatchObject({ items: [] });
    expect(texts(replies.at(-1))[0]).toContain('too many subscriptions');
  });

  test('are bounded by memory, and give it back', async () => {
    const memory = new RequestMemory({ maxBytes: 64 * 1024 });
    await start({ memory });
    const client = await server.client();
    const names = Array.from({ length: 1000 }, (_, i) => `c${i}`);
    client.pipeline([['SUBSCRIBE', ...names]]).catch(() => {});
    let reply: RespValue | undefined;
    do [reply] = await client.replies(1);
    while (reply?.type !== '-');
    expect(reply.text).toContain('OOM');
    expect(memory.usedFor('subscription')).toBeGreaterThan(0);
    client.close();
    await expect.poll(() => memory.usedBytes).toBe(0);
  });
});
