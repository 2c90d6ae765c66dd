// An authenticator with some fixed users, who share one store.

import { systemClock } from '../../../../universal-row/environment.ts';
import type { SeriesStore } from '../../../../contracts/series-store.ts';
import type { Principal } from '../../statements/principal.ts';
import type { Caller, Authenticator, Refusal } from '../../tenants/caller.ts';
import type { Credentials } from '../../tenants/credentials.ts';
import { wholeSpace } from '../../tenants/tenant-space.ts';

export class PeopleAuthenticator implements Authenticator {
  readonly seen: Credentials[] = [];
  readonly #space;
  readonly #find: (credentials: Credentials) => Principal | undefined;

  constructor(store: SeriesStore, find: (credentials: Credentials) => Principal | undefined) {
    this.#space = wholeSpace(store, systemClock);
    this.#find = find;
  }

  enter(credentials: Credentials | undefined): Caller | Refusal {
    if (credentials === undefined) {
      return { refusal: 'missing', message: 'unable to parse authentication credentials' };
    }
    this.seen.push(credentials);
    const principal = this.#find(credentials);
    if (principal === undefined) {
      return { refusal: 'credentials', message: 'authorization failed' };
    }
    return { space: this.#space, principal, users: undefined, ended: false };
  }

  onChange(): void {}
}
