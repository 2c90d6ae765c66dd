// One timer for all links of a thread with the same ping interval. With a timer for each link, the thread would wake up for
// every link, and its peers for every ping.

const intervals = new Map<number, SharedInterval>();

class SharedInterval {
  readonly members = new Set<() => void>();
  readonly #timer: NodeJS.Timeout;

  constructor(ms: number) {
    this.#timer = setInterval(() => {
      for (const tick of this.members) tick();
    }, ms);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/**
 * Calls `tick` about every `ms` milliseconds, together with all others of that interval. Call the returned function to
 * stop.
 */
export function everyInterval(ms: number, tick: () => void): () => void {
  const interval = intervals.get(ms) ?? new SharedInterval(ms);
  intervals.set(ms, interval);
  interval.members.add(tick);
  return () => {
    interval.members.delete(tick);
    if (interval.members.size > 0 || intervals.get(ms) !== interval) return;
    intervals.delete(ms);
    interval.stop();
  };
}
