// Record batches (universal-row/record-batch.ts) with only the ops of some tables, under other
// numbers if need be, in slices of a bounded size. Omitted ops do not affect the rest of a batch.

import { Op, RecordBatchReader, RecordBatchWriter } from '../../universal-row/record-batch.ts';
import type { Shape } from '../../universal-row/rows.ts';
import type { CopiedRows } from '../background-work.ts';

/**
 * The number under which the ops of a row continue, by its table and its key, `b[s, s + n)`; undefined when they are left
 * out. Ops about a table as a whole come without a key.
 */
type TableMap = (table: number, b?: Buffer, s?: number, n?: number) => number | undefined;

/** For rows of one table that go to several. */
export interface SpreadRows {
  /** The tables that are emptied with this one. */
  cleared(table: number): readonly number[];
  /** The two have each other's rows from here on. */
  swapped(a: number, b: number): void;
  /**
   * The current row, `from`, whether its ops continue or not, comes under the key `b[s, s + n)`. If false, they are left out
   * from here on.
   */
  renamed(table: number, from: Buffer, b: Buffer, s: number, n: number): boolean;
}

/** Sees ops as they go by. `b` holds until the call returns. */
export interface OpObserver {
  value(table: number, b: Buffer, ks: number, kn: number, s: number, n: number, at: number): void;
  /** The ops after it are about this row. */
  row(table: number, b: Buffer, ks: number, kn: number): void;
  create(shape: Shape): void;
  expire(at: number): void;
  /** State of a stream. */
  state(b: Buffer, s: number, n: number): void;
  /** A field, a member with its score, an element at the tail, a stream's record, by `kind`. */
  element(
    kind: number,
    score: number,
    b: Buffer,
    s: number,
    n: number,
    vs: number,
    vn: number,
  ): void;
  /** Other ops: changes of existing elements. */
  other(op: number): void;
}

export class RowRewriter {
  /** By table, under its new number: rows that were begun. All of them, in an export. */
  readonly rows = new Map<number, number>();
  /** Ops that were passed on. */
  ops = 0;
  /** Bytes passed on, by table, where they concern one table at a time. */
  readonly #bytes = new Map<number, number>();
  #bytesTable = -1;
  #bytesSince = 0;
  readonly #map: TableMap;
  readonly #sliceBytes: number;
  readonly #observer: OpObserver | undefined;
  readonly #spread: SpreadRows | undefined;
  readonly #out = new RecordBatchWriter();
  /** The row that the ops are about, for a slice that begins in its middle. */
  #table: number | undefined;
  /** Its number before it was mapped. */
  #source = 0;
  #key: Buffer = Buffer.alloc(0);
  /** Whether there is a row that ops may follow. */
  #inRow = false;

  constructor(map: TableMap, sliceBytes: number, observer?: OpObserver, spread?: SpreadRows) {
    this.#map = map;
    this.#sliceBytes = sliceBytes;
    this.#observer = observer;
    this.#spread = spread;
  }

  /**
   * Rewrites `buf[start, end)`, which begins with a row of its own. Yields slices, valid until the
   * next; the last ops stay for the next call, or `rest`. Throws `RangeError` for an invalid record
   * batch.
   */
  *add(buf: Buffer, start: number, end: number): Generator<Buffer> {
    const r = new RecordBatchReader(buf, start, end);
    this.#inRow = false;
    this.#table = undefined;
    while (r.pos < end) {
      const at = r.pos;
      const before = this.#out.pos;
      this.#op(r, at);
      if (this.#table !== undefined) this.#weigh(this.#table, this.#out.pos - before);
      if (this.#out.pos >= this.#sliceBytes) {
        yield this.rest()!;
        if (r.pos < end) this.#continueRow();
      }
    }
  }

  /** The collected bytes, or undefined. */
  rest(): Buffer | undefined {
    const out = this.#out;
    if (out.pos === 0) return undefined;
    const slice = out.buf.subarray(0, out.pos);
    out.pos = 0;
    return slice;
  }

  /** Bytes by table, under its new number. */
  bytes(): ReadonlyMap<number, number> {
    this.#weigh(-1, 0);
    return this.#bytes;
  }

  /** Most ops are about the table of the one before. */
  #weigh(table: number, bytes: number): void {
    if (table !== this.#bytesTable) {
      const last = this.#bytesTable;
      if (last >= 0) this.#bytes.set(last, (this.#bytes.get(last) ?? 0) + this.#bytesSince);
      this.#bytesTable = table;
      this.#bytesSince = 0;
    }
    this.#bytesSince += bytes;
  }

  /** Bytes passed on, by table. */
  copied(): CopiedRows[] {
    return [...this.bytes()].map(([table, bytes]) => ({
      table,
      rows: this.rows.get(table) ?? 0,
      bytes,
    }));
  }

  #continueRow(): void {
    if (this.#inRow && this.#table !== undefined) {
      this.#out.row(this.#table, this.#key, 0, this.#key.length);
    }
  }

  #op(r: RecordBatchReader, at: number): void {
    const { buf } = r;
    const op = r.byte();
    switch (op) {
      case Op.row:
        this.#begin(r);
        if (this.#table === undefined) return;
        this.#out.row(this.#table, this.#key, 0, this.#key.length);
        this.ops++;
        this.#observer?.row(this.#table, buf, r.start, r.length);
        return;
      case Op.value:
      case Op.valueForever: {
        this.#begin(r);
        const [ks, kn] = [r.start, r.length];
        const expireAt = op === Op.value ? r.double() : 0;
        r.bytes();
        if (this.#table === undefined) return;
        this.#out.value(this.#table, buf, ks, kn, buf, r.start, r.length, expireAt);
        this.ops++;
        this.#count(this.#table);
        this.#observer?.value(this.#table, buf, ks, kn, r.start, r.length, expireAt);
        return;
      }
      case Op.clear: {
        const cleared = r.varint();
        for (const one of this.#spread?.cleared(cleared) ?? []) this.#out.clear(one);
        const table = this.#map(cleared);
        this.#inRow = false;
        this.#table = undefined;
        if (table === undefined) return;
        this.#out.clear(table);
        this.ops++;
        this.#observer?.other(op);
        return;
      }
      case Op.swap:
        this.#swap(r.varint(), r.varint());
        return;
    }
    if (!this.#inRow) throw new RangeError(`record batch: an op before its row at ${at}`);
    if (op === Op.rename && !this.#mayRename(r)) return;
    this.#inner(r, op);
    if (this.#table === undefined) return;
    this.ops++;
    this.#copy(buf, at, r.pos);
  }

  /** False when the row continues elsewhere, and the op was skipped. */
  #mayRename(r: RecordBatchReader): boolean {
    if (this.#spread === undefined) return true;
    const at = r.pos;
    r.bytes();
    if (this.#spread.renamed(this.#source, this.#key, r.buf, r.start, r.length)) {
      r.pos = at;
      return true;
    }
    this.#keep(r);
    this.#table = undefined;
    return false;
  }

  #count(table: number): void {
    this.rows.set(table, (this.rows.get(table) ?? 0) + 1);
  }

  #begin(r: RecordBatchReader): void {
    const table = r.varint();
    r.bytes();
    this.#source = table;
    this.#table = this.#map(table, r.buf, r.start, r.length);
    this.#inRow = true;
    if (this.#table !== undefined || this.#spread !== undefined) this.#keep(r);
  }

  #keep(r: RecordBatchReader): void {
    if (this.#key.length !== r.length) this.#key = Buffer.allocUnsafe(r.length);
    r.buf.copy(this.#key, 0, r.start, r.start + r.length);
  }

  #swap(a: number, b: number): void {
    this.#spread?.swapped(a, b);
    const [first, second] = [this.#map(a), this.#map(b)];
    this.#inRow = false;
    this.#table = undefined;
    if (first === undefined && second === undefined) return;
    if (first === undefined || second === undefined) {
      throw new RangeError(
        `record batch: table ${a} is swapped with ${b}, which is not part of it`,
      );
    }
    this.#out.swap(first, second);
    this.ops++;
    this.#observer?.other(Op.swap);
  }

  /** An op about the current row. */
  #inner(r: RecordBatchReader, op: number): void {
    const observer = this.#table === undefined ? undefined : this.#observer;
    const { buf } = r;
    switch (op) {
      case Op.create: {
        const shape = r.byte();
        if (this.#table !== undefined) this.#count(this.#table);
        return observer?.create(shape as Shape);
      }
      case Op.expire: {
        const expireAt = r.double();
        return observer?.expire(expireAt);
      }
      case Op.field: {
        r.bytes();
        const [s, n] = [r.start, r.length];
        r.bytes();
        return observer?.element(op, 0, buf, s, n, r.start, r.length);
      }
      case Op.member:
        r.bytes();
        return observer?.element(op, 0, buf, r.start, r.length, 0, 0);
      case Op.score: {
        const score = r.double();
        r.bytes();
        return observer?.element(op, score, buf, r.start, r.length, 0, 0);
      }
      case Op.streamAdd: {
        r.bytes();
        const [s, n] = [r.start, r.length];
        r.bytes();
        return observer?.element(op, 0, buf, s, n, r.start, r.length);
      }
      case Op.streamState:
        r.bytes();
        return observer?.state(buf, r.start, r.length);
      case Op.tail:
        r.bytes();
        return observer?.element(op, 0, buf, r.start, r.length, 0, 0);
      case Op.rename:
        r.bytes();
        if (this.#table !== undefined) this.#keep(r);
        break;
      case Op.drop:
      case Op.unhead:
      case Op.untail:
        break;
      case Op.unfield:
      case Op.head:
      case Op.streamRemove:
        r.bytes();
        break;
      case Op.streamSet:
      case Op.streamCut:
        r.bytes();
        r.bytes();
        break;
      case Op.patch:
      case Op.element:
      case Op.insert:
        r.varint();
        r.bytes();
        break;
      case Op.remove:
        r.varint();
        r.varint();
        break;
      default:
        throw new RangeError(`record batch: unknown op ${op} at ${r.pos - 1}`);
    }
    observer?.other(op);
  }

  #copy(buf: Buffer, start: number, end: number): void {
    const out = this.#out;
    out.reserve(end - start);
    buf.copy(out.buf, out.pos, start, end);
    out.pos += end - start;
  }
}
