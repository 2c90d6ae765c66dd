import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { outputLimits } from './output-limits.ts';
import { printConfig } from './print.ts';
import { ConfigError, type ConfigInput, resolveConfig } from './resolve.ts';
import { configKeys, defaultConfig, environmentName, settings } from './schema.ts';
import { parseValue } from './setting.ts';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'polyrow-config-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

function fileWith(text: string, name = 'polyrow.toml'): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

function resolveWith(input: Partial<ConfigInput>) {
  return resolveConfig({ flags: {}, environment: {}, ...input });
}

function problemsOf(input: Partial<ConfigInput>): readonly string[] {
  try {
    resolveWith(input);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

test('without any input everything is at its default', () => {
  const { config, sources } = resolveWith({});
  expect(config).toEqual(defaultConfig());
  expect(new Set(Object.values(sources))).toEqual(new Set(['default']));
});

test('a flag wins over the environment, that over the file, that over the default', () => {
  const file = fileWith('[redis]\nport = 1001\nhost = "127.0.0.2"\n[wal]\nfsync = "no"\n');
  const environment = { POLYROW_REDIS_PORT: '1002', POLYROW_WAL_FSYNC: 'always' };
  const flags = { 'redis.port': '1003' };
  const { config, sources } = resolveWith({ file, environment, flags });
  expect(config['redis.port']).toBe(1003);
  expect(config['wal.fsync']).toBe('always');
  expect(config['redis.host']).toBe('127.0.0.2');
  expect(config['admin.port']).toBe(7070);
  expect(sources['redis.port']).toBe('flag --redis.port');
  expect(sources['wal.fsync']).toBe('environment variable POLYROW_WAL_FSYNC');
  expect(sources['redis.host']).toBe(`file ${file}`);
});

test('POLYROW_CONFIG names the file when no flag does', () => {
  const named = fileWith('data-dir = "/srv/data"\n', 'named.toml');
  const other = fileWith('data-dir = "/srv/other"\n', 'other.toml');
  const environment = { POLYROW_CONFIG: named };
  expect(resolveWith({ environment }).config['data-dir']).toBe('/srv/data');
  expect(resolveWith({ environment, file: other }).config['data-dir']).toBe('/srv/other');
});

test('the names the documentation promises', () => {
  expect(environmentName('data-dir')).toBe('POLYROW_DATA_DIR');
  expect(environmentName('redis.default-model')).toBe('POLYROW_REDIS_DEFAULT_MODEL');
  expect(new Set(configKeys.map(environmentName)).size).toBe(configKeys.length);
});

test('every default is a value its setting allows', () => {
  for (const key of configKeys) {
    const setting = settings[key];
    expect(parseValue(setting, String(setting.default)), key).toBe(setting.default);
  }
});

describe('what is wrong', () => {
  const check = (input: Partial<ConfigInput>, ...expected: string[]) =>
    expect(problemsOf(input)).toEqual(expected);

  test('a value names the key, itself, where it came from and what is allowed', () => {
    check(
      { flags: { 'redis.port': '70000' } },
      'redis.port cannot be "70000" (flag --redis.port): it must be a whole number from 0 to 65535',
    );
    check(
      { environment: { POLYROW_WAL_FSYNC: 'sometimes' } },
      'wal.fsync cannot be "sometimes" (environment variable POLYROW_WAL_FSYNC): it must be one of always, everysec, no',
    );
    const file = fileWith('[redis]\nproto-max-bulk-len = "12"\n');
    check(
      { file },
      `redis.proto-max-bulk-len cannot be "12" (file ${file}): it must be a size from 1mb to 1gb, as 67108864 or 64mb`,
    );
  });

  test('an unknown name brings a suggestion, when there is one', () => {
    check(
      { environment: { POLYROW_REDIS_PROT: '1' } },
      'unknown environment variable POLYROW_REDIS_PROT. Did you mean POLYROW_REDIS_PORT?',
    );
    const file = fileWith('[wal]\nfysnc = "no"\n[zoo]\nanimal = 1\n');
    check(
      { file },
      `unknown key wal.fysnc in file ${file}. Did you mean wal.fsync?`,
      `unknown key zoo.animal in file ${file}.`,
    );
  });

  test('everything at once', () => {
    const flags = { 'redis.port': 'x', 'admin.port': 'y' };
    expect(problemsOf({ flags, environment: { POLYROW_NOTHING: '1' } })).toHaveLength(3);
  });

  test('TOML types that do not fit', () => {
    const file = fileWith('data-dir = 5\n[wal]\nfsync = false\n[redis]\nport = 7.5\n');
    expect(problemsOf({ file })).toHaveLength(3);
  });

  test('a file that is missing or not TOML', () => {
    expect(problemsOf({ file: '/no/such/file.toml' })[0]).toContain('/no/such/file.toml');
    const [problem] = problemsOf({ file: fileWith('[redis\nport = 1\n', 'broken.toml') });
    expect(problem).toMatch(/broken\.toml: line 1, column \d+/);
  });
});

test('variables that Kubernetes sets for a service are not ours', () => {
  const environment = {
    POLYROW_SERVICE_HOST: '10.0.0.1',
    POLYROW_REDIS_SERVICE_PORT: '6379',
    POLYROW_REDIS_PORT: 'tcp://10.0.0.1:6379',
    POLYROW_REDIS_PORT_6379_TCP_ADDR: '10.0.0.1',
  };
  expect(resolveWith({ environment }).config['redis.port']).toBe(6379);
});

test('an empty environment variable counts as not set', () => {
  expect(resolveWith({ environment: { POLYROW_REDIS_PORT: '' } }).config['redis.port']).toBe(6379);
});

describe('secrets', () => {
  test('may be kept in a file, without its last line break', () => {
    const path = fileWith('hush\n', 'secret');
    const fromEnvironment = resolveWith({ environment: { POLYROW_REDIS_PASSWORD_FILE: path } });
    expect(fromEnvironment.config['redis.password']).toBe('hush');
    const fromFlag = resolveWith({ flags: { 'redis.password-file': path } });
    expect(fromFlag.config['redis.password']).toBe('hush');
    const toml = fileWith(`[redis]\npassword-file = "${path}"\n`);
    expect(resolveWith({ file: toml }).config['redis.password']).toBe('hush');
  });

  test('are not given twice', () => {
    const environment = { POLYROW_REDIS_PASSWORD: 'a', POLYROW_REDIS_PASSWORD_FILE: '/b' };
    expect(problemsOf({ environment })).toEqual([
      'redis.password is given twice: by environment variable POLYROW_REDIS_PASSWORD and by environment variable POLYROW_REDIS_PASSWORD_FILE',
    ]);
  });

  test('are not printed', () => {
    const text = printConfig(resolveWith({ flags: { 'redis.password': 'hush' } }));
    expect(text).not.toContain('hush');
    expect(text).toContain('# password is hidden  # flag --redis.password');
  });
});

test('metadata is a place that there is, and its password is not shown', () => {
  const uri = 'mongodb://polyrow:hush@127.0.0.1/polyrow';
  const resolved = resolveWith({ flags: { metadata: uri } });
  expect(resolved.config.metadata).toBe(uri);
  expect(printConfig(resolved)).toContain('# metadata is hidden  # flag --metadata');
  expect(printConfig(resolveWith({}))).toContain('metadata = "embedded"  # default');
  for (const metadata of ['postgres://polyrow:hush@127.0.0.1', 'mongodb://', '']) {
    expect(problemsOf({ flags: { metadata } })).toEqual([
      'metadata cannot be the value (flag --metadata): it must be embedded, or begin with mongodb:// or mongodb+srv://',
    ]);
  }
});

test('what is printed is a file that gives the same configuration', () => {
  const flags = { 'redis.port': '7001', 'data-dir': 'C:\\odd "name"', 'memory.max-bytes': '2gb' };
  const first = resolveWith({ flags });
  const text = printConfig(first);
  expect(text).toContain('port = 7001  # flag --redis.port');
  expect(parse(text)).toHaveProperty(['tls', 'min-version'], 'TLSv1.2');
  expect(resolveWith({ file: fileWith(text) }).config).toEqual(first.config);
});

test('output limits are in Redis’s notation, and a class left out has its default', () => {
  const key = 'redis.client-output-buffer-limit';
  const limits = (text: string) =>
    outputLimits(resolveWith({ flags: { [key]: text } }).config[key]);
  expect(limits('pubsub 1mb 0 0')).toEqual({
    normal: { hardBytes: 0, softBytes: 0, softSeconds: 0 },
    pubsub: { hardBytes: 1024 * 1024, softBytes: 0, softSeconds: 0 },
  });
  expect(limits('normal 1 2 3')).toMatchObject({ pubsub: { softSeconds: 60 } });
  expect(problemsOf({ flags: { [key]: 'pubsub 1mb' } })).toEqual([
    `${key} (flag --${key}): Wrong number of arguments in buffer limit configuration.`,
  ]);
});

test('a setting that is gone is an unknown one', () => {
  const [problem] = problemsOf({ file: fileWith('[redis.output-limit]\npubsub-hard-bytes = 1') });
  expect(problem).toContain('unknown key redis.output-limit.pubsub-hard-bytes in file');
});
