// Accepted and rejected logins, disconnects, and their effect on other clients.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hashPassword } from '../../access/gateway/secrets.ts';
import type { RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';
import { quickSecret } from '../support/quick-secret.ts';
import { TenantsServer } from './tenants-server.ts';

const wrong = '-WRONGPASS invalid username-password pair or user is disabled.';

let server: TenantsServer;
beforeEach(async () => {
  server = await TenantsServer.start();
  server.tenant('red');
  server.tenant('blue');
});
afterEach(() => server.stop());

describe('AUTH and HELLO', () => {
  test('by tenant, by user and tenant, and by a user of tenant default', async () => {
    server.user('red', 'ann', { secrets: [quickSecret('pw')], rules: '~* +@all' });
    server.user('default', 'bob', { secrets: [quickSecret('pw')], rules: '~* +@all' });
    const client = await server.client();
    const check = async (line: string, expected: string) =>
      expect(await client.text(...line.split(' ')), line).toBe(expected);
    await check('SET where default', '+OK');
    await check('AUTH red red', '+OK');
    await check('GET where', '(nil)');
    await check('SET where red', '+OK');
    await check('ACL WHOAMI', '"default"');
    await check('AUTH ann@red pw', '+OK');
    await check('GET where', '"red"');
    await check('ACL WHOAMI', '"ann"');
    await check('AUTH bob pw', '+OK');
    await check('GET where', '"default"');
    await check('AUTH bob@red pw', wrong);
    await check('AUTH red blue', wrong);
    await check(
      'AUTH blue',
      '-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?',
    );
    // A login that fails changes nothing.
    await check('ACL WHOAMI', '"bob"');
    await check('HELLO 2 AUTH red wrong', wrong);
    await check('ACL WHOAMI', '"bob"');
    expect(await client.text('HELLO', 3, 'AUTH', 'red', 'red', 'SETNAME', 'n')).toMatch(/^%/);
    await check('GET where', '"red"');
    await check('CLIENT GETNAME', '"n"');
    await check('RESET', '+RESET');
    await check('GET where', '"default"');
  });

  test('with a password on the default user', async () => {
    const closed = await TenantsServer.start({ defaultPassword: 'secret' });
    closed.tenant('red');
    const client = await closed.client();
    const check = async (line: string, expected: string | RegExp) =>
      expect(await client.text(...line.split(' ')), line).toMatch(expected);
    await check('GET a', /^-NOAUTH Authentication required\.$/);
    await check('HELLO 3', /^-NOAUTH HELLO must be called/);
    await check('AUTH no', wrong);
    await check('AUTH secret', /^\+OK$/);
    await check('SET a default', /^\+OK$/);
    await check('AUTH red red', /^\+OK$/);
    await check('GET a', /^\(nil\)$/);
    await check('RESET', /^\+RESET$/);
    await check('GET a', /^-NOAUTH/);
    await check('HELLO 2 AUTH default secret', /^\*\["server"/);
    await check('GET a', /^"default"$/);
    await closed.stop();
  });

  test('what is sent behind a login waits for it, and others do not', async () => {
    server.user('red', 'slow', {
      secrets: [await hashPassword(Buffer.from('pw'), 'red')],
      rules: '~* +@all',
    });
    const client = await server.client();
    const pipeline = client.pipeline([
      ['SET', 'mine', 'default'],
      ['AUTH', 'slow@red', 'pw'],
      ['SET', 'mine', 'red'],
      ['AUTH', 'slow@red', 'no'],
      ['GET', 'mine'],
      ['PING'],
    ]);
    let finished = false;
    void pipeline.then(() => (finished = true));
    const other = await server.client();
    let pings = 0;
    while (!finished) {
      await other.command('PING');
      pings++;
    }
    expect(pings).toBeGreaterThan(20);
    expect((await pipeline).map(show)).toEqual(['+OK', '+OK', '+OK', wrong, '"red"', '+PONG']);
    expect(await (await server.client()).text('GET', 'mine')).toBe('"default"');
  });

  test('a client that goes while it logs in is no trouble', async () => {
    server.user('red', 'slow', { secrets: [await hashPassword(Buffer.from('pw'), 'red')] });
    for (let i = 0; i < 5; i++) {
      const client = await server.client();
      client.send('*3\r\n$4\r\nAUTH\r\n$8\r\nslow@red\r\n$2\r\npw\r\n');
      client.close();
    }
    await new Promise((resolve) => setTimeout(resolve, 300));
    await expect.poll(() => server.redis.connections.size).toBe(0);
    expect(server.redis.tenants.get(1)?.connections.size ?? 0).toBe(0);
  });

  test('not within a transaction', async () => {
    const client = await server.client();
    await client.command('MULTI');
    expect(await client.text('AUTH', 'red', 'red')).toMatch(/^-ERR Command not allowed/);
    expect(await client.text('EXEC')).toMatch(/^-EXECABORT/);
  });
});

describe('who may be no more', () => {
  async function endsWithinASecond(client: RespClient, change: () => void): Promise<void> {
    change();
    await client.ended;
  }

  test('is put out: user, tenant, token, whatever it is doing', async () => {
    const user = (name: string) =>
      server.user('red', name, { secrets: [quickSecret('pw')], rules: '~* &* +@all' });
    const login = (name: string) => server.client(`${name}@red`, 'pw');
    for (const name of ['a', 'b', 'c', 'd']) user(name);
    const stays = await server.client('blue');

    const disabled = await login('a');
    await endsWithinASecond(disabled, () => server.user('red', 'a', { enabled: false }));
    const blocked = await login('b');
    blocked.command('BLPOP', 'x', 0).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 20));
    await endsWithinASecond(blocked, () => server.dropUser('red', 'b'));
    const listening = await login('c');
    await listening.command('SUBSCRIBE', 'news');
    await endsWithinASecond(listening, () => server.alter('red', { state: 'suspended' }));
    const client = await server.client();
    expect(await client.text('AUTH', 'red', 'red')).toBe("-ERR tenant 'red' is suspended");
    expect(await client.text('AUTH', 'red', 'no')).toBe(wrong);
    server.alter('red', { state: 'active' });
    const queueing = await login('d');
    await queueing.command('MULTI');
    await endsWithinASecond(queueing, () => server.alter('red', { state: 'dropping' }));
    expect(await client.text('AUTH', 'd@red', 'pw')).toBe("-ERR tenant 'red' is being dropped");
    expect(await stays.text('PING')).toBe('+PONG');
  });

  test('is put out of channels that it may no longer hear', async () => {
    const rules = '~* &news +@all';
    server.user('red', 'a', { secrets: [quickSecret('pw')], rules });
    const [client, other] = [
      await server.client('a@red', 'pw'),
      await server.client('a@red', 'pw'),
    ];
    await client.command('SUBSCRIBE', 'news');
    server.user('red', 'a', { rules: `${rules} &old` });
    expect(await other.text('PING')).toBe('+PONG');
    expect(client.closed).toBe(false);
    server.user('red', 'a', { rules: '~* &old +@all' });
    await client.ended;
    expect(await other.text('PING')).toBe('+PONG');
  });

  test('loses a right with the next command', async () => {
    server.user('red', 'a', { secrets: [quickSecret('pw')], rules: '~* +@all' });
    const client = await server.client('a@red', 'pw');
    expect(await client.text('SET', 'k', 1)).toBe('+OK');
    server.user('red', 'a', { rules: '~* +@read' });
    expect(await client.text('SET', 'k', 1)).toMatch(/^-NOPERM/);
    expect(await client.text('GET', 'k')).toBe('"1"');
  });

  test('gets the answer to the command by which it went', async () => {
    server.user('red', 'a', { secrets: [quickSecret('pw')], rules: '~* +@all' });
    const client = await server.client('a@red', 'pw');
    expect(await client.text('ACL', 'DELUSER', 'a')).toBe(':1');
    await client.ended;
  });
});

describe('ACL SETUSER', () => {
  test('makes users of the own tenant, with passwords that cannot be read back', async () => {
    const red = await server.client('red');
    const check = async (line: string, expected: string | RegExp) =>
      expect(await red.text(...line.split(' ')), line).toMatch(expected);
    await check('ACL SETUSER ann on >one >two ~a:* +@all', /^\+OK$/);
    const [, one, two] = /#(\w{64}) #(\w{64}) ~a:\*/.exec(await red.text('ACL', 'LIST'))!;
    expect(server.principals.user('red', 'ann')!.secrets.join()).not.toMatch(/one|two/);
    const login = async (password: string) =>
      await (await server.client()).text('AUTH', 'ann@red', password);
    expect(await login('one')).toBe('+OK');
    expect(await login('two')).toBe('+OK');
    await check(`ACL SETUSER ann !${one}`, /^\+OK$/);
    expect(await login('one')).toBe(wrong);
    // The shown digest stands for the stored secret.
    await check(`ACL SETUSER ann #${two}`, /^\+OK$/);
    expect(await login('two')).toBe('+OK');
    await check('ACL SETUSER ann <two', /^\+OK$/);
    expect(await login('two')).toBe(wrong);
    await check('ACL SETUSER ann <two', /^-ERR Error in ACL SETUSER modifier '<\(redacted\)'/);
    // SHA-256 of "three", as Redis keeps it.
    const three = '8b5b9db0c13db24256c829aa364aa90c6d2eba318b9232a4ab9313b954d3555f';
    await check(`ACL SETUSER ann #${three}`, /^\+OK$/);
    expect(await login('three')).toBe('+OK');
    await check('ACL SETUSER ann nopass', /^\+OK$/);
    expect(await login('anything')).toBe('+OK');
    await check('ACL SETUSER ann resetpass', /^\+OK$/);
    expect(await login('anything')).toBe(wrong);
    await check('ACL SETUSER ann reset', /^\+OK$/);
    await check('ACL GETUSER ann', /"flags" \*\["off"\].*"commands" "-@all"/);
    expect(await (await server.client('blue')).text('ACL', 'USERS')).toBe('*["default"]');
    await check('ACL DELUSER ann', /^:1$/);
  });

  test('many at once all come about', async () => {
    const clients = await Promise.all(Array.from({ length: 10 }, () => server.client('red')));
    const rules = [
      '+get',
      '+set',
      '+del',
      '+ping',
      '+mget',
      '+ttl',
      '+incr',
      '+keys',
      '+type',
      '+echo',
    ];
    await Promise.all(clients.map((one, i) => one.text('ACL', 'SETUSER', 'all', rules[i]!)));
    const text = await clients[0]!.text('ACL', 'GETUSER', 'all');
    for (const rule of rules) expect(text).toContain(rule);
  });

  test('needs the right to', async () => {
    server.user('red', 'ann', { secrets: [quickSecret('pw')], rules: '~* +@all -@admin' });
    const ann = await server.client('ann@red', 'pw');
    expect(await ann.text('ACL', 'SETUSER', 'ann', '+@all')).toBe(
      "-NOPERM this user has no permissions to run the 'acl|setuser' command",
    );
    expect(await ann.text('ACL', 'WHOAMI')).toBe('"ann"');
  });
});

test('a tenant is deleted while it writes', async () => {
  const clients = await Promise.all(Array.from({ length: 4 }, () => server.client('red')));
  const blue = await server.client('blue');
  await blue.command('SET', 'kept', '1');
  let written = 0;
  const writers = clients.map(async (client, i) => {
    try {
      for (let n = 0; ; n++) {
        await client.pipeline(
          Array.from({ length: 50 }, (_, k) => ['SET', `k${i}:${n}:${k}`, 'x'.repeat(100)]),
        );
        await client.command('SELECT', n % 16);
        written += 50;
      }
    } catch {
      // Its connection is gone.
    }
  });
  await expect.poll(() => written).toBeGreaterThan(2000);
  const { firstTable } = server.principals.tenant('red')!;
  await server.drop('red');
  await Promise.all(writers);
  for (let table = firstTable; table < firstTable + 16; table++) {
    expect(server.pod.tableSize(table).rows, `table ${table}`).toBe(0);
  }
  expect(await blue.text('GET', 'kept')).toBe('"1"');
  expect(await (await server.client()).text('AUTH', 'red', 'red')).toBe(wrong);
  // A new tenant of that name begins with nothing.
  server.tenant('red');
  expect(await (await server.client('red')).text('DBSIZE')).toBe(':0');
});

test('a thousand wrong passwords hold nobody else up', async () => {
  const known = await server.client('blue');
  const guessers = await Promise.all(Array.from({ length: 20 }, () => server.client()));
  const answers = new Map<string, number>();
  const guessing = guessers.map(async (client, g) => {
    const guesses = Array.from({ length: 50 }, (_, i) => ['AUTH', 'red', `guess${g}:${i}`]);
    for (const answer of await client.pipeline(guesses).catch(() => [])) {
      const text = show(answer);
      answers.set(text, (answers.get(text) ?? 0) + 1);
    }
  });
  for (let i = 0; i < 20; i++) {
    expect(await known.text('PING')).toBe('+PONG');
    // One that has logged in before does so again.
    expect(await (await server.client('blue')).text('PING')).toBe('+PONG');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const total = [...answers.values()].reduce((sum, count) => sum + count, 0);
  // Those who guess are still at it.
  expect(total).toBeLessThan(1000);
  expect([...answers.keys()].filter((text) => text === '+OK')).toEqual([]);
  for (const client of guessers) client.close();
  await Promise.all(guessing);
});

test('thousands of tenants log in and out', async () => {
  const count = Number(process.env['TENANTS'] ?? 2000);
  const secret = quickSecret('pw');
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < count; i++) server.tenant(`t${i}`);
  for (let i = 0; i < count; i++) server.user(`t${i}`, 'default', { secrets: [secret] });
  const atOnce = 50;
  for (let from = 0; from < count; from += atOnce) {
    const names = Array.from({ length: Math.min(atOnce, count - from) }, (_, i) => `t${from + i}`);
    await Promise.all(
      names.map(async (name) => {
        const client = await server.client(name, 'pw');
        const [db, set, get] = await client.pipeline([
          ['DBSIZE'],
          ['SET', 'whose', name],
          ['GET', 'whose'],
        ]);
        expect([db, set, get].map((reply) => show(reply!))).toEqual([':0', '+OK', `"${name}"`]);
        client.close();
      }),
    );
  }
  expect(server.pod.heldTables()).toHaveLength(count);
  expect((process.memoryUsage().heapUsed - before) / count).toBeLessThan(30_000);
});
