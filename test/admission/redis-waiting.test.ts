// Clients that wait for request units: transactions and blocking commands, clients that go while they wait, and limits
// that change meanwhile.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { show } from '../support/resp-value.ts';
import type { RespClient } from '../support/resp-client.ts';
import { LimitedServer } from './limited-server.ts';
import { until } from '../support/until.ts';

const refusal = /^-TRYAGAIN RU limit: tenant=red kind=/;

let server: LimitedServer;
let client: RespClient;
beforeEach(async () => {
  server = await LimitedServer.start(1000, { commandWaitMs: 60_000 });
  client = await server.client();
});
afterEach(() => server.stop());

function impatient(): void {
  server.tenants.admission.setRules({ commandWaitMs: 50 });
}

/** `count` clients with a command each that waits. */
async function waiting(count: number): Promise<{ clients: RespClient[]; answers: string[] }> {
  server.owe(9);
  const clients: RespClient[] = [];
  const answers: string[] = [];
  for (let i = 0; i < count; i++) {
    const one = await server.client();
    clients.push(one);
    one.text('RPUSH', 'order', i).then(
      (answer) => answers.push(answer),
      () => answers.push('lost'),
    );
    await until(() => server.limiter.waiting === i + 1);
  }
  return { clients, answers };
}

describe('a transaction', () => {
  test('is let in once, as one request', async () => {
    await client.pipeline([['MULTI'], ['SET', 'a', 1], ['INCR', 'a'], ['PING']]);
    server.owe(0.1);
    const { admitted } = server.limiter.counters;
    expect(await client.text('EXEC')).toMatch(/OK.*2.*PONG/);
    expect(server.limiter.counters.admitted).toBe(admitted + 1);
  });

  test('that is refused is discarded, and says so', async () => {
    impatient();
    await client.command('SET', 'watched', 1);
    server.owe(9);
    const answers = await client.pipeline([
      ['WATCH', 'watched'],
      ['MULTI'],
      ['GET', 'watched'],
      ['SET', 'a', 1],
      ['EXEC'],
      ['EXEC'],
    ]);
    expect(answers.slice(0, 4).map(show)).toEqual(['+OK', '+OK', '+QUEUED', '+QUEUED']);
    expect(show(answers[4]!)).toMatch(
      /^-TRYAGAIN RU limit: tenant=red kind=write .*\(transaction discarded\)$/,
    );
    expect(show(answers[5]!)).toBe('-ERR EXEC without MULTI');
    // Neither what was queued nor what was watched is left.
    server.quota(0);
    expect(await client.text('GET', 'a')).toBe('(nil)');
    const before = server.account.requests;
    await client.command('GET', 'a');
    await client.command('RU', 'STATS');
    expect(server.account.requests).toBe(before + 2);
  });

  test('without rows, or one that is broken, needs no units', async () => {
    impatient();
    server.owe(9);
    expect((await client.pipeline([['MULTI'], ['PING'], ['EXEC']])).map(show).at(-1)).toContain(
      'PONG',
    );
    const broken = await client.pipeline([['MULTI'], ['NOSUCH'], ['SET', 'a', 1], ['EXEC']]);
    expect(show(broken[3]!)).toContain('EXECABORT');
    expect(
      (await client.pipeline([['MULTI'], ['SET', 'a', 1], ['DISCARD']])).map(show).at(-1),
    ).toBe('+OK');
  });
});

describe('a blocking command', () => {
  test('is let in once, and charged when it is served', async () => {
    const other = await server.client();
    const popped = client.text('BLPOP', 'list', 0);
    await until(() => server.tenants.redis.blocked.size === 1);
    const { lru } = server.account;
    const { admitted } = server.limiter.counters;
    await other.command('RPUSH', 'list', 'x');
    expect(await popped).toContain('x');
    expect(server.limiter.counters.admitted).toBe(admitted + 1);
    await other.command('RU', 'STATS');
    expect(server.account.lru).toBeGreaterThan(lru);
  });

  test('waits for units before it waits for its key', async () => {
    impatient();
    server.owe(9);
    expect(await client.text('BLPOP', 'list', 0)).toMatch(refusal);
    expect(server.tenants.redis.blocked.size).toBe(0);
  });
});

describe('who waits', () => {
  test('is served in the order in which it came', async () => {
    const { answers } = await waiting(5);
    server.quota(1_000_000);
    await until(() => answers.length === 5);
    expect(answers).toEqual([1, 2, 3, 4, 5].map((n) => `:${n}`));
    expect(await client.text('LRANGE', 'order', 0, -1)).toMatch(/0.*1.*2.*3.*4/);
  });

  test('is shown', async () => {
    await waiting(2);
    expect(await client.text('INFO', 'ru')).toContain('ru_waiting:2');
    const list = await client.text('CLIENT', 'LIST');
    expect(list.match(/ru-wait-ms=\d+/g)).toHaveLength(2);
    const stats = await client.text('RU', 'STATS');
    expect(stats).toContain('"waiting" :2');
    expect(stats).toMatch(/"quota" .*1000/);
  });

  test('leaves nothing behind when it goes', async () => {
    const { clients, answers } = await waiting(20);
    for (const one of clients.slice(0, 10)) one.close();
    await until(() => server.limiter.waiting === 10);
    server.quota(0);
    await until(() => answers.length === 20);
    expect(answers.filter((answer) => answer !== 'lost')).toHaveLength(10);
    expect(await client.text('LLEN', 'order')).toBe(':10');
    expect(server.tenants.redis.tenant(server.red).connections.size).toBe(11);
  });

  test('can be killed', async () => {
    const { clients } = await waiting(2);
    const waits = show(await client.command('CLIENT', 'LIST'))
      .split(/\\n|\n/)
      .filter((line) => line.includes('ru-wait-ms'));
    const ids = waits.map((line) => /id=(\d+)/.exec(line)![1]!);
    expect(ids).toHaveLength(2);
    expect(await client.text('CLIENT', 'KILL', 'ID', ids[0]!)).toBe(':1');
    await clients[0]!.ended;
    expect(server.limiter.waiting).toBe(1);
  });

  test('is cut off with its tenant', async () => {
    const { clients, answers } = await waiting(3);
    const { limiter } = server;
    server.tenants.alter('red', { state: 'suspended' });
    await Promise.all(clients.map(({ ended }) => ended));
    expect(limiter.waiting).toBe(0);
    await until(() => answers.length === 3);
    expect(answers).toEqual(['lost', 'lost', 'lost']);
  });

  test('is let through when the tenant is dropped or the server drains', async () => {
    const { answers } = await waiting(3);
    const { limiter } = server;
    const drained = server.tenants.redis.drain(1000);
    await until(() => answers.length === 3);
    expect(answers).not.toContain('lost');
    expect(limiter.waiting).toBe(0);
    await drained;
  });

  test('is not taken for idle', async () => {
    server.tenants.redis.idleTimeout = 1;
    const { answers } = await waiting(1);
    await new Promise((resolve) => setTimeout(resolve, 1400));
    expect(answers).toEqual([]);
    server.quota(0);
    await until(() => answers.length === 1);
    expect(answers).toEqual([':1']);
  });

  test('keeps to CLIENT PAUSE when its turn comes', async () => {
    const blue = await server.client('blue');
    await waiting(1);
    server.tenants.redis.pauseClients(10_000, false);
    server.quota(0);
    await new Promise((resolve) => setTimeout(resolve, 50));
    server.tenants.redis.unpauseClients();
    expect(await blue.text('PING')).toBe('+PONG');
    expect(await client.text('LLEN', 'order')).toBe(':1');
  });
});

describe('a limit that changes while clients wait', () => {
  test('raised, they are served sooner', async () => {
    const { answers } = await waiting(5);
    server.quota(100_000);
    await until(() => answers.length === 5);
    expect(answers.filter((answer) => !answer.startsWith(':'))).toEqual([]);
  });

  test('cut, what is owed stays', async () => {
    const { answers } = await waiting(3);
    server.quota(10);
    const owed = server.limiter.balance(performance.now());
    expect(owed).toBeLessThan(-8000);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(answers).toEqual([]);
  });

  test('removed, all go on, and nobody waits any more', async () => {
    const { answers } = await waiting(5);
    server.quota(0);
    await until(() => answers.length === 5);
    expect(server.tenants.admission.limiterOf(server.red.number)).toBeUndefined();
    expect(
      server.tenants.redis.tenant(server.tenants.principals.tenant('red')!).limits.limiter,
    ).toBeUndefined();
    server.quota(500);
    expect(server.limiter.quota.perSecond).toBe(500);
    expect(await client.text('GET', 'k')).toBe('(nil)');
  });

  test('only counted, what would have become of them is known', async () => {
    const { answers } = await waiting(2);
    server.tenants.admission.setRules({ dryRun: true, commandWaitMs: 1500 });
    await until(() => answers.length === 2);
    server.owe(1);
    await client.command('GET', 'k');
    server.owe(9);
    await client.command('GET', 'k');
    expect(server.limiter.counters).toMatchObject({ wouldWait: 1, wouldRefuse: 1, refused: 0 });
    expect(await client.text('INFO', 'ru')).toContain('ru_would_refuse:1');
  });

  test('off, and on again', async () => {
    const { answers } = await waiting(2);
    server.tenants.admission.setRules({ enabled: false });
    await until(() => answers.length === 2);
    expect(await client.text('INFO', 'ru')).not.toContain('ru_quota');
    server.tenants.admission.setRules({ enabled: true, commandWaitMs: 50 });
    server.owe(9);
    expect(await client.text('GET', 'k')).toMatch(refusal);
  });
});
