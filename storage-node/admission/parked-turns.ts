// Turns that came up when their tenant could not have them, until it can.

export class ParkedTurns<T extends { readonly tenant: number }> {
  readonly #tenants = new Map<number, T[]>();
  #length = 0;

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
  }

  /** Gives back up to `most` turns, the first ones first, of each tenant that may have them now. */
  release(mayBegin: (tenant: number) => boolean, most: number, give: (turn: T) => void): void {
    for (const [tenant, parked] of this.#tenants) {
      if (!mayBegin(tenant)) continue;
      if (parked.length <= most) this.#tenants.delete(tenant);
      const released = parked.splice(0, most);
      this.#length -= released.length;
      for (const turn of released) give(turn);
    }
  }
}
