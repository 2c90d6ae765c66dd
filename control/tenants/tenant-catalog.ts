// Tenants, their users, tokens and limits, kept in the document store.
//
// A change is one write of all its documents. It is durable first, then sent to the data planes, and answered when all
// of them apply it. Several control planes may write to the store at once: the loser of a comparison of revisions
// retries.
//
// Dropping a tenant is a workflow. It starts with the write that marks the tenant `dropping`, after which its
// clients are refused; see drop-tenant-workflow.ts.

import {
  defaultTenant,
  noLimits,
  type TenancyUpdate,
  type TenantDefinition,
  type TenantLimits,
  type UserDefinition,
} from '../../contracts/tenancy/definitions.ts';
import type { DocumentStore } from '../metadata/document-store.ts';
import type { WorkflowEngine } from '../workflows/workflow-engine.ts';
import { adopted, type TenantMembers } from './adopted.ts';
import type { MirrorWrite } from '../metadata/document-mirror.ts';
import { type Planned, put, remove, TenancyChanges } from './tenancy-changes.ts';
import {
  TenancyState,
  type TenancyCounters,
  type TenancyDocuments,
  userDocument,
} from './tenancy-state.ts';
import { dropTenantId, dropTenantRequest, dropTenantWorkflow } from './drop-tenant-workflow.ts';
import { TenantError } from './tenant-error.ts';
import {
  checkDatabases,
  checkLimits,
  checkName,
  checkPassword,
  checkTogether,
} from './tenant-rules.ts';
import { AdminTokenCatalog, TokenCatalog } from './token-catalogs.ts';
import { newPassword } from './token-secrets.ts';
import { UserCatalog, type UserWish } from './user-catalog.ts';
import { ownerOf } from './user-definitions.ts';

/** Tables below this number are tenant default's, however many databases it is given. */
const firstTenantTable = 4096;

// Users and tokens made or removed in one write.
const atOnce = 500;

interface TenantCatalogOptions {
  /** Runs the workflow that drops a tenant. */
  workflows: WorkflowEngine;
  /** Databases of the tenant `default`. */
  databases: number;
  /** Default number of databases of a new tenant. */
  tenantDatabases?: number;
  /** Why the default user may not go without a password just now, if so. */
  whyNotOpen?: () => string | undefined;
  /** Returns the hash to store for a password. */
  hashPassword: (password: Buffer, tenant: string) => Promise<string>;
  /** Reports pending failures. */
  report?: (message: string) => void;
  now?: () => number;
}

/** The data planes and other holders of tenant state. */
export interface TenantHolders {
  /** Resolves once the old state admits no client and clients without access are disconnected. */
  tenancy(update: TenancyUpdate): Promise<void>;
  /** Resolves once no data of the tenant is left. The data may have been dropped before. */
  dropData(tenant: TenantDefinition): Promise<void>;
}

export interface NewTenant {
  name: string;
  databases?: number;
  limits?: Partial<TenantLimits>;
  /** Password of its user `default`; generated when missing. */
  password?: string;
}

/** Results that are shown once. */
interface MadeTenant {
  tenant: TenantDefinition;
  password: string;
}

export class TenantCatalog {
  /** Tokens of the users of tenants. */
  readonly tokens: TokenCatalog;
  /** Tokens for the admin API. */
  readonly adminTokens: AdminTokenCatalog;
  readonly #options: TenantCatalogOptions;
  readonly #state: TenancyState;
  readonly #changes: TenancyChanges;
  readonly #users: UserCatalog;

  #holders: TenantHolders | undefined;

  private constructor(state: TenancyState, changes: TenancyChanges, options: TenantCatalogOptions) {
    const { now = Date.now } = options;
    this.#options = options;
    this.#state = state;
    this.#changes = changes;
    const { hashPassword, whyNotOpen = () => undefined } = options;
    this.#users = new UserCatalog(state, changes, hashPassword, whyNotOpen);
    this.tokens = new TokenCatalog(state, changes, now);
    this.adminTokens = new AdminTokenCatalog(state, changes, now);
    options.workflows.register(
      dropTenantWorkflow({
        find: (name) => state.tenants.get(name),
        publish: () => changes.publisher.publish(),
        dropData: async (tenant) => {
          if (this.#holders === undefined) throw new Error('the data planes are not there yet');
          await this.#holders.dropData(tenant);
        },
        removeSome: (name) => this.#removeSome(name),
      }),
    );
  }

  /** Loads all documents, and creates tenant `default` and its user if they do not exist. */
  static async open(store: DocumentStore, options: TenantCatalogOptions): Promise<TenantCatalog> {
    const state = new TenancyState();
    const changes = await TenancyChanges.open(store, state, options.report ?? (() => {}));
    const catalog = new TenantCatalog(state, changes, options);
    await changes.make(() => catalog.#planDefaultTenant());
    return catalog;
  }

  /** Everything, for planes that start. Updates follow from there. */
  snapshot(): TenancyUpdate {
    return this.#state.snapshot(this.#changes.mirror.revision);
  }

  /** Sees every update that is in force. Returns how to stop. */
  onUpdate(listener: (update: TenancyUpdate) => void): () => void {
    return this.#changes.publisher.onUpdate(listener);
  }

  /** From now on these follow all changes. Workflows may be started then. */
  async attach(holders: TenantHolders): Promise<void> {
    // A rejected update is reported and sent again.
    await this.#changes.publisher
      .attach((update) => holders.tenancy(update))
      .catch((error: unknown) => {
        if (!(error instanceof TenantError)) throw error;
      });
    this.#holders = holders;
  }

  /** Stops accepting and delivering changes. The store stays open. */
  async close(): Promise<void> {
    await this.#changes.close();
  }

  // ---- reads
  //

  tenants(): TenantDefinition[] {
    return [...this.#state.tenants.values()].sort((a, b) => a.number - b.number);
  }

  get tenantCount(): number {
    return this.#state.tenants.size;
  }

  find(name: string): TenantDefinition {
    return this.#state.find(name);
  }

  /** Returns a tenant that is not being dropped. */
  lasting(name: string): TenantDefinition {
    return this.#state.lasting(name);
  }

  byNumber(number: number): TenantDefinition | undefined {
    return this.#state.byNumber(number);
  }

  // For the catalog of tables.

  owner(name: string): TenantDefinition | undefined {
    return this.#state.tenants.get(name);
  }

  ownerOf(table: number): TenantDefinition | undefined {
    return this.#state.ofTable(table);
  }

  // ---- tenants

  async createTenant(wish: NewTenant): Promise<MadeTenant> {
    const { name, databases = this.#options.tenantDatabases ?? 16, limits = {} } = wish;
    const password = wish.password ?? newPassword();
    checkName('tenant', name);
    checkDatabases(databases);
    checkLimits(limits);
    checkPassword(password);
    this.#refuseTaken(name);
    const secret = await this.#options.hashPassword(Buffer.from(password), name);
    const owner = { ...ownerOf(name), secrets: [secret] };
    const createdAt = (this.#options.now ?? Date.now)();
    const tenant = await this.#changes.make(() =>
      this.#planTenant({ name, state: 'active', databases, limits, createdAt }, [owner]),
    );
    return { tenant, password };
  }

  /**
   * Makes a tenant from an exported one, with its users and those of its tokens that do not exist
   * here. It is suspended until an operator resumes it.
   */
  async adoptTenant(
    name: string,
    from: TenantMembers & { tenant: TenantDefinition },
  ): Promise<TenantDefinition> {
    const { databases, limits, createdAt } = from.tenant;
    checkName('tenant', name);
    checkDatabases(databases);
    checkLimits(limits);
    const { users, tokens } = adopted(name, from, this.#state.tokenDigests());
    // One that comes back from a backup is no new one.
    const age = createdAt === undefined ? {} : { createdAt };
    const tenant = await this.#changes.make(() =>
      this.#planTenant(
        { name, state: 'suspended', databases, limits, ...age },
        users.slice(0, atOnce),
      ),
    );
    const rest = [
      ...users.slice(atOnce).map((user) => put('users', userDocument(user), user)),
      ...tokens.map((token) => put('tokens', token.id, token)),
    ];
    for (let i = 0; i < rest.length; i += atOnce) {
      await this.#changes.make(() => {
        this.#state.lasting(name);
        return { writes: rest.slice(i, i + atOnce), result: undefined };
      });
    }
    return tenant;
  }

  /** Gives a tenant that is here those users and tokens of another that it lacks. */
  async adoptMembers(name: string, from: TenantMembers): Promise<void> {
    const { users, tokens } = adopted(name, from, this.#state.tokenDigests());
    const here = this.#state.users(name);
    for (const { tenant: _tenant, name: user, ...change } of users) {
      // The user by whose name alone the tenant logs in may not have been set up yet.
      const known = here.get(user);
      const isNew = known === undefined || (known.open && known.secrets.length === 0);
      if (isNew) await this.setUser({ tenant: name, name: user, change });
    }
    for (let i = 0; i < tokens.length; i += atOnce) {
      await this.#changes.make(() => {
        this.#state.lasting(name);
        const some = tokens.slice(i, i + atOnce);
        return { writes: some.map((token) => put('tokens', token.id, token)), result: undefined };
      });
    }
  }

  /** The tenant gets the first tables that were never used. */
  #planTenant(
    wish: Pick<TenantDefinition, 'name' | 'state' | 'databases' | 'createdAt'> & {
      limits: Partial<TenantLimits>;
    },
    users: readonly UserDefinition[],
  ): Planned<TenantDefinition> {
    const { name, databases } = wish;
    this.#refuseTaken(name);
    const limits = { ...noLimits, ...wish.limits };
    checkTogether(limits);
    const { nextNumber, nextTable } = this.#counters();
    const tenant: TenantDefinition = {
      ...wish,
      number: nextNumber,
      firstTable: nextTable,
      limits,
    };
    const counters = { nextNumber: nextNumber + 1, nextTable: nextTable + databases };
    const writes = [
      put('tenants', name, tenant),
      ...users.map((user) => put('users', userDocument(user), user)),
      put('names', name, { of: 'tenant' }),
      put('counters', 'tenancy', counters),
    ];
    return { writes, result: tenant };
  }

  /** `limits` are changed one by one. */
  alterTenant(
    name: string,
    change: { state?: 'active' | 'suspended'; limits?: Partial<TenantLimits> },
  ): Promise<TenantDefinition> {
    const { state, limits = {} } = change;
    return this.#changes.make(() => {
      checkLimits(limits);
      const before = this.#state.lasting(name);
      if (name === defaultTenant && state === 'suspended') {
        throw new TenantError('conflict', `tenant ${defaultTenant} cannot be suspended`);
      }
      const tenant: TenantDefinition = {
        ...before,
        state: state ?? before.state,
        limits: { ...before.limits, ...limits },
      };
      checkTogether(tenant.limits);
      return { writes: [put('tenants', name, tenant)], result: tenant };
    });
  }

  /** Resolves when the tenant's clients are refused. The workflow does the rest: see `dropped`. */
  dropTenant(name: string): Promise<TenantDefinition> {
    return this.#changes.make(() => {
      if (name === defaultTenant) {
        throw new TenantError('conflict', `tenant ${defaultTenant} cannot be dropped`);
      }
      const found = this.find(name);
      if (found.state === 'dropping') return { writes: [], result: found };
      const tenant: TenantDefinition = { ...found, state: 'dropping' };
      const workflow = this.#options.workflows.submission(...dropTenantRequest(tenant));
      return { writes: [put('tenants', name, tenant), workflow], result: tenant };
    });
  }

  /** Waits until the tenant is dropped completely. Resolves to false if that takes longer than the given milliseconds. */
  async dropped(
    { name, number }: Pick<TenantDefinition, 'name' | 'number'>,
    withinMs: number,
  ): Promise<boolean> {
    await this.#options.workflows.ended(dropTenantId({ number }), withinMs);
    return this.owner(name)?.number !== number;
  }

  // ---- users

  users(tenant: string): UserDefinition[] {
    return this.#users.of(tenant);
  }

  user(tenant: string, name: string): UserDefinition {
    return this.#users.find(tenant, name);
  }

  /** Makes a user or changes one: see `UserWish`. */
  setUser(wish: UserWish): Promise<UserDefinition> {
    return this.#users.set(wish);
  }

  /** Removes users' privileges on a database that is to be dropped. */
  dropGrants(tenant: string, database: string): Promise<void> {
    return this.#users.dropGrants(tenant, database);
  }

  /** Its tokens go, too. */
  dropUser(tenant: string, name: string): Promise<void> {
    return this.#users.drop(tenant, name);
  }

  // ---- whether credentials are checked

  /** Wrong credentials are refused: there has been a password or a token since the last reset. */
  get checksCredentials(): boolean {
    return this.#state.checksCredentials;
  }

  /**
   * Credentials are ignored again where the protocol allows it, as on a new server. Throws `conflict` while any
   * user has a password or a token.
   */
  resetAuthentication(): Promise<void> {
    return this.#changes.make(() => {
      const [holder] = this.#state.credentialHolders();
      if (holder !== undefined) {
        throw new TenantError(
          'conflict',
          `${holder} has a password or a token: as long as any user has, credentials are checked`,
        );
      }
      const writes = this.checksCredentials ? [remove('authentication', 'tenancy')] : [];
      return { writes, result: undefined };
    });
  }

  // ---- rules

  #planDefaultTenant(): Planned<undefined> {
    const writes: MirrorWrite[] = [];
    const { databases } = this.#options;
    const found = this.#state.tenants.get(defaultTenant);
    if (found === undefined) {
      const own = {
        number: 0,
        state: 'active',
        firstTable: 0,
        databases,
        limits: noLimits,
      } as const;
      const user: UserDefinition = { ...ownerOf(defaultTenant), open: true };
      writes.push(
        put('tenants', defaultTenant, { name: defaultTenant, ...own }),
        put('users', userDocument(user), user),
        put('names', defaultTenant, { of: 'tenant' }),
        put('counters', 'tenancy', { nextNumber: 1, nextTable: firstTenantTable }),
      );
    } else if (found.databases !== databases) {
      writes.push(put('tenants', defaultTenant, { ...found, databases }));
    }
    // Metadata of an earlier release has no record of it.
    const [holder] = this.#state.credentialHolders();
    if (holder !== undefined && !this.checksCredentials) {
      writes.push(put('authentication', 'tenancy', { checksCredentials: true }));
    }
    return { writes, result: undefined };
  }

  #counters(): TenancyCounters {
    return this.#changes.mirror.get('counters', 'tenancy') as unknown as TenancyCounters;
  }

  #refuseTaken(name: string): void {
    const owner = this.#changes.mirror.get('names', name) as unknown as
      | TenancyDocuments['names']
      | undefined;
    if (owner === undefined) return;
    if (owner.of === 'user') {
      throw new TenantError('conflict', `a user of tenant ${defaultTenant} is called ${name}`);
    }
    const isLeaving = this.#state.tenants.get(name)?.state === 'dropping';
    throw new TenantError(
      'conflict',
      isLeaving ? `tenant ${name} is still being dropped` : `tenant ${name} already exists`,
    );
  }

  /** Removes some documents of a tenant that is being dropped, its own as the last; true when that is gone. */
  #removeSome(name: string): Promise<boolean> {
    return this.#changes.make(() => {
      const members = [
        ...this.adminTokens.of(name).map(({ id }) => remove('adminTokens', id)),
        ...this.tokens.of(name).map(({ id }) => remove('tokens', id)),
        ...this.users(name).map((user) => remove('users', userDocument(user))),
      ];
      const writes = members.slice(0, atOnce);
      const isLast = writes.length === members.length;
      if (isLast) writes.push(remove('tenants', name), remove('names', name));
      return { writes, result: isLast };
    });
  }
}
