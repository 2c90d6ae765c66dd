// Official clients, each logged in as a user of one of two tenants whose databases are called the same, against
// the whole server.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { InfluxDB as InfluxV1 } from 'influx';
import { InfluxDB as InfluxV2, Point } from '@influxdata/influxdb-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';

let server: Polyrow;
const port = () => Number(new URL(server.influx).port);
const tenants = ['acme', 'rival'] as const;

interface Made {
  id: string;
  secret: string;
}

async function admin<T>(method: string, path: string, body?: unknown): Promise<T> {
  const token = readFileSync(join(server.dataDir, 'admin-token'), 'utf8').trim();
  const response = await fetch(server.admin + path, {
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

const newToken = (tenant: string, user = 'default') =>
  admin<Made>('POST', `/v1/tenants/${tenant}/tokens`, { user });

async function query(login: string, q: string, db = 'd'): Promise<[number, string]> {
  const headers: Record<string, string> =
    login === '' ? {} : { Authorization: `Basic ${Buffer.from(login).toString('base64')}` };
  const parameters = new URLSearchParams({ q, db });
  const response = await fetch(`${server.influx}/query`, {
    method: 'POST',
    body: parameters,
    headers,
  });
  return [response.status, await response.text()];
}

async function run(command: string, args: readonly string[]): Promise<[string, number | null]> {
  const child = spawn(command, args);
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  child.stderr.on('data', (chunk) => (output += String(chunk)));
  const [code] = (await once(child, 'close')) as [number | null];
  return [output, code];
}

beforeAll(async () => {
  server = await Polyrow.start();
  for (const name of tenants) {
    await admin('POST', '/v1/tenants', { name, password: `of-${name}` });
    await query(`${name}:of-${name}`, 'CREATE DATABASE d');
  }
});
afterAll(async () => {
  await server.stop();
  await server.remove();
});

describe.each(tenants)('as %s', (tenant) => {
  const other = tenant === 'acme' ? 'rival' : 'acme';

  test('influx for Node.js', async () => {
    const connect = (password: string) =>
      new InfluxV1({
        host: '127.0.0.1',
        port: port(),
        database: 'node',
        username: tenant,
        password,
      });
    const client = connect(`of-${tenant}`);
    await client.createDatabase('node');
    expect(await client.getDatabaseNames()).not.toContain(`only-${other}`);
    await client.createDatabase(`only-${tenant}`);
    await client.writePoints([{ measurement: tenant, tags: { host: 'h' }, fields: { v: 1 } }]);
    expect(await client.getMeasurements()).toEqual([tenant]);
    expect(await client.query('SELECT v FROM /.*/')).toHaveLength(1);
    await client.createUser('node', 'secret', false);
    await client.grantPrivilege('node', 'READ', 'node');
    expect(await client.getUsers()).toContainEqual({ user: 'node', admin: false });
    await client.dropUser('node');
    await expect(connect('wrong').getDatabaseNames()).rejects.toThrow('authorization failed');
  });

  test('@influxdata/influxdb-client', async () => {
    const { id, secret } = await newToken(tenant);
    const write = async (token: string, bucket: string): Promise<void> => {
      const client = new InfluxV2({ url: server.influx, token });
      const api = client.getWriteApi('org', bucket, 'ms', { maxRetries: 0 });
      api.writePoint(new Point('v2').tag('of', tenant).intField('i', 1));
      await api.close();
    };
    await write(secret, 'd');
    await write(`${tenant}:of-${tenant}`, 'd/autogen');
    expect((await query(`${tenant}:of-${tenant}`, 'SHOW SERIES FROM v2'))[1]).toContain(
      `["v2,of=${tenant}"]]`,
    );
    await expect(write(secret, `only-${other}`)).rejects.toMatchObject({ statusCode: 404 });
    await admin('DELETE', `/v1/tenants/${tenant}/tokens/${id}`);
    await expect(write(secret, 'd')).rejects.toMatchObject({ statusCode: 401 });
  });

  const python = ['python3', '/usr/bin/python3'].find(
    (name) => spawnSync(name, ['-c', 'import influxdb']).status === 0,
  );
  test.skipIf(python === undefined)('influxdb-python', async () => {
    const script = `${import.meta.dirname}/influx_python.py`;
    const login = [`default@${tenant}`, `of-${tenant}`];
    const [output, code] = await run(python!, [script, String(port()), ...login, tenant]);
    expect(output).toMatch(/^passed$/m);
    expect(code).toBe(0);
  });

  const hasCli = spawnSync('influx', ['-version']).status === 0;
  test.skipIf(!hasCli)('the influx command', async () => {
    const execute = async (password: string, statement: string): Promise<string> => {
      const login = ['-username', tenant, '-password', password];
      const where = ['-host', '127.0.0.1', '-port', String(port()), '-database', 'd'];
      const [output] = await run('influx', [...where, ...login, '-execute', statement]);
      return output;
    };
    const password = `of-${tenant}`;
    await execute(password, `INSERT cli,host=${tenant} v=1 1`);
    expect(await execute(password, 'SHOW SERIES FROM cli')).toContain(`cli,host=${tenant}`);
    expect(await execute(password, 'SHOW SERIES')).not.toContain(other);
    expect(await execute(password, "CREATE USER cli WITH PASSWORD 'x'")).toBe('');
    expect(await execute(password, 'SHOW USERS')).toMatch(/^cli +false$/m);
    await execute(password, 'DROP USER cli');
    expect(await execute('wrong', 'SHOW DATABASES')).toContain('authorization failed');
  });

  test('curl', async () => {
    const curl = async (...args: string[]) => {
      const [output] = await run('curl', ['-s', '-w', ' %{http_code}', ...args]);
      return output.replace(/\n /, ' ');
    };
    const write = [`${server.influx}/write?db=d`, '--data-binary', `curl,of=${tenant} v=1 1`];
    expect(await curl(...write)).toMatch(/404$/);
    expect(await curl('-u', `${tenant}:of-${tenant}`, ...write)).toBe(' 204');
    expect(await curl('-u', `${tenant}:of-${other}`, ...write)).toBe(
      '{"error":"authorization failed"} 401',
    );
    const byParameters = `${server.influx}/query?db=d&u=${tenant}&p=of-${tenant}`;
    const shown = await curl('-G', byParameters, '--data-urlencode', 'q=SHOW SERIES FROM curl');
    expect(shown).toContain(`["curl,of=${tenant}"]]`);
  });
});

test('all of it is there after a crash, and one that is dropped leaves nothing', async () => {
  await query('acme:of-acme', "CREATE USER lasting WITH PASSWORD 'l'; GRANT READ ON d TO lasting");
  await query('acme:of-acme', 'SELECT v INTO kept FROM curl');
  await server.kill();
  await server.restart();
  expect(await query('lasting@acme:l', 'SELECT v FROM kept')).toEqual([
    200,
    expect.stringContaining('"kept"'),
  ]);
  expect((await query('lasting@acme:l', 'SHOW DATABASES'))[1]).toContain('[["d"]]');
  await admin('DELETE', '/v1/tenants/rival');
  expect((await query('rival:of-rival', 'SHOW DATABASES'))[0]).toBe(401);
  await expect
    .poll(() => admin<{ tenants: { name: string }[] }>('GET', '/v1/tenants'))
    .toMatchObject({ tenants: [{ name: 'default' }, { name: 'acme' }] });
  await admin('POST', '/v1/tenants', { name: 'rival', password: 'again' });
  expect(await query('rival:again', 'SHOW DATABASES')).toEqual([
    200,
    '{"results":[{"statement_id":0,"series":[{"name":"databases","columns":["name"]}]}]}\n',
  ]);
  expect((await query('acme:of-acme', 'SHOW DATABASES'))[1]).toContain('["only-acme"]');
});

test('what is written in logs has no secret in it', () => {
  expect(server.output).not.toMatch(/of-acme|of-rival/);
});
