// An operator's day, by the compiled command against a server of its own.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { RespClient } from '../support/resp-client.ts';
import { isBuilt, main, polyrow, type Finished } from './polyrow-process.ts';

let server: Polyrow;
let folder: string;

beforeAll(async () => {
  if (!isBuilt) return;
  folder = mkdtempSync(join(tmpdir(), 'polyrow-operator-'));
  server = await Polyrow.start({ flags: ['--redis.slowlog-log-slower-than', '0'] });
});
afterAll(async () => {
  await server?.remove();
  if (folder !== undefined) rmSync(folder, { recursive: true });
});

function run(...words: string[]): Promise<Finished> {
  return polyrow([...words, '--data-dir', server.dataDir]);
}

/** Answer of a command as JSON. */
async function json<T = Record<string, unknown>>(...words: string[]): Promise<T> {
  const { code, out, err } = await run(...words, '--json');
  expect([code, err], words.join(' ')).toEqual([0, '']);
  return JSON.parse(out) as T;
}

async function refused(code: number, message: RegExp, ...words: string[]): Promise<void> {
  const done = await run(...words);
  expect([done.code, done.out, done.err], words.join(' ')).toEqual([
    code,
    '',
    expect.stringMatching(message),
  ]);
}

function withInput(input: string, ...words: string[]): Promise<Finished> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [main, ...words, '--data-dir', server.dataDir]);
    let out = '';
    let err = '';
    child.stdout.on('data', (chunk) => (out += String(chunk)));
    child.stderr.on('data', (chunk) => (err += String(chunk)));
    child.on('close', (code) => resolve({ code, out, err }));
    child.stdin.end(input);
  });
}

async function login(user: string, password: string): Promise<RespClient> {
  const client = await RespClient.connect(server.redisPort);
  expect(await client.text('AUTH', user, password)).toMatch(/OK/);
  return client;
}

describe.skipIf(!isBuilt)('an operator', () => {
  test('makes a tenant, whose password is shown once and opens it', async () => {
    const made = await run('tenant', 'create', 'shop', '--databases', '4', '--limit', 'keys=1k');
    expect(made.code).toBe(0);
    expect(made.out).toMatch(/^tenant +shop\nstate +active\ndatabases +4\n/);
    expect(made.out).toMatch(/^limit of keys +1,000$/m);
    expect(made.out).toMatch(/^limit of request units a second for scans over Redis +none$/m);
    const [, password] = /shown only now: (\S+)/.exec(made.err)!;
    expect(made.out).not.toContain(password);
    const client = await login('shop', password!);
    await client.command('SET', 'k', 'of shop');
    client.close();
    const list = await run('tenant', 'list');
    expect(list.out).toMatch(/^tenant +state +databases/);
    expect(list.out).toMatch(/^shop +active +4 /m);
    expect(list.out).not.toContain(password);
    const all = await json<{ name: string }[]>('tenant', 'list');
    expect(all.map(({ name }) => name)).toEqual(['default', 'shop']);
  });

  test('is told by the exit code what went wrong', async () => {
    await Promise.all([
      refused(3, /^polyrow: no tenant shpo. Did you mean shop\?/, 'tenant', 'show', 'shpo'),
      refused(4, /already exists/, 'tenant', 'create', 'shop'),
      refused(2, /^polyrow: "9lives" cannot be a name/, 'tenant', 'create', '9lives'),
      refused(2, /not a user of/, 'user', 'drop', 'ann@shop', '--tenant', 'default'),
      refused(2, /nothing to change/, 'tenant', 'alter', 'shop'),
      refused(2, /say --yes/, 'tenant', 'drop', 'shop'),
      refused(2, /no limit kyes.*Did you mean keys/s, 'limit', 'set', 'shop', 'kyes=1'),
      refused(2, /Did you mean create/, 'tenant', 'craete', 'x'),
      refused(5, /token/, 'tenant', 'list', '--token', 'wrong'),
    ]);
    const nowhere = await polyrow(['tenant', 'list', '--data-dir', join(folder, 'none')]);
    expect([nowhere.code, nowhere.err]).toEqual([6, expect.stringMatching(/no server runs on/)]);
    const gone = await polyrow(['tenant', 'list', '--admin-url', 'http://127.0.0.1:1']);
    expect([gone.code, gone.err]).toEqual([6, expect.stringMatching(/^polyrow: no answer/)]);
  });

  test('sees that credentials are checked, and cannot reset it while a tenant has a password', async () => {
    expect(await json('authentication', 'show')).toEqual({ checksCredentials: true });
    await refused(4, /has a password or a token/, 'authentication', 'reset');
  });

  test('sees what clients named, and their terminal is safe from it', async () => {
    const client = await RespClient.connect(server.redisPort);
    const hostile = '\u001b[2J\u001b]0;x\u0007\u009b31m\u202e\n';
    await client.command('CLIENT', 'SETNAME', 'plain');
    for (let i = 0; i < 50; i++) await client.command('SET', `hostile${hostile}`, 'v');
    for (const words of [['slowlog'], ['top', '--once'], ['audit'], ['slowlog', '--json']]) {
      const { code, out } = await run(...words);
      expect([words, code]).toEqual([words, 0]);
      // oxlint-disable-next-line no-control-regex
      expect(out).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
      if (words[0] === 'slowlog') expect(out).toContain('hostile');
    }
    const wrong = await run('tenant', 'show', hostile);
    // oxlint-disable-next-line no-control-regex
    expect(wrong.err).not.toMatch(/[\u001b\u009b]/);
    client.close();
  });

  test('sets limits', async () => {
    const set = await json(
      'limit',
      'set',
      'shop',
      'ru-per-second=5000',
      'storedBytes=1gb',
      'keys=none',
    );
    expect(set).toMatchObject({ ruPerSecond: 5000, storedBytes: 1024 ** 3, keys: 0 });
    const { out } = await run('limit', 'get', 'shop');
    expect(out).toMatch(/^storedBytes +1 GB +bytes stored$/m);
    expect(out).toMatch(/^keys +none +keys$/m);
  });

  test('makes users, and gives and takes passwords and rights', async () => {
    const made = await json('user', 'create', 'ann@shop', '--rules', '+@all ~* &*');
    expect(made).toMatchObject({ tenant: 'shop', name: 'ann', password: expect.any(String) });
    (await login('ann@shop', made['password'] as string)).close();

    const changed = await withInput(
      'a better one\n',
      'user',
      'passwd',
      'ann@shop',
      '--password-stdin',
    );
    expect(changed).toMatchObject({ code: 0, out: 'ann@shop has another password\n' });
    const client = await login('ann@shop', 'a better one');

    const granted = await json('user', 'alter', 'ann', '--tenant', 'shop', '--grant', 'm=read');
    expect(granted).toMatchObject({ grants: { m: 'read' } });
    const more = await json('user', 'alter', 'ann@shop', '--grant', 'n=all', '--revoke', 'm');
    expect(more).toMatchObject({ grants: { n: 'all' } });
    const users = await run('user', 'list', '--tenant', 'shop');
    expect(users.out).toMatch(/^ann@shop +by password +\+@all ~\* &\* +n=all$/m);

    await run('user', 'alter', 'ann@shop', '--disable');
    await client.ended;
    expect((await json<{ name: string }[]>('user', 'list', '--tenant', 'shop')).length).toBe(2);
    expect((await run('user', 'drop', 'ann@shop')).code).toBe(0);
    await refused(3, /no user ann/, 'user', 'drop', 'ann@shop');
  });

  test('asks nobody for a password where there is no terminal', async () => {
    const done = await withInput('', 'user', 'passwd', 'default@shop');
    expect(done).toMatchObject({ code: 2, err: expect.stringContaining('--password-stdin') });
  });

  test('makes tokens of users, and of roles', async () => {
    const made = await json('token', 'create', 'default@shop', '--description', 'for a program');
    const client = await login('shop', made['secret'] as string);
    const list = await run('token', 'list', '--tenant', 'shop');
    expect(list.out).toMatch(
      new RegExp(`^${String(made['id'])} +default@shop .*for a program$`, 'm'),
    );
    expect(list.out).not.toContain(made['secret']);
    expect((await run('token', 'revoke', String(made['id']), '--tenant', 'shop')).code).toBe(0);
    await client.ended;

    const viewer = await json('token', 'create', '--role', 'viewer');
    const tokenFile = join(folder, 'viewer');
    writeFileSync(tokenFile, `${String(viewer['secret'])}\n`);
    const as = ['--token-file', tokenFile];
    expect((await run('tenant', 'list', ...as)).code).toBe(0);
    await refused(5, /viewer/, 'tenant', 'suspend', 'shop', ...as);

    const own = await json('token', 'create', '--role', 'tenant', '--tenant', 'shop');
    const environment = {
      POLYROW_ADMIN_TOKEN: String(own['secret']),
      POLYROW_ADMIN_URL: server.admin,
    };
    const seen = await polyrow(['tenant', 'list', '--json'], environment);
    expect((JSON.parse(seen.out) as { name: string }[]).map(({ name }) => name)).toEqual(['shop']);
    const others = await polyrow(['user', 'list', '--tenant', 'default'], environment);
    expect(others.code).toBe(5);
    const tokens = await json<{ id: string }[]>('token', 'list', '--admin');
    expect(tokens.map(({ id }) => id)).toEqual([viewer['id'], own['id']]);
  });

  test('sees databases and changes tables of a tenant', async () => {
    expect((await run('database', 'create', 'metrics', '--tenant', 'shop')).code).toBe(0);
    const databases = await json<object[]>('database', 'list', '--tenant', 'shop');
    expect(databases).toEqual(
      expect.arrayContaining([
        { kind: 'redis', name: 0, rows: 1 },
        expect.objectContaining({ kind: 'influx', name: 'metrics' }),
      ]),
    );
    expect((await run('database', 'drop', 'metrics', '--tenant', 'shop', '--yes')).code).toBe(0);
    const table = await json('table', 'create', '1', '--tenant', 'shop', '--max-row-bytes', '1mb');
    expect(table).toMatchObject({ maxRowBytes: 1024 ** 2 });
    const { out } = await run('table', 'list', '--tenant', 'shop');
    expect(out.split('\n')[0]).toMatch(/^tenant +database +name/);
    expect(out).toContain('1 MB');
  });

  test('sees what was spent, what took long, and who did what', async () => {
    const [usage] = await json<Record<string, unknown>[]>(
      'ru',
      '--tenant',
      'shop',
      '--by',
      'tenant',
    );
    expect(usage).toMatchObject({ tenant: 'shop' });
    expect(usage!['ru']).toBeGreaterThan(0);
    expect((await run('ru', '--last', '1m')).out).toMatch(/^tenant +plane +class +requests/);
    const slow = await json<{ tenant: string; text: string }[]>('slowlog', '--tenant', 'shop');
    expect(slow.some(({ text }) => /^set k/i.test(text))).toBe(true);
    expect(slow.every(({ tenant }) => tenant === 'shop')).toBe(true);
    const audit = await run('audit');
    expect(audit.out).toMatch(/PATCH \/v1\/tenants\/shop\/users\/ann/);
    expect(audit.out).not.toContain('a better one');
    const records = await json<{ method: string; path: string; status: number }[]>('audit');
    expect(records).toContainEqual(
      expect.objectContaining({ method: 'POST', path: '/v1/tenants', status: 201 }),
    );
  });

  /** While a client works on one key. */
  async function underLoad(look: () => Promise<void>): Promise<void> {
    const client = await RespClient.connect(server.redisPort);
    const working = setInterval(() => void client.command('INCR', 'hot').catch(() => {}), 2);
    try {
      await look();
    } finally {
      clearInterval(working);
      client.close();
    }
  }

  test('watches tenants', async () => {
    await underLoad(async () => {
      const seen = await json<{ seconds: number; tenants: { tenant: string; ru: number }[] }>(
        ...['top', '--interval', '1'],
      );
      expect(seen.seconds).toBeGreaterThan(0.9);
      expect(seen.tenants.find(({ tenant }) => tenant === 'default')!.ru).toBeGreaterThan(0);
      const once = await run('top', '--once', '--interval', '0.5');
      expect(once.out).toMatch(/^tenant +RU\/s +of limit/);
    });
  });

  test('watches hot keys', async () => {
    await underLoad(async () => {
      const seen = await json<{ hot: { name: string }[] }>('top', '--interval', '1.5');
      expect(seen.hot.map(({ name }) => name)).toContain('hot');
      const once = await run('top', '--once', '--interval', '0.5');
      expect(once.out).toMatch(/^key +default +0 .* hot$/m);
    });
  });

  test('reads and changes settings', async () => {
    expect((await run('config', 'get', 'redis.maxclients')).out).toBe('10000\n');
    expect((await run('config', 'set', 'redis.maxclients', '500')).out).toBe(
      'redis.maxclients is 500\n',
    );
    const item = await json('config', 'get', 'redis.maxclients');
    expect(item).toMatchObject({ value: 500, source: 'changed while running' });
    expect((await run('config', 'list')).out).toMatch(/^redis.port +0 +flag --redis.port$/m);
    await refused(3, /Did you mean redis.port/, 'config', 'get', 'redis.prot');
    await refused(2, /only be changed by a restart/, 'config', 'set', 'redis.port', '1');
  });

  test('suspends, resumes and drops', async () => {
    await withInput('secret', 'user', 'passwd', 'default@shop', '--password-stdin');
    const client = await login('shop', 'secret');
    expect(await json('tenant', 'suspend', 'shop')).toMatchObject({ state: 'suspended' });
    await client.ended;
    expect(await json('tenant', 'resume', 'shop')).toMatchObject({ state: 'active' });
    (await login('shop', 'secret')).close();
    expect((await run('tenant', 'drop', 'shop', '--yes')).code).toBe(0);
    const late = await RespClient.connect(server.redisPort);
    expect(await late.text('AUTH', 'shop', 'secret')).toMatch(/WRONGPASS/);
    late.close();
  });
});

describe.skipIf(!isBuilt)('a shell', () => {
  test('gets completions for every command', async () => {
    for (const shell of ['bash', 'zsh', 'fish']) {
      const { code, out } = await polyrow(['completion', shell]);
      expect(code).toBe(0);
      for (const path of ['tenant create', 'user passwd', 'config set', 'table alter']) {
        expect(out, shell).toContain(`polyrow ${path}`);
      }
    }
    expect(await polyrow(['completion', 'csh'])).toMatchObject({ code: 2 });
  });
});
