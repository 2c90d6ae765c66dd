// The gateway's end of the link to pods of time series in another process. The link reconnects by itself. When it
// ends, users are notified that their requests in progress have failed.

import { LastingLink, type LastingLinkTarget } from '../../../cluster-links/lasting-link.ts';
import { Ending, readError } from '../../../contracts/series-protocol/answers.ts';
import {
  maxPieceBytes,
  partBytes,
  SeriesFrame,
  seriesPurpose,
} from '../../../contracts/series-protocol/frames.ts';
import { UnreachableError } from '../../../contracts/series-store.ts';
import { beginFrame, endFrame, writeFrame } from '../../../universal-row/protocol/frames.ts';
import { WireError, WireReader, WireWriter } from '../../../universal-row/protocol/wire.ts';

/** Receiver of the answer to a request. Bytes are valid during the call only. */
export interface StreamUser {
  part(reader: WireReader): void;
  /** The answer has ended, unless it is a scan, whose pieces follow. `applied`: log index of the state read; 0: unknown. */
  done(reader: WireReader, applied: number): void;
  refused(error: Error): void;
  pieces?(payload: Buffer): void;
  /** The link has ended. */
  failed(): void;
}

/** Credit is given back for so many bytes together. */
const creditBytes = 256 * 1024;
const maxStream = 0xffff_ffff;

interface Stream {
  readonly user: StreamUser;
  /** Bytes of parts that credit was not given back for. */
  taken: number;
  /** Pieces larger than a frame. */
  parts: Buffer[];
  partsBytes: number;
}

export class SeriesLink {
  readonly #link: LastingLink;
  readonly #streams = new Map<number, Stream>();
  readonly #reader = new WireReader();
  /** Called when it is up, also after a reconnect. */
  readonly #listeners = new Set<() => void>();
  #next = 1;

  constructor(target: LastingLinkTarget) {
    this.#link = new LastingLink(target, {
      purpose: seriesPurpose,
      peer: 'time series',
      opened: () => this.#opened(),
      frame: (type, id, buf, start, end) => this.#frame(type, id, buf, start, end),
      ended: () => this.#ended(),
    });
  }

  /** Resolves when it is up. */
  start(): Promise<void> {
    return this.#link.start();
  }

  get isUp(): boolean {
    return this.#link.isUp;
  }

  /** Resolves when it is up, which may be never. */
  get ready(): Promise<void> {
    return this.#link.ready;
  }

  /** Requests whose answers have not ended, and scans that are open. */
  get streams(): number {
    return this.#streams.size;
  }

  /** Calls back whenever it is up, at once if it is. */
  listen(listener: () => void): void {
    this.#listeners.add(listener);
    if (this.isUp) listener();
  }

  unlisten(listener: () => void): void {
    this.#listeners.delete(listener);
  }

  // ---- the link

  #opened(): void {
    this.#link.up();
    const { link } = this.#link;
    // The link is the listeners' to use once it has its handler.
    queueMicrotask(() => {
      if (this.#link.link !== link) return;
      for (const listener of [...this.#listeners]) listener();
    });
  }

  #ended(): void {
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const { user } of streams) user.failed();
  }

  /** Sets a new address of the node. The link ends and is made again at that address. */
  setPlace(place: { host: string; port: number }): void {
    this.#link.setPlace(place);
  }

  /** Another node leads in place of this one: if this one is silent, the link ends at once. */
  suspect(): void {
    this.#link.suspect();
  }

  /** Ends the link: the node violates the protocol. */
  fail(error: Error): void {
    this.#link.fail(error);
  }

  close(): void {
    this.#link.close();
  }

  // ---- out

  /** Whether the socket takes no more for now. */
  get isFull(): boolean {
    return this.#link.isFull;
  }

  /** Resolves once it takes more, or is down. */
  whenFree(): Promise<void> {
    if (!this.isFull) return Promise.resolve();
    return new Promise((resolve) => this.#link.whenDrained(resolve));
  }

  /** Sends a request; returns its stream. Throws `UnreachableError`. */
  request(payload: Buffer, user: StreamUser): number {
    const { link } = this.#link;
    if (link === undefined || link.isClosed) throw new UnreachableError();
    const stream = this.#newStream();
    this.#streams.set(stream, { user, taken: 0, parts: [], partsBytes: 0 });
    let at = 0;
    for (; payload.length - at > partBytes; at += partBytes) {
      this.#send(SeriesFrame.requestPart, stream, payload.subarray(at, at + partBytes));
    }
    this.#send(SeriesFrame.request, stream, payload.subarray(at));
    return stream;
  }

  #newStream(): number {
    do {
      this.#next = this.#next === maxStream ? 1 : this.#next + 1;
    } while (this.#streams.has(this.#next));
    return this.#next;
  }

  #send(type: number, stream: number, payload: Buffer): void {
    const frame = new WireWriter(payload.length + 64);
    writeFrame(frame, type, stream, payload);
    this.#link.link?.send(frame.view());
  }

  /** Items of a frame `read` of a scan. */
  read(stream: number, items: Buffer): void {
    if (this.#streams.has(stream)) this.#send(SeriesFrame.read, stream, items);
  }

  /** The request or scan is no longer needed: its user receives nothing more. */
  cancel(stream: number): void {
    if (!this.#streams.delete(stream) || !this.isUp) return;
    const frame = new WireWriter(64);
    endFrame(frame, beginFrame(frame, SeriesFrame.cancel, stream));
    this.#link.link!.send(frame.view());
  }

  // ---- in

  #frame(type: number, id: number, buf: Buffer, start: number, end: number): void {
    // Answers to what was cancelled meanwhile are dropped.
    const stream = this.#streams.get(id);
    const reader = this.#reader;
    reader.set(buf, start, end);
    switch (type) {
      case SeriesFrame.answerPart:
        if (stream === undefined) break;
        stream.user.part(reader);
        this.#giveBack(id, stream, end - start);
        break;
      case SeriesFrame.answer:
        if (stream !== undefined) this.#answered(id, stream, reader);
        break;
      case SeriesFrame.piecesPart:
      case SeriesFrame.pieces:
        if (stream !== undefined) this.#pieces(type, stream, buf, start, end);
        break;
      default:
        throw new WireError(`pods of time series send no frame of type ${type}`);
    }
  }

  #giveBack(id: number, stream: Stream, bytes: number): void {
    stream.taken += bytes;
    if (stream.taken < creditBytes || !this.#streams.has(id)) return;
    const credit = new WireWriter(16);
    credit.varint(stream.taken);
    this.#send(SeriesFrame.credit, id, credit.view());
    stream.taken = 0;
  }

  #answered(id: number, { user }: Stream, reader: WireReader): void {
    const ending = reader.u8();
    const isScan = ending === Ending.done && user.pieces !== undefined;
    if (!isScan) this.#streams.delete(id);
    if (ending === Ending.done) user.done(reader, reader.varint());
    else user.refused(readError(reader, ending));
  }

  #pieces(type: number, stream: Stream, buf: Buffer, start: number, end: number): void {
    if (stream.user.pieces === undefined) throw new WireError('pieces of no scan');
    const bytes = Buffer.from(buf.subarray(start, end));
    stream.partsBytes += bytes.length;
    if (stream.partsBytes > maxPieceBytes) throw new WireError('a row is too large');
    if (type === SeriesFrame.piecesPart) {
      stream.parts.push(bytes);
      return;
    }
    const { parts } = stream;
    stream.parts = [];
    stream.partsBytes = 0;
    stream.user.pieces(parts.length === 0 ? bytes : Buffer.concat([...parts, bytes]));
  }
}
