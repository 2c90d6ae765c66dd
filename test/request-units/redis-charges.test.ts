// Charges of commands over a real listener and pod: by class and size, by tenant, and without other
// effects.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RedisMetering } from '../../access/redis/metering.ts';
import { Meter } from '../../request-units/meter.ts';
import { shippedTable } from '../../request-units/pru-table.ts';
import { RowPricer } from '../../request-units/row-pricer.ts';
import { Random } from '../support/random.ts';
import type { RespClient, Word } from '../support/resp-client.ts';
import { itemsOf, show, textOf } from '../support/resp-value.ts';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';

let server: TenantsServer;
let client: RespClient;
let metering: RedisMetering;

beforeEach(async () => {
  server = await TenantsServer.start();
  const pricer = new RowPricer({ costs: shippedTable.models.memory, isCached: false });
  metering = new RedisMetering({ meter: new Meter({ plane: 'redis', run: 'test' }), pricer });
  server.redis.metering = metering;
  client = await server.client();
});
afterEach(() => server.stop());

type Numbers = Record<string, number>;

/** A map of names and numbers; what is no number is left out. */
async function numbers(from: RespClient, ...words: Word[]): Promise<Numbers> {
  const items = itemsOf(await from.command(...words));
  const found: Numbers = {};
  for (let i = 0; i + 1 < items.length; i += 2) {
    const { type } = items[i + 1]!;
    if (type === '*') continue;
    const value = Number(textOf(items[i + 1]!));
    if (!Number.isNaN(value)) found[textOf(items[i]!)] = value;
  }
  return found;
}

async function costOf(...words: Word[]): Promise<Numbers> {
  await client.command(...words);
  return await numbers(client, 'RU', 'LAST');
}

async function stats(from = client): Promise<Numbers> {
  return await numbers(from, 'RU', 'STATS');
}

describe('a command', () => {
  test('is charged to its class', async () => {
    const classOf = async (...words: Word[]): Promise<string> => {
      const before = await stats();
      await client.command(...words);
      const after = await stats();
      const names = ['read', 'write', 'scan', 'other'].filter((name) => {
        // RU STATS itself is among the others.
        const added = after[`${name}_requests`]! - before[`${name}_requests`]!;
        return added - (name === 'other' ? 1 : 0) > 0;
      });
      return names.join();
    };
    expect(await classOf('SET', 'a', '1')).toBe('write');
    expect(await classOf('GET', 'a')).toBe('read');
    expect(await classOf('DEL', 'a')).toBe('write');
    expect(await classOf('ZADD', 'z', '1', 'm')).toBe('write');
    expect(await classOf('SCAN', '0')).toBe('scan');
    expect(await classOf('KEYS', '*')).toBe('scan');
    expect(await classOf('PING')).toBe('other');
    expect(await classOf('CLIENT', 'ID')).toBe('other');
  });

  test('costs more the larger it is, and never less', async () => {
    const shapes: [string, (size: number) => Promise<Numbers>][] = [
      ['SET', (size) => costOf('SET', 'v', 'x'.repeat(size))],
      ['GET', () => costOf('GET', 'v')],
      ['HSET', (size) => costOf('HSET', 'h', 'f', 'x'.repeat(size))],
      ['RPUSH', (size) => costOf('RPUSH', 'l', 'x'.repeat(size))],
      ['ECHO', (size) => costOf('ECHO', 'x'.repeat(size))],
    ];
    const before: Record<string, Numbers> = {};
    for (const size of [1, 100, 1000, 10_000, 100_000, 1_000_000]) {
      for (const [name, run] of shapes) {
        const cost = await run(size);
        for (const unit of ['ru', 'cpu', 'memory', 'io', 'network']) {
          const least = before[name]?.[unit] ?? 0;
          expect(cost[unit], `${name} of ${size} B: ${unit}`).toBeGreaterThanOrEqual(least);
        }
        before[name] = cost;
      }
    }
    for (const [name] of shapes) expect(before[name]!['ru'], name).toBeGreaterThan(100);
  });

  test('that writes takes of the disk, one that reads from memory does not', async () => {
    expect((await costOf('SET', 'a', 'x'.repeat(1000)))['io']).toBeGreaterThan(0);
    expect((await costOf('GET', 'a'))['io']).toBe(0);
  });

  test('that reads 1 kB costs 1', async () => {
    await client.command('SET', 'k'.repeat(16), 'x'.repeat(1024));
    expect(await costOf('GET', 'k'.repeat(16))).toMatchObject({
      ru: expect.closeTo(1, 1) as number,
      cpu: expect.closeTo(1, 1) as number,
      network: expect.closeTo(1, 1) as number,
    });
  });

  test('about all of a long collection costs by its length', async () => {
    for (const length of [10, 1000]) {
      const fields = Array.from({ length }, (_, i) => [`field${i}`, 'x'.repeat(20)]).flat();
      await client.command('HSET', `h${length}`, ...fields);
    }
    const short = await costOf('HGETALL', 'h10');
    const long = await costOf('HGETALL', 'h1000');
    expect(long['ru']! / short['ru']!).toBeGreaterThan(10);
    expect((await costOf('HGET', 'h1000', 'field1'))['ru']).toBeLessThan(2);
  });

  test('that was refused costs nothing', async () => {
    const before = await stats();
    for (const words of [
      ['NOSUCHCOMMAND'],
      ['SET', 'a'],
      ['SET', 'a', '1', 'NONSENSE'],
      ['EXEC'],
      ['SELECT', '99999'],
      ['CONFIG', 'NOTHING'],
    ]) {
      const cost = await costOf(...words);
      expect(cost, words.join(' ')).toMatchObject({ ru: 0, cpu: 0, network: 0 });
    }
    const after = await stats();
    expect(after['rejected']! - before['rejected']!).toBe(6);
    expect(after['write_requests']).toBe(before['write_requests']);
    // The requests since then are those of RU itself.
    expect(after['requests']! - before['requests']!).toBe(7);
  });

  test('that failed on what it found is charged', async () => {
    await client.command('SET', 'a', '1');
    const cost = await costOf('LPUSH', 'a', 'x');
    expect(cost['ru']).toBeGreaterThan(0);
    expect((await stats())['errors']).toBe(1);
  });

  test('that waited is charged once, when it is answered', async () => {
    const before = await stats();
    const other = await server.client();
    const waiting = client.command('BLPOP', 'queue', '5');
    await other.command('PING');
    await other.command('RPUSH', 'queue', 'x');
    await waiting;
    const last = await numbers(client, 'RU', 'LAST');
    expect(last['ru']).toBeGreaterThan(0);
    const after = await stats();
    // BLPOP and RPUSH.
    expect(after['write_requests']! - before['write_requests']!).toBe(2);
    const timedOut = await costOf('BLPOP', 'queue', '0.01');
    expect(timedOut['ru']).toBeGreaterThan(0);
    other.close();
  });
});

describe('a transaction', () => {
  test('is one request of all its commands', async () => {
    const alone = await costOf('SET', 'a', 'x'.repeat(500));
    const before = await stats();
    await client.pipeline([
      ['MULTI'],
      ['SET', 'a', 'x'.repeat(500)],
      ['SET', 'b', 'x'.repeat(500)],
      ['SET', 'c', 'x'.repeat(500)],
    ]);
    const exec = await costOf('EXEC');
    const after = await stats();
    expect(after['write_requests']! - before['write_requests']!).toBe(1);
    expect(exec['cpu']).toBeGreaterThan(2 * alone['cpu']!);
    expect(exec['cpu']).toBeLessThan(4 * alone['cpu']!);
    expect(exec['network']).toBeGreaterThan(1.3);
  });

  test('that is discarded is charged for its bytes', async () => {
    await client.pipeline([['MULTI'], ['SET', 'a', 'x'.repeat(10_000)]]);
    const discard = await costOf('DISCARD');
    expect(discard['network']).toBeGreaterThan(9);
    expect(discard['io']).toBe(0);
  });
});

describe('a tenant', () => {
  test('has an account of its own', async () => {
    server.tenant('red');
    const red = await server.client('red');
    for (let i = 0; i < 10; i++) await red.command('SET', `k${i}`, 'x'.repeat(1000));
    await red.command('SELECT', '3');
    await red.command('SET', 'a', 'x');
    const own = await stats(red);
    expect(own['write_requests']).toBe(11);
    expect(own['db3_ru']).toBeGreaterThanOrEqual(1);
    expect(own['db0_ru']).toBeGreaterThanOrEqual(10);
    expect((await stats())['write_requests']).toBe(0);
    expect(await red.text('INFO', 'ru')).toContain('ru_write:');
    const number = server.principals.tenant('red')!.number;
    expect(metering.meter.find(number)!.usage().classes.write.requests).toBe(11);
  });

  test('has spent what its commands have cost', async () => {
    const random = new Random(1);
    const before = (await stats())['ru']!;
    let spent = 0;
    const statsCost = (await numbers(client, 'RU', 'STATS'))['ru']! - before;
    for (let i = 0; i < 200; i++) {
      const size = random.below(3000);
      const words: Word[][] = [
        ['SET', `k${i % 10}`, 'x'.repeat(size)],
        ['GET', `k${random.below(10)}`],
        ['HSET', `h${i % 10}`, 'f', 'x'.repeat(size)],
        ['KEYS', 'k*'],
      ];
      await client.command(...words[random.below(words.length)]!);
      spent += (await numbers(client, 'RU', 'LAST'))['ru']!;
    }
    const usage = metering.meter.account(0).usage();
    const { read, write, scan } = usage.classes;
    expect(statsCost).toBeGreaterThan(0);
    expect(read.lru + write.lru + scan.lru).toBeCloseTo(spent, 1);
  });
});

describe('a pipeline', () => {
  test('costs what its commands cost one by one', async () => {
    const commands: Word[][] = Array.from({ length: 300 }, (_, i) => [
      ['SET', `k${i % 50}`, 'x'.repeat(300)],
      ['GET', `k${i % 50}`],
      ['HSET', 'h', `f${i % 50}`, 'x'.repeat(40)],
    ]).flat();
    const spent = async (run: () => Promise<unknown>): Promise<Numbers> => {
      const before = await stats();
      await run();
      const after = await stats();
      const of = (name: string) => after[name]! - before[name]!;
      return {
        requests: of('read_requests') + of('write_requests'),
        ru: of('read_ru') + of('write_ru'),
        cpu: of('read_cpu') + of('write_cpu'),
      };
    };
    const together = await spent(() => client.pipeline(commands));
    const alone = await spent(async () => {
      for (const words of commands) await client.command(...words);
    });
    expect(together['requests']).toBe(900);
    expect(alone['requests']).toBe(900);
    // Pricing by mean sizes differs a little, and never upwards.
    expect(together['ru']! / alone['ru']!).toBeGreaterThan(0.97);
    expect(together['ru']! / alone['ru']!).toBeLessThan(1.001);
    expect(together['cpu']! / alone['cpu']!).toBeCloseTo(1, 1);
  });
});

describe('RU EXPLAIN', () => {
  const explained = async (...words: Word[]): Promise<Numbers> =>
    await numbers(client, 'RU', 'EXPLAIN', ...words);

  test('estimates what commands on what is there then cost', async () => {
    await client.command('SET', 'v', 'x'.repeat(5000));
    const fields = Array.from({ length: 400 }, (_, i) => [`field${i}`, 'x'.repeat(30)]).flat();
    await client.command('HSET', 'h', ...fields);
    const elements = Array.from({ length: 500 }, () => 'e'.repeat(50));
    await client.command('RPUSH', 'l', ...elements);
    const members = Array.from({ length: 300 }, (_, i) => [i, `member${i}`]).flat();
    await client.command('ZADD', 'z', ...members);
    for (const words of [
      ['GET', 'v'],
      ['HGETALL', 'h'],
      ['HGET', 'h', 'field1'],
      ['LRANGE', 'l', '0', '-1'],
      ['LRANGE', 'l', '0', '9'],
      ['ZRANGE', 'z', '0', '-1'],
      ['SET', 'v', 'y'.repeat(2000)],
      ['HSET', 'h', 'a', '1', 'b', '2'],
      ['EXISTS', 'v', 'nothing'],
      ['GET', 'nothing'],
    ]) {
      const guess = (await explained(...words))['ru']!;
      const cost = (await costOf(...words))['ru']!;
      expect(guess / cost, `${words.join(' ').slice(0, 40)}: ${guess} of ${cost}`).toBeGreaterThan(
        0.5,
      );
      expect(guess / cost, `${words.join(' ').slice(0, 40)}: ${guess} of ${cost}`).toBeLessThan(2);
    }
  });

  test('runs nothing', async () => {
    await client.command('RU', 'EXPLAIN', 'SET', 'a', '1');
    await client.command('RU', 'EXPLAIN', 'FLUSHALL');
    expect(await client.text('EXISTS', 'a')).toBe(':0');
  });

  test('tells of a script what a run costs, and undoes the run', async () => {
    const source = `
      for i = 1, 40 do redis.call('HSET', KEYS[1], 'field' .. i, ARGV[1]) end
      return redis.call('INCR', 'runs')`;
    const library = `#!lua name=priced
      redis.register_function('priced', function(keys, args)
        for i = 1, 40 do redis.call('RPUSH', keys[1], args[1]) end
        return #redis.call('LRANGE', keys[1], 0, -1)
      end)`;
    await client.command('FUNCTION', 'LOAD', library);
    for (const words of [
      ['EVAL', source, '1', 'h', 'x'],
      ['FCALL', 'priced', '1', 'l', 'x'],
    ]) {
      const guess = (await explained(...words))['ru']!;
      const cost = (await costOf(...words))['ru']!;
      expect(guess / cost, `${words[0]}: ${guess} of ${cost}`).toBeCloseTo(1, 1);
    }
    expect(await client.text('GET', 'runs')).toBe('"1"');
  });

  test('tells the stages of a walk apart', async () => {
    await client.command('SADD', 's', ...Array.from({ length: 100 }, (_, i) => `m${i}`));
    const text = await client.text('RU', 'EXPLAIN', 'SMEMBERS', 's');
    expect(text).toContain('"stage" "lookup" "items" :1');
    expect(text).toContain('"stage" "walk" "items" :100');
  });

  test('is refused for what the user may not do', async () => {
    server.user('default', 'reader', { open: true, rules: '+@read +ru ~mine:* &*' });
    const reader = await server.client('reader');
    await client.command('SET', 'other', 'x'.repeat(5000));
    expect(await reader.text('RU', 'EXPLAIN', 'GET', 'mine:a')).toContain('"command" "get"');
    expect(await reader.text('RU', 'EXPLAIN', 'GET', 'other')).toContain('NOPERM');
    expect(await reader.text('RU', 'EXPLAIN', 'SET', 'mine:a', '1')).toContain('NOPERM');
  });

  test('refuses what is no command', async () => {
    expect(await client.text('RU', 'EXPLAIN', 'NOSUCH', 'x')).toContain('ERR Invalid command');
    expect(await client.text('RU', 'EXPLAIN', 'GET')).toContain('ERR Invalid number of arguments');
  });
});

describe('switched off', () => {
  test('answers are the same', async () => {
    const random = new Random(7);
    const commands: Word[][] = [];
    for (let i = 0; i < 400; i++) {
      const key = `k${random.below(8)}`;
      const candidates: Word[][] = [
        ['SET', key, i],
        ['GET', key],
        ['INCR', key],
        ['LPUSH', `l${key}`, i],
        ['LRANGE', `l${key}`, '0', '-1'],
        ['HSET', `h${key}`, `f${i % 5}`, i],
        ['HGETALL', `h${key}`],
        ['ZADD', `z${key}`, i, `m${i % 7}`],
        ['ZRANGEBYSCORE', `z${key}`, '-inf', '+inf', 'WITHSCORES'],
        ['BADCOMMAND', key],
        ['LPUSH', key, 'x'],
        ['MULTI'],
        ['EXEC'],
        ['DEL', key, `l${key}`],
      ];
      commands.push(candidates[random.below(candidates.length)]!);
    }
    const answers = async (isOn: boolean): Promise<string[]> => {
      await client.command('FLUSHALL');
      server.redis.metering = isOn ? metering : undefined;
      const replies = await client.pipeline(commands);
      await client.pipeline([['DISCARD'], ['UNWATCH']]);
      return replies.map(show);
    };
    const on = await answers(true);
    const off = await answers(false);
    expect(on).toEqual(off);
  });

  test('nothing is charged, and RU says so', async () => {
    server.redis.metering = undefined;
    await client.command('SET', 'a', '1');
    expect(await client.text('RU', 'LAST')).toContain('ERR metering is off');
    expect(await client.text('INFO', 'ru')).toContain('ru_metering:off');
    server.redis.metering = metering;
    expect((await stats())['write_requests']).toBe(0);
  });

  test('it can be switched while commands are on their way', async () => {
    for (let i = 0; i < 50; i++) {
      server.redis.metering = i % 2 === 0 ? metering : undefined;
      await client.pipeline(Array.from({ length: 20 }, (_, k) => ['SET', `k${k}`, i]));
    }
    server.redis.metering = metering;
    expect((await stats())['write_requests']).toBe(25 * 20);
  });
});
