// Behaviour tested by redis-server's own suite that once differed here.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import type { RespClient } from '../support/resp-client.ts';

let server: Polyrow;
let client: RespClient;
beforeAll(async () => {
  server = await Polyrow.start();
  client = await server.client();
});
afterAll(() => server.remove());

describe('CLIENT', () => {
  const fields =
    /id=\d+ addr=\S+:\d+ laddr=\S+:\d+ fd=\d+ name= age=\d+ idle=\d+ flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 qbuf=26 qbuf-free=\d+ argv-mem=10 multi-mem=0 rbs=\d+ rbp=\d+ obl=0 oll=0 omem=0 tot-mem=\d+ events=r cmd=client\|(list|info) user=default redir=-1 resp=2/;
  test.each(['list', 'info'])('%s has the fields of Redis in its order', async (sub) => {
    expect(await client.text('client', sub)).toMatch(fields);
  });

  test('KILL USER of nobody is an error', async () => {
    expect(await client.text('CLIENT', 'KILL', 'USER', 'nobody')).toBe(
      "-ERR No such user 'nobody'",
    );
    expect(await client.text('CLIENT', 'KILL', 'USER', 'default')).toBe(':0');
  });

  test('LIST and KILL of many', async () => {
    const others = await Promise.all(Array.from({ length: 600 }, () => server.client()));
    await Promise.all(others.map((other) => other.command('PING')));
    const text = await client.text('CLIENT', 'LIST');
    expect(text.match(/ cmd=/g)!.length).toBe(601);
    expect(await client.text('CLIENT', 'KILL', 'TYPE', 'normal')).toBe(':600');
    await Promise.all(others.map((other) => other.ended));
    const replies = await client.pipeline([
      ['MULTI'],
      ['CLIENT', 'KILL', 'TYPE', 'normal'],
      ['EXEC'],
    ]);
    expect(replies[2]).toMatchObject({ items: [{ text: '0' }] });
  });
});

describe('OBJECT ENCODING by what CONFIG SET says', () => {
  const rows = [
    ['hash-max-listpack-entries', '2', ['HSET', 'k', 'a', '1', 'b', '2', 'c', '3'], 'hashtable'],
    ['hash-max-ziplist-entries', '3', ['HSET', 'k', 'a', '1', 'b', '2', 'c', '3'], 'listpack'],
    ['hash-max-listpack-value', '3', ['HSET', 'k', 'a', 'long'], 'hashtable'],
    ['hash-max-ziplist-value', '100', ['HSET', 'k', 'a', 'x'.repeat(100)], 'listpack'],
    ['set-max-intset-entries', '2', ['SADD', 'k', '1', '2', '3'], 'hashtable'],
    ['set-max-intset-entries', '3', ['SADD', 'k', '1', '2', '3'], 'intset'],
    ['set-max-listpack-entries', '2', ['SADD', 'k', 'a', 'b'], 'listpack'],
    ['zset-max-ziplist-entries', '0', ['ZADD', 'k', '1', 'a'], 'skiplist'],
    ['zset-max-listpack-entries', '1', ['ZADD', 'k', '1', 'a'], 'listpack'],
    ['zset-max-listpack-value', '2', ['ZADD', 'k', '1', 'abc'], 'skiplist'],
    ['list-max-listpack-size', '4', ['RPUSH', 'k', 'a'], 'quicklist'],
  ] as const;
  test.each(rows)('%s %s', async (name, value, write, encoding) => {
    const before = await client.pipeline([['CONFIG', 'GET', name]]);
    expect(await client.text('CONFIG', 'SET', name, value)).toBe('+OK');
    expect(await client.text('CONFIG', 'GET', name)).toContain(`"${value}"`);
    await client.command('DEL', 'k');
    await client.command(...write);
    expect(await client.text('OBJECT', 'ENCODING', 'k')).toBe(`"${encoding}"`);
    const [, old] = (before[0] as { items: { text: string }[] }).items;
    expect(await client.text('CONFIG', 'SET', name, old!.text)).toBe('+OK');
  });

  test('refuses what is no number', async () => {
    for (const value of ['', 'many', '-1', '1.5']) {
      expect(await client.text('CONFIG', 'SET', 'zset-max-ziplist-entries', value)).toMatch(
        /^-ERR/,
      );
    }
  });
});

test('CONFIG SET refuses a name that is there twice', async () => {
  expect(await client.text('CONFIG', 'SET', 'timeout', '1', 'timeout', '2')).toBe(
    "-ERR CONFIG SET failed (possibly related to argument 'timeout') - duplicate parameter",
  );
  expect(await client.text('CONFIG', 'GET', 'timeout')).toContain('"0"');
});

test('COMMAND LIST has subcommands', async () => {
  expect(await client.text('COMMAND', 'LIST')).toContain('"client|list"');
  expect(await client.text('COMMAND', 'LIST', 'FILTERBY', 'PATTERN', 'config*')).toContain(
    '"config|get"',
  );
});

describe('MONITOR', () => {
  test('shows what EXEC runs before EXEC, and long words cut', async () => {
    const monitor = await server.client();
    await monitor.command('MONITOR');
    const lines = monitor.replies(4);
    await client.pipeline([
      ['MULTI'],
      ['SET', 'foo', 'x'.repeat(100_000)],
      ['EXEC'],
      ['PING', 'end'],
    ]);
    const texts = (await lines).map((line) => (line as { text: string }).text);
    expect(texts[0]).toContain('"MULTI"');
    expect(texts[1]).toMatch(/"SET" "foo" "x{1024}\.\.\. \(98976 more bytes\)"$/);
    expect(texts[2]).toContain('"EXEC"');
    monitor.close();
  });
});
