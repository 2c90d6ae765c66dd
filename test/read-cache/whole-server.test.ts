// Reads that are remembered, in the whole server on LevelDB: whatever clients write, every one of them reads what is
// there; and what operators set.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { Redis } from 'ioredis';
import { BackupScene } from '../backup/backup-commands.ts';
import { Generator } from '../differential/generator.ts';
import { Polyrow } from '../support/polyrow.ts';
import { Random } from '../support/random.ts';
import { RespClient, type Word } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';
import { tableCommand } from '../table-properties/subjects.ts';
import { seedFrom } from '../support/seed.ts';

let server: Polyrow;
beforeAll(async () => {
  server = await Polyrow.start({ flags: ['--redis.default-model', 'kv'] });
  for (const database of ['0', '1', '2']) {
    await tableCommand(server, 'alter', database, '--consistency', 'eventual');
  }
});
afterAll(() => server.remove());

async function set(settings: object): Promise<void> {
  const { status, body } = await server.askAdmin('PATCH', '/v1/config', settings);
  expect([status, body]).toEqual([200, expect.anything()]);
}

/** A field of INFO stats. */
async function stat(client: Redis, name: string): Promise<number> {
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(await client.info('stats'))?.[1]);
}

const left: ReadonlySet<string> = new Set(
  'quit reset hello auth monitor subscribe psubscribe ssubscribe client shutdown debug config acl'.split(
    ' ',
  ),
);

const changesMany: ReadonlySet<string> = new Set(['exec', 'flushall', 'flushdb', 'swapdb']);

/** From one database to another, or all of one. */
function elsewhere(random: Random): { words: Word[]; pauseMs?: number } {
  const key = (): string => `string${2 + random.below(5)}`;
  const database = (): number => random.below(4);
  const lines: Word[][] = [
    ['MOVE', key(), database()],
    ['COPY', key(), key(), 'DB', database(), 'REPLACE'],
    ['SWAPDB', database(), database()],
    ['SELECT', database()],
    ['SET', key(), random.below(100)],
    ['SET', key(), random.below(100)],
    [random.chance(0.1) ? 'FLUSHDB' : 'DBSIZE'],
  ];
  return { words: random.pick(lines) };
}

test('random commands: every GET says what the table holds', async () => {
  const seed = seedFrom('POLYROW_SEED');
  const count = process.env['POLYROW_FULL'] === '1' ? 100_000 : 6000;
  const random = new Random(seed);
  const generator = new Generator(seed);
  const checker = await server.client();
  let writer = await server.client();

  /** Results of GET, which may be cached, and of MGET, which never is. */
  const look = async (database: number, key: Word): Promise<[string, string]> => {
    const replies = await checker.pipeline([
      ['SELECT', database],
      ['GET', key],
      ['MGET', key],
    ]);
    const [got, there] = [show(replies[1]!), show(replies[2]!)];
    // MGET has nothing to say of what is no string.
    return [got.startsWith('-WRONGTYPE') ? '(nil)' : got, there.slice(2, -1)];
  };

  const recent: { key: Word; database: number }[] = [];
  for (let i = 0; i < count; i++) {
    const { words, pauseMs } = random.chance(0.1) ? elsewhere(random) : generator.next();
    const name = String(words[0]).toLowerCase();
    if (left.has(name)) continue;
    // The keys are cached before, in the databases that the command can reach.
    const places = words.slice(1, 4).map((key) => ({ key, database: random.below(3) }));
    for (const { database, key } of places) await look(database, key);
    recent.push(...places);
    recent.splice(0, recent.length - 20);
    if (writer.closed) writer = await server.client();
    if (random.chance(0.05)) await writer.command('SELECT', random.below(4));
    await writer.command(...words);
    if (pauseMs !== undefined) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    for (const { database, key } of changesMany.has(name) ? recent : places) {
      let [got, there] = await look(database, key);
      // The key may have expired between the two: then the next look agrees.
      if (got !== there) [got, there] = await look(database, key);
      const where = `seed ${seed}, after ${i}: ${words.map(String).join(' ')}; db${database} ${String(key)}`;
      expect(got, where).toBe(there);
    }
  }
  const client = new Redis(server.redisPort, '127.0.0.1');
  expect(await stat(client, 'gateway_cache_hits')).toBeGreaterThan(count / 10);
  await client.quit();
  for (const one of [checker, writer]) one.close();
});

test('ioredis: what many read is read from the table once', async () => {
  const client = new Redis(server.redisPort, '127.0.0.1');
  await client.flushall();
  await client.set('popular', 'v');
  const before = await stat(client, 'gateway_cache_hits');
  for (let i = 0; i < 500; i++) expect(await client.get('popular')).toBe('v');
  expect(await stat(client, 'gateway_cache_hits')).toBeGreaterThan(before + 450);
  expect(await stat(client, 'keyspace_hits')).toBeGreaterThan(500);
  expect(await client.call('RU', 'LAST')).toEqual(expect.arrayContaining(['info']));
  await client.get('popular');
  expect(await client.call('RU', 'LAST')).toEqual(expect.arrayContaining(['get', 'ru', '0']));
  await client.append('popular', 'w');
  expect(await client.get('popular')).toBe('vw');
  expect(await client.getBuffer('nobody')).toBeNull();
  await client.quit();
  const metrics = await (await fetch(`${server.admin}/metrics`)).text();
  expect(metrics).toMatch(/polyrow_gateway_cache_hits_total [1-9]/);
  expect(metrics).toMatch(/polyrow_gateway_cache_bytes [1-9]/);
});

test('what an operator sets holds at once', async () => {
  const client = new Redis(server.redisPort, '127.0.0.1');
  /** Whether GETs of this database are remembered now. */
  const isRemembered = async (database: number): Promise<boolean> => {
    await client.select(database);
    await client.set('k', 'v');
    const before = await stat(client, 'gateway_cache_hits');
    await client.get('k');
    expect(await client.get('k')).toBe('v');
    const after = await stat(client, 'gateway_cache_hits');
    return after > before;
  };
  const alter = async (...flags: string[]) => await tableCommand(server, 'alter', '0', ...flags);
  expect(await isRemembered(0)).toBe(true);
  expect(await isRemembered(3)).toBe(false);
  await alter('--consistency', 'strong');
  expect(await isRemembered(0)).toBe(false);
  await alter('--consistency', 'bounded', '--max-staleness-ms', '5000');
  expect(await isRemembered(0)).toBe(true);
  await alter('--cache-bypass');
  expect(await isRemembered(0)).toBe(false);
  await alter('--no-cache-bypass', '--consistency', 'eventual');
  await set({ 'redis.gateway-cache-bytes': 0 });
  expect(await isRemembered(0)).toBe(false);
  await client.set('k', 'while nobody looked');
  await set({ 'redis.gateway-cache-bytes': 1_000_000 });
  expect(await client.get('k')).toBe('while nobody looked');
  expect(await isRemembered(0)).toBe(true);
  await client.quit();
});

test('many clients at once, rows on disk: nobody reads what was before an answered write', async () => {
  const small = await Polyrow.start({
    flags: ['--redis.default-model', 'kv', '--kv.cache-bytes', '0'],
  });
  try {
    await tableCommand(small, 'alter', '0', '--consistency', 'eventual');
    const keys = Array.from({ length: 8 }, (_, i) => `counter${i}`);
    const answered = new Map(keys.map((key) => [key, 0]));
    const random = new Random(1);
    let isOver = false;
    const work = async (client: RespClient, reads: boolean): Promise<void> => {
      while (!isOver) {
        const key = random.pick(keys);
        const least = answered.get(key)!;
        const reply = await client.command(reads ? 'GET' : 'INCR', key);
        const value = 'text' in reply ? Number(reply.text) : 0;
        expect(value).toBeGreaterThanOrEqual(least);
        if (!reads) answered.set(key, Math.max(answered.get(key)!, value));
      }
    };
    const clients = await Promise.all(Array.from({ length: 8 }, () => small.client()));
    const working = Promise.all(clients.map((client, i) => work(client, i > 1)));
    setTimeout(() => (isOver = true), 3000);
    await working;
    const info = await clients[0]!.text('INFO', 'stats');
    expect(Number(/gateway_cache_hits:(\d+)/.exec(info)![1])).toBeGreaterThan(100);
    const metrics = await (await fetch(`${small.admin}/metrics`)).text();
    const faults = /polyrow_pod_read_faults_total\{model="kv"\} (\d+)/.exec(metrics)![1];
    expect(Number(faults)).toBeGreaterThan(100);
    for (const client of clients) client.close();
  } finally {
    await small.remove();
  }
});

test('a restore puts other rows in place: what was remembered is forgotten', async () => {
  const scene = new BackupScene();
  try {
    const one = await scene.server(['--redis.default-model', 'kv']);
    await tableCommand(one, 'alter', '0', '--consistency', 'eventual');
    const client = await one.client();
    await client.text('SET', 'k', 'of the backup');
    await scene.backup(one);
    await client.text('SET', 'k', 'of later');
    await client.text('SET', 'other', 'of later');
    for (const key of ['k', 'other', 'k', 'other']) {
      expect(await client.text('GET', key)).toBe('"of later"');
    }
    await scene.restore(one, '--replace');
    expect(await client.text('GET', 'k')).toBe('"of the backup"');
    expect(await client.text('GET', 'other')).toBe('(nil)');
    client.close();
  } finally {
    await scene.remove();
  }
});

test('a tenant that is dropped leaves nothing for the one that is made then', async () => {
  const tenant = async (method: string, path: string, body?: object): Promise<void> => {
    const { status } = await server.askAdmin(method, `/v1/tenants${path}`, body);
    expect(status).toBeLessThan(300);
  };
  const come = async (): Promise<RespClient> => {
    await tenant('POST', '', { name: 'shop', password: 'shop' });
    await tableCommand(server, 'alter', 'shop/0', '--model', 'kv', '--consistency', 'eventual');
    const client = await server.client();
    expect(await client.text('AUTH', 'shop', 'shop')).toBe('+OK');
    return client;
  };
  const first = await come();
  await first.text('SET', 'k', 'v');
  for (let i = 0; i < 3; i++) expect(await first.text('GET', 'k')).toBe('"v"');
  await server.askAdmin('DELETE', '/v1/tenants/shop');
  await expect
    .poll(async () => (await server.askAdmin('GET', '/v1/tenants/shop')).status)
    .toBe(404);
  const second = await come();
  expect(await second.text('GET', 'k')).toBe('(nil)');
  for (const client of [first, second]) client.close();
});
