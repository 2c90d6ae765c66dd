// Connections between the nodes of a history. As over TCP nothing is lost or overtaken: what a cut holds up arrives once it
// is over, even if the sender has closed its end meanwhile.

import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import {
  ClusterLink,
  type LinkContext,
  type LinkService,
} from '../../cluster-links/cluster-link.ts';
import type { dialLink } from '../../cluster-links/dial.ts';
import {
  ClientHandshake,
  HelloError,
  nonceBytes,
  ServerHandshake,
} from '../../universal-row/protocol/hello.ts';
import type { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import type { OwnedTimeline, Owner } from './owned-timeline.ts';

/** One end of each connection. */
export interface Host {
  readonly number: number;
  readonly owner: Owner;
  readonly context: LinkContext;
  /** By their purpose. */
  readonly services: Map<string, LinkService>;
  /** Between pings of its links. Links with the same interval share a timer, which would be that of one process. */
  readonly pingMs: number;
  /** What its sockets do, once the process gets to it. */
  soon(act: () => void): void;
}

export interface WireWorld {
  readonly timeline: OwnedTimeline;
  readonly random: Random;
  /** Undefined where the process has ended. */
  hostOf(node: number): Host | undefined;
  isCut(from: number, to: number): boolean;
  delay(): number;
}

const cutPollMs = 10;

/** One direction. */
class Way {
  readonly #world: WireWorld;
  readonly #from: number;
  readonly #to: number;
  readonly #queue: { at: number; act: () => void }[] = [];
  #isScheduled = false;
  #lastAt = 0;

  constructor(world: WireWorld, from: number, to: number) {
    this.#world = world;
    this.#from = from;
    this.#to = to;
  }

  send(act: () => void): void {
    const { timeline, random } = this.#world;
    this.#lastAt = Math.max(this.#lastAt, timeline.now + random.next() * this.#world.delay());
    this.#queue.push({ at: this.#lastAt, act });
    this.#schedule(this.#lastAt - timeline.now);
  }

  #schedule(ms: number): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const { timeline } = this.#world;
    // Bytes under way are no process's.
    timeline.as(undefined, () => timeline.after(ms, () => this.#deliver()));
  }

  #deliver(): void {
    this.#isScheduled = false;
    const { timeline } = this.#world;
    if (this.#world.isCut(this.#from, this.#to)) {
      this.#schedule(cutPollMs);
      return;
    }
    while (this.#queue.length > 0 && this.#queue[0]!.at <= timeline.now) this.#queue.shift()!.act();
    if (this.#queue.length > 0) this.#schedule(this.#queue[0]!.at - timeline.now);
  }
}

/** What a link uses of a socket. */
class Wire extends EventEmitter {
  readonly host: Host;
  readonly encrypted = true;
  readonly writableLength = 0;
  readonly writableHighWaterMark = 64 * 1024;
  readonly #way: Way;
  peer: Wire | undefined;
  link: ClusterLink | undefined;
  destroyed = false;
  #isPaused = false;
  readonly #held: Buffer[] = [];

  constructor(host: Host, way: Way) {
    super();
    this.host = host;
    this.#way = way;
  }

  write(bytes: Buffer): boolean {
    if (this.destroyed) return false;
    const copy = Buffer.from(bytes);
    const to = this.peer!;
    this.#way.send(() => to.host.soon(() => to.#received(copy)));
    return true;
  }

  #received(bytes: Buffer): void {
    if (this.destroyed) return;
    if (this.#isPaused) this.#held.push(bytes);
    else this.link!.receive(bytes, bytes.length);
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    for (const bytes of this.#held.splice(0)) this.#received(bytes);
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.end();
  }

  destroySoon(): void {
    this.destroy();
  }

  /** The other end hears that this one has ended. */
  end(): void {
    const to = this.peer!;
    this.#way.send(() =>
      to.host.soon(() => {
        if (to.destroyed) return;
        to.destroyed = true;
        to.emit('close');
      }),
    );
  }
}

export class Wires {
  readonly #world: WireWorld;
  readonly #wires = new Set<Wire>();

  constructor(world: WireWorld) {
    this.#world = world;
  }

  /** The kernel of a process that has ended closes its connections. */
  ended(host: Host): void {
    for (const wire of this.#wires) {
      if (wire.host !== host) continue;
      if (!wire.destroyed) wire.end();
      wire.destroyed = true;
    }
  }

  /** The history is over. Links of processes that have ended still have their timers, which would keep all they know. */
  close(): void {
    for (const { link } of this.#wires) link?.close();
  }

  dialFor(client: Host): typeof dialLink {
    return (context, { port: to, purpose, keepsAlive }, listener) => {
      const { timeline } = this.#world;
      let isOver = false;
      let link: ClusterLink | undefined;
      const failed = (error: Error): void => {
        if (isOver) return;
        isOver = true;
        listener.failed(error);
      };
      const there = new Way(this.#world, client.number, to);
      const back = new Way(this.#world, to, client.number);
      there.send(() => {
        const server = this.#world.hostOf(to);
        if (server === undefined) {
          back.send(() => client.soon(() => failed(new Error('refused'))));
          return;
        }
        const [near, far] = [new Wire(client, there), new Wire(server, back)];
        near.peer = far;
        far.peer = near;
        for (const wire of [near, far]) this.#wires.add(wire);
        near.on('close', () => failed(new Error('the node closed the connection')));
        server.soon(() => {
          far.link = accepted(far);
          back.send(() =>
            client.soon(() => {
              if (isOver) {
                near.destroy();
                return;
              }
              const handshake = new ClientHandshake({
                identity: { ...context.identity, purpose },
                secret: context.secret,
                nonce: Buffer.alloc(nonceBytes, 1),
              });
              link = new ClusterLink({
                socket: near as unknown as Socket,
                handshake,
                silenceMs: undefined,
                pingMs: client.pingMs,
                serviceFor: () => ({
                  keepsAlive,
                  open: (opened) => {
                    isOver = true;
                    return listener.open(opened);
                  },
                }),
                ended: (_link, error) => failed(error ?? new Error('closed')),
              });
              near.link = link;
            }),
          );
        });
      });
      timeline.after(context.helloMs ?? 5000, () => {
        if (isOver) return;
        if (link === undefined) failed(new Error('no answer in time'));
        else link.close(new Error('no answer in time'));
      });
      return {
        close: () => {
          if (link !== undefined) link.close();
          else failed(new Error('given up'));
        },
      };
    };
  }
}

function accepted(wire: Wire): ClusterLink {
  const { context, services } = wire.host;
  return new ClusterLink({
    socket: wire as unknown as Socket,
    handshake: new ServerHandshake({
      identity: { ...context.identity, purpose: '' },
      secret: context.secret,
      nonce: Buffer.alloc(nonceBytes, 2),
    }),
    silenceMs: undefined,
    pingMs: wire.host.pingMs,
    serviceFor: ({ purpose }) => {
      const service = services.get(purpose);
      if (service === undefined) throw new HelloError(`links for ${purpose} are not served here`);
      return service;
    },
    ended: () => undefined,
  });
}
