// Cost of the log: a pod on the memory engine with its log of one copy, against the same pod with a
// bare append of the same ops. Once within a process, where nothing hides the difference, and once
// as a Redis server, as clients see it.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runRedisBenchmark } from './redis-benchmark.ts';
import type { LogKind } from './support/log-pod.ts';
import type { LogServerOptions } from './support/log-server.ts';
import { output } from './support/output.ts';
import { findProgram, startServer, type Fsync, type Running } from './support/processes.ts';
import { cpuSeconds } from './support/process-usage.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import { median, medianWithin, pairsToJudge } from './support/statistics.ts';
import { freePort } from '../test/support/free-port.ts';

interface LogCostOptions {
  rounds: number;
  /** `always` has a row of its own besides. */
  policies: Fsync[];
  /** Commands of one event-loop tick, and the pipeline's depth where a server is measured. */
  ticks: number[];
  seconds: number;
}

export const logCostDefaults: LogCostOptions = {
  rounds: pairsToJudge,
  policies: ['no', 'everysec'],
  ticks: [16, 64],
  seconds: 2,
};

/** Options of a round's process. */
export interface LogRound {
  log: LogKind;
  fsync: Fsync;
  tick: number;
  seconds: number;
}

export interface LogSpeed {
  perSecond: number;
  /** Processor time of a command, all threads of the process. */
  cpuMicros: number;
}

const costTarget = 0.95;
/** Target: throughput of group commit over one fsync a command. */
const groupCommitTarget = 10;
const groupCommitClients = 64;
const wireKeys = 100_000;
const wireProbeRequests = 200_000;

const script = (name: string): string => join(import.meta.dirname, 'support', name);

async function measure(round: LogRound): Promise<LogSpeed> {
  const args = [script('log-round.js'), JSON.stringify(round)];
  return JSON.parse(await output(process.execPath, args)) as LogSpeed;
}

/** Alternates between the two; the order changes with each round, so that drift affects both. */
async function compare(
  name: string,
  rounds: number,
  target: number,
  ours: () => Promise<LogSpeed>,
  peer: () => Promise<LogSpeed>,
): Promise<Row> {
  const mine: LogSpeed[] = [];
  const theirs: LogSpeed[] = [];
  for (let round = 0; round < rounds; round++) {
    if (round % 2 === 1) theirs.push(await peer());
    mine.push(await ours());
    if (round % 2 === 0) theirs.push(await peer());
    process.stderr.write(`\r${name}: round ${round + 1} of ${rounds}   `);
  }
  const a = median(mine.map(({ perSecond }) => perSecond));
  const b = median(theirs.map(({ perSecond }) => perSecond));
  const cpuMicrosOurs = median(mine.map(({ cpuMicros }) => cpuMicros));
  const cpuMicrosPeer = median(theirs.map(({ cpuMicros }) => cpuMicros));
  const { middle, low, high } = medianWithin(
    mine.map(({ perSecond }, i) => perSecond / theirs[i]!.perSecond),
  );
  process.stderr.write(`\r${name}: ${middle.toFixed(3)}                    \n`);
  return {
    name,
    unit: 'SET/s',
    ours: a,
    peer: b,
    ratio: middle,
    better: 'higher',
    target,
    ...(rounds < pairsToJudge ? {} : { interval: { low, high } }),
    detail: { cpuMicrosOurs, cpuMicrosPeer },
  };
}

async function withinProcess(fsync: Fsync, options: LogCostOptions): Promise<Row[]> {
  const { rounds, seconds } = options;
  const rows: Row[] = [];
  for (const tick of options.ticks) {
    const name = `fsync=${fsync}, ${tick} a tick`;
    const round = { fsync, tick, seconds };
    const ours = () => measure({ ...round, log: 'group' });
    const peer = () => measure({ ...round, log: 'bare' });
    rows.push(await compare(name, rounds, costTarget, ours, peer));
  }
  return rows;
}

async function overTheWire(fsync: Fsync, options: LogCostOptions): Promise<Row[]> {
  const { rounds, seconds } = options;
  const servers: Running[] = [];
  try {
    for (const log of ['group', 'bare'] as const) servers.push(await startLogServer(log, fsync));
    const [ours, peer] = servers as [Running, Running];
    const rows: Row[] = [];
    for (const pipeline of options.ticks) {
      const load = { test: 'set', pipeline, keys: wireKeys };
      const run = async (server: Running, requests: number): Promise<LogSpeed> => {
        const busyBefore = cpuSeconds(server.pid);
        const { throughput } = await runRedisBenchmark(server, load, requests);
        const cpuMicros = ((cpuSeconds(server.pid) - busyBefore) / requests) * 1e6;
        return { perSecond: throughput, cpuMicros };
      };
      // A first round warms both up and tells how many requests fill the time asked for.
      await run(ours, wireProbeRequests);
      const { perSecond } = await run(peer, wireProbeRequests);
      const requests = Math.round(perSecond * seconds);
      const name = `fsync=${fsync}, server, P=${pipeline}`;
      const runOurs = () => run(ours, requests);
      rows.push(await compare(name, rounds, costTarget, runOurs, () => run(peer, requests)));
    }
    return rows;
  } finally {
    for (const server of servers) await server.stop();
  }
}

async function startLogServer(log: LogKind, fsync: Fsync): Promise<Running> {
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), 'polyrow-bench-log-'));
  const options: LogServerOptions = { log, fsync, port, directory };
  const args = [script('log-server.js'), JSON.stringify(options)];
  return startServer(log, process.execPath, args, port, directory);
}

/** Replies that wait for the disk together, against one fsync a command. */
function groupCommit({ rounds, seconds }: LogCostOptions): Promise<Row> {
  const always = { fsync: 'always', seconds } as const;
  const tick = groupCommitClients;
  return compare(
    `fsync=always, ${tick} clients`,
    rounds,
    groupCommitTarget,
    () => measure({ ...always, log: 'group', tick }),
    () => measure({ ...always, log: 'bare', tick: 1 }),
  );
}

export async function logCostBench(options: LogCostOptions, command: string): Promise<Report> {
  const { rounds, seconds } = options;
  const hasWire = findProgram('redis-benchmark') !== undefined;
  if (!hasWire) process.stderr.write('no redis-benchmark here: no server is measured\n');
  const rows: Row[] = [];
  for (const fsync of options.policies) {
    rows.push(...(await withinProcess(fsync, options)));
    if (hasWire) rows.push(...(await overTheWire(fsync, options)));
  }
  rows.push(await groupCommit(options));
  const report: Report = {
    bench: 'log',
    command,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    peer: 'bare append',
    rounds,
    settings: { valueBytes: 100, engine: 'memory', secondsOfARound: seconds },
    rows,
  };
  printTable(report);
  for (const { name, detail } of rows) {
    const { cpuMicrosOurs = NaN, cpuMicrosPeer = NaN } = detail ?? {};
    const [ours, peer] = [cpuMicrosOurs.toFixed(2), cpuMicrosPeer.toFixed(2)];
    console.log(`${name}: ${ours} us of processor time a command, bare ${peer}`);
  }
  save(report, 'log');
  return report;
}
