// Strong reads at a leader that has applied an entry of its term: they only require that no other
// leader had been elected when they arrived. One question covers all reads since the one before;
// while it is in flight, others wait for the next. It goes to as few voters as are needed, those
// first that have answered before, and after a tick to all.
//
// A voter answers from its driver's announced state: one that votes in a later term says so only
// after it has told the driver that term, so that an answer is older than any such vote.

import type { ConfState, Message } from '../engine/frames.ts';

/** Types of messages beside the engine's. They travel with heartbeats; `commit` is the number of the question. */
export const AskType = { question: 112, answer: 113 } as const;

interface Reader {
  readonly then: (isSafe: boolean) => void;
  readonly failsAt: number;
}

/** Reads that may be answered by the state of an index, and later ones. */
export interface Round {
  readonly number: number;
  readonly askedAt: number;
  readonly term: number;
  readonly index: number;
  readonly readers: readonly Reader[];
}

/** A leader's view of its group. */
interface Leadership {
  readonly term: number;
  /** Commit index it has announced. */
  readonly commit: number;
  readonly conf: ConfState;
  /** Whether a voter answers questions. */
  readonly canAsk: (voter: number) => boolean;
}

/** A question, and the replicas it is sent to. */
export interface Question {
  readonly number: number;
  readonly voters: readonly number[];
}

/** Ticks after which a question without an answer is given up. */
const patienceTicks = 6;
const noBytes = new Uint8Array(0);

export class ReadRounds {
  readonly #replica: number;
  #waiting: Reader[] = [];
  #round: Round | undefined;
  #number = 0;
  #term = 0;
  /** By voter: the last question of this term that it has answered. */
  readonly #answered = new Map<number, number>();

  constructor(replica: number) {
    this.#replica = replica;
  }

  get count(): number {
    return this.#waiting.length + (this.#round?.readers.length ?? 0);
  }

  add(failsAt: number, then: (isSafe: boolean) => void): void {
    this.#waiting.push({ then, failsAt });
  }

  /** Whether enough voters answer questions; no other one need where there is no other one. */
  static isPossible(replica: number, { conf, canAsk }: Leadership): boolean {
    const { voters, outgoing } = conf;
    const has = (members: readonly number[]): boolean =>
      members.filter((one) => one === replica || canAsk(one)).length > members.length / 2;
    return has(voters) && (outgoing.length === 0 || has(outgoing));
  }

  /** Replicas to ask at the end of an event-loop tick in which this one leads. */
  question(tick: number, leadership: Leadership): Question | undefined {
    if (this.#round !== undefined || this.#waiting.length === 0) return undefined;
    const { term, commit: index } = leadership;
    if (term !== this.#term) this.#answered.clear();
    this.#term = term;
    const number = ++this.#number;
    this.#round = { number, askedAt: tick, term, index, readers: this.#waiting };
    this.#waiting = [];
    return { number, voters: this.#fewest(leadership) };
  }

  /** Replicas to ask again with the same question: there was no answer within a tick. */
  again(tick: number, leadership: Leadership): Question | undefined {
    const round = this.#round;
    if (round === undefined || tick <= round.askedAt) return undefined;
    return { number: round.number, voters: this.#others(leadership) };
  }

  /** The reads that nothing but the state is in the way of now, if there are any. */
  answer({ from, term, commit: number }: Message, conf: ConfState): Round | undefined {
    const round = this.#round;
    if (term !== this.#term || number > this.#number) return undefined;
    this.#answered.set(from, Math.max(number, this.#answered.get(from) ?? 0));
    if (round === undefined) return undefined;
    const { voters, outgoing } = conf;
    const has = (members: readonly number[]): boolean =>
      this.#count(members, round.number) > members.length / 2;
    if (!has(voters) || (outgoing.length > 0 && !has(outgoing))) return undefined;
    this.#round = undefined;
    return round;
  }

  /** Those whose question was asked too long ago, and all that wait behind it; all for Infinity. */
  takeLate(tick: number): readonly Reader[] {
    const round = this.#round;
    if (tick !== Infinity && (round === undefined || tick - round.askedAt < patienceTicks))
      return [];
    const late = [...(round?.readers ?? []), ...this.#waiting];
    this.#round = undefined;
    this.#waiting = [];
    return late;
  }

  #count(members: readonly number[], number: number): number {
    return members.filter(
      (one) => one === this.#replica || (this.#answered.get(one) ?? 0) >= number,
    ).length;
  }

  #others({ conf: { voters, outgoing }, canAsk }: Leadership): number[] {
    const all = [...new Set([...voters, ...outgoing])];
    return all.filter((one) => one !== this.#replica && canAsk(one));
  }

  #fewest(leadership: Leadership): number[] {
    const { voters, outgoing } = leadership.conf;
    const others = this.#others(leadership);
    if (outgoing.length > 0 || !voters.includes(this.#replica)) return others;
    // Leaders are spread over the nodes: each begins with the one after it.
    const rank = (one: number): number => (one > this.#replica ? 0 : 1);
    const at = (one: number): number => this.#answered.get(one) ?? 0;
    others.sort((a, b) => at(b) - at(a) || rank(a) - rank(b) || a - b);
    return others.slice(0, Math.floor(voters.length / 2));
  }
}

export function askMessage(
  type: number,
  ids: { from: number; to: number; term: number },
  number: number,
): Message {
  return {
    ...{ ...ids, type, commit: number },
    ...{ logTerm: 0, index: 0, vote: 0, reject: false, rejectHint: 0, hasHardState: false },
    ...{ context: noBytes, entries: [], snapshot: undefined, responses: [] },
  };
}
