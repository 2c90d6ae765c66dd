// What metering costs: redis-benchmark against one server, in rounds that alternate between its flag on and
// off. The flag is live, so that both are measured in one process, compiled and filled alike.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runRedisBenchmark } from './redis-benchmark.ts';
import { cpuSeconds } from './support/process-usage.ts';
import { freePort, requireProgram, startPolyrow, type Running } from './support/processes.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import { median } from './support/statistics.ts';

export interface MeteringOptions {
  rounds: number;
  pipelines: number[];
  tests: string[];
  seconds: number;
  keys: number;
}

export const meteringDefaults: MeteringOptions = {
  rounds: 9,
  pipelines: [16, 64],
  tests: ['get', 'set', 'hset'],
  seconds: 1,
  keys: 100_000,
};

const target = 0.98;
const probeRequests = 200_000;

interface Speed {
  perSecond: number;
  /** Processor time of a command, all threads of the process. */
  cpuMicros: number;
}

export async function meteringBench(options: MeteringOptions, command: string): Promise<Report> {
  requireProgram('redis-benchmark', 'package redis-tools');
  const adminPort = await freePort();
  const server = await startPolyrow('everysec', ['--admin.port', String(adminPort)]);
  const rows: Row[] = [];
  try {
    for (const pipeline of options.pipelines) {
      for (const test of options.tests) {
        rows.push(...(await compare(server, adminPort, test, pipeline, options)));
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
    rounds: options.rounds,
    settings: { clients: 50, valueBytes: 100, fsync: 'everysec', keys: options.keys },
    rows,
  };
  printTable(report);
  save(report, 'metering');
  return report;
}

async function compare(
  server: Running,
  adminPort: number,
  test: string,
  pipeline: number,
  { rounds, seconds, keys }: MeteringOptions,
): Promise<Row[]> {
  const run = async (requests: number): Promise<Speed> => {
    const before = cpuSeconds(server.pid);
    const { throughput } = await runRedisBenchmark(server, test, pipeline, requests, keys);
    const cpuMicros = ((cpuSeconds(server.pid) - before) / requests) * 1e6;
    return { perSecond: throughput, cpuMicros };
  };
  const probe = await run(probeRequests);
  const requests = Math.round(probe.perSecond * seconds);
  const on: Speed[] = [];
  const off: Speed[] = [];
  for (let round = 0; round < rounds; round++) {
    // Which goes first changes, so that what drifts falls on both.
    for (const isOn of round % 2 === 0 ? [true, false] : [false, true]) {
      await setMetering(server, adminPort, isOn);
      (isOn ? on : off).push(await run(requests));
    }
    process.stderr.write(`\r${test} P=${pipeline}: round ${round + 1} of ${rounds}   `);
  }
  const name = `${test.toUpperCase()} P=${pipeline}`;
  const speed = (found: Speed[]): number => median(found.map(({ perSecond }) => perSecond));
  const cpu = (found: Speed[]): number => median(found.map(({ cpuMicros }) => cpuMicros));
  const ratio = speed(on) / speed(off);
  process.stderr.write(`\r${name}: ${ratio.toFixed(3)}                      \n`);
  return [
    { name, unit: 'req/s', ours: speed(on), peer: speed(off), ratio, better: 'higher', target },
    {
      name: `${name} CPU`,
      unit: 'us',
      ours: cpu(on),
      peer: cpu(off),
      ratio: cpu(on) / cpu(off),
      better: 'lower',
    },
  ];
}

async function setMetering(server: Running, adminPort: number, isOn: boolean): Promise<void> {
  const token = readFileSync(join(server.directory, 'admin-token'), 'utf8').trim();
  const answer = await fetch(`http://127.0.0.1:${adminPort}/v1/config`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ 'ru.metering': isOn ? 'on' : 'off' }),
  });
  if (!answer.ok) throw new Error(`metering cannot be switched: ${await answer.text()}`);
}
