// Clients that write points which can be checked after a crash, and the check.
//
// A writer's points are numbered 1, 2, 3 ... over all of its requests; a number says all about a point: its
// series, time and values. They go round several shards, and every tenth one is written twice, the second
// time with its true values. After a crash every point of an answered request must be there, and of the
// others only what was sent.

import { expect } from 'vitest';
import type { Polyrow } from '../support/polyrow.ts';
import type { Random } from '../support/random.ts';

export const database = 'crash';
const base = 1_600_000_000n;
const second = 1_000_000_000n;
const week = 7n * 86_400n * second;
const shards = 3;
const seriesPerWriter = 4;

export async function post(url: string, parameters: Record<string, string>): Promise<Response> {
  const body = new URLSearchParams(parameters);
  return await fetch(`${url}/query`, { method: 'POST', body });
}

interface QueryResult {
  error?: string;
  series?: {
    name: string;
    columns: string[];
    values: unknown[][];
    tags?: Record<string, string>;
  }[];
}

/** The results of a query that must be answered, whether its statements succeed or not. */
export async function query(server: Polyrow, q: string, db = database): Promise<QueryResult[]> {
  const response = await post(server.influx, { q, db, epoch: 'ns' });
  const text = await response.text();
  const answer = JSON.parse(quoteTimes(text)) as { error?: string; results?: QueryResult[] };
  return answer.results ?? [{ error: answer.error ?? `status ${response.status}` }];
}

/** Numbers that a double would round become strings. */
function quoteTimes(text: string): string {
  return text.replaceAll(/"(?:[^"\\]|\\.)*"|-?\d{16,}/g, (token) =>
    token.startsWith('"') ? token : `"${token}"`,
  );
}

export async function write(server: Polyrow, body: string, db = database): Promise<Response> {
  return await fetch(`${server.influx}/write?db=${db}`, { method: 'POST', body });
}

export class SeriesWriter {
  readonly name: string;
  /** Points sent, and points whose request was answered, over all incarnations of the server. */
  sent = 0;
  readonly acknowledged = new Set<number>();
  /** Numbers that may be there or not, from requests that got no answer. */
  readonly doubtful = new Set<number>();
  readonly #random: Random;
  #stopped = false;

  constructor(name: string, random: Random) {
    this.name = name;
    this.#random = random;
  }

  /** Writes until the server is gone. */
  async run(server: Polyrow): Promise<void> {
    this.#stopped = false;
    while (!this.#stopped) {
      const count = 1 + this.#random.below(400);
      const numbers = Array.from({ length: count }, (_, i) => this.sent + 1 + i);
      this.sent += count;
      for (const n of numbers) this.doubtful.add(n);
      let response: Response;
      try {
        response = await write(server, numbers.flatMap((n) => this.#lines(n)).join('\n'));
      } catch {
        return;
      }
      if (response.status !== 204) {
        const text = await response.text();
        // The store is too far behind, as on a slow machine: the points stay in doubt.
        if (response.status === 500 && text.includes('"timeout"')) continue;
        // A server that stops may say so.
        expect(response.status, text).toBe(503);
        return;
      }
      for (const n of numbers) {
        this.doubtful.delete(n);
        this.acknowledged.add(n);
      }
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  #lines(n: number): string[] {
    const key = `load,writer=${this.name},part=${n % seriesPerWriter}`;
    const time = timeOf(n);
    const line = `${key} n=${n}i,f=${n / 4},s="${textOf(n)}",b=${n % 2 === 0} ${time}`;
    // Numbers grow, and are out of order within a series by going round the shards.
    return n % 10 === 0 ? [`${key} n=0i,f=-1 ${time}`, line] : [line];
  }

  /** All that is there must be what was sent, and all that was acknowledged must be there. */
  async verify(server: Polyrow, where: string): Promise<void> {
    const found = new Set<number>();
    const [result] = await query(
      server,
      `SELECT n, f, s, b, part FROM load WHERE writer = '${this.name}'`,
    );
    expect(result!.error, where).toBeUndefined();
    for (const [time, n, f, s, b, part] of result!.series?.[0]?.values ?? []) {
      const number = n as number;
      const point = [String(time), f, s, b, part];
      const sent = [
        String(timeOf(number)),
        number / 4,
        textOf(number),
        number % 2 === 0,
        String(number % seriesPerWriter),
      ];
      // Of a request without an answer some lines may be there: the first of the two with this time, for one.
      if (number === 0 && this.#isDoubtful(point)) continue;
      if (point.some((value, i) => value !== sent[i]))
        expect(point, `${where}: ${number}`).toEqual(sent);
      expect(found.has(number), `${where}: ${number} twice`).toBe(false);
      found.add(number);
    }
    for (const n of found) {
      if (!this.acknowledged.has(n) && !this.doubtful.has(n)) {
        expect.fail(`${where}: ${this.name} never sent ${n}`);
      }
    }
    const lost = [...this.acknowledged].filter((n) => !found.has(n));
    expect(lost, `${where}: ${this.name}: acknowledged and lost`).toEqual([]);
    // From now on it is settled which of the doubtful ones there are.
    for (const n of found) this.acknowledged.add(n);
    this.doubtful.clear();
  }

  #isDoubtful([time, f, ...others]: readonly unknown[]): boolean {
    if (f !== -1 || others.slice(0, 2).some((value) => value !== null)) return false;
    return [...this.doubtful].some((n) => n % 10 === 0 && String(timeOf(n)) === time);
  }

  forget(): void {
    this.acknowledged.clear();
    this.doubtful.clear();
  }
}

function timeOf(n: number): bigint {
  return base * second + BigInt(n % shards) * week + BigInt(n) * 1_000_003n;
}

function textOf(n: number): string {
  return `text ${n} ${'x'.repeat(n % 60)}`;
}
