// A tick of many clients ends after some milliseconds of work, whatever comes of their commands: those that are answered
// tell the tick their time, and so must those that are refused, or begin to wait. Time is counted here: by the work that the
// test looks at, and nothing else.

import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import { encodeAll, type RespClient } from '../support/resp-client.ts';

const clients = 20;
let server: TenantsServer;
let all: RespClient[];

beforeAll(async () => {
  server = await TenantsServer.start();
});
afterAll(() => server.stop());
let isOver = false;
afterEach(() => {
  isOver = true;
  vi.restoreAllMocks();
});

/** The most pieces of work, each of so many milliseconds, between two rounds of the event loop. */
function countedRounds(): { work(ms: number): void; most: number; total: number } {
  isOver = false;
  let now = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  let inRound = 0;
  const counts = {
    most: 0,
    total: 0,
    work(ms: number) {
      now += ms;
      counts.total++;
      counts.most = Math.max(counts.most, ++inRound);
    },
  };
  const next = (): void => {
    inRound = 0;
    if (!isOver) setImmediate(next);
  };
  next();
  return counts;
}

async function connected(): Promise<void> {
  all = await Promise.all(Array.from({ length: clients }, () => server.client()));
  await Promise.all(all.map((client) => client.command('PING')));
}

test('commands that begin to wait for keys', async () => {
  await connected();
  const rounds = countedRounds();
  const { blocked } = server.redis;
  const add = blocked.add.bind(blocked);
  vi.spyOn(blocked, 'add').mockImplementation((...given) => {
    rounds.work(6);
    add(...given);
  });
  const keys = Array.from({ length: 100 }, (_, n) => `key-that-is-waited-for-${n}`);
  for (const client of all) client.socket.write(encodeAll([['BLPOP', ...keys, 0]]));
  await vi.waitUntil(() => rounds.total === clients, { timeout: 60_000 });
  expect(rounds.most).toBeLessThanOrEqual(2);
  for (const client of all) client.close();
});

test('commands that are refused', async () => {
  await connected();
  const rounds = countedRounds();
  const { writer } = server.redis;
  const error = writer.error.bind(writer);
  vi.spyOn(writer, 'error').mockImplementation((text) => {
    rounds.work(0.02);
    error(text);
  });
  const unknown = Array.from({ length: 1000 }, () => ['NO-SUCH-COMMAND']);
  const refused = all.map((client) => client.pipeline(unknown));
  for (const replies of await Promise.all(refused)) expect(replies).toHaveLength(1000);
  expect(rounds.total).toBe(clients * 1000);
  // 5 ms in each of two ticks at most, and what follows until the next look at the time.
  expect(rounds.most).toBeLessThanOrEqual(2 * (250 + 16));
});
