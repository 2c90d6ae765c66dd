// Memory of a tenant's running queries. It counts against the tenant's own limit and against the tenant's share of
// the memory for all queries.

import type { MemoryAccount } from '../../admission/request-memory.ts';
import { QueryError } from '../influxql/result.ts';
import type { Memory } from '../influxql/select/context.ts';
import { limitText } from './limits.ts';

export class TenantMemory {
  readonly #tenant: string;
  readonly #limit: () => number;
  #bytes = 0;

  /** `limit` returns the current limit in bytes; 0 for none. */
  constructor(tenant: string, limit: () => number) {
    this.#tenant = tenant;
    this.#limit = limit;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Memory account of one query, which also counts against `shared`. */
  open(shared?: MemoryAccount): QueryMemory {
    return new QueryMemory((bytes) => this.#reserve(bytes), shared);
  }

  #reserve(bytes: number): void {
    const limit = this.#limit();
    if (bytes > 0 && limit > 0 && this.#bytes + bytes > limit) {
      throw new QueryError(limitText(this.#tenant, 'queryMemoryBytes', limit));
    }
    this.#bytes += bytes;
  }
}

/** A query asks for memory often, and for little at a time. */
const grantBytes = 1024 * 1024;
const noMemory = 'query memory limit exceeded: running queries hold what there is for all of them';

class QueryMemory implements Memory {
  readonly #from: (bytes: number) => void;
  readonly #shared: MemoryAccount | undefined;
  #bytes = 0;
  /** Bytes of the shared account. */
  #granted = 0;

  constructor(from: (bytes: number) => void, shared: MemoryAccount | undefined) {
    this.#from = from;
    this.#shared = shared;
  }

  reserve(bytes: number): void {
    if (this.#bytes + bytes > this.#granted) this.#grow(this.#bytes + bytes);
    this.#from(bytes);
    this.#bytes += bytes;
  }

  #grow(needed: number): void {
    if (this.#shared === undefined) return;
    const missing = needed - this.#granted;
    const asked = [Math.max(missing, grantBytes), missing];
    const given = asked.find((bytes) => this.#shared!.reserve('answer', bytes));
    if (given === undefined) throw new QueryError(noMemory);
    this.#granted += given;
  }

  /** The query is over: it holds nothing any more. */
  close(): void {
    this.#from(-this.#bytes);
    this.#bytes = 0;
    if (this.#granted > 0) this.#shared!.release('answer', this.#granted);
    this.#granted = 0;
  }
}
