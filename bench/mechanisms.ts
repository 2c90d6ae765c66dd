// What all mechanisms of admission cost a server in which nobody has to wait: a tenant whose limit is far above what it
// uses, planes that could do far more, and every `mech.*` that is on as it comes, or all, switched on and off meanwhile.

import { Agent, request } from 'node:http';
import { settings as allSettings } from '../server/settings/schema.ts';
import { adminOf } from './support/admin.ts';
import { steadyRedisBenchmark } from './redis-benchmark.ts';
import { freePort, requireProgram, startPolyrow, type Running } from './support/processes.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import { compareSwitched, type SteadyLoad } from './support/switched.ts';

export interface MechanismsOptions {
  rounds: number;
  pipelines: number[];
  /** Tests of redis-benchmark; `influx` is writes over InfluxDB's protocol. */
  tests: string[];
  seconds: number;
  keys: number;
  /** Units a second of the tenant; 0 for no limit. */
  limit: number;
  /** Also the mechanisms that are off as the server comes. */
  all: boolean;
}

/** Units a second that nothing here comes near to. */
const plenty = 1_000_000_000;

export const mechanismsDefaults: MechanismsOptions = {
  rounds: 300,
  pipelines: [1, 16],
  tests: ['get', 'set', 'influx'],
  seconds: 0.06,
  keys: 100_000,
  limit: plenty,
  all: false,
};

const target = 0.98;

/** Those that are on as the server comes, or all. */
function mechanisms(all: boolean): string[] {
  return Object.entries(allSettings)
    .filter(([key, setting]) => key.startsWith('mech.') && (all || setting.default === 'on'))
    .map(([key]) => key);
}

const tenant = 'bench';
const writers = 4;
const linesPerBody = 500;
const hosts = 100;

interface Subject {
  server: Running;
  influxPort: number;
}

export async function mechanismsBench(
  options: MechanismsOptions,
  command: string,
): Promise<Report> {
  requireProgram('redis-benchmark', 'package redis-tools');
  const influxPort = await freePort();
  const flags = ['--influx.port', String(influxPort)];
  for (const plane of ['redis', 'influx']) flags.push(`--${plane}.ru-per-second`, String(plenty));
  const server = await startPolyrow('everysec', flags);
  const subject = { server, influxPort };
  const rows: Row[] = [];
  try {
    const limits = { ruPerSecond: options.limit };
    const admin = await adminOf(server);
    await admin.request('POST', '/v1/tenants', { name: tenant, password: tenant, limits });
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
      mechanisms: mechanisms(options.all).length,
    },
    rows,
  };
  printTable(report);
  save(report, options.all ? 'mechanisms-all' : 'mechanisms');
  return report;
}

async function compare(
  subject: Subject,
  test: string,
  pipeline: number,
  { rounds, seconds, keys, all }: MechanismsOptions,
): Promise<Row[]> {
  const { server, influxPort } = subject;
  const isWrites = test === 'influx';
  return compareSwitched({
    name: isWrites ? 'InfluxDB writes' : `${test.toUpperCase()} P=${pipeline}`,
    unit: isWrites ? 'points/s' : 'req/s',
    server,
    load: isWrites
      ? await steadyWrites(influxPort)
      : await steadyRedisBenchmark(server, { test, pipeline, keys, user: tenant }),
    settings: mechanisms(all),
    rounds,
    seconds,
    target,
  });
}

/** Sends bodies over a few connections. */
async function steadyWrites(port: number): Promise<SteadyLoad> {
  await createDatabase(port);
  const agent = new Agent({ keepAlive: true, maxSockets: writers });
  const lines = Array.from(
    { length: linesPerBody },
    (_, i) => `cpu,host=h${i % hosts} usage=${i % 97},idle=${i % 89}.5 ${1_700_000_000 + i}`,
  );
  const body = Buffer.from(lines.join('\n'));
  let points = 0;
  let hasEnded = false;
  const writer = async (): Promise<void> => {
    while (!hasEnded) {
      await post(agent, port, `/write?db=d&precision=s&${login}`, body);
      points += linesPerBody;
    }
  };
  const all = Promise.all(Array.from({ length: writers }, writer));
  return {
    answered: () => Promise.race([all, Promise.resolve()]).then(() => points),
    async end() {
      hasEnded = true;
      await all;
      agent.destroy();
    },
  };
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
