// Effects of a tenant's Redis commands stay within the tenant.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RespClient } from '../support/resp-client.ts';
import { TenantsServer } from './tenants-server.ts';

let server: TenantsServer;
let red: RespClient;
let blue: RespClient;

beforeEach(async () => {
  server = await TenantsServer.start();
  server.tenant('red');
  server.tenant('blue');
  red = await server.client('red');
  blue = await server.client('blue');
});
afterEach(() => server.stop());

const is = async (client: RespClient, line: string, expected: string) =>
  expect(await client.text(...line.split(' ')), line).toBe(expected);

test('databases are a tenant’s own, under the same numbers', async () => {
  const own = await server.client();
  await is(own, 'SET k of-default', '+OK');
  await is(red, 'SET k of-red', '+OK');
  await is(blue, 'GET k', '(nil)');
  await is(red, 'SELECT 15', '+OK');
  await is(red, 'SET k in-15', '+OK');
  await is(red, 'SELECT 16', '-ERR DB index is out of range');
  await is(red, 'SELECT -1', '-ERR DB index is out of range');
  await is(red, 'MOVE k 16', '-ERR DB index is out of range');
  await is(red, 'COPY k k DB 4096', '-ERR DB index is out of range');
  await is(red, 'SWAPDB 0 16', '-ERR DB index is out of range');
  await is(red, 'MOVE k 3', ':1');
  await is(red, 'COPY k j DB 3', ':0');
  await is(red, 'SWAPDB 0 3', '+OK');
  await is(red, 'SELECT 0', '+OK');
  await is(red, 'GET k', '"in-15"');
  await is(red, 'DBSIZE', ':1');
  await is(red, 'RANDOMKEY', '"k"');
  await is(own, 'GET k', '"of-default"');
  await is(blue, 'DBSIZE', ':0');
  await is(blue, 'RANDOMKEY', '(nil)');
  await is(blue, 'FLUSHALL', '+OK');
  await is(red, 'GET k', '"in-15"');
  await is(red, 'FLUSHALL', '+OK');
  await is(red, 'DBSIZE', ':0');
  await is(own, 'GET k', '"of-default"');
});

test('transactions and waits keep to it, too', async () => {
  await is(red, 'WATCH k', '+OK');
  await is(blue, 'SET k 1', '+OK');
  await red.pipeline([['MULTI'], ['SELECT', 2], ['SET', 'k', 'x'], ['SELECT', 16]]);
  expect(await red.text('EXEC')).toBe('*[+OK +OK -ERR DB index is out of range]');
  await is(red, 'GET k', '"x"');
  await is(red, 'SELECT 0', '+OK');
  const waiting = red.text('BLPOP', 'list', 0);
  await is(blue, 'RPUSH list b', ':1');
  await is(await server.client('red'), 'RPUSH list r', ':1');
  expect(await waiting).toBe('*["list" "r"]');
  await is(blue, 'LRANGE list 0 -1', '*["b"]');
});

test('messages go to the tenant’s own listeners', async () => {
  const [listener, other] = [await server.client('red'), await server.client('blue')];
  await listener.command('SUBSCRIBE', 'news');
  await other.pipeline([
    ['PSUBSCRIBE', '*'],
    ['SSUBSCRIBE', 'news'],
  ]);
  await is(blue, 'PUBLISH news from-blue', ':1');
  await is(red, 'PUBLISH news from-red', ':1');
  await is(red, 'SPUBLISH news from-red', ':0');
  const [[message], [theirs]] = [await listener.replies(1), await other.replies(1)];
  expect(JSON.stringify(message)).toContain('from-red');
  expect(JSON.stringify(theirs)).toContain('from-blue');
  await is(red, 'PUBSUB CHANNELS', '*["news"]');
  await is(red, 'PUBSUB NUMPAT', ':0');
  await is(red, 'PUBSUB SHARDCHANNELS', '*[]');
  await is(blue, 'PUBSUB CHANNELS', '*[]');
  await is(blue, 'PUBSUB NUMPAT', ':1');
});

test('clients are listed, unblocked and killed within the tenant', async () => {
  const id = Number((await blue.text('CLIENT', 'ID')).slice(1));
  await red.command('CLIENT', 'SETNAME', 'of-red');
  const list = await red.text('CLIENT', 'LIST');
  expect(list).toContain('of-red');
  expect(list.match(/id=/g)).toHaveLength(1);
  await is(red, `CLIENT LIST ID ${id}`, '""');
  await is(red, `CLIENT KILL ID ${id}`, ':0');
  await is(red, 'CLIENT KILL USER default', ':0');
  await is(red, 'CLIENT KILL TYPE normal', ':0');
  const address = `${blue.socket.localAddress}:${blue.socket.localPort}`;
  await is(red, `CLIENT KILL ${address}`, '-ERR No such client');
  const waiting = blue.text('BLPOP', 'none', 0);
  await is(red, `CLIENT UNBLOCK ${id}`, ':0');
  await is(await server.client('blue'), `CLIENT UNBLOCK ${id}`, ':1');
  expect(await waiting).toBe('(nil array)');
});

test('what is about the whole server is for tenant default', async () => {
  const refused = [
    ...['CONFIG GET *', 'CONFIG SET maxclients 1', 'CONFIG RESETSTAT', 'CONFIG REWRITE'],
    ...['SHUTDOWN', 'SAVE', 'BGSAVE', 'BGREWRITEAOF', 'DEBUG SLEEP 0', 'DEBUG SEGFAULT'],
    ...['CLIENT PAUSE 1000', 'CLIENT UNPAUSE', 'LATENCY LATEST', 'MEMORY STATS'],
  ];
  for (const line of refused) {
    expect(await red.text(...line.split(' ')), line).toMatch(/^-(NOPERM|ERR unknown)/);
  }
  const own = await server.client();
  await is(own, 'CONFIG GET nothing', '*[]');
  await is(own, 'CLIENT UNPAUSE', '+OK');
});

test('INFO tells a tenant of itself', async () => {
  await red.pipeline([['SET', 'k', '1'], ['SELECT', 7], ['SET', 'k', '1'], ['BAD']]);
  const info = (await red.text('INFO', 'everything')).replaceAll('\\r\\n', '\n');
  expect(info).toContain('\ndb0:keys=1,expires=0,avg_ttl=0\ndb7:keys=1,expires=0,avg_ttl=0\n');
  expect(info).toContain('\nconnected_clients:1\n');
  expect(info).toContain('\ntotal_commands_processed:6\n');
  expect(info).toContain('\ntotal_error_replies:1\n');
  for (const word of ['/secret/path', 'process_id', 'used_memory:', 'cmdstat', 'run_id']) {
    expect(info).not.toContain(word);
  }
  expect(await blue.text('INFO', 'keyspace')).not.toContain('db0');
  expect(await (await server.client()).text('INFO')).toContain('/secret/path');
});

test('the slow log and MONITOR show a tenant its own commands, without secrets', async () => {
  server.redis.slowlogMs = 0;
  await red.pipeline([
    ['SET', 'red-key', '1'],
    ['AUTH', 'red', 'red'],
  ]);
  await red.command('ACL', 'SETUSER', 'eve', '>secret');
  await blue.command('SET', 'blue-key', '1');
  const log = await red.text('SLOWLOG', 'GET', -1);
  expect(log).toContain('red-key');
  expect(log).not.toContain('blue-key');
  expect(log).not.toContain('secret');
  expect(log).toContain('*["AUTH" "(redacted)" "(redacted)"]');
  await is(blue, 'SLOWLOG RESET', '+OK');
  expect(await red.text('SLOWLOG', 'LEN')).not.toBe(':0');

  const monitor = await server.client('red');
  await monitor.command('MONITOR');
  await blue.command('SET', 'blue-key', '2');
  await red.command('GET', 'red-key');
  const [seen] = await monitor.replies(1);
  expect(JSON.stringify(seen)).toContain('red-key');
});

describe('limits', () => {
  test('of keys: growing is refused at it, everything else is not', async () => {
    server.alter('red', { limits: { ...server.principals.tenant('red')!.limits, keys: 3 } });
    await red.pipeline([
      ['SET', 'a', 1],
      ['SELECT', 1],
      ['SET', 'b', 1],
      ['RPUSH', 'c', 1],
    ]);
    const full = "-LIMIT tenant 'red' is at its limit keys: it has 3 and may have 3";
    await is(red, 'SET d 1', full);
    await is(red, 'MULTI', '+OK');
    await is(red, 'SET d 1', full);
    await is(red, 'DISCARD', '+OK');
    await is(red, 'GET b', '"1"');
    await is(blue, 'SET d 1', '+OK');
    await is(red, 'DEL b', ':1');
    await is(red, 'SET d 1', '+OK');
    server.alter('red', { limits: { ...server.principals.tenant('red')!.limits, keys: 0 } });
    await is(red, 'SET e 1', '+OK');
  });

  test('of keys: rows from before the limit count', async () => {
    await red.pipeline([
      ['SET', 'a', 1],
      ['SET', 'b', 1],
    ]);
    server.alter('red', { limits: { ...server.principals.tenant('red')!.limits, keys: 2 } });
    expect(await red.text('SET', 'c', 1)).toContain('LIMIT tenant');
  });

  test('of stored bytes', async () => {
    const limits = { ...server.principals.tenant('red')!.limits, storedBytes: 10_000 };
    server.alter('red', { limits });
    await is(red, `SET a ${'x'.repeat(9000)}`, '+OK');
    for (let i = 0; i < 200; i++) await red.command('RPUSH', 'list', 'y'.repeat(100));
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(await red.text('RPUSH', 'list', 'y')).toMatch(
      /^-LIMIT tenant 'red' is at its limit storedBytes: it has \d+ and may have 10000$/,
    );
    await is(red, 'FLUSHALL', '+OK');
    await new Promise((resolve) => setTimeout(resolve, 150));
    await is(red, 'RPUSH list y', ':1');
  });

  test.each([
    ['SETRANGE', 'a', 8_000_000, 'x'],
    ['SETRANGE', 'new', 8_000_000, 'x'],
    ['SETBIT', 'a', 64_000_000, 1],
    ['BITFIELD', 'a', 'SET', 'u8', 64_000_000, 1],
    ['APPEND', 'a', 'x'.repeat(2_000_000)],
    ['SET', 'a', 'x'.repeat(2_000_000)],
  ])('of stored bytes: %s that would go past it leaves all as it was', async (...command) => {
    const limits = { ...server.principals.tenant('red')!.limits, storedBytes: 1_000_000 };
    server.alter('red', { limits });
    await is(red, 'SET a old', '+OK');
    const answer = await red.text(...command);
    expect(answer).toContain("LIMIT tenant 'red' is at its limit storedBytes");
    await is(red, 'GET a', '"old"');
    await is(red, 'EXISTS new', ':0');
    await is(red, 'SETRANGE a 10000 x', ':10001');
  });

  test('of connections', async () => {
    const limits = { ...server.principals.tenant('red')!.limits, connections: 2 };
    server.alter('red', { limits });
    const second = await server.client('red');
    const text = "-ERR max number of clients reached: tenant 'red' may have 2 (limit connections)";
    const third = await server.client();
    await is(third, 'AUTH red red', text);
    await is(third, 'AUTH blue blue', '+OK');
    // Logging in once more is no further connection.
    await is(second, 'AUTH red red', '+OK');
    second.close();
    await second.ended;
    await expect.poll(() => third.text('AUTH', 'red', 'red')).toBe('+OK');
  });
});
