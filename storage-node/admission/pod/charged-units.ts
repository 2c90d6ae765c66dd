// Units charged to tenants since the last reading.

import type { TenantAccount } from '../../../request-units/meter.ts';

export class ChargedUnits {
  readonly #accounts: () => Iterable<TenantAccount>;
  /** Units of each account that were told of. */
  readonly #taken = new Map<TenantAccount, number>();

  /** `accounts` are those that have spent anything lately. */
  constructor(accounts: () => Iterable<TenantAccount>) {
    this.#accounts = accounts;
    for (const account of accounts()) this.#taken.set(account, account.lru);
  }

  /** Returns the units of all tenants together, and calls `each` with the units of each tenant. */
  take(each: (tenant: number, units: number) => void = () => {}): number {
    let charged = 0;
    for (const account of this.#accounts()) {
      const { lru } = account;
      const more = lru - (this.#taken.get(account) ?? 0);
      if (more === 0) continue;
      this.#taken.set(account, lru);
      charged += more;
      each(account.tenant, more);
    }
    return charged;
  }

  /** The tenant is no more. */
  forget(tenant: number): void {
    for (const account of this.#taken.keys()) {
      if (account.tenant === tenant) this.#taken.delete(account);
    }
  }
}
