import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { TenancyUpdate } from '../../contracts/tenancy/definitions.ts';
import { MemoryStore } from '../metadata/memory-store-fixture.ts';
import { WorkflowEngine } from '../workflows/workflow-engine.ts';
import { type NewTenant, TenantCatalog, type TenantHolders } from './tenant-catalog.ts';

/** Fast, and sufficient where no test logs in. */
const quickHash = async (password: Buffer): Promise<string> =>
  `scrypt$2$1$1$c2FsdA==$${password.toString('base64')}`;

class FakePlanes implements TenantHolders {
  readonly updates: TenancyUpdate[] = [];
  readonly dropped: number[] = [];
  objection: string | undefined;
  dropObjection: string | undefined;

  async tenancy(update: TenancyUpdate): Promise<void> {
    if (this.objection !== undefined) throw new Error(this.objection);
    this.updates.push(update);
  }

  async dropData({ number }: { number: number }): Promise<void> {
    if (this.dropObjection !== undefined) throw new Error(this.dropObjection);
    this.dropped.push(number);
  }
}

let store: MemoryStore;
let planes: FakePlanes;
let catalog: TenantCatalog;
let workflows: WorkflowEngine;
let reports: string[];

async function openWorkflows(): Promise<WorkflowEngine> {
  return await WorkflowEngine.open(store, {
    report: (message) => reports.push(message),
    leaseMs: 0,
    retry: { firstMs: 20, mostMs: 100, compensations: 3 },
  });
}

async function open(): Promise<void> {
  workflows = await openWorkflows();
  catalog = await TenantCatalog.open(store, {
    workflows,
    databases: 16,
    hashPassword: quickHash,
    report: (message) => reports.push(message),
    now: () => 1000,
  });
}

beforeEach(async () => {
  store = new MemoryStore();
  planes = new FakePlanes();
  reports = [];
  await open();
});
afterEach(() => close());

async function close(): Promise<void> {
  await workflows.close();
  await catalog.close();
}

async function reopen(): Promise<void> {
  await close();
  await open();
}

async function attach(): Promise<void> {
  await catalog.attach(planes);
  workflows.start();
}

/** Documents of tenants, without what is kept of workflows that have ended. */
function names(): string[] {
  return store.names().filter((name) => !name.startsWith('workflows/'));
}

async function refused(change: Promise<unknown>): Promise<string> {
  return await change.then(
    () => 'done',
    (error: Error & { reason: string }) => `${error.reason}: ${error.message}`,
  );
}

describe('whether credentials are checked', () => {
  const checked = (): (boolean | undefined)[] => [
    catalog.checksCredentials,
    catalog.snapshot().checksCredentials,
  ];

  test.each<[string, () => Promise<unknown>]>([
    ['a tenant', () => catalog.createTenant({ name: 'shop' })],
    [
      'a user with a password',
      () => catalog.setUser({ tenant: 'default', name: 'ann', change: {}, password: 'x' }),
    ],
    ['a token', () => catalog.tokens.create('default', 'default')],
  ])('they are from the first one on: %s', async (_what, make) => {
    expect(checked()).toEqual([false, false]);
    await catalog.setUser({ tenant: 'default', name: 'bob', change: { open: true } });
    expect(checked()).toEqual([false, false]);
    await attach();
    await make();
    expect(planes.updates.at(-1)?.checksCredentials).toBe(true);
    await reopen();
    expect(checked()).toEqual([true, true]);
  });

  test('they still are when the last tenant with a password is dropped, until a reset', async () => {
    await attach();
    await catalog.createTenant({ name: 'shop' });
    expect(await refused(catalog.resetAuthentication())).toMatch(/^conflict: default@shop has a p/);
    await catalog.dropTenant('shop');
    expect(await catalog.dropped({ name: 'shop', number: 1 }, 1000)).toBe(true);
    await reopen();
    expect(checked()).toEqual([true, true]);
    await attach();
    await catalog.resetAuthentication();
    expect(planes.updates.at(-1)).toMatchObject({ whole: false, checksCredentials: false });
    await catalog.resetAuthentication();
    await reopen();
    expect(checked()).toEqual([false, false]);
  });

  test('metadata of an earlier release is read for passwords', async () => {
    await catalog.createTenant({ name: 'shop' });
    await close();
    const record = await store.get('authentication', 'tenancy');
    const { revision: expected } = record!;
    await store.write([{ collection: 'authentication', id: 'tenancy', body: undefined, expected }]);
    await open();
    expect(checked()).toEqual([true, true]);
  });
});

describe('tenants', () => {
  test('there is always a tenant default, whose user is open', () => {
    const { tenants, users, whole } = catalog.snapshot();
    expect(whole).toBe(true);
    expect(tenants).toMatchObject([
      { name: 'default', number: 0, firstTable: 0, databases: 16, state: 'active' },
    ]);
    expect(users).toMatchObject([{ tenant: 'default', name: 'default', open: true }]);
  });

  test('each gets a number and tables that nobody had before', async () => {
    const { tenant: shop } = await catalog.createTenant({ name: 'shop' });
    const { tenant: mill } = await catalog.createTenant({ name: 'mill', databases: 100 });
    expect([shop, mill]).toMatchObject([
      { number: 1, firstTable: 4096, databases: 16 },
      { number: 2, firstTable: 4112, databases: 100 },
    ]);
    await attach();
    await catalog.dropTenant('mill');
    expect(await catalog.dropped({ name: 'mill', number: 2 }, 1000)).toBe(true);
    await reopen();
    const { tenant: again } = await catalog.createTenant({ name: 'mill' });
    expect(again).toMatchObject({ number: 3, firstTable: 4212 });
    expect([4095, 4096, 4111, 4112, 4212, 4227, 4228].map((n) => catalog.ownerOf(n)?.name)).toEqual(
      [undefined, 'shop', 'shop', undefined, 'mill', 'mill', undefined],
    );
  });

  test('more databases of tenant default do not come near theirs', async () => {
    await catalog.createTenant({ name: 'shop' });
    await close();
    workflows = await openWorkflows();
    catalog = await TenantCatalog.open(store, {
      workflows,
      databases: 4096,
      hashPassword: quickHash,
    });
    expect(catalog.find('default').databases).toBe(4096);
    expect(catalog.ownerOf(4095)?.name).toBe('default');
    expect(catalog.ownerOf(4096)?.name).toBe('shop');
  });

  test('the password of the first user is the one given, or is made up', async () => {
    expect((await catalog.createTenant({ name: 'shop', password: 'hush' })).password).toBe('hush');
    const { password } = await catalog.createTenant({ name: 'mill' });
    expect(password).toMatch(/^[\w-]{24}$/);
    expect(catalog.user('mill', 'default')).toMatchObject({
      open: false,
      secrets: [await quickHash(Buffer.from(password))],
    });
  });

  test('limits change one by one, and a tenant is suspended and resumed', async () => {
    await catalog.createTenant({ name: 'shop', limits: { keys: 5 } });
    await catalog.alterTenant('shop', { limits: { series: 7 }, state: 'suspended' });
    await reopen();
    expect(catalog.find('shop')).toMatchObject({
      state: 'suspended',
      limits: { keys: 5, series: 7, connections: 0 },
    });
    await catalog.alterTenant('shop', { state: 'active' });
    expect(catalog.find('shop').state).toBe('active');
  });

  test.each([
    [{ name: '' }, 'invalid: a tenant cannot be called so'],
    [{ name: '1st' }, 'invalid: a tenant cannot be called so'],
    [{ name: 'a@b' }, 'invalid: a tenant cannot be called so'],
    [{ name: 'a/b' }, 'invalid: a tenant cannot be called so'],
    [{ name: 'a'.repeat(64) }, 'invalid: a tenant cannot be called so'],
    [{ name: 'default' }, 'conflict: tenant default already exists'],
    [{ name: 'taken' }, 'conflict: tenant taken already exists'],
    [{ name: 'ann' }, 'conflict: a user of tenant default is called ann'],
    [{ name: 'x', databases: 0 }, 'invalid: databases must be'],
    [{ name: 'x', databases: 4097 }, 'invalid: databases must be'],
    [{ name: 'x', limits: { keys: -1 } }, 'invalid: keys must be a whole number'],
    [{ name: 'x', limits: { keys: 0.5 } }, 'invalid: keys must be a whole number'],
    [{ name: 'x', limits: { nothing: 1 } as object }, 'invalid: there is no limit nothing'],
    [{ name: 'x', limits: { ruPerSecond: 9, peakRuPerSecond: 8 } }, 'invalid: peakRuPerSecond, 8,'],
    [{ name: 'x', password: '' }, 'invalid: a password cannot be empty'],
    [{ name: 'x', password: 'x'.repeat(513) }, 'invalid: a password cannot have more'],
  ] as [NewTenant, string][])('%j: %s', async (wish, message) => {
    await catalog.createTenant({ name: 'taken' });
    await catalog.setUser({ tenant: 'default', name: 'ann', change: {} });
    const before = names();
    expect(await refused(catalog.createTenant(wish))).toContain(message);
    expect(names()).toEqual(before);
  });

  test('default stays', async () => {
    expect(await refused(catalog.dropTenant('default'))).toContain('conflict');
    expect(await refused(catalog.alterTenant('default', { state: 'suspended' }))).toContain(
      'conflict',
    );
  });

  test('one that comes from elsewhere brings its users and tokens, and is suspended', async () => {
    await catalog.createTenant({ name: 'shop', databases: 3, password: 'hush' });
    await catalog.setUser({ tenant: 'shop', name: 'ann', change: { rules: '+get' } });
    await catalog.tokens.create('shop', 'ann', 'old');
    const tokens = catalog.tokens.of('shop');
    const from = { tenant: catalog.find('shop'), users: catalog.users('shop'), tokens };
    const copy = await catalog.adoptTenant('copy', from);
    expect(copy).toMatchObject({ name: 'copy', state: 'suspended', databases: 3, number: 2 });
    expect(catalog.users('copy').map(({ name, rules }) => [name, rules])).toEqual([
      ['ann', '+get'],
      ['default', '+@all ~* &*'],
    ]);
    // A secret opens one tenant only.
    expect(catalog.tokens.of('copy')).toEqual([]);
    const digest = 'x';
    await catalog.adoptTenant('third', { ...from, tokens: [{ ...tokens[0]!, digest }] });
    expect(catalog.tokens.of('third')).toMatchObject([{ tenant: 'third', user: 'ann', digest }]);
  });
});

describe('users', () => {
  beforeEach(async () => {
    await catalog.createTenant({ name: 'shop' });
  });

  test('are made without rights, and changed bit by bit', async () => {
    const ann = { tenant: 'shop', name: 'ann' };
    await catalog.setUser({ ...ann, expect: 'new', change: {}, password: 'one' });
    await catalog.setUser({ ...ann, change: { grants: { metrics: 'read' } } });
    await reopen();
    expect(catalog.user('shop', 'ann')).toEqual({
      ...ann,
      enabled: true,
      open: false,
      secrets: [await quickHash(Buffer.from('one'))],
      rules: '-@all',
      influxAdmin: false,
      grants: { metrics: 'read' },
    });
    await catalog.setUser({ ...ann, expect: 'there', change: {}, password: 'two' });
    expect(catalog.user('shop', 'ann').secrets).toEqual([await quickHash(Buffer.from('two'))]);
  });

  test('an open one that is given a password is open no more', async () => {
    const user = { tenant: 'default', name: 'default', change: {} };
    await catalog.setUser({ ...user, password: 'hush' });
    expect(catalog.user('default', 'default').open).toBe(false);
  });

  test.each([
    [{ tenant: 'none', name: 'ann' }, 'missing: no tenant none'],
    [{ tenant: 'shop', name: 'a b' }, 'invalid: a user cannot be called so'],
    [{ tenant: 'shop', name: 'ann', expect: 'there' as const }, 'missing: tenant shop has no user'],
    [
      { tenant: 'shop', name: 'default', expect: 'new' as const },
      'conflict: tenant shop has a user',
    ],
    [{ tenant: 'default', name: 'shop' }, 'conflict: a tenant is called shop'],
    [{ tenant: 'shop', name: 'ann', change: { secrets: ['plain'] } }, 'invalid: a stored password'],
    [{ tenant: 'shop', name: 'ann', change: { rules: 'a\nb' } }, 'invalid: rules are one line'],
    [
      { tenant: 'shop', name: 'ann', change: { grants: { x: 'own' as 'all' } } },
      'invalid: a privi',
    ],
    [
      { tenant: 'shop', name: 'ann', change: { grants: { '\u0001': 'all' as const } } },
      'invalid: a',
    ],
  ])('%j: %s', async (request, message) => {
    expect(await refused(catalog.setUser({ change: {}, ...request }))).toContain(message);
  });

  test('go with their tokens, and leave their name to a tenant', async () => {
    await catalog.setUser({ tenant: 'default', name: 'ann', change: {} });
    await catalog.tokens.create('default', 'ann');
    await catalog.tokens.create('default', 'default');
    await catalog.dropUser('default', 'ann');
    expect(catalog.tokens.of('default').map(({ user }) => user)).toEqual(['default']);
    await catalog.createTenant({ name: 'ann' });
    expect(await refused(catalog.dropUser('shop', 'default'))).toContain('conflict');
    expect(await refused(catalog.dropUser('shop', 'bob'))).toContain('missing');
  });
});

describe('tokens', () => {
  test('are shown once; only their digest is kept', async () => {
    await catalog.createTenant({ name: 'shop' });
    const { token, secret } = await catalog.tokens.create('shop', 'default', 'telegraf');
    expect(secret).toMatch(/^[\w-]{43}$/);
    expect(catalog.tokens.of('shop')).toEqual([token]);
    expect(JSON.stringify(await store.snapshot())).not.toContain(secret);
    await catalog.tokens.revoke('shop', token.id);
    expect(catalog.tokens.of('shop')).toEqual([]);
    expect(await refused(catalog.tokens.revoke('shop', token.id))).toContain('missing');
    expect(await refused(catalog.tokens.create('shop', 'bob'))).toContain('missing');
  });

  test('those of the admin API have a role, and the role tenant a tenant', async () => {
    await catalog.createTenant({ name: 'shop' });
    const { adminTokens } = catalog;
    const { secret } = await adminTokens.create('operator', undefined);
    const own = await adminTokens.create('tenant', 'shop', 'of the shop');
    expect(adminTokens.find(secret)).toMatchObject({ role: 'operator' });
    expect(adminTokens.find(own.secret)).toMatchObject({ role: 'tenant', tenant: 'shop' });
    expect(adminTokens.find('guess')).toBeUndefined();
    expect(adminTokens.of('shop').map(({ description }) => description)).toEqual(['of the shop']);
    expect(await refused(adminTokens.create('tenant', undefined))).toContain('invalid');
    expect(await refused(adminTokens.create('viewer', 'shop'))).toContain('invalid');
    expect(await refused(adminTokens.create('tenant', 'none'))).toContain('missing');
    await adminTokens.revoke(own.token.id, 'shop');
    expect(adminTokens.find(own.secret)).toBeUndefined();
  });

  test('an admin token is revoked by its own tenant only', async () => {
    await catalog.createTenant({ name: 'shop' });
    const { token } = await catalog.adminTokens.create('operator', undefined);
    expect(await refused(catalog.adminTokens.revoke(token.id, 'shop'))).toContain('missing');
  });
});

describe('the planes', () => {
  test('are told what has changed, in ascending revisions', async () => {
    const first = catalog.snapshot();
    await attach();
    await catalog.createTenant({ name: 'shop' });
    await catalog.setUser({ tenant: 'shop', name: 'ann', change: {} });
    await catalog.dropUser('shop', 'ann');
    expect(planes.updates).toMatchObject([
      { whole: false, tenants: [{ name: 'shop' }], users: [{ tenant: 'shop', name: 'default' }] },
      { tenants: [], users: [{ name: 'ann' }], gone: { users: [] } },
      { users: [], gone: { users: ['ann@shop'] } },
    ]);
    const revisions = [first, ...planes.updates].map(({ revision }) => revision);
    expect(revisions).toEqual([...revisions].sort((a, b) => a - b));
    expect(new Set(revisions).size).toBe(4);
  });

  test('are told at their attachment what changed after the snapshot', async () => {
    catalog.snapshot();
    await catalog.createTenant({ name: 'shop' });
    await attach();
    expect(planes.updates).toMatchObject([{ whole: false, tenants: [{ name: 'shop' }] }]);
  });

  test('that did not answer get everything, again and again, until they do', async () => {
    catalog.snapshot();
    await attach();
    planes.objection = 'busy';
    expect(await refused(catalog.createTenant({ name: 'shop' }))).toBe(
      'unconfirmed: stored, but not yet in force everywhere: busy',
    );
    expect(catalog.find('shop').state).toBe('active');
    planes.objection = undefined;
    await expect.poll(() => planes.updates.length).toBe(1);
    expect(planes.updates[0]).toMatchObject({
      whole: true,
      tenants: [{ name: 'default' }, { name: 'shop' }],
    });
    await catalog.createTenant({ name: 'mill' });
    expect(planes.updates[1]).toMatchObject({ whole: false, tenants: [{ name: 'mill' }] });
  });

  test('hear what another control plane changes', async () => {
    catalog.snapshot();
    await attach();
    const other = await TenantCatalog.open(store, {
      workflows: await openWorkflows(),
      databases: 16,
      hashPassword: quickHash,
    });
    await other.createTenant({ name: 'shop' });
    await expect.poll(() => planes.updates.length).toBe(1);
    // Both go on from the same counters.
    const made = await Promise.all([
      catalog.createTenant({ name: 'mill' }),
      other.createTenant({ name: 'farm' }),
    ]);
    expect(new Set(made.map(({ tenant }) => tenant.number))).toEqual(new Set([2, 3]));
    expect(new Set(made.map(({ tenant }) => tenant.firstTable)).size).toBe(2);
    expect(catalog.tenants()).toEqual(other.tenants());
    await other.close();
  });
});

describe('dropping', () => {
  const shop = { name: 'shop', number: 1 };

  async function fill(users = 3): Promise<void> {
    await catalog.createTenant({ name: 'shop' });
    for (let n = 0; n < users; n++) {
      await catalog.setUser({ tenant: 'shop', name: `user${n}`, change: {} });
      await catalog.tokens.create('shop', `user${n}`);
    }
    await catalog.adminTokens.create('tenant', 'shop');
  }

  test('lets nobody in first, then deletes the data, then forgets', async () => {
    const before = names();
    await fill();
    catalog.snapshot();
    await attach();
    planes.dropObjection = 'wait';
    expect(await catalog.dropTenant('shop')).toMatchObject({ state: 'dropping' });
    expect(planes.updates.at(-1)).toMatchObject({ tenants: [{ state: 'dropping' }] });
    expect(await catalog.dropped(shop, 10)).toBe(false);
    const changes = [
      catalog.createTenant({ name: 'shop' }),
      catalog.setUser({ tenant: 'shop', name: 'late', change: {} }),
      catalog.tokens.create('shop', 'default'),
      catalog.adminTokens.create('tenant', 'shop'),
      catalog.alterTenant('shop', { state: 'active' }),
    ];
    for (const change of changes) expect(await refused(change)).toContain('being dropped');
    planes.dropObjection = undefined;
    expect(await catalog.dropped(shop, 10_000)).toBe(true);
    expect(planes.dropped).toEqual([1]);
    expect(planes.updates.at(-1)?.gone.tenants).toEqual(['shop']);
    expect(names()).toEqual(['authentication/tenancy', ...before]);
    expect(reports[0]).toBe('workflow drop-tenant-1: delete-data failed: wait');
    expect(workflows.find('drop-tenant-1')).toMatchObject({ status: 'done' });
  });

  test('waits with the data until all planes let nobody in', async () => {
    await fill();
    catalog.snapshot();
    await attach();
    planes.objection = 'busy';
    expect(await refused(catalog.dropTenant('shop'))).toContain('unconfirmed');
    expect(await catalog.dropped(shop, 100)).toBe(false);
    expect(planes.dropped).toEqual([]);
    planes.objection = undefined;
    expect(await catalog.dropped(shop, 10_000)).toBe(true);
    expect(planes.dropped).toEqual([1]);
    expect(planes.updates[0]).toMatchObject({ whole: true });
  });

  test('goes on after a restart, wherever it was', async () => {
    const before = names();
    // More than what is removed in one write.
    await fill(300);
    const full = await store.snapshot();
    let stops = 0;
    for (let writes = 0; ; writes++) {
      await close();
      store = new MemoryStore();
      for (const { collection, id, body } of full.documents) {
        await store.write([{ collection, id, body, expected: 0 }]);
      }
      await open();
      planes = new FakePlanes();
      await attach();
      store.writesLeft = writes;
      await catalog.dropTenant('shop').catch(() => {});
      const isGone = await catalog.dropped(shop, 50);
      // The next life.
      await close();
      store.writesLeft = Infinity;
      await open();
      await attach();
      const wasDropped = catalog.owner('shop')?.state !== 'active';
      expect(wasDropped).toBe(writes > 0);
      if (wasDropped) {
        expect(await catalog.dropped(shop, 10_000)).toBe(true);
        expect(planes.dropped.length).toBeGreaterThan(0);
        expect(names()).toEqual(['authentication/tenancy', ...before]);
      }
      stops++;
      if (isGone) break;
    }
    expect(stops).toBeGreaterThan(3);
  });
});

test('ten thousand tenants: each is one write and one small update', async () => {
  catalog.snapshot();
  await attach();
  for (let n = 0; n < 10_000; n++) await catalog.createTenant({ name: `t${n}`, password: 'x' });
  expect(planes.updates).toHaveLength(10_000);
  expect(Math.max(...planes.updates.map((u) => u.tenants.length + u.users.length))).toBe(2);
  expect(catalog.find('t9999')).toMatchObject({ number: 10_000, firstTable: 4096 + 9999 * 16 });
  await reopen();
  expect(catalog.tenantCount).toBe(10_001);
  expect(catalog.ownerOf(4096 + 5000 * 16 + 3)?.name).toBe('t5000');
});

test('the default user cannot go without a password while others can reach it', async () => {
  await close();
  let reason: string | undefined = 'it can be reached';
  workflows = await openWorkflows();
  const options = {
    workflows,
    databases: 16,
    hashPassword: quickHash,
    whyNotOpen: () => reason,
  };
  catalog = await TenantCatalog.open(store, options);
  const wish = { tenant: 'default', name: 'default', change: { open: true } };
  await expect(catalog.setUser(wish)).rejects.toThrow('it can be reached');
  reason = undefined;
  expect((await catalog.setUser(wish)).open).toBe(true);
});

test('what users may do with a database ends with it', async () => {
  await catalog.createTenant({ name: 'shop', password: 'x' });
  const ann = { tenant: 'shop', name: 'ann' };
  await catalog.setUser({ ...ann, change: { grants: { metrics: 'read', logs: 'all' } } });
  await catalog.dropGrants('shop', 'metrics');
  expect(catalog.user('shop', 'ann').grants).toEqual({ logs: 'all' });
});
