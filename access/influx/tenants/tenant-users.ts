// The users of a tenant: read as the plane knows them, changed by the control plane.

import type { UserDefinition } from '../../../contracts/tenancy/definitions.ts';
import type { Principals } from '../../gateway/principals.ts';
import { findSecret } from '../../gateway/secrets.ts';
import { QueryError } from '../influxql/result.ts';
import type { UserChange, UserDirectory } from '../statements/user-directory.ts';

/** The caller that requests a change. */
export interface Changer {
  readonly tenant: string;
  readonly user: string;
}

/** Resolves when the change is in force. The text of a rejection is for the client. */
export type ChangeUsers = (changer: Changer, change: UserChange) => Promise<void>;

export class TenantUsers implements UserDirectory {
  readonly #principals: Principals;
  readonly #changer: Changer;
  readonly #change: ChangeUsers;

  constructor(principals: Principals, changer: Changer, change: ChangeUsers) {
    this.#principals = principals;
    this.#changer = changer;
    this.#change = change;
  }

  users(): Iterable<UserDefinition> {
    return this.#principals.users(this.#changer.tenant).values();
  }

  user(name: string): UserDefinition | undefined {
    return this.#principals.user(this.#changer.tenant, name);
  }

  async hasPassword(user: UserDefinition, password: string): Promise<boolean> {
    const request = { kind: 'change', tenant: user.tenant, address: '' } as const;
    return (await findSecret(Buffer.from(password), user.secrets, request)) !== undefined;
  }

  async change(change: UserChange): Promise<void> {
    try {
      await this.#change(this.#changer, change);
    } catch (error) {
      throw new QueryError((error as Error).message, { cause: error });
    }
  }
}
