// EVAL and its relatives, beside redis-server; and scripts that take long.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisInstalled } from '../commands/redis-server.ts';
import { Polyrow } from '../support/polyrow.ts';
import { RedisProcess } from '../support/redis-server.ts';
import type { RespClient, Word } from '../support/resp-client.ts';
import { comparedScripts } from './scripts.ts';

const unknownSha = 'f'.repeat(40);
const loaded = '4ca238f611c9d0ae4e9a75a5dbac22aedc1e4428';

const comparedCommands: readonly (readonly Word[])[] = [
  ['SET', 's', 'str'],
  ...comparedScripts.map((script) => ['EVAL', script, '0']),
  ['EVAL', 'return {KEYS[1], KEYS[2], ARGV[1], #ARGV, #KEYS}', '2', 'k1', 'k2', 'a1', 'a2'],
  ['EVAL', 'return ARGV[1]', '0', Buffer.from([0, 255, 128, 13, 10])],
  ['EVALSHA', unknownSha, '0'],
  ['EVALSHA', 'abc', '0'],
  ['EVAL', 'return 1', '-1'],
  ['EVAL', 'return 1', '2', 'a'],
  ['EVAL', 'return 1', 'x'],
  ['EVAL', 'return 1'],
  ['SCRIPT', 'LOAD', 'return 5'],
  ['SCRIPT', 'EXISTS', loaded, unknownSha],
  ['EVALSHA', loaded, '0'],
  ['EVALSHA', loaded.toUpperCase(), '0'],
  ['EVALSHA_RO', loaded, '0'],
  ['SCRIPT', 'LOAD', 'if'],
  ['SCRIPT', 'FLUSH', 'foo'],
  ['SCRIPT', 'FLUSH', 'ASYNC'],
  ['SCRIPT', 'EXISTS', loaded],
  ['SCRIPT', 'KILL'],
  ['SCRIPT', 'nosuch'],
  ['EVAL', '#!lua\nreturn 1', '0'],
  ['EVAL', '#!lua flags=no-writes\nreturn redis.call("set","a","b")', '0'],
  ['EVAL', '#!lua flags=nope\nreturn 1', '0'],
  ['EVAL', '#!python\nreturn 1', '0'],
  ['EVAL_RO', 'return redis.call("set","x",1)', '0'],
  ['EVAL_RO', 'return redis.call("get","s")', '0'],
  ['MULTI'],
  ['EVAL', 'return redis.call("incr", KEYS[1])', '1', 'count'],
  ['EVAL', 'return redis.call("nosuch")', '0'],
  ['EXEC'],
  ['EVAL', 'redis.call("set", "before", 1) error("then it fails")', '0'],
  ['GET', 'before'],
];

describe.each(['memory', 'kv'] as const)('scripts on the %s model', (model) => {
  let polyrow: Polyrow;
  let client: RespClient;
  beforeAll(async () => {
    polyrow = await Polyrow.start({ flags: ['--redis.default-model', model] });
    client = await polyrow.client(2);
  });
  afterAll(async () => {
    await polyrow.stop();
    await polyrow.remove();
  });

  test.skipIf(!redisInstalled).each([2, 3] as const)(
    'answers as redis-server does, RESP%i',
    async (version) => {
      const redis = await RedisProcess.start();
      try {
        const ours = await polyrow.client(version);
        const theirs = await redis.client(version);
        await ours.command('FLUSHALL');
        for (const words of comparedCommands) {
          const expected = await theirs.text(...words);
          expect(`${words.join(' ')}: ${await ours.text(...words)}`).toBe(
            `${words.join(' ')}: ${expected}`,
          );
        }
      } finally {
        await redis.remove();
      }
    },
  );

  test('a script that takes long does each of its commands once', async () => {
    await client.command('DEL', 'n', 'list');
    const script = `
      for i = 1, 10 do redis.call('INCR', KEYS[1]) redis.call('RPUSH', 'list', i) end
      local x = 0
      for i = 1, 10000000 do x = x + i % 7 end
      redis.call('RPUSH', 'list', 'end')
      return {redis.call('GET', KEYS[1]), redis.call('LLEN', 'list'), x}`;
    expect(await client.text('EVAL', script, '1', 'n')).toBe('*["10" :11 :29999997]');
    expect(await client.text('GET', 'n')).toBe('"10"');
    expect(await client.text('LRANGE', 'list', '0', '2')).toBe('*["1" "2" "3"]');
  });

  test('coroutines go on after commands', async () => {
    await client.command('DEL', 'c');
    const script = `
      redis.call('INCR', 'c')
      local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(redis.call('INCR', 'c')) end end)
      return {co(), co(), co()}`;
    expect(await client.text('EVAL', script, '0')).toBe('*[:2 :3 :4]');
    expect(await client.text('GET', 'c')).toBe('"4"');
  });

  test('while a script does not end other databases are served, and SCRIPT KILL ends it', async () => {
    const other = await polyrow.client(2);
    const running = client.text(
      'EVAL',
      'pcall(function() while true do end end) while true do end',
      '0',
    );
    await other.command('SELECT', '1');
    expect(await other.text('SET', 'a', 'b')).toBe('+OK');
    let killed = '';
    while (killed !== '+OK') killed = await other.text('SCRIPT', 'KILL');
    expect(await running).toContain('Script killed by user with SCRIPT KILL');
    expect(await client.text('PING')).toBe('+PONG');
  });

  test('a script that has written is not killed', async () => {
    const other = await polyrow.client(2);
    const script = `redis.call('SET', 'w', 1) local x = 0
      for i = 1, 50000000 do x = x + i end return redis.call('GET', 'w')`;
    const running = client.text('EVAL', script, '0');
    let answer = await other.text('SCRIPT', 'KILL');
    while (answer.startsWith('-NOTBUSY')) answer = await other.text('SCRIPT', 'KILL');
    expect(answer).toContain('UNKILLABLE');
    expect(await running).toBe('"1"');
  });

  test('what a script publishes leaves once', async () => {
    const listener = await polyrow.client(2);
    await listener.command('SUBSCRIBE', 'news');
    const heard: unknown[] = [];
    listener.onReply = (reply) => heard.push(reply);
    const script = `redis.call('GET', 'cold') local n = redis.call('PUBLISH', 'news', ARGV[1])
      if ARGV[2] == 'long' then for i = 1, 10000000 do n = n + 0 end end return n`;
    expect(await client.text('EVAL', script, '0', 'one', 'short')).toBe(':1');
    expect(await client.text('EVAL', script, '0', 'two', 'long')).toBe(':1');
    await client.command('PUBLISH', 'news', 'end');
    while (heard.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(heard).toHaveLength(3);
  });

  test.each([
    ['local t = {} for i = 1, 1e9 do t[i] = i end', 'memory'],
    ['local t = {} for i = 1, 1e9 do t[i] = string.rep("x", 1e6) .. i end', 'memory'],
    ['return string.rep("x", 1e12)', 'memory'],
    ['local function f() return f() + 1 end return f()', 'stack overflow'],
  ])('memory and stack are bounded: %s', { timeout: 60_000 }, async (script, text) => {
    expect(await client.text('EVAL', script, '0')).toContain(text);
  });
});
