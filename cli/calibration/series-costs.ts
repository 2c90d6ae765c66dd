// Costs of the modules on a time-series request's path, fitted to windows of many requests. The server reports the work
// of each.

import { type SeriesModule, seriesModules, sizes } from '../../request-units/cost-table.ts';
import { referenceCapacity } from '../../request-units/physical.ts';
import { costLayout } from '../../request-units/row-pricer.ts';
import { SeriesPricer, type SeriesWork } from '../../request-units/series-pricer.ts';
import { type Columns, fitColumns, type Modules, type Sample } from './cost-fit.ts';
import type { InfluxLoad } from './influx-load.ts';
import type { Progress } from './progress.ts';
import type { RedisLoad } from './redis-load.ts';
import { bodyOf, seriesData, type SeriesTask, seriesTrainingTasks } from './series-operations.ts';
import { inRounds, type WindowLoad } from './windows.ts';

/** The modules that requests themselves use. Compaction comes later, and holding memory takes no CPU. */
const fitted: readonly SeriesModule[] = seriesModules.filter(
  (name) => name !== 'hold' && name !== 'compact',
);

const rounds = 6;
const windowMs = 30;
const leastRequests = 2;
/** Fraction of the cheapest request's cost. No module is free, even where no measurement separates it. */
const leastShare = 0.0002;
const warmUpMs = 5000;
/** Larger requests run the same code. */
const warmUpSize = 1000;

export function taskLoad(influx: InfluxLoad, { make }: SeriesTask): WindowLoad {
  let next = 0;
  return {
    send: async () => {
      await influx.send(make(next++));
      return 1;
    },
  };
}

/** Writes the points for the queries, and waits until they are in files. */
export async function fillSeries(influx: InfluxLoad): Promise<void> {
  for (const request of seriesData()) await influx.send(request);
  // Adds to the log, so that the earlier points are in a checkpoint.
  for (let i = 0; i < fillerBodies; i++) {
    await influx.send(bodyOf(linesPerBody, i));
    await new Promise((resolve) => setTimeout(resolve, fillerMs));
  }
}

/** Until its code is compiled a server takes several times as long for everything. */
export async function warmUp(
  influx: InfluxLoad,
  load: RedisLoad,
  tasks: readonly SeriesTask[],
  progress: Progress,
): Promise<void> {
  progress.step('warming up series');
  const loads = tasks
    .filter(({ size }) => size <= warmUpSize)
    .map((task) => taskLoad(influx, task));
  const until = performance.now() + warmUpMs;
  while (performance.now() < until) for (const one of loads) await one.send();
  await load.measureIdle();
}

/** A request's CPU in microseconds by a table of such modules. */
function microsBy(modules: Modules): (work: SeriesWork) => number {
  const complete = Object.fromEntries(seriesModules.map((name) => [name, modules[name] ?? {}]));
  const costs = { read1kB: [1, 1, 1, 1], capacity: referenceCapacity, modules: complete } as const;
  const pricer = new SeriesPricer(costs);
  const cost = new Float64Array(costLayout.length);
  return (work) => {
    pricer.price(work, cost);
    return cost[costLayout.cpu]!;
  };
}

/** CPU microseconds of each module at each size of the table, but for merging. */
export async function measureSeries(
  influx: InfluxLoad,
  load: RedisLoad,
  progress: Progress,
): Promise<Columns> {
  const tasks = seriesTrainingTasks();
  await warmUp(influx, load, tasks, progress);
  const works: SeriesWork[] = [];
  // A second of its own, beyond the times any window writes.
  for (const { make } of tasks) works.push(await influx.workOf(make(99_999)));
  const found = await inRounds(
    tasks.map((task) => taskLoad(influx, task)),
    load,
    { progress, name: 'requests', rounds, windowMs, leastBatches: leastRequests },
  );
  const samples = tasks.map(
    ({ name, size }, i): Sample<SeriesWork> => ({
      name: `${name} of ${size}`,
      parts: [{ work: works[i]!, times: 1 }],
      micros: found[i]!.measured,
    }),
  );
  const shortest = Math.min(...samples.map(({ micros }) => micros));
  return fitColumns(fitted, microsBy, samples, { least: () => leastShare * shortest });
}

const fillerBodies = 30;
const fillerMs = 100;
const mergedBodies = 40;
const linesPerBody = 5000;
/** Time until written points are in files. */
const settleMs = 1500;

/** CPU microseconds of a byte of the log, with all that becomes of it on disk. */
export async function microsPerLoggedByte(
  influx: InfluxLoad,
  load: RedisLoad,
  progress: Progress,
): Promise<number> {
  progress.step('merging');
  await influx.send({ method: 'POST', path: '/query?q=CREATE+DATABASE+calibrate' });
  let next = 0;
  const writeAll = async (): Promise<number> => {
    for (let i = 0; i < mergedBodies; i++) await influx.send(bodyOf(linesPerBody, next++));
    await new Promise((resolve) => setTimeout(resolve, settleMs));
    return 1;
  };
  // The first time its code is being compiled.
  await writeAll();
  const { micros } = await load.cpuOf(writeAll);
  const { logBytes } = await influx.workOf(bodyOf(linesPerBody, next));
  return micros / (mergedBodies * logBytes);
}

/** Costs that are so much by the byte. */
export function byTheByte(micros: number): number[] {
  return sizes.map((size) => size * micros);
}
