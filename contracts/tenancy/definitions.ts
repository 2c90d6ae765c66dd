// Tenants and credentials, as the control plane sends them to the data planes. Plain data: stored as documents and sent
// between threads and processes unchanged.
//
// A client logs in by one name: `user@tenant`, or `tenant` alone for the tenant's own user, called
// `default`. A name without a tenant is a user of the tenant `default`, which owns all data from before the first other
// tenant, and whose own user is Redis's `default`.

export const defaultTenant = 'default';
export const defaultUser = 'default';

/** Limits of a tenant. 0 means no limit. */
export interface TenantLimits {
  /** Request units a second. */
  ruPerSecond: number;
  /** Request units that may be spent at once beyond that. */
  burstRu: number;
  /** Peak rate in request units a second at which saved units may be spent; at least `ruPerSecond`. */
  peakRuPerSecond: number;
  /** Request units a second that Redis scans may cost; and InfluxDB queries. */
  scanRuPerSecond: number;
  queryRuPerSecond: number;
  storedBytes: number;
  keys: number;
  series: number;
  connections: number;
  queryMemoryBytes: number;
  queryTimeMs: number;
}

export interface TenantDefinition {
  /** A letter, then up to 62 letters, digits, dashes and underscores. */
  name: string;
  /** Number of the tenant; 0 for `default`. Never reused after the tenant is dropped. */
  number: number;
  /** Logins to a suspended or dropping tenant are refused and its connections closed. */
  state: 'active' | 'suspended' | 'dropping';
  /** SELECT n is table `firstTable + n`, for n below `databases`. */
  firstTable: number;
  databases: number;
  limits: TenantLimits;
  /** Creation time in Unix milliseconds; absent for `default` and for tenants of an earlier release. */
  createdAt?: number;
}

/** `read`, `write` or `all`, as InfluxDB grants them. */
export type Privilege = 'read' | 'write' | 'all';

export interface UserDefinition {
  tenant: string;
  /** As the tenant's; unique in it. */
  name: string;
  enabled: boolean;
  /** May log in without a password. */
  open: boolean;
  /** Stored secrets, each `scrypt$N$r$p$salt$hash` with salt and hash in base64. Any of them is accepted. */
  secrets: readonly string[];
  /** Its permissions over Redis, as ACL SETUSER writes them: `+@all ~* &*`. */
  rules: string;
  /** Everything over InfluxDB's protocol, management included. */
  influxAdmin: boolean;
  /** By database. */
  grants: Readonly<Record<string, Privilege>>;
}

/** A separate secret for a program: sent as `Authorization: Token …`, or as the password of its user. */
export interface TokenDefinition {
  /** Public; names the token when it is revoked. */
  id: string;
  tenant: string;
  user: string;
  /** SHA-256 of the secret, in base64: it is random and long, so that nothing slower is needed. */
  digest: string;
  description: string;
  createdAt: number;
}

/** A full state, or the changes since the last update. */
export interface TenancyUpdate {
  /** Everything the receiver has is replaced. */
  whole: boolean;
  /** Revision of the store; ascending from update to update. */
  revision: number;
  /**
   * Whether wrong credentials are refused by a protocol that ignores them on a new server: true from the first
   * password or token that was ever made, until an operator resets it. Absent: as before.
   */
  checksCredentials?: boolean;
  tenants: readonly TenantDefinition[];
  users: readonly UserDefinition[];
  tokens: readonly TokenDefinition[];
  /** Dropped tenants (names), dropped users (`user@tenant`) and revoked tokens (ids). */
  gone: { tenants: readonly string[]; users: readonly string[]; tokens: readonly string[] };
}

export const noLimits: TenantLimits = {
  ruPerSecond: 0,
  burstRu: 0,
  peakRuPerSecond: 0,
  scanRuPerSecond: 0,
  queryRuPerSecond: 0,
  storedBytes: 0,
  keys: 0,
  series: 0,
  connections: 0,
  queryMemoryBytes: 0,
  queryTimeMs: 0,
};

/** By which a user is found: `user@tenant`. */
export function loginName(tenant: string, user: string): string {
  return `${user}@${tenant}`;
}
