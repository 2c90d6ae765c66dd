// Streams and their groups with ioredis: readers that wait, groups that share, and what was left is claimed.

import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isBuilt } from '../cli/polyrow-process.ts';
import { Polyrow } from '../support/polyrow.ts';

type Entries = [id: string, fields: string[]][];
type Read = [stream: string, entries: Entries][] | null;

describe.skipIf(!isBuilt).each(['memory', 'kv'])('streams on %s', (model) => {
  let server: Polyrow;
  const clients: Redis[] = [];
  const connect = (): Redis => {
    const client = new Redis(server.redisPort, '127.0.0.1');
    clients.push(client);
    return client;
  };
  /** Resolves when so many clients wait. */
  async function waiting(client: Redis, count: number): Promise<void> {
    while (!(await client.info('clients')).includes(`blocked_clients:${count}\r`));
  }

  beforeAll(async () => {
    server = await Polyrow.start({ flags: ['--redis.default-model', model] });
  });
  afterAll(async () => {
    for (const client of clients) client.disconnect();
    await server.remove();
  });

  test('XREAD waits for what is new, of several streams, and gives up in time', async () => {
    const [writer, reader] = [connect(), connect()];
    await writer.xadd('a', '*', 'old', '1');
    expect(await reader.xread('BLOCK', 10, 'STREAMS', 'a', 'b', '$', '$')).toBeNull();
    const read = reader.xread('BLOCK', 0, 'STREAMS', 'a', 'b', '$', '$') as Promise<Read>;
    await waiting(writer, 1);
    const id = await writer.xadd('b', '*', 'f', 'v');
    expect(await read).toEqual([['b', [[id, ['f', 'v']]]]]);
  });

  test('all that wait with XREAD see an entry, one of a group gets it', async () => {
    const writer = connect();
    await writer.xgroup('CREATE', 'c', 'g', '$', 'MKSTREAM');
    const readers = [connect(), connect()];
    const members = [connect(), connect()];
    const seen = readers.map((one) => one.xread('BLOCK', 0, 'STREAMS', 'c', '$'));
    await waiting(writer, 2);
    const got: Promise<Read>[] = [];
    for (const [i, one] of members.entries()) {
      const read = one.xreadgroup('GROUP', 'g', `m${i}`, 'BLOCK', 0, 'STREAMS', 'c', '>');
      got.push(read as Promise<Read>);
      await waiting(writer, 3 + i);
    }
    const first = await writer.xadd('c', '*', 'n', '1');
    expect(await Promise.all(seen)).toEqual(Array(2).fill([['c', [[first, ['n', '1']]]]]));
    expect(await got[0]).toEqual([['c', [[first, ['n', '1']]]]]);
    const second = await writer.xadd('c', '*', 'n', '2');
    expect(await got[1]).toEqual([['c', [[second, ['n', '2']]]]]);
  });

  test('what a consumer left is claimed by another, and acknowledged', async () => {
    const client = connect();
    await client.xgroup('CREATE', 'd', 'g', '0', 'MKSTREAM');
    const ids: string[] = [];
    for (let n = 0; n < 10; n++) ids.push((await client.xadd('d', '*', 'n', `${n}`))!);
    await client.xreadgroup('GROUP', 'g', 'gone', 'COUNT', 6, 'STREAMS', 'd', '>');
    const [next, claimed] = (await client.xautoclaim('d', 'g', 'heir', 0, '0', 'COUNT', 4)) as [
      string,
      Entries,
    ];
    expect(claimed.map(([id]) => id)).toEqual(ids.slice(0, 4));
    expect(next).toBe(ids[4]);
    expect(await client.xack('d', 'g', ...ids.slice(0, 4))).toBe(4);
    expect(await client.xpending('d', 'g')).toEqual([2, ids[4], ids[5], [['gone', '2']]]);
    const history = (await client.xreadgroup('GROUP', 'g', 'gone', 'STREAMS', 'd', '0')) as Read;
    expect(history![0]![1].map(([id]) => id)).toEqual(ids.slice(4, 6));
  });

  test('a group that is destroyed ends the wait of its members', async () => {
    const [client, member] = [connect(), connect()];
    await client.xgroup('CREATE', 'e', 'g', '$', 'MKSTREAM');
    const read = member.xreadgroup('GROUP', 'g', 'm', 'BLOCK', 0, 'STREAMS', 'e', '>');
    const ended = expect(read).rejects.toThrow(/^NOGROUP/);
    await waiting(client, 1);
    await client.xgroup('DESTROY', 'e', 'g');
    await ended;
  });
});
