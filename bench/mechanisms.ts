// What all mechanisms of admission cost a server in which nobody has to wait: a tenant whose limit is far above what it
// uses, planes that could do far more, and rounds that alternate between every `mech.*` on and off. The flags are live,
// so that both are measured in one process, compiled and filled alike.

import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { settings } from '../cli/config/schema.ts';
import { runRedisBenchmark } from './redis-benchmark.ts';
import { cpuSeconds } from './support/process-usage.ts';
import { freePort, requireProgram, startPolyrow, type Running } from './support/processes.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import { median, percentile } from './support/statistics.ts';

export interface MechanismsOptions {
  rounds: number;
  pipelines: number[];
  /** Tests of redis-benchmark; `influx` is writes over InfluxDB's protocol. */
  tests: string[];
  seconds: number;
  keys: number;
  /** Units a second of the tenant; 0 for no limit. */
  limit: number;
}

/** Units a second that nothing here comes near to. */
const plenty = 1_000_000_000;

export const mechanismsDefaults: MechanismsOptions = {
  rounds: 9,
  pipelines: [1, 16],
  tests: ['get', 'set', 'influx'],
  seconds: 1.5,
  keys: 100_000,
  limit: plenty,
};

const target = 0.98;
const tenant = 'bench';
const probeRequests = 100_000;
const probeBodies = 200;
const writers = 4;
const linesPerBody = 500;
const hosts = 100;

interface Subject {
  server: Running;
  adminPort: number;
  influxPort: number;
}

interface Speed {
  perSecond: number;
  /** Processor time of a command or a point, all threads of the process. */
  cpuMicros: number;
}

export async function mechanismsBench(
  options: MechanismsOptions,
  command: string,
): Promise<Report> {
  requireProgram('redis-benchmark', 'package redis-tools');
  const [adminPort, influxPort] = [await freePort(), await freePort()];
  const flags = ['--admin.port', String(adminPort), '--influx.port', String(influxPort)];
  for (const plane of ['redis', 'influx']) flags.push(`--${plane}.ru-per-second`, String(plenty));
  const server = await startPolyrow('everysec', flags);
  const subject = { server, adminPort, influxPort };
  const rows: Row[] = [];
  try {
    const limits = { ruPerSecond: options.limit };
    await admin(subject, 'POST', '/tenants', { name: tenant, password: tenant, limits });
    for (const test of options.tests) {
      for (const pipeline of test === 'influx' ? [0] : options.pipelines) {
        rows.push(...(await compare(subject, test, pipeline, options)));
      }
    }
  } finally {
    await server.stop();
  }
  const report: Report = {
    bench: 'mechanisms',
    command,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    peer: 'all off',
    rounds: options.rounds,
    settings: {
      clients: 50,
      valueBytes: 100,
      fsync: 'everysec',
      keys: options.keys,
      limit: options.limit,
    },
    rows,
  };
  printTable(report);
  save(report, 'mechanisms');
  return report;
}

async function compare(
  subject: Subject,
  test: string,
  pipeline: number,
  { rounds, seconds, keys }: MechanismsOptions,
): Promise<Row[]> {
  const { server } = subject;
  const run = async (count: number): Promise<Speed> => {
    const before = cpuSeconds(server.pid);
    const perSecond =
      test === 'influx'
        ? await writeBodies(subject.influxPort, count)
        : (await runRedisBenchmark(server, test, pipeline, count, keys, tenant)).throughput;
    const units = test === 'influx' ? count * linesPerBody : count;
    return { perSecond, cpuMicros: ((cpuSeconds(server.pid) - before) / units) * 1e6 };
  };
  if (test === 'influx') await createDatabase(subject.influxPort);
  const perUnit = test === 'influx' ? linesPerBody : 1;
  const first = test === 'influx' ? probeBodies : probeRequests;
  await run(first);
  const probe = await run(first);
  const count = Math.ceil((probe.perSecond / perUnit) * seconds);
  const on: Speed[] = [];
  const off: Speed[] = [];
  for (let round = 0; round < rounds; round++) {
    // Which goes first changes, so that what drifts falls on both.
    for (const isOn of round % 2 === 0 ? [true, false] : [false, true]) {
      await setMechanisms(subject, isOn);
      (isOn ? on : off).push(await run(count));
    }
    process.stderr.write(`\r${test} P=${pipeline}: round ${round + 1} of ${rounds}   `);
  }
  const name = test === 'influx' ? 'InfluxDB writes' : `${test.toUpperCase()} P=${pipeline}`;
  const unit = test === 'influx' ? 'points/s' : 'req/s';
  const speed = (found: Speed[]): number => median(found.map(({ perSecond }) => perSecond));
  const cpu = (found: Speed[]): number => median(found.map(({ cpuMicros }) => cpuMicros));
  // Of the two of each round, which are a second apart.
  const ratios = on.map(({ perSecond }, round) => perSecond / off[round]!.perSecond);
  const detail = { low: percentile(ratios, 0.25), high: percentile(ratios, 0.75) };
  const ratio = median(ratios);
  const cpuRatios = on.map(({ cpuMicros }, round) => cpuMicros / off[round]!.cpuMicros);
  const cpuDetail = { low: percentile(cpuRatios, 0.25), high: percentile(cpuRatios, 0.75) };
  process.stderr.write(
    `\r${name}: ${ratio.toFixed(3)} (${spread(detail)}), CPU ${median(cpuRatios).toFixed(3)} (${spread(cpuDetail)})\n`,
  );
  return [
    { name, unit, ours: speed(on), peer: speed(off), ratio, better: 'higher', target, detail },
    {
      name: `${name} CPU`,
      unit: 'us',
      ours: cpu(on),
      peer: cpu(off),
      ratio: median(cpuRatios),
      better: 'lower',
      target: 1 / target,
      detail: cpuDetail,
    },
  ];
}

function spread({ low, high }: { low: number; high: number }): string {
  return `${low.toFixed(3)} to ${high.toFixed(3)}`;
}

/** Sends so many bodies over a few connections; points a second. */
async function writeBodies(port: number, count: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: writers });
  const lines = Array.from(
    { length: linesPerBody },
    (_, i) => `cpu,host=h${i % hosts} usage=${i % 97},idle=${i % 89}.5 ${1_700_000_000 + i}`,
  );
  const body = Buffer.from(lines.join('\n'));
  let left = count;
  const writer = async (): Promise<void> => {
    while (left-- > 0) await post(agent, port, `/write?db=d&precision=s&${login}`, body);
  };
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: writers }, writer));
  const seconds = (performance.now() - startedAt) / 1000;
  agent.destroy();
  return (count * linesPerBody) / seconds;
}

const login = `u=${tenant}&p=${tenant}`;

function post(agent: Agent, port: number, path: string, body: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request({ agent, port, path, method: 'POST', host: '127.0.0.1' }, (response) => {
      response.resume();
      const { statusCode } = response;
      if (statusCode !== 204 && statusCode !== 200) reject(new Error(`${path}: ${statusCode}`));
      else response.once('end', resolve);
    });
    sent.once('error', reject);
    sent.end(body);
  });
}

async function createDatabase(port: number): Promise<void> {
  const agent = new Agent();
  const path = `/query?${login}&q=${encodeURIComponent('CREATE DATABASE d')}`;
  await post(agent, port, path, Buffer.alloc(0));
  agent.destroy();
}

async function setMechanisms(subject: Subject, isOn: boolean): Promise<void> {
  const keys = Object.keys(settings).filter((key) => key.startsWith('mech.'));
  const value = isOn ? 'on' : 'off';
  await admin(subject, 'PATCH', '/config', Object.fromEntries(keys.map((key) => [key, value])));
}

async function admin(
  { server, adminPort }: Subject,
  method: string,
  path: string,
  body: object,
): Promise<void> {
  const token = readFileSync(join(server.directory, 'admin-token'), 'utf8').trim();
  const answer = await fetch(`http://127.0.0.1:${adminPort}/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
}
