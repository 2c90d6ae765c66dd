// CLIENT PAUSE: commands, or only writes, of all clients wait until it ends.

/** A connection whose command may wait for the end of the pause. */
interface Pausable {
  /** The pause is over. */
  unpause(): void;
}

const longestTimerMs = 0x7fffffff;

export class ClientPause<C extends Pausable = Pausable> {
  /** Monotonic milliseconds; 0 for no pause. */
  until = 0;
  writesOnly = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #waiting = new Set<C>();
  /** Told when a pause begins, and when it is over. */
  readonly #changed: (isPaused: boolean) => void;

  constructor(changed: (isPaused: boolean) => void) {
    this.#changed = changed;
  }

  /** Clients that wait for its end. */
  get size(): number {
    return this.#waiting.size;
  }

  begin(ms: number, writesOnly: boolean): void {
    const now = performance.now();
    this.writesOnly = this.until === 0 ? writesOnly : this.writesOnly && writesOnly;
    this.until = Math.max(this.until, now + ms);
    clearTimeout(this.#timer);
    this.#changed(true);
    this.#timer = setTimeout(() => this.end(), Math.min(this.until - now, longestTimerMs));
  }

  end(): void {
    clearTimeout(this.#timer);
    this.until = 0;
    this.#changed(false);
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    // In a later tick: the client that ends the pause writes its own answer first.
    setImmediate(() => {
      for (const client of waiting) client.unpause();
    });
  }

  /** The client has a command that must wait for the end of the pause. */
  add(client: C): void {
    this.#waiting.add(client);
  }

  delete(client: C): void {
    this.#waiting.delete(client);
  }
}
