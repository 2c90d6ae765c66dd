// Limits the total that a tenant may store in all of its tables. The limit is checked before each command that may
// need more room, and before a value grows by much, so one command exceeds it only slightly. Shrinking is never
// refused.

import type { TableQuota } from './table-rules.ts';

/** 0 for no limit. */
interface QuotaLimits {
  keys: number;
  storedBytes: number;
}

/** Where rows of a table may be. */
export interface RowHolder {
  tableSize(table: number): { rows: number };
  /** Bytes of keys and values, about. */
  tableBytes(table: number): number;
}

// Adding bytes up takes longer than counting rows, so it is not done for each command.
const bytesEveryMs = 100;

export class TenantQuota implements TableQuota {
  limits: QuotaLimits;
  readonly #tenant: string;
  readonly #holders: () => Iterable<RowHolder>;
  readonly #monotonic: () => number;
  /** Tables that may hold rows. */
  readonly #tables = new Set<number>();
  #bytes = 0;
  #bytesAt = -Infinity;

  constructor(
    tenant: string,
    limits: QuotaLimits,
    holders: () => Iterable<RowHolder>,
    monotonic: () => number = () => performance.now(),
  ) {
    this.#tenant = tenant;
    this.limits = limits;
    this.#holders = holders;
    this.#monotonic = monotonic;
  }

  /** The table counts from now on. */
  add(table: number): void {
    this.#tables.add(table);
  }

  refusal(moreBytes = 0): string | undefined {
    const { keys, storedBytes } = this.limits;
    if (keys > 0) {
      const has = this.keys();
      if (has >= keys) return this.#full('keys', has, keys);
    }
    if (storedBytes > 0) {
      const has = this.storedBytes();
      if (has >= storedBytes || has + moreBytes > storedBytes)
        return this.#full('storedBytes', has, storedBytes);
    }
    return undefined;
  }

  excess(): { bytes: number; rows: number } {
    const { keys, storedBytes } = this.limits;
    return {
      bytes: storedBytes === 0 ? 0 : Math.max(0, this.storedBytes() - storedBytes + 1),
      rows: keys === 0 ? 0 : Math.max(0, this.keys() - keys + 1),
    };
  }

  freed(bytes: number): void {
    this.#bytes -= bytes;
  }

  #full(limit: keyof QuotaLimits, has: number, most: number): string {
    return `LIMIT tenant '${this.#tenant}' is at its limit ${limit}: it has ${has} and may have ${most}`;
  }

  keys(): number {
    let keys = 0;
    for (const holder of this.#holders()) {
      for (const table of this.#tables) keys += holder.tableSize(table).rows;
    }
    return keys;
  }

  /** As of a moment ago. */
  storedBytes(): number {
    const now = this.#monotonic();
    if (now - this.#bytesAt < bytesEveryMs) return this.#bytes;
    this.#bytesAt = now;
    this.#bytes = 0;
    for (const holder of this.#holders()) {
      for (const table of this.#tables) this.#bytes += holder.tableBytes(table);
    }
    return this.#bytes;
  }
}
