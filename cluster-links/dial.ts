// Connects a process to another process of its cluster.

import { randomBytes } from 'node:crypto';
import { lookup } from 'node:dns';
import { isIP, Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ClientHandshake, HelloError, nonceBytes } from '../universal-row/protocol/hello.ts';
import {
  ClusterLink,
  defaultHelloMs,
  type LinkContext,
  type LinkHandler,
  type LinkService,
} from './cluster-link.ts';
import { clientEncryption, encryptionProblem, isLoopback } from './encryption.ts';
import { sharedReads } from './shared-buffer.ts';

interface DialTarget {
  host: string;
  port: number;
  purpose: string;
  /** Node that must answer; undefined for any node of the cluster. */
  node?: string | undefined;
  keepsAlive?: boolean | undefined;
}

/** Receives the outcome of a dial: exactly one of the two is called, once. */
interface DialListener {
  /** The handshake succeeded. A `HelloError` thrown here ends the link and is passed to `failed`. */
  open(link: ClusterLink): LinkHandler;
  failed(error: Error): void;
}

/** Never throws. `close` gives it up, or closes the link. */
export function dialLink(
  context: LinkContext,
  target: DialTarget,
  listener: DialListener,
): { close(): void } {
  const dial = new Dial(context, target, listener);
  dial.start();
  return dial;
}

class Dial implements LinkService {
  readonly keepsAlive: boolean | undefined;
  readonly #context: LinkContext;
  readonly #target: DialTarget;
  readonly #listener: DialListener;
  readonly #timer: NodeJS.Timeout;
  #socket: Socket | undefined;
  #link: ClusterLink | undefined;
  /** Whether the caller has received the outcome. */
  #isOver = false;

  constructor(context: LinkContext, target: DialTarget, listener: DialListener) {
    this.#context = context;
    this.#target = target;
    this.#listener = listener;
    this.keepsAlive = target.keepsAlive;
    this.#timer = setTimeout(
      () => this.#failed(new HelloError('no answer in time')),
      context.helloMs ?? defaultHelloMs,
    );
    this.#timer.unref();
  }

  start(): void {
    const { host } = this.#target;
    if (isIP(host) !== 0) {
      this.#connect(host);
      return;
    }
    lookup(host, (error, address) => {
      if (error !== null) this.#failed(error);
      else this.#connect(address);
    });
  }

  close(): void {
    if (this.#link !== undefined) this.#link.close();
    else this.#failed(new HelloError('given up'));
  }

  #connect(host: string): void {
    if (this.#isOver) return;
    const { encryption = 'remote', secret } = this.#context;
    const { port } = this.#target;
    if (encryption === 'remote' && isLoopback(host)) {
      const socket = new Socket(sharedReads((chunk, length) => this.#link?.receive(chunk, length)));
      this.#watch(socket, ({ message }) => message);
      socket.connect(port, host, () => this.#begin(socket));
      return;
    }
    const socket = connectTls({ host, port, ...clientEncryption(secret) });
    this.#watch(socket, encryptionProblem);
    socket.on('data', (chunk: Buffer) => this.#link?.receive(chunk, chunk.length));
    socket.once('secureConnect', () => this.#begin(socket));
  }

  #watch(socket: Socket, problem: (error: Error) => string): void {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('error', (error) => {
      if (this.#link === undefined) this.#failed(new Error(problem(error)));
    });
    socket.on('close', () => {
      if (this.#link === undefined) this.#failed(new Error('the node closed the connection'));
    });
  }

  #begin(socket: Socket): void {
    if (this.#isOver) return;
    const { identity, secret, silenceMs } = this.#context;
    const handshake = new ClientHandshake({
      identity: { ...identity, purpose: this.#target.purpose },
      secret,
      nonce: randomBytes(nonceBytes),
    });
    this.#link = new ClusterLink({
      socket,
      handshake,
      silenceMs,
      serviceFor: () => this,
      ended: (_link, error) => this.#failed(error ?? new Error('the node closed the connection')),
    });
  }

  open(link: ClusterLink): LinkHandler {
    const { node } = this.#target;
    if (node !== undefined && link.peer.node !== node) {
      throw new HelloError(`that is node ${link.peer.node}, not ${node}`);
    }
    const handler = this.#listener.open(link);
    this.#isOver = true;
    clearTimeout(this.#timer);
    return handler;
  }

  #failed(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#socket?.destroy();
    this.#listener.failed(error);
  }
}
