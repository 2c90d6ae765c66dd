// Memory that the running queries of a tenant hold, against its limit for all of them together.

import { QueryError } from '../influxql/result.ts';
import type { Memory } from '../influxql/select/context.ts';
import { limitText } from './limits.ts';

export class TenantMemory {
  readonly #tenant: string;
  readonly #limit: () => number;
  #bytes = 0;

  /** `limit` gives the one of the moment; 0 for none. */
  constructor(tenant: string, limit: () => number) {
    this.#tenant = tenant;
    this.#limit = limit;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Memory account of one query. */
  open(): QueryMemory {
    return new QueryMemory((bytes) => this.#reserve(bytes));
  }

  #reserve(bytes: number): void {
    const limit = this.#limit();
    if (bytes > 0 && limit > 0 && this.#bytes + bytes > limit) {
      throw new QueryError(limitText(this.#tenant, 'queryMemoryBytes', limit));
    }
    this.#bytes += bytes;
  }
}

class QueryMemory implements Memory {
  readonly #from: (bytes: number) => void;
  #bytes = 0;

  constructor(from: (bytes: number) => void) {
    this.#from = from;
  }

  reserve(bytes: number): void {
    this.#from(bytes);
    this.#bytes += bytes;
  }

  /** The query is over: it holds nothing any more. */
  close(): void {
    this.reserve(-this.#bytes);
  }
}
