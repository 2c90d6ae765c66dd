// Records in key order: a list of short sorted arrays, so that adding one moves few others.

const chunkRecords = 512;

interface OrderedRecord {
  readonly key: string;
  readonly present: boolean;
  /** True if the record is in `order`. */
  ordered: boolean;
}

export class SortedRecords<R extends OrderedRecord> {
  /** Records among them that are not present. */
  absent = 0;
  #chunks: R[][] = [];

  static from<R extends OrderedRecord>(records: R[]): SortedRecords<R> {
    const sorted = new SortedRecords<R>();
    records.sort((a, b) => (a.key < b.key ? -1 : 1));
    for (let i = 0; i < records.length; i += chunkRecords / 2) {
      sorted.#chunks.push(records.slice(i, i + chunkRecords / 2));
    }
    for (const record of records) {
      record.ordered = true;
      if (!record.present) sorted.absent++;
    }
    return sorted;
  }

  add(record: R): void {
    record.ordered = true;
    if (!record.present) this.absent++;
    const at = this.#chunkOf(record.key);
    const chunk = this.#chunks[at];
    if (chunk === undefined) {
      this.#chunks.push([record]);
      return;
    }
    const i = indexIn(chunk, record.key);
    if (i === chunk.length) chunk.push(record);
    else chunk.splice(i, 0, record);
    if (chunk.length >= chunkRecords) {
      // Keys often come in order: leave the front full when the last one was added at the end.
      const keep = i === chunk.length - 1 ? chunkRecords - 16 : chunkRecords / 2;
      this.#chunks.splice(at + 1, 0, chunk.splice(keep));
    }
  }

  delete(record: R): void {
    record.ordered = false;
    if (!record.present) this.absent--;
    const at = this.#chunkOf(record.key);
    const chunk = this.#chunks[at]!;
    const i = indexIn(chunk, record.key);
    if (i === chunk.length - 1) chunk.pop();
    else chunk.splice(i, 1);
    if (chunk.length === 0) this.#chunks.splice(at, 1);
  }

  /** Visits records with from <= key < to; stops at a truthy answer and returns true. */
  forward(from: string, to: string, visit: (record: R) => boolean | void): boolean {
    let at = this.#chunkOf(from);
    let chunk = this.#chunks[at];
    if (chunk === undefined) return false;
    let i = indexIn(chunk, from);
    for (;;) {
      if (i === chunk.length) {
        chunk = this.#chunks[++at];
        if (chunk === undefined) return false;
        i = 0;
      }
      const record = chunk[i++]!;
      if (record.key >= to) return false;
      if (visit(record)) return true;
    }
  }

  /** As `forward`, from the greatest key below `to` downwards. */
  backward(from: string, to: string, visit: (record: R) => boolean | void): boolean {
    let at = this.#chunkOf(to);
    let chunk = this.#chunks[at];
    if (chunk === undefined) return false;
    let i = indexIn(chunk, to);
    for (;;) {
      if (i === 0) {
        chunk = this.#chunks[--at];
        if (chunk === undefined) return false;
        i = chunk.length;
      }
      const record = chunk[--i]!;
      if (record.key < from) return false;
      if (visit(record)) return true;
    }
  }

  /** Forgets all. */
  clear(): void {
    for (const chunk of this.#chunks) for (const record of chunk) record.ordered = false;
    this.#chunks = [];
    this.absent = 0;
  }

  /** How many records with from <= key < to there are, present or not. */
  count(from: string, to: string): number {
    const first = this.#chunkOf(from);
    const last = this.#chunkOf(to);
    const chunks = this.#chunks;
    if (chunks.length === 0) return 0;
    let count = indexIn(chunks[last]!, to) - indexIn(chunks[first]!, from);
    for (let i = first; i < last; i++) count += chunks[i]!.length;
    return Math.max(0, count);
  }

  /** The key of the record `offset` places behind the first at or after `from`; it is there. */
  keyAfter(from: string, offset: number): string {
    let at = this.#chunkOf(from);
    let i = indexIn(this.#chunks[at]!, from) + offset;
    while (i >= this.#chunks[at]!.length) i -= this.#chunks[at++]!.length;
    return this.#chunks[at]![i]!.key;
  }

  /** The key of the record `offset` places before the last one below `to`; it is there. */
  keyBefore(to: string, offset: number): string {
    let at = this.#chunkOf(to);
    let i = indexIn(this.#chunks[at]!, to) - 1 - offset;
    while (i < 0) i += this.#chunks[--at]!.length;
    return this.#chunks[at]![i]!.key;
  }

  /** The last chunk that begins at or before the key, or the first. */
  #chunkOf(key: string): number {
    const chunks = this.#chunks;
    let low = 0;
    let high = chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (chunks[middle]![0]!.key <= key) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? 0 : low - 1;
  }
}

/** The first record of the chunk at or after the key. */
function indexIn(chunk: readonly OrderedRecord[], key: string): number {
  let low = 0;
  let high = chunk.length;
  if (high > 0 && chunk[high - 1]!.key < key) return high;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (chunk[middle]!.key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
