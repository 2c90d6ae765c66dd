// Commands on tables of several partitions, by a client that knows nothing of them.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TablePartitions } from '../../control/metadata/partition-catalog.ts';
import { Polyrow } from '../support/polyrow.ts';
import { RespClient } from '../support/resp-client.ts';
import { items, text, texts } from './reply-items.ts';

const crossSlot = "-CROSSSLOT Keys in request don't hash to the same slot";
const otherTable =
  '-ERR this command cannot take rows from or to a table of several partitions, nor swap one';

let server: Polyrow;
let client: RespClient;

beforeAll(async () => {
  server = await Polyrow.start();
});
afterAll(() => server?.remove());

async function makeTable(table: number, model: string, partitions: number): Promise<number[]> {
  const made = await server.askAdmin('POST', '/v1/tables', { table, model, partitions });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  const { body } = await server.askAdmin('GET', `/v1/tables/${table}/partitions`);
  return (body as TablePartitions).partitions.map(({ number }) => number);
}

async function settled(table: number): Promise<TablePartitions> {
  for (;;) {
    const { body } = await server.askAdmin('GET', `/v1/tables/${table}/partitions`);
    if ((body as TablePartitions).change === undefined) return body as TablePartitions;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A table in memory, one in kv, and one whose partitions are in both. */
const tables = [
  ['memory', 1],
  ['kv', 2],
  ['both', 3],
] as const;

describe.each(tables)('a table of 8 partitions in %s', (where, table) => {
  beforeAll(async () => {
    const numbers = await makeTable(table, where === 'kv' ? 'kv' : 'memory', 8);
    expect(numbers).toHaveLength(8);
    if (where === 'both') {
      for (const partition of numbers.filter((_, i) => i % 2 === 1)) {
        const order = { kind: 'move', partition, model: 'kv' };
        await server.askAdmin('POST', `/v1/tables/${table}/partitions`, order);
        expect((await settled(table)).failure).toBeUndefined();
      }
    }
    client = await server.client();
    await client.command('SELECT', table);
    await client.pipeline(Array.from({ length: 1000 }, (_, i) => ['SET', `key:${i}`, i]));
  });

  const check = async (words: (string | number)[], expected: string | RegExp): Promise<void> => {
    const reply = await client.text(...words);
    if (typeof expected === 'string') expect(reply, words.join(' ')).toBe(expected);
    else expect(reply, words.join(' ')).toMatch(expected);
  };

  test('keys are found, whichever partition has them', async () => {
    const replies = await client.pipeline(
      Array.from({ length: 1000 }, (_, i) => ['GET', `key:${i}`]),
    );
    expect(replies.map(text)).toEqual(Array.from({ length: 1000 }, (_, i) => String(i)));
  });

  test('commands of several keys need them in one partition', async () => {
    await check(['MSET', '{a}1', 'x', '{a}2', 'y'], '+OK');
    await check(['MGET', '{a}1', '{a}2'], '*["x" "y"]');
    await check(['MSET', 'a', 1, 'b', 2, 'c', 3], crossSlot);
    await check(['DEL', 'a', 'b', 'c'], crossSlot);
    await check(['RENAME', '{a}1', '{a}3'], '+OK');
    await check(['SINTERSTORE', 'a', 'b'], crossSlot);
    await check(['DEL', '{a}2', '{a}3'], ':2');
  });

  test('commands about the table as a whole ask all partitions', async () => {
    await check(['DBSIZE'], ':1000');
    const found = await client.command('KEYS', 'key:99*');
    const expected = ['key:99', ...Array.from({ length: 10 }, (_, i) => `key:99${i}`)];
    expect(texts(found).sort()).toEqual(expected.sort());
    await check(['RANDOMKEY'], /key:\d+/);
    for (const count of [1, 10, 5000]) {
      const seen = new Set<string>();
      let cursor = '0';
      do {
        const [next, page] = items(await client.command('SCAN', cursor, 'COUNT', count));
        cursor = text(next!);
        expect(Number(cursor)).toBeLessThan(2 ** 53);
        for (const key of texts(page!)) seen.add(key);
      } while (cursor !== '0');
      expect(seen.size, `COUNT ${count}`).toBe(1000);
    }
  });

  test('a transaction is of one partition', async () => {
    await client.pipeline([['MULTI'], ['SET', '{t}1', 1], ['INCR', '{t}2'], ['PING']]);
    await check(['EXEC'], '*[+OK :1 +PONG]');
    await client.pipeline([['MULTI'], ['SET', 'a', 1], ['SET', 'b', 1], ['SET', 'c', 1]]);
    await check(['EXEC'], crossSlot);
    await client.pipeline([['MULTI'], ['DBSIZE']]);
    await check(['EXEC'], /EXECABORT/);
    await check(['MGET', '{t}1', '{t}2'], '*["1" "1"]');
    await check(['DEL', '{t}1', '{t}2'], ':2');
  });

  test('a script keeps to the partition of its keys', async () => {
    await check(['EVAL', "return redis.call('INCR', KEYS[1])", 1, '{s}1'], ':1');
    await check(['EVAL', "return redis.call('GET', '{s}1')", 1, '{s}2'], '"1"');
    await check(['EVAL', "return redis.call('DBSIZE')", 1, '{s}2'], /whole table/);
    const other = "for i = 1, 9 do redis.call('SET', 'other' .. i, 1) end";
    await check(['EVAL', other, 1, '{s}1'], /CROSSSLOT/);
    await check(['EVAL', other, 0], /CROSSSLOT/);
    // Writes before the error stay, as in Redis, in the tables that clients read.
    const found = await client.command('KEYS', 'other*');
    for (const key of texts(found)) await check(['DEL', key], ':1');
    await check(['DEL', '{s}1'], ':1');
  });

  test('keyspace notifications and cached keys are told under the table', async () => {
    const listener = await server.client(3);
    await client.command('CONFIG', 'SET', 'notify-keyspace-events', 'KEA');
    await listener.command('SUBSCRIBE', `__keyevent@${table}__:set`);
    const told = listener.replies(1);
    await client.command('SET', 'noticed', 1);
    expect(JSON.stringify(await told)).toContain('noticed');
    await client.command('CONFIG', 'SET', 'notify-keyspace-events', '');
    await client.command('DEL', 'noticed');
    listener.close();
  });

  test('WATCH sees a change by another client', async () => {
    await client.command('WATCH', 'key:1');
    const other = await server.client();
    await other.pipeline([
      ['SELECT', table],
      ['SET', 'key:1', 'other'],
    ]);
    await client.pipeline([['MULTI'], ['SET', 'key:1', 'mine']]);
    expect(await client.text('EXEC')).toMatch(/nil/);
    await client.command('SET', 'key:1', 1);
    other.close();
  });

  test('rows go to no other table', async () => {
    await check(['MOVE', 'key:1', 0], otherTable);
    await check(['COPY', 'key:1', '{key:1}2', 'DB', 0], otherTable);
    await check(['SWAPDB', 0, table], otherTable);
    await check(['COPY', 'key:1', '{key:1}2'], ':1');
    await check(['DEL', '{key:1}2'], ':1');
    await check(['SORT', 'key:1', 'BY', 'w_*'], /^-ERR BY and GET options/);
  });

  test('blocked clients are served', async () => {
    const waiting = await server.client();
    await waiting.command('SELECT', table);
    const popped = waiting.text('BLPOP', 'queue', 0);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await check(['LPUSH', 'queue', 'job'], ':1');
    expect(await popped).toBe('*["queue" "job"]');
    await check(['BLPOP', 'a', 'b', 'c', 0.01], crossSlot);
    waiting.close();
  });

  test('FLUSHDB empties all partitions and no other table', async () => {
    const other = await server.client();
    await other.command('SET', 'elsewhere', 1);
    await check(['FLUSHDB'], '+OK');
    await check(['DBSIZE'], ':0');
    await check(['RANDOMKEY'], '(nil)');
    expect(await other.text('GET', 'elsewhere')).toBe('"1"');
    await client.command('SET', 'again', 1);
    await other.command('FLUSHALL');
    await check(['DBSIZE'], ':0');
    other.close();
  });
});

describe('changes that cannot be', () => {
  const refused = async (order: object, status: number, message: RegExp): Promise<void> => {
    const done = await server.askAdmin('POST', '/v1/tables/4/partitions', order);
    expect([done.status, JSON.stringify(done.body)]).toEqual([
      status,
      expect.stringMatching(message),
    ]);
  };

  test('are refused with the reason', async () => {
    const [first, second, third] = await makeTable(4, 'memory', 3);
    await refused({ kind: 'split' }, 400, /partition is missing/);
    await refused({ kind: 'split', partition: 1 }, 404, /no partition 1/);
    await refused({ kind: 'split', partition: first, at: 0 }, 400, /slots 1 to 5460/);
    await refused({ kind: 'merge', partitions: [first, third] }, 400, /adjoin/);
    await refused({ kind: 'merge', partitions: [second] }, 400, /two partitions/);
    await refused({ kind: 'move', partition: first, model: 'memory' }, 409, /nothing to move/);
  });

  test('a table that holds rows is not divided by alter', async () => {
    const own = await server.client();
    await own.pipeline([
      ['SELECT', 5],
      ['SET', 'k', 'v'],
    ]);
    const done = await server.askAdmin('PATCH', '/v1/tables/5', { partitions: 4 });
    expect(done.status).toBe(409);
    expect(JSON.stringify(done.body)).toContain('polyrow partition split');
    expect(await own.text('GET', 'k')).toBe('"v"');
    own.close();
  });
});
