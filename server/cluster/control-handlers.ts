// Questions that this node's control plane answers, and the end of a link on which others ask them.

import type { ClusterLink, LinkHandler } from '../../cluster-links/cluster-link.ts';
import type { Json } from '../../control/metadata/document-store.ts';
import { WireError } from '../../universal-row/protocol/wire.ts';
import {
  ControlError,
  type ControlHandler,
  type ControlHandlers,
  type ControlPeer,
} from './cluster-metadata.ts';
import {
  answerFrame,
  ControlFrame,
  maxBodyBytes,
  readQuestion,
  type Refusal,
  refusalOf,
} from './control-frames.ts';

/** As `ControlHandler`, of bytes. */
type RawHandler = (body: Buffer, peer: ControlPeer) => Promise<Uint8Array> | Uint8Array;

/** Limit of questions in progress on one link. Further questions are refused. */
const maxQuestions = 256;
/** Limit of unsent bytes of answers to a peer, beyond which nothing more is read from that peer. */
const maxUnsentBytes = 32 * 1024 * 1024;

export class HandlerTable implements ControlHandlers {
  readonly #handlers = new Map<string, RawHandler>();

  on(name: string, handler: ControlHandler): void {
    this.onBytes(name, async (body, peer) => {
      const answer = await handler(JSON.parse(body.toString()) as Json, peer);
      return Buffer.from(JSON.stringify(answer));
    });
  }

  onBytes(name: string, handler: RawHandler): void {
    if (this.#handlers.has(name)) throw new Error(`there is a handler for ${name}`);
    this.#handlers.set(name, handler);
  }

  /** Rejects with the handler's error, or if there is no handler. */
  async answer(name: string, body: Buffer, peer: ControlPeer): Promise<Uint8Array> {
    const handler = this.#handlers.get(name);
    if (handler === undefined) {
      throw new ControlError(`this node does not answer ${name}`, 'refused', 'NO_HANDLER');
    }
    const answer = await handler(body, peer);
    if (answer.length > maxBodyBytes) {
      throw new ControlError(`the answer to ${name} is too large`, 'refused', 'TOO_LARGE');
    }
    return answer;
  }

  /** The handler of a link on which these questions are asked; all of them where `only` is left out. */
  serve(link: ClusterLink, peer: ControlPeer, only?: string): LinkHandler {
    return new ServedControl(this, link, peer, only);
  }
}

class ServedControl implements LinkHandler {
  readonly #table: HandlerTable;
  readonly #link: ClusterLink;
  readonly #peer: ControlPeer;
  readonly #only: string | undefined;
  #questions = 0;
  #isClosed = false;

  constructor(table: HandlerTable, link: ClusterLink, peer: ControlPeer, only?: string) {
    this.#table = table;
    this.#link = link;
    this.#peer = peer;
    this.#only = only;
  }

  frame(type: number, id: number, buf: Buffer, start: number, end: number): void {
    if (type !== ControlFrame.question) throw new WireError(`a frame of type ${type}`);
    const { name, body } = readQuestion(buf, start, end);
    if (this.#only !== undefined && name !== this.#only) {
      throw new WireError(`a question that has no place here: ${name.slice(0, 100)}`);
    }
    if (this.#questions >= maxQuestions) {
      this.#send(refusalOf(id, { message: 'too many questions at once', code: 'BUSY' }));
      return;
    }
    this.#questions++;
    this.#table
      .answer(name, body, this.#peer)
      .then(
        (answer) => this.#send(answerFrame(id, answer)),
        (error: unknown) => this.#send(refusalOf(id, refusalFor(error))),
      )
      .finally(() => this.#questions--);
  }

  #send(bytes: Buffer): void {
    if (this.#isClosed) return;
    this.#link.send(bytes);
    if (this.#link.unsentBytes > maxUnsentBytes) this.#link.pause(true);
  }

  drained(): void {
    this.#link.pause(false);
  }

  readEnd(): void {}

  closed(): void {
    this.#isClosed = true;
  }
}

function refusalFor(error: unknown): Refusal {
  const { message, code } = error as { message?: unknown; code?: unknown };
  return {
    message: typeof message === 'string' ? message : String(error),
    ...(typeof code === 'string' ? { code } : {}),
  };
}
