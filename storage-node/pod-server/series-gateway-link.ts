// The node's end of the link to one gateway, for time series: frames in and out. Each request has a stream.

import type { ClusterLink, LinkHandler } from '../../cluster-links/cluster-link.ts';
import { writeError } from '../../contracts/series-protocol/answers.ts';
import {
  firstCredit,
  maxRequestBytes,
  partBytes,
  SeriesFrame,
} from '../../contracts/series-protocol/frames.ts';
import { ThrottledError } from '../../contracts/series-store.ts';
import { writeFrame } from '../../universal-row/protocol/frames.ts';
import { WireError, WireReader, WireWriter } from '../../universal-row/protocol/wire.ts';
import { ServedRequest } from './series-request.ts';
import type { CatalogFollower } from './catalog-follower.ts';
import type { SeriesHost, SeriesRequestLink } from './served-series.ts';

/** Bytes that the socket has yet to send, beyond which answers wait. */
const maxUnsentBytes = 16 * 1024 * 1024;
/** Bytes of requests under way, beyond which the link is not read. */
const maxTakenBytes = 64 * 1024 * 1024;
const maxStreams = 65_536;
const throttledMs = 100;

export class SeriesGatewayLink implements LinkHandler, SeriesRequestLink {
  readonly host: SeriesHost;
  readonly #link: ClusterLink;
  readonly #ended: () => void;
  readonly #reader = new WireReader();
  readonly #requests = new Map<number, ServedRequest>();
  readonly #followers = new Set<CatalogFollower>();
  /** Parts of the request that comes. */
  #parts: Buffer[] = [];
  #partsBytes = 0;
  #partsStream = 0;
  #takenBytes = 0;
  #isPaused = false;
  #drains: (() => void)[] = [];
  isClosed = false;

  constructor(host: SeriesHost, link: ClusterLink, ended: () => void) {
    this.host = host;
    this.#link = link;
    this.#ended = ended;
  }

  /** Whether it is a link of this node, since the same start. */
  isOf({ node, incarnation }: ClusterLink['peer']): boolean {
    const { peer } = this.#link;
    return node !== '' && peer.node === node && peer.incarnation === incarnation;
  }

  // ---- in

  frame(type: number, stream: number, buf: Buffer, start: number, end: number): void {
    switch (type) {
      case SeriesFrame.requestPart:
        this.#takePart(stream, buf, start, end);
        break;
      case SeriesFrame.request:
        this.#takeRequest(stream, buf, start, end);
        break;
      case SeriesFrame.credit:
        this.#reader.set(buf, start, end);
        this.#requests.get(stream)?.addCredit(this.#reader.varint());
        this.#reader.done();
        break;
      case SeriesFrame.read:
        this.#reader.set(buf, start, end);
        this.#requests.get(stream)?.read(this.#reader);
        break;
      case SeriesFrame.cancel:
        this.#requests.get(stream)?.cancel();
        break;
      default:
        throw new WireError(`a gateway sends no frame of type ${type} here`);
    }
  }

  #takePart(stream: number, buf: Buffer, start: number, end: number): void {
    if (this.#parts.length > 0 && stream !== this.#partsStream) {
      throw new WireError('parts of two requests at once');
    }
    this.#partsStream = stream;
    this.#partsBytes += end - start;
    if (this.#partsBytes > maxRequestBytes) throw new WireError('a request is too large');
    this.#parts.push(Buffer.from(buf.subarray(start, end)));
  }

  #takeRequest(stream: number, buf: Buffer, start: number, end: number): void {
    if (this.#parts.length === 0) {
      this.#run(stream, buf, start, end);
      return;
    }
    this.#takePart(stream, buf, start, end);
    const whole = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#partsBytes = 0;
    this.#run(stream, whole, 0, whole.length);
  }

  #run(stream: number, buf: Buffer, start: number, end: number): void {
    if (this.#requests.has(stream)) throw new WireError('two requests have one number');
    if (this.#requests.size >= maxStreams) {
      this.send(SeriesFrame.answer, stream, (writer) => {
        writeError(writer, new ThrottledError(throttledMs));
      });
      return;
    }
    const request = new ServedRequest(this, stream, firstCredit);
    this.#requests.set(stream, request);
    const bytes = end - start;
    this.#takenBytes += bytes;
    if (this.#takenBytes > maxTakenBytes) this.#pause(true);
    this.#reader.set(buf, start, end);
    request.begin(this.#reader, () => this.#taken(bytes));
  }

  /** The bytes of a request are of no more use. */
  #taken(bytes: number): void {
    this.#takenBytes -= bytes;
    if (this.#isPaused && this.#takenBytes <= maxTakenBytes) this.#pause(false);
  }

  #pause(isPaused: boolean): void {
    if (this.#isPaused === isPaused || this.isClosed) return;
    this.#isPaused = isPaused;
    this.#link.pause(isPaused);
  }

  over(stream: number): void {
    this.#requests.delete(stream);
  }

  readEnd(): void {}

  // ---- out

  get isFull(): boolean {
    return this.#link.unsentBytes > maxUnsentBytes;
  }

  whenFree(): Promise<void> {
    if (!this.isFull || this.isClosed) return Promise.resolve();
    return new Promise((resolve) => this.#drains.push(resolve));
  }

  drained(): void {
    for (const then of this.#drains.splice(0)) then();
  }

  send(type: number, stream: number, write: (payload: WireWriter) => void): void {
    const payload = new WireWriter(256);
    write(payload);
    this.sendPayload(type, stream, payload.view());
  }

  sendPayload(type: number, stream: number, payload: Buffer): void {
    if (this.isClosed) return;
    const frame = new WireWriter(payload.length + 64);
    writeFrame(frame, type, stream, payload);
    this.#link.send(frame.view());
  }

  sendPieces(stream: number, payload: Buffer): void {
    let at = 0;
    for (; payload.length - at > partBytes; at += partBytes) {
      this.sendPayload(SeriesFrame.piecesPart, stream, payload.subarray(at, at + partBytes));
    }
    this.sendPayload(SeriesFrame.pieces, stream, payload.subarray(at));
  }

  /** Ends the link: the gateway violates the protocol. */
  fail(error: Error): void {
    this.#link.close(error);
  }

  // ---- catalogs

  follow(follower: CatalogFollower): void {
    this.#followers.add(follower);
  }

  unfollow(follower: CatalogFollower): void {
    this.#followers.delete(follower);
  }

  /** Tells the gateway of catalogs that have changed. */
  tellCatalogs(isForced: boolean): void {
    for (const follower of this.#followers) void follower.tell(isForced);
  }

  async tellCatalog(group: number): Promise<void> {
    for (const follower of [...this.#followers]) {
      if (follower.group === group) await follower.tell(false);
    }
  }

  // ---- end

  close(): void {
    this.#link.close();
  }

  closed(): void {
    this.isClosed = true;
    for (const request of [...this.#requests.values()]) request.cancel();
    this.#parts = [];
    this.drained();
    this.#ended();
  }
}
