// The users of all tenants.

import {
  defaultTenant,
  defaultUser,
  type UserDefinition,
} from '../../contracts/tenancy/definitions.ts';
import { put, remove, type TenancyChanges } from './tenancy-changes.ts';
import { type TenancyState, userDocument } from './tenancy-state.ts';
import { TenantError } from './tenant-error.ts';
import {
  checkName,
  checkPassword,
  checkUserChange,
  mostUsers,
  type UserChange,
} from './tenant-rules.ts';
import { withoutRights } from './user-definitions.ts';

export interface UserWish {
  tenant: string;
  name: string;
  /** Whether the user must be new or must exist; absent: either. */
  expect?: 'new' | 'there';
  /** Missing properties stay as they are; a new user has only the given rights. */
  change: UserChange;
  /** Takes the place of all secrets. */
  password?: string;
}

export class UserCatalog {
  readonly #state: TenancyState;
  readonly #changes: TenancyChanges;
  readonly #hashPassword: (password: Buffer, tenant: string) => Promise<string>;
  readonly #whyNotOpen: () => string | undefined;

  /** `whyNotOpen` says why the default user may not go without a password just now, if so. */
  constructor(
    state: TenancyState,
    changes: TenancyChanges,
    hashPassword: (password: Buffer, tenant: string) => Promise<string>,
    whyNotOpen: () => string | undefined,
  ) {
    this.#state = state;
    this.#changes = changes;
    this.#hashPassword = hashPassword;
    this.#whyNotOpen = whyNotOpen;
  }

  /** By name. */
  of(tenant: string): UserDefinition[] {
    const users = this.#state.users(this.#state.find(tenant).name);
    return [...users.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  find(tenant: string, name: string): UserDefinition {
    return this.#state.user(this.#state.find(tenant).name, name);
  }

  async set(wish: UserWish): Promise<UserDefinition> {
    const { tenant, name, expect, password } = wish;
    checkName('user', name);
    let { change } = wish;
    checkUserChange(change);
    if (change.open === true && tenant === defaultTenant && name === defaultUser) {
      const reason = this.#whyNotOpen();
      if (reason !== undefined) throw new TenantError('conflict', reason);
    }
    // Checked again below; this avoids hashing for requests that are refused anyway.
    this.#refused(tenant, name, expect);
    if (password !== undefined) {
      checkPassword(password);
      const secret = await this.#hashPassword(Buffer.from(password), tenant);
      change = { open: false, ...change, secrets: [secret] };
    }
    return await this.#changes.make(() => {
      const before = this.#refused(tenant, name, expect);
      const user = { ...(before ?? withoutRights(tenant, name)), ...change };
      const writes = [put('users', userDocument(user), user)];
      if (before === undefined && tenant === defaultTenant) {
        writes.push(put('names', name, { of: 'user' }));
      }
      return { writes, result: user };
    });
  }

  /** Its tokens go, too. */
  drop(tenant: string, name: string): Promise<void> {
    return this.#changes.make(() => {
      this.#state.lasting(tenant);
      const user = this.find(tenant, name);
      if (name === defaultUser) {
        throw new TenantError('conflict', `the user ${defaultUser} cannot be dropped: disable it`);
      }
      const writes = [remove('users', userDocument(user))];
      for (const token of this.#state.tokens(tenant).values()) {
        if (token.user === name) writes.push(remove('tokens', token.id));
      }
      if (tenant === defaultTenant) writes.push(remove('names', name));
      return { writes, result: undefined };
    });
  }

  /** Drops the grants of a dropped database, so that a new one of the same name does not inherit them. */
  dropGrants(tenant: string, database: string): Promise<void> {
    return this.#changes.make(() => {
      const holders = this.of(tenant).filter(({ grants }) => database in grants);
      const writes = holders.map((user) => {
        const { [database]: _, ...grants } = user.grants;
        const changed = { ...user, grants };
        return put('users', userDocument(changed), changed);
      });
      return { writes, result: undefined };
    });
  }

  /** The user as it is, unless it may not be made or changed so. */
  #refused(
    tenant: string,
    name: string,
    expect: 'new' | 'there' | undefined,
  ): UserDefinition | undefined {
    this.#state.lasting(tenant);
    const users = this.#state.users(tenant);
    const user = users.get(name);
    if (user !== undefined && expect === 'new') {
      throw new TenantError('conflict', `tenant ${tenant} has a user ${name} already`);
    }
    if (user !== undefined) return user;
    if (expect === 'there') this.#state.user(tenant, name);
    if (tenant === defaultTenant && this.#changes.mirror.has('names', name)) {
      throw new TenantError('conflict', `a tenant is called ${name}`);
    }
    if (users.size >= mostUsers) {
      throw new TenantError('conflict', `tenant ${tenant} has ${mostUsers} users already`);
    }
    return undefined;
  }
}
