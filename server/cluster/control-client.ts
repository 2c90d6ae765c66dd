// Client for the control planes of other nodes. Each node has at most one link, opened by the first question and reopened
// after it is lost.

import type { ClusterLink, LinkContext, LinkHandler } from '../../cluster-links/cluster-link.ts';
import { dialLink } from '../../cluster-links/dial.ts';
import { WireError } from '../../universal-row/protocol/wire.ts';
import { ControlError } from './cluster-metadata.ts';
import { ControlFrame, maxBodyBytes, questionFrame, readRefusal } from './control-frames.ts';

export interface ControlAddress {
  host: string;
  port: number;
}

/** Questions to one node without an answer, and their bytes that have not left. */
const maxQuestions = 1000;
const maxUnsentBytes = 32 * 1024 * 1024;
/** After a link that could not be made, questions fail at once for so long. */
const backoffMs = { first: 50, last: 1000 } as const;

interface Question {
  id: number;
  frame: Buffer;
  isSent: boolean;
  resolve: (answer: Buffer) => void;
  reject: (error: ControlError) => void;
  timer: NodeJS.Timeout;
}

/** The link to one address, and the questions sent on it. */
export class ControlConnection implements LinkHandler {
  readonly address: ControlAddress;
  readonly #context: LinkContext;
  readonly #purpose: string;
  /** Node that must answer; undefined for any node of the cluster. */
  readonly #node: string | undefined;
  readonly #questions = new Map<number, Question>();
  #nextId = 1;
  #dial: { close(): void } | undefined;
  #link: ClusterLink | undefined;
  #problem = '';
  #dialAt = 0;
  #backoffMs: number = backoffMs.first;
  #isClosed = false;

  constructor(context: LinkContext, address: ControlAddress, purpose: string, node?: number) {
    this.#context = context;
    this.address = address;
    this.#purpose = purpose;
    this.#node = node === undefined ? undefined : String(node);
  }

  /** Asks a question. Rejects with a `ControlError`, at the latest after `ms` milliseconds. */
  ask(name: string, body: Uint8Array, ms: number): Promise<Buffer> {
    const why = this.#whyNot(body);
    if (why !== undefined) return Promise.reject(new ControlError(why, 'unreachable'));
    return new Promise<Buffer>((resolve, reject) => {
      const id = this.#nextId++ % 2 ** 32;
      const frame = questionFrame(id, name, body);
      const timer = setTimeout(() => this.#lateFor(id), Math.max(0, ms));
      this.#questions.set(id, { id, frame, isSent: false, resolve, reject, timer });
      this.#send();
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#dial?.close();
    this.#lost('the link is closed');
  }

  #whyNot(body: Uint8Array): string | undefined {
    if (this.#isClosed) return 'the link is closed';
    if (body.length > maxBodyBytes) return 'the question is too large';
    if (this.#questions.size >= maxQuestions) return 'too many questions at once';
    if ((this.#link?.unsentBytes ?? 0) > maxUnsentBytes) return 'the node is slow to read';
    const isDown = this.#link === undefined && this.#dial === undefined;
    if (isDown && performance.now() < this.#dialAt) return this.#problem;
    return undefined;
  }

  #send(): void {
    if (this.#link === undefined) {
      this.#connect();
      return;
    }
    for (const question of this.#questions.values()) {
      if (question.isSent) continue;
      question.isSent = true;
      this.#link.send(question.frame);
    }
  }

  #connect(): void {
    if (this.#dial !== undefined) return;
    const target = { ...this.address, purpose: this.#purpose, node: this.#node };
    this.#dial = dialLink(this.#context, target, {
      open: (link) => {
        this.#link = link;
        this.#backoffMs = backoffMs.first;
        // The handler must be known before anything is asked.
        queueMicrotask(() => this.#send());
        return this;
      },
      failed: ({ message }) => {
        this.#dialAt = performance.now() + this.#backoffMs * (0.5 + Math.random());
        this.#backoffMs = Math.min(this.#backoffMs * 2, backoffMs.last);
        this.#lost(message);
      },
    });
  }

  frame(type: number, id: number, buf: Buffer, start: number, end: number): void {
    const question = this.#questions.get(id);
    switch (type) {
      case ControlFrame.answer:
        // Otherwise it came too late.
        if (question) this.#over(question).resolve(Buffer.from(buf.subarray(start, end)));
        return;
      case ControlFrame.refusal: {
        const { message, code } = readRefusal(buf, start, end);
        if (question) this.#over(question).reject(new ControlError(message, 'refused', code));
        return;
      }
      default:
        throw new WireError(`a frame of type ${type}`);
    }
  }

  drained(): void {}

  readEnd(): void {}

  closed(error: Error | undefined): void {
    this.#lost(error?.message ?? 'the node closed the link');
  }

  #lost(problem: string): void {
    this.#problem = problem;
    this.#link?.close();
    this.#link = undefined;
    this.#dial = undefined;
    for (const question of [...this.#questions.values()]) {
      this.#over(question).reject(
        new ControlError(problem, question.isSent ? 'unknown' : 'unreachable'),
      );
    }
  }

  #lateFor(id: number): void {
    const question = this.#questions.get(id);
    if (question === undefined) return;
    const why = question.isSent ? 'no answer in time' : this.#problem || 'no link in time';
    this.#over(question).reject(new ControlError(why, question.isSent ? 'unknown' : 'unreachable'));
  }

  #over(question: Question): Question {
    clearTimeout(question.timer);
    this.#questions.delete(question.id);
    return question;
  }
}

interface ControlClientOptions {
  context: LinkContext;
  purpose: string;
  /** Address of a node that may be asked. */
  addressOf: (node: number) => ControlAddress | undefined;
}

export class ControlClient {
  readonly #options: ControlClientOptions;
  readonly #connections = new Map<number, ControlConnection>();
  #isClosed = false;

  constructor(options: ControlClientOptions) {
    this.#options = options;
  }

  /** Asks a node a question. Rejects with a `ControlError`, at the latest after `ms` milliseconds. */
  ask(node: number, name: string, body: Uint8Array, ms: number): Promise<Buffer> {
    const { context, purpose, addressOf } = this.#options;
    const address = addressOf(node);
    if (address === undefined || this.#isClosed) {
      const why = this.#isClosed ? 'the link is closed' : `node ${node} is not known`;
      return Promise.reject(new ControlError(why, 'unreachable'));
    }
    let connection = this.#connections.get(node);
    const { host, port } = connection?.address ?? {};
    if (connection === undefined || host !== address.host || port !== address.port) {
      connection?.close();
      connection = new ControlConnection(context, address, purpose, node);
      this.#connections.set(node, connection);
    }
    return connection.ask(name, body, ms);
  }

  /** Forgets a node that is no longer a member, or that has restarted. */
  drop(node: number): void {
    this.#connections.get(node)?.close();
    this.#connections.delete(node);
  }

  close(): void {
    this.#isClosed = true;
    for (const connection of this.#connections.values()) connection.close();
    this.#connections.clear();
  }
}
