// What metering costs: redis-benchmark against one server, while its flag is switched on and off.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { steadyRedisBenchmark } from './redis-benchmark.ts';
import { freePort, requireProgram, startPolyrow, type Running } from './support/processes.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import { compareSwitched } from './support/switched.ts';

export interface MeteringOptions {
  rounds: number;
  pipelines: number[];
  tests: string[];
  seconds: number;
  keys: number;
}

export const meteringDefaults: MeteringOptions = {
  rounds: 50,
  pipelines: [16, 64],
  tests: ['get', 'set', 'hset'],
  seconds: 0.4,
  keys: 100_000,
};

const target = 0.98;

export async function meteringBench(
  { rounds, pipelines, tests, seconds, keys }: MeteringOptions,
  command: string,
): Promise<Report> {
  requireProgram('redis-benchmark', 'package redis-tools');
  const adminPort = await freePort();
  const server = await startPolyrow('everysec', ['--admin.port', String(adminPort)]);
  const rows: Row[] = [];
  try {
    for (const pipeline of pipelines) {
      for (const test of tests) {
        const load = await steadyRedisBenchmark(server, { test, pipeline, keys });
        const name = `${test.toUpperCase()} P=${pipeline}`;
        const switchTo = (isOn: boolean): Promise<void> => setMetering(server, adminPort, isOn);
        const { pid } = server;
        rows.push(
          ...(await compareSwitched({
            name,
            unit: 'req/s',
            pid,
            load,
            switchTo,
            rounds,
            seconds,
            target,
          })),
        );
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

async function setMetering(server: Running, adminPort: number, isOn: boolean): Promise<void> {
  const token = readFileSync(join(server.directory, 'admin-token'), 'utf8').trim();
  const answer = await fetch(`http://127.0.0.1:${adminPort}/v1/config`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ 'ru.metering': isOn ? 'on' : 'off' }),
  });
  if (!answer.ok) throw new Error(`metering cannot be switched: ${await answer.text()}`);
}
