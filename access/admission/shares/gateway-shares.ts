// Divides a tenant's quota among the gateways of its pool (X-Stor, section 5.2). The shares always
// add up to the quota: a larger share for one gateway reduces those of others.

export class GatewayShares {
  #quota: number;
  readonly #shares = new Map<string, number>();

  /** `quota` in request units a second; equal shares. */
  constructor(quota: number, gateways: readonly string[] = []) {
    this.#quota = quota;
    for (const gateway of gateways) this.#shares.set(gateway, quota / gateways.length);
  }

  get quota(): number {
    return this.#quota;
  }

  get count(): number {
    return this.#shares.size;
  }

  gateways(): IterableIterator<string> {
    return this.#shares.keys();
  }

  /** 0 for a gateway that is not of the pool. */
  of(gateway: string): number {
    return this.#shares.get(gateway) ?? 0;
  }

  /** All shares grow or shrink alike. */
  setQuota(quota: number): void {
    const before = this.#quota;
    this.#quota = quota;
    this.#scaleTo(before);
  }

  /** Adds a gateway with an equal share, taken from the others in proportion to theirs. */
  join(gateway: string): void {
    if (this.#shares.has(gateway)) return;
    const count = this.#shares.size + 1;
    for (const [other, share] of this.#shares)
      this.#shares.set(other, (share * (count - 1)) / count);
    this.#shares.set(gateway, this.#quota / count);
    this.#correct();
  }

  /** Adds a gateway that already has a share; the quota grows by that share. */
  adopt(gateway: string, share: number): void {
    if (this.#shares.has(gateway)) return;
    this.#quota += share;
    this.#shares.set(gateway, share);
  }

  /** Removes a gateway. Its share is divided among the others in proportion to their shares. */
  leave(gateway: string): void {
    const gone = this.#shares.get(gateway);
    if (gone === undefined) return;
    this.#shares.delete(gateway);
    this.#scaleTo(this.#quota - gone);
  }

  /** Moves `amount` units a second from the gateways in `from` to those in `to`, in proportion to their weights. */
  move(amount: number, from: ReadonlyMap<string, number>, to: ReadonlyMap<string, number>): void {
    const given = sum(from.values());
    const taken = sum(to.values());
    if (amount <= 0 || given <= 0 || taken <= 0) return;
    for (const [gateway, weight] of from) this.#add(gateway, (-amount * weight) / given);
    for (const [gateway, weight] of to) this.#add(gateway, (amount * weight) / taken);
    this.#correct();
  }

  #add(gateway: string, amount: number): void {
    this.#shares.set(gateway, this.of(gateway) + amount);
  }

  /** Scales the shares, whose sum is `total`, so that their sum is the quota. If the sum is 0, all shares become equal. */
  #scaleTo(total: number): void {
    const { size } = this.#shares;
    for (const [gateway, share] of this.#shares) {
      this.#shares.set(gateway, total > 0 ? (share * this.#quota) / total : this.#quota / size);
    }
    this.#correct();
  }

  /** Sums of many small roundings would drift away from the quota over the days. */
  #correct(): void {
    const total = sum(this.#shares.values());
    if (total <= 0 || total === this.#quota) return;
    const factor = this.#quota / total;
    for (const [gateway, share] of this.#shares) this.#shares.set(gateway, share * factor);
  }
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
