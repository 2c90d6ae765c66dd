// How good a table is: twelve operations in six sizes, each alone and all of them mixed, with what the meter of
// a server says they cost against the CPU time that the server took. Everything is measured several times, and
// one of the best counts: what else runs on the machine can only add to it.

import type { Progress } from './progress.ts';
import {
  batchOf,
  type Batch,
  type RedisLoad,
  undisturbed,
  windowsOfOne,
  type Words,
} from './redis-load.ts';

export const mixSizes = [64, 512, 4096, 32_768, 262_144, 1_048_576] as const;

interface Operation {
  name: string;
  /** What must be there before; of the `i`th key. */
  prepare?: (key: string, size: number) => Words;
  run: (key: string, size: number, batch: number) => Words;
}

const several = 4;
const elementBytes = 64;
const value = (size: number): Buffer => Buffer.alloc(Math.max(1, size), 'v');
const keys = (key: string): string[] => Array.from({ length: several }, (_, i) => `${key}:${i}`);
/** As many elements as come to the size. */
const elements = (size: number): string[] =>
  Array.from({ length: Math.max(1, size / elementBytes) }, (_, i) =>
    String(i).padEnd(elementBytes),
  );

export const operations: readonly Operation[] = [
  { name: 'GET', prepare: (key, size) => ['SET', key, value(size)], run: (key) => ['GET', key] },
  { name: 'SET', run: (key, size) => ['SET', key, value(size)] },
  {
    name: 'MGET',
    prepare: (key, size) => ['MSET', ...keys(key).flatMap((k) => [k, value(size / several)])],
    run: (key) => ['MGET', ...keys(key)],
  },
  {
    name: 'MSET',
    run: (key, size) => ['MSET', ...keys(key).flatMap((k) => [k, value(size / several)])],
  },
  { name: 'HSET', run: (key, size) => ['HSET', key, 'field', value(size)] },
  {
    name: 'HGET',
    prepare: (key, size) => ['HSET', key, 'field', value(size)],
    run: (key) => ['HGET', key, 'field'],
  },
  {
    name: 'HGETALL',
    prepare: (key, size) => ['HSET', key, ...elements(size / 2).flatMap((e) => [e, e])],
    run: (key) => ['HGETALL', key],
  },
  {
    name: 'LSET',
    prepare: (key, size) => ['RPUSH', key, value(size)],
    run: (key, size) => ['LSET', key, '0', value(size)],
  },
  {
    name: 'LRANGE',
    prepare: (key, size) => ['RPUSH', key, ...elements(size)],
    run: (key) => ['LRANGE', key, '0', '-1'],
  },
  {
    name: 'ZADD',
    // Another score in every batch: one that is there already is not written.
    run: (key, size, batch) => [
      'ZADD',
      key,
      ...elements(size).flatMap((e, i) => [String(i + batch), e]),
    ],
  },
  {
    name: 'ZRANGE',
    prepare: (key, size) => ['ZADD', key, ...elements(size).flatMap((e, i) => [String(i), e])],
    run: (key) => ['ZRANGE', key, '0', '-1'],
  },
  {
    name: 'SMEMBERS',
    prepare: (key, size) => ['SADD', key, ...elements(size)],
    run: (key) => ['SMEMBERS', key],
  },
];

export interface Cell {
  operation: string;
  size: number;
  /** CPU microseconds of one. */
  measured: number;
  predicted: number;
}

export interface Quality {
  cells: readonly Cell[];
  /** Share of the variance between mixed windows that the prediction explains. */
  r2: number;
  /** Of the cells, as a share of what was measured. */
  medianError: number;
  /** By operation: the middle of its sizes, and its worst. */
  byOperation: Readonly<Record<string, { median: number; worst: number }>>;
}

const windowMs = 25;
const leastBatches = 6;
const warmUpMs = 3000;
const warmUpRounds = 100;
const mixedWindows = 40;

export class MixTrial {
  readonly #load: RedisLoad;
  readonly #progress: Progress;
  /** CPU microseconds of a unit. */
  readonly #unitMicros: number;

  constructor(load: RedisLoad, unitMicros: number, progress: Progress) {
    this.#load = load;
    this.#unitMicros = unitMicros;
    this.#progress = progress;
  }

  async run(): Promise<Quality> {
    const cells: Cell[] = [];
    const batches: Batch[] = [];
    await this.#warmUp();
    for (const operation of operations) {
      for (const size of mixSizes) {
        this.#progress.step(`${operation.name} of ${size} B`);
        const own = await this.#batches(operation, size);
        batches.push(...own);
        cells.push({ operation: operation.name, size, ...(await this.#cell(own)) });
      }
    }
    const windows = await this.#mixed(batches);
    return { cells, r2: rSquared(windows), ...errorsBy(cells) };
  }

  async #warmUp(): Promise<void> {
    this.#progress.step('warming up');
    const end = performance.now() + warmUpMs;
    for (let round = 0; round < warmUpRounds || performance.now() < end; round++) {
      for (const operation of operations) {
        for (const batch of await this.#batches(operation, 512)) await this.#load.send(batch);
      }
    }
    await this.#load.ask(['FLUSHALL']);
    await this.#load.measureIdle();
  }

  async #batches(operation: Operation, size: number): Promise<Batch[]> {
    const key = (i: number): string => `${operation.name}:${size}:${i}`;
    const { prepare } = operation;
    const made: Batch[] = [];
    for (let b = 0; b < 2; b++) {
      if (prepare !== undefined) {
        await this.#load.check(batchOf(size, (i) => prepare(key(i), size)));
      }
      made.push(batchOf(size, (i) => operation.run(key(i), size, b)));
    }
    return made;
  }

  /** CPU units charged so far. */
  async #charged(): Promise<number> {
    const answer = await this.#load.ask(['RU', 'STATS']);
    let units = 0;
    for (const [, found] of answer.matchAll(/_cpu\r\n\$\d+\r\n([\d.e+-]+)\r\n/g))
      units += Number(found);
    return units;
  }

  async #window(send: () => Promise<number>): Promise<{ measured: number; predicted: number }> {
    const before = await this.#charged();
    const { micros, commands } = await this.#load.cpuOf(send);
    const units = (await this.#charged()) - before;
    return { measured: micros / commands, predicted: (units * this.#unitMicros) / commands };
  }

  async #cell(batches: readonly Batch[]): Promise<{ measured: number; predicted: number }> {
    const send = async (): Promise<number> => {
      const end = performance.now() + windowMs;
      let commands = 0;
      for (let b = 0; b < leastBatches || performance.now() < end; b++) {
        const batch = batches[b % batches.length]!;
        await this.#load.send(batch);
        commands += batch.commands;
      }
      return commands;
    };
    for (const batch of batches) await this.#load.check(batch);
    await send();
    const windows = [];
    for (let i = 0; i < windowsOfOne; i++) windows.push(await this.#window(send));
    const measured = undisturbed(windows.map((window) => window.measured));
    return windows.find((window) => window.measured === measured)!;
  }

  /** Totals of windows in each of which a few operations are drawn by lot. */
  async #mixed(batches: readonly Batch[]): Promise<{ measured: number; predicted: number }[]> {
    const windows = [];
    let state = 1;
    const draw = (below: number): number => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    for (let w = 0; w < mixedWindows; w++) {
      this.#progress.step(`mix ${w + 1} of ${mixedWindows}`);
      const drawn = Array.from({ length: 5 + draw(60) }, () => batches[draw(batches.length)]!);
      const tries = [];
      for (let i = 0; i < 4; i++) {
        const total = await this.#window(async () => {
          for (const batch of drawn) await this.#load.send(batch);
          return 1;
        });
        tries.push(total);
      }
      windows.push(tries.sort((a, b) => a.measured - b.measured)[0]!);
    }
    return windows;
  }
}

function rSquared(windows: readonly { measured: number; predicted: number }[]): number {
  const mean = windows.reduce((sum, { measured }) => sum + measured, 0) / windows.length;
  let left = 0;
  let all = 0;
  for (const { measured, predicted } of windows) {
    left += (measured - predicted) ** 2;
    all += (measured - mean) ** 2;
  }
  return 1 - left / all;
}

/** What was predicted against what was measured. */
export function errorsBy(cells: readonly Cell[]): Pick<Quality, 'medianError' | 'byOperation'> {
  const errorOf = ({ measured, predicted }: Cell): number => Math.abs(predicted / measured - 1);
  const byOperation: Record<string, { median: number; worst: number }> = {};
  for (const name of new Set(cells.map(({ operation }) => operation))) {
    const errors = cells.filter(({ operation }) => operation === name).map(errorOf);
    byOperation[name] = { median: middle(errors), worst: Math.max(...errors) };
  }
  return { medianError: middle(cells.map(errorOf)), byOperation };
}

function middle(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}
