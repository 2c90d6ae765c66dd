// PUBLISH across nodes. Each node has a link to every other one, on which it sends its clients'
// messages; a message reaches a node's subscribers at most once, in the order of its publisher, and
// not at all while there is no link, as in Redis Cluster. The frame:
//
//   varint tenant | u8 1 of a shard channel | bytes channel | bytes payload

import type { ClusterLink, LinkContext, LinkHandler } from '../../cluster-links/cluster-link.ts';
import type { LinkListener } from '../../cluster-links/cluster-listener.ts';
import type { dialLink } from '../../cluster-links/dial.ts';
import type { PublishedMessage } from '../../access/redis/fan-out.ts';
import { beginFrame, endFrame, maxFrameBytes } from '../../universal-row/protocol/frames.ts';
import { WireError, WireReader, WireWriter } from '../../universal-row/protocol/wire.ts';
import type { NodePlace } from './plane-machine.ts';

/** Handlers of other frames on these links. */
interface OtherFrames {
  frame(type: number, reader: WireReader): void;
  /** The node can receive more frames. */
  drained(node: number): void;
  /** The node reports no more, or begins anew: changes may have been missed. */
  interrupted(): void;
}

const purpose = 'messages';
const messageFrame = 80;
/** Bytes that a link has yet to send, beyond which messages to that node are dropped. */
const maxUnsentBytes = 16 * 1024 * 1024;
const retryMs = { first: 50, last: 1000 } as const;

export class ClusterMessages {
  /** Messages that a node was not sent, or that were too large. */
  dropped = 0;
  readonly #context: LinkContext;
  readonly #dial: typeof dialLink;
  readonly #heard: (tenant: number, message: PublishedMessage) => boolean;
  readonly #others: OtherFrames;
  readonly #outgoing = new Map<number, OutgoingLink>();
  readonly #writer = new WireWriter(4096);

  constructor(
    context: LinkContext,
    listener: LinkListener,
    dial: typeof dialLink,
    heard: (tenant: number, message: PublishedMessage) => boolean,
    others: OtherFrames,
  ) {
    this.#context = context;
    this.#dial = dial;
    this.#heard = heard;
    this.#others = others;
    listener.serve(purpose, { open: () => this.#incoming() });
  }

  setPlaces(places: ReadonlyMap<number, NodePlace>): void {
    for (const [node, link] of this.#outgoing) {
      if (link.isAt(places.get(node))) continue;
      link.close();
      this.#outgoing.delete(node);
    }
    for (const [node, place] of places) {
      if (this.#outgoing.has(node)) continue;
      const drained = (): void => this.#others.drained(node);
      this.#outgoing.set(node, new OutgoingLink(this.#context, this.#dial, node, place, drained));
    }
  }

  /** Sends a message of a client of this node to all others. */
  publish(tenant: number, { channel, payload, isSharded }: PublishedMessage): void {
    if (this.#outgoing.size === 0) return;
    if (channel.length + payload.length > maxFrameBytes - 64) {
      this.dropped += this.#outgoing.size;
      return;
    }
    const writer = this.#writer;
    const start = beginFrame(writer, messageFrame);
    writer.varint(tenant);
    writer.u8(isSharded ? 1 : 0);
    writer.bytes(channel);
    writer.bytes(payload);
    endFrame(writer, start);
    const frame = Buffer.from(writer.view());
    writer.reset(true);
    for (const link of this.#outgoing.values()) if (!link.send(frame)) this.dropped++;
  }

  /** Sends a frame to one node; false where that cannot be told now. */
  send(node: number, frame: Buffer, unsentBytes = maxUnsentBytes): boolean {
    return this.#outgoing.get(node)?.send(frame, unsentBytes) === true;
  }

  #incoming(): LinkHandler {
    const reader = new WireReader();
    this.#others.interrupted();
    return {
      frame: (type, _stream, buf, start, end) => {
        reader.set(buf, start, end);
        if (type !== messageFrame) {
          this.#others.frame(type, reader);
          return;
        }
        const tenant = reader.varint();
        const isSharded = reader.u8() === 1;
        // They may wait for slow subscribers.
        const channel = Buffer.from(reader.bytes());
        const payload = Buffer.from(reader.bytes());
        reader.done();
        if (!this.#heard(tenant, { channel, payload, isSharded })) this.dropped++;
      },
      drained: () => undefined,
      readEnd: () => undefined,
      closed: () => this.#others.interrupted(),
    };
  }

  close(): void {
    for (const link of this.#outgoing.values()) link.close();
    this.#outgoing.clear();
  }
}

/** The outgoing link to one node. It is dialled again when it ends. */
class OutgoingLink {
  readonly #context: LinkContext;
  readonly #dialLink: typeof dialLink;
  readonly #node: number;
  readonly #place: NodePlace;
  readonly #drained: () => void;
  #link: ClusterLink | undefined;
  #dial: { close(): void } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #retryMs: number = retryMs.first;
  #isClosed = false;

  constructor(
    context: LinkContext,
    dial: typeof dialLink,
    node: number,
    place: NodePlace,
    drained: () => void,
  ) {
    this.#drained = drained;
    this.#context = context;
    this.#dialLink = dial;
    this.#node = node;
    this.#place = place;
    this.#connect();
  }

  isAt(place: NodePlace | undefined): boolean {
    return place?.host === this.#place.host && place.port === this.#place.port;
  }

  #connect(): void {
    const target = { ...this.#place, purpose, node: String(this.#node) };
    this.#dial = this.#dialLink(this.#context, target, {
      open: (link) => {
        this.#link = link;
        this.#retryMs = retryMs.first;
        return {
          frame: (type) => {
            throw new WireError(`nothing of type ${type} comes back`);
          },
          drained: this.#drained,
          readEnd: () => undefined,
          closed: () => this.#again(),
        };
      },
      failed: () => this.#again(),
    });
  }

  #again(): void {
    this.#link = undefined;
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => this.#connect(), this.#retryMs);
    this.#retryMs = Math.min(this.#retryMs * 2, retryMs.last);
  }

  send(frame: Buffer, unsentBytes = maxUnsentBytes): boolean {
    if (this.#link === undefined || this.#link.unsentBytes > unsentBytes) return false;
    this.#link.send(frame);
    return true;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#dial?.close();
  }
}
