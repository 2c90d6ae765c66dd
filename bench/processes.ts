// Cost of several processes: processor time a command of `polyrow start --processes N`, summed over
// its processes, relative to one process, with keys spread over all partitions. The load generator
// is not counted, nor is idle processor time, which is a row of its own: on a slow machine it would
// distort the cost of commands.

import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { runRedisBenchmark, type RedisLoad } from './redis-benchmark.ts';
import { cpuNanoseconds } from './support/process-usage.ts';
import { type Fsync, type Running, startPolyrow } from './support/processes.ts';
import { machine, printTable, type Report, type Row, save } from './support/report.ts';
import { RespClient } from './support/resp-client.ts';
import { median } from './support/statistics.ts';

interface ProcessesOptions {
  rounds: number;
  processes: number;
  fsync: Fsync;
  tests: string[];
  pipelines: number[];
  /** Commands of a round, by connection and place in a pipeline. */
  requests: number;
  keys: number;
}

export const processesDefaults: ProcessesOptions = {
  rounds: 5,
  processes: 4,
  fsync: 'everysec',
  tests: ['get', 'set'],
  pipelines: [1, 16],
  requests: 50_000,
  keys: 100_000,
};

/** By the pipeline's depth. */
const targets: Readonly<Record<number, number>> = { 1: 2.0, 16: 1.4 };
const readyMs = 60_000;
/** After a start the nodes join, load the rest of their code and compile it. */
const settleMs = 60_000;
const idleMs = 20_000;

export async function processesBench(options: ProcessesOptions, command: string): Promise<Report> {
  const { processes, fsync, rounds } = options;
  const one = await startPolyrow(fsync);
  try {
    const several = await startPolyrow(fsync, ['--processes', String(processes)]);
    try {
      await untilWhole(several, processes);
      await sleep(settleMs);
      const idle = { several: await idleShare(several), one: await idleShare(one) };
      const rows: Row[] = [idleRow(idle.several, idle.one)];
      for (const pipeline of options.pipelines) {
        for (const test of options.tests)
          rows.push(await row(several, one, idle, test, pipeline, options));
      }
      const report: Report = {
        bench: 'processes',
        command,
        date: new Date().toISOString(),
        machine: machine(),
        peer: 'one process',
        rounds,
        settings: {
          ...{ processes, fsync, requests: options.requests, keys: options.keys },
          tests: options.tests.join(','),
        },
        rows,
      };
      printTable(report);
      save(report, 'processes');
      return report;
    } finally {
      await several.stop();
    }
  } finally {
    await one.stop();
  }
}

async function row(
  several: Running,
  one: Running,
  idle: { several: number; one: number },
  test: string,
  pipeline: number,
  { rounds, requests, keys, processes }: ProcessesOptions,
): Promise<Row> {
  const load = { test, pipeline, keys };
  const count = requests * Math.ceil(Math.sqrt(pipeline));
  // The code is compiled, which takes as many commands in each of the processes, and most keys are there.
  await runRedisBenchmark(one, load, count);
  await runRedisBenchmark(several, load, count * processes);
  const taken: { ours: number[]; peer: number[] } = { ours: [], peer: [] };
  for (let round = 1; round <= rounds; round++) {
    taken.ours.push(await microsOf(several, idle.several, load, count));
    taken.peer.push(await microsOf(one, idle.one, load, count));
  }
  const ours = median(taken.ours);
  const peer = median(taken.peer);
  const name = `${test.toUpperCase()} P=${pipeline}`;
  const target = targets[pipeline];
  return {
    ...{ name, unit: 'us of processors', ours, peer, ratio: ours / peer, better: 'lower' },
    ...(target === undefined ? {} : { target }),
  };
}

function idleRow(several: number, one: number): Row {
  const name = 'idle';
  const figures = { ours: several * 100, peer: one * 100, ratio: several / one };
  return { name, unit: '% of a processor', ...figures, better: 'lower' };
}

/** Share of a processor that an idle server takes. */
async function idleShare(server: Running): Promise<number> {
  const [before, began] = [processorNanoseconds(server.pid), performance.now()];
  await sleep(idleMs);
  return (processorNanoseconds(server.pid) - before) / 1e6 / (performance.now() - began);
}

/** Processor time of a command, above that of the idle server. */
async function microsOf(
  server: Running,
  idle: number,
  load: RedisLoad,
  count: number,
): Promise<number> {
  const [before, began] = [processorNanoseconds(server.pid), performance.now()];
  await runRedisBenchmark(server, load, count);
  const idleNanoseconds = idle * (performance.now() - began) * 1e6;
  return (processorNanoseconds(server.pid) - before - idleNanoseconds) / 1000 / count;
}

/** Processor time of the process and its children. */
function processorNanoseconds(pid: number): number {
  return childrenOf(pid).reduce((sum, child) => sum + cpuNanoseconds(child), cpuNanoseconds(pid));
}

function childrenOf(pid: number): number[] {
  const tasks = `/proc/${pid}/task`;
  return readdirSync(tasks)
    .flatMap((task) => readFileSync(`${tasks}/${task}/children`, 'latin1').split(' '))
    .filter((child) => child !== '')
    .map(Number);
}

/** All processes are there, and each partition has a leader. */
async function untilWhole({ pid, port }: Running, processes: number): Promise<void> {
  const until = performance.now() + readyMs;
  for (;;) {
    try {
      const client = await RespClient.connect(port);
      if (childrenOf(pid).length === processes) await client.call('DBSIZE');
      client.close();
      if (childrenOf(pid).length === processes) return;
    } catch (error) {
      if (performance.now() > until) throw error;
    }
    await sleep(200);
  }
}
