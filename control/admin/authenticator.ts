// Identifies the caller by its token.

import { timingSafeEqual } from 'node:crypto';
import type { AdminTokenDefinition } from '../tenants/admin-token.ts';
import { digestOf } from '../tenants/token-secrets.ts';
import type { AdminPrincipal } from './principal.ts';

/** An operator's secret that is not in the catalog, and its name. */
export interface FixedToken {
  name: string;
  secret: string;
}

/** Lookup of issued tokens and of the tenants that they belong to. */
interface KnownTokens {
  adminTokens: { find(secret: string): AdminTokenDefinition | undefined };
  owner(tenant: string): { state: string } | undefined;
}

export class Authenticator {
  readonly #fixed: readonly { name: string; digest: Buffer }[];
  readonly #tenants: KnownTokens;

  constructor(fixed: readonly FixedToken[], tenants: KnownTokens) {
    this.#tenants = tenants;
    this.#fixed = fixed
      .filter(({ secret }) => secret !== '')
      .map(({ name, secret }) => ({ name, digest: Buffer.from(digestOf(secret)) }));
  }

  /** The caller by its Authorization header; undefined for an unknown or expired token. */
  principal(authorization: string | undefined): AdminPrincipal | undefined {
    const [, secret] = /^Bearer +([\x21-\x7e]{1,1024})$/i.exec(authorization ?? '') ?? [];
    if (secret === undefined) return undefined;
    const digest = Buffer.from(digestOf(secret));
    for (const fixed of this.#fixed) {
      if (timingSafeEqual(fixed.digest, digest)) return { role: 'operator', name: fixed.name };
    }
    const token = this.#tenants.adminTokens.find(secret);
    if (token === undefined) return undefined;
    const { id, role, tenant } = token;
    return { role, name: id, ...(tenant === undefined ? {} : { tenant }) };
  }

  /** Whether nothing is done for it just now, as its tenant is suspended or being dropped. */
  isSuspended({ tenant }: AdminPrincipal): boolean {
    return tenant !== undefined && this.#tenants.owner(tenant)?.state !== 'active';
  }
}
