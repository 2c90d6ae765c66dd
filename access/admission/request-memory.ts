// Memory of a plane for requests in progress, counted by tenant against one budget.
//
// Fairness is by dynamic thresholds (Choudhury and Hahne, "Dynamic Queue Length Thresholds for
// Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998, with alpha = 1):
// a tenant may hold no more than the budget has free afterwards. One tenant alone gets half of the
// budget, n greedy tenants get 1/(n + 1) each, and the free rest is room for a tenant that has none
// yet. No tenant needs to be known in advance.

/** Uses of memory. */
export type MemoryUse =
  | 'request'
  | 'unpacked'
  | 'reply'
  | 'transaction'
  | 'subscription'
  | 'answer';

export const memoryUses: readonly MemoryUse[] = [
  'request',
  'unpacked',
  'reply',
  'transaction',
  'subscription',
  'answer',
];

/** In the place of a tenant's number: clients that have not logged in, all together. */
export const unauthenticatedTenant = -1;

/** Memory of one tenant's requests. The object holds no bytes itself, so callers may create and discard it at any time. */
export interface MemoryAccount {
  /** Counts `bytes` more, or refuses them: then nothing is counted and the caller refuses the request. */
  reserve(use: MemoryUse, bytes: number): boolean;
  /** Counts bytes that are in memory already and cannot be refused. They may exceed the budget. */
  add(use: MemoryUse, bytes: number): void;
  /** Gives back bytes that were reserved or added. Throws `RangeError` for more than the tenant has. */
  release(use: MemoryUse, bytes: number): void;
  /** Bytes of the tenant, of all uses. */
  readonly usedBytes: number;
}

interface RequestMemoryOptions {
  /** Bytes of all tenants together. `Infinity` for no limit. */
  maxBytes: number;
}

export class RequestMemory {
  /** May be changed at any time: memory already held stays, new requests use the new limit. */
  maxBytes: number;
  /** Bytes of all tenants and uses. */
  usedBytes = 0;
  /** The most that `usedBytes` has been. */
  peakBytes = 0;
  /** Reservations refused. */
  refused = 0;
  readonly #usedBy: Record<MemoryUse, number> = {
    request: 0,
    unpacked: 0,
    reply: 0,
    transaction: 0,
    subscription: 0,
    answer: 0,
  };
  /** By tenant; only those that hold bytes. */
  readonly #held = new Map<number, number>();

  constructor({ maxBytes }: RequestMemoryOptions) {
    this.maxBytes = maxBytes;
  }

  /** `tenant` is a tenant's number, or `unauthenticatedTenant`. */
  account(tenant: number): MemoryAccount {
    return new TenantMemory(this, tenant);
  }

  usedFor(use: MemoryUse): number {
    return this.#usedBy[use];
  }

  /** Tenants that hold bytes. */
  get tenants(): number {
    return this.#held.size;
  }

  heldBy(tenant: number): number {
    return this.#held.get(tenant) ?? 0;
  }

  reserve(tenant: number, use: MemoryUse, bytes: number): boolean {
    const wouldHold = this.heldBy(tenant) + bytes;
    if (wouldHold > this.maxBytes - this.usedBytes - bytes) {
      this.refused++;
      return false;
    }
    this.#count(tenant, use, bytes, wouldHold);
    return true;
  }

  add(tenant: number, use: MemoryUse, bytes: number): void {
    this.#count(tenant, use, bytes, this.heldBy(tenant) + bytes);
  }

  release(tenant: number, use: MemoryUse, bytes: number): void {
    const left = this.heldBy(tenant) - bytes;
    if (left < 0 || this.#usedBy[use] < bytes) {
      throw new RangeError(`tenant ${tenant} gives back ${bytes} bytes that it does not hold`);
    }
    this.usedBytes -= bytes;
    this.#usedBy[use] -= bytes;
    if (left === 0) this.#held.delete(tenant);
    else this.#held.set(tenant, left);
  }

  #count(tenant: number, use: MemoryUse, bytes: number, holds: number): void {
    if (bytes === 0) return;
    this.#held.set(tenant, holds);
    this.#usedBy[use] += bytes;
    this.usedBytes += bytes;
    if (this.usedBytes > this.peakBytes) this.peakBytes = this.usedBytes;
  }
}

class TenantMemory implements MemoryAccount {
  readonly #memory: RequestMemory;
  readonly #tenant: number;

  constructor(memory: RequestMemory, tenant: number) {
    this.#memory = memory;
    this.#tenant = tenant;
  }

  get usedBytes(): number {
    return this.#memory.heldBy(this.#tenant);
  }

  reserve(use: MemoryUse, bytes: number): boolean {
    return this.#memory.reserve(this.#tenant, use, bytes);
  }

  add(use: MemoryUse, bytes: number): void {
    this.#memory.add(this.#tenant, use, bytes);
  }

  release(use: MemoryUse, bytes: number): void {
    this.#memory.release(this.#tenant, use, bytes);
  }
}
