// Credentials and tenants that change while requests are under way.

import { request } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { dropAllDatabases } from '../../server/planes/influx-databases.ts';
import { longQuery, longWrite } from './long-requests.ts';
import { TenantServer } from './tenant-server.ts';

let server: TenantServer;
beforeEach(async () => {
  server = await TenantServer.start();
  server.control.addTenant('acme');
  server.control.addTenant('rival');
  for (const login of ['acme:acme', 'rival:rival']) await server.result(login, 'CREATE DATABASE d');
});
afterEach(async () => {
  await server.close();
});

const status = async (who: string, q = 'SHOW DATABASES') => (await server.query(who, q)).status;

async function waitForQuery(who: string): Promise<void> {
  await expect
    .poll(async () => JSON.stringify(await server.result(who, 'SHOW QUERIES')))
    .toContain('mean(v)');
}

describe('credentials', () => {
  test('are not looked at as long as there is nobody else', async () => {
    const alone = await TenantServer.start();
    try {
      for (const who of ['', 'root:root', 'default:x']) {
        expect((await alone.query(who, 'SHOW DATABASES')).status).toBe(200);
      }
      const token = { headers: { Authorization: 'Token made-up' } };
      expect((await alone.send('', '/query?q=SHOW+DATABASES', token)).status).toBe(200);
      expect(alone.logged.filter((line) => line.includes('ignored'))).toHaveLength(1);
      await alone.result('root:root', "CREATE USER bob WITH PASSWORD 'bob'");
      expect((await alone.query('root:root', 'SHOW DATABASES')).status).toBe(401);
      expect((await alone.query('', 'SHOW DATABASES')).status).toBe(200);
      // Even without any other user: a removed user does not act as another one.
      await alone.result('', 'DROP USER bob');
      expect((await alone.query('bob:bob', 'SHOW DATABASES')).status).toBe(401);
      expect((await alone.send('', '/query?q=SHOW+DATABASES', token)).status).toBe(401);
      alone.control.addTenant('last');
      alone.control.forgetTenant('last');
      expect((await alone.query('last:last', 'SHOW DATABASES')).status).toBe(401);
    } finally {
      await alone.close();
    }
  });

  test('are needed once the default user has a password', async () => {
    expect(await status('')).toBe(200);
    await server.result('', 'SET PASSWORD FOR "default" = \'secret\'');
    expect([await status(''), await status('default:secret')]).toEqual([401, 200]);
  });

  test('come in every way that clients have', async () => {
    const { control } = server;
    control.addUser('acme', 'app', { password: 'p:1', grants: { d: 'write' } });
    const token = control.addToken('acme', 'app');
    const login = encodeURIComponent('app@acme');
    const write = (query: string, authorization?: string) =>
      server.send('', `/write?db=d${query}`, {
        method: 'POST',
        body: 'm v=1',
        headers: authorization === undefined ? {} : { Authorization: authorization },
      });
    const ways: [string, string?][] = [
      [`&u=${login}&p=p:1`],
      ['', 'Token app@acme:p:1'],
      ['', `Token ${token}`],
      ['', `Bearer ${token}`],
      ['', `Basic ${Buffer.from(`app@acme:${token}`).toString('base64')}`],
      [`&u=${login}&p=${token}`],
    ];
    for (const way of ways) expect((await write(...way)).status, String(way)).toBe(204);
    const wrong: [string, string?][] = [
      [`&u=${login}&p=x`],
      ['', 'Token app@acme:x'],
      ['', `Token ${token}x`],
      ['', 'Bearer x'],
      ['', 'Basic Og=='],
    ];
    for (const way of wrong) expect((await write(...way)).status, String(way)).toBe(401);
    control.revokeToken(token);
    expect((await write('', `Token ${token}`)).status).toBe(401);
    expect((await write('', 'Token app@acme:p:1')).status).toBe(204);
  });

  test('may be in the form of a query', async () => {
    const ask = (form: Record<string, string>) =>
      server.send('', '/query', { method: 'POST', body: new URLSearchParams(form) });
    server.control.close('root');
    const q = 'SHOW DATABASES';
    expect((await ask({ q, u: 'acme', p: 'acme' })).text).toContain('["d"]');
    expect((await ask({ q, u: 'acme', p: 'x' })).status).toBe(401);
    expect((await ask({ q })).status).toBe(401);
  });

  test('that are guessed cost time, and are told apart from being throttled', async () => {
    const answers = await Promise.all(
      Array.from({ length: 14 }, (_, i) => server.query(`acme:guess${i}`, 'SHOW DATABASES')),
    );
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([401]));
    expect(await status('acme:acme')).toBe(200);
  });
});

describe('passwords', () => {
  test('are shown nowhere', async () => {
    const q =
      "CREATE USER x WITH PASSWORD 'geheim'; SET PASSWORD FOR x = 'geheim'; SHOW QUERIES; DROP USER x";
    const { text } = await server.query('acme:acme', q, {}, 'GET');
    expect(text).toContain(
      'CREATE USER x WITH PASSWORD [REDACTED]; SET PASSWORD FOR x = [REDACTED]',
    );
    expect(text).toContain("deprecated use of 'SET PASSWORD FOR x = [REDACTED]'");
    expect(text).not.toContain('geheim');
    expect(JSON.stringify(server.control.requests) + server.logged.join('\n')).not.toContain(
      'geheim',
    );
  });
});

describe('requests under way', () => {
  test('of a user who is revoked end at once', async () => {
    server.control.addUser('acme', 'app', { password: 'app', grants: { d: 'all' } });
    await server.write('acme:acme', 'm v=1 0');
    const write = longWrite(server, 'app@acme:app');
    const query = longQuery(server, 'app@acme:app');
    const other = longWrite(server, 'acme:acme');
    await waitForQuery('acme:acme');
    await server.result('acme:acme', 'DROP USER app');
    await Promise.all([write.ended, query]);
    expect(await write.ended).toBe('cut off');
    expect(await status('app@acme:app')).toBe(401);
    other.stop();
    expect(await other.ended).toBe('204');
  });

  test('that need what is taken away end as well', async () => {
    server.control.addUser('acme', 'app', { password: 'app', grants: { d: 'all' } });
    await server.write('acme:acme', 'm v=1 0');
    const write = longWrite(server, 'app@acme:app');
    const query = longQuery(server, 'app@acme:app');
    await waitForQuery('acme:acme');
    await server.result('acme:acme', 'REVOKE ALL ON d FROM app');
    expect(await query).toContain('query interrupted');
    write.stop();
    expect(await write.ended).toBe('403');
  });

  test('of a tenant that is suspended end, and go on being refused', async () => {
    await server.write('acme:acme', 'm v=1 0');
    const all = [longWrite(server, 'acme:acme').ended, longQuery(server, 'acme:acme')];
    await waitForQuery('acme:acme');
    server.control.setTenant('acme', { state: 'suspended' });
    await Promise.all(all);
    const { status: code, text } = await server.query('acme:acme', 'SHOW DATABASES');
    expect([code, text]).toEqual([403, '{"error":"tenant \'acme\' is suspended"}\n']);
    expect(await status('rival:rival')).toBe(200);
    server.control.setTenant('acme', { state: 'active' });
    expect(await status('acme:acme')).toBe(200);
  });
});

test('a write that was cut off leaves nothing to the next one of another tenant', async () => {
  for (let i = 0; i < 12; i++) {
    const headers = { Authorization: `Basic ${Buffer.from('acme:acme').toString('base64')}` };
    const sent = request(`${server.url}/write?db=d`, { agent: false, method: 'POST', headers });
    sent.on('error', () => {});
    sent.write(`${`m,of=acme v=${i} 1\n`.repeat(100)}m,of=acme,half=a`);
    await new Promise((resolve) => setTimeout(resolve, 20));
    sent.destroy();
    expect((await server.write('rival:rival', 'm,of=rival v=1 1')).status).toBe(204);
  }
  expect(await server.result('rival:rival', 'SELECT * FROM m')).toEqual([
    {
      name: 'm',
      columns: ['time', 'of', 'v'],
      values: [['1970-01-01T00:00:00.000000001Z', 'rival', 1]],
    },
  ]);
});

describe('a tenant that is dropped while it writes', () => {
  test('leaves nothing, and can be made anew', async () => {
    const { control } = server;
    const { store } = server.series;
    await server.write('acme:acme', 'm v=1 0');
    await server.write('rival:rival', 'm v=7 0');
    let goesOn = true;
    const seen = new Set<string>();
    const writer = async (n: number): Promise<void> => {
      for (let i = 0; goesOn; i++) {
        try {
          await server.query('acme:acme', `CREATE DATABASE "d${i % 7}"`);
          const lines = Array.from({ length: 200 }, (_, j) => `m,w=w${n},i=i${i},j=j${j} v=1`);
          const { status: code } = await server.write('acme:acme', lines.join('\n'), `d${i % 7}`);
          seen.add(String(code));
        } catch {
          seen.add('cut off');
        }
      }
    };
    const writers = Array.from({ length: 6 }, (_, n) => writer(n));
    const long = [longWrite(server, 'acme:acme').ended, longQuery(server, 'acme:acme')];
    await waitForQuery('acme:acme');
    await new Promise((resolve) => setTimeout(resolve, 300));

    control.setTenant('acme', { state: 'dropping' });
    await dropAllDatabases(store, 1);
    const left = () => store.databases().filter(({ name }) => name.startsWith('\u00011\u0001'));
    expect(left()).toEqual([]);
    await Promise.all(long);
    await new Promise((resolve) => setTimeout(resolve, 200));
    control.forgetTenant('acme');
    await new Promise((resolve) => setTimeout(resolve, 200));
    goesOn = false;
    await Promise.all(writers);
    expect([...seen].sort()).toEqual(expect.arrayContaining(['204', '401']));
    expect(left()).toEqual([]);
    expect(store.databases().map(({ name }) => name)).toEqual(['\u00012\u0001d']);
    expect(await status('acme:acme')).toBe(401);

    control.addTenant('acme');
    expect(await server.result('acme:acme', 'SHOW DATABASES')).toEqual([
      { name: 'databases', columns: ['name'] },
    ]);
    await server.result('acme:acme', 'CREATE DATABASE d');
    expect(await server.result('acme:acme', 'SELECT * FROM m')).toBeUndefined();
    expect(await server.result('rival:rival', 'SELECT v FROM m')).toMatchObject([
      { values: [['1970-01-01T00:00:00Z', 7]] },
    ]);
  });
});

describe('queries', () => {
  test('are listed and ended by their own tenant only', async () => {
    await server.write('acme:acme', 'm v=1 0');
    server.control.addUser('acme', 'reader', { password: 'r', grants: { d: 'read' } });
    const query = longQuery(server, 'acme:acme');
    await waitForQuery('acme:acme');
    const list = async (who: string) => JSON.stringify(await server.result(who, 'SHOW QUERIES'));
    expect(await list('rival:rival')).not.toContain('mean');
    expect(await list('')).not.toContain('mean');
    expect(await list('reader@acme:r')).not.toContain('mean');
    const [, id] = /\[(\d+),"SELECT mean/.exec(await list('acme:acme'))!;
    for (const who of ['rival:rival', '']) {
      for (let other = 1; other <= Number(id) + 5; other++) {
        await server.query(who, `KILL QUERY ${other}`);
      }
    }
    expect(await list('acme:acme')).toContain('mean');
    await server.result('acme:acme', `KILL QUERY ${id}`);
    expect(await query).toContain('query interrupted');
  });

  test('of one tenant do not number those of another', async () => {
    const id = async (who: string) =>
      /"values":\[\[(\d+)/.exec(JSON.stringify(await server.result(who, 'SHOW QUERIES')))![1];
    const first = Number(await id('acme:acme'));
    for (let i = 0; i < 5; i++) await server.result('rival:rival', 'SHOW DATABASES');
    expect(Number(await id('acme:acme'))).toBe(first + 1);
  });

  test('tell figures of the whole server to its owner only', async () => {
    const stats = async (who: string) => JSON.stringify(await server.result(who, 'SHOW STATS'));
    expect(await stats('')).toContain('HeapAlloc');
    expect(await stats('acme:acme')).not.toContain('HeapAlloc');
    expect(await stats('acme:acme')).toContain('"tags":{"database":"d"}');
    expect(await server.result('acme:acme', 'SHOW DIAGNOSTICS')).toMatchObject([
      { name: 'build' },
      { name: 'system', columns: ['currentTime'] },
    ]);
  });
});
