// Collects a snapshot's output into batches. Rows that a write forces out wait here as well, so
// batches queue up until the reader asks for them.

import { RecordBatchWriter } from '../../universal-row/record-batch.ts';

/** Small enough that filling one does not hold up the event loop. */
const batchBytes = 128 * 1024;

export class DumpWriter {
  readonly batch = new RecordBatchWriter();
  readonly #full: Buffer[] = [];
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
    this.#key = undefined;
    if (this.batch.pos === 0) return;
    this.#full.push(Buffer.from(this.batch.buf.subarray(0, this.batch.pos)));
    this.batch.pos = 0;
  }

  /** The next batch that is complete. */
  take(): Buffer | undefined {
    return this.#full.shift();
  }
}
