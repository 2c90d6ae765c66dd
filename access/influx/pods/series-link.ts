// The gateway's end of the link to pods of time series in another process. It connects again by itself when the link
// ends; its users are told that what was under way has failed.

import type { ClusterLink, LinkContext } from '../../../cluster-links/cluster-link.ts';
import { dialLink } from '../../../cluster-links/dial.ts';
import { Ending, readError } from '../../../contracts/series-protocol/answers.ts';
import {
  maxPieceBytes,
  partBytes,
  SeriesFrame,
  seriesPurpose,
} from '../../../contracts/series-protocol/frames.ts';
import { UnreachableError } from '../../../contracts/series-store.ts';
import { Deferred } from '../../../universal-row/deferred.ts';
import { beginFrame, endFrame, writeFrame } from '../../../universal-row/protocol/frames.ts';
import { WireError, WireReader, WireWriter } from '../../../universal-row/protocol/wire.ts';

export interface SeriesLinkOptions {
  host: string;
  port: number;
  /** The node that has to answer there; undefined for any of the cluster. */
  node?: string | undefined;
  context: LinkContext;
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
}

/** A request, as it hears of its answer. Bytes are valid during the call. */
export interface StreamUser {
  part(reader: WireReader): void;
  /** The answer has ended, unless it is a scan, whose pieces follow. `applied`: log index of the state read; 0: unknown. */
  done(reader: WireReader, applied: number): void;
  refused(error: Error): void;
  pieces?(payload: Buffer): void;
  /** The link has ended. */
  failed(): void;
}

/** Bytes that the socket has yet to send, beyond which requests wait. */
const maxUnsentBytes = 32 * 1024 * 1024;
/** Credit is given back for so many bytes together. */
const creditBytes = 256 * 1024;
const retryMs = { first: 20, last: 1000 } as const;
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
  readonly #options: SeriesLinkOptions;
  readonly #streams = new Map<number, Stream>();
  readonly #reader = new WireReader();
  /** Called when it is up, also after a reconnect. */
  readonly #listeners = new Set<() => void>();
  #place: { host: string; port: number };
  #next = 1;
  #link: ClusterLink | undefined;
  #dial: { close(): void } | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;
  #retryMs: number = retryMs.first;
  #ready = new Deferred<void>();
  #drains: (() => void)[] = [];

  constructor(options: SeriesLinkOptions) {
    this.#options = options;
    this.#place = options;
  }

  /** Resolves when it is up. */
  start(): Promise<void> {
    this.#connect();
    return this.#ready.promise;
  }

  get isUp(): boolean {
    return this.#link !== undefined;
  }

  /** Resolves when it is up, which may be never. */
  get ready(): Promise<void> {
    return this.#ready.promise;
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

  #connect(): void {
    if (this.#isClosed) return;
    const { node, context } = this.#options;
    this.#dial = dialLink(
      context,
      { ...this.#place, purpose: seriesPurpose, node },
      {
        open: (link) => {
          this.#opened(link);
          return {
            frame: (type, id, buf, start, end) => this.#frame(type, id, buf, start, end),
            drained: () => this.#drained(),
            readEnd: () => {},
            closed: (error) => this.#closed(error),
          };
        },
        failed: (error) => this.#closed(error),
      },
    );
  }

  #opened(link: ClusterLink): void {
    this.#link = link;
    this.#retryMs = retryMs.first;
    this.#ready.resolve();
    // The link is the listeners' to use once it has its handler.
    queueMicrotask(() => {
      if (this.#link !== link) return;
      for (const listener of [...this.#listeners]) listener();
    });
  }

  /** The node is to be found elsewhere. The link ends, and is made there. */
  setPlace(place: { host: string; port: number }): void {
    if (place.host === this.#place.host && place.port === this.#place.port) return;
    this.#place = place;
    this.#dial?.close();
  }

  #closed(error: Error | undefined): void {
    const wasUp = this.isUp;
    this.#link = undefined;
    if (wasUp) this.#ready = new Deferred();
    if (!this.#isClosed) {
      const { host, port } = this.#place;
      const why = error === undefined ? '' : `: ${error.message}`;
      if (wasUp) {
        this.#options.report('warn', `the link to time series at ${host}:${port} ended${why}`);
      }
      this.#retry = setTimeout(() => this.#connect(), this.#retryMs);
      this.#retryMs = Math.min(this.#retryMs * 2, retryMs.last);
    }
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const { user } of streams) user.failed();
    this.#drained();
  }

  /** Ends the link: the node violates the protocol. */
  fail(error: Error): void {
    this.#link?.close(error);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.#dial?.close();
  }

  // ---- out

  /** Whether the socket takes no more for now. */
  get isFull(): boolean {
    return (this.#link?.unsentBytes ?? 0) > maxUnsentBytes;
  }

  /** Resolves once it takes more, or is down. */
  whenFree(): Promise<void> {
    if (!this.isFull) return Promise.resolve();
    return new Promise((resolve) => this.#drains.push(resolve));
  }

  #drained(): void {
    for (const then of this.#drains.splice(0)) then();
  }

  /** Sends a request; returns its stream. Throws `UnreachableError`. */
  request(payload: Buffer, user: StreamUser): number {
    const link = this.#link;
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
    this.#link?.send(frame.view());
  }

  /** Items of a frame `read` of a scan. */
  read(stream: number, items: Buffer): void {
    if (this.#streams.has(stream)) this.#send(SeriesFrame.read, stream, items);
  }

  /** The request, or the scan, is of no more use: its user hears no more of it. */
  cancel(stream: number): void {
    if (!this.#streams.delete(stream) || !this.isUp) return;
    const frame = new WireWriter(64);
    endFrame(frame, beginFrame(frame, SeriesFrame.cancel, stream));
    this.#link!.send(frame.view());
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
        if (stream !== undefined) this.#ended(id, stream, reader);
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

  #ended(id: number, { user }: Stream, reader: WireReader): void {
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
