// The identity of a connection: its user and tenant, the selected database, and the attributes the
// client reports.

import type { TableSpan } from '../../universal-row/command.ts';
import type { Principal } from '../gateway/principals.ts';
import type { Permissions } from './acl/acl-user.ts';
import { type Client, type ClientAttributes, ClientFlag } from './client.ts';
import type { ConnectionHost } from './connection-host.ts';
import { HeldMemory } from './held-memory.ts';
import { ConnectionMeter } from './metering.ts';
import { type Tenant, tooManyClients } from './tenant.ts';
import type { TrackingState } from './tracking.ts';

/** `C` is the connection that is made of it. */
export abstract class Session<C extends Client> implements ClientAttributes {
  readonly server: ConnectionHost<C>;
  version = 2;
  name = '';
  libName = '';
  libVersion = '';
  noEvict = false;
  noTouch = false;
  tracking: TrackingState | undefined;
  /** A sum of `ClientFlag`. */
  flags: number = ClientFlag.none;
  readonly channels = new Set<string>();
  readonly patterns = new Set<string>();
  readonly shardChannels = new Set<string>();
  /** Meter of its commands. */
  readonly meter = new ConnectionMeter();
  /** Memory that it holds beyond a round of the event loop. */
  readonly held: HeldMemory;
  bytesIn = 0;
  bytesOut = 0;
  commandsRun = 0;
  // Plain fields, as each command reads them; others see them through `Client`, where they are read-only.
  /** Before it has logged in, the tenant whose users need not name it. */
  tenant: Tenant<C>;
  /** The selected database, as the client counts, and the table that this is. */
  db = 0;
  table = 0;
  /** Undefined before it has logged in. */
  #principal: Principal | undefined;

  constructor(server: ConnectionHost<C>, principal: Principal | undefined) {
    this.server = server;
    this.held = new HeldMemory(server.memory);
    this.tenant = server.tenant(principal?.tenant ?? server.principals.tenant('default')!);
  }

  /** The connection itself. */
  protected abstract get client(): C;
  /** Its tenant's tables, or whether it has logged in, have changed. */
  protected abstract identityChanged(span: TableSpan): void;
  abstract unwatch(): void;

  /** To be called once, when the connection is complete. */
  protected beginSession(principal: Principal | undefined): void {
    if (principal === undefined) this.#awaitLogin();
    else this.#enter(principal, this.tenant);
  }

  /** Undefined before it has logged in. */
  get principal(): Principal | undefined {
    return this.#principal;
  }

  get user(): string {
    return this.#principal?.user.name ?? 'default';
  }

  setFlag(flag: number, isSet: boolean): void {
    if (isSet) this.flags |= flag;
    else this.flags &= ~flag;
  }

  update(attributes: Partial<ClientAttributes>): void {
    Object.assign(this, attributes);
  }

  select(db: number): void {
    this.db = db;
    this.table = this.tenant.span.first + db;
  }

  /** Acts for this user from now on; returns why it may not. */
  become(principal: Principal): string | undefined {
    const tenant = this.server.tenant(principal.tenant);
    const isElsewhere = this.#principal === undefined || tenant !== this.tenant;
    if (isElsewhere && tenant.isFull) {
      tenant.rejectedConnections++;
      return tooManyClients(tenant);
    }
    if (tenant !== this.tenant) this.leaveTenant();
    this.#enter(principal, tenant);
    return undefined;
  }

  #enter(principal: Principal, tenant: Tenant<C>): void {
    if (tenant !== this.tenant) this.db = 0;
    this.#principal = principal;
    this.tenant = tenant;
    if (!tenant.connections.has(this.client)) {
      tenant.connections.add(this.client);
      tenant.past.connections++;
    }
    this.setFlag(ClientFlag.unauthenticated, false);
    this.setFlag(ClientFlag.cluster, this.server.clusterId !== undefined);
    this.server.logins.done(this.client);
    this.held.belongsTo(tenant.number);
    this.meter.belongsTo(this.server.metering, {
      number: tenant.number,
      firstTable: tenant.span.first,
    });
    this.followRules();
  }

  /** As before logging in. */
  logOut(): void {
    this.leaveTenant();
    this.#principal = undefined;
    this.tenant = this.server.tenant(this.server.principals.tenant('default')!);
    this.#awaitLogin();
    this.select(0);
  }

  #awaitLogin(): void {
    this.held.belongsTo(undefined);
    this.flags = ClientFlag.unauthenticated;
    this.server.logins.await(this.client);
    this.identityChanged(this.tenant.span);
  }

  /** Releases its share of the tenant's client state. */
  leaveTenant(): void {
    const tenant = this.tenant;
    if (this.client.closed) tenant.pubsub.forget(this.client);
    else tenant.pubsub.unsubscribeAll(this.client);
    if (this.tracking !== undefined) this.server.track(this.client, undefined);
    this.setFlag(ClientFlag.subscribed | ClientFlag.monitor, false);
    this.server.monitors.delete(this.client);
    this.unwatch();
    if (!tenant.connections.delete(this.client)) return;
    tenant.past.commands += this.commandsRun;
    tenant.past.bytesIn += this.bytesIn;
    tenant.past.bytesOut += this.bytesOut;
  }

  resetCounters(): void {
    this.commandsRun = 0;
    this.bytesIn = 0;
    this.bytesOut = 0;
  }

  /** The definitions of its user and tenant have changed. */
  followRules(): void {
    const tenant = this.tenant;
    this.identityChanged(tenant.span);
    this.select(this.db < tenant.span.count ? this.db : 0);
    const { permissions } = this;
    this.setFlag(ClientFlag.restricted, !permissions.isUnlimited || !tenant.isFirst);
    const names = this.channels.size + this.patterns.size + this.shardChannels.size;
    if (names === 0) return;
    this.server.rechecks.add(this.listener, permissions, names * (1 + permissions.channelPatterns));
  }

  /** The connection as a listener to channels. */
  protected abstract get listener(): Parameters<ConnectionHost<C>['rechecks']['add']>[0];

  /** Subscriptions of the session, and whether each is a pattern. */
  *subscriptions(): Generator<{ name: string; isPattern: boolean }> {
    for (const name of this.channels) yield { name, isPattern: false };
    for (const name of this.shardChannels) yield { name, isPattern: false };
    for (const name of this.patterns) yield { name, isPattern: true };
  }

  /** Undefined before it has logged in. */
  get currentPermissions(): Permissions | undefined {
    return this.#principal && this.permissions;
  }

  get permissions(): Permissions {
    return this.server.permissionsOf(this.#principal!.user);
  }
}
