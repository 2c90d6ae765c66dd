// Errors in INFO, and refusals by a tiny `maxmemory`, compared with redis-server.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisInstalled } from '../commands/redis-server.ts';
import { Polyrow } from '../support/polyrow.ts';
import { RedisProcess } from '../support/redis-server.ts';
import type { RespClient } from '../support/resp-client.ts';

const failing: readonly (readonly string[])[] = [
  ['SET', 'text', 'x'],
  ['LPUSH', 'text', 'x'],
  ['NOSUCHCOMMAND'],
  ['GET'],
  ['SELECT', '99'],
  ['EVALSHA', 'f'.repeat(40), '0'],
  ['XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', 's', '>'],
  ['EVAL', "return redis.error_reply('MINE of a script')", '0'],
  ['EVAL', "return redis.call('lpush', 'text', 'x')", '0'],
  ['EVAL', "redis.pcall('lpush', 'text', 'x') return 1", '0'],
  ['EVAL', "return redis.pcall('lpush', 'text', 'x')", '0'],
  ['EVAL_RO', "return redis.call('set', 'text', 'x')", '0'],
  ['MULTI'],
  ['NOSUCHCOMMAND'],
  ['EXEC'],
  ['MULTI'],
  ['LPUSH', 'text', 'x'],
  ['INCR', 'text'],
  ['EXEC'],
  ['AUTH', 'wrong', 'wrong'],
];

// Replies of redis-server while its limit is one byte, and after.
const full: readonly (readonly string[])[] = [
  ['FLUSHALL'],
  ['CONFIG', 'SET', 'maxmemory', '1'],
  ['SET', 'k', 'v'],
  ['GET', 'k'],
  ['DEL', 'k'],
  ['MULTI'],
  ['SET', 'k', 'v'],
  ['EXEC'],
  ['EVAL', "return redis.call('set', 'k', 'v')", '1', 'k'],
  ['CONFIG', 'SET', 'maxmemory', '0'],
  ['SET', 'k', 'v'],
];

async function answers(client: RespClient, commands: readonly (readonly string[])[]) {
  const all: string[] = [];
  for (const words of commands) all.push(`${words.join(' ')}: ${await client.text(...words)}`);
  return all;
}

async function info(client: RespClient, section: string, pattern: RegExp): Promise<string[]> {
  const reply = await client.command('INFO', section);
  const text = 'text' in reply ? reply.text : '';
  return text.split('\r\n').filter((line) => pattern.test(line));
}

async function fieldsOf(client: RespClient): Promise<string[]> {
  const lines = await info(client, 'default', /^\w+:/);
  return lines.map((line) => line.slice(0, line.indexOf(':')));
}

/** Names that redis_exporter makes metrics of and that have a meaning here, if only that there is none of it. */
const shown =
  /\b(rdb_(saves|last_bgsave)|allocator_rss|mem_clients|mem_repl|repl_backlog|total_net_repl|evicted_clients|io_thread|used_memory_(functions|scripts)\b|active_defrag_(hits|misses|key|running|time)|module_fork|lru_clock|used_memory_dataset|current_(cow|fork))/;
const library =
  "#!lua name=monitored\nredis.register_function('monitored', function() return 1 end)";

/** By what the lines tell: the order of codes is that in which each came first. */
async function errorsOf(client: RespClient): Promise<string[]> {
  await client.command('CONFIG', 'RESETSTAT');
  await answers(client, failing);
  const codes = await info(client, 'errorstats', /^errorstat_/);
  const total = await info(client, 'stats', /^total_error_replies/);
  return [...codes, ...total].sort();
}

describe.skipIf(!redisInstalled)('beside redis-server', () => {
  let real: RedisProcess;
  beforeAll(async () => {
    real = await RedisProcess.start();
  });
  afterAll(() => real.remove());

  describe.each(['memory', 'kv'] as const)('%s', (model) => {
    let polyrow: Polyrow;
    let ours: RespClient;
    let theirs: RespClient;
    beforeAll(async () => {
      polyrow = await Polyrow.start({ flags: ['--redis.default-model', model] });
      ours = await polyrow.client();
      theirs = await real.client();
      for (const client of [ours, theirs]) await client.command('FLUSHALL');
    });
    afterAll(() => polyrow.remove());

    test('errors are counted by their codes', async () => {
      const expected = await errorsOf(theirs);
      expect(expected).toContain('errorstat_MINE:count=1');
      expect(await errorsOf(ours)).toEqual(expected);
    });

    test('INFO has what monitoring reads, but what only a process of redis-server has', async () => {
      const [mine, others] = [await fieldsOf(ours), await fieldsOf(theirs)];
      expect(others.filter((name) => !mine.includes(name)).join(' ')).not.toMatch(shown);
      await ours.command('FUNCTION', 'LOAD', library);
      expect(await info(ours, 'memory', /^used_memory_(functions|scripts):/)).toEqual([
        `used_memory_functions:${library.length}`,
        expect.stringMatching(/^used_memory_scripts:\d+$/),
      ]);
      await ours.command('FUNCTION', 'FLUSH');
      await ours.command('SAVE');
      const saves = await info(ours, 'persistence', /^rdb_(saves|last_bgsave_time_sec):/);
      expect(saves.join()).toMatch(/^rdb_saves:[1-9]\d*,rdb_last_bgsave_time_sec:\d+$/);
    });

    test('CONFIG RESETSTAT forgets them', async () => {
      await ours.command('GET');
      await ours.command('CONFIG', 'RESETSTAT');
      expect(await info(ours, 'errorstats', /^errorstat_/)).toEqual([]);
    });

    test('an empty server is above a limit of one byte', async () => {
      const withoutCode = (line: string): string => line.replace(/ script: .*/, '');
      const expected = (await answers(theirs, full)).map(withoutCode);
      expect(expected.filter((line) => line.includes('OOM'))).toHaveLength(3);
      expect((await answers(ours, full)).map(withoutCode)).toEqual(expected);
    });

    test('a transaction that was queued before memory was full is discarded', async () => {
      const other = await polyrow.client();
      await ours.command('MULTI');
      await ours.command('SET', 'k', 'v');
      await other.command('CONFIG', 'SET', 'maxmemory', '1');
      expect(await ours.text('EXEC')).toMatch(/EXECABORT.*OOM/);
      await other.command('CONFIG', 'SET', 'maxmemory', '0');
      expect(await ours.text('EXEC')).toContain('EXEC without MULTI');
    });

    test('how much memory the machine has', async () => {
      const expected = await info(theirs, 'memory', /^total_system_memory/);
      expect(expected).toHaveLength(2);
      expect(await info(ours, 'memory', /^total_system_memory/)).toEqual(expected);
    });

    test('MEMORY STATS has the fields of redis-server', async () => {
      const names = async (client: RespClient): Promise<string[]> => {
        const reply = await client.command('MEMORY', 'STATS');
        const items = 'items' in reply ? reply.items : [];
        return items.filter((_, i) => i % 2 === 0).map((item) => ('text' in item ? item.text : ''));
      };
      await theirs.command('SET', 'k', 'v');
      await ours.command('SET', 'k', 'v');
      expect(await names(ours)).toEqual(await names(theirs));
    });

    test('ZRANGE BYLEX of members with different scores', async () => {
      const commands = [
        ['ZADD', 'z', '1', 'a', '2', 'b', '3', 'c', '4', 'd'],
        ['ZRANGE', 'z', '[b', '[c', 'BYLEX'],
        ['ZRANGE', 'z', '(b', '+', 'BYLEX'],
        ['ZRANGE', 'z', '-', '(c', 'BYLEX'],
        ['ZLEXCOUNT', 'z', '[b', '[c'],
        ['ZRANGESTORE', 'y', 'z', '[b', '[c', 'BYLEX'],
        ['ZRANGE', 'z', '[x', '[y', 'BYLEX'],
      ];
      expect(await answers(ours, commands)).toEqual(await answers(theirs, commands));
    });
  });
});
