// Answers of event-loop ticks that have ended, and that wait for the log. The answers of each client leave in their order,
// whichever log is settled first; a client that waits for nothing does not wait for others that were served in the same tick.

import type { ViewedBuffer } from '../../universal-row/bytes.ts';
import type { Executor, Outcome } from '../../universal-row/executor.ts';
import { asErrors, type Fate } from './unknown-answers.ts';

/** A connection as answers are sent to it. */
export interface AnsweredClient {
  /** The socket closes once its output has been sent. */
  readonly closing: boolean;
  /** Sends a range of bytes that the caller may reuse if the answer is true; false when the socket still holds them. */
  send(bytes: Buffer, start: number, end: number): boolean;
  /** Counts bytes of answers that wait for the log, or no more where they are less than 0. */
  countWaiting(bytes: number): void;
  endSoon(): void;
  destroy(): void;
}

/** Answers of one tick: client `owners[i]` gets the bytes from `starts[i]` to the next start, or to `end`. */
export interface TickAnswers<C> {
  readonly buf: ViewedBuffer;
  readonly owners: readonly C[];
  readonly starts: readonly number[];
  readonly end: number;
  /** Answers of what was evaluated in this tick, and of nothing else. */
  readonly evaluated: readonly EvaluatedRange[];
  readonly messages: readonly MessageRange[] | undefined;
}

/** A pod whose log tells the outcome of a position. */
export type SettlingPod = Pick<Executor, 'whenSettled'>;

/** For answers that depend on no log. */
export const noLog: { readonly pod: SettlingPod; readonly at: number } = {
  pod: { whenSettled: (_position, then) => then('committed') },
  at: 0,
};

/** Answers of commands that the pod has evaluated and that have this position in its log. */
export interface EvaluatedRange {
  readonly start: number;
  end: number;
  readonly pod: SettlingPod;
  readonly at: number;
}

/** Messages between answers. */
export interface MessageRange {
  readonly start: number;
  end: number;
  /** They are sent whatever becomes of the tick. */
  readonly isKept: boolean;
}

/** The answers of a tick, or of some of its clients, and how they are to leave. */
interface Part<C> {
  readonly answers: TickAnswers<C>;
  /** Undefined: all owners. */
  readonly clients: ReadonlySet<C> | undefined;
  readonly outcome: Outcome;
}

/** A tick whose answers wait for the log. */
interface WaitingTick<C> {
  readonly answers: TickAnswers<C>;
  /** Parts of later ticks that wait for nothing but these answers. */
  readonly behind: Part<C>[];
}

/** Segments that are counted while they wait for the log: smaller ones are no more than their commands. */
const countedBytes = 16 * 1024;

interface UnsentListener {
  /** Answers that depend on writes which are lost, or may be, become errors. */
  unknown(): void;
  /** Called when all clients have the answers of a tick, so that its buffer can be reused. Not called for every tick. */
  sent(buf: ViewedBuffer): void;
}

export class UnsentAnswers<C extends AnsweredClient> {
  /** In the order in which they ended. */
  readonly #ticks = new Set<WaitingTick<C>>();
  readonly #listener: UnsentListener;

  constructor(listener: UnsentListener) {
    this.#listener = listener;
  }

  /** Whether none of these clients waits for an earlier answer. */
  mayPass(owners: readonly C[]): boolean {
    return this.#ticks.size === 0 || this.#earlierOf(owners) === undefined;
  }

  /** Keeps the answers until the result is called. */
  add(answers: TickAnswers<C>): (outcome: Outcome) => void {
    count(answers, 1);
    const tick: WaitingTick<C> = { answers, behind: [] };
    this.#ticks.add(tick);
    return (outcome) => {
      this.#sendInOrder({ answers, clients: undefined, outcome }, tick);
      for (const part of tick.behind) this.#sendInOrder(part, tick);
      this.#ticks.delete(tick);
    };
  }

  /** Adds answers that need not wait for the log. They are sent after earlier answers to the same clients. */
  addBehind(answers: TickAnswers<C>): void {
    count(answers, 1);
    this.#sendInOrder({ answers, clients: undefined, outcome: 'committed' });
  }

  /** Sends what clients without earlier answers are to get, and puts the rest behind those. */
  #sendInOrder(part: Part<C>, before?: WaitingTick<C>): void {
    const { answers, clients } = part;
    const earlier = this.#earlierOf(clients ?? answers.owners, before);
    if (earlier === undefined) {
      this.#send(part);
      return;
    }
    const free = new Set<C>();
    const behind = new Map<WaitingTick<C>, Set<C>>();
    for (const client of clients ?? answers.owners) {
      const tick = earlier.get(client);
      if (tick === undefined) {
        free.add(client);
        continue;
      }
      const those = behind.get(tick);
      if (those === undefined) behind.set(tick, new Set([client]));
      else those.add(client);
    }
    if (free.size > 0) this.#send({ ...part, clients: free });
    for (const [tick, those] of behind) tick.behind.push({ ...part, clients: those });
  }

  /** The last waiting tick of each of these clients, of those before `before`; undefined where none has any. */
  #earlierOf(clients: Iterable<C>, before?: WaitingTick<C>): Map<C, WaitingTick<C>> | undefined {
    let found: Map<C, WaitingTick<C>> | undefined;
    let those: Set<C> | undefined;
    for (const tick of this.#ticks) {
      if (tick === before) break;
      those ??= new Set(clients);
      for (const client of tick.answers.owners) {
        if (those.has(client)) (found ??= new Map()).set(client, tick);
      }
    }
    return found;
  }

  #send({ answers, clients, outcome }: Part<C>): void {
    count(answers, -1, clients);
    if (outcome === 'committed') {
      const isFree = sendAll(answers, clients);
      if (isFree && clients === undefined) this.#listener.sent(answers.buf);
    } else this.#sendErrors(answers, clients);
  }

  /** Sends errors in place of answers. A client that already got part of an answer is disconnected. */
  #sendErrors(
    { buf, owners, starts, end, evaluated, messages = [] }: TickAnswers<C>,
    clients: ReadonlySet<C> | undefined,
  ): void {
    this.#listener.unknown();
    // The tick may be of several positions and logs: some of them may have been committed.
    const fates = evaluated.map(({ pod, at }) => fateOfPosition(pod, at));
    let span = 0;
    let next = 0;
    // Asked of one position after the other.
    const fateOf = (at: number): Fate => {
      while (next < messages.length && messages[next]!.end <= at) next++;
      const message = messages[next];
      if (message !== undefined && message.start <= at) return message.isKept ? 'kept' : 'dropped';
      while (span < evaluated.length && evaluated[span]!.end <= at) span++;
      return span < evaluated.length && evaluated[span]!.start <= at ? fates[span]! : 'unknown';
    };
    for (const [i, client] of owners.entries()) {
      if (clients?.has(client) === false) continue;
      const from = starts[i]!;
      const own = buf.subarray(from, starts[i + 1] ?? end);
      const bytes = asErrors(own, (at) => fateOf(from + at));
      if (bytes === undefined) client.destroy();
      else if (bytes.length > 0) client.send(bytes, 0, bytes.length);
      else if (client.closing) client.endSoon();
    }
  }
}

/** What becomes of an answer, as far as the log knows by now. */
function fateOfPosition(pod: SettlingPod, at: number): Fate {
  let fate: Fate = 'unknown';
  pod.whenSettled(at, (outcome) => {
    fate = outcome === 'committed' ? 'kept' : outcome;
  });
  return fate;
}

/** Sends answers, to some of their owners where `clients` is given. False when sockets still hold bytes of the buffer. */
export function sendAll<C extends AnsweredClient>(
  { buf, owners, starts, end }: TickAnswers<C>,
  clients?: ReadonlySet<C>,
): boolean {
  let isFree = true;
  const n = owners.length;
  for (let i = 0; i < n; i++) {
    const client = owners[i]!;
    if (clients?.has(client) === false) continue;
    const s = starts[i]!;
    const e = i + 1 < n ? starts[i + 1]! : end;
    if (e > s) {
      if (!client.send(buf, s, e)) isFree = false;
    } else if (client.closing) client.endSoon();
  }
  return isFree;
}

/** Counts the segments of a tick that are large, or no more where `sign` is -1. */
function count<C extends AnsweredClient>(
  { owners, starts, end }: TickAnswers<C>,
  sign: 1 | -1,
  clients?: ReadonlySet<C>,
): void {
  if (end < countedBytes) return;
  for (let i = 0; i < owners.length; i++) {
    const client = owners[i]!;
    if (clients?.has(client) === false) continue;
    const bytes = (starts[i + 1] ?? end) - starts[i]!;
    if (bytes >= countedBytes) client.countWaiting(sign * bytes);
  }
}
