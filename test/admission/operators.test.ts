// Limits in the admin API, and changes of limits under load.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { TenantAdmission } from '../../control/monitor/tenant-admission.ts';
import { polyrow } from '../cli/polyrow-process.ts';
import type { RespClient } from '../support/resp-client.ts';
import { LimitedPolyrow } from './limited-polyrow.ts';

let limited: LimitedPolyrow;
const loads: Load[] = [];

beforeAll(async () => {
  limited = await LimitedPolyrow.start();
  await limited.tenant('shop', 2000);
  await limited.tenant('mill', 1000);
  await limited.tenant('free', 0);
});
afterEach(async () => {
  for (const load of loads.splice(0)) await load.stop();
});
afterAll(() => limited.stop());

/** Sends pipelines of writes, one after the other. */
class Load {
  sent = 0;
  readonly #client: RespClient;
  #isOver = false;
  readonly #end: Promise<void>;

  static async start(tenant: string, pauseMs = 0): Promise<Load> {
    const load = new Load(await limited.client(tenant), pauseMs);
    loads.push(load);
    return load;
  }

  private constructor(client: RespClient, pauseMs: number) {
    this.#client = client;
    this.#end = this.#run(pauseMs);
  }

  async #run(pauseMs: number): Promise<void> {
    const batch = Array.from({ length: 50 }, (_, i) => ['SET', `key:${i}`, 'value']);
    while (!this.#isOver) {
      await this.#client.pipeline(batch);
      this.sent += batch.length;
      if (pauseMs > 0) await sleep(pauseMs);
    }
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#end;
    this.#client.socket.destroy();
  }
}

type Told = TenantAdmission & { plane: string };

async function admission(tenant: string): Promise<Told> {
  const path = `/v1/admission?tenant=${tenant}&plane=redis`;
  const { body } = await limited.server.askAdmin('GET', path);
  return (body as { admission: Told[] }).admission[0]!;
}

function cli(...words: string[]) {
  return polyrow([...words, '--data-dir', limited.server.dataDir]);
}

/** The tenant's savings are spent: its load has to wait. */
async function isLimited(tenant: string): Promise<void> {
  await expect
    .poll(async () => (await admission(tenant)).waiting, { timeout: 20_000, interval: 20 })
    .toBe(1);
}

/** Units a second that a tenant spends, over so long. */
async function spent(tenant: string, ms: number): Promise<number> {
  const total = async (): Promise<number> => {
    const page = await limited.metrics();
    const found = page.matchAll(
      new RegExp(`^polyrow_tenant_ru_total\\{tenant="${tenant}",plane="redis".*\\} (.*)$`, 'gm'),
    );
    return [...found].reduce((sum, [, value]) => sum + Number(value), 0);
  };
  const [before, from] = [await total(), performance.now()];
  await sleep(ms);
  return ((await total()) - before) / ((performance.now() - from) / 1000);
}

/**
 * In quotas, over at most three seconds: on a busy machine one second's units may have been saved
 * up before.
 */
const most = (3 + 1) / 3 + 0.05;

test('a quota that is raised, cut and taken away under load is in force within a second', async () => {
  await Load.start('shop');
  await isLimited('shop');
  expect(await spent('shop', 3000)).toBeLessThan(2000 * most);
  const set = async (ruPerSecond: number | 'none'): Promise<void> => {
    const { code, err } = await cli('limit', 'set', 'shop', `ruPerSecond=${ruPerSecond}`);
    expect([code, err]).toEqual([0, '']);
  };
  await set(6000);
  // Asked for at once: it holds already.
  expect(await admission('shop')).toMatchObject({ quotaRu: 6000 });
  await isLimited('shop');
  await sleep(1000);
  const raised = await spent('shop', 3000);
  expect(raised).toBeGreaterThan(2000 * most);
  expect(raised).toBeLessThan(6000 * most);
  await set(500);
  await isLimited('shop');
  await sleep(1000);
  expect(await spent('shop', 3000)).toBeLessThan(500 * most);
  await set('none');
  await sleep(200);
  expect(await admission('shop')).toBeUndefined();
  expect(await spent('shop', 3000)).toBeGreaterThan(6000 * most);
  await set(2000);
  await isLimited('shop');
  expect(await spent('shop', 3000)).toBeLessThan(2000 * most);
});

test('who is near its quota is told of: in the log, by commands and as metrics', async () => {
  await Load.start('mill');
  await Load.start('free', 50);
  await isLimited('mill');
  await sleep(2000);
  // A second is as long as a busy machine makes it.
  const isNear = async (): Promise<boolean> =>
    Math.abs((await admission('mill')).usedRu / 1000 - 1) < 0.1;
  await expect.poll(isNear).toBe(true);
  const told = await admission('mill');
  expect(told.waited).toBeGreaterThan(10);

  const usage = await cli('limit', 'usage', '--plane', 'redis');
  expect(usage.out).toMatch(/^tenant +plane +limit +RU\/s +used +minute +waiting +waited +refused/);
  expect(usage.out).toMatch(/^mill +redis +1,000 +[\d,]+ +[1-9]\d+ %/m);
  expect(usage.out).not.toContain('free');
  const own = await cli('limit', 'get', 'mill');
  expect(own.out).toMatch(/^redis +1,000 +[\d,]+ +[1-9]\d+ %/m);
  expect((await cli('tenant', 'show', 'mill')).out).toMatch(/^redis +1,000 /m);
  const shown = JSON.parse((await cli('tenant', 'show', 'mill', '--json')).out) as {
    admission: Told[];
  };
  expect(shown.admission.map(({ plane }) => plane).sort()).toEqual(['influx', 'redis']);
  const top = await cli('top', '--once', '--interval', '1');
  expect(top.out).toMatch(/^tenant .* waiting +refused\/s$/m);
  expect(top.out).toMatch(/^mill +[\d,]+ +[1-9]\d+ %/m);
  expect(top.out).toMatch(/^free +[\d,]+ +- /m);

  await expect.poll(isNear).toBe(true);
  const page = await limited.metrics();
  const ratio = /^polyrow_tenant_quota_used_ratio\{tenant="mill",plane="redis"\} (.*)$/m.exec(page);
  expect(Number(ratio?.[1])).toBeGreaterThan(0.5);
  expect(page).not.toMatch(/quota_used_ratio\{tenant="free"/);

  const warnings = (): number =>
    limited.server.output.match(/tenant mill uses \d+ % of its request units/g)?.length ?? 0;
  await expect.poll(warnings).toBe(1);
  // Once a minute, whatever it does.
  await sleep(3000);
  expect(warnings()).toBe(1);
});

test('a tenant sees its own limits only', async () => {
  const made = await limited.server.askAdmin('POST', '/v1/tokens', {
    role: 'tenant',
    tenant: 'mill',
  });
  const { secret } = made.body as { secret: string };
  const ask = (path: string) => limited.server.askAdmin('GET', path, undefined, secret);
  const own = (await ask('/v1/admission')).body as { admission: { tenant: string }[] };
  expect(new Set(own.admission.map(({ tenant }) => tenant))).toEqual(new Set(['mill']));
  expect((await ask('/v1/admission?tenant=shop')).status).toBe(403);
});
