// What the modules on the way of a command on rows cost, found from what whole commands cost that differ in
// one module: a value read with and without being answered, a key looked up and sixteen of them.

import { sizes } from '../../request-units/cost-table.ts';
import { batchOf, type Batch, type RedisLoad, type Words } from './redis-load.ts';
import { rising } from './rising.ts';
import type { Progress } from './progress.ts';

/** Sizes that are measured; those between lie on the line. */
const measured = [64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576] as const;

const windowMs = 25;
const warmUpMs = 3000;
const warmUpRounds = 500;
const manyKeys = 16;
/** Of a collection that is walked along, about. */
const walkedBytes = 65_536;
const walkedSizes = [64, 256, 1024, 4096] as const;
const frameBytes = 7;

type Column = readonly number[];

/** A measured column at all sizes of the table, never falling. */
function filled(measuredColumn: Column): number[] {
  const column = rising(measuredColumn, measured);
  return sizes.map((size) => {
    const above = measured.findIndex((at) => at >= size);
    if (above <= 0) return column[Math.max(0, above)]!;
    const [low, high] = [measured[above - 1]!, measured[above]!];
    const part = (size - low) / (high - low);
    return column[above - 1]! + part * (column[above]! - column[above - 1]!);
  });
}

function flat(cost: number): number[] {
  return sizes.map(() => Math.max(0, cost));
}

function atLeastNothing(column: Column): number[] {
  return column.map((cost) => Math.max(0, cost));
}

const value = (size: number): Buffer => Buffer.alloc(size, 'x');
const keyOf = (kind: string, i: number): string => `${kind}:${String(i).padStart(10, '0')}`;

export interface RowCpu {
  cpu: Record<string, number[]>;
}

export class RowProbe {
  readonly #load: RedisLoad;
  readonly #progress: Progress;

  constructor(load: RedisLoad, progress: Progress) {
    this.#load = load;
    this.#progress = progress;
  }

  async #one(name: string, size: number, make: (i: number) => Words): Promise<number> {
    const batches: Batch[] = Array.from({ length: 4 }, (_, b) =>
      batchOf(size, (i) => make(b * 1000 + i)),
    );
    const micros = await this.#load.micros(batches, windowMs);
    this.#progress.step(name);
    return micros;
  }

  async #bySize(name: string, make: (size: number, i: number) => Words): Promise<number[]> {
    const column: number[] = [];
    for (const size of measured) {
      column.push(await this.#one(`${name} of ${size} B`, size, (i) => make(size, i)));
    }
    return column;
  }

  async #fill(kind: string, size: number, words: (key: string) => Words): Promise<void> {
    for (let b = 0; b < 4; b++) {
      await this.#load.send(batchOf(size, (i) => words(keyOf(kind, b * 1000 + i))));
    }
  }

  /** Until its code is compiled a server takes several times as long for everything. */
  async #warmUp(): Promise<void> {
    this.#progress.step('warming up');
    const commands: ((i: number) => Words)[] = [
      (i) => ['EXISTS', keyOf('none', i), keyOf('none', i + 1)],
      (i) => ['SET', keyOf('warm', i), value(100 + i)],
      (i) => ['GET', keyOf('warm', i)],
      (i) => ['GETRANGE', keyOf('warm', i), '0', '0'],
      () => ['PUBLISH', 'nobody', value(100)],
      (i) => ['HSET', keyOf('warm-hash', i), 'field', value(100)],
      (i) => ['ZADD', keyOf('warm-ranked', i), '1', value(100)],
      (i) => ['RPUSH', keyOf('warm-list', i), value(100)],
      (i) => ['LSET', keyOf('warm-list', i), '0', value(100)],
      (i) => ['LRANGE', keyOf('warm-list', i), '0', '2'],
      (i) => ['SADD', keyOf('warm-set', i), 'member'],
      (i) => ['SREM', keyOf('warm-set', i), 'member'],
      (i) => ['HGETALL', keyOf('warm-hash', i)],
      (i) => ['DEL', keyOf('warm-list', i)],
    ];
    const end = performance.now() + warmUpMs;
    for (let round = 0; round < warmUpRounds || performance.now() < end; round++) {
      for (const make of commands) await this.#load.send(batchOf(128, make));
    }
    await this.#load.ask(['FLUSHALL']);
    await this.#load.measureIdle();
  }

  /** CPU microseconds of each module at each size of the table. */
  async measure(): Promise<Record<string, number[]>> {
    await this.#warmUp();
    const missing = await this.#one('EXISTS', 0, (i) => ['EXISTS', keyOf('none', i)]);
    const many = await this.#one('EXISTS of many', 0, (i) => [
      'EXISTS',
      ...Array.from({ length: manyKeys }, (_, k) => keyOf('none', i * manyKeys + k)),
    ]);
    const lookup = (many - missing) / (manyKeys - 1);
    // What a command takes that has nothing to do: reading it, finding what it is, and answering.
    const bare = missing - lookup;
    const decodeLeast = bare * 0.1;
    const encodeLeast = bare * 0.1;
    const convert = bare - decodeLeast - encodeLeast;

    const publish = await this.#bySize('PUBLISH', (size) => ['PUBLISH', 'nobody', value(size)]);
    const decode = publish.map((micros) => decodeLeast + Math.max(0, micros - publish[0]!));

    const read: number[] = [];
    const encode: number[] = [];
    for (const size of measured) {
      await this.#fill('read', size, (key) => ['SET', key, value(size)]);
      const ofPart = await this.#one(`GETRANGE of ${size} B`, size, (i) => [
        'GETRANGE',
        keyOf('read', i),
        '0',
        '0',
      ]);
      const whole = await this.#one(`GET of ${size} B`, size, (i) => ['GET', keyOf('read', i)]);
      read.push(Math.max(0, ofPart - bare - lookup));
      // The least answer is part of the bare command.
      const sending = whole - bare - lookup - read.at(-1)! + encodeLeast;
      encode.push(size === measured[0] ? encodeLeast : Math.max(encodeLeast, sending));
      await this.#fill('read', 0, (key) => ['DEL', key]);
    }

    const decoding = (at: number): number => bare + decode[at]! - decodeLeast;
    const set = await this.#bySize('SET', (size, i) => ['SET', keyOf('set', i), value(size)]);
    const written = set.map((micros, at) => Math.max(0, micros - decoding(at)));
    // A write and its entry in the log never come alone, so how they share is all the same.
    const log = written.map((micros) => micros * logShare);
    const writeValue = written.map((micros, at) => micros - log[at]!);
    const rest = (column: Column): number[] =>
      atLeastNothing(column.map((micros, at) => micros - decoding(at) - lookup - log[at]!));

    const hset = await this.#bySize('HSET', (size, i) => [
      'HSET',
      keyOf('hash', i),
      'field',
      value(size),
    ]);
    // Another score each time: one that is there already is not written.
    const zadd = await this.#bySize('ZADD', (size, i) => [
      'ZADD',
      keyOf('ranked', i % 1000),
      String(i),
      value(size),
    ]);
    const lset = await this.#lists();
    const { walk, walkArray } = await this.#walk(bare, lookup, encode);
    const remove = await this.#remove(bare, lookup, log[0]!);
    await this.#load.ask(['FLUSHALL']);
    return {
      decode: filled(decode),
      encode: filled(encode),
      convert: flat(convert),
      lookup: flat(lookup),
      read: filled(read),
      walk,
      walkArray,
      writeValue: filled(writeValue),
      writeField: filled(rest(hset)),
      writeScore: filled(rest(zadd)),
      writeElement: filled(rest(lset)),
      remove: flat(remove),
      log: filled(log),
      // A row that is dropped by itself is found first.
      expire: flat(remove + lookup),
    };
  }

  /** An element in place of another: a list does not grow by it. */
  async #lists(): Promise<number[]> {
    const column: number[] = [];
    for (const size of measured) {
      await this.#fill('list', size, (key) => ['RPUSH', key, value(size)]);
      column.push(
        await this.#one(`LSET of ${size} B`, size, (i) => [
          'LSET',
          keyOf('list', i),
          '0',
          value(size),
        ]),
      );
      await this.#fill('list', 0, (key) => ['DEL', key]);
    }
    return column;
  }

  /** An element walked along and answered, by its size; of sets and hashes, and of lists. */
  async #walk(
    bare: number,
    lookup: number,
    encode: Column,
  ): Promise<{ walk: number[]; walkArray: number[] }> {
    const walk: number[] = [];
    const walkArray: number[] = [];
    for (const size of walkedSizes) {
      const count = walkedBytes / size;
      const elements = Array.from({ length: count }, (_, i) => String(i).padStart(size, '0'));
      const whole = walkedBytes;
      await this.#fill('long', whole, (key) => ['RPUSH', key, ...elements]);
      await this.#fill('members', whole, (key) => ['SADD', key, ...elements]);
      await this.#fill('fields', whole, (key) => ['HSET', key, ...elements]);
      const each = async (name: string, kind: string, ...rest: string[]): Promise<number> => {
        const micros = await this.#one(name, whole, (i) => [name, keyOf(kind, i), ...rest]);
        const answered = count * (size + frameBytes);
        const sending = linear(encode, answered) - encode[0]!;
        return Math.max(0, (micros - bare - lookup - sending) / count);
      };
      const member = await each('SMEMBERS', 'members');
      const field = await each('HGETALL', 'fields');
      walk.push((member + field) / 2);
      walkArray.push(await each('LRANGE', 'long', '0', '-1'));
      for (const kind of ['long', 'members', 'fields']) {
        await this.#fill(kind, 0, (key) => ['DEL', key]);
      }
    }
    return { walk: walkedColumn(walk), walkArray: walkedColumn(walkArray) };
  }

  /** What is added and removed again, less what adding takes. */
  async #remove(bare: number, lookup: number, log: number): Promise<number> {
    const add = await this.#one('SADD', 0, (i) => ['SADD', keyOf('set', i + 7_000_000), 'member']);
    const both = await this.#load.micros(
      Array.from({ length: 4 }, (_, b) =>
        batchOf(0, (i) => [
          i % 2 === 0 ? 'SADD' : 'SREM',
          keyOf('gone', b * 1000 + (i >> 1)),
          'member',
        ]),
      ),
      windowMs,
    );
    return Math.max(lookup, 2 * both - add - bare - lookup - log);
  }
}

const logShare = 0.4;

/** Beyond what was measured, an element takes no more besides its bytes. */
function walkedColumn(costs: readonly number[]): number[] {
  const column = rising(costs, walkedSizes);
  return sizes.map((size) => {
    const above = walkedSizes.findIndex((at) => at >= size);
    if (above <= 0) return above === 0 ? column[0]! : column.at(-1)!;
    const [low, high] = [walkedSizes[above - 1]!, walkedSizes[above]!];
    return (
      column[above - 1]! + ((size - low) / (high - low)) * (column[above]! - column[above - 1]!)
    );
  });
}

/** The column at a size between two that were measured. */
function linear(column: Column, size: number): number {
  const above = Math.max(
    1,
    measured.findIndex((at) => at >= size),
  );
  const [low, high] = [measured[above - 1]!, measured[above]!];
  return column[above - 1]! + ((size - low) / (high - low)) * (column[above]! - column[above - 1]!);
}

const checkpointRows = 100_000;
const checkpointRowBytes = 100;

/** A row of a checkpoint, by size. */
export async function checkpointMicros(load: RedisLoad, progress: Progress): Promise<number[]> {
  progress.step('a checkpoint');
  const perCommand = 1000;
  for (let from = 0; from < checkpointRows; from += perCommand) {
    const words = Array.from({ length: perCommand }, (_, i) => [
      keyOf('saved', from + i),
      value(checkpointRowBytes),
    ]).flat();
    await load.ask(['MSET', ...words]);
  }
  const { micros } = await load.cpuOf(async () => {
    await load.ask(['SAVE']);
    return 1;
  });
  await load.ask(['FLUSHALL']);
  const perRow = micros / checkpointRows;
  return sizes.map((size) => perRow * Math.max(1, size / (2 * checkpointRowBytes)));
}

const missRows = 20_000;
const missSizes = [256, 4096] as const;

/**
 * A read that goes to disk, by size, and merging by the byte. What a command takes besides is known from
 * `cpu`. The server's cache holds next to nothing.
 */
export async function missMicros(
  load: RedisLoad,
  progress: Progress,
  cpu: Readonly<Record<string, readonly number[]>>,
): Promise<Record<'miss' | 'compact', number[]>> {
  const found: number[] = [];
  let writing = 0;
  let written = 0;
  for (const size of missSizes) {
    progress.step(`filling a disk with rows of ${size} B`);
    const at = sizes.indexOf(size);
    const fill = await load.cpuOf(async () => {
      for (let from = 0; from < missRows; from += 16) {
        await load.send(batchOf(size, (i) => ['SET', keyOf(`cold${size}`, from + i), value(size)]));
      }
      await new Promise((resolve) => setTimeout(resolve, 1000));
      return missRows;
    });
    const known = costOf(cpu, ['decode', 'encode', 'convert', 'log', 'writeValue'], at);
    writing += Math.max(0, fill.micros - missRows * known);
    written += missRows * size;
    progress.step(`reading ${size} B from disk`);
    let next = 0;
    const batches: Batch[] = Array.from({ length: 200 }, () =>
      batchOf(size, () => ['GET', keyOf(`cold${size}`, (next += 7919) % missRows)]),
    );
    const micros = await load.micros(batches, 3 * windowMs);
    const inMemory = costOf(cpu, ['decode', 'encode', 'convert', 'lookup', 'read'], at);
    found.push(Math.max(1, micros - inMemory));
  }
  const slope = Math.max(0, (found[1]! - found[0]!) / (missSizes[1] - missSizes[0]));
  const mergeMicros = writing / written;
  return {
    miss: sizes.map((size) => Math.max(1, found[0]! + slope * (size - missSizes[0]))),
    compact: sizes.map((size) => size * mergeMicros),
  };
}

function costOf(
  cpu: Readonly<Record<string, readonly number[]>>,
  names: readonly string[],
  at: number,
): number {
  return names.reduce((sum, name) => sum + (cpu[name]?.[at] ?? 0), 0);
}
