// A user of a tenant in its current state.

import type { Privilege } from '../../../contracts/tenancy/definitions.ts';
import type { Principal as KnownPrincipal } from '../../gateway/principals.ts';
import type { Principal } from '../statements/principal.ts';
import type { UserDirectory } from '../statements/user-directory.ts';
import type { Caller } from './caller.ts';
import type { TenantSpace } from './tenant-space.ts';

export class TenantCaller implements Caller, Principal {
  readonly space: TenantSpace;
  readonly users: UserDirectory;
  readonly #known: KnownPrincipal;

  constructor(known: KnownPrincipal, space: TenantSpace, users: UserDirectory) {
    this.#known = known;
    this.space = space;
    this.users = users;
  }

  get principal(): Principal {
    return this;
  }

  get ended(): boolean {
    return this.#known.ended;
  }

  /** Without the tenant: among its own, messages name it as InfluxDB does. */
  get name(): string {
    return this.#known.user.name;
  }

  get isAdmin(): boolean {
    return !this.ended && this.#known.user.influxAdmin;
  }

  mayRead(database: string): boolean {
    return this.isAdmin || this.#has('read', database);
  }

  mayWrite(database: string): boolean {
    return this.isAdmin || this.#has('write', database);
  }

  #has(privilege: Privilege, database: string): boolean {
    const { grants } = this.#known.user;
    if (this.ended || !Object.hasOwn(grants, database)) return false;
    return grants[database] === 'all' || grants[database] === privilege;
  }
}
