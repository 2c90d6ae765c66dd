// TSBS against influxd and VictoriaMetrics: loading, every query type, bytes on disk and memory. Servers
// and rounds alternate; a figure is the median over the rounds.

import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, createWriteStream } from 'node:fs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { output } from './support/output.ts';
import { peakResidentBytes } from './support/process-usage.ts';
import type { Fsync, Running } from './support/processes.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import { startInflux, startPolyrowSeries, startVictoria } from './support/series-servers.ts';
import { sparseQueries, writeSparse } from './support/sparse-data.ts';
import { median } from './support/statistics.ts';
import {
  dataArguments,
  parseLatency,
  parseLoaded,
  queryArguments,
  queryTypes,
  tsbsTool,
  type QueryType,
  type TsbsData,
  type UseCase,
} from './support/tsbs-tools.ts';

interface TsbsOptions {
  rounds: number;
  useCases: string[];
  /** Numbers of hosts. */
  hosts: number[];
  /** Lines of a data set, about. */
  lines: number;
  workers: number;
  queries: string[];
  /** Hosts and hours of the data that queries run on. */
  queryHosts: number[];
  queryHours: number;
  peers: string[];
  /** Series of the sparse data set; 0 leaves it out. */
  sparseSeries: number;
}

export const tsbsDefaults: TsbsOptions = {
  rounds: 5,
  useCases: ['devops', 'cpu-only'],
  hosts: [100, 1000, 4000],
  lines: 600_000,
  workers: 4,
  queries: [...queryTypes],
  queryHosts: [1000, 4000],
  queryHours: 25,
  peers: ['influxd', 'victoria-metrics'],
  sparseSeries: 350_000,
};

const batchLines = 10_000;
const linesPerTick: Readonly<Record<UseCase, number>> = { devops: 9, 'cpu-only': 1 };
/** Time for a server's background work after the last write. */
const settleMs = 20_000;

interface Peer {
  name: string;
  start: () => Promise<Running>;
  /** The peer's durability of an acknowledged write, as our own setting. */
  fsync: Fsync;
}

const peers: readonly Peer[] = [
  { name: 'influxd', start: startInflux, fsync: 'always' },
  { name: 'victoria-metrics', start: startVictoria, fsync: 'everysec' },
];

interface Loaded {
  metricsPerSecond: number;
  peakBytes: number;
}

export async function tsbsBench(options: TsbsOptions, command: string): Promise<void> {
  // TSBS refuses a query over a day of data that are not longer than that.
  if (options.queryHours <= 24 && options.queries.includes('cpu-max-all-32-24')) {
    throw new RangeError('--query-hours must be above 24 for cpu-max-all-32-24');
  }
  const directory = mkdtempSync(join(tmpdir(), 'polyrow-bench-tsbs-'));
  try {
    for (const peer of peers.filter(({ name }) => options.peers.includes(name))) {
      // Each part is kept as soon as it is done: hours of a run are not lost with its last minute.
      const keep = (part: string, rows: Row[]): void => finish(peer, part, rows, options, command);
      const loads: Row[] = [];
      for (const data of dataSets(options)) {
        loads.push(...(await compareLoads(peer, data, directory, options)));
        keep('load', loads);
      }
      if (peer.name !== 'influxd') continue;
      if (options.sparseSeries > 0) keep('sparse', await compareSparse(peer, directory, options));
      for (const hosts of options.queryHosts) {
        const data: TsbsData = { useCase: 'cpu-only', hosts, minutes: options.queryHours * 60 };
        keep(`queries-${hosts}`, await compareQueries(peer, data, directory, options));
      }
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function dataSets({ useCases, hosts, lines }: TsbsOptions): TsbsData[] {
  return (useCases as UseCase[]).flatMap((useCase) =>
    hosts.map((n) => ({
      useCase,
      hosts: n,
      minutes: Math.max(2, Math.round(lines / (n * linesPerTick[useCase]))),
    })),
  );
}

function finish(
  peer: Peer,
  part: string,
  rows: Row[],
  options: TsbsOptions,
  command: string,
): void {
  const report: Report = {
    bench: `tsbs ${part}`,
    command,
    date: new Date().toISOString(),
    machine: machine(),
    peer: peer.name,
    rounds: options.rounds,
    settings: { fsync: peer.fsync, workers: options.workers, batchLines, lines: options.lines },
    rows,
  };
  printTable(report);
  save(report, `tsbs-${part}-${peer.name}`);
}

// ---- loading

async function compareLoads(
  peer: Peer,
  data: TsbsData,
  directory: string,
  options: TsbsOptions,
): Promise<Row[]> {
  const file = await generate(data, directory);
  const ours: Loaded[] = [];
  const theirs: Loaded[] = [];
  let oursOnDisk = NaN;
  let theirsOnDisk = NaN;
  let metrics = 0;
  for (let round = 1; round <= options.rounds; round++) {
    progress(`load ${name(data)} against ${peer.name}: round ${round} of ${options.rounds}`);
    const last = round === options.rounds;
    const sides = [
      { start: () => startPolyrowSeries(peer.fsync, ['--tsm.cold-after', '5']), ours: true },
      { start: peer.start, ours: false },
    ];
    // The sides alternate in going first.
    if (round % 2 === 0) sides.reverse();
    for (const side of sides) {
      const server = await side.start();
      try {
        const loaded = await load(server, file, options.workers);
        metrics = loaded.metrics;
        (side.ours ? ours : theirs).push(loaded);
        if (last) {
          await new Promise((resolve) => setTimeout(resolve, settleMs));
          if (side.ours) oursOnDisk = dataBytes(server.directory);
          else theirsOnDisk = dataBytes(server.directory);
        }
      } finally {
        await server.stop();
      }
    }
  }
  rmSync(file);
  const row = (what: string, unit: string, mine: number, other: number, target: number): Row => ({
    name: `${name(data)} ${what}`,
    unit,
    ours: mine,
    peer: other,
    ratio: mine / other,
    better: what === 'load' ? 'higher' : 'lower',
    target,
  });
  const of = (loads: Loaded[], what: keyof Loaded): number => median(loads.map((one) => one[what]));
  const isInflux = peer.name === 'influxd';
  return [
    row(
      'load',
      'values/s',
      of(ours, 'metricsPerSecond'),
      of(theirs, 'metricsPerSecond'),
      isInflux ? 2 : 1,
    ),
    row('peak memory', 'MB', of(ours, 'peakBytes') / 1e6, of(theirs, 'peakBytes') / 1e6, 1),
    row('on disk', 'B/value', oursOnDisk / metrics, theirsOnDisk / metrics, 1),
  ];
}

export async function generate(data: TsbsData, directory: string): Promise<string> {
  const file = join(directory, `${name(data).replaceAll(' ', '-')}.lines`);
  if (existsSync(file)) return file;
  progress(`generating ${name(data)}`);
  const child = spawn(await tsbsTool('tsbs_generate_data'), dataArguments(data), {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const out = createWriteStream(file);
  child.stdout.pipe(out);
  await once(out, 'finish');
  return file;
}

export async function load(
  server: Running,
  file: string,
  workers: number,
): Promise<Loaded & { metrics: number }> {
  const common = [`--workers=${workers}`, `--batch-size=${batchLines}`, `--file=${file}`];
  const text =
    server.name === 'victoria-metrics'
      ? await output(await tsbsTool('tsbs_load_victoriametrics'), [
          `--urls=http://127.0.0.1:${server.port}/write`,
          ...common,
        ])
      : await output(await tsbsTool('tsbs_load_influx'), [
          `--urls=http://127.0.0.1:${server.port}`,
          '--db-name=benchmark',
          ...common,
        ]);
  const { metrics, seconds } = parseLoaded(text);
  return { metrics, metricsPerSecond: metrics / seconds, peakBytes: peakResidentBytes(server.pid) };
}

/** Bytes of the data directories: logs and caches that a restart would need included. */
function dataBytes(directory: string): number {
  let bytes = 0;
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    // Space set aside for a full disk is not data.
    if (!entry.isFile() || entry.name === 'ballast' || isLog(entry.parentPath)) continue;
    // Allocated size: some servers reserve space in files that are mostly holes.
    bytes += statSync(join(entry.parentPath, entry.name)).blocks * 512;
  }
  return bytes;
}

function isLog(path: string): boolean {
  return /\/wal(\/|$)/.test(path);
}

// ---- queries

async function compareQueries(
  peer: Peer,
  data: TsbsData,
  directory: string,
  options: TsbsOptions,
): Promise<Row[]> {
  const file = await generate(data, directory);
  const ours = await startPolyrowSeries(peer.fsync, ['--tsm.cold-after', '5']);
  try {
    const theirs = await peer.start();
    try {
      for (const server of [ours, theirs]) {
        progress(`load ${name(data)} into ${server.name} for queries`);
        await load(server, file, options.workers);
      }
      rmSync(file);
      await new Promise((resolve) => setTimeout(resolve, settleMs));
      const rows: Row[] = [];
      for (const type of options.queries as QueryType[]) {
        rows.push(await compareQuery(ours, theirs, data, type, directory, options));
      }
      return rows;
    } finally {
      await theirs.stop();
    }
  } finally {
    await ours.stop();
  }
}

// ---- many series of few points

const sparsePoints = 7;

async function compareSparse(peer: Peer, directory: string, options: TsbsOptions): Promise<Row[]> {
  const file = join(directory, 'sparse.lines');
  progress('generating the sparse set');
  await writeSparse(file, { series: options.sparseSeries, pointsPerSeries: sparsePoints });
  const ours: number[] = [];
  const theirs: number[] = [];
  const rows: Row[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    progress(`load the sparse set: round ${round} of ${options.rounds}`);
    const last = round === options.rounds;
    const mine = await startPolyrowSeries(peer.fsync, ['--tsm.cold-after', '5']);
    try {
      ours.push((await load(mine, file, options.workers)).metricsPerSecond);
      const other = await peer.start();
      try {
        theirs.push((await load(other, file, options.workers)).metricsPerSecond);
        if (last) rows.push(...(await compareSparseQueries(mine, other, options.rounds)));
      } finally {
        await other.stop();
      }
    } finally {
      await mine.stop();
    }
  }
  rmSync(file);
  const [a, b] = [median(ours), median(theirs)];
  rows.unshift({
    name: `sparse, ${options.sparseSeries} series load`,
    unit: 'values/s',
    ours: a,
    peer: b,
    ratio: a / b,
    better: 'higher',
    target: 4,
  });
  return rows;
}

async function compareSparseQueries(mine: Running, other: Running, rounds: number): Promise<Row[]> {
  await new Promise((resolve) => setTimeout(resolve, settleMs));
  const rows: Row[] = [];
  for (const [what, q, target] of sparseQueries) {
    progress(`sparse set: ${what}`);
    const [ours, theirs]: number[][] = [[], []];
    const answers = new Set<string>();
    for (let round = 0; round <= rounds; round++) {
      for (const server of [mine, other]) {
        const startedAt = performance.now();
        const parameters = new URLSearchParams({ db: 'benchmark', q });
        const response = await fetch(
          `http://127.0.0.1:${server.port}/query?${parameters.toString()}`,
        );
        answers.add(await response.text());
        // The first warms up.
        if (round > 0) (server === mine ? ours! : theirs!).push(performance.now() - startedAt);
      }
    }
    const [a, b] = [median(ours!), median(theirs!)];
    // The order of rows of the same time is undefined; everything else must agree.
    if (answers.size > 1 && what !== 'time range') {
      throw new Error(`${what}: the answers differ`);
    }
    rows.push({
      name: `sparse, ${what}`,
      unit: 'ms',
      ours: a,
      peer: b,
      ratio: a / b,
      better: 'lower',
      target,
    });
  }
  return rows;
}

/** As X-Stor's paper has it where it names the query. */
function targetOf(type: QueryType, hosts: number): number {
  if (type === 'lastpoint') return 0.24;
  if (type.startsWith('cpu-max-all')) return hosts >= 5000 ? 0.71 : 0.89;
  return 1;
}

async function compareQuery(
  ours: Running,
  theirs: Running,
  data: TsbsData,
  type: QueryType,
  directory: string,
  options: TsbsOptions,
): Promise<Row> {
  const { file } = await generateQueries(data, type, directory);
  const mine: number[] = [];
  const other: number[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    progress(`${type} on ${name(data)}: round ${round} of ${options.rounds}`);
    const sides = [ours, theirs];
    if (round % 2 === 0) sides.reverse();
    for (const server of sides) {
      (server === ours ? mine : other).push(await meanLatency(server, file));
    }
  }
  rmSync(file);
  const [a, b] = [median(mine), median(other)];
  progress(`${type} on ${name(data)}: ${(a / b).toFixed(3)}\n`);
  return {
    name: `${data.hosts} hosts ${type}`,
    unit: 'ms',
    ours: a,
    peer: b,
    ratio: a / b,
    better: 'lower',
    target: targetOf(type, data.hosts),
  };
}

/** A file of queries: enough for a second or so of the slower ones. */
export async function generateQueries(
  data: TsbsData,
  type: QueryType,
  directory: string,
): Promise<{ file: string; queries: number }> {
  const isHeavy = /^(double|high-cpu-all|lastpoint|groupby|cpu-max-all-32)/.test(type);
  const queries = isHeavy ? 5 : 100;
  const file = join(directory, `${type}.queries`);
  await output(
    'sh',
    [
      '-c',
      '"$0" "$@" > "$OUT"',
      await tsbsTool('tsbs_generate_queries'),
      ...queryArguments(data, type, queries),
    ],
    { environment: { OUT: file } },
  );
  return { file, queries };
}

/** Mean latency of the queries in a file, one after the other, in ms. */
export async function meanLatency(server: Running, file: string): Promise<number> {
  const text = await output(await tsbsTool('tsbs_run_queries_influx'), [
    `--urls=http://127.0.0.1:${server.port}`,
    '--db-name=benchmark',
    '--workers=1',
    `--file=${file}`,
    '--print-interval=0',
  ]);
  return parseLatency(text).mean;
}

function name({ useCase, hosts, minutes }: TsbsData): string {
  return `${useCase} ${hosts} hosts ${minutes} min`;
}

function progress(text: string): void {
  process.stderr.write(`\r${text.padEnd(70)}`);
}
