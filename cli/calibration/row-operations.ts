// The commands on rows that costs are learned from, and those that they are tried on.

import { batchOf, type Batch, type RedisLoad, type Words } from './redis-load.ts';

/** A command with a size, to be sent in batches, over as many keys as a batch has commands. */
export interface RowTask {
  name: string;
  size: number;
  /** Writes the row that the operation needs. */
  prepare?: ((key: string) => Words) | undefined;
  /** Batches alternate between `turn` 0 and 1, so that every write changes something. */
  run: (key: string, turn: number) => Words;
}

const elementBytes = 64;
const value = (size: number, fill = 'v'): Buffer => Buffer.alloc(Math.max(1, size), fill);
const keysOf = (key: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${key}:${i}`);
/** As many elements of so many bytes as come to the size. */
const elementsOf = (size: number, bytes = elementBytes): string[] =>
  Array.from({ length: Math.max(1, size / bytes) }, (_, i) => String(i).padEnd(bytes));

type TaskOf = (size: number) => Omit<RowTask, 'name' | 'size'>;

const several = 4;

const get: TaskOf = (size) => ({
  prepare: (key) => ['SET', key, value(size)],
  run: (key) => ['GET', key],
});
const set: TaskOf = (size) => ({ run: (key) => ['SET', key, value(size)] });
const mget =
  (count: number): TaskOf =>
  (size) => ({
    prepare: (key) => ['MSET', ...keysOf(key, count).flatMap((k) => [k, value(size / count)])],
    run: (key) => ['MGET', ...keysOf(key, count)],
  });
const mset =
  (count: number): TaskOf =>
  (size) => ({
    run: (key) => ['MSET', ...keysOf(key, count).flatMap((k) => [k, value(size / count)])],
  });
const hset: TaskOf = (size) => ({ run: (key) => ['HSET', key, 'field', value(size)] });
const hget: TaskOf = (size) => ({
  prepare: (key) => ['HSET', key, 'field', value(size)],
  run: (key) => ['HGET', key, 'field'],
});
const hgetall =
  (bytes: number): TaskOf =>
  (size) => ({
    prepare: (key) => ['HSET', key, ...elementsOf(size / 2, bytes).flatMap((e) => [e, e])],
    run: (key) => ['HGETALL', key],
  });
const lset: TaskOf = (size) => ({
  prepare: (key) => ['RPUSH', key, value(size)],
  run: (key) => ['LSET', key, '0', value(size)],
});
const lrange =
  (bytes: number): TaskOf =>
  (size) => ({
    prepare: (key) => ['RPUSH', key, ...elementsOf(size, bytes)],
    run: (key) => ['LRANGE', key, '0', '-1'],
  });
// The score alternates: an unchanged score would not be written.
const zadd =
  (bytes: number): TaskOf =>
  (size) => ({
    run: (key, turn) => [
      'ZADD',
      key,
      ...elementsOf(size, bytes).flatMap((e, i) => [String(i + turn), e]),
    ],
  });
const zrange =
  (bytes: number): TaskOf =>
  (size) => ({
    prepare: (key) => ['ZADD', key, ...elementsOf(size, bytes).flatMap((e, i) => [String(i), e])],
    run: (key) => ['ZRANGE', key, '0', '-1'],
  });
const smembers =
  (bytes: number): TaskOf =>
  (size) => ({
    prepare: (key) => ['SADD', key, ...elementsOf(size, bytes)],
    run: (key) => ['SMEMBERS', key],
  });

/** Twelve operations in six sizes. */
const trialSizes = [64, 512, 4096, 32_768, 262_144, 1_048_576] as const;

export const trialTasks: readonly RowTask[] = Object.entries({
  GET: get,
  SET: set,
  MGET: mget(several),
  MSET: mset(several),
  HSET: hset,
  HGET: hget,
  HGETALL: hgetall(elementBytes),
  LSET: lset,
  LRANGE: lrange(elementBytes),
  ZADD: zadd(elementBytes),
  ZRANGE: zrange(elementBytes),
  SMEMBERS: smembers(elementBytes),
}).flatMap(([name, taskOf]) => trialSizes.map((size) => ({ name, size, ...taskOf(size) })));

const all = [64, 256, 1024, 4096, 16_384, 32_768, 65_536, 262_144, 524_288, 1_048_576] as const;
/** Sizes for modules that other measurements cover as well. */
const few = [256, 4096, 65_536, 524_288, 1_048_576] as const;
const small = [64, 1024, 16_384] as const;

const manyKeys = 16;

const training: readonly [name: string, taskOf: TaskOf, sizes: readonly number[]][] = [
  // The way through the server alone; with more to receive; with more to send.
  ['PING', () => ({ run: () => ['PING'] }), [64]],
  ['PUBLISH', (size) => ({ run: () => ['PUBLISH', 'nobody', value(size)] }), all],
  ['ECHO', (size) => ({ run: () => ['ECHO', value(size)] }), small],
  // Rows looked up, and nothing else.
  [
    'EXISTS',
    (size) => ({
      prepare: (key) => ['MSET', ...keysOf(key, size).flatMap((k) => [k, 'v'])],
      run: (key) => ['EXISTS', ...keysOf(key, size)],
    }),
    [1, manyKeys, 8 * manyKeys],
  ],
  ['GET', get, all],
  // Reading without sending.
  [
    'GETRANGE',
    (size) => ({
      prepare: (key) => ['SET', key, value(size)],
      run: (key) => ['GETRANGE', key, '0', '0'],
    }),
    few,
  ],
  ['MGET', mget(several), few],
  ['MGET 16', mget(manyKeys), few],
  ['SET', set, all],
  ['MSET', mset(several), few],
  ['MSET 16', mset(manyKeys), few],
  ['INCR', () => ({ run: (key) => ['INCR', key] }), [64]],
  [
    'SET DEL',
    (size) => ({ run: (key, turn) => (turn === 0 ? ['SET', key, value(size)] : ['DEL', key]) }),
    small,
  ],
  ['HSET', hset, all],
  [
    'HSET many',
    (size) => ({ run: (key) => ['HSET', key, ...elementsOf(size / 2).flatMap((e) => [e, e])] }),
    few,
  ],
  ['HGET', hget, few],
  ['HGETALL', hgetall(elementBytes), all],
  ['HGETALL 1024', hgetall(1024), [4096, 65_536, 1_048_576]],
  ['HGETALL 65536', hgetall(65_536), [262_144, 1_048_576]],
  ['LSET', lset, all],
  [
    'RPUSH RPOP',
    (size) => ({
      prepare: (key) => ['RPUSH', key, 'first'],
      run: (key, turn) => (turn === 0 ? ['RPUSH', key, value(size)] : ['RPOP', key]),
    }),
    small,
  ],
  ['LRANGE', lrange(elementBytes), all],
  ['LRANGE 1024', lrange(1024), [4096, 65_536, 1_048_576]],
  ['LRANGE 65536', lrange(65_536), [65_536, 1_048_576]],
  // One member, and many.
  ['ZADD one', (size) => zadd(size)(size), all],
  ['ZADD', zadd(elementBytes), [256, 1024, 16_384, 65_536, 131_072, 524_288, 1_048_576]],
  [
    'ZADD ZREM',
    (size) => ({
      run: (key, turn) =>
        turn === 0 ? ['ZADD', key, '1', value(size)] : ['ZREM', key, value(size)],
    }),
    small,
  ],
  ['ZRANGE', zrange(elementBytes), [64, 256, 1024, 4096, 65_536, 524_288, 1_048_576]],
  ['ZRANGE 1024', zrange(1024), [4096, 65_536, 1_048_576]],
  ['ZRANGE 65536', zrange(65_536), [65_536, 1_048_576]],
  [
    'ZRANK',
    (size) => ({
      prepare: (key) => ['ZADD', key, ...elementsOf(size).flatMap((e, i) => [String(i), e])],
      run: (key) => ['ZRANK', key, elementsOf(64)[0]!],
    }),
    [64, 4096],
  ],
  [
    'SADD SREM',
    (size) => ({
      run: (key, turn) => [turn === 0 ? 'SADD' : 'SREM', key, ...elementsOf(size)],
    }),
    small,
  ],
  ['SMEMBERS', smembers(elementBytes), all],
  ['SMEMBERS 1024', smembers(1024), [4096, 65_536, 1_048_576]],
  ['SMEMBERS 65536', smembers(65_536), [65_536, 1_048_576]],
];

export const trainingTasks: readonly RowTask[] = training.flatMap(([name, taskOf, sizes]) =>
  sizes.map((size) => ({ name, size, ...taskOf(size) })),
);

/** Those in sizes between the ones that are tried: by these it is known how fast a machine is. */
const referenceNames = [...new Set(trialTasks.map(({ name }) => name))];
const referenceSizes = [256, 1024, 16_384, 65_536, 524_288];
export const referenceTasks: readonly RowTask[] = trainingTasks.filter(
  ({ name, size }) => referenceNames.includes(name) && referenceSizes.includes(size),
);

/**
 * The two batches of a task, over keys of its own. Required rows exist, and both batches were sent
 * once.
 */
export async function batchesOf(
  { name, size, prepare, run }: RowTask,
  load: RedisLoad,
): Promise<Batch[]> {
  const key = (i: number): string => `${name}:${size}:${i}`;
  if (prepare !== undefined) await load.check(batchOf(size, (i) => prepare(key(i))));
  const batches = [0, 1].map((turn) => batchOf(size, (i) => run(key(i), turn)));
  for (const batch of batches) await load.check(batch);
  return batches;
}
