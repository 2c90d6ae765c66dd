// Two nodes over real sockets, and a proxy that holds up and cuts what they say.

import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { LinkContext } from '../../../cluster-links/cluster-link.ts';
import { ClusterListener } from '../../../cluster-links/cluster-listener.ts';
import { Random } from '../simulation/timeline.ts';
import type { PeerAddress } from './peer.ts';
import { TcpTransport } from './tcp-transport.ts';
import type { LaneLimits } from './lane-socket.ts';
import { Lane } from './transport.ts';
import { until } from '../../../test/support/until.ts';

const secret = Buffer.from('a secret of this test only');
const host = '127.0.0.1';
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

interface NodeOptions extends Partial<Omit<LinkContext, 'identity'>> {
  cluster?: number;
  incarnation?: number;
  limits?: Partial<LaneLimits>;
}

class Node {
  transport!: TcpTransport;
  listener!: ClusterListener;
  received: { node: number; lane: number; bytes: Buffer }[] = [];
  events: string[] = [];
  readonly number: number;

  constructor(number: number) {
    this.number = number;
  }

  async start({ cluster = 5, incarnation = 1, limits = {}, ...links }: NodeOptions = {}) {
    const identity = { cluster: String(cluster), node: String(this.number), incarnation, level: 1 };
    const context = { identity, secret, ...links };
    this.listener = new ClusterListener(context, () => undefined);
    this.transport = new TcpTransport({ listener: this.listener, context, limits });
    await this.listener.listen(host, 0);
    open.push(this.transport, this.listener);
    this.transport.start(
      { node: this.number },
      {
        onMessage: (node, lane, bytes) =>
          void this.received.push({ node, lane, bytes: Buffer.from(bytes) }),
        onUp: (node, life) => void this.events.push(`up ${node}.${life}`),
        onDown: (node) => void this.events.push(`down ${node}`),
      },
    );
    return this;
  }

  get address(): PeerAddress {
    return { host, port: this.listener.port };
  }

  say(to: number, lane: Lane, bytes: Uint8Array): boolean {
    const taken = this.transport.send(to, lane, bytes);
    this.transport.flush();
    return taken;
  }
}

const allUp = (a: Node, b: Node): boolean =>
  [Lane.control, Lane.append, Lane.snapshot].every(
    (lane) => a.say(b.number, lane, Buffer.alloc(0)) && b.say(a.number, lane, Buffer.alloc(0)),
  );

async function pair(options: NodeOptions = {}): Promise<[Node, Node]> {
  const a = await new Node(1).start(options);
  const b = await new Node(2).start(options);
  b.transport.setPeers(new Map([[1, a.address]]));
  a.transport.setPeers(new Map([[2, b.address]]));
  await until(() => allUp(a, b));
  await until(() => a.received.length >= 3 && b.received.length >= 3);
  a.received = [];
  b.received = [];
  return [a, b];
}

/** Passes bytes on, until it is told to hold them. */
class Proxy {
  isHolding = false;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, to: PeerAddress) {
    this.#server = server;
    server.on('connection', (near) => {
      const far = connect(to);
      const pass = (from: Socket, into: Socket): void => {
        this.#sockets.add(from);
        from.on('data', (chunk) => void (!this.isHolding && into.write(chunk)));
        from.on('error', () => undefined);
        from.on('close', () => into.destroy());
      };
      pass(near, far);
      pass(far, near);
    });
  }

  static async to(address: PeerAddress): Promise<Proxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, host, () => resolve()));
    const proxy = new Proxy(server, address);
    open.push(proxy);
    return proxy;
  }

  get address(): PeerAddress {
    return { host, port: (this.#server.address() as { port: number }).port };
  }

  /** Stops reading: what is sent piles up in buffers. */
  stall(): void {
    for (const socket of this.#sockets) socket.pause();
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

test('messages of every size arrive whole and in order, on each lane, both ways', async () => {
  // A busy machine is no silent peer: what was under way would be lost.
  const [a, b] = await pair({ limits: { maxQueuedBytes: 64 << 20 }, silenceMs: 60_000 });
  const random = new Random(3);
  const sizes = [0, 1, 100, 70_000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 20 << 20];
  const messages = sizes.map((size) => {
    const bytes = Buffer.alloc(size);
    for (let i = 0; i < size; i += 97) bytes[i] = random.below(256);
    return bytes;
  });
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    for (const lane of [Lane.control, Lane.append, Lane.snapshot]) {
      to.received = [];
      for (const bytes of messages) expect(from.say(to.number, lane, bytes)).toBe(true);
      await until(() => to.received.length === messages.length);
      for (const [i, got] of to.received.entries()) {
        expect(got.node).toBe(from.number);
        expect(got.lane).toBe(lane);
        expect(got.bytes.equals(messages[i]!)).toBe(true);
      }
    }
  }
});

describe('a link is refused', () => {
  test.each([
    ['without the secret', { secret: Buffer.from('another secret altogether') }, 'secret'],
    ['of another cluster', { cluster: 6 }, 'of another cluster'],
  ])('%s', async (_what, other, reason) => {
    const a = await new Node(1).start(other);
    const b = await new Node(2).start();
    b.transport.setPeers(new Map([[1, a.address]]));
    a.transport.setPeers(new Map([[2, b.address]]));
    await until(() => a.transport.problem(2).includes(reason));
    expect(a.events).toEqual([]);
    expect(b.events).toEqual([]);
    expect(a.say(2, Lane.control, Buffer.alloc(1))).toBe(false);
  });

  test('to a node that is no member, and to an earlier life of one', async () => {
    const b = await new Node(2).start();
    const a = await new Node(1).start({ incarnation: 7 });
    a.transport.setPeers(new Map([[2, b.address]]));
    await until(() => a.transport.problem(2).includes('not a member'));
    b.transport.setPeers(new Map([[1, a.address]]));
    await until(() => b.events.length > 0);
    const ghost = await new Node(1).start({ incarnation: 6 });
    ghost.transport.setPeers(new Map([[2, b.address]]));
    await until(() => ghost.transport.problem(2).includes('an earlier life'));
    expect(b.events).toEqual(['up 1.7']);
  });
});

test('a new life of a node ends the links of the one before', async () => {
  const [a, b] = await pair();
  const next = await new Node(1).start({ incarnation: 2 });
  next.transport.setPeers(new Map([[2, b.address]]));
  await until(() => b.events.includes('up 1.2'));
  expect(b.events).toEqual(['up 1.1', 'down 1', 'up 1.2']);
  await until(() => a.transport.problem(2).includes('an earlier life'));
});

describe('behind a proxy', () => {
  async function proxied(options: NodeOptions): Promise<[Node, Node, Proxy]> {
    const a = await new Node(1).start(options);
    const b = await new Node(2).start(options);
    const proxy = await Proxy.to(b.address);
    b.transport.setPeers(new Map([[1, a.address]]));
    a.transport.setPeers(new Map([[2, proxy.address]]));
    await until(() => allUp(a, b));
    return [a, b, proxy];
  }

  test('a link that is cut comes back', async () => {
    const [a, b, proxy] = await proxied({});
    proxy.cut();
    await until(() => a.events.length >= 3 && b.events.length >= 3);
    expect(a.events).toEqual(['up 2.1', 'down 2', 'up 2.1']);
    await until(() => allUp(a, b));
  });

  test('a node that is silent is taken for gone, and nothing is sent to it', async () => {
    const [a, b, proxy] = await proxied({ silenceMs: 600, helloMs: 300 });
    proxy.isHolding = true;
    await until(() => a.events.includes('down 2') && b.events.includes('down 1'));
    expect(a.say(2, Lane.append, Buffer.alloc(10))).toBe(false);
    proxy.isHolding = false;
    await until(() => allUp(a, b));
  });

  test('to one that does not read, messages are dropped beyond a bound, others are not', async () => {
    const maxQueuedBytes = 1 << 20;
    const [a, , proxy] = await proxied({ silenceMs: 60_000, limits: { maxQueuedBytes } });
    const c = await new Node(3).start();
    c.transport.setPeers(new Map([[1, a.address]]));
    a.transport.setPeers(
      new Map([
        [2, proxy.address],
        [3, c.address],
      ]),
    );
    await until(() => allUp(a, c));
    proxy.stall();
    const message = Buffer.alloc(100_000);
    let taken = 0;
    for (let i = 0; i < 1000; i++) if (a.say(2, Lane.append, message)) taken++;
    // The capacity of the kernel's buffers, and of the queue.
    expect(taken).toBeLessThan(200);
    expect(a.transport.dropped).toBeGreaterThan(0);
    expect(a.say(3, Lane.append, message)).toBe(true);
    await until(() => c.received.some(({ bytes }) => bytes.length === message.length));
  });
});
