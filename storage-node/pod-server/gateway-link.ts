// The pods' end of the link to one gateway: frames in and out.

import type { ClusterLink, LinkHandler } from '../../cluster-links/cluster-link.ts';
import { beginFrame, endFrame, writeFrame } from '../../universal-row/protocol/frames.ts';
import { RowFrame } from '../../universal-row/protocol/row-messages.ts';
import { WireError, WireReader, WireWriter } from '../../universal-row/protocol/wire.ts';
import { namedTransforms } from '../../universal-row/transforms/redis/registry.ts';
import { AnswerSink } from './answers.ts';
import { GatewayRequests } from './gateway-requests.ts';
import type { RequestsLink } from './late-answers.ts';
import { scriptNames } from './node-scripts.ts';
import type { PodTicks } from './served-pods.ts';

/** Answers that have yet to be settled and sent, beyond which requests wait. */
const maxUnsentBytes = 16 * 1024 * 1024;
/** Largest total of requests in parts. */
const maxPartsBytes = 1024 * 1024 * 1024;
/** Largest total of long answers in memory. */
const maxKeptBytes = 1024 * 1024 * 1024;

export class GatewayLink implements LinkHandler, RequestsLink {
  readonly #ticks: PodTicks;
  readonly #link: ClusterLink;
  readonly #ended: () => void;
  readonly #sink: AnswerSink;
  readonly #requests: GatewayRequests;
  readonly #reader = new WireReader();
  /** Requests that wait until the gateway takes its answers, and when they came. */
  #backlog: { bytes: Buffer; cameAt: number }[] = [];
  #parts: Buffer[] = [];
  #partsBytes = 0;
  #keptBytes = 0;
  /** Called once the socket has sent its buffer. */
  #drains: (() => void)[] = [];
  isClosed = false;
  /** Asked for each command. */
  readonly node: number;

  constructor(ticks: PodTicks, link: ClusterLink, ended: () => void) {
    this.#ticks = ticks;
    this.#link = link;
    this.#ended = ended;
    this.#sink = new AnswerSink(
      (bytes) => this.#send(bytes),
      (bytes) => this.#keep(bytes),
    );
    const { node, incarnation } = link.peer;
    this.node = Number(node) || 0;
    const gateway = { node: Number(node), incarnation };
    this.#requests = new GatewayRequests(ticks, this, this.#sink, gateway);
    link.send(namesFrame());
  }

  #keep(bytes: number): boolean {
    if (this.#keptBytes + bytes > maxKeptBytes) return false;
    this.#keptBytes += bytes;
    return true;
  }

  released(bytes: number): void {
    this.#keptBytes -= bytes;
    if (this.#backlog.length > 0) this.#goOnSoon();
  }

  #send(bytes: Buffer): boolean {
    if (this.#backlog.length > 0) this.#goOnSoon();
    return this.#link.send(bytes);
  }

  get unsentBytes(): number {
    return this.#link.unsentBytes;
  }

  whenDrained(then: () => void): void {
    this.#drains.push(then);
  }

  fail(error: Error): void {
    this.#link.close(error);
  }

  // ---- in

  frame(type: number, stream: number, buf: Buffer, start: number, end: number): void {
    switch (type) {
      case RowFrame.requests:
        this.#take(buf, start, end);
        break;
      case RowFrame.part:
      case RowFrame.lastPart:
        this.#takePart(type, buf, start, end);
        break;
      case RowFrame.question:
        this.#ask(stream, buf.toString('utf8', start, end));
        break;
      default:
        throw new WireError(`a gateway sends no frame of type ${type}`);
    }
  }

  #takePart(type: number, buf: Buffer, start: number, end: number): void {
    this.#partsBytes += end - start;
    if (this.#partsBytes > maxPartsBytes) throw new WireError('a request is too large');
    this.#parts.push(Buffer.from(buf.subarray(start, end)));
    if (type === RowFrame.part) return;
    const whole = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#partsBytes = 0;
    this.#take(whole, 0, whole.length);
  }

  #take(buf: Buffer, start: number, end: number): void {
    if (this.#backlog.length > 0 || this.#isFull) this.#wait(buf, start, end);
    else this.#run(buf, start, end, performance.now());
  }

  get #isFull(): boolean {
    const { unsettledBytes } = this.#sink;
    const left = this.#link.unsentBytes + unsettledBytes + this.#keptBytes;
    return this.#requests.isFull || left > maxUnsentBytes;
  }

  #wait(buf: Buffer, start: number, end: number): void {
    const bytes = Buffer.from(buf.subarray(start, end));
    this.#backlog.push({ bytes, cameAt: performance.now() });
    this.#link.pause(true);
    this.#ticks.schedule();
  }

  #goOnSoon(): void {
    setImmediate(() => this.#goOn());
  }

  /** Requests that waited, while there is room for their answers. */
  #goOn(): void {
    if (this.isClosed) return;
    while (this.#backlog.length > 0 && !this.#isFull) {
      const { bytes, cameAt } = this.#backlog.shift()!;
      this.#ticks.schedule();
      try {
        this.#run(bytes, 0, bytes.length, cameAt);
      } catch (error) {
        // No reader of the link is active here that could end it: as where a frame is run when it comes.
        this.fail(error as Error);
        return;
      }
    }
    if (this.#backlog.length === 0) this.#link.pause(false);
  }

  readEnd(): void {
    this.#ticks.readEnd();
  }

  drained(): void {
    for (const next of this.#drains.splice(0)) next();
    if (this.#backlog.length > 0) this.#goOn();
  }

  #run(buf: Buffer, start: number, end: number, cameAt: number): void {
    this.#ticks.beginTick();
    const reader = this.#reader;
    const requests = this.#requests;
    reader.set(buf, start, end);
    requests.begin();
    while (reader.pos < end) {
      requests.run(reader, cameAt);
      if (requests.isFull && reader.pos < end) {
        this.#backlog.unshift({ bytes: Buffer.from(buf.subarray(reader.pos, end)), cameAt });
        this.#link.pause(true);
        this.#ticks.schedule();
        return;
      }
    }
  }

  // ---- questions

  #ask(id: number, text: string): void {
    const send = (answer: unknown): void => {
      if (this.isClosed) return;
      const payload = Buffer.from(JSON.stringify(answer));
      const writer = new WireWriter(payload.length + 64);
      writeFrame(writer, RowFrame.reply, id, payload);
      this.#link.send(writer.view());
    };
    let question: unknown;
    try {
      question = JSON.parse(text);
    } catch {
      throw new WireError('a question that is no JSON');
    }
    Promise.resolve()
      .then(() => this.#ticks.options.answer(question))
      .then(
        (value) => send({ value }),
        (error: unknown) => send({ error: error instanceof Error ? error.message : String(error) }),
      )
      .catch((error: unknown) => this.#link.close(error as Error));
  }

  // ---- ticks

  tickEnds(): void {
    this.#requests.tickEnds();
  }

  tickEnded(): void {
    if (this.#backlog.length > 0) this.#goOnSoon();
  }

  close(): void {
    this.#link.close();
  }

  closed(): void {
    this.isClosed = true;
    this.#requests.close();
    this.#backlog = [];
    for (const next of this.#drains.splice(0)) next();
    this.#ended();
  }
}

/** The names of transforms, by whose places requests name them. */
function namesFrame(): Buffer {
  const names = new WireWriter();
  const start = beginFrame(names, RowFrame.names);
  names.varint(namedTransforms.length + scriptNames.length);
  for (const { name } of namedTransforms) names.string(name);
  for (const name of scriptNames) names.string(name);
  endFrame(names, start);
  return names.view();
}
