// Tenants with their users and tokens, from the documents. It follows the mirror, and records
// changes since the last update of the data planes.

import {
  loginName,
  noLimits,
  type TenancyUpdate,
  type TenantDefinition,
  type TokenDefinition,
  type UserDefinition,
} from '../../contracts/tenancy/definitions.ts';
import type { AdminTokenDefinition } from './admin-token.ts';
import type { MirrorChange } from '../metadata/document-mirror.ts';
import { TenantError } from './tenant-error.ts';

/** Document types by collection. */
export interface TenancyDocuments {
  /** By name. */
  tenants: TenantDefinition;
  /** By `user@tenant`. */
  users: UserDefinition;
  /** By id. */
  tokens: TokenDefinition;
  /** By id. */
  adminTokens: AdminTokenDefinition;
  /** Names that are taken by a tenant or by a user of the tenant `default`. */
  names: NameOwner;
  /** One document, with id `tenancy`. */
  counters: TenancyCounters;
  /** One document, with id `tenancy`; exists from the first password or token on. */
  authentication: AuthenticationRecord;
}

interface AuthenticationRecord {
  checksCredentials: true;
}

interface NameOwner {
  of: 'tenant' | 'user';
}

export interface TenancyCounters {
  nextNumber: number;
  nextTable: number;
}

export const tenancyCollections = [
  'tenants',
  'users',
  'tokens',
  'adminTokens',
  'names',
  'counters',
  'authentication',
] as const satisfies readonly (keyof TenancyDocuments)[];

/** A tenant with all that is its own. */
interface Members {
  users: Map<string, UserDefinition>;
  tokens: Map<string, TokenDefinition>;
  adminTokens: Map<string, AdminTokenDefinition>;
}

const told = ['tenants', 'users', 'tokens'] as const;
type Told = (typeof told)[number];

export class TenancyState {
  readonly tenants = new Map<string, TenantDefinition>();
  readonly #byNumber = new Map<number, TenantDefinition>();
  /** Tenants by first table; undefined when the index must be rebuilt. */
  #byTable: TenantDefinition[] | undefined;
  readonly #members = new Map<string, Members>();
  readonly #tokens = new Map<string, TokenDefinition>();
  readonly adminTokens = new Map<string, AdminTokenDefinition>();
  readonly #adminTokensByDigest = new Map<string, AdminTokenDefinition>();
  #changed = noneChanged();
  /** Wrong credentials are refused: there has been a password or a token. */
  checksCredentials = false;
  #authenticationChanged = false;

  /** Applies one change of a document, as reported by the mirror. */
  apply({ collection, id, before, body }: MirrorChange): void {
    switch (collection) {
      case 'tenants':
        this.#setTenant(id, body === undefined ? undefined : asTenant(body));
        break;
      case 'users':
        this.#setUser(
          before as unknown as UserDefinition | undefined,
          body as unknown as UserDefinition | undefined,
        );
        break;
      case 'tokens':
        this.#setToken(
          id,
          before as unknown as TokenDefinition | undefined,
          body as unknown as TokenDefinition | undefined,
        );
        break;
      case 'adminTokens':
        this.#setAdminToken(
          id,
          before as unknown as AdminTokenDefinition | undefined,
          body as unknown as AdminTokenDefinition | undefined,
        );
        break;
      case 'authentication':
        this.checksCredentials = body !== undefined;
        this.#authenticationChanged = true;
        break;
    }
    if (isTold(collection)) this.#changed[collection].add(id);
  }

  find(name: string): TenantDefinition {
    const tenant = this.tenants.get(name);
    if (tenant === undefined) throw new TenantError('missing', `no tenant ${name}`);
    return tenant;
  }

  /** Tenant that owns a table. */
  ofTable(table: number): TenantDefinition | undefined {
    this.#byTable ??= [...this.tenants.values()].sort((a, b) => a.firstTable - b.firstTable);
    let low = 0;
    let high = this.#byTable.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#byTable[middle]!.firstTable <= table) low = middle + 1;
      else high = middle;
    }
    const tenant = this.#byTable[low - 1];
    const isInSpan = tenant !== undefined && table < tenant.firstTable + tenant.databases;
    return isInSpan ? tenant : undefined;
  }

  /** Returns a tenant that is not being dropped. */
  lasting(name: string): TenantDefinition {
    const tenant = this.find(name);
    if (tenant.state !== 'dropping') return tenant;
    throw new TenantError('conflict', `tenant ${name} is being dropped`);
  }

  byNumber(number: number): TenantDefinition | undefined {
    return this.#byNumber.get(number);
  }

  user(tenant: string, name: string): UserDefinition {
    const user = this.users(tenant).get(name);
    if (user === undefined)
      throw new TenantError('missing', `tenant ${tenant} has no user ${name}`);
    return user;
  }

  users(tenant: string): ReadonlyMap<string, UserDefinition> {
    return this.#members.get(tenant)?.users ?? new Map();
  }

  tokens(tenant: string): ReadonlyMap<string, TokenDefinition> {
    return this.#members.get(tenant)?.tokens ?? new Map();
  }

  tokenDigests(): Set<string> {
    return new Set([...this.#tokens.values()].map(({ digest }) => digest));
  }

  adminTokensOf(tenant: string): ReadonlyMap<string, AdminTokenDefinition> {
    return this.#members.get(tenant)?.adminTokens ?? new Map();
  }

  adminTokenBy(digest: string): AdminTokenDefinition | undefined {
    return this.#adminTokensByDigest.get(digest);
  }

  /** `user@tenant` of users with a password or a token. */
  *credentialHolders(): Generator<string> {
    for (const [tenant, { users, tokens }] of this.#members) {
      for (const { name, secrets } of users.values()) {
        if (secrets.length > 0) yield loginName(tenant, name);
      }
      for (const { user } of tokens.values()) yield loginName(tenant, user);
    }
  }

  snapshot(revision: number): TenancyUpdate {
    this.#changed = noneChanged();
    this.#authenticationChanged = false;
    return {
      whole: true,
      revision,
      checksCredentials: this.checksCredentials,
      tenants: [...this.tenants.values()],
      users: [...this.#members.values()].flatMap(({ users }) => [...users.values()]),
      tokens: [...this.#tokens.values()],
      gone: { tenants: [], users: [], tokens: [] },
    };
  }

  /** Changes since the last update or snapshot; undefined if there are none. */
  update(revision: number): TenancyUpdate | undefined {
    const changed = this.#changed;
    if (!this.#authenticationChanged && told.every((kind) => changed[kind].size === 0)) {
      return undefined;
    }
    this.#changed = noneChanged();
    this.#authenticationChanged = false;
    const tenants = split(changed.tenants, (name) => this.tenants.get(name));
    const users = split(changed.users, (login) => this.#userByLogin(login));
    const tokens = split(changed.tokens, (id) => this.#tokens.get(id));
    return {
      whole: false,
      revision,
      checksCredentials: this.checksCredentials,
      tenants: tenants.there,
      users: users.there,
      tokens: tokens.there,
      gone: { tenants: tenants.gone, users: users.gone, tokens: tokens.gone },
    };
  }

  #userByLogin(login: string): UserDefinition | undefined {
    const at = login.indexOf('@');
    return this.users(login.slice(at + 1)).get(login.slice(0, at));
  }

  #membersOf(tenant: string): Members {
    let members = this.#members.get(tenant);
    if (members === undefined) {
      members = { users: new Map(), tokens: new Map(), adminTokens: new Map() };
      this.#members.set(tenant, members);
    }
    return members;
  }

  #setTenant(name: string, tenant: TenantDefinition | undefined): void {
    this.#byTable = undefined;
    const before = this.tenants.get(name);
    if (before !== undefined) this.#byNumber.delete(before.number);
    if (tenant === undefined) {
      this.tenants.delete(name);
      this.#forgetEmpty(name);
    } else {
      this.tenants.set(name, tenant);
      this.#byNumber.set(tenant.number, tenant);
    }
  }

  #setUser(before: UserDefinition | undefined, user: UserDefinition | undefined): void {
    if (user !== undefined) this.#membersOf(user.tenant).users.set(user.name, user);
    else if (before !== undefined) {
      this.#members.get(before.tenant)?.users.delete(before.name);
      this.#forgetEmpty(before.tenant);
    }
  }

  #setToken(
    id: string,
    before: TokenDefinition | undefined,
    token: TokenDefinition | undefined,
  ): void {
    if (token !== undefined) {
      this.#tokens.set(id, token);
      this.#membersOf(token.tenant).tokens.set(id, token);
    } else if (before !== undefined) {
      this.#tokens.delete(id);
      this.#members.get(before.tenant)?.tokens.delete(id);
      this.#forgetEmpty(before.tenant);
    }
  }

  #setAdminToken(
    id: string,
    before: AdminTokenDefinition | undefined,
    token: AdminTokenDefinition | undefined,
  ): void {
    if (before !== undefined) {
      this.adminTokens.delete(id);
      this.#adminTokensByDigest.delete(before.digest);
      if (before.tenant !== undefined) {
        this.#members.get(before.tenant)?.adminTokens.delete(id);
        this.#forgetEmpty(before.tenant);
      }
    }
    if (token === undefined) return;
    this.adminTokens.set(id, token);
    this.#adminTokensByDigest.set(token.digest, token);
    if (token.tenant !== undefined) this.#membersOf(token.tenant).adminTokens.set(id, token);
  }

  #forgetEmpty(tenant: string): void {
    const members = this.#members.get(tenant);
    if (members === undefined || this.tenants.has(tenant)) return;
    const { users, tokens, adminTokens } = members;
    if (users.size + tokens.size + adminTokens.size === 0) this.#members.delete(tenant);
  }
}

/** A document of an earlier release has fewer limits. */
function asTenant(body: unknown): TenantDefinition {
  const tenant = body as TenantDefinition;
  return { ...tenant, limits: { ...noLimits, ...tenant.limits } };
}

/** Document of a user. */
export function userDocument({ tenant, name }: { tenant: string; name: string }): string {
  return loginName(tenant, name);
}

function noneChanged(): Record<Told, Set<string>> {
  return { tenants: new Set(), users: new Set(), tokens: new Set() };
}

function isTold(collection: string): collection is Told {
  return told.some((kind) => kind === collection);
}

function split<T>(
  ids: Iterable<string>,
  find: (id: string) => T | undefined,
): { there: T[]; gone: string[] } {
  const there: T[] = [];
  const gone: string[] = [];
  for (const id of ids) {
    const found = find(id);
    if (found === undefined) gone.push(id);
    else there.push(found);
  }
  return { there, gone };
}
