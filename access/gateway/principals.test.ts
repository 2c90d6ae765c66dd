import { createHash, scryptSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  loginName,
  noLimits,
  type TenancyUpdate,
  type TenantDefinition,
  type TokenDefinition,
  type UserDefinition,
} from '../../contracts/tenancy/definitions.ts';
import { type Login, Principal, Principals, type PrincipalsChange } from './principals.ts';

/** A stored secret that is quick to check. */
function stored(password: string): string {
  const hash = scryptSync(password, 'salt', 32, { N: 16, r: 1, p: 1 });
  return `scrypt$16$1$1$${Buffer.from('salt').toString('base64')}$${hash.toString('base64')}`;
}

function tenant(name: string, number: number, change: Partial<TenantDefinition> = {}) {
  const firstTable = number * 16;
  return {
    name,
    number,
    state: 'active' as const,
    firstTable,
    databases: 16,
    limits: noLimits,
    ...change,
  };
}

function user(at: string, name: string, password: string, change: Partial<UserDefinition> = {}) {
  return {
    tenant: at,
    name,
    enabled: true,
    open: false,
    secrets: password === '' ? [] : [stored(password)],
    rules: '+@all ~* &*',
    influxAdmin: true,
    grants: {},
    ...change,
  };
}

function token(id: string, secret: string, of: string, at: string): TokenDefinition {
  const digest = createHash('sha256').update(secret).digest('base64');
  return { id, tenant: at, user: of, digest, description: '', createdAt: 0 };
}

let revision = 0;
function change(parts: Partial<TenancyUpdate>): TenancyUpdate {
  const gone = { tenants: [], users: [], tokens: [] };
  return { whole: false, revision: ++revision, tenants: [], users: [], tokens: [], gone, ...parts };
}

/** Tenants `red` and `blue`; users `default` of both, `ann` of red and of tenant `default`. */
function principals(): Principals {
  const made = new Principals({ databases: 16 });
  made.update(
    change({
      whole: true,
      tenants: [tenant('red', 1), tenant('blue', 2)],
      users: [
        user('red', 'default', 'r'),
        user('red', 'ann', 'ra'),
        user('blue', 'default', 'b'),
        user('default', 'ann', 'da'),
      ],
      tokens: [token('t1', 'long and random', 'ann', 'red')],
    }),
  );
  return made;
}

async function login(of: Principals, name: string, secret: string, from = '10.0.0.1') {
  return show(await of.login(name, Buffer.from(secret), from));
}

function show(outcome: Login): string {
  return outcome instanceof Principal ? outcome.name : outcome.failure;
}

describe('logging in', () => {
  test('a name is that of a tenant, of a user in one, or of a user of tenant default', async () => {
    const of = principals();
    const check = async (name: string, secret: string, expected: string) =>
      expect(await login(of, name, secret), `${name} ${secret}`).toBe(expected);
    await check('red', 'r', 'default@red');
    await check('default@red', 'r', 'default@red');
    await check('ann@red', 'ra', 'ann@red');
    await check('ann', 'da', 'ann@default');
    await check('ann@default', 'da', 'ann@default');
    await check('ann', 'ra', 'credentials');
    await check('red', 'b', 'credentials');
    await check('red', '', 'credentials');
    await check('nobody', 'r', 'credentials');
    await check('ann@nowhere', 'ra', 'credentials');
    await check('', '', 'credentials');
    await check('x'.repeat(100_000), 'r', 'credentials');
  });

  test('the default user is open until a password is set', async () => {
    const of = principals();
    expect(of.anonymous?.name).toBe('default@default');
    expect(await login(of, 'default', 'anything')).toBe('default@default');
    of.setDefaultPassword('secret');
    expect(of.anonymous).toBeUndefined();
    expect(await login(of, 'default', 'anything')).toBe('credentials');
    expect(await login(of, 'default', 'secret')).toBe('default@default');
    of.setDefaultPassword('');
    expect(of.anonymous?.name).toBe('default@default');
  });

  test('what was right once is answered at once', async () => {
    const of = principals();
    const password = Buffer.from('r');
    expect(of.login('red', password, '::1')).toBeInstanceOf(Promise);
    await of.login('red', password, '::1');
    expect(of.login('red', password, '::1')).toBeInstanceOf(Principal);
    expect(of.login('default@red', password, '::1')).toBeInstanceOf(Principal);
    expect(of.login('blue', password, '::1')).toBeInstanceOf(Promise);
  });

  test('a password is forgotten when another takes its place', async () => {
    const of = principals();
    await login(of, 'red', 'r');
    of.update(change({ users: [user('red', 'default', 'new')] }));
    expect(await login(of, 'red', 'r')).toBe('credentials');
    expect(await login(of, 'red', 'new')).toBe('default@red');
  });

  test('a password changed while it is checked does not count', async () => {
    const of = principals();
    const waiting = login(of, 'red', 'r');
    of.update(change({ users: [user('red', 'default', 'new')] }));
    expect(await waiting).toBe('credentials');
  });

  test('any secret of a user will do, and a damaged one is nobody’s', async () => {
    const of = principals();
    const secrets = ['scrypt$x', 'scrypt$99999999999$8$1$AA$AA', stored('one'), stored('two')];
    of.update(change({ users: [user('red', 'many', '', { secrets })] }));
    expect(await login(of, 'many@red', 'two')).toBe('many@red');
    expect(await login(of, 'many@red', 'one')).toBe('many@red');
    expect(await login(of, 'many@red', '')).toBe('credentials');
  });

  test('a suspended tenant is told to those who know the password alone', async () => {
    const of = principals();
    of.update(change({ tenants: [tenant('red', 1, { state: 'suspended' })] }));
    expect(await login(of, 'red', 'r')).toBe('suspended');
    expect(await login(of, 'red', 'no')).toBe('credentials');
    of.update(change({ tenants: [tenant('red', 1)] }));
    expect(await login(of, 'red', 'r')).toBe('default@red');
  });

  test('tokens', async () => {
    const of = principals();
    expect(show(of.token('long and random'))).toBe('ann@red');
    expect(show(of.token('long and random '))).toBe('credentials');
    expect(await login(of, 'ann@red', 'long and random')).toBe('ann@red');
    expect(await login(of, 'red', 'long and random')).toBe('credentials');
    of.update(change({ gone: { tenants: [], users: [], tokens: ['t1'] } }));
    expect(show(of.token('long and random'))).toBe('credentials');
    expect(await login(of, 'ann@red', 'long and random')).toBe('credentials');
  });
});

test('credentials are checked from the first password on, until the control plane says otherwise', () => {
  const of = new Principals({ databases: 16 });
  expect(of.checksCredentials).toBe(false);
  of.setDefaultPassword('secret');
  expect(of.checksCredentials).toBe(true);
  of.setDefaultPassword('');
  expect(of.checksCredentials).toBe(false);
  of.update(change({ tenants: [tenant('red', 1)], checksCredentials: true }));
  of.update(change({ gone: { tenants: ['red'], users: [], tokens: [] } }));
  expect([of.tenantCount, of.anonymous?.name]).toEqual([1, 'default@default']);
  expect(of.checksCredentials).toBe(true);
  of.update(change({ checksCredentials: false }));
  expect(of.checksCredentials).toBe(false);
});

describe('changes', () => {
  /** Logs four clients in, makes a change, and says who had to go. */
  async function ended(update: Partial<TenancyUpdate>): Promise<string> {
    const of = principals();
    const held = await Promise.all([
      of.login('red', Buffer.from('r'), 'a'),
      of.login('ann@red', Buffer.from('ra'), 'a'),
      of.login('ann@red', Buffer.from('long and random'), 'a'),
      of.login('blue', Buffer.from('b'), 'a'),
    ]);
    const heard: string[] = [];
    of.onChange((event: PrincipalsChange) => {
      for (const one of event.ended) heard.push(one.token ?? one.name);
    });
    of.update(change(update));
    for (const one of held as Principal[]) {
      expect(one.ended).toBe(heard.includes(one.token ?? one.name));
    }
    return heard.sort().join(' ');
  }
  const none = { tenants: [], users: [], tokens: [] };

  test('whoever may be no more ends, and nobody else', async () => {
    const red = (state: TenantDefinition['state']) => ({ tenants: [tenant('red', 1, { state })] });
    expect(await ended({})).toBe('');
    expect(await ended(red('suspended'))).toBe('ann@red default@red t1');
    expect(await ended(red('dropping'))).toBe('ann@red default@red t1');
    expect(await ended({ gone: { ...none, tenants: ['red'] } })).toBe('ann@red default@red t1');
    expect(await ended({ gone: { ...none, users: ['ann@red'] } })).toBe('ann@red t1');
    expect(await ended({ gone: { ...none, tokens: ['t1'] } })).toBe('t1');
    expect(await ended({ users: [user('red', 'ann', 'ra', { enabled: false })] })).toBe(
      'ann@red t1',
    );
    expect(await ended({ users: [user('red', 'ann', 'other')] })).toBe('');
    expect(await ended({ whole: true, tenants: [tenant('blue', 2)] })).toBe(
      'ann@red default@blue default@red t1',
    );
    // A tenant of the same name is another one.
    expect(await ended({ tenants: [tenant('red', 7)] })).toBe('ann@red default@red t1');
  });

  test('a principal follows its definitions', async () => {
    const of = principals();
    const red = (await of.login('red', Buffer.from('r'), 'a')) as Principal;
    const seen: string[] = [];
    const stop = of.onChange(({ changed }) => seen.push(...changed.map((one) => one.user.rules)));
    of.update(change({ users: [user('red', 'default', 'r', { rules: '+get ~a*' })] }));
    of.update(change({ tenants: [tenant('red', 1, { limits: { ...noLimits, keys: 5 } })] }));
    stop();
    of.update(change({ users: [user('red', 'default', 'r')] }));
    expect(seen).toEqual(['+get ~a*', '+get ~a*']);
    expect(red.tenant.limits.keys).toBe(5);
    expect(await of.login('red', Buffer.from('r'), 'a')).toBe(red);
  });

  test('says which tenants have gone', () => {
    const of = principals();
    const gone: string[] = [];
    of.onChange(({ goneTenants }) => gone.push(...goneTenants.map(({ name }) => name)));
    of.update(change({ tenants: [tenant('red', 1, { state: 'dropping' })] }));
    of.update(change({ tenants: [tenant('red', 1, { state: 'dropping' })] }));
    of.update(change({ gone: { ...none, tenants: ['red'] } }));
    expect(gone).toEqual(['red', 'red']);
  });

  test('an update that is older than what is in force is left out', () => {
    const of = principals();
    of.update({ ...change({ tenants: [tenant('late', 9)] }), revision: 1 });
    expect(of.tenant('late')).toBeUndefined();
  });

  test('tenant default is always there', () => {
    const of = principals();
    of.update(change({ whole: true }));
    expect([...of.tenants()].map(({ name }) => name)).toEqual(['default']);
    expect(of.anonymous?.name).toBe('default@default');
  });
});

describe('guessing', () => {
  test('is slowed, and refused in the end, while whoever knows the password is let in', async () => {
    const of = principals();
    await of.login('red', Buffer.from('r'), '10.0.0.1');
    const seen: string[] = [];
    for (let i = 0; i < 1000; i++) {
      void login(of, 'red', `guess ${i}`, '10.0.0.1').then((outcome) => seen.push(outcome));
    }
    // Known here already; and unknown, from elsewhere.
    expect(of.login('red', Buffer.from('r'), '10.0.0.1')).toBeInstanceOf(Principal);
    expect(await login(of, 'blue', 'b', '10.0.0.2')).toBe('default@blue');
    expect(seen.length).toBeLessThan(20);
    // With each failure beyond the free ones the wait of all others grows.
    await expect.poll(() => seen.length).toBeGreaterThan(14);
    expect(seen).toContain('credentials');
    expect(seen.length).toBeLessThan(40);
    expect(await login(of, 'red', 'one more', '10.0.0.1')).toBe('throttled');
    expect(await login(of, 'red', 'one more', '10.0.0.3')).toBe('credentials');
  });

  test('by one tenant does not slow down others behind the same address', async () => {
    const of = principals();
    const guesses = Array.from({ length: 60 }, (_, i) => login(of, 'red', `guess ${i}`));
    const unknown = Array.from({ length: 60 }, (_, i) => login(of, `no${i}`, `guess ${i}`));
    expect(await login(of, 'blue', 'b')).toBe('default@blue');
    // Of the sixty guesses on red, only the free failures have been answered by then.
    const answered = await Promise.race([
      Promise.all(guesses).then(() => 'all'),
      new Promise((resolve) => setImmediate(resolve, 'some')),
    ]);
    expect(answered).toBe('some');
    await Promise.all(unknown);
  });

  test('a pool of clients that logs in together is checked once', async () => {
    const of = principals();
    const all = Array.from(
      { length: 200 },
      async () => await of.login('red', Buffer.from('r'), 'a'),
    );
    expect(new Set(await Promise.all(all)).size).toBe(1);
  });

  test('what is known is bounded', async () => {
    const of = new Principals({ databases: 16, knownSecrets: 2 });
    const users = ['a', 'b', 'c'].map((name) => user('default', name, name));
    of.update(change({ users }));
    for (const name of ['a', 'b', 'c']) await login(of, name, name);
    expect(of.login('a', Buffer.from('a'), 'x')).toBeInstanceOf(Promise);
    expect(of.login('c', Buffer.from('c'), 'x')).toBeInstanceOf(Principal);
  });
});

test('ten thousand tenants are taken in quickly', () => {
  const of = new Principals({ databases: 16 });
  const tenants = Array.from({ length: 10_000 }, (_, i) => tenant(`t${i}`, i + 1));
  const users = tenants.map(({ name }) => user(name, 'default', '', { open: true }));
  of.update(change({ whole: true, tenants, users }));
  for (const { name } of tenants) {
    expect(show(of.login(name, Buffer.alloc(0), 'a') as Login)).toBe(loginName(name, 'default'));
  }
});
