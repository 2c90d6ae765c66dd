// All replica groups of a plane as one member of its ticks. There may be thousands of groups, and a tick touches few of
// them, so only the touched groups do work at its end.

import type { LocalPod } from '../../../contracts/local-pod.ts';
import { assert } from '../../../universal-row/assert.ts';
import { type Outcome, outcomeOfBoth, type TickMember } from '../../../universal-row/executor.ts';
import type { ChangeListener, RowChange } from '../../../universal-row/row-change.ts';
import type { PodLink } from './pod-link.ts';

/** State of one group in the current tick. */
export interface GroupTick {
  /** The pod on which commands of the group have run in this tick; undefined when none has. */
  pod: LocalPod | undefined;
  /** The pod's `losses` when the first command of the tick ran. */
  losses: number;
  /** Its `lastPosition` then. */
  after: number;
  /** The last command of the group: the pod on which it has run, and the position that this gives to its tick. */
  readonly last: { pod: LocalPod | undefined; at: number };
}

/** A group that can report row changes to a listener. */
interface Follower {
  follow(listener: ChangeListener | undefined): void;
}

/** Used as a position where no log outcome determines what happened to the commands of the tick. */
const undecided = -2;

export class GroupTicks implements TickMember {
  readonly #followers = new Set<Follower>();
  readonly #links = new Set<PodLink>();
  readonly #touched: GroupTick[] = [];
  #listener: ChangeListener | undefined;
  /** State of the tick that has just ended: pods, and promises to wait for. */
  #pods: LocalPod[] = [];
  #positions: number[] = [];
  /** By position: the only outcome that holds for all commands of the tick; undefined if every outcome does. */
  #holding: (Outcome | undefined)[] = [];
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

  /** Records that a command runs on a pod of this process. `losses` is the pod's counter when the command began. */
  touch(tick: GroupTick, pod: LocalPod, losses: number): void {
    tick.last.pod = pod;
    tick.last.at = pod.lastPosition + 1;
    if (tick.pod === undefined) {
      tick.pod = pod;
      tick.losses = losses;
      tick.after = pod.lastPosition;
      this.#touched.push(tick);
    } else if (tick.pod !== pod) {
      tick.losses = -1;
      tick.after = -Infinity;
    } else if (losses < tick.losses) tick.losses = losses;
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

  endTick(): number {
    if (this.#links.size !== 0) {
      for (const link of this.#links) link.flush();
      this.#links.clear();
    }
    const touched = this.#touched;
    const pods = this.#pods;
    const positions = this.#positions;
    const holding = this.#holding;
    pods.length = 0;
    positions.length = 0;
    holding.length = 0;
    for (const tick of touched) {
      const pod = tick.pod!;
      const position = pod.flushTick();
      const ended = pod.lastPosition - tick.after;
      tick.pod = undefined;
      const wasUndone = pod.losses !== tick.losses;
      if (position < 0 && !wasUndone) continue;
      pods.push(pod);
      if (wasUndone) {
        // In the tick that was undone, or after it.
        positions.push(ended === 1 ? pod.lastPosition : undecided);
        holding.push('lost');
      } else {
        positions.push(position);
        // The first of several ticks may be committed, and the last one lost.
        holding.push(ended > 1 ? 'committed' : undefined);
      }
    }
    touched.length = 0;
    this.#settleAfter();
    return pods.length === 0 ? -1 : ++this.#ticks;
  }

  #settleAfter(): void {
    if (this.#atEnd.length === 0) return;
    const after = this.#atEnd.splice(0).map((ended) => ended());
    this.#whenAll((outcome) => {
      for (const then of after) then(outcome);
    });
  }

  /** To be called before another tick ends, if at all. */
  whenSettled(tick: number, then: (outcome: Outcome) => void): void {
    assert(tick === this.#ticks, 'only the last tick can be waited for');
    this.#whenAll(then);
  }

  #whenAll(then: (outcome: Outcome) => void): void {
    const pods = this.#pods;
    const positions = this.#positions;
    if (pods.length === 0 || positions.includes(undecided)) {
      then(pods.length === 0 ? 'committed' : 'unknown');
      return;
    }
    const holding = this.#holding;
    if (pods.length === 1) {
      pods[0]!.whenSettled(positions[0]!, holdingOnly(holding[0], then));
      return;
    }
    let left = pods.length;
    let all: Outcome | undefined;
    const one = (outcome: Outcome): void => {
      all = all === undefined ? outcome : outcomeOfBoth(all, outcome);
      if (--left === 0) then(all);
    };
    // The arrays may be those of the next tick before all are called.
    const awaited = pods.map((pod, i) => ({ pod, at: positions[i]!, only: holding[i] }));
    for (const { pod, at, only } of awaited) pod.whenSettled(at, holdingOnly(only, one));
  }
}

/** If `only` is set, every other outcome is reported as unknown. */
function holdingOnly(
  only: Outcome | undefined,
  then: (outcome: Outcome) => void,
): (outcome: Outcome) => void {
  if (only === undefined) return then;
  return (outcome) => then(outcome === only ? outcome : 'unknown');
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
