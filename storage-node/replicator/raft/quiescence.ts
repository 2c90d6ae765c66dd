// When a group sleeps, its replicas neither tick nor send heartbeats. A leader offers sleep when nothing has happened
// for a while and all active replicas have the whole log. A follower accepts if it has exactly the same state, else
// it wakes the leader. Any message, proposal or read wakes a replica, and so does the loss of the link to its
// leader's node. A replica that missed the offer campaigns in vain, which wakes the others.

import type { Message } from '../engine/frames.ts';
import type { RaftEngine } from '../engine/raft-engine.ts';

/** Types of messages beside the engine's. */
export const SleepType = { offer: 110, wake: 111 } as const;

interface QuiescenceParts {
  handle: number;
  replica: number;
  engine: RaftEngine;
  /** Ticks of the pod so far. */
  now: () => number;
  idleTicks: () => number;
  /** Nothing waits for anything here. */
  isAtRest: () => boolean;
  appliedIndex: () => number;
  post: (message: Message) => void;
  /** Whether it is among those that could go to sleep. */
  awake: (isAwake: boolean) => void;
}

export class Quiescence {
  isAsleep = false;
  readonly #p: QuiescenceParts;
  #activeAt: number;

  constructor(parts: QuiescenceParts) {
    this.#p = parts;
    this.#activeAt = parts.now();
    parts.awake(true);
  }

  /** Something happens that is more than a heartbeat. */
  active(): void {
    this.#activeAt = this.#p.now();
    this.wake();
  }

  wake(): void {
    if (!this.isAsleep) return;
    this.isAsleep = false;
    this.#activeAt = this.#p.now();
    this.#p.engine.setAsleep(this.#p.handle, false);
    this.#p.awake(true);
  }

  /** Sleeps without a leader, until it is woken. */
  rest(): void {
    this.#sleep();
  }

  /** Called by a leader from time to time; true when it looked whether all have all there is. */
  offerIfIdle(): boolean {
    const { engine, handle, replica, now, idleTicks, isAtRest, appliedIndex, post } = this.#p;
    if (this.isAsleep || now() - this.#activeAt < idleTicks() || !isAtRest()) return false;
    const { term, commit, lastIndex } = engine.status(handle);
    if (commit !== lastIndex || commit !== appliedIndex()) return true;
    const { conf, peers } = engine.progress(handle);
    if (conf.outgoing.length > 0) return true;
    const others = peers.filter(({ id, recentlyActive }) => id !== replica && recentlyActive);
    if (!others.every(({ match, pendingSnapshot }) => match === lastIndex && pendingSnapshot === 0))
      return true;
    for (const { id } of others) post(this.#message(SleepType.offer, id, term, commit));
    this.#sleep();
    return true;
  }

  /** From the leader: sleeps, or wakes it. */
  offered({ from, term, commit }: Message): void {
    const { engine, handle, isAtRest, appliedIndex, post } = this.#p;
    const s = engine.status(handle);
    const same = s.term === term && s.lead === from && s.commit === commit;
    if (same && s.lastIndex === commit && appliedIndex() === commit && isAtRest()) this.#sleep();
    else post(this.#message(SleepType.wake, from, term, commit));
  }

  #sleep(): void {
    if (this.isAsleep) return;
    this.isAsleep = true;
    this.#p.engine.setAsleep(this.#p.handle, true);
    this.#p.awake(false);
  }

  #message(type: number, to: number, term: number, commit: number): Message {
    const noBytes = new Uint8Array(0);
    return {
      ...{ type, to, from: this.#p.replica, term, commit },
      ...{ logTerm: 0, index: 0, vote: 0, reject: false, rejectHint: 0, hasHardState: false },
      ...{ context: noBytes, entries: [], snapshot: undefined, responses: [] },
    };
  }
}
