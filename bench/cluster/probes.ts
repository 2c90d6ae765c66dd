// Clients that write one element after the other until stopped, and record the acknowledged ones
// with their times.

import { setTimeout as sleep } from 'node:timers/promises';

/** Client operations a probe needs; each client reconnects by itself. */
export interface ProbeClient {
  rpush(key: string, element: string): Promise<number>;
  lrange(key: string, from: number, to: number): Promise<string[]>;
  disconnect(): void;
}

const retryMs = 10;

export class Probe {
  readonly key: string;
  readonly acknowledged: number[] = [];
  /** Milliseconds at which each was, by `performance.now()`. */
  readonly times: number[] = [];
  readonly errors = new Map<string, number>();
  readonly #client: ProbeClient;
  #isOver = false;
  readonly #running: Promise<void>;

  constructor(client: ProbeClient, key: string) {
    this.#client = client;
    this.key = key;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    for (let n = 0; !this.#isOver; n++) {
      try {
        await this.#client.rpush(this.key, String(n));
        this.acknowledged.push(n);
        this.times.push(performance.now());
      } catch (error) {
        const word = (error as Error).message.split(' ', 3).join(' ');
        this.errors.set(word, (this.errors.get(word) ?? 0) + 1);
        await sleep(retryMs);
      }
    }
  }

  longestGapSince(moment: number, until?: number): number {
    return longestGap(this.times, moment, until);
  }

  /** Of gaps that begin at or after a moment. */
  longestGapFrom(moment: number): number {
    return longestGap(
      this.times.filter((at) => at >= moment),
      moment,
    );
  }

  /** Until as many as `count` more writes were acknowledged; throws when that takes too long. */
  async goesOn(count: number, withinMs: number): Promise<void> {
    const end = performance.now() + withinMs;
    const target = this.times.length + count;
    while (this.times.length < target) {
      if (performance.now() > end) throw new Error(`${this.key}: no answer for ${withinMs} ms`);
      await sleep(retryMs);
    }
  }

  /** Stops the probe. Resolves to the number of acknowledged writes that are lost. */
  async lost(): Promise<number> {
    const there = new Set(await this.#elements());
    return this.acknowledged.filter((n) => !there.has(String(n))).length;
  }

  /** Ends; how many writes are there more than once. */
  async twice(): Promise<number> {
    const all = await this.#elements();
    return all.length - new Set(all).size;
  }

  async #elements(): Promise<string[]> {
    this.#isOver = true;
    await this.#running;
    return this.#client.lrange(this.key, 0, -1);
  }
}

/** Milliseconds: the longest time between two of these moments that ended after `since` and began before `until`. */
export function longestGap(times: readonly number[], since: number, until = Infinity): number {
  let longest = 0;
  for (let i = times.length - 1; i > 0 && times[i]! > since; i--) {
    const before = times[i - 1]!;
    if (before < until) longest = Math.max(longest, times[i]! - before);
  }
  return longest;
}
