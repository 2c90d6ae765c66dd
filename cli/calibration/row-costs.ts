// Costs of the modules on a row command's path, fitted to windows of many commands. The server reports the work of
// each.

import { type RowModule, rowModules, sizes } from '../../request-units/cost-table.ts';
import { referenceCapacity } from '../../request-units/physical.ts';
import { costLayout, RowPricer } from '../../request-units/row-pricer.ts';
import { type Columns, fitColumns, type Modules, type Part, type Sample } from './cost-fit.ts';
import type { Progress } from './progress.ts';
import { middle } from './quality.ts';
import { type Batch, batchOf, endBatch, type PricedRequest, type RedisLoad } from './redis-load.ts';
import { batchesOf, type RowTask, trainingTasks } from './row-operations.ts';
import { drawnMixes, inRounds, mixOf, type WindowLoad } from './windows.ts';

/** Reads from disk, background work and scripts. */
const otherRowModules: readonly RowModule[] = ['miss', 'expire', 'compact', 'checkpoint', 'script'];
/** The modules that commands themselves use. */
export const fittedRowModules: readonly RowModule[] = rowModules.filter(
  (name) => !otherRowModules.includes(name),
);

/**
 * Batches that are there before the current one is done, for the server to continue with. Of large values they would
 * only fill its buffers.
 */
const underWay = 4;
const rounds = 6;
const windowMs = 20;
const mixedWindows = 28;
const mixedRounds = 4;
const mixedMs = 80;
const drawn = [4, 28] as const;
/** Large values become garbage that is not collected in every short window, but is in every long one. */
const windowOfLargeMs = 45;
const large = 32_768;
const leastBatches = 2;
const warmUpMs = 4000;
/** Commands of larger values run the same code. */
const warmUpSize = 4096;

/** The batches of a task, with commands of `size` bytes, alternating. */
export function taskLoad(load: RedisLoad, batches: readonly Batch[], size: number): WindowLoad {
  let next = 0;
  return {
    windowMs: size < large ? windowMs : windowOfLargeMs,
    underWay: size < large ? underWay : 1,
    send: async () => {
      const batch = batches[next++ % batches.length]!;
      await load.send(batch);
      return batch.commands;
    },
  };
}

/** Until its code is compiled a server takes several times as long for everything. */
export async function warmUp(
  load: RedisLoad,
  tasks: readonly RowTask[],
  progress: Progress,
): Promise<void> {
  progress.step('warming up');
  const batches: Batch[] = [];
  for (const task of tasks) {
    if (task.size <= warmUpSize) batches.push(...(await batchesOf(task, load)));
  }
  const until = performance.now() + warmUpMs;
  while (performance.now() < until) for (const batch of batches) await load.send(batch);
  await load.measureIdle();
}

/** A request's CPU in microseconds by a table of such modules. */
export function rowMicrosBy(modules: Modules): (work: PricedRequest) => number {
  const complete = Object.fromEntries(rowModules.map((name) => [name, modules[name] ?? {}]));
  const costs = { read1kB: [1, 1, 1, 1], capacity: referenceCapacity, modules: complete } as const;
  const pricer = new RowPricer({ costs, isCached: false });
  const cost = new Float64Array(costLayout.length);
  return (work) => {
    pricer.price(1, work.commands, work.received, work.sent, work, cost);
    return cost[costLayout.cpu]!;
  };
}

/**
 * Samples of all tasks, each alone and some of them mixed, on an otherwise idle server. Windows of
 * mixed tasks measure large requests followed by one of another kind, which is their usual setting.
 */
export async function sampleRows(
  load: RedisLoad,
  progress: Progress,
): Promise<Sample<PricedRequest>[]> {
  const tasks = trainingTasks;
  await warmUp(load, tasks, progress);
  const ending = await load.workOf(endBatch);
  const loads: WindowLoad[] = [];
  /** The parts of whole batches. */
  const parts: Part<PricedRequest>[][] = [];
  const commands: number[] = [];
  for (const task of tasks) {
    progress.step(`preparing ${task.name} of ${task.size} B`);
    const batches = await batchesOf(task, load);
    loads.push(taskLoad(load, batches, task.size));
    commands.push(batches[0]!.commands);
    const own: Part<PricedRequest>[] = [];
    for (const batch of batches) {
      own.push({ work: await load.workOf(batch), times: batch.commands / batches.length });
    }
    parts.push([...own, { work: ending, times: 1 }]);
  }
  const options = { progress, name: 'commands', rounds, windowMs, leastBatches };
  const found = await inRounds(loads, load, options);
  const alone = tasks.map(({ name, size }, i) => ({
    name: `${name} of ${size} B`,
    parts: parts[i]!.map(({ work, times }) => ({ work, times: times / commands[i]! })),
    micros: found[i]!.measured,
  }));
  const mixes = drawnMixes(loads.length, mixedWindows, drawn);
  const together = await inRounds(
    mixes.map((mix) => mixOf(mix.map((at) => loads[at]!))),
    load,
    { ...options, name: 'mixed commands', rounds: mixedRounds, windowMs: mixedMs, leastBatches: 1 },
  );
  // Mixed commands are a little slower than single ones. The table does not model this, so it is scaled out.
  const sums = mixes.map((mix) =>
    mix.reduce((sum, at) => sum + found[at]!.measured * commands[at]!, 0),
  );
  const slowness = middle(together.map(({ measured }, m) => measured / sums[m]!));
  const mixed = mixes.map((mix, m) => ({
    name: `mix ${m}`,
    parts: mix.flatMap((at) => parts[at]!),
    micros: together[m]!.measured / slowness,
  }));
  await load.ask(['FLUSHALL']);
  return [...alone, ...mixed];
}

// Fraction of the cheapest command's cost. No module is free, even where no measurement separates it from the modules
// it comes with.
const leastShare = 0.05;
const leastShareOfWrite = 0.2;
const writes: readonly string[] = [
  'writeValue',
  'writeField',
  'writeScore',
  'writeElement',
  'remove',
  'log',
];

/** CPU microseconds of each module at each size of the table, that these samples speak for. */
export function rowColumns(samples: readonly Sample<PricedRequest>[]): Columns {
  const shortest = Math.min(...samples.map(({ micros }) => micros));
  const columns = fitColumns(fittedRowModules, rowMicrosBy, samples, {
    least: (module) => {
      if (module === 'writeMany') return 0;
      return shortest * (writes.includes(module) ? leastShareOfWrite : leastShare);
    },
  });
  // A row that is dropped by itself is found first.
  const expire = columns['remove']!.map((micros, i) => micros + columns['lookup']![i]!);
  return { ...columns, expire };
}

const checkpointRows = 100_000;
const checkpointRowBytes = 100;

/** A row of a checkpoint, by size. */
export async function checkpointMicros(load: RedisLoad, progress: Progress): Promise<number[]> {
  progress.step('a checkpoint');
  const perCommand = 1000;
  for (let from = 0; from < checkpointRows; from += perCommand) {
    const words = Array.from({ length: perCommand }, (_, i) => [
      `saved:${from + i}`,
      Buffer.alloc(checkpointRowBytes, 'v'),
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

/** Iterations of a loop with typical operations: reading and setting fields, comparing, adding. */
const scriptText =
  'local t, n = {}, 0 for i = 1, ARGV[1] do local v = t[i % 64] or i if v > n then n = v end t[i % 64] = n + 1 end';
const scriptIterations = 1_000_000;
const scriptRuns = 20;

/** A thousand steps of a script; as many for any size. */
export async function scriptMicros(load: RedisLoad, progress: Progress): Promise<number[]> {
  progress.step('scripts');
  const run = (): Promise<string> => load.ask(['EVAL', scriptText, '0', String(scriptIterations)]);
  for (let i = 0; i < scriptRuns; i++) await run();
  const { micros } = await load.cpuOf(async () => {
    for (let i = 0; i < scriptRuns; i++) await run();
    return scriptRuns;
  });
  const perThousand = (micros * 1000) / (scriptRuns * scriptIterations);
  return sizes.map(() => perThousand);
}

/** Bytes of rows of each size: more than the row cache and the block cache hold. */
const coldBytes = 24 * 2 ** 20;
const coldRows = 12_000;
const coldSizes = [64, 256, 1024, 4096, 16_384, 65_536] as const;
const coldBatches = 200;
/** By which it is known how many reads are misses. */
const countedBatches = 8;
/** Time until written data is merged. */
const settleMs = 1500;

/**
 * A read from disk, by size, and merging by the byte. The command's other costs are known from
 * `cpu`. The server's cache is minimal.
 */
export async function measureDisk(
  load: RedisLoad,
  progress: Progress,
  cpu: Columns,
): Promise<Columns> {
  const known = rowMicrosBy(modulesBy(cpu));
  const merging = { micros: 0, bytes: 0 };
  const loads: WindowLoad[] = [];
  const parts: Part<PricedRequest>[][] = [];
  const ending = await load.workOf(endBatch);
  for (const size of coldSizes) {
    progress.step(`filling a disk with rows of ${size} B`);
    const rows = Math.min(coldRows, Math.floor(coldBytes / size));
    const key = (i: number): string => `cold:${size}:${i % rows}`;
    const value = Buffer.alloc(size, 'v');
    const write = (from: number): Batch => batchOf(size, (i) => ['SET', key(from + i), value]);
    const { commands } = write(0);
    const each = known(await load.workOf(write(0))) + known(ending) / commands;
    const { micros } = await load.cpuOf(async () => {
      for (let from = 0; from < rows; from += commands) await load.send(write(from));
      await new Promise((resolve) => setTimeout(resolve, settleMs));
      return rows;
    });
    // All of the smallest is still in memory.
    if (size > coldSizes[0]) {
      merging.micros += Math.max(0, micros - rows * each);
      merging.bytes += rows * size;
    }
    let next = 0;
    const reads = Array.from({ length: coldBatches }, () =>
      batchOf(size, () => ['GET', key((next += coldStride))]),
    );
    // The newest rows are still in memory.
    for (const batch of reads) await load.send(batch);
    loads.push(taskLoad(load, reads, size));
    const own: Part<PricedRequest>[] = [];
    for (const batch of reads.slice(0, countedBatches)) {
      own.push({ work: await load.workOf(batch), times: 1 / countedBatches });
    }
    parts.push([...own, { work: ending, times: 1 / reads[0]!.commands }]);
  }
  const found = await inRounds(loads, load, {
    progress,
    name: 'reads from disk',
    rounds,
    windowMs: 2 * windowMs,
    leastBatches,
  });
  const samples = coldSizes.map((size, i) => ({
    name: `GET of ${size} B from disk`,
    parts: parts[i]!,
    micros: found[i]!.measured,
  }));
  const { miss } = fitColumns(['miss'], rowMicrosBy, samples, { known });
  const perByte = merging.micros / merging.bytes;
  return { miss: miss!, compact: sizes.map((size) => size * perByte) };
}

/** Coprime to every number of rows, and so large that no read finds rows loaded by another one. */
const coldStride = 7919;

function modulesBy(columns: Columns): Modules {
  return Object.fromEntries(Object.entries(columns).map(([name, cpu]) => [name, { cpu }]));
}
