// kill -9 during a script with many effects, and while rows are evicted. What a script wrote is one entry of the log: all
// of it is there afterwards, or nothing. What was evicted, and seen to be gone, does not come back.
//
//   POLYROW_FULL=1    100 kills of each kind instead of a few
//   KILLS=n           that many; KILL_SEED=n repeats the moments of a run

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { Random } from '../support/random.ts';
import { ConnectionLost, type RespClient } from '../support/resp-client.ts';
import { seedFrom } from '../support/seed.ts';

const full = process.env['POLYROW_FULL'] === '1';
const kills = Number(process.env['KILLS'] ?? (full ? 100 : 1));
const seed = seedFrom('KILL_SEED');
const keys = 400;

let server: Polyrow | undefined;
afterEach(async () => {
  await server?.remove();
  server = undefined;
});

/** Runs until the connection is lost. */
async function untilLost(work: () => Promise<void>): Promise<void> {
  try {
    for (;;) await work();
  } catch (error) {
    if (!(error instanceof ConnectionLost)) throw error;
  }
}

// Writes its number to keys of several types. Now and then it takes longer than a slice, and goes on in a form that yields.
const manyEffects = `
  local n, spin = ARGV[1], tonumber(ARGV[2])
  for i = 1, tonumber(ARGV[3]) do
    redis.call('SET', KEYS[1] .. i, n)
    redis.call('HSET', KEYS[1] .. 'hash', i, n)
    redis.call('ZADD', KEYS[1] .. 'scores', n, i)
    redis.call('RPUSH', KEYS[1] .. 'list', n)
  end
  redis.call('LTRIM', KEYS[1] .. 'list', -tonumber(ARGV[3]), -1)
  local x = 0
  for i = 1, spin do x = x + i end
  redis.call('DEL', KEYS[1] .. 'gone')
  return redis.call('SET', KEYS[1] .. 'last', n)
`;

/** The one number that all effects of a script left, 0 for none. */
async function numberLeft(client: RespClient, prefix: string, where: string): Promise<number> {
  const names = Array.from({ length: keys }, (_, i) => `${prefix}${i + 1}`);
  const texts = await Promise.all([
    client.command('MGET', ...names),
    client.command('HVALS', `${prefix}hash`),
    client.command('LRANGE', `${prefix}list`, '0', '-1'),
    client.command('ZRANGE', `${prefix}scores`, '0', '-1', 'WITHSCORES'),
  ]);
  const [strings, fields, elements, scored] = texts.map((value) =>
    'items' in value ? value.items.map((one) => ('text' in one ? one.text : '')) : [],
  );
  const scores = scored!.filter((_, i) => i % 2 === 1);
  const seen = new Set([...strings!, ...fields!, ...elements!, ...scores]);
  expect([...seen], where).toHaveLength(1);
  const [only] = seen;
  if (only === '') return 0;
  const sizes = [fields, elements, scores].map((one) => one!.length);
  expect(sizes, where).toEqual([keys, keys, keys]);
  expect(await client.text('GET', `${prefix}last`), where).toBe(`"${only}"`);
  return Number(only);
}

test.each(['memory', 'kv'])(
  `effects of scripts on a %s table survive ${kills} kills as a whole`,
  { timeout: 3_600_000 },
  async (model) => {
    const random = new Random(seed);
    const small = ['--wal.segment-bytes', '1mb', '--wal.checkpoint-bytes', '2mb'];
    // The scripts wait for each other, however slow the machine is.
    small.push('--redis.busy-reply-threshold', '0');
    server = await Polyrow.start({
      flags: ['--wal.fsync', 'always', '--redis.default-model', model, ...small],
    });
    const prefixes = ['a:', 'b:', 'c:'];
    const answered = new Map(prefixes.map((prefix) => [prefix, 0]));
    for (let kill = 1; kill <= kills; kill++) {
      const where = `seed ${seed}, kill ${kill}`;
      const before = [...answered.values()].reduce((sum, n) => sum + n, 0);
      const clients = await Promise.all(prefixes.map(() => server!.client()));
      const sent = new Map<string, number>();
      const working = prefixes.map((prefix, i) => {
        let n = answered.get(prefix)!;
        return untilLost(async () => {
          n++;
          sent.set(prefix, n);
          const spin = n % 8 === 0 ? 3_000_000 : 0;
          const words = [manyEffects, '1', prefix, n, spin, keys];
          expect(await clients[i]!.text('EVAL', ...words)).toBe('+OK');
          answered.set(prefix, n);
        });
      });
      while ([...answered.values()].reduce((sum, n) => sum + n, 0) === before) await sleep(5);
      await sleep(random.below(300));
      await server.kill();
      await Promise.all(working);
      await server.restart();
      const reader = await server.client();
      for (const prefix of prefixes) {
        const left = await numberLeft(reader, prefix, `${where}, ${prefix}`);
        expect(left, where).toBeGreaterThanOrEqual(answered.get(prefix)!);
        expect(left, where).toBeLessThanOrEqual(sent.get(prefix) ?? answered.get(prefix)!);
        answered.set(prefix, left);
      }
      reader.close();
    }
    await server.stop();
  },
);

/** What a client was told of a key. */
interface Told {
  /** The greatest number that it holds for sure, or is gone. */
  answered: number;
  /** The greatest that it may hold. */
  sent: number;
  /** It was seen to be gone with nothing under way, after that number. */
  gone: boolean;
}

const valueBytes = 2000;

test(`rows that are evicted stay gone over ${kills} kills`, { timeout: 3_600_000 }, async () => {
  const random = new Random(seed + 1);
  const flags = ['--wal.fsync', 'always', '--wal.checkpoint-bytes', '4mb'];
  flags.push('--memory.max-bytes', '2mb', '--memory.eviction-policy', 'allkeys-lru');
  server = await Polyrow.start({ flags });
  const told = new Map<string, Told>();
  let number = 0;
  let evicted = 0;
  for (let kill = 1; kill <= kills; kill++) {
    const where = `seed ${seed}, kill ${kill}`;
    const before = evicted;
    // Each client has keys of its own, so that it knows what they may hold.
    const working = [0, 1, 2].map(async (writer) => {
      const client = await server!.client();
      await untilLost(async () => {
        const names = Array.from({ length: 60 }, () => `${writer}:${random.below(1000)}`);
        for (const name of names) {
          const one = told.get(name) ?? { answered: 0, sent: 0, gone: false };
          one.sent = ++number;
          one.gone = false;
          told.set(name, one);
        }
        const filler = 'v'.repeat(valueBytes);
        const sets = names.map((name) => ['SET', name, `${told.get(name)!.sent} ${filler}`]);
        for (const reply of await client.pipeline(sets)) {
          expect(reply).toMatchObject({ text: 'OK' });
        }
        for (const name of names) told.get(name)!.answered = told.get(name)!.sent;
        const old = Array.from({ length: 60 }, () => `${writer}:${random.below(1000)}`);
        const lengths = await client.pipeline(old.map((name) => ['STRLEN', name]));
        for (const [i, length] of lengths.entries()) {
          const one = told.get(old[i]!);
          if (one === undefined || !('text' in length) || length.text !== '0' || one.gone) continue;
          one.gone = true;
          evicted++;
        }
      });
    });
    while (evicted < before + 50) await sleep(5);
    await sleep(random.below(300));
    await server.kill();
    await Promise.all(working);
    await server.restart();
    const reader = await server.client();
    const names = [...told.keys()];
    const values = await reader.pipeline(names.map((name) => ['GETRANGE', name, 0, 20]));
    let there = 0;
    for (const [i, value] of values.entries()) {
      const one = told.get(names[i]!)!;
      const text = 'text' in value ? value.text : '';
      if (text === '') {
        one.gone = true;
        one.answered = one.sent;
        continue;
      }
      there++;
      const held = Number(text.split(' ')[0]);
      const which = `${where}: ${names[i]} holds ${held}, told ${JSON.stringify(one)}`;
      expect(one.gone, which).toBe(false);
      expect(held, which).toBeGreaterThanOrEqual(one.answered);
      expect(held, which).toBeLessThanOrEqual(one.sent);
      one.answered = held;
      one.sent = held;
    }
    expect(await reader.text('DBSIZE'), where).toBe(`:${there}`);
    expect(there * valueBytes, where).toBeLessThan(2.5 * 1024 * 1024);
    reader.close();
  }
  await server.stop();
});
