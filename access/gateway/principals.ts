// Authentication for a plane: tenants, their users and tokens as last received from the control
// plane, and the check of names and secrets.
//
// A correct password is cached as a keyed hash, so that only a client's first login costs a scrypt;
// the entry is valid only as long as the stored secret it matched is still its user's. A logged-in
// client holds a `Principal`, which follows all changes; when access is withdrawn it has `ended`,
// and listeners of `onChange` are called in the same tick in which the update takes effect.

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import {
  defaultTenant,
  defaultUser,
  loginName,
  noLimits,
  type TenancyUpdate,
  type TenantDefinition,
  type TokenDefinition,
  type UserDefinition,
} from '../../contracts/tenancy/definitions.ts';
import { addressLimits, LoginLimiter, userLimits } from './login-limiter.ts';
import { findSecret } from './secrets.ts';

/** Identity of a client. All clients of a user (or of a token) share one. */
export class Principal {
  /** Current definitions of the tenant and the user. They are replaced when they change. */
  tenant: TenantDefinition;
  user: UserDefinition;
  /** Id of the token used to log in; undefined for a password. */
  readonly token: string | undefined;
  /** Whether access was revoked, or the tenant was dropped or suspended. Requests are refused then. Never reset. */
  ended = false;

  constructor(tenant: TenantDefinition, user: UserDefinition, token: string | undefined) {
    this.tenant = tenant;
    this.user = user;
    this.token = token;
  }

  /** `user@tenant`. */
  get name(): string {
    return loginName(this.tenant.name, this.user.name);
  }
}

/**
 * `credentials`: wrong name or secret, or a user that is disabled. `suspended`: right, but its tenant lets
 * no client in. `throttled`: not looked at; to be tried again later.
 */
interface LoginFailure {
  readonly failure: 'credentials' | 'suspended' | 'throttled';
  /** Text for people. Reveals nothing about secrets. */
  readonly message: string;
}

export type Login = Principal | LoginFailure;

export interface PrincipalsChange {
  /** Their connections are to be closed. */
  ended: readonly Principal[];
  /** Principals whose tenant or user definition has changed. */
  changed: readonly Principal[];
  /** Tenants that were dropped, or that are being dropped. */
  goneTenants: readonly TenantDefinition[];
}

interface PrincipalsOptions {
  /** Number of databases of tenant `default` until an update states another one. */
  databases: number;
  /** Password of the user `default` of tenant `default`, accepted in addition to that user's own secrets; empty for none. */
  defaultPassword?: string;
  /** Limit of cached secrets, which are verified without scrypt. Default 20,000. */
  knownSecrets?: number;
}

const wrong: LoginFailure = {
  failure: 'credentials',
  message: 'invalid username-password pair or user is disabled',
};
const throttled: LoginFailure = {
  failure: 'throttled',
  message: 'too many failed logins, try again later',
};

/** One attempt to log in by a password. */
interface Attempt {
  /** `user@tenant`. */
  login: string;
  /** Name of the tenant; '' if the tenant does not exist. */
  tenant: string;
  network: string;
  /** Failures of an address slow down its later attempts on the same tenant, and no others. */
  limiterKey: string;
}

/**
 * The tenant as the client names it, or the whole name if it names none. It does not depend on
 * existing tenants, so delays do not reveal which tenants exist.
 */
function limitedNameOf(name: string): string {
  return name.length > maxNameLength ? '' : name.slice(name.lastIndexOf('@') + 1);
}

// No name of ours is longer; one that is cannot be a user's, and is not kept either.
const maxNameLength = 2 * 63 + 1;

export class Principals {
  revision = 0;
  readonly #knownLimit: number;
  readonly #key = randomBytes(32);
  readonly #tenants = new Map<string, TenantDefinition>();
  /** By tenant, then by name. */
  readonly #users = new Map<string, Map<string, UserDefinition>>();
  readonly #tokens = new Map<string, TokenDefinition>();
  readonly #tokensByDigest = new Map<string, TokenDefinition>();
  /** By tenant, then by the user's name, followed by the token's id for a login by token. */
  readonly #principals = new Map<string, Map<string, Principal>>();
  /** By fingerprint: the stored secret that it matched. */
  readonly #known = new Map<string, string>();
  /** Checks in progress, so that concurrent logins with one secret share one check. */
  readonly #checking = new Map<string, Promise<Login>>();
  readonly #byAddress = new LoginLimiter(addressLimits);
  readonly #byUser = new LoginLimiter(userLimits);
  readonly #listeners = new Set<(change: PrincipalsChange) => void>();
  #defaultPassword: Buffer | undefined;
  #checksCredentials = false;

  constructor(options: PrincipalsOptions) {
    this.#knownLimit = options.knownSecrets ?? 20_000;
    this.setDefaultPassword(options.defaultPassword ?? '');
    this.#reset(options.databases);
  }

  /** State before any update: tenant `default` and its user `default`, without a password. */
  #reset(databases: number): void {
    this.#tenants.set(defaultTenant, {
      name: defaultTenant,
      number: 0,
      state: 'active',
      firstTable: 0,
      databases,
      limits: noLimits,
    });
    this.#addUser({
      tenant: defaultTenant,
      name: defaultUser,
      enabled: true,
      open: true,
      secrets: [],
      rules: '+@all ~* &*',
      influxAdmin: true,
      grants: {},
    });
  }

  // ---- tenants, users and tokens
  //

  tenants(): Iterable<TenantDefinition> {
    return this.#tenants.values();
  }

  get tenantCount(): number {
    return this.#tenants.size;
  }

  tenant(name: string): TenantDefinition | undefined {
    return this.#tenants.get(name);
  }

  /** The users of a tenant, by name. */
  users(tenant: string): ReadonlyMap<string, UserDefinition> {
    return this.#users.get(tenant) ?? new Map();
  }

  user(tenant: string, name: string): UserDefinition | undefined {
    return this.#users.get(tenant)?.get(name);
  }

  /** The user that everyone is before logging in, if it needs no password. */
  get anonymous(): Principal | undefined {
    const user = this.user(defaultTenant, defaultUser);
    if (user === undefined || !this.#isOpen(user) || !user.enabled) return undefined;
    const login = this.#principal(user, undefined);
    return login instanceof Principal ? login : undefined;
  }

  /** As `anonymous`, with or without a password: for operations in the server's own name. */
  get root(): Principal {
    const tenant = this.#tenants.get(defaultTenant)!;
    const user = this.user(defaultTenant, defaultUser)!;
    return this.anonymous ?? new Principal(tenant, user, undefined);
  }

  /**
   * Whether wrong credentials are to be refused by a protocol that otherwise ignores them (InfluxDB's). Stays so
   * when the last user or tenant with a password is dropped.
   */
  get checksCredentials(): boolean {
    return this.#checksCredentials || this.anonymous === undefined;
  }

  #isOpen(user: UserDefinition): boolean {
    return user.open && !(this.#isRoot(user) && this.#defaultPassword !== undefined);
  }

  #isRoot({ tenant, name }: UserDefinition): boolean {
    return tenant === defaultTenant && name === defaultUser;
  }

  /** Empty: the default user needs none, unless it has secrets of its own. Clients logged in stay so. */
  setDefaultPassword(password: string): void {
    this.#defaultPassword = password === '' ? undefined : sha256(Buffer.from(password));
  }

  // ---- updates

  update(update: TenancyUpdate): void {
    if (!update.whole && update.revision < this.revision) return;
    this.revision = update.revision;
    const touched = this.#tenantsOf(update);
    const before = [...touched].flatMap((name) => this.#tenants.get(name) ?? []);
    if (update.whole) this.#clear();
    if (update.checksCredentials !== undefined) this.#checksCredentials = update.checksCredentials;
    for (const tenant of update.tenants) this.#tenants.set(tenant.name, tenant);
    for (const user of update.users) this.#addUser(user);
    for (const token of update.tokens) this.#addToken(token);
    for (const id of update.gone.tokens) this.#dropToken(id);
    for (const login of update.gone.users) this.#dropUser(login);
    for (const name of update.gone.tenants) this.#dropTenant(name);
    const goneTenants = before.filter((tenant) => this.#hasGone(tenant));
    this.#follow(touched, goneTenants);
  }

  /** Names of the tenants that the update concerns. */
  #tenantsOf({ whole, tenants, users, tokens, gone }: TenancyUpdate): Set<string> {
    const names = new Set(tenants.map(({ name }) => name));
    for (const { tenant } of [...users, ...tokens]) names.add(tenant);
    for (const login of gone.users) names.add(login.slice(login.lastIndexOf('@') + 1));
    for (const id of gone.tokens) names.add(this.#tokens.get(id)?.tenant ?? defaultTenant);
    for (const name of gone.tenants) names.add(name);
    if (whole) for (const name of this.#tenants.keys()) names.add(name);
    return names;
  }

  #clear(): void {
    const { databases } = this.#tenants.get(defaultTenant)!;
    this.#tenants.clear();
    this.#users.clear();
    this.#tokens.clear();
    this.#tokensByDigest.clear();
    this.#reset(databases);
  }

  #hasGone(tenant: TenantDefinition): boolean {
    const now = this.#tenants.get(tenant.name);
    if (now === undefined || now.number !== tenant.number) return true;
    return now.state === 'dropping' && tenant.state !== 'dropping';
  }

  #addUser(user: UserDefinition): void {
    let users = this.#users.get(user.tenant);
    if (users === undefined) this.#users.set(user.tenant, (users = new Map()));
    users.set(user.name, user);
  }

  #addToken(token: TokenDefinition): void {
    this.#dropToken(token.id);
    this.#tokens.set(token.id, token);
    this.#tokensByDigest.set(token.digest, token);
  }

  #dropToken(id: string): void {
    const token = this.#tokens.get(id);
    if (token === undefined) return;
    this.#tokens.delete(id);
    this.#tokensByDigest.delete(token.digest);
  }

  #dropUser(login: string): void {
    const at = login.lastIndexOf('@');
    this.#users.get(login.slice(at + 1))?.delete(login.slice(0, at));
  }

  #dropTenant(name: string): void {
    this.#tenants.delete(name);
    this.#users.delete(name);
    for (const token of [...this.#tokens.values()]) {
      if (token.tenant === name) this.#dropToken(token.id);
    }
  }

  /** Gives logged-in clients their new definitions, or ends them. */
  #follow(tenants: Iterable<string>, goneTenants: readonly TenantDefinition[]): void {
    const ended: Principal[] = [];
    const changed: Principal[] = [];
    for (const name of tenants) {
      const principals = this.#principals.get(name);
      const tenant = this.#tenants.get(name);
      for (const [key, principal] of principals ?? []) {
        const user = this.user(name, principal.user.name);
        if (!this.#mayStay(principal, tenant, user)) {
          principal.ended = true;
          principals!.delete(key);
          ended.push(principal);
        } else if (principal.tenant !== tenant || principal.user !== user) {
          principal.tenant = tenant!;
          principal.user = user!;
          changed.push(principal);
        }
      }
      if (principals?.size === 0) this.#principals.delete(name);
    }
    if (ended.length + changed.length + goneTenants.length === 0) return;
    for (const listener of this.#listeners) listener({ ended, changed, goneTenants });
  }

  #mayStay(
    principal: Principal,
    tenant: TenantDefinition | undefined,
    user: UserDefinition | undefined,
  ): boolean {
    if (tenant?.number !== principal.tenant.number || tenant.state !== 'active') return false;
    if (user === undefined || !user.enabled) return false;
    return principal.token === undefined || this.#isTokenOf(principal);
  }

  #isTokenOf({ token, tenant, user }: Principal): boolean {
    const definition = this.#tokens.get(token!);
    return definition?.tenant === tenant.name && definition.user === user.name;
  }

  /**
   * Adds a listener, called with the affected principals when an update is in force. Returns a function that removes the
   * listener.
   */
  onChange(listener: (change: PrincipalsChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  // ---- logging in

  /** The tenant and the user that a login name means, whether they exist or not. */
  resolve(name: string): { tenant: string; user: string } {
    const at = name.lastIndexOf('@');
    if (at >= 0) return { tenant: name.slice(at + 1), user: name.slice(0, at) };
    if (this.#tenants.has(name)) return { tenant: name, user: defaultUser };
    return { tenant: defaultTenant, user: name };
  }

  /**
   * `secret` is a password of the user, or one of its tokens; `address` is the client's, without a port.
   * Answers at once when nothing slow has to be computed. Never rejects.
   */
  login(name: string, secret: Buffer, address: string): MaybePromise<Login> {
    const { tenant, user: userName } = this.resolve(name);
    const user = this.user(tenant, userName);
    if (user?.enabled === true && this.#isOpen(user)) return this.#principal(user, undefined);
    const login = name.length > maxNameLength ? '' : loginName(tenant, userName);
    const fingerprint = this.#fingerprint(login, secret);
    const known = user?.enabled === true ? this.#recall(user, secret, fingerprint) : undefined;
    if (known !== undefined) return known;
    let checking = this.#checking.get(fingerprint);
    if (checking === undefined) {
      const copy = Buffer.from(secret);
      const attempt: Attempt = {
        login,
        tenant: this.#tenants.has(tenant) ? tenant : '',
        network: networkOf(address),
        limiterKey: `${networkOf(address)} ${limitedNameOf(name)}`,
      };
      checking = this.#check(attempt, user, copy, fingerprint).finally(() => {
        this.#checking.delete(fingerprint);
      });
      this.#checking.set(fingerprint, checking);
    }
    return checking;
  }

  /** The principal of this token. It is found by its digest, so that nothing of it can be learnt by timing. */
  token(secret: Buffer | string): Login {
    const token = this.#tokensByDigest.get(sha256(secret).toString('base64'));
    const user = token && this.user(token.tenant, token.user);
    if (token === undefined || user === undefined || !user.enabled) return wrong;
    return this.#principal(user, token.id);
  }

  /** Result known without a scrypt; undefined if none is. */
  #recall(user: UserDefinition, secret: Buffer, fingerprint: string): Login | undefined {
    const stored = this.#known.get(fingerprint);
    if (stored !== undefined && user.secrets.includes(stored)) {
      return this.#principal(user, undefined);
    }
    const digest = sha256(secret);
    if (this.#isRoot(user) && this.#defaultPassword !== undefined) {
      if (timingSafeEqual(digest, this.#defaultPassword)) return this.#principal(user, undefined);
    }
    const token = this.#tokensByDigest.get(digest.toString('base64'));
    if (token?.tenant === user.tenant && token.user === user.name) {
      return this.#principal(user, token.id);
    }
    return undefined;
  }

  async #check(
    { login, tenant, network, limiterKey }: Attempt,
    user: UserDefinition | undefined,
    secret: Buffer,
    fingerprint: string,
  ): Promise<Login> {
    if (!(await this.#byAddress.enter(limiterKey))) return throttled;
    await this.#byUser.enter(login);
    let matched: string | undefined;
    let failed = true;
    try {
      const request = { kind: 'login', tenant, address: network } as const;
      matched = await findSecret(secret, user?.secrets ?? [], request);
      failed = matched === undefined;
    } catch {
      // Too many at once, or no memory for one: nothing was learnt.
      failed = false;
      return throttled;
    } finally {
      this.#byUser.leave(login, failed);
      this.#byAddress.leave(limiterKey, failed);
    }
    if (matched === undefined) return wrong;
    // All may have changed meanwhile.
    const now = this.user(user!.tenant, user!.name);
    if (now === undefined || !now.enabled || !now.secrets.includes(matched)) return wrong;
    this.#know(fingerprint, matched);
    return this.#principal(now, undefined);
  }

  #know(fingerprint: string, stored: string): void {
    this.#known.delete(fingerprint);
    this.#known.set(fingerprint, stored);
    if (this.#known.size <= this.#knownLimit) return;
    const [oldest] = this.#known.keys();
    this.#known.delete(oldest!);
  }

  /** Keyed hash of a name and its secret; useless outside of this process. */
  #fingerprint(login: string, secret: Buffer): string {
    return createHmac('sha256', this.#key)
      .update(login)
      .update('\0')
      .update(secret)
      .digest('base64');
  }

  #principal(user: UserDefinition, token: string | undefined): Login {
    const tenant = this.#tenants.get(user.tenant);
    if (tenant === undefined) return wrong;
    if (tenant.state !== 'active') {
      const message = `tenant '${tenant.name}' is ${tenant.state === 'dropping' ? 'being dropped' : 'suspended'}`;
      return { failure: 'suspended', message };
    }
    let principals = this.#principals.get(tenant.name);
    if (principals === undefined) this.#principals.set(tenant.name, (principals = new Map()));
    const key = `${user.name} ${token ?? ''}`;
    let principal = principals.get(key);
    if (principal === undefined) {
      principal = new Principal(tenant, user, token);
      principals.set(key, principal);
    }
    return principal;
  }
}

function sha256(text: Buffer | string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** The owner of one IPv6 address has 2^64 of them, so a /64 network counts as one. */
function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
  if (!plain.includes(':')) return plain;
  const [head, tail] = plain.split('::') as [string, string | undefined];
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const after = tail === '' ? 0 : tail.split(':').length;
    while (groups.length + after < 8) groups.push('0');
  }
  return groups.slice(0, 4).join(':');
}
