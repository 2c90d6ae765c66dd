// The one-time credit of a new tenant beyond its quota.

import { afterEach, expect, test } from 'vitest';
import { noLimits } from '../../contracts/tenancy/definitions.ts';
import { polyrow } from '../cli/polyrow-process.ts';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import type { RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';
import { LimitedPolyrow } from './limited-polyrow.ts';

let server: TenantsServer | undefined;
let limited: LimitedPolyrow | undefined;
afterEach(async () => {
  await server?.stop();
  await limited?.stop();
  server = undefined;
  limited = undefined;
});

async function start(warmupSeconds: number): Promise<TenantsServer> {
  server = await TenantsServer.start({ limits: { warmupSeconds } });
  return server;
}

function tenant(name: string, createdAt?: number): void {
  const age = createdAt === undefined ? {} : { createdAt };
  server!.tenant(name, { limits: { ...noLimits, ruPerSecond: 500 }, ...age });
}

function limiterOf(name: string) {
  return server!.admission.limiterOf(server!.principals.tenant(name)!.number)!;
}

/** Units a second that a load gets, over so long. */
async function spent(name: string, ms: number): Promise<number> {
  const client = await server!.client(name);
  const { number } = server!.principals.tenant(name)!;
  const account = server!.meter.plane.meter.account(number);
  const batch = Array.from({ length: 20 }, (_, i) => ['SET', `key:${i}`, 'value']);
  const [before, begun] = [account.lru, performance.now()];
  while (performance.now() - begun < ms) {
    for (const answer of await client.pipeline(batch)) expect(show(answer)).toBe('+OK');
  }
  client.close();
  return ((account.lru - before) * 1000) / (performance.now() - begun);
}

test('it is three times the quota while the tenant is new, and the quota from then on', async () => {
  const it = await start(4);
  const seconds = setInterval(() => it.admission.endSecond(), 200);
  try {
    tenant('young', Date.now());
    const begun = performance.now();
    // The units of one second may have been saved up before.
    expect(await spent('young', 2500)).toBeGreaterThan(500 * 2.5);
    expect(limiterOf('young').warmupLeft(performance.now())).toBeGreaterThan(0);
    expect(limiterOf('young').counters.refused).toBe(0);
    await expect.poll(() => limiterOf('young').warmupLeft(performance.now())).toBe(0);
    expect(performance.now() - begun).toBeGreaterThan(3800);
    await spent('young', 300);
    expect(await spent('young', 2000)).toBeLessThan(500 * 1.6);
    // Not again, whatever becomes of the limit.
    it.alter('young', { limits: noLimits });
    it.alter('young', { limits: { ...noLimits, ruPerSecond: 500 } });
    expect(limiterOf('young').warmupLeft(performance.now())).toBe(0);
  } finally {
    clearInterval(seconds);
  }
});

test('who was made long ago, or nobody knows when, has none; and nobody where it is not wanted', async () => {
  const it = await start(300);
  const now = Date.now();
  tenant('old', now - 301_000);
  tenant('older');
  tenant('young', now - 100_000);
  tenant('ahead', now + 3_600_000);
  const left = (name: string): number => limiterOf(name).warmupLeft(performance.now());
  expect(left('old')).toBe(0);
  expect(left('older')).toBe(0);
  expect(left('young')).toBeCloseTo(2 * 500 * 200, -3);
  // On a server whose clock went backwards.
  expect(left('ahead')).toBeCloseTo(2 * 500 * 300, -3);
  // The credit scales with the quota, but its period does not.
  it.alter('young', { limits: { ...noLimits, ruPerSecond: 1000 } });
  expect(left('young')).toBeCloseTo(2 * 1000 * 200, -4);
  it.admission.setRules({ warmupSeconds: 0 });
  expect(left('young')).toBe(0);
  expect(await spent('young', 500)).toBeLessThan(4000);
});

test('an operator sees what is left of it; a server that starts again gives it no second time', async () => {
  const flags = ['--admission.warmup-seconds', '3600'];
  limited = await LimitedPolyrow.start(flags);
  await limited.tenant('shop', 100);
  const left = async (client: RespClient): Promise<number> =>
    (await LimitedPolyrow.stats(client)).get('warmup_left')!;
  const before = await left(await limited.client('shop'));
  expect(before).toBeLessThan(2 * 100 * 3600);
  expect(before).toBeGreaterThan(2 * 100 * 3500);
  const cli = (...words: string[]) => polyrow([...words, '--data-dir', limited!.server.dataDir]);
  const usage = await cli('limit', 'usage', '--plane', 'redis');
  expect(usage.out).toMatch(/^tenant .* warm-up RU$/m);
  expect(usage.out).toMatch(/^shop .* 7\d\d,\d{3}$/m);
  await limited.server.restart(flags);
  const after = await left(await limited.client('shop'));
  expect(after).toBeLessThan(before);
  await cli('config', 'set', 'admission.warmup-seconds', '0');
  const client = await limited.client('shop');
  await expect.poll(() => left(client)).toBe(0);
  expect((await cli('limit', 'usage')).out).not.toContain('warm-up');
});
