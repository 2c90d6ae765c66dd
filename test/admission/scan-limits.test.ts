// A limit on what scans may cost, of a tenant that may have one on all its requests besides; and answers of scans that
// end before they are too large.

import { afterEach, describe, expect, test } from 'vitest';
import type { TenantLimiter } from '../../access/admission/tenant-limiter.ts';
import { ChargeClass } from '../../request-units/meter.ts';
import { noLimits } from '../../contracts/tenancy/definitions.ts';
import type { RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';
import { LimitedServer } from './limited-server.ts';
import { until } from '../support/until.ts';

let server: LimitedServer;
afterEach(() => server.stop());

const refusal = /^-TRYAGAIN RU limit: tenant=red kind=scan need=[\d.]+ retry_after_ms=\d+/;

async function start(
  ruPerSecond: number,
  scanRuPerSecond: number,
  rules: Parameters<typeof LimitedServer.start>[1] = {},
): Promise<RespClient> {
  server = await LimitedServer.start(ruPerSecond, rules);
  limit(ruPerSecond, scanRuPerSecond);
  return server.client();
}

function limit(ruPerSecond: number, scanRuPerSecond: number): void {
  server.tenants.alter('red', { limits: { ...noLimits, ruPerSecond, scanRuPerSecond } });
}

function scans(): TenantLimiter {
  return server.tenants.admission.classLimiterOf(server.red.number)!;
}

/** Scans have spent so many seconds of their limit that they have not got yet. */
function oweScans(seconds: number): void {
  const limiter = scans();
  const now = performance.now();
  const lru = limiter.balance(now) + limiter.quota.perSecond * seconds;
  server.account.charge(ChargeClass.scan, 0, false, lru, lru, 0, 0, 0);
  limiter.settle(now);
}

describe('scans over their limit', () => {
  test('wait and are refused as such, and nothing else is', async () => {
    const client = await start(0, 100, { commandWaitMs: 100 });
    await client.text('SADD', 's', 1, 2);
    oweScans(5);
    const begun = performance.now();
    const answer = await client.text('KEYS', '*');
    expect(performance.now() - begun).toBeGreaterThan(95);
    expect(answer).toMatch(refusal);
    const retryMs = Number(/retry_after_ms=(\d+)/.exec(answer)![1]);
    expect(retryMs).toBeGreaterThan(4000);
    expect(retryMs).toBeLessThan(5000);
    for (const words of [
      ['SCAN', 0],
      ['SUNION', 's', 's'],
      ['SORT_RO', 's'],
    ]) {
      expect(await client.text(...words)).toMatch(refusal);
    }
    for (const words of [['GET', 'k'], ['SET', 'k', 'v'], ['SMEMBERS', 's'], ['DBSIZE']]) {
      expect(await client.text(...words)).not.toMatch(/^-/);
    }
    expect(scans().counters).toMatchObject({ refused: 4 });
    expect(server.limiter).toBeUndefined();
  });

  test('are served in order when there are units again, within that limit in the long run', async () => {
    const client = await start(0, 200);
    const keys = Array.from({ length: 500 }, (_, i) => ['SET', `key:${i}`, i]);
    await client.pipeline(keys);
    const spent = (): number => server.account.lruOf(ChargeClass.scan);
    const begun = performance.now();
    const before = spent();
    while (performance.now() - begun < 2000) {
      expect(await client.text('SCAN', 0, 'COUNT', 500)).toContain('key:1');
    }
    const seconds = (performance.now() - begun) / 1000;
    // Savings count once, and the last command may leave a debt.
    expect(spent() - before).toBeLessThan(200 * (seconds + 1) + 80);
    expect(spent() - before).toBeGreaterThan(200 * seconds * 0.7);
    expect(scans().counters).toMatchObject({ refused: 0 });
    expect(scans().counters.waited).toBeGreaterThan(3);
  });

  test('of a pipeline are answered in their places', async () => {
    const client = await start(0, 100, { commandWaitMs: 20 });
    oweScans(5);
    const answers = await client.pipeline([
      ['SET', 'a', 1],
      ['KEYS', '*'],
      ['GET', 'a'],
      ['SCAN', 0],
      ['PING'],
    ]);
    expect(answers.map((answer) => show(answer).replace(/ RU limit.*/, ''))).toEqual([
      '+OK',
      '-TRYAGAIN',
      '"1"',
      '-TRYAGAIN',
      '+PONG',
    ]);
  });

  test('in a transaction that writes nothing are refused with it', async () => {
    const client = await start(0, 100, { commandWaitMs: 20 });
    oweScans(5);
    const exec = async (...words: string[][]): Promise<string> => {
      await client.text('MULTI');
      for (const one of words) await client.text(...one);
      return client.text('EXEC');
    };
    expect(await exec(['GET', 'a'], ['KEYS', '*'])).toMatch(/kind=scan .*transaction discarded/);
    expect(await exec(['GET', 'a'])).not.toMatch(/^-/);
  });

  test('pass the limit of all requests as well', async () => {
    const client = await start(1000, 500, { commandWaitMs: 500 });
    oweScans(0.1);
    // The limiter for all requests has seen that, too.
    server.limiter.settle(performance.now());
    server.owe(0.2);
    const begun = performance.now();
    expect(await client.text('KEYS', '*')).not.toMatch(/^-/);
    expect(performance.now() - begun).toBeGreaterThan(150);
    expect(scans().counters.waited).toBe(1);
    expect(server.limiter.counters.waited).toBe(1);
    server.owe(5);
    expect(await client.text('KEYS', '*')).toMatch(refusal);
    expect(server.limiter.counters.refused).toBe(1);
    expect(scans().counters.refused).toBe(0);
    // The debit is returned.
    await until(() => scans().balance(performance.now()) > 400);
  });

  test('go on when the limit is taken away, and a client that goes leaves nothing behind', async () => {
    const client = await start(0, 100, { commandWaitMs: 10_000 });
    const other = await server.client();
    oweScans(8);
    other.send('*2\r\n$4\r\nKEYS\r\n$1\r\n*\r\n');
    await until(() => scans().waiting === 1);
    other.close();
    await until(() => scans().waiting === 0);
    const answer = client.text('KEYS', '*');
    await until(() => scans().waiting === 1);
    limit(0, 0);
    expect(await answer).not.toMatch(/^-/);
    expect(scans()).toBeUndefined();
    limit(0, 100);
    expect(scans().quota.perSecond).toBe(100);
  });

  test('are counted where nothing is enforced, and shown', async () => {
    const client = await start(0, 100, { dryRun: true });
    expect(await client.text('INFO', 'ru')).toContain('ru_limits:dry-run');
    server.tenants.admission.setRules({ dryRun: false });
    oweScans(0.05);
    expect(await client.text('KEYS', '*')).not.toMatch(/^-/);
    const info = await client.text('INFO', 'ru');
    expect(info).toContain('ru_limits:enforced');
    expect(info).toContain('ru_scan_quota:100.000');
    expect(info).toContain('ru_scans_waited:1');
    expect(info).not.toContain('ru_quota:');
    expect(await client.text('RU', 'STATS')).toContain('"scan_quota"');
  });
});

describe('an answer of a scan', () => {
  test('is no larger than a page, and the walk misses nothing', async () => {
    server = await LimitedServer.start(0, {});
    const client = await server.client();
    const wide = 'x'.repeat(5000);
    const names = Array.from({ length: 1000 }, (_, i) => `${i}:${wide}`);
    await client.pipeline(names.map((name) => ['SET', name, 1]));
    await client.pipeline(names.map((name) => ['HSET', 'hash', name, wide]));
    await client.pipeline(names.map((name) => ['SADD', 'set', name]));
    await client.pipeline(names.map((name, i) => ['ZADD', 'sorted', i, name]));
    for (const [command, of, step] of [
      ['SCAN', [], 1],
      ['HSCAN', ['hash'], 2],
      ['SSCAN', ['set'], 1],
      ['ZSCAN', ['sorted'], 2],
    ] as const) {
      const seen = new Set<string>();
      let pages = 0;
      let cursor = '0';
      do {
        const reply = await client.command(command, ...of, cursor, 'COUNT', 100_000);
        if (reply.type !== '*') throw new Error(show(reply));
        const [next, rows] = reply.items;
        if (next === undefined || !('text' in next) || rows?.type !== '*') throw new Error('form');
        const texts = rows.items.map((item) => ('text' in item ? String(item.text) : ''));
        expect(texts.join('').length).toBeLessThan(1_000_000);
        for (let i = 0; i < texts.length; i += step) seen.add(texts[i]!);
        cursor = String(next.text);
        pages++;
      } while (cursor !== '0');
      expect(pages).toBeGreaterThanOrEqual(5 * step - (command === 'ZSCAN' ? 5 : 0));
      expect(names.filter((name) => !seen.has(name))).toEqual([]);
    }
  });

  test('holds an item that is larger than any page by itself', async () => {
    server = await LimitedServer.start(0, {});
    const client = await server.client();
    for (let i = 0; i < 200; i++) await client.command('SADD', 'small', `member:${i}`);
    await client.command('SADD', 'small', `large${'y'.repeat(1_500_000)}`);
    const members = async (): Promise<number[]> => {
      const pages: number[] = [];
      let cursor = '0';
      do {
        const reply = await client.command('SSCAN', 'small', cursor, 'COUNT', 1000);
        if (reply.type !== '*') throw new Error(show(reply));
        const [next, rows] = reply.items;
        if (next === undefined || !('text' in next) || rows?.type !== '*') throw new Error('form');
        pages.push(rows.items.length);
        cursor = String(next.text);
      } while (cursor !== '0');
      return pages;
    };
    const pages = await members();
    expect(pages).toContain(1);
    expect(pages.reduce((sum, n) => sum + n, 0)).toBe(201);
  });
});
