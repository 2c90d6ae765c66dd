// `Transport` over the links of a cluster. Of two nodes the one with the lower number dials, once for each lane.
//
// Sends never block: messages to an absent or slow peer are dropped, and the sender is notified.
// The control lane tells when a peer is silent; the other lanes end with it.

import type { ClusterLink, LinkContext, LinkHandler } from '../../../cluster-links/cluster-link.ts';
import type { LinkListener } from '../../../cluster-links/cluster-listener.ts';
import { dialLink } from '../../../cluster-links/dial.ts';
import { HelloError } from '../../../universal-row/protocol/hello.ts';
import type { LinkPeer } from '../../../universal-row/protocol/hello.ts';
import { LaneSocket } from './lane-socket.ts';
import type { LaneLimits } from './lane-socket.ts';
import { lanes, Peer } from './peer.ts';
import type { PeerAddress } from './peer.ts';
import { Lane } from './transport.ts';
import type { Transport, TransportListener } from './transport.ts';

interface TcpTransportOptions {
  /** Its links for `raft/*` are served here; others close it. */
  listener: LinkListener;
  /** Context of the listener; the identity's node is the number that `start` is given. */
  context: LinkContext;
  /** Opens a link; over sockets unless given. */
  dial?: typeof dialLink | undefined;
  limits?: Partial<LaneLimits>;
}

const defaultLimits: LaneLimits = {
  maxQueuedBytes: 8 * 1024 * 1024,
  maxMessageBytes: 68 * 1024 * 1024,
};
const redialMs = 50;
const purposes = ['raft/control', 'raft/append', 'raft/snapshot'] as const;

export class TcpTransport implements Transport {
  /** Messages that were not taken. */
  dropped = 0;
  readonly #options: TcpTransportOptions;
  readonly #limits: LaneLimits;
  readonly #peers = new Map<number, Peer>();
  readonly #unflushed = new Set<LaneSocket>();
  /** While a link is missing that this node makes. */
  #timer: NodeJS.Timeout | undefined;
  /** The number of this node; 0 before `start`. */
  #self = 0;
  #listener: TransportListener | undefined;

  constructor(options: TcpTransportOptions) {
    this.#options = options;
    this.#limits = { ...defaultLimits, ...options.limits };
  }

  /** Sets the peers. Nodes not in the map are refused; a removed one is disconnected. */
  setPeers(peers: ReadonlyMap<number, PeerAddress>): void {
    for (const [node, peer] of this.#peers) {
      if (peers.has(node)) continue;
      this.#peers.delete(node);
      this.#drop(peer, 'the node is a member no more');
    }
    for (const [node, address] of peers) {
      if (node === this.#self) continue;
      const peer = this.#peers.get(node);
      if (peer) peer.address = address;
      else this.#peers.set(node, new Peer(node, address));
    }
    this.#dialAll();
  }

  /** Why there is no link to a node; '' when there is one. */
  problem(node: number): string {
    const peer = this.#peers.get(node);
    if (peer === undefined) return 'the node is not known';
    return peer.isUp ? '' : peer.problem || 'not connected yet';
  }

  start({ node }: { node: number }, listener: TransportListener): void {
    const { context, listener: port } = this.#options;
    if (context.identity.node !== String(node)) {
      throw new RangeError(`links of node ${context.identity.node} for node ${node}`);
    }
    this.#self = node;
    this.#listener = listener;
    this.#peers.delete(node);
    for (const lane of lanes) {
      port.serve(purposes[lane], {
        keepsAlive: lane === Lane.control,
        admit: (peer) => void this.#recognise(peer),
        open: (link) => this.#establish(this.#recognise(link.peer), lane, link),
      });
    }
    this.#dialAll();
  }

  send(node: number, lane: Lane, bytes: Uint8Array): boolean {
    const socket = this.#peers.get(node)?.sockets[lane];
    const taken = socket?.send(bytes) ?? false;
    if (taken) this.#unflushed.add(socket!);
    else this.dropped++;
    return taken;
  }

  flush(): void {
    if (this.#unflushed.size === 0) return;
    for (const socket of this.#unflushed) socket.flush();
    this.#unflushed.clear();
  }

  close(): Promise<void> {
    this.#keepDialling(false);
    this.flush();
    if (this.#listener !== undefined) {
      this.#listener = undefined;
      for (const purpose of purposes) this.#options.listener.serve(purpose, undefined);
    }
    for (const peer of this.#peers.values()) {
      for (const lane of lanes) peer.sockets[lane]?.close();
    }
    return Promise.resolve();
  }

  #drop(peer: Peer, why: string): void {
    if (peer.drop(why)) this.#listener?.onDown(peer.node);
    this.#keepDialling(this.#listener !== undefined);
  }

  #dialAll(): void {
    if (this.#listener === undefined) return;
    const now = performance.now();
    let isWhole = true;
    for (const peer of this.#peers.values()) {
      if (peer.node <= this.#self) continue;
      for (const lane of lanes) {
        if (peer.sockets[lane] !== undefined) continue;
        isWhole = false;
        if (now >= peer.dialAt && !peer.dialing[lane]) this.#dial(peer, lane);
      }
    }
    this.#keepDialling(!isWhole);
  }

  #keepDialling(isWanted: boolean): void {
    if (isWanted === (this.#timer !== undefined)) return;
    clearInterval(this.#timer);
    this.#timer = isWanted ? setInterval(() => this.#dialAll(), redialMs).unref() : undefined;
  }

  #dial(peer: Peer, lane: Lane): void {
    peer.dialing[lane] = true;
    const { context, dial = dialLink } = this.#options;
    const target = {
      ...peer.address,
      purpose: purposes[lane],
      node: String(peer.node),
      keepsAlive: lane === Lane.control,
    };
    dial(context, target, {
      open: (link) => {
        peer.dialing[lane] = false;
        if (this.#listener === undefined || this.#peers.get(peer.node) !== peer) {
          throw new HelloError('the node is a member no more');
        }
        return this.#establish(peer, lane, link);
      },
      failed: ({ message }) => {
        peer.dialing[lane] = false;
        peer.failed(performance.now(), Math.random(), message);
      },
    });
  }

  #recognise(known: LinkPeer): Peer {
    const peer = this.#peers.get(Number(known.node));
    if (peer === undefined) throw new HelloError(`node ${known.node} is not a member`);
    if (peer.node >= this.#self) throw new HelloError('this node is the one that dials');
    if (known.incarnation < peer.incarnation) throw new HelloError('an earlier life of the node');
    return peer;
  }

  /** The handshake is over: the peer's identity is trusted from here on. */
  #establish(peer: Peer, lane: Lane, link: ClusterLink): LinkHandler {
    const { incarnation } = link.peer;
    if (incarnation < peer.incarnation) throw new HelloError('an earlier life of the node');
    if (incarnation > peer.incarnation) this.#drop(peer, 'the node was started again');
    peer.incarnation = incarnation;
    peer.connected();
    const socket = new LaneSocket(link, this.#limits, (bytes) =>
      this.#listener?.onMessage(peer.node, lane, bytes),
    );
    const before = peer.sockets[lane];
    peer.sockets[lane] = socket;
    before?.close(new Error('the node has made another link'));
    if (lane === Lane.control) this.#listener?.onUp(peer.node, incarnation);
    return {
      frame: (type, _stream, buf, start, end) => socket.received(type, buf, start, end),
      drained: () => socket.drained(),
      readEnd: nothing,
      closed: (error) => this.#lost(peer, lane, socket, error),
    };
  }

  #lost(peer: Peer, lane: Lane, socket: LaneSocket, error: Error | undefined): void {
    this.#unflushed.delete(socket);
    if (peer.sockets[lane] !== socket) return;
    peer.sockets[lane] = undefined;
    this.#keepDialling(this.#listener !== undefined);
    peer.failed(performance.now(), Math.random(), error?.message ?? 'the node closed the link');
    if (lane === Lane.control) {
      // Messages queued in the other lanes are useless for a node that is gone.
      peer.drop('the control lane ended');
      this.#listener?.onDown(peer.node);
    }
  }
}

function nothing(): void {}
