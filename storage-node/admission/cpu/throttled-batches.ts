// Batches whose tenant had no capacity when they were due. They are deferred, and checked again every few
// milliseconds.

interface ThrottledBatchesOptions<T> {
  everyMs: number;
  /** Batches of a tenant that are released at a time. */
  atOnce: number;
  mayBegin: (tenant: number) => boolean;
  /** Takes a released batch, in the order of deferral. */
  release: (batch: T) => void;
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

  defer(batch: T): void {
    this.#length++;
    const deferred = this.#tenants.get(batch.tenant);
    if (deferred === undefined) this.#tenants.set(batch.tenant, [batch]);
    else deferred.push(batch);
    this.#timer ??= setTimeout(() => this.look(), this.#options.everyMs);
  }

  /** Releases batches of tenants that have capacity, so many of each. */
  look(atOnce = this.#options.atOnce): void {
    const { everyMs, mayBegin, release } = this.#options;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [tenant, deferred] of this.#tenants) {
      if (!mayBegin(tenant)) continue;
      if (deferred.length <= atOnce) this.#tenants.delete(tenant);
      const released = deferred.splice(0, atOnce);
      this.#length -= released.length;
      for (const batch of released) release(batch);
    }
    if (this.#length > 0) this.#timer = setTimeout(() => this.look(), everyMs);
  }
}
