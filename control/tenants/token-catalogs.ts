// Tokens of the tenants' users, and tokens for the admin API. Only a digest is kept of each: the secret is shown
// once, at its creation.

import type { TokenDefinition } from '../../contracts/tenancy/definitions.ts';
import type { AdminRole, AdminTokenDefinition } from './admin-token.ts';
import { put, remove, type TenancyChanges } from './tenancy-changes.ts';
import type { TenancyState } from './tenancy-state.ts';
import { TenantError } from './tenant-error.ts';
import { checkDescription, mostTokens } from './tenant-rules.ts';
import { digestOf, newSecret, newTokenId } from './token-secrets.ts';

interface MadeToken<T> {
  token: T;
  secret: string;
}

export class TokenCatalog {
  readonly #state: TenancyState;
  readonly #changes: TenancyChanges;
  readonly #now: () => number;

  constructor(state: TenancyState, changes: TenancyChanges, now: () => number) {
    this.#state = state;
    this.#changes = changes;
    this.#now = now;
  }

  /** The oldest first. */
  of(tenant: string): TokenDefinition[] {
    return [...this.#state.tokens(this.#state.find(tenant).name).values()].sort(byAge);
  }

  create(tenant: string, user: string, description = ''): Promise<MadeToken<TokenDefinition>> {
    return this.#changes.make(() => {
      checkDescription(description);
      this.#state.lasting(tenant);
      this.#state.user(tenant, user);
      if (this.#state.tokens(tenant).size >= mostTokens) {
        throw new TenantError('conflict', `tenant ${tenant} has ${mostTokens} tokens already`);
      }
      const { secret, digest } = newSecret();
      const id = newTokenId();
      const token = { id, tenant, user, digest, description, createdAt: this.#now() };
      return { writes: [put('tokens', id, token)], result: { token, secret } };
    });
  }

  revoke(tenant: string, id: string): Promise<void> {
    return this.#changes.make(() => {
      this.#state.lasting(tenant);
      if (!this.#state.tokens(tenant).has(id)) {
        throw new TenantError('missing', `tenant ${tenant} has no token ${id}`);
      }
      return { writes: [remove('tokens', id)], result: undefined };
    });
  }
}

export class AdminTokenCatalog {
  readonly #state: TenancyState;
  readonly #changes: TenancyChanges;
  readonly #now: () => number;

  constructor(state: TenancyState, changes: TenancyChanges, now: () => number) {
    this.#state = state;
    this.#changes = changes;
    this.#now = now;
  }

  /** Tokens of one tenant, or all; the oldest first. */
  of(tenant?: string): AdminTokenDefinition[] {
    const tokens =
      tenant === undefined
        ? this.#state.adminTokens
        : this.#state.adminTokensOf(this.#state.find(tenant).name);
    return [...tokens.values()].sort(byAge);
  }

  /**
   * The token with this secret, if any. It is looked up by its digest, so that timing reveals
   * nothing.
   */
  find(secret: string): AdminTokenDefinition | undefined {
    return this.#state.adminTokenBy(digestOf(secret));
  }

  /** `tenant` goes with the role `tenant`, and with no other. */
  create(
    role: AdminRole,
    tenant: string | undefined,
    description = '',
  ): Promise<MadeToken<AdminTokenDefinition>> {
    return this.#changes.make(() => {
      checkDescription(description);
      if ((role === 'tenant') !== (tenant !== undefined)) {
        throw new TenantError('invalid', 'the role tenant, and no other, is that of a tenant');
      }
      if (tenant !== undefined) this.#state.lasting(tenant);
      if (this.of(tenant).length >= mostTokens) {
        throw new TenantError('conflict', `there are ${mostTokens} admin tokens already`);
      }
      const { secret, digest } = newSecret();
      const id = newTokenId();
      const owner = tenant === undefined ? {} : { tenant };
      const token = { id, role, ...owner, digest, description, createdAt: this.#now() };
      return { writes: [put('adminTokens', id, token)], result: { token, secret } };
    });
  }

  /** Only one of this tenant, if one is given. */
  revoke(id: string, tenant?: string): Promise<void> {
    return this.#changes.make(() => {
      const token = this.#state.adminTokens.get(id);
      if (token === undefined || (tenant !== undefined && token.tenant !== tenant)) {
        throw new TenantError('missing', `no admin token ${id}`);
      }
      return { writes: [remove('adminTokens', id)], result: undefined };
    });
  }
}

function byAge(a: { createdAt: number; id: string }, b: { createdAt: number; id: string }): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
}
