// The users of the caller's tenant, for CREATE USER, GRANT and related statements.

import type { Privilege, UserDefinition } from '../../../contracts/tenancy/definitions.ts';

/** Change of users requested by a statement. Names of databases are those that clients use. */
export type UserChange =
  | {
      readonly kind: 'createUser';
      readonly user: string;
      readonly password: string;
      readonly admin: boolean;
    }
  | { readonly kind: 'dropUser'; readonly user: string }
  | { readonly kind: 'setPassword'; readonly user: string; readonly password: string }
  | { readonly kind: 'setAdmin'; readonly user: string; readonly admin: boolean }
  /** Replaces the privileges on that database; without a privilege they are removed. */
  | {
      readonly kind: 'setGrant';
      readonly user: string;
      readonly database: string;
      readonly privilege: Privilege | undefined;
    };

export interface UserDirectory {
  /** In the order they were made. */
  users(): Iterable<UserDefinition>;
  user(name: string): UserDefinition | undefined;
  hasPassword(user: UserDefinition, password: string): Promise<boolean>;
  /** In force when it resolves. Rejects with `QueryError` when it cannot be. */
  change(change: UserChange): Promise<void>;
}
