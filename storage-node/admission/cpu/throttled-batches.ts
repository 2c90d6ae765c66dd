// Turns that came up when their tenant could not have them. It is looked again and again whether it can.

export interface ThrottledBatchesOptions<T> {
  /** Time between two looks. */
  everyMs: number;
  /** Turns of a tenant that it has back after one look. */
  atOnce: number;
  mayBegin: (tenant: number) => boolean;
  /** Takes back a turn of a tenant that may begin; the first ones come first. */
  give: (turn: T) => void;
}

export class ThrottledBatches<T extends { readonly tenant: number }> {
  readonly #options: ThrottledBatchesOptions<T>;
  readonly #tenants = new Map<number, T[]>();
  #length = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ThrottledBatchesOptions<T>) {
    this.#options = options;
  }

  get length(): number {
    return this.#length;
  }

  has(tenant: number): boolean {
    return this.#tenants.has(tenant);
  }

  park(turn: T): void {
    this.#length++;
    const parked = this.#tenants.get(turn.tenant);
    if (parked === undefined) this.#tenants.set(turn.tenant, [turn]);
    else parked.push(turn);
    this.#timer ??= setTimeout(() => this.look(), this.#options.everyMs);
  }

  look(atOnce = this.#options.atOnce): void {
    const { everyMs, mayBegin, give } = this.#options;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [tenant, parked] of this.#tenants) {
      if (!mayBegin(tenant)) continue;
      if (parked.length <= atOnce) this.#tenants.delete(tenant);
      const given = parked.splice(0, atOnce);
      this.#length -= given.length;
      for (const turn of given) give(turn);
    }
    if (this.#length > 0) this.#timer = setTimeout(() => this.look(), everyMs);
  }
}
