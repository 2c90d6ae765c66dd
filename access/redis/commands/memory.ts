// MEMORY: how much memory rows take.

import { Action } from '../../../universal-row/command.ts';
import {
  memoryMallocStats,
  memoryPurge,
  memoryUsage,
} from '../../../universal-row/transforms/redis/object.ts';
import type { Client, ClientCommand } from '../client.ts';
import type { RespWriter } from '../resp-writer.ts';
import type { MemoryUse } from '../server-facts.ts';
import { noKeys } from './spec.ts';
import { helpOf } from './support/help.ts';

// As redis-server has them: below this there is nothing to judge, above these ratios something is wrong.
const judgedBytes = 5 * 1024 * 1024;
const highPeakRatio = 1.5;
const highFragmentationRatio = 1.4;
const wastedBytes = 10 * 1024 * 1024;

function diagnose({ used, peak, held }: MemoryUse): string {
  if (used < judgedBytes) {
    return "Hi Sam, this instance is empty or is using very little memory, my issue detector can't be used in these conditions. Please, leave for your mission on Earth and fill it with some data. The new Sam and I will be back to our programming as soon as I finished rebooting.\n";
  }
  const problems: string[] = [];
  if (peak / used > highPeakRatio) {
    problems.push(
      ` * Peak memory: In the past rows took ${(peak / used).toFixed(2)} times the memory that they take now. Slabs are compacted in the background; what remains of the difference is used again when rows come.`,
    );
  }
  if (held / used > highFragmentationRatio && held - used > wastedBytes) {
    problems.push(
      ` * High fragmentation: ${(held / used).toFixed(2)} times as much memory is allocated for rows as they need. Compaction gives it back while there is time for that.`,
    );
  }
  if (problems.length === 0) {
    return "Hi Sam, I can't find any memory issue in your instance. I can only account for what occurs on this base.\n";
  }
  return `Sam, I detected a few issues in this Redis instance memory implants:\n\n${problems.join('\n\n')}\n\nINFO memory and MEMORY STATS have the figures.\n`;
}

type Figure = readonly [name: string, value: number, kind?: 'ratio'];

function writeStats({ server, tenant }: Client, reply: RespWriter): void {
  const { used, peak, startup, held } = server.facts.memory();
  const { rss, heapUsed } = process.memoryUsage();
  let keys = 0;
  const databases: number[] = [];
  for (let db = 0; db < tenant.span.count; db++) {
    const { rows } = server.facts.tableSize(tenant.span.first + db);
    keys += rows;
    if (rows > 0) databases.push(db);
  }
  let normal = 0;
  for (const { queryBytes } of server.connections.values()) normal += queryBytes;
  const scripts = tenant.scripts.cache.bytes;
  const data = used - startup;
  const before: readonly Figure[] = [
    ['peak.allocated', peak],
    ['total.allocated', used],
    ['startup.allocated', startup],
    ['replication.backlog', 0],
    ['clients.slaves', 0],
    ['clients.normal', normal],
    ['cluster.links', 0],
    ['aof.buffer', 0],
    ['lua.caches', scripts],
    ['functions.caches', tenant.scripts.functions.all.size],
  ];
  const after: readonly Figure[] = [
    ['overhead.total', heapUsed],
    ['keys.count', keys],
    ['keys.bytes-per-key', keys === 0 ? 0 : Math.floor(data / keys)],
    ['dataset.bytes', data],
    ['dataset.percentage', (data / used) * 100, 'ratio'],
    ['peak.percentage', (used / peak) * 100, 'ratio'],
    ['allocator.allocated', used],
    ['allocator.active', held],
    ['allocator.resident', rss],
    ['allocator-fragmentation.ratio', held / used, 'ratio'],
    ['allocator-fragmentation.bytes', held - used],
    ['allocator-rss.ratio', rss / held, 'ratio'],
    ['allocator-rss.bytes', rss - held],
    ['rss-overhead.ratio', 1, 'ratio'],
    ['rss-overhead.bytes', 0],
    ['fragmentation', rss / used, 'ratio'],
    ['fragmentation.bytes', rss - used],
  ];
  reply.map(before.length + databases.length + after.length);
  writeFigures(before, reply);
  for (const db of databases) {
    reply.text(`db.${db}`);
    // Indexes are counted as rows' own memory.
    const tables = ['main', 'expires', 'slot-to-keys'] as const;
    reply.map(tables.length);
    writeFigures(
      tables.map((name) => [`overhead.hashtable.${name}`, 0] as const),
      reply,
    );
  }
  writeFigures(after, reply);
}

function writeFigures(figures: readonly Figure[], reply: RespWriter): void {
  for (const [name, value, kind] of figures) {
    reply.text(name);
    if (kind === 'ratio') reply.double(value);
    else reply.integer(value);
  }
}

const common = { group: 'server', flags: [], since: '4.0.0', keys: noKeys } as const;

const subcommands: readonly ClientCommand[] = [
  {
    ...common,
    name: 'doctor',
    arity: 2,
    summary: 'Reports problems of memory usage.',
    complexity: 'O(1)',
    serverWide: true,
    handle({ server }, _args, reply) {
      reply.verbatim(diagnose(server.facts.memory()));
    },
  },
  {
    ...common,
    name: 'malloc-stats',
    serverWide: true,
    arity: 2,
    summary: 'Returns statistics of the memory allocator.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: memoryMallocStats,
  },
  {
    ...common,
    name: 'purge',
    serverWide: true,
    arity: 2,
    summary: 'Asks the allocator to give memory back.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: memoryPurge,
  },
  {
    ...common,
    name: 'stats',
    serverWide: true,
    arity: 2,
    summary: 'Returns how much memory is used, and for what.',
    complexity: 'O(1)',
    handle(client, _args, reply) {
      writeStats(client, reply);
    },
  },
  {
    ...common,
    name: 'usage',
    arity: -3,
    syntax: 'key [SAMPLES count]',
    flags: ['readonly'],
    keys: { first: 2, last: 2, step: 1 },
    summary: 'Returns the memory usage of a key and its value in bytes.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: memoryUsage,
  },
];

export const memoryCommands: readonly ClientCommand[] = [
  {
    ...common,
    name: 'memory',
    arity: -2,
    summary: 'Tells how memory is used.',
    complexity: 'Depends on the subcommand',
    subcommands: [...subcommands, helpOf('memory', subcommands)],
  },
];
