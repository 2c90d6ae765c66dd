import { resolve } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { LiveConfig } from './live-config.ts';
import { type RedisConfigEntry, redisConfigEntries } from './redis-names.ts';
import { type ConfigKey, defaultConfig } from './schema.ts';

let live: LiveConfig;
let changed: ConfigKey[];
let entries: Map<string, RedisConfigEntry>;

beforeEach(() => {
  live = new LiveConfig({ ...defaultConfig(), 'data-dir': 'somewhere' });
  changed = [];
  live.onChange((key) => changed.push(key));
  entries = new Map(redisConfigEntries(live).map((entry) => [entry.name, entry]));
});

function get(name: string): string | undefined {
  return entries.get(name)?.get();
}

function set(name: string, value: string): string | undefined {
  const entry = entries.get(name);
  if (entry?.set === undefined) throw new Error(`${name} cannot be set`);
  return entry.set(value);
}

test('values as redis-server would show them', () => {
  expect(get('appendfsync')).toBe('everysec');
  expect(get('appendonly')).toBe('yes');
  expect(get('save')).toBe('');
  expect(get('maxmemory')).toBe('0');
  expect(get('maxmemory-policy')).toBe('noeviction');
  expect(get('databases')).toBe('16');
  expect(get('proto-max-bulk-len')).toBe('16777216');
  expect(get('loglevel')).toBe('notice');
  expect(get('dir')).toBe(resolve('somewhere'));
  expect(get('client-output-buffer-limit')).toBe(
    'normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60',
  );
});

test('a change reaches our setting and whoever listens', () => {
  expect(set('appendfsync', 'ALWAYS')).toBeUndefined();
  expect(set('maxmemory', '100mb')).toBeUndefined();
  expect(set('timeout', '60')).toBeUndefined();
  expect(set('timeout', '60')).toBeUndefined();
  expect(live.get('wal.fsync')).toBe('always');
  expect(live.get('memory.max-bytes')).toBe(100 * 1024 ** 2);
  expect(get('maxmemory')).toBe('104857600');
  expect(changed).toEqual(['wal.fsync', 'memory.max-bytes', 'redis.timeout']);
});

test('what is wrong is said in the words of Redis', () => {
  const check = (name: string, value: string, expected: string) =>
    expect(set(name, value)).toBe(expected);
  check('appendfsync', 'foo', 'argument(s) must be one of the following: always, everysec, no');
  check('maxclients', 'abc', "argument couldn't be parsed into an integer");
  check('maxclients', '0', 'argument must be between 1 and 4294967295 inclusive');
  check('maxmemory', '1zz', 'argument must be a memory value');
  check('timeout', '-1', 'argument must be between 0 and 2147483647 inclusive');
  check(
    'loglevel',
    'loud',
    'argument(s) must be one of the following: debug, verbose, notice, warning',
  );
  check(
    'client-output-buffer-limit',
    'normal 1',
    'Wrong number of arguments in buffer limit configuration.',
  );
  expect(changed).toEqual([]);
});

test('a part of the output limits may be set', () => {
  expect(set('client-output-buffer-limit', 'pubsub 64mb 1mb 5 slave 0 0 0')).toBeUndefined();
  expect(get('client-output-buffer-limit')).toBe(
    'normal 0 0 0 slave 268435456 67108864 60 pubsub 67108864 1048576 5',
  );
});

describe('what cannot change', () => {
  test('needs a restart', () => {
    for (const name of ['databases', 'daemonize', 'dir']) {
      expect(entries.get(name)?.set, name).toBeUndefined();
    }
    for (const name of ['port', 'bind', 'tls-port']) {
      expect(set(name, get(name)!)).toBeUndefined();
      expect(set(name, '7')).toBe('this server takes another value at its start only');
    }
  });

  test('may be told what it is already', () => {
    expect(set('appendonly', 'yes')).toBeUndefined();
    expect(set('appendonly', 'no')).toBe("this server only supports 'yes'");
  });
});

describe('what is kept and has no effect', () => {
  test.each([
    ['save', '900 1  60 100', '900 1 60 100'],
    ['save', '', ''],
    ['list-compress-depth', '2', '2'],
    ['activedefrag', 'YES', 'yes'],
    ['repl-backlog-size', '2mb', '2097152'],
  ])('%s %s', (name, text, value) => {
    expect(set(name, text)).toBeUndefined();
    expect(get(name)).toBe(value);
  });

  test.each([
    ['save', '0 1', 'Invalid save parameters'],
    ['save', '60', 'Invalid save parameters'],
    ['active-expire-effort', '11', 'argument must be between 1 and 10 inclusive'],
    ['active-expire-effort', 'much', "argument couldn't be parsed into an integer"],
    ['activedefrag', 'maybe', "argument must be 'yes' or 'no'"],
    ['repl-backlog-size', 'much', 'argument must be a memory value'],
  ])('%s %s is refused', (name, text, problem) => {
    const before = get(name);
    expect(set(name, text)).toBe(problem);
    expect(get(name)).toBe(before);
  });
});
