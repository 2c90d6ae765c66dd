// Which tables long commands hold. A long command that reads shares a table with others that read; one
// that writes has it alone. Commands that come meanwhile wait in the order in which they came.

/** Limit for all tables of a pod; commands beyond it are refused. */
const maxWaiting = 16_384;
/** Milliseconds for which commands that waited are run before others have the thread. */
const drainMs = 1;

interface Waiting {
  readonly isWrite: boolean;
  readonly run: () => void;
  /** Absent where the wait is unlimited. */
  readonly refuse: ((text: string) => void) | undefined;
}

interface Hold {
  readers: number;
  isWritten: boolean;
  queue: Waiting[];
  /** Error for waiting commands, until all holders of the table have released it. */
  refusal: string | undefined;
  /** The first of the queue is being run. */
  isServing: boolean;
  isScheduled: boolean;
}

export class TableHolds {
  /** Commands that wait for tables. */
  waiting = 0;
  readonly #holds = new Map<number, Hold>();

  /** Tables that are held, or waited for. */
  get size(): number {
    return this.#holds.size;
  }

  isHeld(table: number): boolean {
    return this.#holds.has(table);
  }

  /**
   * Whether long commands read the table: it must not change, not even by dropping an expired row.
   */
  isRead(table: number): boolean {
    return (this.#holds.get(table)?.readers ?? 0) > 0;
  }

  mayRun(table: number, isWrite: boolean): boolean {
    const hold = this.#holds.get(table);
    if (hold === undefined) return true;
    return isFree(hold, isWrite) && (hold.queue.length === 0 || hold.isServing);
  }

  /**
   * `run` is called once when the table is free for it, or `refuse` with the error when that takes
   * too long; false when too many wait already.
   */
  wait(table: number, isWrite: boolean, run: () => void, refuse?: (text: string) => void): boolean {
    const hold = this.#of(table);
    if (refuse !== undefined && hold.refusal !== undefined) {
      refuse(hold.refusal);
      return true;
    }
    if (this.waiting >= maxWaiting) return false;
    this.waiting++;
    hold.queue.push({ isWrite, run, refuse });
    return true;
  }

  /** Rejects the commands that wait for the table now, or while it is held. */
  refuse(table: number, text: string): void {
    const hold = this.#holds.get(table);
    if (hold === undefined) return;
    hold.refusal = text;
    const refused = hold.queue.filter((one) => one.refuse !== undefined);
    hold.queue = hold.queue.filter((one) => one.refuse === undefined);
    this.waiting -= refused.length;
    for (const one of refused) one.refuse!(text);
  }

  /** Only when `mayRun` says so. */
  take(table: number, isWrite: boolean): void {
    const hold = this.#of(table);
    if (isWrite) hold.isWritten = true;
    else hold.readers++;
  }

  release(table: number, isWrite: boolean): void {
    const hold = this.#holds.get(table)!;
    if (isWrite) hold.isWritten = false;
    else hold.readers--;
    if (isFree(hold, true)) hold.refusal = undefined;
    this.#serve(table, hold);
  }

  #of(table: number): Hold {
    let hold = this.#holds.get(table);
    if (hold === undefined) {
      hold = {
        readers: 0,
        isWritten: false,
        queue: [],
        refusal: undefined,
        isServing: false,
        isScheduled: false,
      };
      this.#holds.set(table, hold);
    }
    return hold;
  }

  #serve(table: number, hold: Hold): void {
    if (hold.isServing || hold.isScheduled) return;
    const deadline = performance.now() + drainMs;
    while (hold.queue.length > 0 && isFree(hold, hold.queue[0]!.isWrite)) {
      if (performance.now() > deadline) {
        hold.isScheduled = true;
        setImmediate(() => {
          hold.isScheduled = false;
          this.#serve(table, hold);
        });
        return;
      }
      const { run } = hold.queue.shift()!;
      this.waiting--;
      hold.isServing = true;
      try {
        run();
      } finally {
        hold.isServing = false;
      }
    }
    if (hold.queue.length === 0 && isFree(hold, true)) this.#holds.delete(table);
  }
}

function isFree(hold: Hold, isWrite: boolean): boolean {
  return !hold.isWritten && (!isWrite || hold.readers === 0);
}
