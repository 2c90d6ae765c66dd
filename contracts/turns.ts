// Who may use the processor of a plane next. One thread runs what all tenants of a plane ask for; as long as there is
// enough of it everyone runs at once, and this costs a comparison a batch.

export interface Turns {
  /** A round of the event loop begins with work; `now` is monotonic milliseconds, as everywhere here. */
  begin(now: number): void;
  /** Whether work of the tenant may run at once. If not it is to `wait`. */
  mayRun(tenant: number, now: number): boolean;
  /** Whether more than one tenant is about, or somebody waits: then nobody is to keep the thread for long. */
  isCrowded(now: number): boolean;
  /** Whether work that has begun is to `wait` with what is left of it: its turn is over, and others are about. */
  isOver(now: number): boolean;
  /**
   * `run` is called at its turn, and does no more than it would have done at once. Must not throw. What `isLarge` has
   * fewer of its tenant's turns.
   */
  wait(tenant: number, run: () => void, isLarge?: boolean): void;
  /** Work that goes on after its `run` has returned took so many milliseconds since. */
  spent(tenant: number, ms: number): void;
}

/**
 * Milliseconds for which one piece of work has the thread where several tenants are about: less than the network and the
 * system take of most requests, and many times what it takes to look for others.
 */
export const crowdedSliceMs = 0.1;

/** The work of one request that stops now and then for others to have their turn. */
export class TurnTaker {
  readonly #turns: Turns | undefined;
  readonly #tenant: number;
  readonly #sliceMs: number;
  #since = performance.now();

  /** `sliceMs` is its longest stretch where nobody else is about. */
  constructor(turns: Turns | undefined, tenant: number, sliceMs = Infinity) {
    this.#turns = turns;
    this.#tenant = tenant;
    this.#sliceMs = sliceMs;
  }

  /** Others are about. */
  get isCrowded(): boolean {
    return this.#turns?.isCrowded(performance.now()) === true;
  }

  /** It has worked for long enough. */
  get isDue(): boolean {
    const ms = performance.now() - this.#since;
    return ms > this.#sliceMs || (ms > crowdedSliceMs && this.isCrowded);
  }

  /** Others had the thread in the time that went by. */
  restart(): void {
    this.#since = performance.now();
  }

  /**
   * Waits for something that may be there already. The time is not counted, but what was worked before is: an await
   * of something that is at hand lets nobody else run.
   */
  async awaiting<T>(pending: PromiseLike<T>): Promise<T> {
    const worked = performance.now() - this.#since;
    try {
      return await pending;
    } finally {
      this.#since = performance.now() - worked;
    }
  }

  /** Resolves at its next turn. */
  async yield(): Promise<void> {
    const turns = this.#turns;
    if (turns === undefined) {
      await new Promise(setImmediate);
      this.restart();
    } else {
      turns.spent(this.#tenant, performance.now() - this.#since);
      await new Promise<void>((resolve) =>
        // What has to stop for others is large.
        turns.wait(
          this.#tenant,
          () => {
            this.restart();
            resolve();
          },
          true,
        ),
      );
    }
  }
}

/** Work on more bytes than this is large. */
export const largeWorkBytes = 16 * 1024;

/** In the place of a tenant: work that no client waits for. */
export const backgroundWork = -2;
