// Commands that wait for a key: many of them cost a push no more than those that it serves.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';

let server: TenantsServer;

beforeAll(async () => {
  server = await TenantsServer.start();
});
afterAll(() => server.stop());

test('a push serves those that have waited for longest, and tries no more', async () => {
  const { blocked } = server.redis;
  const clients = await Promise.all(Array.from({ length: 100 }, () => server.client()));
  const answers: Promise<string>[] = [];
  for (const client of clients) {
    answers.push(client.text('BLPOP', 'k', 0).catch(String));
    await expect.poll(() => blocked.size, { interval: 1 }).toBe(answers.length);
  }
  const pusher = await server.client();
  await pusher.command('RPUSH', 'k', 'a', 'b', 'c');
  expect(await Promise.all(answers.slice(0, 3))).toEqual(
    ['a', 'b', 'c'].map((element) => expect.stringContaining(element)),
  );
  expect(blocked.tries).toBe(4);
  // A value of another type, or one removed before a client is served, serves no client.
  await pusher.command('SET', 'k', 'v');
  await pusher.command('DEL', 'k');
  expect(blocked).toMatchObject({ size: 97, keys: 1 });
  for (const client of clients) client.close();
  await expect.poll(() => blocked.size).toBe(0);
  expect(blocked.keys).toBe(0);
});

test('a command that may wait takes a bounded number of words', async () => {
  const client = await server.client();
  const keys = Array.from({ length: 1022 }, (_, n) => `k${n}`);
  await client.command('RPUSH', 'k1000', 'v');
  expect(await client.text('BLPOP', ...keys, 0)).toContain('k1000');
  expect(await client.text('BLPOP', ...keys, 'one-more', 0)).toMatch(
    /^-ERR too many arguments for 'blpop' command: at most 1023/,
  );
});

test('a client that has gone before a push takes nothing', async () => {
  const { blocked } = server.redis;
  const pusher = await server.client();
  for (let i = 0; i < 30; i++) {
    const waiting = await server.client();
    const answer = waiting.text('BLMOVE', 'jobs', 'taken', 'LEFT', 'LEFT', 0).catch(String);
    await expect.poll(() => blocked.size, { interval: 1 }).toBe(1);
    waiting.close();
    expect(await pusher.text('RPUSH', 'jobs', 'job')).toBe(':1');
    await expect.poll(() => blocked.size, { interval: 1 }).toBe(0);
    expect(await pusher.text('LPOP', 'jobs'), `round ${i}`).toBe('"job"');
    expect(await answer).toContain('connection lost');
  }
});

test('a client that has gone right after its command takes nothing', async () => {
  const { blocked } = server.redis;
  const pusher = await server.client();
  for (let i = 0; i < 30; i++) {
    const waiting = await server.client();
    expect(await waiting.text('PING')).toBe('+PONG');
    const answer = waiting.text('BLMOVE', 'jobs', 'taken', 'LEFT', 'LEFT', 0).catch(String);
    // The server has the command, the push and the end of the connection to read at the same moment.
    const pushed = pusher.text('RPUSH', 'jobs', 'job');
    waiting.socket.destroy();
    expect(await pushed).toBe(':1');
    await expect.poll(() => blocked.size, { interval: 1 }).toBe(0);
    expect(await pusher.text('LPOP', 'jobs'), `round ${i}`).toBe('"job"');
    expect(await answer).toContain('connection lost');
  }
});

test('a push is handed to a client whose command was read just before', async () => {
  const [waiting, other, pusher] = await Promise.all([1, 2, 3].map(() => server.client()));
  for (let i = 0; i < 30; i++) {
    const answer = waiting!.text('BLPOP', 'now', 0);
    const later = other!.text('BLPOP', 'now', 0);
    expect(await pusher!.text('RPUSH', 'now', 'a', 'b')).toMatch(/^:/);
    expect((await Promise.all([answer, later])).toSorted()).toEqual([
      expect.stringContaining('"a"'),
      expect.stringContaining('"b"'),
    ]);
  }
});
