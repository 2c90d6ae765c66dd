// Interruptions of a plane's thread: garbage collection, and, where Linux reports them, other
// threads on the processor.

import { closeSync, openSync, readSync } from 'node:fs';
import { PerformanceObserver } from 'node:perf_hooks';
import type { Interruptions } from '../../access/admission/step-watch.ts';

interface Collection {
  fromMs: number;
  toMs: number;
}

const keptCollections = 256;
/** Shorter ones do not make a step long. */
const leastCollectionMs = 0.5;

export class ThreadInterruptions implements Interruptions {
  /** The oldest first. */
  readonly #collections: Collection[] = [];
  readonly #observer: PerformanceObserver;
  readonly #processor = new ThreadProcessor();

  constructor() {
    this.#observer = new PerformanceObserver((list) => {
      for (const { startTime, duration } of list.getEntries()) {
        if (duration < leastCollectionMs) continue;
        this.#collections.push({ fromMs: startTime, toMs: startTime + duration });
        if (this.#collections.length > keptCollections) this.#collections.shift();
      }
    });
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  /** Notes how much processor time the thread has had: spans that begin soon after can be judged by it. */
  sample(nowMs: number): void {
    this.#processor.sample(nowMs);
  }

  collectionMs(fromMs: number, toMs: number): number {
    let sum = 0;
    for (const one of this.#collections) {
      sum += Math.max(0, Math.min(one.toMs, toMs) - Math.max(one.fromMs, fromMs));
    }
    return sum;
  }

  preemptedMs(fromMs: number, toMs: number): number {
    return this.#processor.missingMs(fromMs, toMs);
  }

  close(): void {
    this.#observer.disconnect();
    this.#processor.close();
  }
}

/** Processor time of the thread that makes it, by Linux's schedstat; elsewhere it knows nothing. */
class ThreadProcessor {
  #file = -1;
  readonly #text = Buffer.alloc(64);
  /** The last two samples, the older first: a span begins after one of them. */
  #samples: { atMs: number; usedMs: number }[] = [];

  constructor() {
    try {
      this.#file = openSync('/proc/thread-self/schedstat', 'r');
    } catch {
      // Not Linux, or its kernel does not count: no preemption is told.
    }
  }

  sample(nowMs: number): void {
    const usedMs = this.#usedMs();
    if (usedMs === undefined) return;
    this.#samples.push({ atMs: nowMs, usedMs });
    if (this.#samples.length > 2) this.#samples.shift();
  }

  /** Time of a span ending now for which the thread cannot have had a processor. */
  missingMs(fromMs: number, toMs: number): number {
    const before = this.#samples.findLast(({ atMs }) => atMs <= fromMs);
    const usedMs = before === undefined ? undefined : this.#usedMs();
    if (before === undefined || usedMs === undefined) return 0;
    return Math.max(0, toMs - fromMs - (usedMs - before.usedMs));
  }

  /** The first number of the file: nanoseconds on a processor. */
  #usedMs(): number | undefined {
    if (this.#file < 0) return undefined;
    const length = readSync(this.#file, this.#text, 0, this.#text.length, 0);
    const nanos = Number.parseInt(this.#text.toString('latin1', 0, length), 10);
    return Number.isNaN(nanos) ? undefined : nanos / 1e6;
  }

  close(): void {
    if (this.#file >= 0) closeSync(this.#file);
    this.#file = -1;
  }
}
