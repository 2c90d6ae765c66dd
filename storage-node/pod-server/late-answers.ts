// Answers to slow commands. They are sent in a later tick, long answers in parts.

import type { LocalPod } from '../../contracts/local-pod.ts';
import type { Command, NotRun } from '../../universal-row/command.ts';
import { Answer, AnswerFlag } from '../../universal-row/protocol/row-messages.ts';
import { LongValues, ValueWriter } from '../../universal-row/protocol/values.ts';
import type { Reply } from '../../universal-row/reply.ts';
import type { Answers } from './answers.ts';
import type { Lane } from './lane.ts';
import type { PodTicks, ServedPod } from './served-pods.ts';

/** Answers up to this size are sent with the others of the tick. */
const shortAnswerBytes = 256 * 1024;
/** Bytes that the socket has yet to send, beyond which no more parts are. */
const maxUnsentBytes = 8 * 1024 * 1024;

/** Services requests need from their link. */
export interface RequestsLink {
  /** The node of the gateway, 0 if it is none. */
  readonly node: number;
  readonly isClosed: boolean;
  /** Bytes that the socket holds. */
  readonly unsentBytes: number;
  /** Calls back once the socket has sent its buffer. */
  whenDrained(then: () => void): void;
  /** Bytes of long answers are not in memory any more. */
  released(bytes: number): void;
  /** The gateway makes no sense. */
  fail(error: Error): void;
}

/** A command that takes its time. */
export interface Waiting {
  readonly lane: Lane;
  readonly command: Command;
  readonly pod: ServedPod;
  /** Losses of the pod when the request began. */
  readonly losses: number;
  /** Flags of the request. */
  readonly flags: number;
  /** Where its words came in. */
  readonly words: Buffer;
  /** Where its answer is, unless it says otherwise. */
  readonly own: ValueWriter | undefined;
  /** Bits of its answer, besides its values. */
  readonly bits: () => number;
}

/** Services of the link's requests. */
interface LateOwner {
  answersOf(pod: LocalPod): Answers;
  /** Ends an answer whose flags are at `flagsAt`; if it has no values from `from` on, as the request wants it. */
  end(waiting: Waiting, answers: Answers, flagsAt: number, from: number): void;
  /** Refuses the request, which was not run, and the rest of its lane. Frees the lane. */
  refuse(lane: Lane, answers: Answers, notRun: NotRun): void;
  /** Runs the requests waiting in the lane. */
  free(lane: Lane): void;
}

export class LateAnswers {
  readonly #ticks: PodTicks;
  readonly #link: RequestsLink;
  readonly #owner: LateOwner;

  constructor(ticks: PodTicks, link: RequestsLink, owner: LateOwner) {
    this.#ticks = ticks;
    this.#link = link;
    this.#owner = owner;
  }

  /** The lane is busy until the answer is given. */
  wait(waiting: Waiting, done: Promise<Reply | void>): void {
    const { lane, command, pod } = waiting;
    lane.isBusy = true;
    lane.underWay = command;
    lane.renewCommand();
    done
      .catch((error: unknown) => {
        this.#ticks.options.report('error', `command ${command.name} failed`, { err: error });
        const failed = new ValueWriter(64);
        failed.error('ERR internal error');
        return failed;
      })
      .then((answer) => {
        lane.underWay = undefined;
        // Its writes may be of this very tick.
        this.#ticks.beginTick();
        this.#ticks.ran(pod.executor);
        this.#ticks.schedule();
        return this.#answer(waiting, answer ?? waiting.own);
      })
      .catch((error: unknown) => this.#link.fail(error as Error));
  }

  async #answer(waiting: Waiting, answer: Reply | void): Promise<void> {
    const { lane, command, pod } = waiting;
    if (this.#link.isClosed || command.notRun !== undefined) {
      this.#release(answer);
      if (command.notRun === undefined) return;
      this.#owner.refuse(lane, this.#owner.answersOf(pod.executor), command.notRun);
      return;
    }
    let inParts = 0;
    if (answer instanceof LongValues && answer.length > shortAnswerBytes) {
      inParts = AnswerFlag.wasInParts;
      if (!(await this.#sendParts(waiting, answer))) inParts |= AnswerFlag.isUnknown;
      if (this.#link.isClosed) return;
    }
    this.#ticks.beginTick();
    this.#end(waiting, answer, inParts);
    this.#owner.free(lane);
  }

  #end(waiting: Waiting, answer: Reply | void, inParts: number): void {
    const { lane, pod, losses } = waiting;
    const answers = this.#owner.answersOf(pod.executor);
    this.#ticks.answered(answers, pod.executor, losses);
    const flagsAt = answers.open(lane.id);
    const { writer } = answers;
    const from = writer.pos;
    if (inParts === 0) {
      if (answer instanceof LongValues) {
        for (const part of answer.take()) writer.raw(part, 0, part.length);
        this.#link.released(answer.kept);
      } else if (answer instanceof ValueWriter) writer.raw(answer.buf, 0, answer.pos);
    }
    const bits = waiting.bits() | inParts;
    this.#owner.end(waiting, answers, flagsAt, bits === 0 ? from : -1);
    writer.buf[flagsAt]! |= bits;
  }

  #release(answer: Reply | void): void {
    if (!(answer instanceof LongValues)) return;
    answer.take();
    this.#link.released(answer.kept);
  }

  /** Sends a long answer as the log settles it and the socket takes it. False when a part of it did not leave. */
  async #sendParts({ lane, pod, losses }: Waiting, answer: LongValues): Promise<boolean> {
    const { executor } = pod;
    const answers = this.#owner.answersOf(executor);
    let isWhole = true;
    for (const part of answer.take()) {
      if (this.#link.isClosed || !isWhole) break;
      this.#ticks.beginTick();
      this.#ticks.answered(answers, executor, losses);
      answers.item(Answer.part, lane.id).bytes(part);
      this.#ticks.schedule();
      isWhole = await new Promise((resolve) => {
        answers.whenSettled((outcome) => resolve(outcome === 'committed'));
      });
      while (!this.#link.isClosed && this.#link.unsentBytes > maxUnsentBytes) {
        await new Promise<void>((resolve) => this.#link.whenDrained(resolve));
      }
    }
    this.#link.released(answer.kept);
    return isWhole;
  }
}
