// Reads that the gateway remembers, as clients meet them: on tables that may be read late, of a tenant with a quota.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ReadCache, ttlMs } from '../../access/redis/read-cache.ts';
import { ChargeClass, type TenantAccount } from '../../request-units/meter.ts';
import { noLimits } from '../../contracts/tenancy/definitions.ts';
import { databases, firstTenantTable, TenantsServer } from '../redis-tenants/tenants-server.ts';
import type { RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';

/** Databases 0 and 1 of `red`, the first tenant made, are remembered; the second of them for 50 ms. */
const span = { first: firstTenantTable, count: databases };
const remembered = [Infinity, 50].map((maxAgeMs, n) => ({
  ...{ table: firstTenantTable + n, tenant: 1, span, maxAgeMs },
}));

let server: TenantsServer;
let red: RespClient;
beforeEach(async () => {
  server = await TenantsServer.start({ limits: { commandWaitMs: 20 }, remembered });
  server.tenant('red', { limits: { ...noLimits, ruPerSecond: 1000 } });
  server.tenant('blue');
  red = await server.client('red');
});
afterEach(() => server.stop());

function cache(): ReadCache {
  return server.redis.cache!;
}

function account(): TenantAccount {
  server.meter.metering.flushAll();
  return server.meter.plane.meter.account(1);
}

/** Asks twice, so that it is remembered; what the second answer was. */
async function get(key: string, client = red): Promise<string> {
  await client.text('GET', key);
  const { hits } = cache().counts;
  const answer = await client.text('GET', key);
  expect(cache().counts.hits).toBe(hits + 1);
  return answer;
}

describe('a GET that is remembered', () => {
  test('costs nothing', async () => {
    await red.text('SET', 'k', 'v');
    await get('k');
    const { lru, requests } = account();
    expect(await red.text('GET', 'k')).toBe('"v"');
    expect([account().lru, account().requests]).toEqual([lru, requests]);
    expect(await red.text('RU', 'LAST')).toContain('"command" "get" "ru" "0"');
  });

  test('waits for no quota, and the next write does', async () => {
    await red.text('SET', 'k', 'v');
    await get('k');
    const limiter = server.admission.limiterOf(1)!;
    account().charge(ChargeClass.background, 0, false, 9000, 9000, 0, 0, 0);
    limiter.settle(performance.now());
    expect(await red.text('GET', 'k')).toBe('"v"');
    expect(await red.text('GET', 'other')).toMatch(/^-TRYAGAIN/);
    const answers = await red.pipeline([['GET', 'k'], ['SET', 'k', 'w'], ['GET', 'k'], ['PING']]);
    expect(answers.map((answer) => show(answer).replace(/ RU.*/, ''))).toEqual([
      '"v"',
      '-TRYAGAIN',
      '"v"',
      '+PONG',
    ]);
  });

  test('counts as any other: for MONITOR, the slow log, INFO', async () => {
    await red.text('SET', 'k', 'v');
    const calls = server.redis.registry.get('get')!;
    const before = calls.calls;
    const watcher = await server.client('red');
    await watcher.text('MONITOR');
    server.redis.slowlogMs = 0;
    await get('k');
    await get('nothing');
    expect(calls.calls - before).toBe(4);
    const shown = (await watcher.replies(4)).map(show);
    for (const [i, key] of ['k', 'k', 'nothing', 'nothing'].entries()) {
      expect(shown[i]).toMatch(new RegExp(`GET\\W+${key}\\W*$`));
    }
    expect(await red.text('SLOWLOG', 'LEN')).toBe(':4');
    const info = await red.text('INFO', 'stats');
    expect(info).toContain('gateway_cache_hits:2');
    expect(info).toContain('gateway_cache_misses:2');
    const blue = await server.client('blue');
    expect(await blue.text('INFO', 'stats')).toContain('gateway_cache_hits:0');
  });

  test('that there is nothing is remembered, in the words of the protocol', async () => {
    const third = await server.client('red', 'red', 3);
    expect(await get('nothing')).toBe('(nil)');
    expect(await get('nothing', third)).toBe('_');
    await third.text('SET', 'nothing', 'something');
    expect(await get('nothing')).toBe('"something"');
    expect(await get('nothing', third)).toBe('"something"');
  });

  test('is one of its own tenant and user', async () => {
    await red.text('SET', 'k', 'v');
    await get('k');
    const blue = await server.client('blue');
    expect(await blue.text('GET', 'k')).toBe('(nil)');
    server.user('red', 'guest', { open: true, rules: '+get ~public:*' });
    const guest = await server.client('guest@red');
    expect(await guest.text('GET', 'k')).toMatch(/^-NOPERM/);
    const nobody = await server.client();
    await nobody.text('SET', 'k', 'default');
    expect(await nobody.text('GET', 'k')).toBe('"default"');
  });

  test('is muffled where no answers are wanted', async () => {
    await red.text('SET', 'k', 'v');
    await get('k');
    red.send('CLIENT REPLY SKIP\r\nGET k\r\nPING\r\n');
    const [answer] = await red.replies(1);
    expect(show(answer!)).toBe('+PONG');
  });

  test('an error is not remembered', async () => {
    await red.text('SADD', 's', 1);
    for (let i = 0; i < 3; i++) expect(await red.text('GET', 's')).toMatch(/^-WRONGTYPE/);
    expect(cache().counts.hits).toBe(0);
  });
});

describe('what is read is', () => {
  test('no older than the table allows', async () => {
    await red.text('SELECT', 1);
    await red.text('SET', 'k', 'v');
    await red.text('GET', 'k');
    await new Promise((resolve) => setTimeout(resolve, 60));
    await red.text('GET', 'k');
    expect(cache().counts).toMatchObject({ hits: 0, misses: 2 });
  });

  test('not beyond its own expiry', async () => {
    await red.text('SET', 'k', 'v', 'PX', 80);
    expect(await get('k')).toBe('"v"');
    await new Promise((resolve) => setTimeout(resolve, 90));
    expect(await red.text('GET', 'k')).toBe('(nil)');
  });

  test('not what a table was before it was another', async () => {
    await red.text('SET', 'k', 'v');
    await get('k');
    cache().setTables([]);
    await red.text('SET', 'k', 'w');
    cache().setTables(remembered);
    expect(await red.text('GET', 'k')).toBe('"w"');
  });

  test('not what was asked for before a write, and came after it', async () => {
    await red.text('SET', 'k', 'v');
    const [entry, set] = ['get', 'set'].map((name) => server.redis.registry.get(name)!);
    const { Arguments } = await import('../../universal-row/arguments.ts');
    const args = new Arguments();
    args.buf = Buffer.from('k');
    args.lens[1] = 1;
    args.count = 2;
    const load = cache().load(entry!, args, firstTenantTable, performance.now())!;
    cache().wrote(set!, args, firstTenantTable, span);
    const writer = server.redis.tick.borrowWriter(2);
    writer.text('v');
    load.answered(writer, performance.now());
    const { misses } = cache().counts;
    expect(await red.text('GET', 'k')).toBe('"v"');
    expect(cache().counts.misses).toBe(misses + 1);
  });
});

describe('read again in the background', () => {
  test('a key that many read, at the cost of its tenant', async () => {
    await red.text('SET', 'k', 'v');
    await red.text('SET', 'cold', 'v');
    for (let i = 0; i < 5; i++) await red.text('GET', 'k');
    await red.text('GET', 'cold');
    const asked = performance.now();
    const background = account().requestsOf(ChargeClass.background);
    cache().tick(asked + 0.95 * ttlMs);
    expect(cache().refreshes).toBe(1);
    expect(account().requestsOf(ChargeClass.background)).toBe(background + 1);
    expect(account().lruOf(ChargeClass.background)).toBeGreaterThan(0);
    cache().tick(asked + 1.1 * ttlMs);
    expect(cache().size).toBe(1);
  });
});

describe('a write is seen by all who read after it', () => {
  const writes: readonly (readonly [string, ...(readonly (string | number)[])[]])[] = [
    ['"w"', ['SET', 'k', 'w']],
    ['(nil)', ['DEL', 'k']],
    ['(nil)', ['UNLINK', 'k']],
    ['"vw"', ['APPEND', 'k', 'w']],
    ['"w"', ['MSET', 'other', 1, 'k', 'w']],
    ['(nil)', ['GETDEL', 'k']],
    ['(nil)', ['RENAME', 'k', 'elsewhere']],
    ['"w"', ['SET', 'other', 'w'], ['RENAME', 'other', 'k']],
    ['"w"', ['SET', 'other', 'w'], ['COPY', 'other', 'k', 'REPLACE']],
    ['"w"', ['SELECT', 3], ['SET', 'x', 'w'], ['COPY', 'x', 'k', 'DB', 0, 'REPLACE']],
    ['"w"', ['DEL', 'k'], ['SELECT', 3], ['SET', 'k', 'w'], ['MOVE', 'k', 0]],
    ['(nil)', ['MOVE', 'k', 5]],
    ['(nil)', ['FLUSHDB']],
    ['(nil)', ['SELECT', 4], ['FLUSHALL']],
    ['(nil)', ['SELECT', 4], ['SWAPDB', 0, 7]],
    ['(nil)', ['EXPIREAT', 'k', 1]],
    ['(nil)', ['PEXPIRE', 'k', -1]],
    ['"w"', ['MULTI'], ['GET', 'k'], ['SET', 'k', 'w'], ['EXEC']],
    ['"w"', ['SELECT', 2], ['MULTI'], ['SELECT', 0], ['SET', 'k', 'w'], ['EXEC']],
    ['(nil)', ['SELECT', 2], ['MULTI'], ['FLUSHALL'], ['EXEC']],
  ];

  test.each(writes.map(([after, ...commands]) => ({ after, commands })))(
    '$commands',
    async ({ after, commands }) => {
      const reader = await server.client('red');
      await red.text('SET', 'k', 'v');
      expect(await get('k', reader)).toBe('"v"');
      for (const words of commands) expect(await red.text(...words)).not.toMatch(/^-/);
      expect(await reader.text('GET', 'k')).toBe(after);
      expect(await get('k', reader)).toBe(after);
    },
  );

  test('one that waited for its key', async () => {
    const reader = await server.client('red');
    const waiting = red.command('BLMOVE', 'source', 'k', 'LEFT', 'LEFT', 0);
    await expect.poll(() => server.redis.blocked.size).toBe(1);
    expect(await get('k', reader)).toBe('(nil)');
    await reader.text('RPUSH', 'source', 'v');
    await waiting;
    expect(await reader.text('GET', 'k')).toMatch(/^-WRONGTYPE/);
  });
});
