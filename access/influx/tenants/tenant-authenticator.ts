// Authenticates requests, and determines the caller's tenant and databases.
//
// A client without credentials is the user `default` of the tenant `default`, if that needs no
// password. Until the first user has a password or a token, credentials are not checked either, as
// InfluxDB does while authentication is off: Telegraf always sends some. From then on they must be
// valid, also when that user is dropped again.

import type { Clock } from '../../../universal-row/environment.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import type { SeriesStore } from '../../../contracts/series-store.ts';
import { noLimits, type TenantDefinition } from '../../../contracts/tenancy/definitions.ts';
import { type Login, Principal, type Principals } from '../../gateway/principals.ts';
import type { QueriesElsewhere, ShownQuery } from '../statements/query-registry.ts';
import type { Caller, Authenticator, Refusal } from './caller.ts';
import type { Credentials } from './credentials.ts';
import { DatabaseIndex, type DatabaseSource } from './database-index.ts';
import { ownerOf } from './database-names.ts';
import { limitText } from './limits.ts';
import { TenantCaller } from './tenant-caller.ts';
import { TenantSpace } from './tenant-space.ts';
import { TenantStore } from './tenant-store.ts';
import { type ChangeUsers, TenantUsers } from './tenant-users.ts';

interface TenantGateOptions {
  principals: Principals;
  /** Store of all tenants together. */
  store: SeriesStore & DatabaseSource;
  changeUsers: ChangeUsers;
  clock: Clock;
  /** Queries of a tenant at other nodes of a cluster. */
  queriesElsewhere?: ((tenant: number) => QueriesElsewhere) | undefined;
  /** A client, by its address, sent credentials that were not looked at. Called once for each. */
  onIgnored?: (address: string) => void;
}

/** Addresses that `onIgnored` is called for. */
const maxIgnored = 1000;

/** Databases that may have only so many series together. */
interface SeriesAllowance {
  readonly databases: Iterable<string>;
  readonly series: number;
  /** Error message for one more. */
  readonly refusal: string;
}

const missing: Refusal = {
  refusal: 'missing',
  message: 'unable to parse authentication credentials',
};
const wrong: Refusal = { refusal: 'credentials', message: 'authorization failed' };

export class TenantAuthenticator implements Authenticator {
  readonly #principals: Principals;
  readonly #store: SeriesStore;
  readonly #databases: DatabaseIndex;
  readonly #clock: Clock;
  readonly #changeUsers: ChangeUsers;
  readonly #spaces = new Map<number, TenantSpace>();
  readonly #callers = new WeakMap<Principal, TenantCaller>();
  readonly #ignored = new Set<string>();
  readonly #onIgnored: ((address: string) => void) | undefined;
  readonly #queriesElsewhere: TenantGateOptions['queriesElsewhere'];

  constructor(options: TenantGateOptions) {
    this.#principals = options.principals;
    this.#store = options.store;
    this.#clock = options.clock;
    this.#changeUsers = options.changeUsers;
    this.#databases = new DatabaseIndex(options.store);
    this.#onIgnored = options.onIgnored;
    this.#queriesElsewhere = options.queriesElsewhere;
    this.#principals.onChange(({ goneTenants }) => {
      for (const { number } of goneTenants) this.#spaces.delete(number);
    });
  }

  /** The running queries of a tenant at this node; with `kill` the one of that id, which is ended. */
  queriesHere(tenant: number, kill?: number): ShownQuery[] {
    const queries = this.#spaces.get(tenant)?.queries;
    const shown = queries?.shownHere() ?? [];
    if (kill === undefined) return shown;
    return queries?.killHere(kill) === true ? shown.filter(({ id }) => id === kill) : [];
  }

  onChange(listener: () => void): void {
    this.#principals.onChange(listener);
  }

  // ---- authentication
  //

  enter(credentials: Credentials | undefined, address: string): MaybePromise<Caller | Refusal> {
    const { anonymous, checksCredentials } = this.#principals;
    if (credentials === undefined || !checksCredentials) {
      if (credentials !== undefined) this.#noteIgnored(address);
      return anonymous === undefined ? missing : this.#callerOf(anonymous);
    }
    if (credentials.kind === 'token')
      return this.#entered(this.#principals.token(credentials.token));
    const { user, password } = credentials;
    if (user === '') return { refusal: 'credentials', message: 'username required' };
    const login = this.#principals.login(user, Buffer.from(password), address);
    return login instanceof Promise
      ? login.then((settled) => this.#entered(settled))
      : this.#entered(login);
  }

  #noteIgnored(address: string): void {
    if (this.#ignored.has(address) || this.#ignored.size >= maxIgnored) return;
    this.#ignored.add(address);
    this.#onIgnored?.(address);
  }

  #entered(login: Login): Caller | Refusal {
    if (login instanceof Principal) return this.#callerOf(login);
    if (login.failure === 'credentials') return wrong;
    return { refusal: login.failure, message: login.message };
  }

  #callerOf(principal: Principal): TenantCaller {
    let caller = this.#callers.get(principal);
    if (caller === undefined) {
      const { tenant, user } = principal;
      const changer = { tenant: tenant.name, user: user.name };
      const users = new TenantUsers(this.#principals, changer, this.#changeUsers);
      caller = new TenantCaller(principal, this.#spaceOf(tenant), users);
      this.#callers.set(principal, caller);
    }
    return caller;
  }

  // ---- stores and limits of the tenant
  //

  #spaceOf({ name, number }: TenantDefinition): TenantSpace {
    let space = this.#spaces.get(number);
    if (space === undefined) {
      const tenant = (): TenantDefinition | undefined => {
        const now = this.#principals.tenant(name);
        return now?.number === number ? now : undefined;
      };
      const store = new TenantStore({
        store: this.#store,
        index: this.#databases,
        tenant: number,
        isActive: () => tenant()?.state === 'active',
      });
      const limits = () => tenant()?.limits ?? noLimits;
      const queriesElsewhere = this.#queriesElsewhere?.(number);
      const own = { name, number, store, limits, queriesElsewhere };
      space = new TenantSpace({ ...own, clock: this.#clock });
      this.#spaces.set(number, space);
    }
    return space;
  }

  /** All databases of the tenant that has one, as they are kept. */
  databasesOfTenant(kept: string): Iterable<string> {
    return this.#databases.of(ownerOf(kept).tenant);
  }

  /** Limit of new series for a database; undefined when its tenant has no limit. */
  seriesAllowance(kept: string): SeriesAllowance | undefined {
    const { tenant } = ownerOf(kept);
    const space = this.#spaces.get(tenant);
    const series = space?.limits.series ?? 0;
    if (space === undefined || series === 0) return undefined;
    return {
      databases: this.#databases.of(tenant),
      series,
      refusal: limitText(space.name, 'series', series),
    };
  }
}
