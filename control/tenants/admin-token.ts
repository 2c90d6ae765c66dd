// Tokens of the admin API and their roles. They grant no access to data, and tokens of tenants' users grant no access to
// this API.

/**
 * An `operator` may do all, a `viewer` may see all, a `tenant` may see and manage its own objects,
 * but not its limits.
 */
export const adminRoles = ['operator', 'viewer', 'tenant'] as const;
export type AdminRole = (typeof adminRoles)[number];

export interface AdminTokenDefinition {
  /** Public. */
  id: string;
  role: AdminRole;
  /** The tenant, for the role `tenant`. */
  tenant?: string;
  /** SHA-256 of the secret, in base64. */
  digest: string;
  description: string;
  createdAt: number;
}
