// Bytes a key of Polyrow and of redis-server: the reported use, and the growth of the process.

import { setTimeout as sleep } from 'node:timers/promises';
import { requireProgram, startPolyrow, startRedis, type Running } from './support/processes.ts';
import { residentBytes } from './support/process-usage.ts';
import { seededRandom } from './support/random.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import { request, RespClient } from './support/resp-client.ts';
import { median } from './support/statistics.ts';

interface MemoryOptions {
  rounds: number;
  strings: number;
  hashes: number;
  members: number;
}

export const memoryDefaults: MemoryOptions = {
  rounds: 5,
  strings: 1_000_000,
  hashes: 100_000,
  members: 1_000_000,
};

interface DataSet {
  name: string;
  unit: string;
  keys: number;
  commands: number;
  requestAt: (i: number) => string;
  target: number;
}

const fieldsOfAHash = 10;
const membersOfACommand = 10;
// Time for garbage collection, and for memory freed in the background.
const settleMs = 2000;
// A server loads its admin pages some seconds after its start: they are not part of the growth.
const startedMs = 4000;

function dataSets(options: MemoryOptions): DataSet[] {
  const random = seededRandom(1);
  return [
    {
      name: 'strings of 100 B',
      unit: 'B/key',
      keys: options.strings,
      commands: options.strings,
      requestAt: (i) => request('SET', `key:${digits(i, 12)}`, digits(i, 100)),
      target: 1.1,
    },
    {
      name: `hashes of ${fieldsOfAHash} x 10 B`,
      unit: 'B/key',
      keys: options.hashes,
      commands: options.hashes,
      requestAt: (i) => {
        const words = Array.from({ length: fieldsOfAHash }, (_, f) => [
          `field${f}`,
          digits(i * fieldsOfAHash + f, 10),
        ]).flat();
        return request('HSET', `hash:${digits(i, 11)}`, ...words);
      },
      target: 1.5,
    },
    {
      name: 'a sorted set, members of 23 B',
      unit: 'B/member',
      keys: options.members,
      commands: Math.ceil(options.members / membersOfACommand),
      requestAt: (i) => {
        const words: (string | number)[] = [];
        const first = i * membersOfACommand;
        for (let m = first; m < Math.min(first + membersOfACommand, options.members); m++) {
          words.push(Math.floor((random() - 0.5) * 2 ** 32), `user${digits(m, 19)}`);
        }
        return request('ZADD', '_indices', ...words);
      },
      target: 1.5,
    },
  ];
}

function digits(n: number, length: number): string {
  return String(n).padStart(length, '0');
}

interface Taken {
  used: number;
  resident: number;
}

async function takenBy(server: Running, client: RespClient): Promise<Taken> {
  await sleep(settleMs);
  const used = /^used_memory:(\d+)/m.exec(await client.call('INFO', 'memory'));
  if (used === null) throw new Error(`${server.name} does not say used_memory`);
  return { used: Number(used[1]), resident: residentBytes(server.pid) };
}

/** Bytes a key that the data set takes on a server just started. */
async function measure(start: () => Promise<Running>, set: DataSet): Promise<Taken> {
  const server = await start();
  try {
    const client = await RespClient.connect(server.port);
    await sleep(startedMs);
    const before = await takenBy(server, client);
    await client.pipeline(set.commands, set.requestAt);
    const after = await takenBy(server, client);
    client.close();
    return {
      used: (after.used - before.used) / set.keys,
      resident: (after.resident - before.resident) / set.keys,
    };
  } finally {
    await server.stop();
  }
}

function rowsOf(set: DataSet, mine: readonly Taken[], theirs: readonly Taken[]): Row[] {
  const row = (name: string, of: (taken: Taken) => number): Row => {
    const ours = median(mine.map(of));
    const peer = median(theirs.map(of));
    const { unit, target } = set;
    return { name, unit, ours, peer, ratio: ours / peer, better: 'lower', target };
  };
  return [
    row(`${set.name}: accounted`, ({ used }) => used),
    row(`${set.name}: resident`, ({ resident }) => resident),
  ];
}

export async function memoryBench(options: MemoryOptions, command: string): Promise<Report> {
  requireProgram('redis-server', 'package redis-server');
  const rows: Row[] = [];
  for (const set of dataSets(options)) {
    const mine: Taken[] = [];
    const theirs: Taken[] = [];
    for (let round = 0; round < options.rounds; round++) {
      mine.push(await measure(() => startPolyrow('everysec'), set));
      theirs.push(await measure(() => startRedis('everysec'), set));
      process.stderr.write(`\r${set.name}: round ${round + 1} of ${options.rounds}   `);
    }
    const added = rowsOf(set, mine, theirs);
    rows.push(...added);
    const ratios = added.map(({ ratio }) => ratio.toFixed(3)).join(', ');
    process.stderr.write(`\r${set.name}: ${ratios}                    \n`);
  }
  const report: Report = {
    bench: 'memory',
    command,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    peer: 'redis-server',
    rounds: options.rounds,
    settings: {
      strings: options.strings,
      hashes: options.hashes,
      members: options.members,
      fsync: 'everysec',
    },
    rows,
  };
  printTable(report);
  save(report, 'memory');
  return report;
}
