// Behaviour towards clients of a tenant that has spent its request units, one command after the
// other.

import { afterEach, describe, expect, test } from 'vitest';
import { show } from '../support/resp-value.ts';
import { LimitedServer } from './limited-server.ts';

let server: LimitedServer;
afterEach(() => server.stop());

const refusal =
  /^-TRYAGAIN RU limit: tenant=red kind=(read|write|scan) need=[\d.]+ retry_after_ms=\d+/;

function refusedAs(kind: string): RegExp {
  return new RegExp(refusal.source.replace('(read|write|scan)', kind));
}

describe('a command over the quota', () => {
  test('waits, and is served when there are units again', async () => {
    server = await LimitedServer.start(1000, {});
    const client = await server.client();
    server.owe(0.1);
    const begun = performance.now();
    expect(await client.text('SET', 'k', 'v')).toBe('+OK');
    expect(performance.now() - begun).toBeGreaterThan(80);
    expect(server.limiter.counters).toMatchObject({ waited: 1, refused: 0 });
  });

  test('is refused when it has waited its time, and says when to try again', async () => {
    server = await LimitedServer.start(100, { commandWaitMs: 100 });
    const client = await server.client();
    server.owe(5);
    const begun = performance.now();
    const answer = await client.text('SET', 'k', 'v');
    expect(performance.now() - begun).toBeGreaterThan(95);
    expect(answer).toMatch(refusedAs('write'));
    const retryMs = Number(/retry_after_ms=(\d+)/.exec(answer)![1]);
    expect(retryMs).toBeGreaterThan(4000);
    expect(retryMs).toBeLessThan(5000);
    expect(await client.text('GET', 'k')).toMatch(refusedAs('read'));
    expect(await client.text('SCAN', 0)).toMatch(refusedAs('scan'));
    expect(server.account.rejected).toBe(3);
    expect(server.limiter.counters.refused).toBe(3);
  });

  test('costs nothing and is not run', async () => {
    server = await LimitedServer.start(100, { commandWaitMs: 10 });
    const client = await server.client();
    expect(await client.text('SET', 'k', 'before')).toBe('+OK');
    server.owe(8);
    const { lru } = server.account;
    expect(await client.text('SET', 'k', 'after')).toMatch(refusal);
    expect(server.account.lru).toBe(lru);
    server.quota(0);
    expect(await client.text('GET', 'k')).toBe('"before"');
  });

  test('of a pipeline is answered in its place, and what is not about rows is always answered', async () => {
    server = await LimitedServer.start(100, { commandWaitMs: 50 });
    const client = await server.client();
    server.owe(9);
    const answers = await client.pipeline([
      ['PING', 1],
      ['SET', 'a', 1],
      ['PING', 2],
      ['ECHO', 'three'],
      ['GET', 'a'],
      ['SELECT', 1],
      ['CLIENT', 'GETNAME'],
      ['LPUSH', 'l', 1],
      ['RU', 'STATS'],
      ['NOSUCH'],
      ['PING', 4],
    ]);
    expect(answers.map((answer) => show(answer).replace(/ RU limit.*/, ''))).toEqual([
      '"1"',
      '-TRYAGAIN',
      '"2"',
      '"three"',
      '-TRYAGAIN',
      '+OK',
      '(nil)',
      '-TRYAGAIN',
      expect.stringContaining('"quota"'),
      expect.stringContaining('-ERR unknown command'),
      '"4"',
    ]);
  });

  test('waits once with all its pipeline', async () => {
    server = await LimitedServer.start(100, { commandWaitMs: 200 });
    const client = await server.client();
    server.owe(9);
    const answers = await client.pipeline(Array.from({ length: 5000 }, (_, i) => ['SET', i, i]));
    expect(answers).toHaveLength(5000);
    for (const answer of answers) expect(show(answer)).toMatch(refusal);
    expect(server.limiter.counters.waited).toBe(1);
  });

  test('is not refused while its tenant gets on: each waits for itself', async () => {
    server = await LimitedServer.start(2000, { commandWaitMs: 300 });
    const client = await server.client();
    server.owe(0);
    // More than the quota brings in the longest wait, never more than a few ahead.
    let sent = 0;
    let refused = 0;
    await new Promise<void>((resolve) => {
      let due = 0;
      const send = (): void => {
        sent++;
        due++;
        client.send('*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n');
      };
      client.onReply = (reply) => {
        due--;
        if (show(reply).startsWith('-')) refused++;
        if (sent < 2500) send();
        else if (due === 0) resolve();
      };
      for (let i = 0; i < 20; i++) send();
    });
    expect(refused).toBe(0);
    expect(server.limiter.counters.waitedMs).toBeGreaterThan(300);
  });

  test('has the error code that was chosen, and no answer when none is wanted', async () => {
    server = await LimitedServer.start(100, { commandWaitMs: 10, refusalCode: 'LIMIT' });
    const client = await server.client('red', 3);
    server.owe(9);
    expect(await client.text('INCR', 'n')).toMatch(/^-LIMIT RU limit: tenant=red kind=write/);
    client.send('CLIENT REPLY SKIP\r\nINCR n\r\nPING\r\n');
    expect((await client.replies(1)).map(show)).toEqual(['+PONG']);
  });
});

describe('beyond the quota', () => {
  const commands = Array.from({ length: 1000 }, (_, i) => ['SET', i, i]);

  test('what others leave is used where allocation is stacked', async () => {
    const rules = { allocation: 'stacked', gatewayRu: 100_000, commandWaitMs: 100 } as const;
    server = await LimitedServer.start(50, rules);
    const client = await server.client();
    for (const answer of await client.pipeline(commands)) expect(show(answer)).toBe('+OK');
    expect(server.limiter.counters.spareRu).toBeGreaterThan(500);
    expect(await client.text('INFO', 'ru')).toMatch(/ru_over_quota_ru:\d{3,4}\./);
    // Where it is hard, nothing more is.
    server.tenants.admission.setRules({ allocation: 'hard' });
    server.owe(9);
    expect(await client.text('SET', 'k', 'v')).toMatch(refusal);
  });

  test('the burst package is for a part of a second', async () => {
    server = await LimitedServer.start(500, { burstRu: 200, commandWaitMs: 10 });
    const client = await server.client();
    server.owe(0);
    const answers = await client.pipeline(commands);
    const served = answers.filter((answer) => show(answer) === '+OK').length;
    expect(served).toBeGreaterThan(20);
    expect(served).toBeLessThan(500);
    expect(server.limiter.counters.burstRu).toBeGreaterThan(20);
    expect(server.limiter.counters.refused).toBe(1000 - served);
  });
});
