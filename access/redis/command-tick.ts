// One tick of the event loop. The commands of every socket with new bytes run as they arrive, and write their answers
// into one buffer, each connection into segments of its own. Then each log takes all writes of the tick in one write.
// After that the answers are sent, in one write per connection; with fsync=always they wait for the disk first. Where
// a log may lose entries, answers wait until their outcome is known, and errors replace answers that depend on lost
// entries.

import { performance } from 'node:perf_hooks';
import type { StepSource, StepWatcher } from '../../contracts/step-watcher.ts';
import type { PodAdmission } from '../../contracts/pod-admission.ts';
import type { ViewedBuffer } from '../../universal-row/bytes.ts';
import { type Outcome, outcomeOfBoth, type TickMember } from '../../universal-row/executor.ts';
import { initialBytes, RespWriter } from './resp-writer.ts';
import {
  type AnsweredClient,
  type EvaluatedRange,
  type MessageRange,
  type SettlingPod,
  sendAll,
  type TickAnswers,
  UnsentAnswers,
} from './unsent-answers.ts';

/** A connection as a tick reads from it and writes to it. */
export interface TickClient extends StepSource, AnsweredClient {
  /** RESP version. */
  readonly version: number;
  /** An error was answered to it. */
  countError(text: string): void;
  receive(chunk: Buffer, length: number): void;
  /** Continues with its pipeline. */
  resumeNow(): void;
  /** Called when other connections have been read. */
  readAgain(): void;
  /** Counts bytes of a long answer; false when there are not as many left. */
  keepAnswer(bytes: number): boolean;
}

interface CommandTickOptions {
  /** All that may have written in this tick. */
  executors: () => readonly TickMember[];
  podAdmission: PodAdmission | undefined;
  steps: StepWatcher | undefined;
  /** Writes the notifications of this tick's commands, up to the limit of one tick. */
  beforeEnd: () => void;
  /** There is more of it. */
  isWaiting: () => boolean;
  /** Called when writes or reads of a tick may be lost. */
  unknown: () => void;
  /** The log could not take the writes of a tick. */
  failed: (error: unknown) => void;
}

/** Replies of one tick, all connections together, before the rest waits for the next tick: a millisecond or two of copies. */
export const tickOutputBytes = 2 * 1024 * 1024;
/** Milliseconds of one tick after which clients with much input, and then all clients, continue in the next tick. */
const tickWorkMs = 5;
const longestTickMs = 20;
/** Size of input that is still served in a tick that has taken long already. */
const smallBytes = 1024;
/** After a read of this many bytes, the same socket may be read again before other sockets. */
export const fullReadBytes = 64 * 1024;
/** Reads in a row from one client after which it counts as the only one that is talking. */
const readsToBeAlone = 64;
const mostSpareWriters = 256;
const spareWriterBytes = 64 * 1024;
/** Buffers of answers that are kept for later ticks: as many as ticks that wait for the log, of a busy one. */
const mostSpareBuffers = 8;

export class CommandTick<C extends TickClient = TickClient> {
  readonly writer = new RespWriter();
  /** Wall clock, milliseconds, as of the start of this tick. */
  now = Date.now();
  /** Monotonic milliseconds, as of the command that ran last. */
  lapAt = 0;
  /** Monotonic milliseconds. */
  #beganAt = 0;
  readonly #options: CommandTickOptions;
  // Segments of the shared writer: which connection's bytes begin where.
  #owners: C[] = [];
  #starts: number[] = [];
  /** Adjacent ones of one position are joined. */
  #evaluated: EvaluatedRange[] = [];
  /** The last one. */
  #range: EvaluatedRange | undefined;
  /** Messages that `pushed` was told of; undefined in most ticks, which have none. */
  #messages: MessageRange[] | undefined;
  #isScheduled = false;
  #lastReader: C | undefined;
  #readsToBeAlone = readsToBeAlone;
  #resuming: C[] = [];
  /** Connections with little input, which resume before the others. */
  #resumingSoon: C[] = [];
  /** Answers of earlier ticks. */
  readonly #unsent: UnsentAnswers<C>;
  /** Throttled clients that are not read for now. */
  readonly #readers = new Set<C>();
  #readsNext = false;
  readonly #spareWriters: RespWriter[] = [];
  /** For ticks whose answers have to wait. New buffers for each would cause a garbage collection every few hundred ticks. */
  readonly #spareBuffers: ViewedBuffer[] = [];

  constructor(options: CommandTickOptions) {
    this.#options = options;
    this.#unsent = new UnsentAnswers({
      unknown: options.unknown,
      sent: (buf) => this.#giveBackBuffer(buf),
    });
  }

  /** The writer for `client`. Ends the segment of another client. */
  open(client: C): RespWriter {
    const { writer } = this;
    const owners = this.#owners;
    const last = owners.length - 1;
    if (last < 0 || owners[last] !== client) {
      owners.push(client);
      this.#starts.push(writer.pos);
      if (!this.#isScheduled) this.schedule();
    }
    writer.version = client.version;
    writer.keeper = client;
    return writer;
  }

  /** Removes the output for `client` from position `mark` on, and none of others. */
  takeBack(client: C, mark: number): void {
    const owners = this.#owners;
    const last = owners.length - 1;
    if (last >= 0 && owners[last] === client) {
      this.writer.pos = Math.max(mark, this.#starts[last]!);
      if (this.#evaluated.length > 0) this.#cutEvaluated();
      if (this.#messages !== undefined) this.#cutMessages(this.#messages);
    }
  }

  #cutEvaluated(): void {
    const evaluated = this.#evaluated;
    const { pos } = this.writer;
    while (evaluated.length > 0 && evaluated.at(-1)!.start >= pos) evaluated.pop();
    const last = evaluated.at(-1);
    if (last !== undefined && last.end > pos) last.end = pos;
    this.#range = last;
  }

  #cutMessages(messages: MessageRange[]): void {
    const { pos } = this.writer;
    while (messages.length > 0 && messages.at(-1)!.start >= pos) messages.pop();
    const last = messages.at(-1);
    if (last !== undefined && last.end > pos) last.end = pos;
  }

  /**
   * Marks the output from `mark` on as messages, not answers: the bytes may look the same. They are dropped if the log
   * loses this tick, or may have lost it, unless `isKept`.
   */
  pushed(mark: number, isKept: boolean): void {
    const end = this.writer.pos;
    const messages = (this.#messages ??= []);
    const last = messages.at(-1);
    if (last !== undefined && last.end === mark && last.isKept === isKept) last.end = end;
    else messages.push({ start: mark, end, isKept });
  }

  /**
   * The answers from `mark` to `end` depend only on commands that a pod of this process has evaluated in this tick, and
   * share the fate of this position in its log; those of `noLog` stay.
   */
  evaluated(
    mark: number,
    { pod, at }: { readonly pod: SettlingPod | undefined; readonly at: number },
    end = this.writer.pos,
  ): void {
    if (pod === undefined) return;
    const last = this.#range;
    if (last !== undefined && last.end === mark && last.at === at && last.pod === pod) {
      last.end = end;
      return;
    }
    this.#range = { start: mark, end, pod, at };
    this.#evaluated.push(this.#range);
  }

  /**
   * Bytes of a client. While one client alone is talking no other shares its tick, which then ends with its bytes: that
   * saves a round of the event loop a command.
   */
  receive(client: C, chunk: Buffer, length: number): void {
    if (client !== this.#lastReader) {
      this.#lastReader = client;
      this.#readsToBeAlone = readsToBeAlone;
    } else if (this.#readsToBeAlone > 0) this.#readsToBeAlone--;
    this.#options.steps?.touched(client);
    if (this.#isScheduled || this.#readsToBeAlone > 0 || length >= fullReadBytes) {
      if (!this.#isScheduled) this.schedule();
      client.receive(chunk, length);
      return;
    }
    this.#begin();
    client.receive(chunk, length);
    this.end();
  }

  /** Has a tick end after this round of the event loop, if none does yet. */
  schedule(): void {
    if (this.#isScheduled) return;
    this.#begin();
    setImmediate(this.end);
  }

  #begin(): void {
    this.#isScheduled = true;
    this.now = Date.now();
    this.lapAt = this.#beganAt = performance.now();
    this.#options.podAdmission?.beginTick(this.lapAt);
  }

  /** Milliseconds since the last lap: the time of the command that has just run. */
  lap(): number {
    const now = performance.now();
    const spent = now - this.lapAt;
    this.lapAt = now;
    return spent;
  }

  /** Whether a client with so many bytes to run leaves the rest of this tick to others. */
  isOverFor(pendingBytes: number): boolean {
    if (this.writer.pos > tickOutputBytes) return true;
    const ms = this.lapAt - this.#beganAt;
    return ms > tickWorkMs && (pendingBytes > smallBytes || ms > longestTickMs);
  }

  /** Logs the writes of this tick, then sends the answers. */
  readonly end = (): void => {
    this.#options.beforeEnd();
    this.#isScheduled = false;
    if (this.#options.isWaiting()) this.schedule();
    // Usually none, or the one log that was written: no list is made for those.
    let written = 0;
    let first: TickMember | undefined;
    let position = -1;
    let others: { executor: TickMember; at: number }[] | undefined;
    for (const executor of this.#options.executors()) {
      let at: number;
      try {
        at = executor.endTick();
      } catch (error) {
        this.#logFailed(error);
        return;
      }
      if (at < 0) continue;
      if (written++ > 0) (others ??= []).push({ executor, at });
      else {
        first = executor;
        position = at;
      }
    }
    if (this.#owners.length !== 0) {
      if (first !== undefined) this.#sendWhenSafe(first, position, others);
      else if (this.#unsent.mayPass(this.#owners)) this.#sendNow();
      else this.#unsent.addBehind(this.#takeAnswers());
    }
    if (this.#resuming.length + this.#resumingSoon.length !== 0) {
      const small = this.#resumingSoon;
      const large = this.#resuming;
      this.#resumingSoon = [];
      this.#resuming = [];
      setImmediate(() => this.#resumeAll(small, large));
    }
  };

  /** Ends this tick within a round of the event loop. The time of the next one, in the same round, is counted on. */
  endEarly(): void {
    const beganAt = this.#isScheduled ? this.#beganAt : undefined;
    this.end();
    this.schedule();
    if (beganAt !== undefined) this.#beganAt = beganAt;
  }

  /**
   * Resumes connections. Those for which no time is left come first in the next tick. At least one of each kind resumes.
   */
  #resumeAll(small: readonly C[], large: readonly C[]): void {
    // Clients that were read since the last tick have filled this one. Its answers leave first: otherwise clients with
    // little to run would wait for as long as others send.
    if (this.writer.pos > tickOutputBytes) this.end();
    this.schedule();
    const smallDone = this.#resumeSome(small, 0);
    this.#resumingSoon = [...small.slice(smallDone), ...this.#resumingSoon];
    const largeDone = this.#resumeSome(large, Infinity);
    this.#resuming = [...large.slice(largeDone), ...this.#resuming];
  }

  /** Returns how many of them went on. */
  #resumeSome(clients: readonly C[], pendingBytes: number): number {
    for (let i = 0; i < clients.length; i++) {
      this.lap();
      if (i > 0 ? this.isOverFor(pendingBytes) : this.writer.pos > tickOutputBytes) return i;
      clients[i]!.resumeNow();
    }
    return clients.length;
  }

  #sendNow(): void {
    const { writer } = this;
    const owners = this.#owners;
    const starts = this.#starts;
    const evaluated = this.#evaluated;
    const messages = this.#messages;
    const isFree = sendAll({
      buf: writer.buf,
      owners,
      starts,
      end: writer.pos,
      evaluated,
      messages,
    });
    owners.length = 0;
    starts.length = 0;
    evaluated.length = 0;
    this.#range = undefined;
    this.#messages = undefined;
    if (isFree) writer.reset();
    else this.#renewBuffer();
  }

  /** The answers so far stay where they are. */
  #renewBuffer(): void {
    this.writer.renew(this.#spareBuffers.pop());
  }

  #giveBackBuffer(buf: ViewedBuffer): void {
    const isUsual = buf.length === initialBytes;
    if (isUsual && this.#spareBuffers.length < mostSpareBuffers) this.#spareBuffers.push(buf);
  }

  /** The answers of this tick, which the caller keeps. */
  #takeAnswers(): TickAnswers<C> {
    const { writer } = this;
    const answers = {
      ...{ buf: writer.buf, end: writer.pos },
      ...{ owners: this.#owners, starts: this.#starts, evaluated: this.#evaluated },
      messages: this.#messages,
    };
    this.#owners = [];
    this.#starts = [];
    this.#evaluated = [];
    this.#range = undefined;
    this.#messages = undefined;
    this.#renewBuffer();
    return answers;
  }

  #sendWhenSafe(
    first: TickMember,
    position: number,
    others: readonly { executor: TickMember; at: number }[] | undefined,
  ): void {
    const send = this.#unsent.add(this.#takeAnswers());
    if (others === undefined) {
      first.whenSettled(position, send);
      return;
    }
    let left = 1 + others.length;
    let all: Outcome | undefined;
    const one = (outcome: Outcome): void => {
      all = all === undefined ? outcome : outcomeOfBoth(all, outcome);
      if (--left === 0) send(all);
    };
    first.whenSettled(position, one);
    for (const { executor, at } of others) executor.whenSettled(at, one);
  }

  /** Nothing of this tick is in the log: no client may be told that it was done. */
  #logFailed(error: unknown): void {
    this.#options.failed(error);
    const owners = new Set(this.#owners);
    this.#owners = [];
    this.#starts = [];
    this.#evaluated = [];
    this.#range = undefined;
    this.#messages = undefined;
    this.#renewBuffer();
    for (const client of owners) client.destroy();
    throw error;
  }

  /** Lets a client continue its pipeline in the next tick. Clients with few pending bytes run first. */
  resume(client: C, pendingBytes = Infinity): void {
    (pendingBytes > smallBytes ? this.#resuming : this.#resumingSoon).push(client);
    this.schedule();
  }

  /** Reads the client later: one throttled client is read in each round of the event loop. */
  readLater(client: C): void {
    this.#readers.add(client);
    if (!this.#readsNext) setImmediate(this.#readNext);
    this.#readsNext = true;
  }

  readonly #readNext = (): void => {
    for (const client of this.#readers) {
      this.#readers.delete(client);
      client.readAgain();
      break;
    }
    this.#readsNext = this.#readers.size > 0;
    if (this.#readsNext) setImmediate(this.#readNext);
  };

  /** The client is gone. */
  forget(client: C): void {
    if (this.#lastReader === client) this.#lastReader = undefined;
    this.#readers.delete(client);
  }

  borrowWriter(version: number): RespWriter {
    const writer = this.#spareWriters.pop() ?? new RespWriter(4096);
    writer.version = version;
    writer.pos = 0;
    writer.keeper = undefined;
    return writer;
  }

  giveBackWriter(writer: RespWriter): void {
    const isSmall = writer.buf.length <= spareWriterBytes;
    if (isSmall && this.#spareWriters.length < mostSpareWriters) this.#spareWriters.push(writer);
  }
}
