// What the modules on the way of a request of time series cost, found from requests that differ in one of them.

import { sizes } from '../../request-units/cost-table.ts';
import { type HttpRequest, type InfluxLoad, query } from './influx-load.ts';
import type { Progress } from './progress.ts';
import { rising } from './rising.ts';

const windowMs = 60;
const warmUpMs = 3000;
const pointBytes = 16;
/** Bytes of a line, and of its point in the log, about. */
const lineBytes = 66;
const loggedBytes = 30;
/** Reading and storing lines never come alone, so how they share is all the same; as are blocks and what is done with them. */
const decodeShare = 0.5;
const blockShare = 0.4;

export const start = 1_700_000_000;
const lineCounts = [1, 10, 100, 1000, 10_000] as const;
const manySeries = 1000;
const points = 50_000;

/** `count` points of as many hosts, at a second. */
function lines(count: number, second: number, measurement = 'load'): Buffer {
  const made: string[] = [];
  for (let i = 0; i < count; i++) {
    const host = String(i % 1000).padStart(5, '0');
    const time = (start + second) * 1000 + Math.floor(i / 1000);
    made.push(`${measurement},host=host${host},rack=r1 v=${(i % 97) + 0.25},n=${i}i ${time}000000`);
  }
  return Buffer.from(made.join('\n'));
}

const write = (body: Buffer): HttpRequest => ({
  method: 'POST',
  path: '/write?db=calibrate',
  body,
});

/** So many lines, of a second of their own. */
export function writeOf(count: number, second: number): HttpRequest {
  return write(lines(count, second));
}

export class SeriesProbe {
  readonly #load: InfluxLoad;
  readonly #progress: Progress;
  #second = 0;

  constructor(load: InfluxLoad, progress: Progress) {
    this.#load = load;
    this.#progress = progress;
  }

  async #one(name: string, make: (i: number) => HttpRequest): Promise<number> {
    this.#progress.step(name);
    return await this.#load.micros(windowMs, make);
  }

  #lines(count: number): HttpRequest {
    return writeOf(count, this.#second++);
  }

  async prepare(): Promise<void> {
    this.#progress.step('filling series');
    await this.#load.send(query('CREATE DATABASE calibrate'));
    await this.#load.send(write(lines(manySeries, 0, 'wide')));
    const long: string[] = [];
    for (let i = 0; i < points; i++) long.push(`long v=${(i % 911) / 7} ${start + i}000000000`);
    await this.#load.send(write(Buffer.from(long.join('\n'))));
    this.#progress.step('warming up series');
    const end = performance.now() + warmUpMs;
    while (performance.now() < end) {
      await this.#load.send(this.#lines(100));
      await this.#load.send(query('SELECT mean(v) FROM wide'));
      await this.#load.send(query('SELECT sum(v) FROM long WHERE v > -1'));
      await this.#load.send(query('SELECT v FROM long LIMIT 500'));
    }
    await this.#load.measureIdle();
  }

  /** CPU microseconds of each module at each size of the table, but for merging. */
  async measure(): Promise<Record<string, number[]>> {
    await this.prepare();
    const health = await this.#one('a request', () => ({ method: 'GET', path: '/health' }));
    const nothing = await this.#one('a statement', () => query('SELECT v FROM nothing'));
    const convert = Math.max(1, nothing - health);

    const writes: number[] = [];
    for (const count of lineCounts) {
      const micros = await this.#one(`${count} lines`, () => this.#lines(count));
      writes.push(Math.max(1, micros - health));
    }
    const body = (share: number, bytes: number): number[] =>
      onLines(
        writes,
        lineCounts.map((count) => count * bytes),
      ).map((micros) => micros * share);

    const terms = Array.from({ length: 60 }, (_, i) => `host = 'h${i}'`).join(' OR ');
    const longer = await this.#one('a long statement', () =>
      query(`SELECT v FROM nothing WHERE ${terms}`),
    );
    const perTextByte = Math.max(0.01, (longer - nothing) / terms.length);
    const few = await this.#one('some points', () =>
      query(`SELECT sum(v) FROM long WHERE v > -1 AND time < ${start + 1000}s`),
    );
    const all = await this.#one('many points', () => query('SELECT sum(v) FROM long WHERE v > -1'));
    const perPoint = Math.max(0.001, (all - few) / (points - 1000));
    const wide = await this.#one('many series', () =>
      query('SELECT sum(v) FROM wide WHERE v > -1'),
    );
    const perSeries = Math.max(0.5, (wide - health - convert) / manySeries);

    const rows = 5000;
    const text = await this.#load.send(query(`SELECT v FROM long LIMIT ${rows}`));
    const listed = await this.#one('an answer', () => query(`SELECT v FROM long LIMIT ${rows}`));
    const perByte = Math.max(
      1e-4,
      (listed - health - convert - rows * perPoint * blockShare) / text.length,
    );
    const perReadByte = perPoint / pointBytes;
    return {
      request: sizes.map((size) => health + size * wireMicros),
      decode: body(decodeShare, lineBytes),
      write: body((1 - decodeShare) * 0.8, loggedBytes),
      log: body((1 - decodeShare) * 0.2, loggedBytes),
      convert: sizes.map((size) => convert + (size - sizes[0]!) * perTextByte),
      series: sizes.map(() => perSeries * (1 - blockShare)),
      block: sizes.map((size) => perSeries * blockShare + size * perReadByte * blockShare),
      aggregate: sizes.map((size) => size * perReadByte * (1 - blockShare)),
      encode: sizes.map((size) => size * perByte),
    };
  }

  /** CPU microseconds of a byte of the log, all that becomes of it on disk included, from so many points. */
  async perLoggedByte(
    pointCount: number,
    cpuOf: (run: () => Promise<number>) => Promise<number>,
  ): Promise<number> {
    this.#progress.step('merging');
    await this.#load.send(query('CREATE DATABASE calibrate'));
    const perBody = 5000;
    const writeAll = async (): Promise<number> => {
      for (let sent = 0; sent < pointCount; sent += perBody) {
        await this.#load.send(this.#lines(perBody));
      }
      await new Promise((resolve) => setTimeout(resolve, 1500));
      return 1;
    };
    // The first time its code is being compiled.
    await writeAll();
    const micros = await cpuOf(writeAll);
    return micros / (pointCount * loggedBytes);
  }
}

/** Of a byte on the wire. */
const wireMicros = 0.0005;

/** Costs that were measured for so many bytes, at the sizes of the table. */
function onLines(costs: readonly number[], bytes: readonly number[]): number[] {
  const column = rising(costs, bytes);
  return sizes.map((size) => {
    const above = bytes.findIndex((at) => at >= size);
    if (above === 0) return column[0]!;
    const high = above < 0 ? bytes.length - 1 : above;
    const slope = (column[high]! - column[high - 1]!) / (bytes[high]! - bytes[high - 1]!);
    return Math.max(0, column[high - 1]! + slope * (size - bytes[high - 1]!));
  });
}
