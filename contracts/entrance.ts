// Before a pod: requests wait here while it has more to do than it can, reads and writes apart.

export interface Guest {
  readonly tenant: number;
  readonly isWrite: boolean;
  /** By the tenant's own name for it. */
  readonly database: string;
  /** Units that were taken for it by estimate, once it was let in; for the entrance alone. */
  taken: number;
  /** It waited, and now either is let in or has waited as long as it may. */
  end: (letIn: boolean) => void;
}

export interface Entrance {
  /** False while nobody has to wait: then it need not be asked. */
  readonly isWatched: boolean;
  /**
   * True while there is so much to spare that what is short and charged at once, as a body of points, need not ask:
   * its cost is seen soon enough. What goes on for long has to.
   */
  readonly isCalm: boolean;
  /** Whether it may begin at once. If not it is to `wait`. `now` is monotonic milliseconds, as everywhere here. */
  mayBegin(guest: Guest, now: number): boolean;
  /** `end` will be called. False where too many wait already. */
  wait(guest: Guest, now: number): boolean;
  /** It waits no longer. False when it was let in, or refused, before. */
  leave(guest: Guest): boolean;
  /** One that was let in is done, and has cost so many units. */
  settle(guest: Guest, units: number, now: number): void;
}
