// Who asks, and what that one may do.

import type { AdminRole } from '../tenants/admin-token.ts';

export interface AdminPrincipal {
  role: AdminRole;
  /** Of the role `tenant`: whose it is. */
  tenant?: string;
  /** For the audit log: the id of a token, or how the secret was given to the server. */
  name: string;
}

/**
 * Who may ask for a page:
 *
 *   open           everyone, from everywhere
 *   local          everyone on this machine, where only this machine can ask; else those who may `read`
 *   read           everyone who is known; a tenant is told only what is its own
 *   manage         operators; tenants for what is their own
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

/** Why not, or undefined. A tenant learns nothing of others from it, not even whether they exist. */
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

/** It is known who asks, and that one may not. */
export class NotAllowed extends Error {
  override readonly name = 'NotAllowed';
}

/** Which tenant's an answer may be: the one asked for, or all; for a tenant only its own. */
export function scopeOf(principal: AdminPrincipal, wanted?: string): string | undefined {
  if (principal.role !== 'tenant') return wanted;
  if (wanted === undefined || wanted === principal.tenant) return principal.tenant;
  throw new NotAllowed(`this is for tenant ${principal.tenant} and its own`);
}
