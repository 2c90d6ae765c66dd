// Limits on scans and queries as an operator sets and sees them, on the whole server.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { polyrow } from '../cli/polyrow-process.ts';
import type { RespClient } from '../support/resp-client.ts';
import { LimitedPolyrow } from './limited-polyrow.ts';

let limited: LimitedPolyrow;
beforeAll(async () => {
  limited = await LimitedPolyrow.start();
  await limited.tenant('shop', 0);
});
afterAll(() => limited.stop());

async function cli(...words: string[]): Promise<string> {
  const { code, out, err } = await polyrow([...words, '--data-dir', limited.server.dataDir]);
  expect([code, err]).toEqual([0, '']);
  return out;
}

/** Until what was saved up is spent. */
async function scanUntilItWaits(client: RespClient): Promise<void> {
  const waited = async (): Promise<number> =>
    (await LimitedPolyrow.stats(client)).get('scans_waited') ?? 0;
  while ((await waited()) === 0) {
    expect(await client.text('SCAN', 0, 'COUNT', 1000)).not.toMatch(/^-/);
  }
}

async function influx(q: string): Promise<string> {
  const query = new URLSearchParams({ db: 'd', q });
  const authorization = `Basic ${Buffer.from('shop:shop').toString('base64')}`;
  const answer = await fetch(`${limited.server.influx}/query`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/x-www-form-urlencoded' },
    body: query.toString(),
  });
  return answer.text();
}

test('they are set by commands, hold at once, are shown, and outlast a restart', async () => {
  const client = await limited.client('shop');
  await client.pipeline(Array.from({ length: 1000 }, (_, i) => ['SET', `key:${i}`, i]));
  expect(await cli('tenant', 'alter', 'shop', '--limit', 'scanRuPerSecond=100')).toMatch(
    /limit of request units a second for scans over Redis +100/,
  );
  expect(await client.text('INFO', 'ru')).toContain('ru_scan_quota:100.000');
  await scanUntilItWaits(client);
  // Nothing but scans waits.
  const waits = async (): Promise<number[]> => {
    const stats = await LimitedPolyrow.stats(client);
    return ['waited', 'scans_waited'].map((name) => stats.get(name) ?? 0);
  };
  const before = await waits();
  await client.pipeline(Array.from({ length: 1000 }, (_, i) => ['GET', `key:${i}`]));
  expect(await waits()).toEqual(before);

  await cli('limit', 'set', 'shop', 'query-ru-per-second=50');
  expect(await influx('CREATE DATABASE d')).not.toContain('error');
  const usage = await cli('limit', 'usage');
  expect(usage).toMatch(/^tenant .* scan\/query limit +scan\/query RU\/s$/m);
  expect(usage).toMatch(/^shop +redis +0 .* 100 +[\d.,]+$/m);
  expect(usage).toMatch(/^shop +influx +0 .* 50 +[\d.,]+$/m);
  const { body } = await limited.server.askAdmin('GET', '/v1/admission?tenant=shop&plane=redis');
  const [told] = (body as { admission: Record<string, number>[] }).admission;
  expect(told).toMatchObject({ quotaRu: 0, classQuotaRu: 100, refused: 0, burstRu: 0 });
  expect(told!['waited']).toBeGreaterThan(0);
  const page = await limited.metrics();
  expect(page).toMatch(/^polyrow_tenant_class_quota_ru\{tenant="shop",plane="redis"\} 100$/m);
  expect(page).toMatch(/^polyrow_tenant_class_quota_ru\{tenant="shop",plane="influx"\} 50$/m);
  expect(page).toMatch(/^polyrow_tenant_class_waited_total\{tenant="shop",plane="redis"\} [1-9]/m);
  expect(page).not.toContain('polyrow_tenant_quota_ru{tenant="shop"');
  client.socket.destroy();

  await limited.server.restart();
  const again = await limited.client('shop');
  expect(await again.text('INFO', 'ru')).toContain('ru_scan_quota:100.000');
  await scanUntilItWaits(again);
  await cli('limit', 'set', 'shop', 'scanRuPerSecond=none', 'queryRuPerSecond=none');
  await expect.poll(() => again.text('INFO', 'ru')).toContain('ru_limits:none');
});

test('SCAN ends at a page where a cursor can go on, and what has no cursor is answered whole', async () => {
  const client = await limited.client('shop');
  const wide = 'x'.repeat(10_000);
  await client.command('SELECT', 1);
  await client.pipeline(Array.from({ length: 300 }, (_, i) => ['SET', `${i}:${wide}`, 1]));
  const length = async (...words: (string | number)[]): Promise<number> =>
    (await client.text(...words)).length;
  expect(await length('SCAN', 0, 'COUNT', 1000)).toBeLessThan(1_010_000);
  expect(await length('SCAN', 0, 'COUNT', 1000)).toBeGreaterThan(800_000);
  expect(await length('KEYS', '*')).toBeGreaterThan(3_000_000);
});
