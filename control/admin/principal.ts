// Callers of the admin API and their permissions.

import type { AdminRole } from '../tenants/admin-token.ts';

export interface AdminPrincipal {
  role: AdminRole;
  /** The tenant, for the role `tenant`. */
  tenant?: string;
  /** Name for the audit log: the id of a token, or the source of a secret that was given to the server. */
  name: string;
}

/**
 * Callers that may use a page:
 *
 *   open           everyone, from everywhere
 *   local          everyone on this machine, if only this machine can connect; else callers with `read`
 *   read           every authenticated caller; a tenant sees only its own data
 *   manage         operators; tenants for their own resources
 *   readTenant     operators and viewers; of tenants the one in the path
 *   manageTenant   operators; of tenants the one in the path
 *   observe        operators and viewers
 *   operate        operators
 */
export type Access =
  | 'open'
  | 'local'
  | 'read'
  | 'manage'
  | 'readTenant'
  | 'manageTenant'
  | 'observe'
  | 'operate';

const rolesOf: Readonly<Record<Access, readonly AdminRole[]>> = {
  open: ['operator', 'viewer', 'tenant'],
  local: ['operator', 'viewer', 'tenant'],
  read: ['operator', 'viewer', 'tenant'],
  manage: ['operator', 'tenant'],
  readTenant: ['operator', 'viewer', 'tenant'],
  manageTenant: ['operator', 'tenant'],
  observe: ['operator', 'viewer'],
  operate: ['operator'],
};

/**
 * Reason for which access is refused, or undefined. A tenant learns nothing about other tenants from the reason, not even
 * whether they exist.
 */
export function refusal(
  principal: AdminPrincipal,
  access: Access,
  tenant: string | undefined,
): string | undefined {
  const { role } = principal;
  if (!rolesOf[access].includes(role)) return `the role ${role} may not do this`;
  const isAboutOne = access === 'readTenant' || access === 'manageTenant';
  if (isAboutOne && role === 'tenant' && tenant !== principal.tenant) {
    return `this is for tenant ${principal.tenant} and its own`;
  }
  return undefined;
}

/** The caller is authenticated and lacks the permission. */
export class NotAllowed extends Error {
  override readonly name = 'NotAllowed';
}

/** Which tenant's an answer may be: the one asked for, or all; for a tenant only its own. */
export function scopeOf(principal: AdminPrincipal, wanted?: string): string | undefined {
  if (principal.role !== 'tenant') return wanted;
  if (wanted === undefined || wanted === principal.tenant) return principal.tenant;
  throw new NotAllowed(`this is for tenant ${principal.tenant} and its own`);
}
