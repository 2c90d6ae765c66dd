// Answers to one gateway, collected in frames. Answers of one pod and one event-loop tick are sent
// together and in order, once the state they depend on is settled in the log of that pod. A pod
// whose log is stuck does not delay answers of others.

import type { Outcome } from '../../universal-row/executor.ts';
import {
  beginFrame,
  endFrame,
  frameHeaderBytes,
  writeFrame,
} from '../../universal-row/protocol/frames.ts';
import { Answer, AnswerFlag, RowFrame } from '../../universal-row/protocol/row-messages.ts';
import { ValueWriter } from '../../universal-row/protocol/values.ts';
import { WireWriter } from '../../universal-row/protocol/wire.ts';

/** A frame with more is sent in parts of as much, so that other frames can go between. */
const partBytes = 1024 * 1024;
const writerBytes = 16 * 1024;
/** Empty writers that a link keeps: as many as batches that wait for a log, of a busy one. */
const maxSpare = 8;

/** Link by which the answers of all pods leave. */
export class AnswerSink {
  /** Bytes that wait for a log. */
  unsettledBytes = 0;
  /** Counts the memory of long answers; false when there is no more. */
  readonly keep: (bytes: number) => boolean;
  readonly #send: (bytes: Buffer) => boolean;
  readonly #spare: ValueWriter[] = [];

  /** `send` is given whole frames; false when it has not sent them yet. */
  constructor(send: (bytes: Buffer) => boolean, keep: (bytes: number) => boolean) {
    this.#send = send;
    this.keep = keep;
  }

  takeWriter(): ValueWriter {
    const spare = this.#spare.pop();
    if (spare !== undefined) return spare;
    const writer = new ValueWriter(writerBytes);
    writer.keep = this.keep;
    return writer;
  }

  /** `isFree`: the socket has taken its bytes, and its memory can be reused. */
  giveBack(writer: ValueWriter, isFree: boolean): void {
    writer.reset(!isFree);
    if (this.#spare.length < maxSpare) this.#spare.push(writer);
  }

  send(bytes: Buffer): boolean {
    return this.#send(bytes);
  }
}

/** Answers of one tick. */
interface Batch {
  bytes: Buffer;
  /** Where they were written. */
  writer: ValueWriter;
  isSettled: boolean;
}

type Settled = (outcome: Outcome) => void;

export class Answers {
  readonly #sink: AnswerSink;
  /** Where answers of this tick are written; undefined while there are none. */
  #writer: ValueWriter | undefined;
  /** Lanes of the answers of this tick, for when its outcome stays unknown. */
  #lanes: number[] = [];
  /** Called with the outcome of this tick's answers. */
  #settled: Settled[] = [];
  readonly #unsettled: Batch[] = [];
  #whenIdle: (() => void)[] = [];
  /** The buffer is in this tick's list. */
  isInTick = false;
  /** Losses of its pod when the first of this tick's answers was evaluated. */
  losses = 0;

  constructor(sink: AnswerSink) {
    this.#sink = sink;
  }

  /** Nothing is left to be sent. */
  get isIdle(): boolean {
    return this.#writer === undefined && this.#unsettled.length === 0;
  }

  /** Calls back when the outcome of this tick's answers is known. */
  whenSettled(then: Settled): void {
    this.#settled.push(then);
  }

  /** Calls back once it is idle. */
  whenIdle(then: () => void): void {
    this.#whenIdle.push(then);
  }

  get writer(): ValueWriter {
    if (this.#writer === undefined) {
      this.#writer = this.#sink.takeWriter();
      beginFrame(this.#writer, RowFrame.answers);
    }
    return this.#writer;
  }

  /** Begins an item; returns where its flags are. */
  open(lane: number): number {
    const { writer } = this;
    writer.reserve(16);
    writer.buf[writer.pos++] = Answer.values;
    writer.varint(lane);
    this.#lanes.push(lane);
    writer.buf[writer.pos] = 0;
    return writer.pos++;
  }

  /**
   * The last answer says that the command waits for a key. Such a command has written nothing, whatever the outcome
   * of the tick.
   */
  waits(): void {
    const lane = this.#lanes.pop()!;
    this.#lanes.push(-1 - lane);
  }

  /** Takes back all since `start`: the answer that was begun there is given later, or elsewhere. */
  takeBack(start: number): void {
    const { writer } = this;
    writer.pos = start;
    this.#lanes.pop();
    if (start > frameHeaderBytes) return;
    this.#writer = undefined;
    this.#sink.giveBack(writer, true);
  }

  /** Begins an item of another kind. */
  item(kind: number, number: number): ValueWriter {
    const { writer } = this;
    writer.u8(kind);
    writer.varint(number);
    return writer;
  }

  /** Sends the answers since the last call at once. */
  flush(): void {
    if (this.#unsettled.length > 0) {
      this.hold()('committed');
      return;
    }
    const writer = this.#writer;
    if (writer === undefined) return;
    this.#writer = undefined;
    this.#sink.giveBack(writer, this.#sink.send(sealed(writer)));
    this.#lanes.length = 0;
    if (this.#settled.length > 0) for (const then of this.#settled.splice(0)) then('committed');
    if (this.#whenIdle.length > 0) this.#idle();
  }

  /**
   * Holds the answers since the last call until the returned function is called with the outcome.
   */
  hold(): (outcome: Outcome) => void {
    const writer = this.#writer;
    if (writer === undefined) return () => {};
    const lanes = this.#lanes;
    const settled = this.#settled;
    const bytes = sealed(writer);
    this.#writer = undefined;
    this.#lanes = [];
    this.#settled = [];
    const batch: Batch = { bytes, writer, isSettled: false };
    this.#unsettled.push(batch);
    this.#sink.unsettledBytes += bytes.length;
    return (outcome) => {
      this.#sink.unsettledBytes -= batch.bytes.length;
      if (outcome !== 'committed') batch.bytes = unknownAnswers(lanes);
      this.#sink.unsettledBytes += batch.bytes.length;
      batch.isSettled = true;
      this.#sendSettled();
      for (const then of settled) then(outcome);
    };
  }

  #sendSettled(): void {
    while (this.#unsettled[0]?.isSettled === true) {
      const { bytes, writer } = this.#unsettled.shift()!;
      this.#sink.unsettledBytes -= bytes.length;
      this.#sink.giveBack(writer, bytes.length === 0 || this.#sink.send(bytes));
    }
    if (this.#whenIdle.length > 0 && this.isIdle) this.#idle();
  }

  #idle(): void {
    for (const then of this.#whenIdle.splice(0)) then();
  }
}

function sealed(writer: ValueWriter): Buffer {
  if (writer.pos > partBytes + frameHeaderBytes) {
    return inParts(writer.buf.subarray(frameHeaderBytes, writer.pos));
  }
  endFrame(writer, 0);
  return writer.view();
}

/** A payload as frames of parts. */
function inParts(payload: Buffer): Buffer {
  const frames = new WireWriter(payload.length + 64 * Math.ceil(payload.length / partBytes) + 64);
  for (let at = 0; at < payload.length; at += partBytes) {
    const part = payload.subarray(at, at + partBytes);
    const isLast = at + partBytes >= payload.length;
    writeFrame(frames, isLast ? RowFrame.lastPart : RowFrame.part, RowFrame.answers, part);
  }
  return frames.view();
}

function unknownAnswers(lanes: readonly number[]): Buffer {
  if (lanes.length === 0) return Buffer.alloc(0);
  const writer = new WireWriter();
  const start = beginFrame(writer, RowFrame.answers);
  for (const lane of lanes) {
    writer.u8(Answer.values);
    // Waiting requests continue waiting, and are retried when the leader is known.
    writer.varint(lane < 0 ? -1 - lane : lane);
    writer.u8(lane < 0 ? AnswerFlag.isEmpty : AnswerFlag.isUnknown);
  }
  endFrame(writer, start);
  return writer.view();
}
