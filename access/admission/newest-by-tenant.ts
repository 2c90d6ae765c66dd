// The newest entries of a list shared by all tenants. A tenant pushes out its own oldest entries
// before those of others.

interface NewestLimits {
  ofTenant: number;
  /** However many tenants there are. */
  total: number;
}

export class NewestByTenant<T extends { readonly tenant: number }> {
  readonly #limits: NewestLimits;
  /** The oldest first. */
  #entries: T[] = [];
  readonly #counts = new Map<number, number>();

  constructor(limits: NewestLimits) {
    this.#limits = limits;
  }

  add(entry: T): void {
    this.#makeRoom(entry.tenant);
    this.#count(entry.tenant, 1);
    this.#entries.push(entry);
  }

  /** The newest first; of one tenant, if its number is given. */
  newest(limit: number, tenant?: number): T[] {
    const found: T[] = [];
    for (let i = this.#entries.length - 1; i >= 0 && found.length < limit; i--) {
      const entry = this.#entries[i]!;
      if (tenant === undefined || entry.tenant === tenant) found.push(entry);
    }
    return found;
  }

  forget(tenant: number): void {
    this.#entries = this.#entries.filter((entry) => entry.tenant !== tenant);
    this.#counts.delete(tenant);
  }

  #makeRoom(tenant: number): void {
    let at = -1;
    if ((this.#counts.get(tenant) ?? 0) >= this.#limits.ofTenant) {
      at = this.#entries.findIndex((entry) => entry.tenant === tenant);
    } else if (this.#entries.length >= this.#limits.total) at = 0;
    if (at < 0) return;
    const [gone] = this.#entries.splice(at, 1);
    this.#count(gone!.tenant, -1);
  }

  #count(tenant: number, change: number): void {
    const count = (this.#counts.get(tenant) ?? 0) + change;
    if (count === 0) this.#counts.delete(tenant);
    else this.#counts.set(tenant, count);
  }
}
