// TLS for a listener: its context, the renewal of its certificate at run time, and limits on
// clients that never finish a handshake.
//
// A handshake costs the server far more than the client, and is done before a client has logged in.
// So handshakes have a deadline, and beyond a number of concurrent ones the oldest, of the address
// with the most of them, is closed for a new one.

import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import type { IncomingMessage, ServerOptions as HttpOptions, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';
import { PendingClients } from './pending-clients.ts';

export interface TlsMaterial {
  /** PEM: the server's certificate, followed by intermediate certificates. */
  certificate: string;
  /** PEM. */
  key: string;
  /** PEM: authorities that sign client certificates; empty for the authorities that Node includes. */
  authorities: string;
  /** Whether a client must present a certificate. A certificate that is presented must always be valid. */
  clientAuth: 'no' | 'optional' | 'require';
  minVersion: 'TLSv1.2' | 'TLSv1.3';
}

export interface HandshakeLimits {
  timeoutMs: number;
  /** Limit of handshakes in progress on one listener. */
  maxPending: number;
}

const defaultLimits: HandshakeLimits = { timeoutMs: 10_000, maxPending: 512 };

/** Creates the TLS listeners of a thread, and renews their certificate. */
export class TlsListeners {
  readonly #limits: HandshakeLimits;
  readonly #servers: Server[] = [];
  #material: TlsMaterial;

  constructor(material: TlsMaterial, limits: Partial<HandshakeLimits> = {}) {
    this.#material = material;
    this.#limits = { ...defaultLimits, ...limits };
  }

  /** Creates a server that calls `accept` for each client after its handshake. */
  createServer(accept: (socket: TLSSocket) => void): Server {
    return this.#guarded(createServer(optionsOf(this.#material, this.#limits), accept));
  }

  createHttpServer(
    options: HttpOptions,
    serve: (request: IncomingMessage, response: ServerResponse) => void,
  ): HttpsServer {
    const all = { ...options, ...optionsOf(this.#material, this.#limits) };
    return this.#guarded(createHttpsServer(all, serve));
  }

  /** New connections use the new certificate; existing connections keep the old one. */
  renew(material: TlsMaterial): void {
    const context = contextOf(material);
    this.#material = material;
    for (const server of this.#servers) server.setSecureContext(context);
  }

  #guarded<S extends Server>(server: S): S {
    guard(server, this.#limits.maxPending);
    this.#servers.push(server);
    return server;
  }
}

/** Options for `createSecureContext`, which throws when certificate and key do not match. */
export function contextOf(material: TlsMaterial): SecureContextOptions {
  const { certificate, key, authorities, minVersion } = material;
  return { cert: certificate, key, minVersion, ...(authorities === '' ? {} : { ca: authorities }) };
}

function optionsOf(material: TlsMaterial, limits: HandshakeLimits) {
  return {
    ...contextOf(material),
    requestCert: material.clientAuth !== 'no',
    rejectUnauthorized: material.clientAuth === 'require',
    handshakeTimeout: limits.timeoutMs,
  };
}

type Listener = (this: Server, socket: Socket) => void;

/** Puts itself between the events of a server and its listeners. */
function guard(server: Server, maxPending: number): void {
  const pending = new PendingClients<Socket>();
  // The listener of `secureConnection` receives another socket than that of `connection`.
  const byPeer = new Map<string, Socket>();

  intercept(server, 'connection', (socket, pass) => {
    if (pending.size >= maxPending) pending.victim(() => false)?.destroy();
    const peer = peerOf(socket);
    const forget = (): void => {
      pending.delete(socket);
      if (byPeer.get(peer) === socket) byPeer.delete(peer);
    };
    pending.add(socket, socket.remoteAddress ?? '?');
    byPeer.set(peer, socket);
    socket.once('close', forget);
    pass();
  });
  intercept(server, 'secureConnection', (socket, pass) => {
    const client = socket as TLSSocket;
    const raw = byPeer.get(peerOf(client));
    if (raw !== undefined) pending.delete(raw);
    // A certificate without a known authority is worse than none, even where none is asked for.
    if (!client.authorized && isShown(client)) {
      client.destroy();
      return;
    }
    // A client of TLS 1.2 could have all the costly part of a handshake done again and again.
    client.disableRenegotiation();
    pass();
  });
  server.prependListener('tlsClientError', (_error, socket) => socket.destroy());
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function isShown(client: TLSSocket): boolean {
  return Object.keys(client.getPeerCertificate() ?? {}).length > 0;
}

function intercept(
  server: Server,
  event: 'connection' | 'secureConnection',
  decide: (socket: Socket, pass: () => void) => void,
): void {
  const listeners = server.listeners(event) as Listener[];
  server.removeAllListeners(event);
  server.on(event, (socket: Socket) =>
    decide(socket, () => {
      for (const listener of listeners) listener.call(server, socket);
    }),
  );
}
