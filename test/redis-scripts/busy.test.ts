// Scripts that hold a database for longer than busy-reply-threshold: what others are answered, and how such a script
// is ended.

import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, test } from 'vitest';
import { isBuilt } from '../cli/polyrow-process.ts';
import { Polyrow } from '../support/polyrow.ts';
import type { RespClient } from '../support/resp-client.ts';

const busyScript =
  '-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.';
const busyFunction = busyScript.replace('SCRIPT KILL', 'FUNCTION KILL');
const endless = 'while true do end';
/** Takes a second or more, and then ends. */
const slowWrite = "redis.call('set', 'w', 1) for i = 1, 4e8 do end return 'done'";
const library = `#!lua name=l\nredis.register_function('f', function() ${endless} end)`;

describe.skipIf(!isBuilt).each(['memory', 'kv'])('on %s', (model) => {
  let server: Polyrow;
  let runner: RespClient;
  let other: RespClient;

  beforeAll(async () => {
    const flags = ['--redis.busy-reply-threshold', '100', '--redis.default-model', model];
    server = await Polyrow.start({ flags });
  });
  afterAll(() => server.remove());
  beforeEach(async () => {
    runner = await server.client();
    other = await server.client();
    await other.text('FLUSHALL');
    await other.text('SET', 'k', 'v');
  });
  afterEach(() => {
    runner.close();
    other.close();
  });

  /** The script's first command is there before any that follows. */
  async function started(): Promise<void> {
    for (;;) {
      const stats = await other.text('FUNCTION', 'STATS');
      if (stats.includes('duration_ms')) return;
    }
  }

  test('commands that wait for its database, or come then, are answered BUSY', async () => {
    const script = runner.text('EVAL', endless, '0');
    await started();
    // Sent before the threshold is reached.
    expect(await other.text('GET', 'k')).toBe(busyScript);
    expect(await other.text('SET', 'k', '2')).toBe(busyScript);
    expect(await other.text('PING')).toBe(busyScript);
    expect(await other.text('EVAL', 'return 1', '0')).toBe(busyScript);
    expect(await other.text('FUNCTION', 'KILL')).toBe(busyScript);
    expect(await other.text('MULTI')).toBe('+OK');
    expect(await other.text('INCR', 'n')).toBe(busyScript);
    expect(await other.text('EXEC')).toBe(
      `-EXECABORT Transaction discarded because of: ${busyScript.slice(1)}`,
    );
    const elsewhere = await server.client();
    expect(await elsewhere.text('SELECT', '1')).toBe(busyScript);
    expect(await other.text('SCRIPT', 'KILL')).toBe('+OK');
    expect(await script).toMatch(/^-ERR Script killed by user with SCRIPT KILL/);
    expect(await other.text('GET', 'k')).toBe('"v"');
    expect(await other.text('EXEC')).toBe('-ERR EXEC without MULTI');
    expect(await other.text('SCRIPT', 'KILL')).toMatch(/^-NOTBUSY/);
    elsewhere.close();
  });

  test('clients of other databases go on', async () => {
    await other.text('SELECT', '1');
    const script = runner.text('EVAL', endless, '0');
    await started();
    const killer = await server.client();
    expect(await killer.text('GET', 'k')).toBe(busyScript);
    expect(await other.text('SET', 'k', '1')).toBe('+OK');
    expect(await other.text('PING')).toBe('+PONG');
    expect(await killer.text('SCRIPT', 'KILL')).toBe('+OK');
    await script;
    killer.close();
  });

  test('one that only reads lets others read', async () => {
    const script = runner.text('EVAL_RO', endless, '0');
    await started();
    expect(await other.text('SET', 'k', '2')).toBe(busyScript);
    expect(await other.text('GET', 'k')).toBe('"v"');
    expect(await other.text('SCRIPT', 'KILL')).toBe('+OK');
    await script;
    expect(await other.text('SET', 'k', '2')).toBe('+OK');
  });

  test('one that has written cannot be killed, and its writes are there when it ends', async () => {
    const script = runner.text('EVAL', slowWrite, '0');
    await started();
    expect(await other.text('GET', 'w')).toBe(busyScript);
    expect(await other.text('SCRIPT', 'KILL')).toMatch(/^-UNKILLABLE/);
    expect(await script).toBe('"done"');
    expect(await other.text('GET', 'w')).toBe('"1"');
  });

  test('a function is ended by FUNCTION KILL, and shown by FUNCTION STATS', async () => {
    await other.text('FUNCTION', 'LOAD', 'REPLACE', library);
    const script = runner.text('FCALL', 'f', '0', 'word');
    await started();
    expect(await other.text('GET', 'k')).toBe(busyFunction);
    expect(await other.text('SCRIPT', 'KILL')).toBe(busyFunction);
    expect(await other.text('FUNCTION', 'STATS')).toMatch(
      /"name" "f" "command" \*\["FCALL" "f" "0" "word"\] "duration_ms" :[1-9]/,
    );
    expect(await other.text('FUNCTION', 'KILL')).toBe('+OK');
    expect(await script).toMatch(/^-ERR Script killed by user with SCRIPT KILL/);
  });

  test('what waits less than the threshold gets its answer, and 0 lets all wait', async () => {
    await other.text('CONFIG', 'SET', 'lua-time-limit', '0');
    const script = runner.text('EVAL', slowWrite, '0');
    await started();
    expect(await other.text('GET', 'w')).toBe('"1"');
    expect(await script).toBe('"done"');
    expect(await other.text('CONFIG', 'SET', 'busy-reply-threshold', '100')).toBe('+OK');
  });
});
