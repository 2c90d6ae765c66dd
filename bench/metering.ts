// Cost of metering: redis-benchmark against one server, while its flag is switched on and off.

import { steadyRedisBenchmark } from './redis-benchmark.ts';
import { requireProgram, startPolyrow } from './support/processes.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import { compareSwitched } from './support/switched.ts';

interface MeteringOptions {
  rounds: number;
  pipelines: number[];
  tests: string[];
  seconds: number;
  keys: number;
}

export const meteringDefaults: MeteringOptions = {
  rounds: 300,
  pipelines: [1, 16, 64],
  tests: ['get', 'set', 'hset'],
  seconds: 0.06,
  keys: 100_000,
};

const target = 0.98;

export async function meteringBench(
  { rounds, pipelines, tests, seconds, keys }: MeteringOptions,
  command: string,
): Promise<Report> {
  requireProgram('redis-benchmark', 'package redis-tools');
  const server = await startPolyrow('everysec');
  const settings = ['ru.metering'];
  const rows: Row[] = [];
  try {
    for (const pipeline of pipelines) {
      for (const test of tests) {
        const load = await steadyRedisBenchmark(server, { test, pipeline, keys });
        const name = `${test.toUpperCase()} P=${pipeline}`;
        const measured = { name, unit: 'req/s', server, load, settings, rounds, seconds, target };
        rows.push(...(await compareSwitched(measured)));
      }
    }
  } finally {
    await server.stop();
  }
  const report: Report = {
    bench: 'metering',
    command,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    peer: 'metering off',
    rounds,
    settings: { clients: 50, valueBytes: 100, fsync: 'everysec', keys },
    rows,
  };
  printTable(report);
  save(report, 'metering');
  return report;
}
