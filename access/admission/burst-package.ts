// A gateway's reserve of units for spikes shorter than a second, shared by all tenants (X-Stor, section 5.2). The reserve
// is renewed each second and does not accumulate.

interface BurstPackageOptions {
  /** Units a second, for all tenants together. */
  units: number;
  /** Units a second that one tenant gets, given its share. */
  capOf: (share: number) => number;
}

/** Units a second that one tenant may take: all of them when it is the only one, else its part. */
export function burstCap(units: number, tenants: () => number): (share: number) => number {
  return (share) => (tenants() === 1 ? units : Math.min(0.9 * share, 0.5 * units));
}

export class BurstPackage {
  /** Whether units are given. False while the gateway itself is overloaded. */
  enabled = true;
  readonly #options: BurstPackageOptions;
  #second = -1;
  #left = 0;
  /** Units each tenant has taken in this second. */
  readonly #taken = new Map<number, number>();

  constructor(options: BurstPackageOptions) {
    this.#options = options;
  }

  /** Takes all of the cost or nothing. `now` is milliseconds. */
  take(tenant: number, share: number, cost: number, now: number): boolean {
    if (this.#room(tenant, share, now) < cost) return false;
    this.#give(tenant, cost);
    return true;
  }

  /** Takes as much as there is of a cost that can be split, and returns how much. */
  takeSome(tenant: number, share: number, cost: number, now: number): number {
    const taken = Math.max(0, Math.min(cost, this.#room(tenant, share, now)));
    if (taken > 0) this.#give(tenant, taken);
    return taken;
  }

  #room(tenant: number, share: number, now: number): number {
    if (!this.enabled) return 0;
    const second = Math.floor(now / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#left = this.#options.units;
      this.#taken.clear();
    }
    const own = this.#options.capOf(share) - (this.#taken.get(tenant) ?? 0);
    return Math.min(this.#left, own);
  }

  #give(tenant: number, units: number): void {
    this.#left -= units;
    this.#taken.set(tenant, (this.#taken.get(tenant) ?? 0) + units);
  }
}
