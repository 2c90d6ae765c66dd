// Partitions of a table that have a ceiling, as clients of its tenant meet it.

import { afterEach, describe, expect, test } from 'vitest';
import type { AdmissionRules } from '../../access/admission/admission-rules.ts';
import { PartitionCeilings } from '../../storage-node/admission/partition/partition-ceilings.ts';
import { hashSlot } from '../../universal-row/crc16.ts';
import type { RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';
import { LimitedServer } from './limited-server.ts';
import { until } from '../support/until.ts';

const quota = 16_000;
const partitions = 16;
const refusal = /^-TRYAGAIN RU limit: tenant=red kind=partition need=[\d.]+ retry_after_ms=\d+/;
// Ten seconds' worth of one partition, so that what it owes is there to see however slow the machine is.
const large = 'x'.repeat(4_000_000);

let server: LimitedServer;
let ceilings: PartitionCeilings;
afterEach(() => server.stop());

/** Databases 0 and 1 of red are counted by partitions. */
async function start(rules: Partial<AdmissionRules> = {}): Promise<RespClient> {
  const now = performance.now();
  ceilings = new PartitionCeilings(now);
  ceilings.setRules({ cap: 'always', factor: 3, podRate: 0 }, now);
  server = await LimitedServer.start(quota, rules, ceilings);
  const { number, firstTable } = server.red;
  ceilings.setQuotas([{ tenant: number, ruPerSecond: quota, burstRu: 0 }], now);
  const counted = [0, 1].map((database) => ({
    table: firstTable + database,
    tenant: number,
    partitions,
  }));
  ceilings.setTables(counted, now);
  return server.client();
}

/** A key of this partition. */
function keyIn(partition: number, prefix = 'key'): string {
  for (let n = 0; ; n++) {
    const key = Buffer.from(`${prefix}:${n}`);
    if (hashSlot(key, 0, key.length) * partitions < (partition + 1) * 16_384) {
      if (hashSlot(key, 0, key.length) * partitions >= partition * 16_384) return key.toString();
    }
  }
}

const [hot, cold] = [keyIn(3), keyIn(11)];

/** Partition 3 owes seconds of its ceiling. */
async function heat(client: RespClient): Promise<void> {
  expect(await client.text('SET', hot, large)).toBe('+OK');
}

/** The beginnings of answers. */
function brief(answers: Awaited<ReturnType<RespClient['pipeline']>>): string[] {
  return answers.map((answer) => show(answer).replace(/ RU limit.*/, ''));
}

describe('a flood of what is refused', () => {
  const flood = Array.from({ length: 50_000 }, (_, i) =>
    i % 2 === 0 ? ['GET', hot] : ['ECHO', i],
  );

  test('is refused piece by piece, and comes to its end in order', async () => {
    const client = await start();
    await heat(client);
    const answers = await client.pipeline(flood);
    answers.forEach((answer, i) => {
      if (i % 2 === 1) expect(show(answer)).toBe(`"${i}"`);
      else expect(show(answer)).toMatch(refusal);
    });
    expect(server.limiter.counters.partitionRefused).toBe(25_000);
  });

  /**
   * Other clients of the tenant have been refused recently, so often that the next refusal has to
   * wait for seconds: longer than a slow machine takes to send it a flood.
   */
  function refuseOthers(): void {
    const { refusals } = server.tenants.redis.tenants.get(server.red.number)!;
    refusals.reserve(performance.now(), false, 300_000);
  }

  function isAnyHeldBack(): boolean {
    return [...server.tenants.redis.connections.values()].some((one) => one.isHeldBack);
  }

  test('that has to wait is looked at again: there may be room', async () => {
    const client = await start();
    await heat(client);
    refuseOthers();
    const answers = client.pipeline([['EXISTS', hot], ['PING']]);
    await until(isAnyHeldBack);
    ceilings.setRules({ cap: 'none', factor: 3, podRate: 0 }, performance.now());
    expect((await answers).map(show)).toEqual([':1', '+PONG']);
    expect(server.limiter.counters.partitionRefused).toBe(0);
  });

  test('of a client that goes leaves nothing behind', async () => {
    const client = await start();
    await heat(client);
    refuseOthers();
    const other = await server.client();
    const lost = other.pipeline(flood);
    await until(isAnyHeldBack);
    other.close();
    await expect(lost).rejects.toThrow();
    await until(() => server.tenants.redis.connections.size === 1);
    expect(await client.text('PING')).toBe('+PONG');
  });
});

describe('a partition at its ceiling', () => {
  test('is refused in the words of a limit, at once; others of the tenant are served', async () => {
    const client = await start();
    await heat(client);
    const answer = await client.text('STRLEN', hot);
    expect(answer).toMatch(refusal);
    expect(Number(/retry_after_ms=(\d+)/.exec(answer)![1])).toBeGreaterThan(100);
    expect(await client.text('SET', keyIn(3, 'other'), 1)).toMatch(refusal);
    expect(await client.text('SET', cold, 1)).toBe('+OK');
    expect(await client.text('PING')).toBe('+PONG');
    expect(await client.text('DBSIZE')).toBe(':2');
    expect(server.limiter.counters).toMatchObject({ partitionRefused: 2, refused: 0, waited: 0 });
    const info = await client.text('INFO', 'ru');
    expect(info).toContain('ru_partition_refused:2');
    expect(await client.text('RU', 'STATS')).toContain('"partition_refused" :2');
  });

  test('other tenants, and databases that are not counted, have none', async () => {
    const client = await start();
    const blue = await server.client('blue');
    await heat(client);
    expect(await blue.text('SET', hot, 1)).toBe('+OK');
    await client.text('SELECT', 2);
    expect(await client.text('SET', hot, 1)).toBe('+OK');
    await client.text('SELECT', 1);
    expect(await client.text('SET', hot, 1)).toBe('+OK');
  });

  test('of a command with several keys one is enough', async () => {
    const client = await start();
    await heat(client);
    expect(await client.text('MGET', cold, hot)).toMatch(refusal);
    expect(await client.text('RENAME', hot, cold)).toMatch(refusal);
    expect(await client.text('MGET', cold, keyIn(12))).not.toMatch(/^-/);
  });

  test('keys with a hash tag are where their tag is', async () => {
    const client = await start();
    await heat(client);
    expect(await client.text('GET', `{${hot}}:more`)).toMatch(refusal);
  });

  test('of a pipeline, each command is answered in its place', async () => {
    const client = await start();
    await heat(client);
    const answers = await client.pipeline([
      ['SET', cold, 'v'],
      ['STRLEN', hot],
      ['GET', cold],
      ['EXISTS', hot],
      ['PING'],
    ]);
    expect(brief(answers)).toEqual(['+OK', '-TRYAGAIN', '"v"', '-TRYAGAIN', '+PONG']);
  });

  test('a transaction is one request: all of it or nothing', async () => {
    const client = await start();
    await heat(client);
    const exec = async (...commands: (string | number)[][]): Promise<string> => {
      await client.text('MULTI');
      for (const words of commands) expect(await client.text(...words)).toBe('+QUEUED');
      return client.text('EXEC');
    };
    expect(await exec(['SET', cold, 1], ['EXISTS', hot])).toMatch(/kind=partition .*discarded\)$/);
    expect(await client.text('EXISTS', cold)).toBe(':0');
    expect(await exec(['SET', cold, 1])).not.toMatch(/^-/);
    // The command belongs to the selected database.
    expect(await exec(['SELECT', 2], ['EXISTS', hot])).not.toMatch(/^-/);
    await client.text('SELECT', 2);
    expect(await exec(['SELECT', 0], ['EXISTS', hot])).toMatch(refusal);
  });

  test('one that waits for a key is let in before it waits, and charged when it is served', async () => {
    const client = await start();
    const waiting = await server.client();
    const list = keyIn(3, 'list');
    const popped = waiting.command('BLPOP', list, 0);
    await until(() => server.tenants.redis.blocked.size === 1);
    await heat(client);
    // A push is a command like any other.
    expect(await client.text('RPUSH', list, 'v')).toMatch(refusal);
    ceilings.setRules({ cap: 'none', factor: 3, podRate: 0 }, performance.now());
    await client.text('RPUSH', list, 'v');
    expect(show(await popped)).toContain('"v"');
  });
});

test('what others of the tenant spend while a command waits is not charged to its partition', async () => {
  const client = await start();
  const waiting = await server.client();
  const list = keyIn(5, 'list');
  const popped = waiting.command('BLPOP', list, 0);
  await until(() => server.tenants.redis.blocked.size === 1);
  await heat(client);
  await client.text('RPUSH', list, 'v');
  expect(show(await popped)).toContain('"v"');
  expect(await client.text('EXISTS', list)).toBe(':0');
});

test('a spread load is not held back: only its quota counts', async () => {
  const client = await start();
  const keys = Array.from({ length: 3000 }, (_, i) => ['SET', `spread:${i}`, i]);
  const answers = await client.pipeline(keys);
  expect(answers.filter((answer) => show(answer) !== '+OK')).toEqual([]);
  expect(server.limiter.counters.partitionRefused).toBe(0);
});

test('what a partition is served comes to its ceiling, with debts and all', async () => {
  const client = await start();
  const spent = (): number => server.account.lru;
  const ceiling = (3 * quota) / partitions;
  // All that it has saved up is spent first.
  await client.pipeline(Array.from({ length: 6000 }, () => ['INCR', hot]));
  const [begun, before] = [performance.now(), spent()];
  while (performance.now() - begun < 2000) {
    await client.pipeline(Array.from({ length: 200 }, () => ['INCR', hot]));
  }
  server.tenants.meter.metering.flushAll();
  const perSecond = (1000 * (spent() - before)) / (performance.now() - begun);
  expect(perSecond / ceiling).toBeGreaterThan(0.5);
  expect(perSecond / ceiling).toBeLessThan(1.1);
  expect(server.limiter.counters).toMatchObject({ refused: 0, waited: 0 });
});

test('a transaction is charged to its partitions in equal parts', async () => {
  const client = await start();
  await client.text('MULTI');
  await client.text('SET', hot, large);
  await client.text('SET', cold, 1);
  await client.text('EXEC');
  expect(await client.text('EXISTS', hot)).toMatch(refusal);
  expect(await client.text('EXISTS', cold)).toMatch(refusal);
});

test('who waits for units of the quota meets the ceiling when it has them', async () => {
  const client = await start({ commandWaitMs: 10_000 });
  const other = await server.client();
  server.owe(0.1);
  const answer = client.text('EXISTS', hot);
  await until(() => server.limiter.waiting === 1);
  ceilings.setRules({ cap: 'always', factor: 3, podRate: 0 }, performance.now());
  // Another request, let in before, comes to its end meanwhile.
  const visit = ceilings.request();
  visit.begin();
  visit.touch(server.red.firstTable, 3 * 1024, performance.now());
  visit.charge(1e6, performance.now());
  expect(await answer).toMatch(refusal);
  expect(await other.text('EXISTS', cold)).toBe(':0');
});

test('in a dry run all are served, and those that would not have been are counted', async () => {
  const client = await start({ dryRun: true });
  await heat(client);
  expect(await client.text('EXISTS', hot)).toBe(':1');
  expect(await client.text('EXISTS', hot)).toBe(':1');
  expect(server.limiter.counters).toMatchObject({ partitionRefused: 0, partitionWouldRefuse: 2 });
});
