// How much may be written to a store whose writes leave most of their work for later: tokens, in bytes, by the health
// of its log-structured merge tree. What is flushed into level 0 faster than compaction takes it out there makes each
// read look through more sorted runs. While those are few there is no limit; as they get more, writes are held to what
// compaction has been doing, and below that (CockroachDB's admission control, its store queue).

import { TokenRelease, type TokenReleaseOptions } from './token-release.ts';

/** Counters are of bytes since the store was opened. */
export interface StoreHealth {
  /**
   * Sorted runs that a read looks through before it comes to level 1, the most since the last period began: those
   * of level 0, and the memtable that will be one of them before long.
   */
  sublevels: number;
  /** Files of level 0. */
  files: number;
  /** Taken out of level 0 by compaction. */
  compactedBytes: number;
  /** Flushed or imported into level 0. */
  flushedBytes: number;
}

export interface WriteTokensOptions extends TokenReleaseOptions {
  /** Without it writes are never refused. */
  enabled: boolean;
  /**
   * At either the score is 1. A store that stalls writes by itself at some number of files must have its limit
   * well below that, or nothing here will ever come to bear.
   */
  sublevels: number;
  files: number;
  /** Of the newest period in the average of what compaction does. */
  newest: number;
  /** Bytes of level 0 for a byte written, until it has been seen, and the bounds of what is believed. */
  amplification: number;
  /**
   * Of the newest period in what is seen of it. Little: a period has a few flushes of much at once, and whether
   * there was one more makes a difference that is none.
   */
  newestAmplification: number;
  leastAmplification: number;
  mostAmplification: number;
}

export const writeTokensDefaults: Omit<WriteTokensOptions, keyof TokenReleaseOptions> = {
  enabled: true,
  sublevels: 20,
  files: 1000,
  newest: 0.5,
  amplification: 1,
  newestAmplification: 0.1,
  leastAmplification: 0.25,
  mostAmplification: 4,
};

/**
 * Tokens of a period as a multiple of what compaction takes out of level 0 in one: none needed below a score of
 * a half, then 2 falling to 1, beyond a score of 1 falling to a half.
 */
export function tokenShare(score: number): number {
  if (score < 0.5) return Infinity;
  if (score < 1) return 3 - 2 * score;
  return Math.max(0.5, 1.5 - score / 2);
}

function averaged(before: number, value: number, newest: number): number {
  return before === 0 ? value : before + newest * (value - before);
}

export class WriteTokens {
  readonly #options: typeof writeTokensDefaults;
  readonly #release: TokenRelease;
  /** Tokens come by short ticks while they are limited; by the usual ones otherwise. From the next period on. */
  shortTicks = true;
  #last: StoreHealth | undefined;
  #score = 0;
  /** Averages by period: bytes that compaction took out of level 0, that came into it, and that were written. */
  #compacted = 0;
  #flushed = 0;
  #written = 0;
  /** In this period. */
  #writing = 0;
  #amplification: number;

  constructor(options: Partial<WriteTokensOptions>, now: number) {
    this.#options = { ...writeTokensDefaults, ...options };
    this.#release = new TokenRelease(options, now);
    this.#amplification = this.#options.amplification;
  }

  /** Of the store when the period began; 1 is as much as should be. */
  get score(): number {
    return this.#score;
  }

  /** Tokens of this period; Infinity for no limit. */
  get total(): number {
    return this.#release.total;
  }

  /** Bytes of level 0 for a byte written, as believed in this period. */
  get amplification(): number {
    return this.#amplification;
  }

  /** A new period begins: to be called every 15 seconds, or what `periodMs` is. */
  observe(health: StoreHealth, now: number): void {
    const { sublevels, files } = this.#options;
    this.#learn(health);
    this.#score = Math.max(health.sublevels / sublevels, health.files / files);
    // Of a store that has never compacted nothing is known that could be a limit.
    const total = this.#compacted === 0 ? Infinity : tokenShare(this.#score) * this.#compacted;
    this.#release.begin(total, total !== Infinity && this.shortTicks, now);
  }

  #learn(health: StoreHealth): void {
    const last = this.#last;
    this.#last = { ...health };
    const written = this.#writing;
    this.#writing = 0;
    if (last === undefined) return;
    const compacted = health.compactedBytes - last.compactedBytes;
    const flushed = health.flushedBytes - last.flushedBytes;
    // The store was opened anew.
    if (compacted < 0 || flushed < 0) return;
    // When nothing was compacted, as in one long compaction, that says nothing about what could be.
    const { newest, newestAmplification, leastAmplification, mostAmplification } = this.#options;
    if (compacted > 0) this.#compacted = averaged(this.#compacted, compacted, newest);
    if (written === 0) return;
    this.#flushed = averaged(this.#flushed, flushed, newestAmplification);
    this.#written = averaged(this.#written, written, newestAmplification);
    if (this.#flushed === 0) return;
    const seen = this.#flushed / this.#written;
    this.#amplification = Math.min(mostAmplification, Math.max(leastAmplification, seen));
  }

  /**
   * Whether so many bytes may be written now: those of keys and values, of the keys alone for deletes. Imports
   * and rows that move here ask as clients do.
   */
  admit(bytes: number, now: number): boolean {
    if (this.#options.enabled && !this.#release.take(bytes * this.#amplification, now)) {
      return false;
    }
    this.#writing += bytes;
    return true;
  }

  /** What was written on a leader's word, which is never refused. */
  charge(bytes: number, now: number): void {
    this.#writing += bytes;
    this.#release.debit(bytes * this.#amplification, now);
  }

  /** What was admitted was of another size in the end. */
  settle(admitted: number, actual: number, now: number): void {
    this.charge(actual - admitted, now);
  }

  /** Milliseconds after which it is worth asking again; Infinity if not before the next period. */
  wait(bytes: number, now: number): number {
    if (!this.#options.enabled) return 0;
    return this.#release.wait(bytes * this.#amplification, now);
  }

  /** Bytes of level 0 by which charges have gone beyond the tokens; a leader should slow down for them. */
  debt(now: number): number {
    return this.#options.enabled ? Math.max(0, -this.#release.balance(now)) : 0;
  }
}
