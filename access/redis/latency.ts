// Durations of commands: a histogram for each command, and the durations of commands that took longer than
// `latency-monitor-threshold`.

/** The upper bounds of buckets are powers of two from 1 to 2^30, in microseconds. */
const buckets = 31;

export class LatencyHistogram {
  readonly #counts = new Uint32Array(buckets);

  /** Counts `commands` commands that took `ms` milliseconds each. */
  add(ms: number, commands = 1): void {
    // In a pipeline most commands take less than a microsecond.
    if (ms <= 0.001) {
      this.#counts[0]! += commands;
      return;
    }
    const micros = Math.min(ms * 1000, 0x3fffffff);
    this.#counts[Math.min(32 - Math.clz32(micros - 0.001), buckets - 1)]! += commands;
  }

  reset(): void {
    this.#counts.fill(0);
  }

  /** Counts of the buckets, by ascending upper bound. */
  get counts(): readonly number[] {
    return [...this.#counts];
  }

  /** Adds the counts of another histogram. */
  addAll(counts: readonly number[]): void {
    for (let i = 0; i < buckets; i++) this.#counts[i]! += counts[i] ?? 0;
  }

  get total(): number {
    let total = 0;
    for (const count of this.#counts) total += count;
    return total;
  }

  /** Upper bounds in microseconds, and how many took no longer; from the first that is not empty to the last. */
  cumulative(): [bound: number, count: number][] {
    const found: [number, number][] = [];
    let sum = 0;
    for (const [i, count] of this.#counts.entries()) {
      sum += count;
      if (count > 0) found.push([2 ** i, sum]);
    }
    return found;
  }

  /** Microseconds that a part of the commands, 0 to 1, took at most. */
  percentile(part: number): number {
    const all = this.cumulative();
    const want = part * (all.at(-1)?.[1] ?? 0);
    return all.find(([, count]) => count >= want)?.[0] ?? 0;
  }
}

export interface LatencySample {
  /** Unix seconds. */
  at: number;
  ms: number;
}

/** As many as Redis keeps of each event. */
const samplesKept = 160;

interface LatencyEvent {
  samples: LatencySample[];
  maxMs: number;
}

/** Records events that took longer than a threshold, by kind. */
export class LatencyMonitor {
  readonly events = new Map<string, LatencyEvent>();
  /** Milliseconds; Infinity while nothing is noted. */
  thresholdMs = Infinity;

  /** `now` is wall-clock time in milliseconds. Of each second, the longest duration is kept. */
  add(name: string, spentMs: number, now: number): void {
    let event = this.events.get(name);
    if (event === undefined) this.events.set(name, (event = { samples: [], maxMs: 0 }));
    const ms = Math.round(spentMs);
    const at = Math.floor(now / 1000);
    event.maxMs = Math.max(event.maxMs, ms);
    const last = event.samples.at(-1);
    if (last?.at === at) last.ms = Math.max(last.ms, ms);
    else event.samples.push({ at, ms });
    if (event.samples.length > samplesKept) event.samples.shift();
  }

  /** Forgets one event; false when there is none. */
  reset(name: string): boolean {
    return this.events.delete(name);
  }
}
