// Collects a snapshot's output into batches. Rows that a write forces out wait here as well, so
// batches queue up until the reader asks for them.

import type { ViewedBuffer } from '../../universal-row/bytes.ts';
import { RecordBatchWriter } from '../../universal-row/record-batch.ts';

/** Small enough that filling one does not hold up the event loop. */
const batchBytes = 128 * 1024;
/** Memory kept for the next batches. More batches wait only where a write forces rows out; larger ones hold a large element. */
const maxSpares = 2;
const maxSpareBytes = 512 * 1024;

export class DumpWriter {
  readonly batch = new RecordBatchWriter();
  readonly #full: { memory: ViewedBuffer; length: number }[] = [];
  /** Memory of the batch that was taken last. */
  #lent: ViewedBuffer | undefined;
  readonly #spares: ViewedBuffer[] = [];
  /** The key the batch's last ops are about, if more of its elements may follow them. */
  #key: Buffer | undefined = undefined;

  /** After the ops of a row that is complete, or that has only been begun. */
  rowDone(): void {
    this.#key = undefined;
    this.elementDone();
  }

  /** Before an element of a row whose `create` is out: names the row unless the last op was about it. */
  continueRow(table: number, key: Buffer): void {
    if (this.#key === key) return;
    this.batch.row(table, key, 0, key.length);
    this.#key = key;
  }

  elementDone(): void {
    if (this.batch.pos >= batchBytes) this.flush();
  }

  flush(): void {
    const { batch } = this;
    this.#key = undefined;
    if (batch.pos === 0) return;
    this.#full.push({ memory: batch.buf, length: batch.pos });
    batch.renew(this.#spares.pop());
  }

  /** The next batch that is complete, valid until the next call. */
  take(): Buffer | undefined {
    const lent = this.#lent;
    const isKept = lent !== undefined && lent.length <= maxSpareBytes;
    if (isKept && this.#spares.length < maxSpares) this.#spares.push(lent);
    const next = this.#full.shift();
    this.#lent = next?.memory;
    return next?.memory.subarray(0, next.length);
  }
}
