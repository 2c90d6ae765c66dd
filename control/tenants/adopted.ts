// Users and tokens that come with a tenant from elsewhere.

import {
  defaultUser,
  type TokenDefinition,
  type UserDefinition,
} from '../../contracts/tenancy/definitions.ts';
import { checkUser } from './tenant-rules.ts';
import { newTokenId } from './token-secrets.ts';
import { ownerOf } from './user-definitions.ts';

export interface TenantMembers {
  users: readonly UserDefinition[];
  tokens: readonly TokenDefinition[];
}

/**
 * Users and tokens for a tenant of this name. Tokens that exist here keep their owner: a secret
 * belongs to one user.
 */
export function adopted(
  tenant: string,
  from: TenantMembers,
  knownDigests: ReadonlySet<string>,
): TenantMembers {
  const users = from.users.map((user) => ({ ...user, tenant }));
  for (const user of users) checkUser(user);
  if (!users.some(({ name }) => name === defaultUser)) users.push(ownerOf(tenant));
  const tokens = from.tokens
    .filter(({ digest }) => !knownDigests.has(digest))
    .map((token) => ({ ...token, id: newTokenId(), tenant }));
  return { users, tokens };
}
