// A gateway and a node in processes of their own over one process with both: processor time a command, the load
// generator not counted. One copy of the data. A cluster has each write on disk before it is answered, so the one
// process has too.

import { runRedisBenchmark } from '../redis-benchmark.ts';
import { cpuNanoseconds } from '../support/process-usage.ts';
import { requireProgram, type Running, startPolyrow } from '../support/processes.ts';
import { median } from '../support/statistics.ts';
import { type Figure, tell } from './figures.ts';
import { LocalNodes } from './local-nodes.ts';

export const gatewayDefaults = { rounds: 5, requests: 100_000 };

const keys = 100_000;
/** Processor time of both processes over that of one, by the depth of the pipeline. */
const most: ReadonlyMap<number, number> = new Map([
  [1, 2.2],
  [16, 1.4],
]);

export async function gatewayBench(
  { rounds, requests }: typeof gatewayDefaults,
  command: string,
): Promise<boolean> {
  requireProgram('redis-benchmark', 'package redis-tools');
  const single = await startPolyrow('always');
  const both = await LocalNodes.start({
    nodes: 2,
    roles: ['node,control', 'gateway'],
    replicas: 1,
    flags: ['--cluster.replicas', '1', '--wal.fsync', 'always'],
  }).catch(async (error: unknown) => {
    await single.stop();
    throw error;
  });
  try {
    const subjects = [
      { server: single, pids: [single.pid] },
      { server: { port: both.redisPort(2) } as Running, pids: [both.pid(1), both.pid(2)] },
    ];
    const figures: Figure[] = [];
    for (const test of ['get', 'set']) {
      for (const [pipeline, atMost] of most) {
        const count = pipeline === 1 ? Math.ceil(requests / 2) : requests * 2;
        const micros: [number[], number[]] = [[], []];
        // The first round compiles the code and is not counted.
        for (let round = 0; round <= rounds; round++) {
          for (const [at, { server, pids }] of subjects.entries()) {
            const before = sum(pids);
            await runRedisBenchmark(server, { test, pipeline, keys }, count);
            if (round > 0) micros[at]!.push((sum(pids) - before) / 1000 / count);
          }
        }
        const name = `${test.toUpperCase()} P=${pipeline}`;
        const unit = 'us/command';
        figures.push({ name: `${name}, one process`, unit, value: median(micros[0]) });
        figures.push({ name: `${name}, gateway and node`, unit, value: median(micros[1]) });
        const ratios = micros[1].map((value, round) => value / micros[0][round]!);
        figures.push({ name: `${name}, two over one`, unit: '', value: median(ratios), atMost });
      }
    }
    return tell('gateway', command, figures);
  } finally {
    await single.stop();
    await both.stop();
  }
}

function sum(pids: readonly number[]): number {
  return pids.reduce((total, pid) => total + cpuNanoseconds(pid), 0);
}
