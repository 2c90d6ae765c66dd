// Compares two builds in alternation: the same load on one and then the other, in pairs of changing
// order, so that drift affects both. A row is the median of the pairs' ratios of new to old with
// its 95 % interval, of throughput and of the server's processor time per request.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { runRedisBenchmark } from './redis-benchmark.ts';
import { cpuNanoseconds } from './support/process-usage.ts';
import { requireProgram, type Running, startPolyrow } from './support/processes.ts';
import { machine } from './support/report.ts';
import { startPolyrowSeries } from './support/series-servers.ts';
import { type Interval, medianWithin } from './support/statistics.ts';
import { type QueryType, type TsbsData } from './support/tsbs-tools.ts';
import { generate, generateQueries, load, meanLatency } from './tsbs.ts';

interface CompareOptions {
  /** Any of redis, tsbs-load and tsbs-queries. */
  parts: string[];
  pairs: number;
  pipelines: number[];
  /** Tests of redis-benchmark. */
  tests: string[];
  /** Length of a turn of redis-benchmark, about. */
  seconds: number;
  queries: string[];
  hosts: number;
  /** Minutes of data that is loaded, and of data that is queried. */
  loadMinutes: number;
  queryHours: number;
}

export const compareDefaults: CompareOptions = {
  parts: ['redis', 'tsbs-load', 'tsbs-queries'],
  pairs: 20,
  pipelines: [1, 16],
  tests: ['get', 'set', 'hset', 'zadd'],
  seconds: 1,
  queries: ['single-groupby-1-1-1', 'cpu-max-all-8', 'double-groupby-1', 'high-cpu-1', 'lastpoint'],
  hosts: 100,
  loadMinutes: 600,
  queryHours: 25,
};

/** The part of its speed that the new build is to keep. */
const keptShare = 0.98;
/** Compilers and caches settle before the first pair. */
const warmUps = 2;
const settleMs = 20_000;

interface Run {
  perSecond: number;
  /** Processor time of all threads of the server, of a request. */
  cpuMicros: number;
}

interface Compared {
  name: string;
  unit: string;
  old: number;
  new: number;
  ratio: Interval;
  /** The whole interval is beyond the allowed range. */
  isWorse: boolean;
}

/** Resolves to whether the new build is nowhere worse. */
export async function compareBench(
  oldDist: string,
  newDist: string,
  options: CompareOptions,
  command: string,
): Promise<boolean> {
  const builds = [oldDist, newDist] as const;
  const directory = mkdtempSync(join(tmpdir(), 'polyrow-compare-'));
  const rows: Compared[] = [];
  try {
    if (options.parts.includes('redis')) rows.push(...(await compareRedis(builds, options)));
    if (options.parts.includes('tsbs-load')) {
      rows.push(...(await compareLoad(builds, directory, options)));
    }
    if (options.parts.includes('tsbs-queries')) {
      rows.push(...(await compareQueries(builds, directory, options)));
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  print(rows, `${command}\n${machine()}, ${options.pairs} pairs`);
  return rows.every(({ isWorse }) => !isWorse);
}

type Builds = readonly [old: string, new: string];
type Side = 0 | 1;

/** `turn` is the same load on either build, as often as it is called. */
async function alternate(
  name: string,
  unit: string,
  pairs: number,
  turn: (side: Side) => Promise<Run>,
): Promise<Compared[]> {
  const turns: readonly [Run[], Run[]] = [[], []];
  for (let pair = -warmUps; pair < pairs; pair++) {
    process.stderr.write(`\r${name}: pair ${pair + 1} of ${pairs}   `);
    const order: readonly Side[] = pair % 2 === 0 ? [0, 1] : [1, 0];
    for (const side of order) {
      const result = await turn(side);
      if (pair >= 0) turns[side].push(result);
    }
  }
  process.stderr.write('\n');
  const compared = (of: keyof Run, what: string, in_: string, better: number): Compared => {
    const [before, after] = turns.map((all) => all.map((one) => one[of])) as [number[], number[]];
    const ratio = medianWithin(after.map((value, i) => value / before[i]!));
    return {
      name: what,
      unit: in_,
      old: medianWithin(before).middle,
      new: medianWithin(after).middle,
      ratio,
      isWorse: better > 0 ? ratio.high < keptShare : ratio.low > 1 / keptShare,
    };
  };
  return [
    compared('perSecond', name, unit, 1),
    compared('cpuMicros', `${name} processor time`, 'us', -1),
  ];
}

async function compareRedis(
  builds: Builds,
  { pairs, pipelines, tests, seconds }: CompareOptions,
): Promise<Compared[]> {
  requireProgram('redis-benchmark', 'package redis-tools');
  const servers = await startBoth(builds, (dist) => startPolyrow('everysec', [], [], { dist }));
  const rows: Compared[] = [];
  try {
    for (const pipeline of pipelines) {
      for (const test of tests) {
        const one = { test, pipeline, keys: 100_000 };
        const { throughput } = await runRedisBenchmark(servers[0], one, 50_000);
        const requests = Math.round(throughput * seconds);
        const name = `${test.toUpperCase()} P=${pipeline}`;
        rows.push(
          ...(await alternate(name, 'req/s', pairs, async (side) => {
            const server = servers[side];
            const before = cpuNanoseconds(server.pid);
            const measured = await runRedisBenchmark(server, one, requests);
            const spent = cpuNanoseconds(server.pid) - before;
            return { perSecond: measured.throughput, cpuMicros: spent / 1000 / requests };
          })),
        );
      }
    }
  } finally {
    for (const server of servers) await server.stop();
  }
  return rows;
}

const startSeries = (dist: string): Promise<Running> =>
  startPolyrowSeries('everysec', ['--tsm.cold-after', '5'], { dist });

/**
 * Each load has a server of its own: overwriting the rows of an earlier load would be different
 * work.
 */
async function compareLoad(
  builds: Builds,
  directory: string,
  { pairs, hosts, loadMinutes }: CompareOptions,
): Promise<Compared[]> {
  const data: TsbsData = { useCase: 'cpu-only', hosts, minutes: loadMinutes };
  const file = await generate(data, directory);
  const rows = await alternate('TSBS load', 'values/s', pairs, async (side) => {
    const server = await startSeries(builds[side]);
    try {
      const before = cpuNanoseconds(server.pid);
      const { metrics, metricsPerSecond } = await load(server, file, 2);
      const spent = cpuNanoseconds(server.pid) - before;
      return { perSecond: metricsPerSecond, cpuMicros: spent / 1000 / metrics };
    } finally {
      await server.stop();
    }
  });
  rmSync(file);
  return rows;
}

async function compareQueries(
  builds: Builds,
  directory: string,
  { pairs, hosts, queryHours, queries }: CompareOptions,
): Promise<Compared[]> {
  const data: TsbsData = { useCase: 'cpu-only', hosts, minutes: queryHours * 60 };
  const file = await generate(data, directory);
  const servers = await startBoth(builds, startSeries);
  const rows: Compared[] = [];
  try {
    for (const server of servers) await load(server, file, 2);
    // Waits until loaded data is flushed to files and compacted.
    await sleep(settleMs);
    for (const type of queries as QueryType[]) {
      const { file: asked, queries: count } = await generateQueries(data, type, directory);
      rows.push(
        ...(await alternate(type, 'queries/s', pairs, async (side) => {
          const server = servers[side];
          const before = cpuNanoseconds(server.pid);
          const ms = await meanLatency(server, asked);
          const spent = cpuNanoseconds(server.pid) - before;
          return { perSecond: 1000 / ms, cpuMicros: spent / 1000 / count };
        })),
      );
      rmSync(asked);
    }
  } finally {
    for (const server of servers) await server.stop();
  }
  return rows;
}

async function startBoth(
  [oldDist, newDist]: Builds,
  start: (dist: string) => Promise<Running>,
): Promise<[Running, Running]> {
  const first = await start(oldDist);
  try {
    return [first, await start(newDist)];
  } catch (error) {
    await first.stop();
    throw error;
  }
}

function print(rows: readonly Compared[], head: string): void {
  const table = new Table({
    head: ['', 'unit', 'old', 'new', 'ratio', '95 %', ''],
    style: { head: [], border: [] },
    colAligns: ['left', 'left', 'right', 'right', 'right', 'right', 'left'],
  });
  for (const { name, unit, old, new: now, ratio, isWorse } of rows) {
    const { middle, low, high } = ratio;
    table.push([
      name,
      unit,
      figure(old),
      figure(now),
      middle.toFixed(3),
      `${low.toFixed(3)} to ${high.toFixed(3)}`,
      isWorse ? 'WORSE' : 'kept',
    ]);
  }
  console.log(`${head}\n${table.toString()}`);
}

function figure(value: number): string {
  return value >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(4);
}
