// The groups of replicas of a plane as one member of its ticks: there may be thousands, of which a tick has touched few.

import type { LocalPod } from '../../../contracts/local-pod.ts';
import { assert } from '../../../universal-row/assert.ts';
import type { Outcome, TurnMember } from '../../../universal-row/executor.ts';
import type { ChangeListener, RowChange } from '../../../universal-row/row-change.ts';
import type { PodLink } from './pod-link.ts';

/** The part of one group in the tick under way. */
export interface GroupTurn {
  /** The pod on which commands of the group have run in this tick; undefined when none has. */
  pod: LocalPod | undefined;
  /** Its `losses` when the first of them ran. */
  losses: number;
}

/** A group, as far as it is asked to tell of changes. */
interface Follower {
  follow(listener: ChangeListener | undefined): void;
}

const lost = -2;

export class GroupTurns implements TurnMember {
  readonly #followers = new Set<Follower>();
  readonly #links = new Set<PodLink>();
  readonly #touched: GroupTurn[] = [];
  #listener: ChangeListener | undefined;
  /** State of the tick that has just ended: pods, and promises to wait for. */
  #pods: LocalPod[] = [];
  #positions: number[] = [];
  #ticks = 0;
  #atEnd: (() => (outcome: Outcome) => void)[] = [];

  add(group: Follower): void {
    this.#followers.add(group);
    if (this.#listener !== undefined) group.follow(this.#listener);
  }

  delete(group: Follower): void {
    this.#followers.delete(group);
    group.follow(undefined);
  }

  follow(listener: ChangeListener | undefined): void {
    this.#listener = listener;
    for (const group of this.#followers) group.follow(listener);
  }

  /** A command runs on a pod of this process, whose `losses` were as many when it began. */
  touch(turn: GroupTurn, pod: LocalPod, losses: number): void {
    if (turn.pod === undefined) {
      turn.pod = pod;
      turn.losses = losses;
      this.#touched.push(turn);
    } else if (turn.pod !== pod) turn.losses = -1;
    else if (losses < turn.losses) turn.losses = losses;
  }

  /**
   * Calls back when this tick ends; the returned function is called once the tick's writes are
   * settled.
   */
  atEnd(ended: () => (outcome: Outcome) => void): void {
    this.#atEnd.push(ended);
  }

  /** Something was written for the link, which is to leave at the end of the tick. */
  written(link: PodLink): void {
    this.#links.add(link);
  }

  endTurn(): number {
    if (this.#links.size !== 0) {
      for (const link of this.#links) link.flush();
      this.#links.clear();
    }
    const touched = this.#touched;
    if (touched.length === 0) {
      this.#settleAfter([], []);
      return -1;
    }
    const pods = this.#pods;
    const positions = this.#positions;
    pods.length = 0;
    positions.length = 0;
    for (const turn of touched) {
      const pod = turn.pod!;
      const position = pod.flushTurn();
      turn.pod = undefined;
      const wasLost = pod.losses !== turn.losses;
      if (position < 0 && !wasLost) continue;
      pods.push(pod);
      positions.push(wasLost ? lost : position);
    }
    touched.length = 0;
    this.#settleAfter(pods, positions);
    return pods.length === 0 ? -1 : ++this.#ticks;
  }

  #settleAfter(pods: readonly LocalPod[], positions: readonly number[]): void {
    if (this.#atEnd.length === 0) return;
    const after = this.#atEnd.splice(0).map((ended) => ended());
    whenAll(pods, positions, (outcome) => {
      for (const then of after) then(outcome);
    });
  }

  /** To be called before another tick ends, if at all. */
  whenSettled(tick: number, then: (outcome: Outcome) => void): void {
    assert(tick === this.#ticks, 'only the last tick can be waited for');
    whenAll(this.#pods, this.#positions, then);
  }
}

function whenAll(
  pods: readonly LocalPod[],
  positions: readonly number[],
  then: (outcome: Outcome) => void,
): void {
  if (pods.length === 0 || positions.includes(lost)) {
    then(pods.length === 0 ? 'committed' : 'unknown');
    return;
  }
  if (pods.length === 1) {
    pods[0]!.whenSettled(positions[0]!, then);
    return;
  }
  let left = pods.length;
  let worst: Outcome = 'committed';
  const one = (outcome: Outcome): void => {
    if (outcome !== 'committed') worst = outcome;
    if (--left === 0) then(worst);
  };
  const all = pods.slice();
  const at = positions.slice();
  for (let i = 0; i < all.length; i++) all[i]!.whenSettled(at[i]!, one);
}

/** The listener, of whose every report `touch` is told before. */
export function touchingFirst(listener: ChangeListener, touch: () => void): ChangeListener {
  return {
    get wantsMisses() {
      return listener.wantsMisses;
    },
    describe: (args, client) => listener.describe(args, client),
    rowsChanged: (changes: readonly RowChange[]) => {
      touch();
      listener.rowsChanged(changes);
    },
    tablesChanged: (tables) => {
      touch();
      listener.tablesChanged(tables);
    },
  };
}
