// A network between client and server that can be cut, can stall, and can break at a given message.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

export class TcpProxy {
  readonly #server: Server;
  readonly #target: number;
  readonly #pairs = new Set<[Socket, Socket]>();
  #state: 'open' | 'cut' | 'stalled' = 'open';
  /** Sees what clients send, a chunk at a time. `cut` cuts before the chunk goes on. */
  onRequest: ((chunk: Buffer) => 'cut' | undefined) | undefined;
  /** As `onRequest`, of what comes back. */
  onReply: ((chunk: Buffer) => 'cut' | undefined) | undefined;

  private constructor(server: Server, target: number) {
    this.#server = server;
    this.#target = target;
  }

  static async start(target: number): Promise<TcpProxy> {
    const server = createServer();
    const proxy = new TcpProxy(server, target);
    server.on('connection', (socket) => proxy.#accept(socket));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connections break, and new ones are closed at once. */
  cut(): void {
    this.#state = 'cut';
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }

  /** Nothing gets through and nothing is told, as when packets are dropped. */
  stall(): void {
    this.#state = 'stalled';
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  open(): void {
    this.#state = 'open';
    for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  async close(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    if (this.#state === 'cut') {
      client.destroy();
      return;
    }
    const server = connect(this.#target, '127.0.0.1');
    const pair: [Socket, Socket] = [client, server];
    this.#pairs.add(pair);
    const pass = (from: Socket, to: Socket, look: (chunk: Buffer) => 'cut' | undefined) => {
      from.on('data', (chunk: Buffer) => {
        if (look(chunk) === 'cut') this.cut();
        else to.write(chunk);
      });
      from.on('error', () => {});
      from.on('close', () => {
        to.destroy();
        this.#pairs.delete(pair);
      });
    };
    pass(client, server, (chunk) => this.onRequest?.(chunk));
    pass(server, client, (chunk) => this.onReply?.(chunk));
    if (this.#state === 'stalled') for (const socket of pair) socket.pause();
  }
}
