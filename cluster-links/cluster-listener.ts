// The port on which a thread accepts links of other processes of its cluster. The purpose of a link
// selects its service.

import { randomBytes } from 'node:crypto';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls';
import { viewed } from '../universal-row/bytes.ts';
import {
  HelloError,
  type LinkPeer,
  nonceBytes,
  refusalFrame,
  ServerHandshake,
} from '../universal-row/protocol/hello.ts';
import {
  ClusterLink,
  defaultHelloMs,
  type LinkContext,
  type LinkService,
  minSecretBytes,
} from './cluster-link.ts';
import { asksForTls, encryptionProblem, isLoopback, serverEncryption } from './encryption.ts';
import { moveToSharedReads } from './shared-buffer.ts';

type LinkReport = (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;

/**
 * Limit of unauthenticated links: only the cluster's own processes connect here. A further one ends the oldest, so that
 * silent connections do not keep a process of the cluster out: it is authenticated within a few round trips.
 */
const maxStrangers = 64;
/** Further refusals within this time are counted, not reported. */
const reportMs = 1000;

interface Stranger {
  readonly key: string;
  socket: Socket;
  timer: NodeJS.Timeout | undefined;
}

/** A listener as its services see it. */
export type LinkListener = Pick<ClusterListener, 'serve' | 'close'>;

export class ClusterListener {
  /** Links that ended before their peer was authenticated. */
  refused = 0;
  readonly #context: LinkContext;
  readonly #report: LinkReport;
  readonly #server: Server;
  readonly #tls: TlsServer;
  readonly #services = new Map<string, LinkService>();
  readonly #links = new Set<ClusterLink>();
  /**
   * Sockets before the end of their handshake, by their addresses, with the timer that closes them.
   */
  readonly #strangers = new Map<string, Stranger>();
  #reportAt = 0;

  constructor(context: LinkContext, report: LinkReport) {
    if (context.secret.length < minSecretBytes) {
      throw new RangeError(`the secret of a cluster has at least ${minSecretBytes} bytes`);
    }
    this.#context = context;
    this.#report = report;
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
    this.#tls = createTlsServer(serverEncryption(context.secret));
    this.#tls.on('secureConnection', (socket) => {
      const link = this.#begin(socket, this.#strangers.get(keyOf(socket)));
      // By views values are copied out of it faster.
      socket.on('data', (chunk: Buffer) => link.receive(viewed(chunk), chunk.length));
    });
    this.#tls.on('tlsClientError', (error, socket) => {
      this.#refusedOne(socket.remoteAddress, encryptionProblem(error));
      socket.destroy();
    });
  }

  /** Has links of a purpose served; until then they are refused. Undefined serves them no more. */
  serve(purpose: string, service: LinkService | undefined): void {
    if (service === undefined) this.#services.delete(purpose);
    else this.#services.set(purpose, service);
  }

  /** Resolves when the listener is bound; rejects if it cannot bind the address. Port 0 selects a free port. */
  listen(host: string, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => {
        this.#server.off('error', reject);
        // Out of file descriptors: the peer dials again.
        this.#server.on('error', ({ message }) => this.#report('warn', message));
        resolve();
      });
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo | null)?.port ?? 0;
  }

  /** Links after their handshake. */
  get links(): number {
    let count = 0;
    for (const { known } of this.#links) if (known !== undefined) count++;
    return count;
  }

  #accept(socket: Socket): void {
    socket.on('error', () => undefined);
    // The peer has reset the connection meanwhile: a socket without addresses would have the key of another one.
    if (socket.remoteAddress === undefined) {
      this.#refusedOne(undefined, 'it ended');
      socket.destroy();
      return;
    }
    const key = keyOf(socket);
    const former = this.#strangers.get(key);
    // Only a connection that has ended leaves its addresses to another one.
    if (former !== undefined) this.#dismiss(former, 'it ended');
    if (this.#strangers.size >= maxStrangers) {
      const [oldest] = this.#strangers.values();
      this.#dismiss(oldest!, 'too many others came before its hello');
    }
    const stranger: Stranger = { key, socket, timer: undefined };
    stranger.timer = setTimeout(
      () => this.#dismiss(stranger, 'no hello in time'),
      this.#context.helloMs ?? defaultHelloMs,
    );
    stranger.timer.unref();
    this.#strangers.set(key, stranger);
    socket.on('close', () => this.#forget(stranger));
    socket.once('data', (first: Buffer) => {
      if (asksForTls(first)) this.#encrypt(socket, first);
      else if (this.#mayBePlain(socket)) this.#beginPlain(socket, stranger, first);
      else this.#refusePlain(socket);
    });
  }

  #dismiss(stranger: Stranger, why: string): void {
    const { socket } = stranger;
    this.#forget(stranger);
    this.#refusedOne(socket.remoteAddress, why);
    socket.destroy();
  }

  #mayBePlain({ localAddress, remoteAddress }: Socket): boolean {
    const { encryption = 'remote' } = this.#context;
    return encryption === 'remote' && isLoopback(localAddress) && isLoopback(remoteAddress);
  }

  #refusePlain(socket: Socket): void {
    this.#refusedOne(socket.remoteAddress, 'the link is not encrypted');
    socket.end(refusalFrame('links to this node have to be encrypted'));
  }

  #encrypt(socket: Socket, first: Buffer): void {
    socket.pause();
    socket.unshift(first);
    this.#tls.emit('connection', socket);
  }

  /** Called when the link was authenticated or has ended. */
  #forget(stranger: Stranger): void {
    clearTimeout(stranger.timer);
    if (this.#strangers.get(stranger.key) === stranger) this.#strangers.delete(stranger.key);
  }

  #refusedOne(address: string | undefined, why: string): void {
    this.refused++;
    const now = performance.now();
    if (now < this.#reportAt) return;
    this.#reportAt = now + reportMs;
    this.#report('warn', `a link from ${address ?? 'somewhere'} was refused: ${why}`);
  }

  #beginPlain(accepted: Socket, stranger: Stranger, first: Buffer): void {
    const socket = moveToSharedReads(accepted, (chunk, length) => link.receive(chunk, length));
    stranger.socket = socket;
    const link = this.#begin(socket, stranger);
    link.receive(first, first.length);
  }

  /** `stranger` is undefined if the peer is gone already. */
  #begin(socket: Socket, stranger: Stranger | undefined): ClusterLink {
    const { identity, secret, silenceMs } = this.#context;
    const address = socket.remoteAddress;
    const link = new ClusterLink({
      socket,
      silenceMs,
      handshake: new ServerHandshake({
        identity: { ...identity, purpose: '' },
        secret,
        nonce: randomBytes(nonceBytes),
      }),
      serviceFor: (peer) => {
        const service = this.#serviceFor(peer);
        if (stranger !== undefined) this.#forget(stranger);
        return service;
      },
      ended: ({ known }, error) => {
        this.#links.delete(link);
        if (known === undefined) this.#refusedOne(address, error?.message ?? 'it ended');
        else if (error !== undefined) {
          const { node, purpose } = known;
          this.#report('warn', `the link of node ${node} for ${purpose} ended: ${error.message}`);
        }
      },
    });
    this.#links.add(link);
    return link;
  }

  #serviceFor({ purpose }: LinkPeer): LinkService {
    const service = this.#services.get(purpose);
    if (service === undefined) throw new HelloError(`links for ${purpose} are not served here`);
    return service;
  }

  /** Ends all links. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const link of this.#links) link.close();
    for (const { socket } of this.#strangers.values()) socket.destroy();
    await closed;
  }
}

/** One of its own among open connections. */
function keyOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}
