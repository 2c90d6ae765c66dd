// One tick of the event loop: commands of every socket that had bytes run as they arrive and put their answers into one
// buffer, each connection's in segments of its own. Then each log takes all writes of the tick in one write, and only
// after that the answers leave, one write a connection; with fsync=always they wait for the disk first.

import type { StepSource, StepWatcher } from '../../contracts/step-watcher.ts';
import type { PodAdmission } from '../../contracts/pod-admission.ts';
import type { Executor } from '../../universal-row/executor.ts';
import { RespWriter } from './resp-writer.ts';

/** A connection as a tick reads from it and writes to it. */
export interface TickClient extends StepSource {
  /** RESP version. */
  readonly version: number;
  /** The socket closes once what has been written is sent. */
  readonly closing: boolean;
  receive(chunk: Buffer, length: number): void;
  /** Sends bytes that the caller may reuse if the answer is true; false when the socket still holds them. */
  send(bytes: Buffer): boolean;
  /** Goes on with its pipeline. */
  resumeNow(): void;
  /** It has waited for others to be read. */
  readAgain(): void;
  /** Counts bytes of a long answer; false when there are not as many left. */
  keepAnswer(bytes: number): boolean;
  endSoon(): void;
  destroy(): void;
}

export interface CommandTickOptions {
  /** All that may have written in this tick. */
  executors: () => readonly Executor[];
  podAdmission: PodAdmission | undefined;
  steps: StepWatcher | undefined;
  /** The log could not take the writes of a tick. */
  failed: (error: unknown) => void;
}

/** Replies of one tick, all connections together, before the rest waits for the next tick. */
export const tickOutputBytes = 8 * 1024 * 1024;
/** Reads in a row from one client after which it counts as the only one that is talking. */
const readsToBeAlone = 64;
const mostSpareWriters = 256;
const spareWriterBytes = 64 * 1024;

export class CommandTick<C extends TickClient = TickClient> {
  readonly writer = new RespWriter();
  /** Wall clock, milliseconds, as of the start of this tick. */
  now = Date.now();
  /** Monotonic milliseconds, as of the command that ran last. */
  lapAt = 0;
  readonly #options: CommandTickOptions;
  // Segments of the shared writer: which connection's bytes begin where.
  #owners: C[] = [];
  #starts: number[] = [];
  #isScheduled = false;
  #lastReader: C | undefined;
  #readsToBeAlone = readsToBeAlone;
  #resuming: C[] = [];
  /** Throttled clients that are not read for now. */
  readonly #readers = new Set<C>();
  #readsNext = false;
  readonly #spareWriters: RespWriter[] = [];

  constructor(options: CommandTickOptions) {
    this.#options = options;
  }

  /** Where to write what `client` is to be sent. Ends what was open for another one. */
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

  /** Takes back what was written for `client` from position `mark` on, and nothing of others. */
  takeBack(client: C, mark: number): void {
    const owners = this.#owners;
    const last = owners.length - 1;
    if (last >= 0 && owners[last] === client) {
      this.writer.pos = Math.max(mark, this.#starts[last]!);
    }
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
    if (this.#isScheduled || this.#readsToBeAlone > 0) {
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
    this.lapAt = performance.now();
    this.#options.podAdmission?.beginTick(this.lapAt);
  }

  /** Milliseconds since the last lap: the time of the command that has just run. */
  lap(): number {
    const now = performance.now();
    const spent = now - this.lapAt;
    this.lapAt = now;
    return spent;
  }

  /** Logs what was written in this tick, then lets the answers go. */
  readonly end = (): void => {
    this.#isScheduled = false;
    // Usually none, or the one log that was written: no list is made for those.
    let written = 0;
    let first: Executor | undefined;
    let position = -1;
    let others: { executor: Executor; at: number }[] | undefined;
    for (const executor of this.#options.executors()) {
      let at: number;
      try {
        at = executor.endTurn();
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
      if (first === undefined) this.#sendNow();
      else this.#sendWhenSafe(first, position, others);
    }
    if (this.#resuming.length !== 0) {
      const resuming = this.#resuming;
      this.#resuming = [];
      setImmediate(() => {
        for (const client of resuming) client.resumeNow();
      });
    }
  };

  #sendNow(): void {
    const { writer } = this;
    const isFree = this.#sendAll(writer.buf, this.#owners, this.#starts, writer.pos);
    this.#owners.length = 0;
    this.#starts.length = 0;
    writer.reset(!isFree);
  }

  #sendWhenSafe(
    first: Executor,
    position: number,
    others: readonly { executor: Executor; at: number }[] | undefined,
  ): void {
    const { writer } = this;
    const owners = this.#owners;
    const starts = this.#starts;
    const { buf, pos: end } = writer;
    this.#owners = [];
    this.#starts = [];
    writer.reset(true);
    const send = (): void => {
      this.#sendAll(buf, owners, starts, end);
    };
    if (others === undefined) {
      first.whenSafe(position, send);
      return;
    }
    let left = 1 + others.length;
    const one = (): void => {
      if (--left === 0) send();
    };
    first.whenSafe(position, one);
    for (const { executor, at } of others) executor.whenSafe(at, one);
  }

  /** Nothing of this tick is in the log: no client may be told that it was done. */
  #logFailed(error: unknown): void {
    this.#options.failed(error);
    const owners = new Set(this.#owners);
    this.#owners = [];
    this.#starts = [];
    this.writer.reset(true);
    for (const client of owners) client.destroy();
    throw error;
  }

  #sendAll(buf: Buffer, owners: readonly C[], starts: readonly number[], end: number): boolean {
    let isFree = true;
    const n = owners.length;
    for (let i = 0; i < n; i++) {
      const s = starts[i]!;
      const e = i + 1 < n ? starts[i + 1]! : end;
      const client = owners[i]!;
      if (e > s) {
        if (!client.send(buf.subarray(s, e))) isFree = false;
      } else if (client.closing) client.endSoon();
    }
    return isFree;
  }

  /** Lets a client go on with its pipeline in the next tick. */
  resume(client: C): void {
    this.#resuming.push(client);
    this.schedule();
  }

  /** One throttled client is read in each round of the event loop. */
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
