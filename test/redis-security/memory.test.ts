// Memory kept for a client is counted, refused when there is no room, and released.

import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RequestMemory } from '../../access/admission/request-memory.ts';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import type { RespClient } from '../support/resp-client.ts';

const mib = 1024 * 1024;

let server: TenantsServer;
let memory: RequestMemory;
let client: RespClient;

beforeEach(async () => {
  memory = new RequestMemory({ maxBytes: 4 * mib });
  server = await TenantsServer.start({ memory });
  client = await server.client();
});
afterEach(async () => {
  await server.stop();
  expect(memory.usedBytes).toBe(0);
});

describe('a command that comes in part', () => {
  test('is taken if it is small, even where others of its tenant have all there is', async () => {
    const held = memory.account(0);
    while (held.reserve('request', 1024));
    const other = await server.client();
    other.send('*1\r\n$4\r\nPI');
    await client.command('PING');
    other.send('NG\r\n');
    expect(await other.text()).toBe('+PONG');
    other.send(`*2\r\n$4\r\nECHO\r\n$9000\r\n${'x'.repeat(8000)}`);
    expect(await other.text()).toMatch(/^-OOM/);
    held.release('request', held.usedBytes);
  });

  test('is counted as its bytes come, not as they are announced', async () => {
    client.send(`*2\r\n$3\r\nGET\r\n$${16 * mib}\r\nabc`);
    await expect.poll(() => memory.usedFor('request')).toBeGreaterThan(0);
    expect(memory.usedFor('request')).toBeLessThan(64 * 1024);
    client.close();
    await expect.poll(() => memory.usedBytes).toBe(0);
  });

  test('is refused when there is no room for more of it', async () => {
    client.send(`*2\r\n$4\r\nECHO\r\n$${8 * mib}\r\n`);
    client.send('x'.repeat(8 * mib));
    expect(await client.text()).toMatch(/^-OOM/);
    await client.ended;
    expect(memory.peakBytes).toBeLessThanOrEqual(4 * mib);
    expect(memory.usedBytes).toBe(0);
  });

  test('is read to its end when it is refused, for clients that write all of it before they read', async () => {
    const socket = connect(server.redis.port, '127.0.0.1').pause();
    await once(socket, 'connect');
    const value = 'x'.repeat(12 * mib);
    const written = `*2\r\n$4\r\nECHO\r\n$${value.length}\r\n${value}`;
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.write(written, (error) => (error ? reject(error) : resolve()));
    });
    const [answer] = (await once(socket.resume(), 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^-OOM/);
    socket.destroy();
  });

  test('takes no more for a million tiny words', async () => {
    client.send('*1000000\r\n');
    client.send('$0\r\n\r\n'.repeat(999_999));
    expect(await client.text()).toMatch(/^-OOM/);
    await client.ended;
  });

  test('leaves no large buffer behind', async () => {
    const value = 'x'.repeat(500_000);
    client.send(`*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$500000\r\n${value}\r\nPIN`);
    await client.replies(1);
    expect(memory.usedFor('request')).toBeLessThan(64 * 1024);
    client.send('G\r\n');
    expect(await client.replies(1)).toEqual([{ type: '+', text: 'PONG' }]);
    expect(memory.usedFor('request')).toBe(0);
  });
});

describe('a transaction', () => {
  test('is refused what there is no memory for, and is discarded', async () => {
    await client.command('MULTI');
    const value = 'x'.repeat(5000);
    let answer = '';
    for (let i = 0; i < 1000 && !answer.startsWith('-'); i++) {
      answer = await client.text('SET', `k${i}`, value);
    }
    expect(answer).toMatch(/^-OOM/);
    expect(memory.usedFor('transaction')).toBeGreaterThan(mib);
    expect(await client.text('EXEC')).toMatch(/^-EXECABORT/);
    expect(memory.usedBytes).toBe(0);
    expect(await client.text('DBSIZE')).toBe(':0');
  });

  test('gives back what it held when it has run', async () => {
    await client.command('WATCH', 'a', 'b');
    const watched = memory.usedFor('transaction');
    expect(watched).toBeGreaterThan(0);
    await client.pipeline([['MULTI'], ['SET', 'a', '1'], ['GET', 'a']]);
    expect(memory.usedFor('transaction')).toBeGreaterThan(watched);
    expect(await client.text('EXEC')).toBe('*[+OK "1"]');
    expect(memory.usedBytes).toBe(0);
  });

  test('watches no more keys than there is memory for', async () => {
    const key = 'x'.repeat(10_000);
    let answer = '';
    for (let i = 0; i < 300 && !answer.startsWith('-'); i++) {
      answer = await client.text('WATCH', `${key}${i}`);
    }
    expect(answer).toMatch(/^-OOM/);
    expect(await client.text('UNWATCH')).toBe('+OK');
    expect(memory.usedBytes).toBe(0);
  });
});

test('a transaction has a bounded number of commands', async () => {
  memory.maxBytes = Infinity;
  await client.command('MULTI');
  const replies = await client.pipeline(Array.from({ length: 65_537 }, () => ['PING']));
  expect(replies.at(-2)).toEqual({ type: '+', text: 'QUEUED' });
  expect(replies.at(-1)).toMatchObject({ type: '-' });
  expect(await client.text('EXEC')).toMatch(/^-EXECABORT/);
});

test('a blocked command is counted while it waits, and refused without room', async () => {
  const key = 'x'.repeat(60_000);
  const pop = client.command('BLPOP', key, '0');
  await expect.poll(() => memory.usedFor('request')).toBeGreaterThan(60_000);
  const others = await Promise.all(Array.from({ length: 60 }, () => server.client()));
  const answers = others.map((other, i) => other.text('BLPOP', `${key}${i}`, '0').catch(String));
  expect(await Promise.race(answers)).toMatch(/^-OOM/);
  for (const other of others) other.close();
  await Promise.all(answers);
  const pusher = await server.client();
  await expect.poll(() => memory.usedFor('request')).toBeLessThan(200_000);
  await pusher.command('RPUSH', key, 'v');
  expect(await pop).toMatchObject({ type: '*' });
  await expect.poll(() => memory.usedBytes).toBe(0);
});

test('a client that does not read is closed when there is no room for its answers', async () => {
  await client.command('SET', 'k', 'x'.repeat(mib));
  const slow = await server.client();
  slow.socket.pause();
  slow.pipeline(Array.from({ length: 64 }, () => ['GET', 'k'])).catch(() => {});
  await expect.poll(() => server.redis.output.disconnections).toBe(1);
  await expect.poll(() => memory.usedBytes).toBe(0);
  expect(await client.text('PING')).toBe('+PONG');
});

test('a client that has logged in takes what it holds along', async () => {
  const tenant = server.tenant('red');
  const red = await server.client('red');
  red.send('*2\r\n$3\r\nGET\r\n$9000\r\nabc');
  await expect.poll(() => memory.heldBy(tenant.number)).toBeGreaterThan(0);
  red.close();
  await expect.poll(() => memory.usedBytes).toBe(0);
});

test('a client that goes on sending after an error is closed all the same', async () => {
  client.send('*1\r\n!');
  const sending = setInterval(() => client.send('x'.repeat(1000)), 10);
  await client.ended;
  clearInterval(sending);
});

test.each([
  ['COMMAND', 'INFO'],
  ['COMMAND', 'DOCS'],
  ['CONFIG', 'GET'],
  ['INFO'],
  ['ACL', 'SETUSER', 'u'],
])('%s takes a bounded number of words', async (...words) => {
  const many = Array.from({ length: 1100 }, () => 'get');
  expect(await client.text(...words, ...many)).toMatch(/^-ERR too many arguments for/);
});
