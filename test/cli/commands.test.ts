import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isBuilt, polyrow } from './polyrow-process.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'polyrow-cli-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

describe.skipIf(!isBuilt)('the polyrow command', () => {
  test('prints its version', async () => {
    const plain = await polyrow(['version']);
    expect([plain.code, plain.out]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+\n$/)]);
    const json = await polyrow(['version', '--json']);
    expect(JSON.parse(json.out)).toHaveProperty('version', plain.out.trim());
  });

  test('checks a configuration', async () => {
    const right = await polyrow(['start', '--check-config']);
    expect([right.code, right.out]).toEqual([0, 'the configuration is right\n']);
    const wrong = await polyrow(['--check-config', '--redis.port', 'x'], {
      POLYROW_WAL_FYSNC: '1',
    });
    expect(wrong).toEqual({
      code: 2,
      out: '',
      err:
        'polyrow: unknown environment variable POLYROW_WAL_FYSNC. Did you mean POLYROW_WAL_FSYNC?\n' +
        'polyrow: redis.port cannot be "x" (flag --redis.port): it must be a whole number from 0 to 65535\n',
    });
  });

  test('prints a configuration', async () => {
    const { code, out } = await polyrow(
      ['--print-config', '--redis.slowlog-log-slower-than', '-1'],
      {
        POLYROW_REDIS_PASSWORD: 'hush',
      },
    );
    expect(code).toBe(0);
    expect(out).toContain('slowlog-log-slower-than = -1  # flag --redis.slowlog-log-slower-than\n');
    expect(out).not.toContain('hush');
  });

  test('suggests what was meant', async () => {
    const check = async (words: string[], suggestion: string) => {
      const { code, out, err } = await polyrow(words);
      expect([code, out, err]).toEqual([2, '', expect.stringContaining(suggestion)]);
    };
    await check(['--redis.prot', '1'], 'Did you mean --redis.port?');
    await check(['strat'], 'Did you mean start?');
    await check(['start', 'now'], 'too many arguments');
    await check(['table', 'create', '1', '--model', 'tape'], 'Allowed choices are memory, kv');
  });

  test('works on tables while no server runs', async () => {
    const data = ['--data-dir', join(directory, 'data')];
    const made = await polyrow(['table', 'create', '2', '--name', 'orders', '--json', ...data]);
    expect(made.err).toBe('');
    expect(JSON.parse(made.out)).toMatchObject({ id: 2, name: 'orders', explicit: true });
    const altered = await polyrow(['table', 'alter', 'orders', '--read-only', ...data]);
    expect([altered.code, altered.out]).toEqual([0, expect.stringContaining('refused')]);
    const list = await polyrow(['table', 'list', '--json', ...data]);
    expect(JSON.parse(list.out)).toHaveLength(16);
    const reset = await polyrow(['table', 'reset', 'orders', '--json', ...data]);
    expect(JSON.parse(reset.out)).toMatchObject({ id: 2, name: 'db2', explicit: false });
    const missing = await polyrow(['table', 'describe', 'nothing', ...data]);
    expect(missing).toMatchObject({ code: 3, out: '' });
    expect(missing.err).toBe(
      'polyrow: no table nothing: there are databases 0 to 15 (redis.databases)\n',
    );
    const nothing = await polyrow(['table', 'alter', '1', ...data]);
    expect(nothing).toMatchObject({ code: 2, err: 'polyrow: nothing to change was given\n' });
  });

  test('says so when the server asked for does not answer', async () => {
    const { code, err } = await polyrow(['table', 'list', '--admin-url', 'http://127.0.0.1:1']);
    expect([code, err]).toEqual([6, expect.stringContaining('no answer from the server at')]);
  });

  test('refuses a data directory that cannot be one', async () => {
    const { code, err } = await polyrow(['start', '--data-dir', '/dev/null/data']);
    expect(code).toBe(1);
    expect(err).toMatch(/^polyrow: cannot make the data directory: .*\(--data-dir\)\n$/);
  });
});
