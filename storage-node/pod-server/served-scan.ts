// A scan that a gateway reads. Each cursor sends as many bytes as the gateway has credited, and exceeds the credit by
// at most one row.

import { type PodAdmission, TimeSlice } from '../../contracts/pod-admission.ts';
import { writeError } from '../../contracts/series-protocol/answers.ts';
import { answerPartBytes, PieceKind, ReadItem } from '../../contracts/series-protocol/frames.ts';
import type { SeriesCursor, SeriesScan } from '../../contracts/series-store.ts';
import { endOfPiece, writeRows, writeSummary } from '../../universal-row/protocol/series-rows.ts';
import { WireError, type WireReader, WireWriter } from '../../universal-row/protocol/wire.ts';
import type { SeriesRows } from '../../universal-row/series/column.ts';
import type { SeriesRequestLink } from './served-series.ts';

interface ServedScanOptions {
  scan: SeriesScan;
  tenant: number;
  admission: PodAdmission | undefined;
  link: SeriesRequestLink;
  stream: number;
}

/** Cursors of one scan. */
const maxCursors = 2_000_000;
/** Longest time slice while no other tenant competes. */
const sliceMs = 8;

class ServedCursor {
  readonly id: number;
  /** Index of its series. */
  readonly series: number;
  credit: number;
  cursor: SeriesCursor | undefined;
  /** Rows of which some have yet to be sent, and the first of these. */
  rows: SeriesRows | undefined;
  row = 0;
  /** Whether the cursor is queued to send, or waits for the disk. */
  isQueued = false;

  constructor(id: number, series: number, credit: number) {
    this.id = id;
    this.series = series;
    this.credit = credit;
  }
}

export class ServedScan {
  readonly #options: ServedScanOptions;
  readonly #cursors = new Map<number, ServedCursor>();
  /** Those that have credit; from `#at` on. */
  #ready: ServedCursor[] = [];
  #at = 0;
  readonly #writer = new WireWriter(answerPartBytes);
  #isRunning = false;
  #isClosed = false;

  constructor(options: ServedScanOptions) {
    this.#options = options;
  }

  /** Items of a frame `read`. */
  read(reader: WireReader): void {
    while (reader.left > 0) {
      const item = reader.u8();
      const id = reader.varint();
      if (item === ReadItem.open) this.#open(id, reader);
      else if (item === ReadItem.more) this.#more(id, reader.varint());
      else throw new WireError('no item of a read is of this kind');
    }
    this.#start();
  }

  #start(): void {
    if (this.#isRunning || this.#isClosed) return;
    this.#run().catch((error: unknown) => this.#options.link.fail(error as Error));
  }

  #open(id: number, reader: WireReader): void {
    const series = reader.varint();
    const count = reader.varint();
    const credit = reader.varint();
    const { length } = this.#options.scan.series;
    if (series + count > length) throw new WireError('a scan has no such series');
    if (this.#cursors.size + count > maxCursors) throw new WireError('too many cursors');
    for (let i = 0; i < count; i++) {
      if (this.#cursors.has(id + i)) throw new WireError('two cursors have one number');
      const one = new ServedCursor(id + i, series + i, credit);
      this.#cursors.set(one.id, one);
      this.#queue(one);
    }
  }

  /** A cursor that has ended is unknown. */
  #more(id: number, bytes: number): void {
    const cursor = this.#cursors.get(id);
    if (cursor === undefined) return;
    cursor.credit += bytes;
    this.#queue(cursor);
  }

  #queue(cursor: ServedCursor): void {
    if (cursor.isQueued || cursor.credit <= 0) return;
    cursor.isQueued = true;
    this.#ready.push(cursor);
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    const { link, admission, tenant } = this.#options;
    const slice = new TimeSlice(admission, tenant, sliceMs);
    while (!this.#isClosed && this.#at < this.#ready.length) {
      const cursor = this.#ready[this.#at]!;
      if (!this.#advance(cursor)) {
        this.#at++;
        if (this.#at > 1024 && this.#at * 2 > this.#ready.length) {
          this.#ready = this.#ready.slice(this.#at);
          this.#at = 0;
        }
      }
      if (this.#writer.pos >= answerPartBytes) this.#flush();
      const mustWait = link.isFull && !link.isClosed;
      if (!mustWait && !slice.isOver) continue;
      this.#flush();
      if (mustWait) {
        await link.whenFree();
        slice.restart();
      } else await slice.yield();
    }
    this.#flush();
    if (this.#at === this.#ready.length) {
      this.#ready = [];
      this.#at = 0;
    }
    this.#isRunning = false;
  }

  #flush(): void {
    const writer = this.#writer;
    if (writer.pos === 0) return;
    if (!this.#isClosed) this.#options.link.sendPieces(this.#options.stream, writer.view());
    writer.reset(false);
  }

  /** Whether it may send more at once. */
  #advance(cursor: ServedCursor): boolean {
    if (cursor.rows === undefined && !this.#next(cursor)) return false;
    const { rows } = cursor;
    if (rows !== undefined) {
      const most = Math.min(cursor.credit, answerPartBytes);
      const to = endOfPiece(rows, cursor.row, most);
      this.#piece(cursor, PieceKind.rows, (writer) => writeRows(writer, rows, cursor.row, to));
      cursor.row = to;
      if (to === rows.count) cursor.rows = undefined;
    }
    if (cursor.credit > 0) return true;
    cursor.isQueued = false;
    return false;
  }

  /** Reads what is next; false where there is nothing to be sent now. */
  #next(cursor: ServedCursor): boolean {
    const { scan } = this.#options;
    let piece: ReturnType<SeriesCursor['next']>;
    try {
      cursor.cursor ??= scan.cursor(scan.series[cursor.series]!);
      piece = cursor.cursor.next();
    } catch (error) {
      this.#cursors.delete(cursor.id);
      this.#piece(cursor, PieceKind.failed, (writer) => writeError(writer, error));
      return false;
    }
    if (piece === undefined) {
      this.#cursors.delete(cursor.id);
      this.#piece(cursor, PieceKind.end, () => {});
      return false;
    }
    if (piece.kind === 'summary') {
      const summary = piece;
      this.#piece(cursor, PieceKind.summary, (writer) => writeSummary(writer, summary));
      return true;
    }
    if (piece.count === 0) {
      this.#whenMore(cursor, cursor.cursor.waits);
      return false;
    }
    cursor.rows = piece;
    cursor.row = 0;
    return true;
  }

  /** The cursor takes longer, or waits for the disk: others go first. */
  #whenMore(cursor: ServedCursor, waits: Promise<unknown> | undefined): void {
    if (waits === undefined) {
      this.#ready.push(cursor);
      return;
    }
    void waits.then(() => {
      this.#ready.push(cursor);
      this.#start();
    });
  }

  #piece(cursor: ServedCursor, kind: number, write: (writer: WireWriter) => void): void {
    const writer = this.#writer;
    const start = writer.pos;
    writer.varint(cursor.id);
    writer.u8(kind);
    const lengthAt = writer.pos;
    writer.u32(0);
    write(writer);
    writer.buf.writeUInt32LE(writer.pos - lengthAt - 4, lengthAt);
    cursor.credit -= writer.pos - start;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cursors.clear();
    this.#ready = [];
    this.#at = 0;
    this.#options.scan.close();
  }
}
