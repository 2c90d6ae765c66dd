// Counts the writes in record batches, and the distinct rows that they change.

import { Op, RecordBatchReader } from './record-batch.ts';

/** Ops by the parts that follow their code: v number, f double, b bytes, u byte. */
const parts: Readonly<Record<number, string>> = {
  [Op.create]: 'u',
  [Op.drop]: '',
  [Op.expire]: 'f',
  [Op.patch]: 'vb',
  [Op.field]: 'bb',
  [Op.member]: 'b',
  [Op.unfield]: 'b',
  [Op.score]: 'fb',
  [Op.head]: 'b',
  [Op.tail]: 'b',
  [Op.unhead]: '',
  [Op.untail]: '',
  [Op.element]: 'vb',
  [Op.insert]: 'vb',
  [Op.remove]: 'vv',
  [Op.clear]: 'v',
  [Op.swap]: 'vv',
  [Op.streamState]: 'b',
  [Op.streamAdd]: 'bb',
  [Op.streamSet]: 'bb',
  [Op.streamRemove]: 'b',
  [Op.streamCut]: 'bb',
};

export class ChangeTally {
  /** Ops, without those that only name the row of the next ones. */
  writes = 0;
  readonly #rows = new Set<string>();
  #table = 0;

  /** Different rows. Those that go as a whole table is emptied are not looked at. */
  get rows(): number {
    return this.#rows.size;
  }

  /** Counts the ops in `buf[start, end)`, whole ones that begin with their row. Throws `RangeError` for others. */
  add(buf: Buffer, start: number, end: number): void {
    const r = new RecordBatchReader(buf, start, end);
    while (r.pos < end) {
      const op = r.byte();
      if (op === Op.row) {
        this.#table = r.varint();
        this.#row(r);
        continue;
      }
      this.writes++;
      if (op === Op.value || op === Op.valueForever) {
        this.#table = r.varint();
        this.#row(r);
        if (op === Op.value) r.double();
        r.bytes();
      } else if (op === Op.rename) this.#row(r);
      else skip(r, op);
    }
  }

  #row(r: RecordBatchReader): void {
    r.bytes();
    const key = r.buf.toString('latin1', r.start, r.start + r.length);
    this.#rows.add(`${this.#table}:${key}`);
  }
}

function skip(r: RecordBatchReader, op: number): void {
  const form = parts[op];
  if (form === undefined) throw new RangeError(`record batch: unknown op ${op} at ${r.pos - 1}`);
  for (const part of form) {
    if (part === 'b') r.bytes();
    else if (part === 'v') r.varint();
    else if (part === 'f') r.double();
    else r.byte();
  }
}
