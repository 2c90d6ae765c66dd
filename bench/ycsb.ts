// YCSB's workloads A to F against Polyrow and redis-server in one run: for every workload and number of
// threads, rounds that alternate between the two, and the ratios of the medians.

import { cpus } from 'node:os';
import {
  requireProgram,
  startPolyrow,
  startRedis,
  type Fsync,
  type Running,
} from './support/processes.ts';
import { outputAndCpu } from './support/output.ts';
import { cpuSeconds } from './support/process-usage.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import { RespClient } from './support/resp-client.ts';
import { median } from './support/statistics.ts';
import {
  findGenerator,
  type Generator,
  type Phase,
  type Properties,
} from './support/ycsb-generator.ts';
import { parseYcsbOutput, type YcsbResult } from './support/ycsb-output.ts';

interface YcsbOptions {
  rounds: number;
  fsync: Fsync;
  workloads: string[];
  threads: number[];
  records: number;
  /** Seconds that one round should take, about. */
  seconds: number;
}

export const ycsbDefaults: YcsbOptions = {
  rounds: 5,
  fsync: 'everysec',
  // In the order that YCSB advises: those that insert come last.
  workloads: ['A', 'B', 'C', 'F', 'D', 'E'],
  threads: [1, 4, 16, 64],
  records: 100_000,
  seconds: 4,
};

const throughputTarget = 0.95;
const p99Target = 1.1;
const loadThreads = 16;

interface Workload {
  read?: number;
  update?: number;
  insert?: number;
  scan?: number;
  readmodifywrite?: number;
  requests: 'zipfian' | 'latest';
}

const workloads: Readonly<Record<string, Workload>> = {
  A: { read: 0.5, update: 0.5, requests: 'zipfian' },
  B: { read: 0.95, update: 0.05, requests: 'zipfian' },
  C: { read: 1, requests: 'zipfian' },
  D: { read: 0.95, insert: 0.05, requests: 'latest' },
  E: { scan: 0.95, insert: 0.05, requests: 'zipfian' },
  F: { read: 0.5, readmodifywrite: 0.5, requests: 'zipfian' },
};

function propertiesOf(workload: Workload): Properties {
  return {
    readproportion: workload.read ?? 0,
    updateproportion: workload.update ?? 0,
    insertproportion: workload.insert ?? 0,
    scanproportion: workload.scan ?? 0,
    readmodifywriteproportion: workload.readmodifywrite ?? 0,
    requestdistribution: workload.requests,
    maxscanlength: 100,
    readallfields: 'true',
  };
}

interface Measured extends YcsbResult {
  /** Processors kept busy by the generator and by the server. */
  generatorCores: number;
  serverCores: number;
}

/** Both servers under one generator. */
class YcsbRun {
  readonly #generator: Generator;
  readonly #options: YcsbOptions;
  readonly #ours: Running;
  readonly #peer: Running;

  constructor(generator: Generator, options: YcsbOptions, ours: Running, peer: Running) {
    this.#generator = generator;
    this.#options = options;
    this.#ours = ours;
    this.#peer = peer;
  }

  /** The rows of one workload at one number of threads. */
  async cell(name: string, threads: number): Promise<Row[]> {
    const workload = workloads[name]!;
    const { rounds, seconds } = this.#options;
    const reloads = workload.insert !== undefined;
    const properties = propertiesOf(workload);
    // A first run warms both up and tells how many operations fill the time asked for.
    const probe = { ...properties, threadcount: threads, operationcount: probeOperations(name) };
    if (reloads) await this.load();
    await this.#measure(this.#ours, 'run', probe);
    const { throughput } = await this.#measure(this.#peer, 'run', probe);
    const operationcount = Math.max(threads * 10, Math.round(throughput * seconds));
    const run = { ...probe, operationcount };
    const mine: Measured[] = [];
    const theirs: Measured[] = [];
    for (let round = 0; round < rounds; round++) {
      if (reloads) await this.load();
      mine.push(await this.#measure(this.#ours, 'run', run));
      theirs.push(await this.#measure(this.#peer, 'run', run));
      process.stderr.write(`\r${name} ${threads} threads: round ${round + 1} of ${rounds}   `);
    }
    const rows = rowsOf(`${name} ${threads} threads`, mine, theirs);
    process.stderr.write(`\r${rows[0]!.name}: ${rows[0]!.ratio.toFixed(3)}                    \n`);
    return rows;
  }

  /** Empties both servers and inserts the records again. */
  async load(): Promise<void> {
    for (const server of [this.#ours, this.#peer]) {
      const client = await RespClient.connect(server.port);
      await client.call('FLUSHALL');
      client.close();
      await this.#measure(server, 'load', { threadcount: loadThreads });
    }
  }

  async #measure(server: Running, phase: Phase, properties: Properties): Promise<Measured> {
    const { command, args } = this.#generator.command(phase, {
      'redis.host': '127.0.0.1',
      'redis.port': server.port,
      recordcount: this.#options.records,
      ...properties,
    });
    const busyBefore = cpuSeconds(server.pid);
    const startedAt = performance.now();
    const { text, cpuSeconds: generatorSeconds } = await outputAndCpu(command, args);
    const elapsed = (performance.now() - startedAt) / 1000;
    return {
      ...parseYcsbOutput(text),
      generatorCores: generatorSeconds / elapsed,
      serverCores: (cpuSeconds(server.pid) - busyBefore) / elapsed,
    };
  }
}

/** Few enough to be done soon on one thread; a scan is some fifty commands. */
function probeOperations(workload: string): number {
  return workload === 'E' ? 1000 : 20_000;
}

function rowsOf(name: string, mine: readonly Measured[], theirs: readonly Measured[]): Row[] {
  const compare = (of: (m: Measured) => number): { ours: number; peer: number; ratio: number } => {
    const ours = median(mine.map(of));
    const peer = median(theirs.map(of));
    return { ours, peer, ratio: ours / peer };
  };
  const generator = compare((m) => m.generatorCores);
  const server = compare((m) => m.serverCores);
  const rows: Row[] = [
    {
      name,
      unit: 'ops/s',
      ...compare((m) => m.throughput),
      better: 'higher',
      target: throughputTarget,
      detail: {
        generatorCoresOurs: generator.ours,
        generatorCoresPeer: generator.peer,
        serverCoresOurs: server.ours,
        serverCoresPeer: server.peer,
      },
    },
  ];
  for (const operation of mine[0]!.p99Ms.keys()) {
    rows.push({
      name: `${name} ${operation} p99`,
      unit: 'ms',
      ...compare((m) => m.p99Ms.get(operation) ?? NaN),
      better: 'lower',
      target: p99Target,
    });
  }
  return rows;
}

/** Says which throughputs may be the generator's rather than a server's. */
function warnOfLimits(rows: readonly Row[]): void {
  // A generator on as many processors as the machine has left over for it.
  const most = Math.max(1, cpus().length - 1) * 0.9;
  const limited = rows.filter(({ detail }) => {
    if (detail === undefined) return false;
    const ours = detail['generatorCoresOurs']! > most && detail['serverCoresOurs']! < 0.9;
    const peer = detail['generatorCoresPeer']! > most && detail['serverCoresPeer']! < 0.9;
    return ours || peer;
  });
  if (limited.length === 0) return;
  console.log(
    `\nthe generator may have been the limit of: ${limited.map(({ name }) => name).join(', ')}`,
  );
}

export async function ycsbBench(options: YcsbOptions, command: string): Promise<Report> {
  for (const name of options.workloads) {
    if (workloads[name] === undefined) throw new Error(`YCSB has no workload ${name}`);
  }
  requireProgram('redis-server', 'package redis-server');
  const generator = await findGenerator();
  const peer = await startRedis(options.fsync);
  const rows: Row[] = [];
  try {
    const ours = await startPolyrow(options.fsync);
    try {
      const run = new YcsbRun(generator, options, ours, peer);
      process.stderr.write(`loading ${options.records} records into both\n`);
      await run.load();
      for (const name of options.workloads) {
        for (const threads of options.threads) rows.push(...(await run.cell(name, threads)));
      }
    } finally {
      await ours.stop();
    }
  } finally {
    await peer.stop();
  }
  const report: Report = {
    bench: 'YCSB',
    command,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    peer: 'redis-server',
    rounds: options.rounds,
    settings: {
      generator: generator.name,
      fsync: options.fsync,
      records: options.records,
      secondsOfARound: options.seconds,
      fields: '10 x 100 B',
    },
    rows,
  };
  printTable(report);
  warnOfLimits(rows);
  save(report, `ycsb-${options.fsync}`);
  return report;
}
