// How readers of a kv table fare beside clients that write as fast as they can, with and without the tokens by which
// writes are held to what LevelDB compacts: how long reads take, how long writes are stalled, and what level 0 is like.

import { freePort, startPolyrow } from './support/processes.ts';
import { request, RespClient } from './support/resp-client.ts';
import { seededRandom } from './support/random.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import { median, percentile } from './support/statistics.ts';

export interface KvFloodOptions {
  rounds: number;
  /** Length of a measurement; of the first `warmUpMs` nothing counts. */
  seconds: number;
  valueBytes: number;
  keys: number;
}

export const kvFloodDefaults: KvFloodOptions = {
  rounds: 3,
  seconds: 60,
  valueBytes: 65_536,
  keys: 40_000,
};

const writers = 4;
const readers = 2;
const writesAtOnce = 2;
const pauseMs = 2;
const warmUpMs = 10_000;
const values = 64;

interface Flood {
  readMs: number[];
  writeMs: number[];
  writesPerSecond: number;
  /** Files of level 0, each second. */
  files: number[];
}

export async function kvFloodBench(options: KvFloodOptions, command: string): Promise<Report> {
  const on: Flood[] = [];
  const off: Flood[] = [];
  for (let round = 0; round < options.rounds; round++) {
    for (const isOn of round % 2 === 0 ? [true, false] : [false, true]) {
      (isOn ? on : off).push(await flood(isOn, options));
    }
    process.stderr.write(`\rround ${round + 1} of ${options.rounds}   `);
  }
  process.stderr.write('\n');
  const row = (
    name: string,
    unit: string,
    better: Row['better'],
    of: (run: Flood) => number,
  ): Row => {
    const [ours, peer] = [median(on.map(of)), median(off.map(of))];
    return { name, unit, ours, peer, ratio: ours / peer, better };
  };
  const report: Report = {
    bench: 'kv-flood',
    command,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    peer: 'without tokens',
    rounds: options.rounds,
    settings: { ...options, writers, readers },
    rows: [
      row('reads p50', 'ms', 'lower', ({ readMs }) => percentile(readMs, 0.5)),
      row('reads p99', 'ms', 'lower', ({ readMs }) => percentile(readMs, 0.99)),
      row('longest read', 'ms', 'lower', ({ readMs }) => percentile(readMs, 1)),
      row('writes', 'SET/s', 'higher', ({ writesPerSecond }) => writesPerSecond),
      row('writes p99', 'ms', 'lower', ({ writeMs }) => percentile(writeMs, 0.99)),
      row('longest write', 'ms', 'lower', ({ writeMs }) => percentile(writeMs, 1)),
      row('files of level 0, mean', '', 'lower', ({ files }) => mean(files)),
    ],
  };
  printTable(report);
  save(report, 'kv-flood');
  return report;
}

async function flood(isOn: boolean, options: KvFloodOptions): Promise<Flood> {
  const { seconds, valueBytes, keys } = options;
  const adminPort = await freePort();
  const server = await startPolyrow('everysec', [
    ...['--admin.port', String(adminPort), '--redis.default-model', 'kv'],
    // Far less than the data, so that readers come to level 0 at all.
    ...['--kv.cache-bytes', String(16 * 1024 * 1024)],
    ...['--mech.cr-kvstore-tokens', isOn ? 'on' : 'off'],
  ]);
  const random = seededRandom(7);
  const some = Array.from({ length: values }, () => incompressible(valueBytes, random));
  const key = (): string => `key:${Math.floor(random() * keys)}`;
  const run: Flood = { readMs: [], writeMs: [], writesPerSecond: 0, files: [] };
  const began = performance.now();
  const end = began + seconds * 1000;
  let written = 0;
  const write = async (): Promise<void> => {
    const client = await RespClient.connect(server.port);
    while (performance.now() < end) {
      const sentAt = performance.now();
      const value = (): string => some[Math.floor(random() * values)]!;
      await client.pipeline(writesAtOnce, () => request('SET', key(), value()));
      written += writesAtOnce;
      if (sentAt - began > warmUpMs) run.writeMs.push(performance.now() - sentAt);
    }
    client.close();
  };
  const read = async (): Promise<void> => {
    const client = await RespClient.connect(server.port);
    while (performance.now() < end) {
      const sentAt = performance.now();
      await client.call('STRLEN', key());
      if (sentAt - began > warmUpMs) run.readMs.push(performance.now() - sentAt);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    client.close();
  };
  const watch = async (): Promise<void> => {
    while (performance.now() < end) {
      const page = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
      const files = /^polyrow_engine_kv_level0_files\{model="kv"\} (\S+)$/m.exec(page);
      if (files !== null && performance.now() - began > warmUpMs) run.files.push(Number(files[1]));
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  };
  try {
    const all = [watch(), ...Array.from({ length: writers }, write)];
    await Promise.all([...all, ...Array.from({ length: readers }, read)]);
  } finally {
    await server.stop();
  }
  run.writesPerSecond = (written * 1000) / (performance.now() - began);
  return run;
}

function incompressible(bytes: number, random: () => number): string {
  const value = Buffer.alloc(bytes);
  for (let i = 0; i < bytes; i++) value[i] = random() * 256;
  return value.toString('latin1');
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
}
