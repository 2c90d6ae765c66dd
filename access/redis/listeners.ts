// The sockets on which a Redis plane listens: its port, and a second one for TLS where that has a port of its own.

import { createServer, type AddressInfo, type Server } from 'node:net';
import { acceptHandles, acceptInSlices, type Arrival } from '../gateway/accepted-handles.ts';
import type { TlsListeners } from '../gateway/tls-context.ts';

/** How TLS is served. */
export interface RedisTls {
  listeners: TlsListeners;
  /** On the ordinary port, in place of plain connections. */
  onPort: boolean;
  /** A port for it beside the ordinary one; 0 for none. */
  ownPort: number;
}

export interface ListenerOptions {
  host: string;
  port: number;
  /** Connections that may wait to be accepted. */
  backlog: number;
  /** Absent where only plain connections are served. */
  tls?: RedisTls;
  /** Descriptors of bound sockets to listen on, in place of new ones; `tls` of the port of its own. */
  sockets?: { port: number; tls?: number | undefined } | undefined;
}

export class Listeners {
  /** 0 when there is none beside the ordinary one. */
  readonly tlsPort: number;
  readonly #host: string;
  readonly #backlog: number;
  readonly #plain: Server;
  readonly #tls: Server | undefined;
  readonly #sockets: ListenerOptions['sockets'];
  readonly #accept: (arrival: Arrival) => void;
  readonly #isPlainEncrypted: boolean;
  #port: number;

  constructor(
    { host, port, backlog, tls, sockets }: ListenerOptions,
    accept: (arrival: Arrival) => void,
  ) {
    this.#sockets = sockets;
    this.#accept = accept;
    this.#isPlainEncrypted = tls?.onPort === true;
    this.#host = host;
    this.#port = port;
    this.#backlog = backlog;
    this.#plain = tls?.onPort
      ? tls.listeners.createServer(accept)
      : createServer({ pauseOnConnect: true }, accept);
    this.tlsPort = tls?.ownPort ?? 0;
    if (tls !== undefined && tls.ownPort !== 0) this.#tls = tls.listeners.createServer(accept);
  }

  get host(): string {
    return this.#host;
  }

  get port(): number {
    return this.#port;
  }

  async listen(): Promise<void> {
    await this.#listenOn(this.#plain, this.#port, this.#sockets?.port);
    if (this.#tls !== undefined) await this.#listenOn(this.#tls, this.tlsPort, this.#sockets?.tls);
    this.#port = (this.#plain.address() as AddressInfo).port;
  }

  async #listenOn(listener: Server, port: number, fd: number | undefined): Promise<void> {
    const address = fd === undefined ? { host: this.#host, port } : { fd };
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject);
      listener.listen({ ...address, backlog: this.#backlog }, () => {
        listener.off('error', reject);
        // TLS is of the server's own sockets.
        if (listener !== this.#plain || this.#isPlainEncrypted) acceptInSlices(listener);
        else acceptHandles(listener, this.#accept);
        resolve();
      });
    });
  }

  close(): void {
    this.#plain.close();
    this.#tls?.close();
  }
}
