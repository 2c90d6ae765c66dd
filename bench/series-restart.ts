// Many series: ingest rate, memory, and time from a kill to the first answered query, beside
// influxd.

import { startInflux, startPolyrowSeries } from './support/series-servers.ts';
import { ask, postLines } from './support/influx-http.ts';
import { residentBytes } from './support/process-usage.ts';
import {
  requireProgram,
  type Probe,
  type Running,
  type StartOptions,
} from './support/processes.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import { median } from './support/statistics.ts';

interface SeriesRestartOptions {
  rounds: number;
  series: number;
  /** Measure Polyrow alone. */
  alone: boolean;
}

export const seriesRestartDefaults: SeriesRestartOptions = {
  rounds: 5,
  series: 1_000_000,
  alone: false,
};

const linesPerBody = 10_000;
const settleMs = 8000;
const db = 'benchmark';
const start0 = 1_451_606_400;

interface Measured {
  seriesPerSecond: number;
  residentBytes: number;
  /** From the start of the process to the answer. */
  seconds: number;
}

type Start = (options: StartOptions) => Promise<Running>;

function lineOf(n: number): string {
  return `calls,call=c${n.toString(36)},node=n${n % 997},region=r${n % 6} v=${n % 1000} ${start0 + (n % 3600)}`;
}

async function measure(start: Start, series: number): Promise<Measured> {
  const server = await start({});
  const { directory } = server;
  const loadedAt = performance.now();
  let lines: string[] = [];
  for (let n = 0; n < series; n++) {
    lines.push(lineOf(n));
    if (lines.length < linesPerBody && n + 1 < series) continue;
    await postLines(server.port, db, lines.join('\n'), 's');
    lines = [];
  }
  const seriesPerSecond = (series * 1000) / (performance.now() - loadedAt);
  await new Promise((resolve) => setTimeout(resolve, settleMs));
  const resident = residentBytes(server.pid);
  await server.end('SIGKILL');

  const last = (series - 1).toString(36);
  const q = encodeURIComponent(`SELECT v FROM calls WHERE call = 'c${last}'`);
  const probe: Probe = {
    request: `GET /query?db=${db}&q=${q} HTTP/1.0\r\n`,
    isReady: (answer) => answer.includes('"values"'),
  };
  const startedAt = performance.now();
  const again = await start({ directory, probe });
  const seconds = (performance.now() - startedAt) / 1000;
  try {
    const text = await ask(again.port, 'SELECT count(v) FROM calls', db);
    const count = Number(/\[\["[^"]+",(\d+)\]\]/.exec(text)?.[1]);
    if (count !== series) throw new Error(`${again.name} has ${count} of ${series} points back`);
  } finally {
    await again.stop();
  }
  return { seriesPerSecond, residentBytes: resident, seconds };
}

export async function seriesRestartBench(
  options: SeriesRestartOptions,
  command: string,
): Promise<Report> {
  const { rounds, series, alone } = options;
  if (!alone) requireProgram('influxd', 'package influxdb');
  const mine: Measured[] = [];
  const theirs: Measured[] = [];
  for (let round = 1; round <= rounds; round++) {
    process.stderr.write(`\r${series} series: round ${round} of ${rounds}   `);
    mine.push(await measure((start) => startPolyrowSeries('always', [], start), series));
    if (!alone) theirs.push(await measure(startInflux, series));
  }
  process.stderr.write('\n');
  const row = (
    name: string,
    unit: string,
    better: Row['better'],
    of: (m: Measured) => number,
  ): Row => {
    const ours = median(mine.map(of));
    const peer = median(theirs.map(of));
    return { name: `${series} series: ${name}`, unit, ours, peer, ratio: ours / peer, better };
  };
  const report: Report = {
    bench: 'series',
    command,
    date: new Date().toISOString(),
    machine: machine(),
    peer: alone ? 'none' : 'influxd',
    rounds,
    settings: { series, fsync: 'always' },
    rows: [
      row('written', 'series/s', 'higher', (m) => m.seriesPerSecond),
      row('resident', 'MB', 'lower', (m) => m.residentBytes / 1e6),
      row('first answer after a kill', 's', 'lower', (m) => m.seconds),
    ],
  };
  printTable(report);
  save(report, `series-${series}`);
  return report;
}
