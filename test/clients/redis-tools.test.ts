// redis-cli in all the ways it is used, and redis-benchmark's own suite.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { encodeAll } from '../support/resp-client.ts';

const installed = (name: string) => spawnSync(name, ['--version']).status === 0;
const hasCli = installed('redis-cli');
const hasBenchmark = installed('redis-benchmark');
if (!hasCli || !hasBenchmark)
  console.warn('skipped: no redis-cli or redis-benchmark (redis-tools)');

let server: Polyrow;
beforeAll(async () => {
  server = await Polyrow.start();
});
afterAll(async () => {
  await server.stop();
  await server.remove();
});

interface Ended {
  code: number | null;
  out: string;
}

/** Runs it to its end, or ends it `afterMs` as one does with Ctrl-C. */
async function run(
  program: string,
  words: string[],
  { input, afterMs }: { input?: string | Buffer; afterMs?: number } = {},
): Promise<Ended> {
  const child = spawn(program, ['-p', String(server.redisPort), ...words]);
  let out = '';
  child.stdout.on('data', (chunk) => (out += String(chunk)));
  child.stderr.on('data', (chunk) => (out += String(chunk)));
  if (input === undefined) child.stdin.end();
  else child.stdin.end(input);
  const timer = afterMs === undefined ? undefined : setTimeout(() => child.kill('SIGINT'), afterMs);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  return { code, out };
}

const cli = (...words: string[]) => run('redis-cli', words);

describe.skipIf(!hasCli)('redis-cli', () => {
  beforeAll(async () => {
    const client = await server.client();
    const keys = Array.from({ length: 500 }, (_, i) => ['SET', `key:${i}`, 'x'.repeat(i)]);
    await client.pipeline([
      ...keys,
      ['RPUSH', 'list', ...keys.map((_, i) => i)],
      ['HSET', 'hash', 'f', 'v'],
      ['SADD', 'set', 'a', 'b'],
      ['ZADD', 'zset', 1, 'one'],
    ]);
    client.close();
  });

  test('runs a command', async () => {
    expect(await cli('SET', 'greeting', 'hello')).toEqual({ code: 0, out: 'OK\n' });
    expect(await cli('GET', 'greeting')).toEqual({ code: 0, out: 'hello\n' });
    expect((await cli('-e', 'LPUSH', 'greeting', 'x')).code).toBe(1);
    expect((await cli('-n', '2', 'DBSIZE')).out).toBe('0\n');
  });

  test('speaks RESP3', async () => {
    expect((await cli('-3', '--no-raw', 'HGETALL', 'hash')).out).toBe('1# "f" => "v"\n');
    expect((await cli('-3', '--no-raw', 'SMEMBERS', 'set')).out).toMatch(/^1~ "[ab]"\n2~ /);
    expect((await cli('-3', '--no-raw', 'ZSCORE', 'zset', 'one')).out).toBe('(double) 1\n');
  });

  test('reads commands from a pipe', async () => {
    const { out } = await run('redis-cli', [], { input: 'SET a "two words"\nGET a\nINCR a\n' });
    expect(out).toBe('OK\ntwo words\nERR value is not an integer or out of range\n\n');
  });

  test('asks for the documentation of commands, as it does on a terminal', async () => {
    const { out } = await cli('COMMAND', 'DOCS');
    for (const word of ['summary', 'since', 'group', 'zrangebyscore', 'hset']) {
      expect(out).toContain(word);
    }
  });

  test.skipIf(!installed('script'))('on a terminal', async () => {
    const command = ['-qc', `redis-cli -p ${server.redisPort}`, '/dev/null'];
    // A dumb terminal is not asked for its width, which this one would not answer.
    const child = spawn('script', command, { env: { ...process.env, TERM: 'dumb' } });
    const ended = once(child, 'close');
    let out = '';
    child.stdout.on('data', (chunk) => (out += String(chunk)));
    await sleep(300);
    for (const line of ['set n 1', 'incr n', 'help get', 'multi', 'incr n', 'exec', 'quit']) {
      child.stdin.write(`${line}\n`);
      await sleep(100);
    }
    child.stdin.end();
    await ended;
    expect(out).toContain('(integer) 2');
    expect(out).toMatch(/summary:.*\S/);
    expect(out).toContain('QUEUED');
    expect(out).toContain('1) (integer) 3');
  });

  test('--scan', async () => {
    const all = (await cli('--scan', '--pattern', 'key:*')).out.trim().split('\n');
    expect(new Set(all).size).toBe(500);
    expect(all).toHaveLength(500);
  });

  test('--bigkeys', async () => {
    const { code, out } = await cli('--bigkeys');
    expect(code).toBe(0);
    expect(out).toMatch(/Biggest string found .*key:499.* has 499 bytes/);
    expect(out).toMatch(/Biggest +list found .*list.* has 500 items/);
  });

  test('--memkeys', async () => {
    const { code, out } = await cli('--memkeys');
    expect(code).toBe(0);
    expect(out).toMatch(/Biggest +list found .*list.* has \d+ bytes/);
  });

  test('--pipe', async () => {
    const commands = Array.from({ length: 5000 }, (_, i) => ['SET', `piped:${i}`, i]);
    const { code, out } = await run('redis-cli', ['--pipe'], { input: encodeAll(commands) });
    expect(out).toContain('errors: 0, replies: 5000');
    expect(code).toBe(0);
    expect((await cli('GET', 'piped:4999')).out).toBe('4999\n');
  });

  test.skipIf(!installed('stdbuf'))('--stat', async () => {
    // Into a pipe it would write its lines only at its end, and that is a kill.
    const port = String(server.redisPort);
    const words = ['-oL', 'redis-cli', '-p', port, '--stat', '-i', '0.1'];
    const child = spawn('stdbuf', words, { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(child, 'close');
    let out = '';
    child.stdout.on('data', (chunk) => (out += String(chunk)));
    await sleep(700);
    child.kill();
    await ended;
    expect(out).toMatch(/keys +mem +clients/);
    expect(out.split('\n').filter((line) => /^\d+ +\d/.test(line)).length).toBeGreaterThan(2);
  });

  test('--latency', async () => {
    const { code, out } = await run('redis-cli', ['--latency', '-i', '1', '--raw'], {
      afterMs: 1500,
    });
    expect(out).toMatch(/^\d+ \d+ [\d.]+ \d+/);
    expect(code === 0 || code === null).toBe(true);
  });

  test('monitor', async () => {
    const monitoring = run('redis-cli', ['monitor'], { afterMs: 800 });
    await sleep(400);
    await cli('SET', 'seen', 'a "b" \\ \n');
    expect((await monitoring).out).toMatch(
      /^OK\n(.*\n)*\d+\.\d{6} \[0 127\.0\.0\.1:\d+\] "SET" "seen" "a \\"b\\" \\\\ \\n"\n/,
    );
  });

  test('subscribe', async () => {
    const listening = run('redis-cli', ['subscribe', 'channel'], { afterMs: 800 });
    await sleep(400);
    expect((await cli('PUBLISH', 'channel', 'hello')).out).toBe('1\n');
    expect((await listening).out).toContain('message\nchannel\nhello\n');
  });
});

describe.skipIf(!hasBenchmark)('redis-benchmark', () => {
  test.each([
    ['one by one', []],
    ['in pipelines', ['-P', '16']],
    ['with RESP3 and random keys', ['-3', '-r', '1000']],
  ])('its whole suite, %s', async (_, words) => {
    const { code, out } = await run('redis-benchmark', ['-q', '-n', '3000', ...words]);
    expect(out).not.toMatch(/error/i);
    expect(code).toBe(0);
    const names = 'PING_INLINE PING_MBULK SET GET INCR LPUSH RPUSH LPOP RPOP SADD HSET SPOP ZADD';
    for (const name of [...names.split(' '), 'ZPOPMIN', 'LRANGE_600', 'MSET']) {
      expect(out).toMatch(new RegExp(`${name}.*: [\\d.]+ requests per second`));
    }
  });
});
