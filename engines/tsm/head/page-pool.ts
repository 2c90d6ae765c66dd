// Memory for the columns of the heads. Full-size pages are reused by the next head, which needs about as many as a
// flushed head releases. Reuse needs neither allocation nor garbage collection.

import { type Form, formBytes, type Values, valuesOf } from './packed-column.ts';

/** Rows in a page. A power of two, and few enough for a row in a page to be 16 bits. */
export const pageRows = 8192;
export const pageShift = 13;

export class PagePool {
  /** Bytes of pages that wait to be used again. */
  idleBytes = 0;
  readonly #maxIdleBytes: number;
  readonly #idle: Values[][] = formBytes.map(() => []);

  constructor(maxIdleBytes: number) {
    this.#maxIdleBytes = maxIdleBytes;
  }

  /** A page of a full `pageRows` values, with arbitrary contents. */
  take(form: Form): Values {
    const page = this.#idle[form]!.pop();
    if (page === undefined) return valuesOf(form, pageRows);
    this.idleBytes -= page.byteLength;
    return page;
  }

  /** Takes back a page; one of another size is dropped. */
  give(form: Form, page: Values): void {
    if (page.length !== pageRows || this.idleBytes + page.byteLength > this.#maxIdleBytes) return;
    this.idleBytes += page.byteLength;
    this.#idle[form]!.push(page);
  }
}
