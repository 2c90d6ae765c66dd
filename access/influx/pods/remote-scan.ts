// A scan that runs at another node. Each cursor grants the node credit for some bytes ahead of its reader. Cursors of
// series that are read one after the other are opened ahead.

import { Ending, readError } from '../../../contracts/series-protocol/answers.ts';
import { PieceKind, ReadItem } from '../../../contracts/series-protocol/frames.ts';
import {
  type ScannedSeries,
  type SeriesCursor,
  type SeriesScan,
  UnavailableError,
} from '../../../contracts/series-store.ts';
import { readRows, readSummary } from '../../../universal-row/protocol/series-rows.ts';
import { WireError, WireReader, WireWriter } from '../../../universal-row/protocol/wire.ts';
import type { BlockSummary, SeriesRows } from '../../../universal-row/series/column.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';
import { decodeSeriesKey } from '../../../universal-row/series/series-key.ts';

/** Bytes ahead of the readers of a scan, shared by its cursors; each has at least the least, and no more than the most. */
const window = 8 * 1024 * 1024;
const leastCredit = 4 * 1024;
const mostCredit = 1024 * 1024;
/** Series that are opened ahead, and the credit of each. */
const ahead = { first: 4, most: 256, credit: 8 * 1024 } as const;

const noTags: ReadonlyMap<string, string> = new Map();

/** A series, or a group of series with the values of some tags. */
export class RemoteSeries implements ScannedSeries {
  readonly index: number;
  readonly key: string;
  #tags: ReadonlyMap<string, string> | undefined;

  constructor(index: number, key: string, tags?: ReadonlyMap<string, string>) {
    this.index = index;
    this.key = key;
    this.#tags = tags;
  }

  tag(name: string): string {
    this.#tags ??= tagsOf(this.key);
    return this.#tags.get(name) ?? '';
  }
}

function tagsOf(key: string): ReadonlyMap<string, string> {
  const bytes = Buffer.from(key);
  const { tags } = decodeSeriesKey(bytes, 0, bytes.length);
  return tags.length === 0 ? noTags : new Map(tags);
}

/** The link, as a scan uses it. */
interface ScanLink {
  read(stream: number, items: Buffer): void;
  cancel(stream: number): void;
  fail(error: Error): void;
}

interface RemoteScanOptions {
  link: ScanLink;
  stream: number;
  fields: number;
  fieldTypes: readonly (FieldType | undefined)[];
  series: readonly RemoteSeries[];
  /** Undefined where `series` are no groups. */
  seriesCount: number | undefined;
}

export class RemoteScan implements SeriesScan {
  readonly fieldTypes: readonly (FieldType | undefined)[];
  readonly series: readonly RemoteSeries[];
  readonly seriesCount: number | undefined;
  readonly #options: RemoteScanOptions;
  readonly #cursors = new Map<number, RemoteCursor>();
  /** Cursors that were opened ahead, by series. */
  readonly #ahead = new Map<number, RemoteCursor>();
  readonly #out = new WireWriter(256);
  #isScheduled = false;
  #nextId = 0;
  /** Cursors that are read. */
  #inUse = 0;
  /** The series whose cursor was taken last, the one behind those opened ahead, and how many are opened next. */
  #last = -1;
  #aheadTo = 0;
  #run = 0;
  /** Why it can be read no more. */
  failure: Error | undefined;

  constructor(options: RemoteScanOptions) {
    this.#options = options;
    this.fieldTypes = options.fieldTypes;
    this.series = options.series;
    this.seriesCount = options.seriesCount;
  }

  get fields(): number {
    return this.#options.fields;
  }

  /** Bytes that a cursor may have ahead of its reader. */
  get creditEach(): number {
    const share = Math.floor(window / Math.max(1, this.#inUse));
    return Math.max(leastCredit, Math.min(mostCredit, share));
  }

  cursor(series: ScannedSeries): SeriesCursor {
    const { index } = series as RemoteSeries;
    this.#inUse++;
    let cursor = this.#ahead.get(index);
    if (cursor === undefined) cursor = this.#open(index, 1, this.creditEach)[0]!;
    else {
      this.#ahead.delete(index);
      cursor.giveCredit();
    }
    this.#openAhead(index);
    return cursor;
  }

  #openAhead(index: number): void {
    const isNext = index === this.#last + 1 && index > 0;
    this.#last = index;
    if (!isNext) {
      this.#run = 0;
      this.#aheadTo = index + 1;
      return;
    }
    this.#aheadTo = Math.max(this.#aheadTo, index + 1);
    // The next ones are opened once half of the last ones are read.
    if (this.#aheadTo - index - 1 > this.#run / 2) return;
    this.#run = Math.min(ahead.most, this.#run === 0 ? ahead.first : 2 * this.#run);
    const from = this.#aheadTo;
    const to = Math.min(this.series.length, index + 1 + this.#run);
    if (to <= from) return;
    this.#aheadTo = to;
    for (const cursor of this.#open(from, to - from, ahead.credit)) {
      this.#ahead.set(cursor.index, cursor);
    }
  }

  #open(index: number, count: number, credit: number): RemoteCursor[] {
    const out = this.#begin();
    out.u8(ReadItem.open);
    out.varint(this.#nextId);
    out.varint(index);
    out.varint(count);
    out.varint(credit);
    const cursors: RemoteCursor[] = [];
    for (let i = 0; i < count; i++) {
      const cursor = new RemoteCursor(this, this.#nextId++, index + i, credit);
      this.#cursors.set(cursor.id, cursor);
      cursors.push(cursor);
    }
    return cursors;
  }

  more(id: number, bytes: number): void {
    const out = this.#begin();
    out.u8(ReadItem.more);
    out.varint(id);
    out.varint(bytes);
  }

  /** Begins a request. All requests of one step are sent together. */
  #begin(): WireWriter {
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      queueMicrotask(() => this.#flush());
    }
    return this.#out;
  }

  #flush(): void {
    this.#isScheduled = false;
    const { link, stream } = this.#options;
    if (this.failure === undefined) link.read(stream, this.#out.view());
    this.#out.reset(false);
  }

  /** A frame of pieces, which stays. */
  pieces(payload: Buffer): void {
    const reader = new WireReader(payload);
    while (reader.left > 0) {
      const start = reader.pos;
      const cursor = this.#cursors.get(reader.varint());
      if (cursor === undefined) throw new WireError('a piece of no cursor');
      const kind = reader.u8();
      const length = reader.u32();
      const at = reader.skip(length);
      cursor.received(kind, payload.subarray(at, at + length), reader.pos - start);
    }
  }

  /** A cursor has sent all it has. */
  ended(cursor: RemoteCursor): void {
    this.#cursors.delete(cursor.id);
  }

  /** A cursor has been read to its end. */
  released(): void {
    this.#inUse--;
  }

  failed(error: Error): void {
    this.failure ??= error;
    for (const cursor of this.#cursors.values()) cursor.wake();
  }

  /** A piece violates the protocol. */
  damaged(error: Error): void {
    this.#options.link.fail(error);
  }

  close(): void {
    if (this.failure !== undefined) return;
    this.failed(new UnavailableError('the scan is closed'));
    this.#cursors.clear();
    this.#ahead.clear();
    this.#options.link.cancel(this.#options.stream);
  }
}

interface Piece {
  readonly kind: number;
  readonly bytes: Buffer;
  /** As credit counts it. */
  readonly cost: number;
}

class RemoteCursor implements SeriesCursor {
  readonly id: number;
  /** Of its series. */
  readonly index: number;
  waits: Promise<unknown> | undefined;
  readonly #scan: RemoteScan;
  #pieces: Piece[] = [];
  #at = 0;
  /** Bytes of `#pieces` that were not read. */
  #held = 0;
  /** Bytes that the node may send. */
  #credit: number;
  #isEnded = false;
  #isReleased = false;
  #failure: Error | undefined;
  #wakes: (() => void) | undefined;

  constructor(scan: RemoteScan, id: number, index: number, credit: number) {
    this.#scan = scan;
    this.id = id;
    this.index = index;
    this.#credit = credit;
  }

  next(): SeriesRows | BlockSummary | undefined {
    this.waits = undefined;
    const piece = this.#pieces[this.#at];
    if (piece !== undefined) {
      this.#at++;
      if (this.#at === this.#pieces.length) {
        this.#pieces = [];
        this.#at = 0;
      }
      this.#held -= piece.cost;
      this.giveCredit();
      return this.#decode(piece);
    }
    const failure = this.#failure ?? (this.#isEnded ? undefined : this.#scan.failure);
    if (failure !== undefined) throw failure;
    if (this.#isEnded) {
      if (!this.#isReleased) this.#scan.released();
      this.#isReleased = true;
      return undefined;
    }
    this.waits = new Promise<void>((resolve) => (this.#wakes = resolve));
    return nothing(this.#scan.fields);
  }

  #decode({ kind, bytes }: Piece): SeriesRows | BlockSummary {
    const reader = new WireReader(bytes);
    const { fields } = this.#scan;
    try {
      const read = kind === PieceKind.rows ? readRows(reader, fields) : readSummary(reader, fields);
      reader.done();
      return read;
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.#scan.damaged(error);
      throw new UnavailableError(error.message, { cause: error });
    }
  }

  /** Half of its share is used up: the node may send more. */
  giveCredit(): void {
    if (this.#isEnded || this.#scan.failure !== undefined) return;
    const share = this.#scan.creditEach;
    const inFlight = this.#credit + this.#held;
    if (inFlight > share / 2) return;
    this.#credit += share - inFlight;
    this.#scan.more(this.id, share - inFlight);
  }

  received(kind: number, bytes: Buffer, cost: number): void {
    this.#credit -= cost;
    switch (kind) {
      case PieceKind.rows:
      case PieceKind.summary:
        this.#pieces.push({ kind, bytes, cost });
        this.#held += cost;
        break;
      case PieceKind.failed: {
        const reader = new WireReader(bytes);
        const ending = reader.u8();
        if (ending === Ending.done) throw new WireError('a cursor has failed with no error');
        this.#failure = readError(reader, ending);
        this.#end();
        break;
      }
      case PieceKind.end:
        this.#end();
        break;
      default:
        throw new WireError('a piece is of no kind');
    }
    this.wake();
  }

  #end(): void {
    this.#isEnded = true;
    this.#scan.ended(this);
  }

  wake(): void {
    this.#wakes?.();
    this.#wakes = undefined;
  }
}

function nothing(fields: number): SeriesRows {
  const columns = Array.from({ length: fields }, () => undefined);
  return { kind: 'rows', base: 0, times: new Float64Array(0), count: 0, columns };
}
