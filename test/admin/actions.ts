// Every action of the admin API, and who may take it. What is about a tenant is about `shop`.

import type { AdminFixture } from '../../control/admin/admin-fixture.ts';

export const callers = [
  'operator',
  'viewer',
  /** The tenant that it is about. */
  'shop',
  /** Another tenant. */
  'mill',
  /** A tenant that is suspended. */
  'idle',
  /** A token of shop that was taken back. */
  'revoked',
  /** A token of a user of shop, good for its data. */
  'data',
  'nobody',
] as const;
export type Caller = (typeof callers)[number];

export interface Action {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /**
   * Parts in braces are made for each call: `{user}` is a new user of shop, used by no other test.
   */
  path: string;
  body?: Readonly<Record<string, unknown>>;
  allowed: readonly Caller[];
  /** Answered 409 as things are. */
  conflicts?: true;
}

const everyone: readonly Caller[] = ['operator', 'viewer', 'shop', 'mill'];
const readers: readonly Caller[] = ['operator', 'viewer', 'shop'];
const managers: readonly Caller[] = ['operator', 'shop'];
const watchers: readonly Caller[] = ['operator', 'viewer'];
const operator: readonly Caller[] = ['operator'];

function get(path: string, allowed: readonly Caller[]): Action {
  return { method: 'GET', path, allowed };
}

function post(path: string, body: Action['body'], allowed: readonly Caller[]): Action {
  return { method: 'POST', path, ...(body === undefined ? {} : { body }), allowed };
}

function patch(
  path: string,
  body: Readonly<Record<string, unknown>>,
  to: readonly Caller[],
): Action {
  return { method: 'PATCH', path, body, allowed: to };
}

function remove(path: string, allowed: readonly Caller[]): Action {
  return { method: 'DELETE', path, allowed };
}

export const actions: readonly Action[] = [
  get('/v1/tenants', everyone),
  get('/v1/tenants?limit=1&after=0', everyone),
  post('/v1/tenants', { name: '{new}' }, operator),
  post('/v1/tenants', { name: '{new}', limits: { keys: 1 }, password: 'hush' }, operator),
  get('/v1/tenants/shop', readers),
  patch('/v1/tenants/shop', { limits: { keys: 0 } }, operator),
  patch('/v1/tenants/shop', { state: 'active' }, operator),
  remove('/v1/tenants/{tenant}', operator),
  get('/v1/tenants/shop/limits', readers),
  patch('/v1/tenants/shop/limits', { ruPerSecond: 1_000_000 }, operator),

  get('/v1/tenants/shop/users', readers),
  post('/v1/tenants/shop/users', { name: '{new}', password: 'hush' }, managers),
  post('/v1/tenants/shop/users', { name: '{new}', rules: '+get', influxAdmin: false }, managers),
  get('/v1/tenants/shop/users/{user}', readers),
  patch('/v1/tenants/shop/users/{user}', { password: 'hush' }, managers),
  patch('/v1/tenants/shop/users/{user}', { enabled: false }, managers),
  patch('/v1/tenants/shop/users/{user}', { grants: { metrics: 'all' } }, managers),
  remove('/v1/tenants/shop/users/{user}', managers),
  get('/v1/tenants/default/users', watchers),
  post('/v1/tenants/default/users', { name: '{new}' }, operator),
  patch('/v1/tenants/default/users/default', { rules: '+@all ~* &*' }, operator),

  get('/v1/tenants/shop/tokens', readers),
  post('/v1/tenants/shop/tokens', {}, managers),
  post('/v1/tenants/shop/tokens', { user: '{user}', description: 'of a program' }, managers),
  remove('/v1/tenants/shop/tokens/{token}', managers),
  post('/v1/tenants/default/tokens', { user: 'default' }, operator),

  get('/v1/tokens', everyone),
  post('/v1/tokens', { role: 'operator' }, operator),
  post('/v1/tokens', { role: 'viewer' }, operator),
  post('/v1/tokens', { role: 'tenant', tenant: 'shop' }, managers),
  remove('/v1/tokens/{operatorToken}', operator),
  remove('/v1/tokens/{adminToken}', managers),
  get('/v1/whoami', everyone),

  get('/v1/tenants/shop/databases', readers),
  post('/v1/tenants/shop/databases', { name: '{new}' }, managers),
  remove('/v1/tenants/shop/databases/{database}', managers),
  post('/v1/tenants/default/databases', { name: '{new}' }, operator),

  get('/v1/tenants/shop/tables', readers),
  get('/v1/tenants/shop/tables/1', readers),
  post('/v1/tenants/shop/tables', { table: '{table}', readOnly: false }, managers),
  patch('/v1/tenants/shop/tables/0', { ttlDefaultMs: 1000 }, managers),
  remove('/v1/tenants/shop/tables/1', managers),
  get('/v1/tables', everyone),
  get('/v1/tables/shop%2F0', readers),
  patch('/v1/tables/shop%2F0', { maxRowBytes: 1000 }, managers),
  post('/v1/tables', { table: '{fullTable}' }, managers),
  remove('/v1/tables/shop%2F1', managers),
  { ...get('/v1/tables/shop%2F0/partitions', readers), conflicts: true },
  {
    ...post('/v1/tables/shop%2F0/partitions', { kind: 'convert', model: 'kv' }, operator),
    conflicts: true,
  },
  { ...remove('/v1/tables/shop%2F0/partitions', operator), conflicts: true },
  get('/v1/tables/default%2F0', watchers),
  patch('/v1/tables/default%2F0', { readOnly: false }, operator),

  get('/v1/ru', everyone),
  get('/v1/ru?tenant=shop&by=class,time&slot=hour&limit=5', readers),
  get('/v1/ru?tenant=default', watchers),
  get('/v1/top', everyone),
  get('/v1/top?tenant=shop&by=bytes', readers),
  get('/v1/admission', everyone),
  get('/v1/admission?tenant=shop&plane=redis&limit=3', readers),
  get('/v1/slowlog', everyone),
  get('/v1/slowlog?tenant=shop&plane=redis&limit=3', readers),
  get('/v1/steps', everyone),
  get('/v1/steps?tenant=shop&plane=redis&limit=3', readers),
  get('/v1/audit', everyone),
  get('/v1/audit?after=0&limit=10&all=true', everyone),
  get('/v1/authentication', watchers),
  // The tenants have passwords.
  { ...patch('/v1/authentication', { checksCredentials: false }, operator), conflicts: true },
  get('/v1/config', watchers),
  patch('/v1/config', { 'log.level': 'info' }, operator),
  get('/v1/openapi.json', everyone),

  get('/livez', callers),
  get('/readyz', callers),
  get('/healthz', everyone),
  get('/metrics', everyone),
  get('/', everyone),
];

/** Makes what the braces of an action stand for. */
export class ActionMaker {
  readonly #admin: AdminFixture;
  #made = 0;

  constructor(admin: AdminFixture) {
    this.#admin = admin;
  }

  async prepare({ path, body }: Action): Promise<{ path: string; body?: object }> {
    const filled = await this.#filled(path);
    if (body === undefined) return { path: filled };
    return { path: filled, body: JSON.parse(await this.#filled(JSON.stringify(body))) as object };
  }

  async #filled(text: string): Promise<string> {
    const [braces, what] = /\{(\w+)\}/.exec(text) ?? [];
    if (braces === undefined) return text;
    return await this.#filled(text.replace(braces, await this.#make(what!)));
  }

  async #make(what: string): Promise<string> {
    const { tenants, influx } = this.#admin;
    const name = `n${++this.#made}`;
    switch (what) {
      case 'new':
        return name;
      case 'tenant':
        return (await tenants.createTenant({ name, password: 'x' })).tenant.name;
      case 'user':
        return (await tenants.setUser({ tenant: 'shop', name, change: {} })).name;
      case 'token':
        return (await tenants.tokens.create('shop', 'default')).token.id;
      case 'operatorToken':
        return (await tenants.adminTokens.create('operator', undefined)).token.id;
      case 'adminToken':
        return (await tenants.adminTokens.create('tenant', 'shop')).token.id;
      case 'database':
        await influx.createDatabase({ tenant: tenants.find('shop').number, name });
        return name;
      case 'table':
        // Each is made once; shop has more of them than there are callers.
        return String(100 + this.#made);
      case 'fullTable':
        return `shop/${100 + this.#made}`;
      default:
        throw new Error(`cannot make ${what}`);
    }
  }
}
