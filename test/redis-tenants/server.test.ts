// The whole server: tenants made by the admin API, used by ioredis, node-redis and redis-py, and what of them
// outlives a restart and a crash.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { Polyrow } from '../support/polyrow.ts';
import { RespClient } from '../support/resp-client.ts';

let server: Polyrow;

async function admin(method: string, path: string, body?: object): Promise<Response> {
  const token = readFileSync(join(server.dataDir, 'admin-token'), 'utf8').trim();
  const answer = await fetch(`${server.admin}/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer;
}

async function login(name: string, password: string): Promise<RespClient> {
  const client = await server.client();
  expect(await client.text('AUTH', name, password)).toBe('+OK');
  return client;
}

// Both with TENANT_ENGINES=memory,kv; the other tests here are all on memory.
const engines = (process.env['TENANT_ENGINES'] ?? 'kv').split(',');

describe.each(engines)('with the %s engine', (model) => {
  beforeEach(async () => {
    server = await Polyrow.start({ flags: ['--redis.default-model', model] });
    await admin('POST', '/tenants', { name: 'red', password: 'red-secret' });
    await admin('POST', '/tenants', { name: 'blue', password: 'blue-secret' });
  });
  afterEach(() => server.remove());

  test('two tenants, each with the client of its choice', async () => {
    const red = new Redis(server.redisPort, '127.0.0.1', {
      username: 'red',
      password: 'red-secret',
    });
    const blue = createClient({
      url: `redis://blue:blue-secret@127.0.0.1:${server.redisPort}/3`,
    });
    await blue.connect();
    await red.set('k', 'of red');
    await blue.set('k', 'of blue');
    expect(await red.get('k')).toBe('of red');
    expect(await blue.get('k')).toBe('of blue');
    expect(await red.dbsize()).toBe(1);
    expect(await blue.sendCommand(['INFO', 'keyspace'])).toContain('db3:keys=1');
    const found: string[] = [];
    for await (const keys of red.scanStream({ match: '*' })) found.push(...(keys as string[]));
    expect(found).toEqual(['k']);
    await red.multi().incr('n').incr('n').exec();
    expect(await red.get('n')).toBe('2');
    await blue.flushAll();
    expect(await red.get('k')).toBe('of red');
    const wrong = createClient({ url: `redis://red:blue-secret@127.0.0.1:${server.redisPort}` });
    await expect(wrong.connect()).rejects.toThrow(/WRONGPASS/);
    await red.quit();
    await blue.close();
  });

  test('users made over Redis, and everything else, outlive a crash', async () => {
    const red = await login('red', 'red-secret');
    expect(await red.text('ACL', 'SETUSER', 'ann', 'on', '>pw', '~a:*', '+@all', '-flushall')).toBe(
      '+OK',
    );
    await red.pipeline([
      ['SELECT', 5],
      ['SET', 'a:1', 'kept'],
      ['SELECT', 9],
      ['SET', 'b', '1'],
    ]);
    const list = await red.text('ACL', 'LIST');
    await server.kill();
    await server.restart();
    const ann = await login('ann@red', 'pw');
    expect(await ann.text('SELECT', 5)).toBe('+OK');
    expect(await ann.text('GET', 'a:1')).toBe('"kept"');
    expect(await ann.text('GET', 'b')).toMatch(/^-NOPERM/);
    expect(await (await login('red', 'red-secret')).text('ACL', 'LIST')).toBe(list);
    expect(await ann.text('ACL', 'DELUSER', 'ann')).toBe(':1');
    await ann.ended;
    await server.restart();
    const gone = await server.client();
    expect(await gone.text('AUTH', 'ann@red', 'pw')).toMatch(/^-WRONGPASS/);
    expect(server.output).not.toContain('red-secret');
  });

  test('what the admin API changes is in force within a second', async () => {
    const within = async (client: RespClient, change: Promise<unknown>) => {
      await change;
      await client.ended;
    };
    await admin('POST', '/tenants/red/users', { name: 'ann', password: 'pw', rules: '~* +@all' });
    const ann = await login('ann@red', 'pw');
    await admin('PATCH', '/tenants/red/users/ann', { rules: '~* +@read' });
    expect(await ann.text('SET', 'k', 1)).toMatch(/^-NOPERM/);
    await within(ann, admin('PATCH', '/tenants/red/users/ann', { enabled: false }));
    const token = (await (
      await admin('POST', '/tenants/red/tokens', { user: 'default' })
    ).json()) as { id: string; secret: string };
    const program = await login('red', token.secret);
    expect(await program.text('SET', 'k', 1)).toBe('+OK');
    await within(program, admin('DELETE', `/tenants/red/tokens/${token.id}`));
    await admin('PATCH', '/tenants/red/limits', { keys: 1 });
    const red = await login('red', 'red-secret');
    expect(await red.text('SET', 'l', 1)).toMatch(/^-LIMIT tenant 'red' is at its limit keys/);
    await within(red, admin('PATCH', '/tenants/red', { state: 'suspended' }));
    const late = await server.client();
    expect(await late.text('AUTH', 'red', 'red-secret')).toBe("-ERR tenant 'red' is suspended");
  });

  test('a tenant that is dropped while it writes leaves nothing, on disk neither', async () => {
    const red = await login('red', 'red-secret');
    const blue = await login('blue', 'blue-secret');
    for (let db = 0; db < 16; db++) {
      await red.pipeline([
        ['SELECT', db],
        ['MSET', 'a', 1, 'b', 2],
        ['RPUSH', 'l', 1, 2, 3],
      ]);
    }
    await blue.command('SET', 'kept', 1);
    const writers = await Promise.all([1, 2, 3].map(() => login('red', 'red-secret')));
    const writing = writers.map(async (client, i) => {
      try {
        for (let n = 0; ; n++) {
          await client.pipeline([
            ['SELECT', n % 16],
            ['SET', `${i}:${n}`, 'x'.repeat(500)],
            ['RPUSH', 'l', n],
          ]);
        }
      } catch {
        // Its connection is gone.
      }
    });
    await new Promise((resolve) => setTimeout(resolve, 200));
    await admin('DELETE', '/tenants/red');
    await red.ended;
    await Promise.all(writing);
    await admin('POST', '/tenants', { name: 'red', password: 'again' });
    expect(await (await login('red', 'again')).text('INFO', 'keyspace')).not.toContain('keys=');
    await server.kill();
    await server.restart();
    expect(await (await login('blue', 'blue-secret')).text('GET', 'kept')).toBe('"1"');
    const metrics = await (await fetch(`${server.admin}/metrics`, { headers: bearer() })).text();
    const rows = [...metrics.matchAll(/^polyrow_engine_rows\{.*\} (\d+)$/gm)];
    expect(rows.map(([, n]) => Number(n)).reduce((a, b) => a + b, 0)).toBe(1);
  });
});

function bearer(): Record<string, string> {
  const token = readFileSync(join(server.dataDir, 'admin-token'), 'utf8').trim();
  return { authorization: `Bearer ${token}` };
}

const interpreters = [process.env['REDIS_PY'] ?? [], 'python3', '/usr/bin/python3'].flat();
const python = interpreters.find((name) => spawnSync(name, ['-c', 'import redis']).status === 0);
if (python === undefined) console.warn('skipped: no python3 with redis-py (python3-redis)');

describe.skipIf(python === undefined)('redis-py', () => {
  beforeEach(async () => {
    server = await Polyrow.start();
    await admin('POST', '/tenants', { name: 'red', password: 'red-secret' });
  });
  afterEach(() => server.remove());

  test('logs in, and manages its users', () => {
    const script = `
import redis
def connect(**who): return redis.Redis(port=${server.redisPort}, decode_responses=True, **who)
red = connect(username='red', password='red-secret', db=2)
red.set('k', 'v')
assert red.dbsize() == 1
assert connect().dbsize() == 0
assert red.acl_setuser('ann', enabled=True, passwords=['+pw'], keys=['a:*'], commands=['+@read', '+set', '+select'])
user = red.acl_getuser('ann')
assert 'on' in user['flags'] and len(user['passwords']) == 1, user
assert red.acl_list()[0].startswith('user ann on #'), red.acl_list()
ann = connect(username='ann@red', password='pw', db=2)
assert ann.set('a:1', 1) and ann.get('a:1') == '1'
try:
    ann.get('k')
    raise SystemExit('not refused')
except redis.exceptions.NoPermissionError:
    pass
assert red.acl_log()[0]['reason'] == 'key'
assert red.acl_deluser('ann') == 1
try:
    connect(username='ann@red', password='pw').ping()
    raise SystemExit('not refused')
except redis.exceptions.RedisError as error:
    assert 'invalid username-password pair' in str(error), error
print('passed')
`;
    const { stdout, stderr } = spawnSync(python!, ['-c', script], { encoding: 'utf8' });
    expect(stderr + stdout).toBe('passed\n');
  });
});
