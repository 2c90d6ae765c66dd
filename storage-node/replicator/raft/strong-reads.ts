// Strong reads of a replica, by the cheapest safe way: no round trip where it is the only voter or
// has a lease, a question to some voters where it leads (read-rounds.ts), else the engine, which
// asks the leader (read-barriers.ts).

import { Role } from '../engine/raft-engine.ts';
import type { RaftEngine } from '../engine/raft-engine.ts';
import type { Message, ReadState } from '../engine/frames.ts';
import type { EntryApplier } from './entry-applier.ts';
import type { Freshness } from './freshness.ts';
import type { GroupLog } from './group-log.ts';
import { ReadBarriers } from './read-barriers.ts';
import { AskType, askMessage, ReadRounds, type Question } from './read-rounds.ts';

interface StrongReadsParts {
  handle: number;
  replica: number;
  incarnation: number;
  engine: RaftEngine;
  applier: EntryApplier;
  log: GroupLog;
  freshness: Freshness;
  /** As this replica has let others know, or is about to. */
  state: () => { role: number; term: number; commit: number };
  /** Leases may be used now. */
  mayUseLeases: () => boolean;
  post: (message: Message) => void;
}

export class StrongReads {
  readonly #p: StrongReadsParts;
  readonly #barriers: ReadBarriers;
  readonly #rounds: ReadRounds;
  /** Those who wait until this leader has applied an entry of its term. */
  #leading: (() => void)[] = [];

  constructor(parts: StrongReadsParts) {
    this.#p = parts;
    this.#barriers = new ReadBarriers(parts.replica, parts.incarnation);
    this.#rounds = new ReadRounds(parts.replica);
  }

  /** Reads that wait. */
  get count(): number {
    return this.#barriers.count + this.#rounds.count + this.#leading.length;
  }

  get isSoleVoter(): boolean {
    const { applier, replica } = this.#p;
    const { voters, outgoing } = applier.conf;
    return outgoing.length === 0 && voters.length === 1 && voters[0] === replica;
  }

  /** True when it has called back at once. */
  add(failsAt: number, then: (isSafe: boolean) => void): boolean {
    const leadership = this.#leadership;
    if (leadership === undefined) {
      this.#barriers.add(failsAt, then);
      return false;
    }
    if (this.isSoleVoter || this.#hasLease(leadership.term)) {
      return this.addAt(leadership.commit, failsAt, then);
    }
    this.#rounds.add(failsAt, then);
    return false;
  }

  /**
   * Waits for an index that a client has seen, without asking other replicas; true when it has
   * called back at once.
   */
  addAt(index: number, failsAt: number, then: (isSafe: boolean) => void): boolean {
    const { applier, log } = this.#p;
    if (index <= applier.index && !log.isInstalling) {
      then(true);
      return true;
    }
    this.#barriers.addAt(index, failsAt, then);
    return false;
  }

  /**
   * Calls back once this leader has applied an entry of its term, and with it all that was committed before: a majority has
   * followed it since its election. Never if its role changes before.
   */
  whenLeading(then: () => void): void {
    if (this.#isLeading) then();
    else this.#leading.push(then);
  }

  get #isLeading(): boolean {
    const { applier, log, state } = this.#p;
    const { role, term } = state();
    return role === Role.leader && applier.term === term && !log.isInstalling;
  }

  /** Sends the due questions at the end of an event-loop tick. */
  flush(tick: number): void {
    const { engine, handle } = this.#p;
    if (this.#rounds.count > 0) {
      const leadership = this.#leadership;
      if (leadership === undefined) this.#askEngine(Infinity);
      else this.#ask(this.#rounds.question(tick, leadership));
    }
    if (this.#barriers.count === 0 || this.isEngineBehind) return;
    const question = this.#barriers.question(tick);
    if (question) engine.readIndex(handle, question);
  }

  /**
   * The engine of a sole voter answers with the commit index that it knows, even before the first entry of its term
   * is committed. Entries of an earlier process may be committed without its knowledge.
   */
  get isEngineBehind(): boolean {
    const { applier, engine, handle } = this.#p;
    return this.isSoleVoter && applier.term !== engine.status(handle).term;
  }

  /** A question or an answer; false for any other message. */
  receive(message: Message): boolean {
    const { applier, state, replica } = this.#p;
    const { type, from, term, commit } = message;
    if (type === AskType.question) {
      if (term === state().term) {
        this.#p.post(askMessage(AskType.answer, { from: replica, to: from, term }, commit));
      }
      return true;
    }
    if (type !== AskType.answer) return false;
    const round = this.#rounds.answer(message, applier.conf);
    // Reads that this sets off come too late for it.
    for (const { then, failsAt } of round?.readers ?? []) this.addAt(round!.index, failsAt, then);
    return true;
  }

  /** Answers of the engine. */
  answered(reads: readonly ReadState[]): void {
    for (const { index, context } of reads) this.#barriers.answer(context, index);
    if (reads.length > 0) this.applied();
  }

  /** The state is a later one. */
  applied(): void {
    const { applier, log } = this.#p;
    if (!log.isInstalling) this.#barriers.applied(applier.index);
    if (this.#leading.length > 0 && this.#isLeading) {
      for (const then of this.#leading.splice(0)) then();
    }
  }

  roleChanged(): void {
    this.#leading = [];
    this.#askEngine(Infinity);
    this.#barriers.askAgain();
  }

  tick(tick: number): void {
    if (this.#rounds.count > 0) {
      const leadership = this.#leadership;
      if (leadership !== undefined) this.#ask(this.#rounds.again(tick, leadership));
      this.#askEngine(tick);
    }
    this.#barriers.expire(tick);
  }

  close(): void {
    this.#leading = [];
    this.#askEngine(Infinity);
    this.#barriers.expire(Infinity);
  }

  /** View of a leader that has applied an entry of its term, and so knows all earlier commits. */
  get #leadership() {
    if (!this.#isLeading) return undefined;
    const { applier, freshness, replica } = this.#p;
    const { term, commit } = this.#p.state();
    const { conf } = applier;
    const leadership = { term, commit, conf, canAsk: (voter: number) => freshness.canAsk(voter) };
    return ReadRounds.isPossible(replica, leadership) ? leadership : undefined;
  }

  #hasLease(term: number): boolean {
    const { freshness, replica, applier, mayUseLeases } = this.#p;
    return mayUseLeases() && freshness.hasLease(replica, term, applier.conf);
  }

  #ask(question: Question | undefined): void {
    if (question === undefined) return;
    const { replica: from, post, state } = this.#p;
    const { term } = state();
    for (const to of question.voters) {
      post(askMessage(AskType.question, { from, to, term }, question.number));
    }
  }

  #askEngine(tick: number): void {
    for (const { then, failsAt } of this.#rounds.takeLate(tick)) this.#barriers.add(failsAt, then);
  }
}
