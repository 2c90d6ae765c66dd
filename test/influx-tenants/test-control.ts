// A control plane that keeps its tenants in memory, and whose only plane is the one under test.

import { randomBytes } from 'node:crypto';
import { createHash } from 'node:crypto';
import type { Principals } from '../../access/gateway/principals.ts';
import type { UserKeeper } from '../../server/planes/influx-users.ts';
import type { UserRequest } from '../../server/planes/messages.ts';
import {
  defaultTenant,
  defaultUser,
  loginName,
  noLimits,
  type Privilege,
  type TenancyUpdate,
  type TenantDefinition,
  type TenantLimits,
  type UserDefinition,
} from '../../contracts/tenancy/definitions.ts';
import { quickSecret } from '../support/quick-secret.ts';

interface TestUser {
  password: string;
  admin?: boolean;
  grants?: Record<string, Privilege>;
}

export class TestControl implements UserKeeper {
  readonly #principals: Principals;
  #revision = 1;
  #nextNumber = 1;
  /** Told to the control plane by clients. */
  readonly requests: unknown[] = [];
  /** Hears of each update as well. */
  onUpdate: (update: TenancyUpdate) => void = () => {};

  constructor(principals: Principals) {
    this.#principals = principals;
  }

  update(change: Partial<Omit<TenancyUpdate, 'gone'>> & { gone?: Partial<TenancyUpdate['gone']> }) {
    const { users = [], tokens = [] } = change;
    const update: TenancyUpdate = {
      whole: false,
      // Stays so.
      ...((tokens.length > 0 || users.some(({ secrets }) => secrets.length > 0)) && {
        checksCredentials: true,
      }),
      revision: ++this.#revision,
      tenants: [],
      users: [],
      tokens: [],
      ...change,
      gone: { tenants: [], users: [], tokens: [], ...change.gone },
    };
    this.#principals.update(update);
    this.onUpdate(update);
  }

  /** Its user `default` has the tenant's name as password. */
  addTenant(name: string, limits: Partial<TenantLimits> = {}): TenantDefinition {
    const number = this.#nextNumber++;
    const tenant: TenantDefinition = {
      name,
      number,
      state: 'active',
      firstTable: 16 * number,
      databases: 16,
      limits: { ...noLimits, ...limits },
    };
    this.update({ tenants: [tenant] });
    this.addUser(name, defaultUser, { password: name, admin: true });
    return tenant;
  }

  setTenant(name: string, change: Partial<TenantDefinition>): void {
    this.update({ tenants: [{ ...this.#principals.tenant(name)!, ...change }] });
  }

  /** Documents are gone as well, without any notification. */
  forgetTenant(name: string): void {
    const users = [...this.#principals.users(name).keys()].map((user) => loginName(name, user));
    this.update({ gone: { tenants: [name], users } });
  }

  addUser(tenant: string, name: string, user: TestUser): void {
    const { password, admin = false, grants = {} } = user;
    const secrets = [quickSecret(password)];
    const change = { enabled: true, open: false, secrets, influxAdmin: admin, grants };
    this.#set({ tenant, name, change });
  }

  /** The user `default` of tenant `default` needs a password from now on. */
  close(password: string): void {
    this.addUser(defaultTenant, defaultUser, { password, admin: true });
  }

  addToken(tenant: string, user: string): string {
    const secret = randomBytes(32).toString('base64url');
    const digest = createHash('sha256').update(secret).digest('base64');
    const id = secret.slice(0, 8);
    this.update({ tokens: [{ id, tenant, user, digest, description: '', createdAt: 0 }] });
    return secret;
  }

  revokeToken(secret: string): void {
    this.update({ gone: { tokens: [secret.slice(0, 8)] } });
  }

  // ---- what a plane asks

  async setUser(request: UserRequest): Promise<void> {
    this.requests.push(request);
    const { tenant, name, expect } = request;
    const exists = this.#principals.user(tenant, name) !== undefined;
    if (expect === 'new' && exists) throw new Error(`tenant ${tenant} has a user ${name} already`);
    if (expect === 'there' && !exists) throw new Error(`tenant ${tenant} has no user ${name}`);
    if (!/^[A-Za-z][\w-]{0,62}$/.test(name)) throw new Error('a user cannot be called so');
    await Promise.resolve();
    this.#set(request);
  }

  async dropUser({ tenant, name }: { tenant: string; name: string }): Promise<void> {
    this.requests.push({ tenant, name });
    await Promise.resolve();
    this.update({ gone: { users: [loginName(tenant, name)] } });
  }

  #set({ tenant, name, change }: UserRequest): void {
    const before = this.#principals.user(tenant, name);
    const none: UserDefinition = {
      tenant,
      name,
      enabled: true,
      open: false,
      secrets: [],
      rules: '-@all',
      influxAdmin: false,
      grants: {},
    };
    this.update({ users: [{ ...none, ...before, ...change }] });
  }
}
