// Staleness of a replica's state, carried by heartbeats and measured by clocks that are never
// compared with those of other nodes: each clock's values return to it.
//
//   heartbeat   sent: the leader's clock. echo: the follower's, as of its last answer. age: since a heartbeat was sent
//               that a majority has answered. commit: what the leader has applied.
//   answer      echo: the heartbeat's `sent`. sent: the follower's clock. age: the follower's features as bits: 1 keeps
//               leases, 2 answers questions (read-rounds.ts).
//
// When a majority has answered a heartbeat, no other leader existed before it was sent, so all
// entries committed by then are in `commit`. The follower received that with `echo`, so its state
// is no older than `echo - age` once it has applied `commit`. The same moment begins a lease:
// replicas that answered grant no vote for an election time-out.

import { MessageType } from '../engine/frames.ts';
import type { ConfState, Message } from '../engine/frames.ts';

export interface HeartbeatTimes {
  /** Milliseconds. */
  sent: number;
  echo: number;
  /** The incarnation whose clock `echo` is of; 0 for none. */
  echoLife: number;
  /** Infinity where the leader cannot tell. */
  age: number;
  commit: number;
}

export interface Staleness {
  /** The state has all that was committed so long ago, or more. Infinity while that is unknown. */
  ms: number;
  /** Entries that are known to be committed, and are not applied here. */
  entries: number;
}

interface FreshnessParts {
  incarnation: number;
  /** The highest term that this replica knows of. */
  term: () => number;
  /** Milliseconds, monotonic. */
  clock: () => number;
  /**
   * Milliseconds for which no replica that has answered and keeps leases grants a vote, by any
   * clock.
   */
  leaseMs: number;
  /** Whether this replica does. */
  keepsLeases: () => boolean;
}

interface Claim {
  index: number;
  asOf: number;
}

const keptClaims = 32;
const [keepsLeases, answersQuestions] = [1, 2];
/** Maximum relative drift between clocks of two nodes. */
const drift = 0.1;

export class Freshness {
  readonly #p: FreshnessParts;
  /** For a leader: its term, and each replica's last answer and clock. */
  #term = 0;
  #answers = new Map<number, { sent: number; clock: number; life: number; does: number }>();
  /** In this term: the leader has asked another replica to campaign at once. */
  #hasTransferred = false;
  /**
   * For a follower: the time its state will be as of once it has applied an index, in the order of
   * indexes.
   */
  #claims: Claim[] = [];
  #asOf = -Infinity;
  #knownCommit = 0;

  constructor(parts: FreshnessParts) {
    this.#p = parts;
  }

  /** Fields for a heartbeat, or for an answer to one. `applied` is this replica's index. */
  stamp(
    message: Message,
    applied: { index: number; term: number },
    conf: ConfState,
  ): HeartbeatTimes {
    const now = this.#p.clock();
    if (message.type === MessageType.heartbeatResponse) {
      // Clocks of two leaders have nothing in common, and lives of two nodes may have the same number.
      const isOfAsker = this.#heard?.from === message.to;
      const { sent, life } = isOfAsker ? this.#heard! : { sent: 0, life: 0 };
      const does = answersQuestions | (this.#p.keepsLeases() ? keepsLeases : 0);
      return { sent: now, echo: sent, echoLife: life, age: does, commit: 0 };
    }
    this.#leads(message.term);
    const answer = this.#answers.get(message.to);
    // Commits of earlier leaders are known once an entry of the own term is committed.
    const age =
      applied.term === message.term ? now - this.#confirmedAt(message.from, conf) : Infinity;
    const [echo, echoLife] = answer ? [answer.clock, answer.life] : [0, 0];
    return { sent: now, echo, echoLife, age, commit: applied.index };
  }

  /** Last heartbeat received: its values are returned in the answer to its sender. */
  #heard: { from: number; sent: number; life: number } | undefined;

  /** Times that came with a message of a node in that life. */
  received(message: Message, life: number, times: HeartbeatTimes): void {
    const isOwn = times.echoLife === this.#p.incarnation;
    if (message.type === MessageType.heartbeatResponse) {
      if (message.term !== this.#term || !isOwn) return;
      const before = this.#answers.get(message.from);
      const sent = Math.max(times.echo, before?.sent ?? -Infinity);
      this.#answers.set(message.from, {
        sent,
        clock: times.sent,
        life,
        does: Math.floor(times.age),
      });
      return;
    }
    // A late one of a leader that has been replaced.
    if (message.term < this.#p.term()) return;
    this.#heard = { from: message.from, sent: times.sent, life };
    this.#knownCommit = Math.max(this.#knownCommit, times.commit);
    if (!isOwn || times.age === Infinity) return;
    const asOf = times.echo - times.age * (1 + drift);
    this.#claims.push({ index: times.commit, asOf });
    // One in the middle goes: the first is due soon, the last says most.
    if (this.#claims.length > keptClaims) this.#claims.splice(1, 1);
  }

  /** Staleness of a follower or learner with this applied index. */
  staleness(applied: number): Staleness {
    while (this.#claims.length > 0 && this.#claims[0]!.index <= applied) {
      this.#asOf = Math.max(this.#asOf, this.#claims.shift()!.asOf);
    }
    const ms = Math.max(0, this.#p.clock() - this.#asOf);
    return { ms, entries: Math.max(0, this.#knownCommit - applied) };
  }

  /** Staleness of a leader in that term. */
  leaderStaleness(replica: number, term: number, conf: ConfState): Staleness {
    const confirmedAt = term === this.#term ? this.#confirmedAt(replica, conf) : -Infinity;
    return { ms: Math.max(0, this.#p.clock() - confirmedAt), entries: 0 };
  }

  /** Whether no other replica can have been elected by now, so that a leader need not ask. */
  hasLease(replica: number, term: number, conf: ConfState): boolean {
    const { leaseMs, clock } = this.#p;
    if (term !== this.#term || this.#hasTransferred || !this.#p.keepsLeases()) return false;
    const others = [...conf.voters, ...conf.outgoing].filter((voter) => voter !== replica);
    if (!others.every((voter) => this.#does(voter, keepsLeases))) return false;
    return clock() < this.#confirmedAt(replica, conf) + leaseMs * (1 - drift);
  }

  /** For the leader of this term: whether a replica answers questions. */
  canAsk(replica: number): boolean {
    return this.#does(replica, answersQuestions);
  }

  #does(replica: number, what: number): boolean {
    return ((this.#answers.get(replica)?.does ?? 0) & what) !== 0;
  }

  /** A replica is asked to campaign without regard to leases. */
  transferred(term: number): void {
    this.#leads(term);
    this.#hasTransferred = true;
  }

  #leads(term: number): void {
    if (term === this.#term) return;
    this.#term = term;
    this.#answers.clear();
    this.#hasTransferred = false;
  }

  /** When a heartbeat was sent that a majority has answered; of both halves of a joint configuration. */
  #confirmedAt(replica: number, { voters, outgoing }: ConfState): number {
    const of = (members: readonly number[]): number => {
      const sent = members.map((member) =>
        member === replica ? this.#p.clock() : (this.#answers.get(member)?.sent ?? -Infinity),
      );
      return sent.sort((a, b) => b - a)[Math.floor(members.length / 2)]!;
    };
    return Math.min(of(voters), outgoing.length > 0 ? of(outgoing) : Infinity);
  }
}
