// One tick of the event loop: commands of every socket that had bytes run as they arrive and put
// their answers into one buffer, each connection's in segments of its own. Then each log takes all
// writes of the tick in one write, and only after that the answers leave, one write a connection;
// with fsync=always they wait for the disk first. Where a log may lose entries, they wait until
// their outcome is known, and errors replace answers that depend on lost entries.

import { performance } from 'node:perf_hooks';
import type { StepSource, StepWatcher } from '../../contracts/step-watcher.ts';
import type { PodAdmission } from '../../contracts/pod-admission.ts';
import type { Outcome, TurnMember } from '../../universal-row/executor.ts';
import { RespWriter } from './resp-writer.ts';
import { asUnknown } from './unknown-answers.ts';

/** A connection as a tick reads from it and writes to it. */
export interface TickClient extends StepSource {
  /** RESP version. */
  readonly version: number;
  /** The socket closes once its output has been sent. */
  readonly closing: boolean;
  /** An error was answered to it. */
  countError(text: string): void;
  receive(chunk: Buffer, length: number): void;
  /** Sends a range of bytes that the caller may reuse if the answer is true; false when the socket still holds them. */
  send(bytes: Buffer, start: number, end: number): boolean;
  /** Continues with its pipeline. */
  resumeNow(): void;
  /** Called when other connections have been read. */
  readAgain(): void;
  /** Counts bytes of a long answer; false when there are not as many left. */
  keepAnswer(bytes: number): boolean;
  /** Counts bytes of answers that wait for the log, or no more where they are less than 0. */
  countWaiting(bytes: number): void;
  endSoon(): void;
  destroy(): void;
}

interface CommandTickOptions {
  /** All that may have written in this tick. */
  executors: () => readonly TurnMember[];
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
/** Milliseconds of one tick after which clients that have sent much continue in the next one, and then all others as well. */
const tickWorkMs = 5;
const longestTickMs = 20;
/** Size of input that is still served in a tick that has taken long already. */
const smallBytes = 1024;
/** A read of as much may be followed by another one of the same socket before any other socket is looked at. */
export const fullReadBytes = 64 * 1024;
/** Reads in a row from one client after which it counts as the only one that is talking. */
const readsToBeAlone = 64;
/** Answers of a tick that are counted while they wait for the log: smaller ones are no more than their commands. */
const countedBytes = 16 * 1024;
const mostSpareWriters = 256;
const spareWriterBytes = 64 * 1024;

/** A tick whose answers wait for the log. */
interface UnsentTick<C> {
  /** Owners of it and of those behind it. */
  owners: readonly C[];
  /** Sends later ticks that wait for nothing but these answers. */
  behind: (() => void)[];
}

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
  #isScheduled = false;
  #lastReader: C | undefined;
  #readsToBeAlone = readsToBeAlone;
  #resuming: C[] = [];
  /** Connections with little input, which resume before the others. */
  #resumingSoon: C[] = [];
  /** Ticks whose answers have yet to leave, in order. */
  readonly #unsent = new Set<UnsentTick<C>>();
  /** Throttled clients that are not read for now. */
  readonly #readers = new Set<C>();
  #readsNext = false;
  readonly #spareWriters: RespWriter[] = [];

  constructor(options: CommandTickOptions) {
    this.#options = options;
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
    let first: TurnMember | undefined;
    let position = -1;
    let others: { executor: TurnMember; at: number }[] | undefined;
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
      if (first !== undefined) this.#sendWhenSafe(first, position, others);
      else if (this.#unsent.size === 0) this.#sendNow();
      else this.#sendBehindEarlier();
    }
    if (this.#resuming.length + this.#resumingSoon.length !== 0) {
      const small = this.#resumingSoon;
      const large = this.#resuming;
      this.#resumingSoon = [];
      this.#resuming = [];
      setImmediate(() => this.#resumeAll(small, large));
    }
  };

  /**
   * Connections without time left come first in the next tick. At least one of each kind resumes.
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
    const isFree = this.#sendAll(writer.buf, this.#owners, this.#starts, writer.pos);
    this.#owners.length = 0;
    this.#starts.length = 0;
    writer.reset(!isFree);
  }

  #sendWhenSafe(
    first: TurnMember,
    position: number,
    others: readonly { executor: TurnMember; at: number }[] | undefined,
  ): void {
    const { writer } = this;
    const owners = this.#owners;
    const starts = this.#starts;
    const { buf, pos: end } = writer;
    this.#owners = [];
    this.#starts = [];
    writer.reset(true);
    if (end >= countedBytes) countAll(owners, starts, end, 1);
    const tick: UnsentTick<C> = { owners, behind: [] };
    this.#unsent.add(tick);
    const send = (outcome: Outcome): void => {
      // Another pod's log may have settled later ticks first.
      const earlier = this.#unsentOf(owners, tick);
      this.#unsent.delete(tick);
      if (earlier === undefined) sendAll(outcome);
      else this.#putBehind(earlier, owners, () => sendAll(outcome));
    };
    const sendAll = (outcome: Outcome): void => {
      if (end >= countedBytes) countAll(owners, starts, end, -1);
      if (outcome === 'committed') this.#sendAll(buf, owners, starts, end);
      else this.#sendUnknown(buf, owners, starts, end);
      for (const sendNext of tick.behind) sendNext();
    };
    if (others === undefined) {
      first.whenSettled(position, send);
      return;
    }
    let left = 1 + others.length;
    let worst: Outcome = 'committed';
    const one = (outcome: Outcome): void => {
      if (outcome !== 'committed') worst = outcome;
      if (--left === 0) send(worst);
    };
    first.whenSettled(position, one);
    for (const { executor, at } of others) executor.whenSettled(at, one);
  }

  /** Answers that need not wait by themselves leave behind earlier ones of the same clients. */
  #sendBehindEarlier(): void {
    const { writer } = this;
    const owners = this.#owners;
    const earlier = this.#unsentOf(owners);
    if (earlier === undefined) {
      this.#sendNow();
      return;
    }
    const starts = this.#starts;
    const { buf, pos: end } = writer;
    this.#owners = [];
    this.#starts = [];
    writer.reset(true);
    this.#putBehind(earlier, owners, () => this.#sendAll(buf, owners, starts, end));
  }

  /** The last unsent tick of any of these clients; of those before `tick`, if it is given. */
  #unsentOf(clients: readonly C[], tick?: UnsentTick<C>): UnsentTick<C> | undefined {
    let found: UnsentTick<C> | undefined;
    let those: Set<C> | undefined;
    for (const one of this.#unsent) {
      if (one === tick) break;
      const known = (those ??= new Set(clients));
      if (one.owners.some((client) => known.has(client))) found = one;
    }
    return found;
  }

  #putBehind(earlier: UnsentTick<C>, owners: readonly C[], send: () => void): void {
    earlier.owners = [...earlier.owners, ...owners];
    earlier.behind.push(send);
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

  /** A client that had a part only of an answer cannot be told. */
  #sendUnknown(buf: Buffer, owners: readonly C[], starts: readonly number[], end: number): void {
    this.#options.unknown();
    for (const [i, client] of owners.entries()) {
      const bytes = asUnknown(buf.subarray(starts[i], starts[i + 1] ?? end));
      if (bytes === undefined) client.destroy();
      else if (bytes.length > 0) client.send(bytes, 0, bytes.length);
      else if (client.closing) client.endSoon();
    }
  }

  #sendAll(buf: Buffer, owners: readonly C[], starts: readonly number[], end: number): boolean {
    let isFree = true;
    const n = owners.length;
    for (let i = 0; i < n; i++) {
      const s = starts[i]!;
      const e = i + 1 < n ? starts[i + 1]! : end;
      const client = owners[i]!;
      if (e > s) {
        if (!client.send(buf, s, e)) isFree = false;
      } else if (client.closing) client.endSoon();
    }
    return isFree;
  }

  /** Lets a client continue with its pipeline in the next tick; one with few bytes to run before the others. */
  resume(client: C, pendingBytes = Infinity): void {
    (pendingBytes > smallBytes ? this.#resuming : this.#resumingSoon).push(client);
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

/** Counts the segments of a tick that are large, or no more where `sign` is -1. */
function countAll(
  owners: readonly TickClient[],
  starts: readonly number[],
  end: number,
  sign: 1 | -1,
): void {
  for (let i = 0; i < owners.length; i++) {
    const bytes = (starts[i + 1] ?? end) - starts[i]!;
    if (bytes >= countedBytes) owners[i]!.countWaiting(sign * bytes);
  }
}
