// Workers that read the disk: a few basic ones, and a few extra ones for other tenants while all basic workers serve
// one tenant. The extra workers end with their work (ABase, section 4.3, rule 4).

interface IoWorkersOptions {
  basic: number;
  /** 0 to do without. */
  extra: number;
}

const ioWorkersDefaults: IoWorkersOptions = { basic: 4, extra: 2 };

const noTenant = -1;

export class IoWorkers {
  readonly #options: IoWorkersOptions;
  /** By tenant, those at work. */
  readonly #held = new Map<number, number>();
  #basicHeld = 0;
  #extraHeld = 0;
  /** Tenant that holds all basic workers. */
  #monopolist = noTenant;

  constructor(options: Partial<IoWorkersOptions> = {}) {
    this.#options = { ...ioWorkersDefaults, ...options };
  }

  get extra(): number {
    return this.#extraHeld;
  }

  heldBy(tenant: number): number {
    return this.#held.get(tenant) ?? 0;
  }

  hasRoom(): boolean {
    if (this.#basicHeld < this.#options.basic) return true;
    return this.#monopolist !== noTenant && this.#extraHeld < this.#options.extra;
  }

  mayTake(tenant: number): boolean {
    return this.#basicHeld < this.#options.basic || tenant !== this.#monopolist;
  }

  began(tenant: number): void {
    const held = (this.#held.get(tenant) ?? 0) + 1;
    this.#held.set(tenant, held);
    if (this.#basicHeld >= this.#options.basic) this.#extraHeld++;
    else {
      this.#basicHeld++;
      if (held === this.#options.basic) this.#monopolist = tenant;
    }
  }

  ended(tenant: number): void {
    const held = this.#held.get(tenant)!;
    this.#held.set(tenant, held - 1);
    // Workers are all alike: it is the extra ones that are done first, but none of theirs serves the monopolist.
    if (this.#extraHeld > 0 && tenant !== this.#monopolist) this.#extraHeld--;
    else {
      this.#basicHeld--;
      if (tenant === this.#monopolist) this.#monopolist = noTenant;
    }
  }

  forget(tenant: number): void {
    if (this.#held.get(tenant) === 0) this.#held.delete(tenant);
  }
}
