// Request units by group of time series. They are charged to tenants, on the node that a client has asked; where series
// are divided, each group with a replica there gets an equal share, as series are spread evenly.

export class GroupCharges {
  readonly #chargedTo: (tenant: number) => number;
  /** By tenant: units charged as of the last `take`. */
  readonly #charged = new Map<number, number>();
  /** By group: units that have not been taken yet. */
  readonly #owed = new Map<number, number>();

  /** `chargedTo`: units charged to a tenant since the server started. */
  constructor(chargedTo: (tenant: number) => number) {
    this.#chargedTo = chargedTo;
  }

  /** Units of the group since the last call. `groups`: all groups of the tenant with a replica here. */
  take(tenant: number, group: number, groups: readonly number[]): number {
    const charged = this.#chargedTo(tenant);
    const before = this.#charged.get(tenant) ?? 0;
    this.#charged.set(tenant, charged);
    // A dropped account starts at 0 again.
    const units = charged < before ? charged : charged - before;
    for (const one of groups) {
      this.#owed.set(one, (this.#owed.get(one) ?? 0) + units / groups.length);
    }
    const owed = this.#owed.get(group) ?? 0;
    this.#owed.delete(group);
    return owed;
  }
}
