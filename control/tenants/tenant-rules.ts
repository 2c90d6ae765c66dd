// Rules for tenants, users and limits. A violation is a `TenantError` that names the rule.

import {
  noLimits,
  type Privilege,
  type TenantLimits,
  type UserDefinition,
} from '../../contracts/tenancy/definitions.ts';
import { TenantError } from './tenant-error.ts';

/** Names of tenants and users, without the separators `@` and `/`. */
export const namePattern = '^[A-Za-z][A-Za-z0-9_-]{0,62}$';
const nameRule = 'a letter, then up to 62 letters, digits, dashes and underscores';
const validName = new RegExp(namePattern);

/** Changeable properties of a user. */
export type UserChange = Partial<Omit<UserDefinition, 'tenant' | 'name'>>;

export const privileges = ['read', 'write', 'all'] as const satisfies readonly Privilege[];
export const limitNames = Object.keys(noLimits) as (keyof TenantLimits)[];

/** Databases of one tenant. */
export const mostDatabases = 4096;
export const mostUsers = 10_000;
export const mostTokens = 10_000;
export const longestPassword = 512;
export const longestDescription = 200;
const longestRules = 16 * 1024;
const mostSecrets = 16;
const mostGrants = 1000;
const longestDatabaseName = 255;

/** As access/gateway/secrets.ts writes them. */
const storedSecret =
  /^scrypt(-sha256)?\$(\d{1,7})\$(\d{1,7})\$(\d{1,7})\$[A-Za-z0-9+/=]{1,100}\$[A-Za-z0-9+/=]{1,200}$/;
/**
 * N r p: four times a usual password's cost. A more expensive one would delay the logins of others.
 */
const mostScryptWork = 4 * 16_384 * 8;

function invalid(message: string): TenantError {
  return new TenantError('invalid', message);
}

export function checkName(what: 'tenant' | 'user', name: string): void {
  if (!validName.test(name))
    throw invalid(`a ${what} cannot be called so: its name is ${nameRule}`);
}

export function checkDatabases(databases: number): void {
  if (Number.isInteger(databases) && databases >= 1 && databases <= mostDatabases) return;
  throw invalid(`databases must be a whole number from 1 to ${mostDatabases}`);
}

export function checkLimits(limits: Partial<TenantLimits>): void {
  for (const [name, value] of Object.entries(limits)) {
    if (!limitNames.some((known) => known === name)) throw invalid(`there is no limit ${name}`);
    if (!Number.isSafeInteger(value) || value < 0) {
      throw invalid(`${name} must be a whole number from 0, which is no limit`);
    }
  }
}

/** Checks limits that depend on each other. */
export function checkTogether({ ruPerSecond, peakRuPerSecond }: TenantLimits): void {
  if (peakRuPerSecond > 0 && peakRuPerSecond < ruPerSecond) {
    throw invalid(
      `peakRuPerSecond, ${peakRuPerSecond}, cannot be less than ruPerSecond, ${ruPerSecond}`,
    );
  }
}

export function checkPassword(password: string): void {
  const bytes = Buffer.byteLength(password);
  if (bytes === 0) throw invalid('a password cannot be empty');
  if (bytes > longestPassword) {
    throw invalid(`a password cannot have more than ${longestPassword} bytes`);
  }
}

export function checkDescription(description: string): void {
  if (description.length <= longestDescription && !hasControl(description)) return;
  throw invalid(`a description is one line of up to ${longestDescription} characters`);
}

export function checkUserChange(change: UserChange): void {
  const { secrets = [], rules = '', grants = {} } = change;
  if (secrets.length > mostSecrets) throw invalid(`a user has at most ${mostSecrets} passwords`);
  if (!secrets.every(isStoredSecret)) {
    throw invalid(
      `a stored password has the form scrypt$N$r$p$salt$hash, and N r p is at most ${mostScryptWork}`,
    );
  }
  if (rules.length > longestRules || hasControl(rules)) {
    throw invalid(`rules are one line of up to ${longestRules} characters`);
  }
  const granted = Object.entries(grants);
  if (granted.length > mostGrants) throw invalid(`a user has at most ${mostGrants} grants`);
  for (const [database, privilege] of granted) {
    checkDatabaseName(database);
    if (!privileges.includes(privilege)) {
      throw invalid(`a privilege is one of ${privileges.join(', ')}`);
    }
  }
}

function isStoredSecret(text: string): boolean {
  const [, , n, r, p] = storedSecret.exec(text) ?? [];
  return n !== undefined && Number(n) * Number(r) * Number(p) <= mostScryptWork;
}

export function checkUser(user: UserDefinition): void {
  checkName('user', user.name);
  checkUserChange(user);
}

export function checkDatabaseName(name: string): void {
  if (name === '' || Buffer.byteLength(name) > longestDatabaseName || hasControl(name)) {
    throw invalid(
      `a database's name has 1 to ${longestDatabaseName} bytes and no control characters`,
    );
  }
}

function hasControl(text: string): boolean {
  // oxlint-disable-next-line no-control-regex
  return /[\u0000-\u001f\u007f]/.test(text);
}
