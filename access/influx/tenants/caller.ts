// Caller of a request, and the databases visible to the caller.

import type { Principal } from '../statements/principal.ts';
import type { UserDirectory } from '../statements/user-directory.ts';
import type { Credentials } from './credentials.ts';
import type { TenantSpace } from './tenant-space.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';

export interface Caller {
  readonly space: TenantSpace;
  /** undefined without authentication: everything is allowed. */
  readonly principal: Principal | undefined;
  readonly users: UserDirectory | undefined;
  /** The caller was revoked, suspended or removed: its requests are no longer executed. Never reset. */
  readonly ended: boolean;
}

/**
 * Why a client is not authenticated. `credentials`: the name or the secret is wrong; `missing`: there are none, and
 * they are needed; `suspended`: they are right, but the tenant is suspended; `throttled`: to be tried again.
 */
export interface Refusal {
  readonly refusal: 'missing' | 'credentials' | 'suspended' | 'throttled';
  readonly message: string;
}

/** Authenticates requests. */
export interface Authenticator {
  /** `address` is the address that the request comes from. */
  enter(credentials: Credentials | undefined, address: string): MaybePromise<Caller | Refusal>;
  /** Calls back whenever callers may have ended, or may do less than before. */
  onChange(listener: () => void): void;
}

export function isRefusal(entered: Caller | Refusal): entered is Refusal {
  return 'refusal' in entered;
}
