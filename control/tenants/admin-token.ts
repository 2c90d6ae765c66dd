// Who may use the admin API, and as what. These tokens open nothing but that API, as those of a tenant's users
// open nothing but its data.

/**
 * An `operator` may do all, a `viewer` may see all, a `tenant` may see and manage what is its own; but not its
 * limits.
 */
export const adminRoles = ['operator', 'viewer', 'tenant'] as const;
export type AdminRole = (typeof adminRoles)[number];

export interface AdminTokenDefinition {
  /** Public. */
  id: string;
  role: AdminRole;
  /** Of the role `tenant`: whose. */
  tenant?: string;
  /** SHA-256 of the secret, in base64. */
  digest: string;
  description: string;
  createdAt: number;
}
