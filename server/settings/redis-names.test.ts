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
    for (const name of ['databases', 'port', 'bind', 'dir']) {
      expect(entries.get(name)?.set, name).toBeUndefined();
    }
  });

  test('may be told what it is already', () => {
    expect(set('save', '')).toBeUndefined();
    expect(set('appendonly', 'yes')).toBeUndefined();
    expect(set('appendonly', 'no')).toBe("this server only supports 'yes'");
    expect(set('save', '900 1')).toBe("this server only supports ''");
  });
});
