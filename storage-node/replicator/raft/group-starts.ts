// Limits how many groups of a pod look for a leader at a time. Such a group ticks and campaigns. With thousands at
// once, a round of votes takes longer than an election timeout, and no election ends. So some groups start when they
// are opened or lose their leader. The others sleep in a queue, from which a few start with each tick. A group that
// finds no leader goes to the end of the queue, because its voters may be down.

interface StartingGroup {
  /** Whether it knows a leader. */
  isLed: boolean;
  /** Time passes for it. */
  wake: () => void;
  /** Sleeps until there is a message for it, or its turn. */
  rest: () => void;
}

interface GroupStartsOptions<Group> {
  /** A group that was opened, or has waited, is to campaign soon, unless there is a leader. */
  campaign: (group: Group) => void;
  /** Groups that look for a leader at a time. */
  atOnce: number;
  /** Ticks after which one without a leader makes room for another. */
  patienceTicks: number;
}

export class GroupStarts<Group extends StartingGroup> {
  readonly #options: GroupStartsOptions<Group>;
  readonly #waiting = new Set<Group>();
  /** With the tick at which each began, in this order. */
  readonly #begun = new Map<Group, number>();

  constructor(options: GroupStartsOptions<Group>) {
    this.#options = options;
  }

  /** Groups that wait for their turn. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Groups that look for a leader now. */
  get begun(): number {
    return this.#begun.size;
  }

  /**
   * The group was opened. If fewer than `atOnce` groups look for a leader, it campaigns at once, unless it hears of a leader
   * before: when all its voters have just been opened, there is none to wait for.
   */
  opened(group: Group, tick: number): void {
    if (this.#begun.size < this.#options.atOnce) this.#begin(group, tick);
    else this.#wait(group);
  }

  /** The group has lost its leader. */
  leaderless(group: Group, tick: number): void {
    if (this.#begun.has(group) || this.#waiting.has(group)) return;
    if (this.#begun.size < this.#options.atOnce) this.#begun.set(group, tick);
    else this.#wait(group);
  }

  /** A message, a read or the like has woken the group: it need not wait for its turn. */
  woken(group: Group, tick: number): void {
    if (this.#waiting.delete(group)) this.#begin(group, tick);
  }

  /** It has a leader, or is closed. */
  ended(group: Group): void {
    this.#waiting.delete(group);
    this.#begun.delete(group);
  }

  /** Starts at most `most` of the waiting groups. */
  tick(tick: number, most: number): void {
    const { atOnce, patienceTicks } = this.#options;
    if (this.#waiting.size === 0) return;
    let left = most;
    for (const [group, since] of this.#begun) {
      if (tick - since < patienceTicks || left-- === 0) break;
      this.#begun.delete(group);
      if (!group.isLed) this.#wait(group);
    }
    left = Math.min(most, atOnce - this.#begun.size);
    for (const group of this.#waiting) {
      if (left-- <= 0) break;
      // Then `woken` moves it.
      group.wake();
    }
  }

  #wait(group: Group): void {
    this.#waiting.add(group);
    group.rest();
  }

  #begin(group: Group, tick: number): void {
    this.#begun.set(group, tick);
    this.#options.campaign(group);
  }
}
