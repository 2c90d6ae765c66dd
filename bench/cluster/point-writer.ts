// A writer of points that keeps each line until a server has taken it, as Telegraf does: it tracks
// acknowledged lines, and retries the others.

import { setTimeout as sleep } from 'node:timers/promises';
import { longestGap } from './probes.ts';

const retryMs = 50;
const database = 'points';

export class PointWriter {
  /** Milliseconds at which each line was acknowledged, by `performance.now()`. */
  readonly times: number[] = [];
  /** Answers that say that it will not be taken, by their texts. */
  readonly errors = new Map<string, number>();
  /** Times that a line was sent again: the server was away, or said that it is busy. */
  retries = 0;
  readonly #url: string;
  readonly #name: string;
  #isOver = false;
  readonly #running: Promise<void>;

  private constructor(url: string, name: string) {
    this.#url = url;
    this.#name = name;
    this.#running = this.#run();
  }

  /** One at each server. */
  static async all(urls: readonly string[]): Promise<PointWriter[]> {
    await query(urls[0]!, `CREATE DATABASE ${database}`);
    return urls.map((url, i) => new PointWriter(url, String(i)));
  }

  async #run(): Promise<void> {
    for (let n = 0; !this.#isOver; n++) {
      const line = `m,writer=${this.#name} v=${n} ${1_000_000_000 + n}`;
      while (!(await this.#isTaken(line))) await sleep(retryMs);
    }
  }

  async #isTaken(line: string): Promise<boolean> {
    try {
      const response = await fetch(`${this.#url}/write?db=${database}&precision=ms`, {
        method: 'POST',
        body: line,
      });
      const text = await response.text();
      if (response.ok) {
        this.times.push(performance.now());
        return true;
      }
      if (response.status !== 503 && response.status !== 429) {
        const word = `${response.status} ${text}`;
        this.errors.set(word, (this.errors.get(word) ?? 0) + 1);
      }
    } catch {
      // The server is not there: its connections are refused, or broken.
    }
    this.retries++;
    return false;
  }

  longestGapSince(moment: number): number {
    return longestGap(this.times, moment);
  }

  /** Until as many as `count` more lines were acknowledged; throws when that takes too long. */
  async goesOn(count: number, withinMs: number): Promise<void> {
    const end = performance.now() + withinMs;
    const target = this.times.length + count;
    while (this.times.length < target) {
      if (performance.now() > end) throw new Error(`${this.#url}: no answer for ${withinMs} ms`);
      await sleep(retryMs);
    }
  }

  /** Ends; how many acknowledged lines are not there, as the server at `url` counts. */
  async lost(url: string): Promise<number> {
    this.#isOver = true;
    await this.#running;
    const text = await query(url, `SELECT count(v) FROM m WHERE writer = '${this.#name}'`);
    const { results } = JSON.parse(text) as {
      results: { series?: { values: [string, number][] }[] }[];
    };
    return this.times.length - (results[0]?.series?.[0]?.values[0]?.[1] ?? 0);
  }
}

/** Asks until it is answered: a node that has just started may be without a leader for a moment. */
export async function query(url: string, q: string): Promise<string> {
  for (;;) {
    const response = await fetch(`${url}/query`, {
      method: 'POST',
      body: new URLSearchParams({ q, db: database }),
    });
    const text = await response.text();
    if (response.ok) return text;
    if (response.status !== 503) throw new Error(`${q}: ${text}`);
    await sleep(retryMs);
  }
}
