// Holds the writes of a running pod back while its engine's level 0 is in a bad way: before LevelDB does so by itself,
// for a millisecond each write at 8 files, and altogether at 12, when reads have to look through as many. What a
// write comes to is known when it is in the log: one is let in while there are tokens, and leaves a debt.

import type { LevelZeroState } from '../../engines/engine.ts';
import { tokenReleaseDefaults } from './token-release.ts';
import { WriteTokens } from './write-tokens.ts';

/**
 * LevelDB begins to compact level 0 at 4 files, and slows writes at 8: a score of 1 has to lie between them, and what
 * compaction keeps up with by itself, at 4 or 5, must not cost anything to speak of.
 */
const limitFiles = 7;
/** Milliseconds: long enough for a few flushes at full speed, short beside the time in which level 0 fills up. */
const periodMs = 5000;
/** Tokens of a period in those that come at a tick, of the usual ticks: no more are there at once. */
const bucketParts = periodMs / tokenReleaseDefaults.tickMs;
/** Between two looks at the files, of which the period's most count. */
const lookMs = 250;
/** Longest that those who wait sleep before they ask again. */
const longestSleepMs = 50;

export interface WriteBrakeOptions {
  clock: { monotonic(): number };
  levelZero: () => LevelZeroState;
  /** Told of each look at level 0, four times a second. */
  looked?: ((level: LevelZeroState) => void) | undefined;
}

interface Waiter {
  since: number;
  resolve: () => void;
}

export class WriteBrake {
  /** Writes that waited. */
  waited = 0;
  waitedMs = 0;
  readonly #clock: WriteBrakeOptions['clock'];
  readonly #levelZero: () => LevelZeroState;
  readonly #looked: WriteBrakeOptions['looked'];
  readonly #tokens: WriteTokens;
  readonly #waiters: Waiter[] = [];
  #enabled = true;
  /** While there is no limit nobody looks at the clock. */
  #isFree = true;
  /** Bytes written meanwhile. */
  #written = 0;
  #mostFiles = 0;
  #lookedAt = -Infinity;
  #observedAt: number;
  /** One of those that waited runs now. */
  #isPassing = false;
  #isServing = false;

  constructor({ clock, levelZero, looked }: WriteBrakeOptions) {
    this.#clock = clock;
    this.#levelZero = levelZero;
    this.#looked = looked;
    const now = clock.monotonic();
    this.#observedAt = now;
    this.#tokens = new WriteTokens(
      { periodMs, bucketParts, sublevels: limitFiles, files: Infinity },
      now,
    );
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  /** Of level 0; 1 is as much as should be. */
  get score(): number {
    return this.#tokens.score;
  }

  set enabled(enabled: boolean) {
    this.#enabled = enabled;
    this.#isFree = !enabled || this.#tokens.total === Infinity;
  }

  /** From the next period on. */
  set shortTicks(isOn: boolean) {
    this.#tokens.shortTicks = isOn;
  }

  /** Whether writes are to wait for `released` now. */
  holds(): boolean {
    if (this.#isFree || this.#isPassing) return false;
    return this.#waiters.length > 0 || this.#tokens.wait(1, this.#clock.monotonic()) > 0;
  }

  /** Resolves when the write may be tried again, in the order of those who wait. */
  released(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters.push({ since: this.#clock.monotonic(), resolve });
      if (!this.#isServing) void this.#serve();
    });
  }

  /** So many bytes of keys and values were written, of keys for deletes. */
  wrote(bytes: number): void {
    if (this.#isFree) this.#written += bytes;
    else this.#tokens.charge(bytes, this.#clock.monotonic());
  }

  /** To be called now and then: looks at level 0 when it is time. */
  look(): void {
    const now = this.#clock.monotonic();
    if (now - this.#lookedAt < lookMs) return;
    this.#lookedAt = now;
    const level = this.#levelZero();
    this.#looked?.(level);
    const { files, flushedBytes, compactedBytes } = level;
    this.#mostFiles = Math.max(this.#mostFiles, files);
    if (now - this.#observedAt < periodMs) return;
    this.#observedAt = now;
    this.#tokens.charge(this.#written, now);
    this.#written = 0;
    this.#tokens.observe({ sublevels: this.#mostFiles, files, flushedBytes, compactedBytes }, now);
    this.#mostFiles = files;
    this.enabled = this.#enabled;
  }

  /** Nobody waits any longer. */
  close(): void {
    this.enabled = false;
    for (const { resolve } of this.#waiters.splice(0)) resolve();
  }

  /** Lets them go one by one, each when what those before it wrote is paid for. */
  async #serve(): Promise<void> {
    this.#isServing = true;
    while (this.#waiters.length > 0) {
      const now = this.#clock.monotonic();
      const ms = this.#isFree ? 0 : this.#tokens.wait(1, now);
      if (ms > 0) {
        const sleepMs = Math.min(longestSleepMs, Math.max(1, ms));
        await new Promise((resolve) => setTimeout(resolve, sleepMs));
        continue;
      }
      const next = this.#waiters.shift()!;
      this.waited++;
      this.waitedMs += now - next.since;
      this.#isPassing = true;
      next.resolve();
      // It runs in the microtask before this one.
      await Promise.resolve();
      this.#isPassing = false;
    }
    this.#isServing = false;
  }
}
