// The fence of a replica that may have lost the end of its log: under a relaxed fsync policy its machine
// stopped before a sync. It may have acknowledged entries that it does not have any more, so its vote
// could elect a leader without them.
//
// - The replica restarts in a new term, in which it has acknowledged nothing. A leader of an earlier term
//   steps down when it sees this term, because its knowledge of the replica's log is no longer valid.
// - The votes of the replica are marked. A candidate counts marked votes only once all voters have granted
//   theirs: then no remaining log is ahead of the candidate's.
// - The fence ends when the replica has applied an entry of that term or a later one: a leader was elected
//   since, and the log here is the leader's.

import { MessageType } from '../engine/frames.ts';
import type { ConfState, Message } from '../engine/frames.ts';

/** Types of messages beside the engine's: grants of a fenced replica. */
export const FencedType = { vote: 120, preVote: 121 } as const;

const engineType = new Map<number, number>([
  [FencedType.vote, MessageType.voteResponse],
  [FencedType.preVote, MessageType.preVoteResponse],
]);

/** The message of a fenced replica as others are to see it. */
export function marked(message: Message): Message {
  if (message.reject) return message;
  if (message.type === MessageType.voteResponse) return { ...message, type: FencedType.vote };
  if (message.type === MessageType.preVoteResponse) return { ...message, type: FencedType.preVote };
  return message;
}

/** Whether a message says that its sender votes for this replica. */
export function isGrant({ type, reject }: Message): boolean {
  const isVote = type === MessageType.voteResponse || type === MessageType.preVoteResponse;
  return (isVote && !reject) || engineType.has(type);
}

interface Election {
  term: number;
  /** By voter: whether it is fenced. */
  granted: Map<number, boolean>;
  /** Not told to the engine yet. */
  held: Message[];
  isDecided: boolean;
}

/** Counts votes for this replica. The engine counts every vote that it receives, and its own. */
export class VoteCount {
  /** Elections won by votes of fenced replicas. */
  decidedByAll = 0;
  readonly #replica: number;
  readonly #elections = new Map<number, Election>();

  constructor(replica: number) {
    this.#replica = replica;
  }

  /** Adds a grant. Returns the votes that the engine may receive now. */
  add(message: Message, isFenced: boolean, conf: ConfState): Message[] {
    const type = engineType.get(message.type) ?? message.type;
    const { term, from } = message;
    let election = this.#elections.get(type);
    if (election !== undefined && term < election.term) return [];
    if (election === undefined || term > election.term) {
      election = { term, granted: new Map(), held: [], isDecided: false };
      this.#elections.set(type, election);
    }
    election.granted.set(this.#replica, isFenced);
    election.granted.set(from, type !== message.type);
    election.held.push(type === message.type ? message : { ...message, type });
    if (!election.isDecided && !this.#isDecided(type, election, conf)) return [];
    return election.held.splice(0);
  }

  #isDecided(type: number, election: Election, { voters, outgoing }: ConfState): boolean {
    const { granted } = election;
    const hasAll = (members: readonly number[]): boolean => members.every((id) => granted.has(id));
    const hasMost = (members: readonly number[]): boolean =>
      members.filter((id) => granted.get(id) === false).length > members.length / 2;
    const isUsual = hasMost(voters) && (outgoing.length === 0 || hasMost(outgoing));
    election.isDecided = isUsual || (hasAll(voters) && hasAll(outgoing));
    const isElected = election.isDecided && type === MessageType.voteResponse;
    if (isElected && !isUsual) this.decidedByAll++;
    return election.isDecided;
  }
}
