// A store whose writes go to a memtable, which is flushed as a sorted run of level 0, which compaction merges into
// what lies below. Compaction does so many bytes of level 0 a second, however many there are; a read looks through every
// sorted run, and reads are done one at a time.

import { type StoreHealth, WriteTokens } from '../../../storage-node/admission/write-tokens.ts';
import type { Line } from '../experiment.ts';
import { Chance } from '../sim/chance.ts';
import { Simulation } from '../sim/simulation.ts';

const mebibyte = 1024 * 1024;
/** Of level 0, that compaction does a second. */
export const compactionRate = 32 * mebibyte;
/** Of level 0, for a byte written: it compresses. */
const amplification = 0.8;
const memtableBytes = 64 * mebibyte;
const fileBytes = 8 * mebibyte;
/** Runs of level 0 that begin a compaction, and that one takes. */
const compactedRuns = 2;
/** Runs below level 0. */
const lowerRuns = 7;
const readsPerSecond = 500;
/** What a read takes: a block from the disk, and a filter for each run. */
const readMs = 0.4;
const runMs = 0.008;
/** Of a group of writes. */
const meanWriteBytes = 256 * 1024;
const sizeSigma = 0.5;
const writeDeadlineMs = 1000;
const periodMs = 15_000;
/** What a store takes on until it is full of it says nothing of what it can sustain. */
export const fillingMs = 60_000;

export interface MergeTreeOptions {
  tokens: boolean;
  /** What is written, of what compaction can do, at a time in milliseconds. */
  load: (now: number) => number;
  seconds: number;
  seed: number;
}

export interface MergeTreeRun {
  /** Milliseconds, of every read. */
  readLatencies: number[];
  /** Sorted runs of level 0 that each looked through. */
  readRuns: number[];
  /** Of level 0, from writes that were admitted after the first minute. */
  admittedBytes: number;
  /** Per cent of writes that were not admitted at once. */
  delayed: number;
  /** Sublevels by second. */
  sublevels: Line;
}

interface Write {
  bytes: number;
  at: number;
}

class MergeTree {
  readonly #simulation: Simulation;
  readonly #chance: Chance;
  /** Sorted runs of level 0, the oldest first; bytes. */
  readonly #runs: number[] = [];
  #memtable = 0;
  #memtableLimit = memtableBytes;
  #isCompacting = false;
  #compacted = 0;
  #flushed = 0;
  #worst = 0;

  constructor(simulation: Simulation, chance: Chance) {
    this.#simulation = simulation;
    this.#chance = chance;
  }

  get sublevels(): number {
    return this.#runs.length;
  }

  write(bytes: number): void {
    this.#memtable += bytes * amplification;
    if (this.#memtable < this.#memtableLimit) return;
    this.#runs.push(this.#memtable);
    this.#flushed += this.#memtable;
    this.#memtable = 0;
    this.#memtableLimit = memtableBytes * this.#chance.uniform(0.9, 1.1);
    this.#worst = Math.max(this.#worst, this.#runs.length);
    this.#compact();
  }

  /** The most sublevels there were since it was asked last, with the memtable that is going to be one. */
  health(): StoreHealth {
    const sublevels = this.#worst + 1;
    this.#worst = this.#runs.length;
    return {
      sublevels,
      files: this.#runs.reduce((sum, bytes) => sum + Math.ceil(bytes / fileBytes), 0),
      compactedBytes: this.#compacted,
      flushedBytes: this.#flushed,
    };
  }

  #compact(): void {
    if (this.#isCompacting || this.#runs.length < compactedRuns) return;
    this.#isCompacting = true;
    const bytes = this.#runs.slice(0, compactedRuns).reduce((sum, run) => sum + run, 0);
    const rate = compactionRate * this.#chance.uniform(0.9, 1.1);
    this.#simulation.after((bytes * 1000) / rate, () => {
      this.#runs.splice(0, compactedRuns);
      this.#compacted += bytes;
      this.#isCompacting = false;
      this.#compact();
    });
  }
}

export function runMergeTree({ tokens, load, seconds, seed }: MergeTreeOptions): MergeTreeRun {
  const end = seconds * 1000;
  const simulation = new Simulation();
  const chance = new Chance(seed);
  const tree = new MergeTree(simulation, chance);
  const policy = new WriteTokens({ enabled: tokens }, 0);
  const waiting: Write[] = [];
  let head = 0;
  let isWaking = false;
  let admitted = 0;
  let offered = 0;
  let delayed = 0;
  const readLatencies: number[] = [];
  const readRuns: number[] = [];
  const sublevels: [number, number][] = [];

  const admit = (bytes: number): boolean => {
    if (!policy.admit(bytes, simulation.now())) return false;
    if (simulation.now() >= fillingMs) admitted += bytes * amplification;
    tree.write(bytes);
    return true;
  };
  /** Writes that wait, in order, as far as there are tokens. */
  const drain = (): void => {
    const now = simulation.now();
    for (let next = waiting[head]; next !== undefined; next = waiting[head]) {
      if (now - next.at <= writeDeadlineMs && !admit(next.bytes)) {
        if (isWaking) return;
        isWaking = true;
        // A new period may come before its tokens would.
        const wait = Math.min(100, Math.max(1, policy.wait(next.bytes, now)));
        simulation.after(wait, () => {
          isWaking = false;
          drain();
        });
        return;
      }
      head++;
    }
  };
  const write = (): void => {
    const rate = (load(simulation.now()) * compactionRate) / amplification / meanWriteBytes;
    simulation.after(chance.exponential(rate / 1000), () => {
      const bytes = meanWriteBytes * chance.lognormal(-(sizeSigma ** 2) / 2, sizeSigma);
      offered++;
      if (head < waiting.length || !admit(bytes)) {
        delayed++;
        waiting.push({ bytes, at: simulation.now() });
        drain();
      }
      write();
    });
  };
  write();

  let readerFreeAt = 0;
  const read = (): void => {
    simulation.after(chance.exponential(readsPerSecond / 1000), () => {
      const now = simulation.now();
      readerFreeAt = Math.max(readerFreeAt, now) + readMs + runMs * (lowerRuns + tree.sublevels);
      readLatencies.push(readerFreeAt - now);
      readRuns.push(tree.sublevels);
      read();
    });
  };
  read();

  // The server's periods are not those of its load.
  simulation.every(
    periodMs,
    () => policy.observe(tree.health(), simulation.now()),
    periodMs * chance.next(),
  );
  simulation.every(1000, () => {
    sublevels.push([simulation.now() / 1000, tree.sublevels]);
  });
  simulation.runUntil(end);
  return {
    readLatencies,
    readRuns,
    admittedBytes: admitted,
    delayed: (100 * delayed) / offered,
    sublevels: { label: 'sorted runs of level 0', points: sublevels },
  };
}
