// Reads the columns of one block, with as few calls as may be.

import { ByteReader } from '../encoding/byte-reader.ts';
import { emptyBytes } from '../../../universal-row/bytes.ts';
import type { BlockRecord } from './directory.ts';
import { type FileBytes, sealed } from './file-bytes.ts';

// Requested columns of a block are read at once together with the bytes between them, up to this
// size.
const maxSpanBytes = 128 * 1024;

export class BlockColumns {
  readonly #bytes: FileBytes;
  /** Offset of the block in the file. */
  #offset = 0;
  #length = 0;
  /** Bytes read, and their range within the block. */
  #read: Buffer = emptyBytes;
  #start = 0;
  #end = 0;
  /** The column opened last, in the file. */
  #opened = 0;
  readonly #from = new ByteReader(emptyBytes);

  constructor(bytes: FileBytes) {
    this.#bytes = bytes;
  }

  begin(offset: number, length: number): void {
    this.#offset = offset;
    this.#length = length;
    this.#opened = offset;
    this.#start = 0;
    this.#end = 0;
  }

  /** These columns, -1 for none, will be opened next, unless they lie too far apart. */
  ahead(record: BlockRecord, places: readonly number[], times: boolean): void {
    let start = times ? 0 : this.#length;
    let end = times ? sealed(record.timesBytes) : 0;
    for (const place of places) {
      if (place < 0) continue;
      start = Math.min(start, record.offset(place));
      end = Math.max(end, record.offset(place) + sealed(record.length(place)));
    }
    if (end > start && end - start <= maxSpanBytes) this.#fetch(start, end);
  }

  /** The bytes of a column, checked. The reader is for one column at a time. */
  open(start: number, length: number): ByteReader {
    const end = start + sealed(length);
    if (start < this.#start || end > this.#end) this.#fetch(start, end);
    const at = start - this.#start;
    this.#opened = this.#offset + start;
    this.#bytes.verify(this.#read, at, length, this.#opened, this.#opened);
    this.#from.reset(this.#read, at, at + length);
    return this.#from;
  }

  /** Error for the column opened last; damage is reported with its place. */
  failed(error: unknown): never {
    return this.#bytes.failed(this.#opened, error);
  }

  #fetch(start: number, end: number): void {
    if (end > this.#length) {
      this.#bytes.damaged(this.#offset + start, 'a column goes beyond its block');
    }
    this.#read = this.#bytes.peek(this.#offset + start, end - start);
    this.#start = start;
    this.#end = end;
  }
}
