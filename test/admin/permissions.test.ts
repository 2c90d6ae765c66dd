// Permissions of the admin API: every action by every caller, its effect, and its entry in the
// audit log.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AdminFixture } from '../../control/admin/admin-fixture.ts';
import type { AuditRecord } from '../../control/admin/audit/audit-log.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { type Action, ActionMaker, actions, type Caller, callers } from './actions.ts';

let admin: AdminFixture;
let maker: ActionMaker;

beforeAll(async () => {
  admin = await AdminFixture.start(realDisk, { isLocal: false });
  admin.health.phase = 'running';
  await addCallers();
  maker = new ActionMaker(admin);
});
afterAll(() => admin.close());

async function addCallers(): Promise<void> {
  const { tenants, secrets } = admin;
  await tenants.createTenant({ name: 'shop', databases: 1000, password: 'hush' });
  for (const name of ['mill', 'idle']) await tenants.createTenant({ name, password: 'hush' });
  secrets['viewer'] = (await tenants.adminTokens.create('viewer', undefined)).secret;
  for (const name of ['shop', 'mill', 'idle']) {
    secrets[name] = (await tenants.adminTokens.create('tenant', name)).secret;
  }
  await tenants.alterTenant('idle', { state: 'suspended' });
  const revoked = await tenants.adminTokens.create('tenant', 'shop');
  secrets['revoked'] = revoked.secret;
  await tenants.adminTokens.revoke(revoked.token.id);
  secrets['data'] = (await tenants.tokens.create('shop', 'default')).secret;
  secrets['nobody'] = '';
}

const unknown: readonly Caller[] = ['revoked', 'data', 'nobody'];

function isExpected(action: Action, caller: Caller, status: number): boolean {
  if (action.allowed.includes(caller) && action.conflicts) return status === 409;
  if (action.allowed.includes(caller)) return status === 200 || status === 201;
  if (unknown.includes(caller)) return status === 401;
  // Objects named outside of the tenant's path do not exist for another tenant.
  const isNamed = /%2F|Token\}/.test(action.path) || action.body?.['table'] !== undefined;
  const isTenant = caller === 'shop' || caller === 'mill';
  return status === 403 || (status === 404 && isTenant && isNamed);
}

/** Everything that an action could change. */
function everything(): string {
  const { tenants, tables, settings, influx } = admin;
  return JSON.stringify([
    tenants.snapshot(),
    tenants.adminTokens.of(),
    [...settings],
    [...influx.made],
    tables.definitions(),
  ]);
}

const rows = actions.flatMap((action) => callers.map((caller) => ({ action, caller })));

test('the table is a table', () => {
  expect(rows.length).toBeGreaterThan(400);
  const names = actions.map(
    ({ method, path, body }) => `${method} ${path} ${JSON.stringify(body)}`,
  );
  expect(new Set(names).size).toBe(names.length);
});

describe.each(actions)('$method $path', (action) => {
  test.each(callers)('by %s', async (caller) => {
    const isAllowed = action.allowed.includes(caller);
    const { path, body } = await maker.prepare(action);
    const before = everything();
    const seq = admin.audit.lastSeq;
    const answer = await admin.ask(action.method, path, body, caller === 'nobody' ? '' : caller);
    expect([answer.status, answer.text, isExpected(action, caller, answer.status)]).toEqual([
      answer.status,
      answer.text,
      true,
    ]);
    if (!isAllowed) {
      expect(Object.keys(answer.json() as object)).toEqual(['error']);
      expect(answer.text).not.toMatch(/scrypt|digest|"secret"/);
    }
    if (!isAllowed || action.method === 'GET') expect(everything()).toBe(before);
    expectAudit(path, action, caller, answer.status, seq);
  });
});

function expectAudit(
  path: string,
  { method }: Action,
  caller: Caller,
  status: number,
  seq: number,
): void {
  const isCall = path.startsWith('/v1');
  const found = admin.audit.read(seq, 100, { looks: true });
  if (!isCall) {
    expect(found).toEqual([]);
    return;
  }
  expect(found).toHaveLength(1);
  const record = found[0] as AuditRecord;
  expect(record).toMatchObject({ method, path: path.split('?')[0], status, address: '127.0.0.1' });
  expect(record.role).toBe(
    unknown.includes(caller)
      ? ''
      : ({ operator: 'operator', viewer: 'viewer' }[caller as string] ?? 'tenant'),
  );
  if (['shop', 'mill', 'idle'].includes(caller)) expect(record.tenant).toBe(caller);
  expect(JSON.stringify(record)).not.toContain('hush');
  expect(record.error === undefined).toBe(status < 400);
}

test('every route there is, is in the table', async () => {
  const { paths } = (await admin.ask('GET', '/v1/openapi.json')).json() as {
    paths: Record<string, object>;
  };
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({
      name: `${method.toUpperCase()} ${path}`,
      pattern: new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
      method: method.toUpperCase(),
    })),
  );
  const missing = routes.filter(
    ({ method, pattern }) =>
      !actions.some(
        (action) => action.method === method && pattern.test(action.path.split('?')[0]!),
      ),
  );
  expect(missing.map(({ name }) => name)).toEqual([]);
});

describe('a tenant', () => {
  test('is told nothing of others', async () => {
    const { number } = admin.tenants.find('shop');
    const entry = { tenant: number, database: 0, ru: 1, rate: 1, bytes: 1 };
    admin.redis.topEntries = [{ kind: 'key', name: 'shop-secret', ...entry }];
    const slow = { id: 1, at: 1, durationMicros: 1, tenant: number, user: 'default' };
    admin.redis.slow = [{ ...slow, address: '', text: 'GET shop-secret', ru: 1 }];
    const step = { id: 1, at: 1, durationMicros: 1, collectionMicros: 0, preemptedMicros: 0 };
    admin.redis.longSteps = [
      { ...step, cause: 'work', tenant: number, text: 'keys', bytes: 1 },
      { ...step, cause: 'work', tenant: -2, text: 'after unknown', bytes: 1 },
    ];
    const past = { waited: 0, refused: 0, burstRu: 0, spareRu: 0, wouldWait: 0, wouldRefuse: 0 };
    const used = { usedRu: 1, usedRuMinute: 1, savedRu: 1, waiting: 0, waitingQueries: 0 };
    const more = { warmupRu: 0, classQuotaRu: 0, classUsedRu: 0 };
    admin.redis.limited = [{ tenant: number, quotaRu: 5, ...used, ...more, ...past }];
    const metric = { name: 'polyrow_x', help: 'x', type: 'gauge', value: 1 } as const;
    admin.samples = [
      { ...metric, labels: { tenant: 'shop' } },
      { ...metric, labels: { tenant: 'mill' }, value: 2 },
      { ...metric, name: 'polyrow_y' },
    ];
    const spent = { requests: 1, errors: 0, lru: 1, pru: [1, 0, 0, 0] as const };
    const none = { requests: 0, errors: 0, lru: 0, pru: [0, 0, 0, 0] as const };
    admin.usage.add({
      plane: 'redis',
      run: 'a',
      sequence: 1,
      at: 0,
      accounts: [
        {
          ...spent,
          tenant: number,
          rejected: 0,
          lastSecondLru: 0,
          lastSecondRequests: 0,
          bytesIn: 0,
          bytesOut: 0,
          classes: { read: spent, write: none, scan: none, background: none, other: none },
          databases: [],
        },
      ],
    });
    for (const page of [
      '/v1/tenants',
      '/v1/tokens',
      '/v1/tables',
      '/v1/top',
      '/v1/admission',
      '/v1/slowlog',
      '/v1/steps',
      '/v1/ru',
      '/metrics',
    ]) {
      expect((await admin.ask('GET', page)).text, page).toContain('shop');
      const own = await admin.ask('GET', page, undefined, 'mill');
      expect([page, own.status]).toEqual([page, 200]);
      expect(own.text, page).not.toContain('shop');
    }
    for (const page of ['/v1/audit', '/v1/audit?all=true&after=0&limit=1000']) {
      const answer = await admin.ask('GET', page, undefined, 'mill');
      const { audit } = answer.json() as { audit: AuditRecord[] };
      expect(new Set(audit.map((record) => record.tenant))).toEqual(new Set(['mill']));
    }
    expect((await admin.ask('GET', '/metrics', undefined, 'mill')).text).not.toContain('polyrow_y');
  });

  test('cannot tell whether another one exists', async () => {
    const answers = [];
    for (const tenant of ['shop', 'never-made']) {
      for (const page of [
        `/v1/tenants/${tenant}`,
        `/v1/tenants/${tenant}/users/x`,
        `/v1/ru?tenant=${tenant}`,
      ]) {
        const { status, text } = await admin.ask('GET', page, undefined, 'mill');
        answers.push([status, text]);
      }
    }
    expect(answers.slice(0, 3)).toEqual(answers.slice(3));
  });
});

test('what is taken back is taken back at once', async () => {
  const made = await admin.ask('POST', '/v1/tokens', { role: 'operator' });
  const { id, secret } = made.json() as { id: string; secret: string };
  const works = async () =>
    (await admin.ask('GET', '/v1/tenants', undefined, secret)).status === 200;
  expect(await works()).toBe(true);
  await admin.ask('DELETE', `/v1/tokens/${id}`);
  expect(await works()).toBe(false);
  const asTenant = await admin.ask('POST', '/v1/tenants', { name: 'short' });
  expect(asTenant.status).toBe(201);
  const own = await admin.ask('POST', '/v1/tokens', { role: 'tenant', tenant: 'short' });
  const { secret: ownSecret } = own.json() as { secret: string };
  expect((await admin.ask('GET', '/v1/tenants/short', undefined, ownSecret)).status).toBe(200);
  await admin.ask('DELETE', '/v1/tenants/short');
  expect((await admin.ask('GET', '/v1/tenants/short', undefined, ownSecret)).status).toBe(401);
  await admin.ask('POST', '/v1/tenants', { name: 'short' });
  expect((await admin.ask('GET', '/v1/tenants/short', undefined, ownSecret)).status).toBe(401);
});

test('the audit log keeps what was changed, and no secret', async () => {
  const seq = admin.audit.lastSeq;
  await admin.ask('PATCH', '/v1/config', { 'redis.password': 'hush', 'log.level': 'info' });
  await admin.ask('POST', '/v1/tenants/shop/users', {
    name: 'kim',
    password: 'hush',
    rules: '+get',
  });
  await admin.ask('PATCH', '/v1/tenants/shop/users/kim', { pasword: 'hush' });
  await admin.ask('GET', '/v1/tenants?password=hush', undefined, 'shop');
  const records = admin.audit.read(seq, 10, { looks: true });
  expect(records.map(({ change, status }) => [status, change])).toEqual([
    [200, { 'redis.password': '[hidden]', 'log.level': 'info' }],
    [201, { name: 'kim', password: '[hidden]', rules: '+get' }],
    [400, undefined],
    [400, undefined],
  ]);
  expect(JSON.stringify(records)).not.toContain('hush');
});
