// TCP proxies between the nodes of a cluster on loopback. Each node advertises an address of its
// own at which its proxy listens; the dialling node is identified by the process at the other end
// of the connection. Blocked bytes from one node to another are delivered once the path is open
// again, as TCP does.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createConnection, createServer, type Server, type Socket } from 'node:net';

/** From each node's number to its process. */
type Processes = () => ReadonlyMap<number, number>;

interface Way {
  from: number;
  to: number;
  /** Where its bytes are read, and written. */
  source: Socket;
  target: Socket;
}

export class Proxies {
  readonly #processes: Processes;
  readonly #servers: Server[] = [];
  readonly #ways = new Set<Way>();
  /** `from>to` of ways on which nothing is delivered. */
  readonly #held = new Set<string>();
  /** Milliseconds that bytes take on a way. */
  readonly #delays = new Map<string, number>();

  constructor(processes: Processes) {
    this.#processes = processes;
  }

  /** Where the proxy of a node listens: any address of 127.0.0.0/8 is this machine's. */
  static host(node: number): string {
    return `127.0.2.${node}`;
  }

  async listen(node: number, ports: readonly number[]): Promise<void> {
    for (const port of ports) {
      const server = createServer({ pauseOnConnect: true }, (socket) =>
        this.#accept(socket, node, port),
      );
      this.#servers.push(server);
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, Proxies.host(node), resolve);
      });
    }
  }

  /** Blocks bytes from one node to another; connections stay open. */
  hold(from: number, to: number): void {
    this.#held.add(`${from}>${to}`);
    for (const way of this.#ways) this.#adjust(way);
  }

  delay(from: number, to: number, ms: number): void {
    this.#delays.set(`${from}>${to}`, ms);
  }

  /** Breaks all connections between two nodes. */
  reset(a: number, b: number): void {
    for (const { from, to, source, target } of this.#ways) {
      if ((from !== a || to !== b) && (from !== b || to !== a)) continue;
      source.resetAndDestroy();
      target.resetAndDestroy();
    }
  }

  /** All ways are open and fast again. */
  heal(): void {
    this.#held.clear();
    this.#delays.clear();
    for (const way of this.#ways) this.#adjust(way);
  }

  close(): void {
    for (const server of this.#servers) server.close();
    for (const { source, target } of this.#ways) {
      source.destroy();
      target.destroy();
    }
  }

  #accept(socket: Socket, to: number, port: number): void {
    const from = this.#dialler(socket.remotePort!);
    if (from === undefined) {
      socket.destroy();
      return;
    }
    const target = createConnection(port, '127.0.0.1');
    const ways = [
      { from, to, source: socket, target },
      { from: to, to: from, source: target, target: socket },
    ];
    for (const way of ways) {
      this.#ways.add(way);
      this.#carry(way);
    }
  }

  #carry(way: Way): void {
    const { source, target } = way;
    source.setNoDelay(true);
    source.on('data', (chunk) => {
      const ms = this.#delays.get(`${way.from}>${way.to}`) ?? 0;
      if (ms === 0) this.#pass(way, chunk);
      else setTimeout(() => this.#pass(way, chunk), ms);
    });
    target.on('drain', () => this.#adjust(way));
    source.on('end', () => target.end());
    source.on('error', () => target.destroy());
    source.on('close', () => {
      this.#ways.delete(way);
      target.destroy();
    });
    this.#adjust(way);
  }

  #pass(way: Way, chunk: Buffer): void {
    if (!way.target.write(chunk)) way.source.pause();
  }

  #adjust({ from, to, source, target }: Way): void {
    if (this.#held.has(`${from}>${to}`) || target.writableNeedDrain) source.pause();
    else source.resume();
  }

  /** The node whose process has the socket that this local port belongs to. */
  #dialler(port: number): number | undefined {
    const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
    const line = readFileSync('/proc/net/tcp', 'latin1')
      .split('\n')
      .map((one) => one.trim().split(/\s+/))
      .find(([, address]) => address?.endsWith(local));
    if (line === undefined) return undefined;
    const socket = `socket:[${line[9]}]`;
    for (const [node, pid] of this.#processes()) if (hasOpen(pid, socket)) return node;
    return undefined;
  }
}

function hasOpen(pid: number, link: string): boolean {
  try {
    const directory = `/proc/${pid}/fd`;
    return readdirSync(directory).some((fd) => {
      try {
        return readlinkSync(`${directory}/${fd}`) === link;
      } catch {
        // The connection was closed since the directory was read.
        return false;
      }
    });
  } catch {
    // The process has ended.
    return false;
  }
}
