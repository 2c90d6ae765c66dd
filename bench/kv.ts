// fillseq, fillrandom and readrandom on the kv engine, beside `classic-level` used directly and, where it
// is installed, RocksDB's db_bench. All are without compression and without syncing.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runDbBench } from './support/db-bench.ts';
import {
  blockCacheBytes,
  EngineSubject,
  keyBytes,
  LevelSubject,
  rowCacheBytes,
  Values,
  writeBufferBytes,
  type KvSubject,
} from './support/kv-subjects.ts';
import { findProgram } from './support/processes.ts';
import { seededRandom, shuffled } from './support/random.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import { median } from './support/statistics.ts';

interface KvOptions {
  rounds: number;
  /** Bytes of a value. */
  sizes: number[];
  megabytes: number;
  /** Operations of one event-loop tick on our engine. */
  tick: number;
}

export const kvDefaults: KvOptions = {
  rounds: 5,
  sizes: [1024, 4096, 16384, 65536],
  megabytes: 1000,
  tick: 64,
};

const tests = ['fillseq', 'fillrandom', 'readrandom'] as const;
type Test = (typeof tests)[number];
/** Operations a second of each test. */
type Speeds = Record<Test, number>;

const targets: Readonly<Record<Test, number>> = { fillseq: 1, fillrandom: 1, readrandom: 0.9 };
const mostReads = 200_000;

/** The same keys in the same order for everyone. */
class Plan {
  readonly values: Values;
  readonly ascending: Uint32Array;
  readonly shuffled: Uint32Array;
  readonly reads: Uint32Array;

  constructor(megabytes: number, valueBytes: number) {
    const random = seededRandom(valueBytes);
    const records = Math.ceil((megabytes * 1e6) / (valueBytes + keyBytes));
    this.values = new Values(valueBytes, random);
    this.ascending = Uint32Array.from({ length: records }, (_, i) => i);
    this.shuffled = shuffled(records, random);
    const count = Math.min(records, mostReads);
    this.reads = Uint32Array.from({ length: count }, () => random() * records);
  }
}

async function inNewDirectory<T>(work: (directory: string) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'polyrow-bench-kv-'));
  try {
    return await work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function perSecond(operations: number, work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return (operations / (performance.now() - startedAt)) * 1000;
}

/** `open` is told whether the keys will come in order. */
async function measure(
  plan: Plan,
  open: (directory: string, ordered: boolean) => Promise<KvSubject>,
): Promise<Speeds> {
  const { values, ascending, reads } = plan;
  const fillseq = await inNewDirectory(async (directory) => {
    const subject = await open(directory, true);
    const speed = await perSecond(ascending.length, () => subject.fill(ascending, values));
    await subject.close();
    return speed;
  });
  return inNewDirectory(async (directory) => {
    const subject = await open(directory, false);
    const fillrandom = await perSecond(plan.shuffled.length, () =>
      subject.fill(plan.shuffled, values),
    );
    const readrandom = await perSecond(reads.length, () => subject.read(reads, values));
    await subject.close();
    return { fillseq, fillrandom, readrandom };
  });
}

async function measureDbBench(program: string, plan: Plan): Promise<Speeds> {
  const run = {
    records: plan.ascending.length,
    reads: plan.reads.length,
    valueBytes: plan.values.length,
  };
  const [fillseq = NaN] = await inNewDirectory((directory) =>
    runDbBench(program, { ...run, directory, benchmarks: ['fillseq'] }),
  );
  const [fillrandom = NaN, readrandom = NaN] = await inNewDirectory((directory) =>
    runDbBench(program, { ...run, directory, benchmarks: ['filluniquerandom', 'readrandom'] }),
  );
  return { fillseq, fillrandom, readrandom };
}

function rowsOf(size: string, mine: Speeds[], level: Speeds[], rocks: Speeds[]): Row[] {
  const compare = (test: Test, peers: Speeds[]): Omit<Row, 'name'> => {
    const ours = median(mine.map((speeds) => speeds[test]));
    const peer = median(peers.map((speeds) => speeds[test]));
    return { unit: 'ops/s', ours, peer, ratio: ours / peer, better: 'higher' };
  };
  const rows: Row[] = tests.map((test) => ({
    name: `${test} ${size}`,
    ...compare(test, level),
    target: targets[test],
  }));
  if (rocks.length > 0) {
    for (const test of tests) {
      rows.push({ name: `${test} ${size}, db_bench`, ...compare(test, rocks) });
    }
  }
  return rows;
}

export async function kvBench(options: KvOptions, command: string): Promise<Report> {
  const dbBench = findProgram('db_bench');
  if (dbBench === undefined) {
    process.stderr.write(
      'no db_bench here (package rocksdb-tools): only classic-level is compared\n',
    );
  }
  const rows: Row[] = [];
  for (const valueBytes of options.sizes) {
    const size = valueBytes >= 1024 ? `${valueBytes / 1024} kB` : `${valueBytes} B`;
    const plan = new Plan(options.megabytes, valueBytes);
    const mine: Speeds[] = [];
    const level: Speeds[] = [];
    const rocks: Speeds[] = [];
    for (let round = 0; round < options.rounds; round++) {
      mine.push(
        await measure(plan, (directory, ordered) =>
          EngineSubject.open(directory, ordered, options.tick),
        ),
      );
      level.push(await measure(plan, (directory) => LevelSubject.open(directory)));
      if (dbBench !== undefined) rocks.push(await measureDbBench(dbBench, plan));
      process.stderr.write(`\r${size}: round ${round + 1} of ${options.rounds}   `);
    }
    const added = rowsOf(size, mine, level, rocks);
    rows.push(...added);
    const ratios = added.slice(0, tests.length).map((row) => row.ratio.toFixed(3));
    process.stderr.write(`\r${size}: ${tests.join(', ')} ${ratios.join(', ')}          \n`);
  }
  const report: Report = {
    bench: 'kv engine',
    command,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    peer: 'classic-level',
    rounds: options.rounds,
    settings: {
      megabytes: options.megabytes,
      operationsOfATick: options.tick,
      rowCacheBytes,
      blockCacheBytes,
      writeBufferBytes,
      dbBench: dbBench ?? 'not found',
    },
    rows,
  };
  printTable(report);
  save(report, 'kv');
  return report;
}
