// npm run bench -- redis|ycsb|kv|kv-reads|log|raft|memory|metering|admission|restart|tsbs|series|planes|processes|hostile|fuzz|cluster|compare [options]: side by side with the real peer, in one run.

import { dirname, resolve } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { admissionBench, admissionBenchDefaults } from './admission.ts';
import { clusterCommand } from './cluster/commands.ts';
import { compareBench, compareDefaults } from './compare.ts';
import { raftBench, raftBenchDefaults } from './raft.ts';
import { redisBench, redisBenchDefaults } from './redis-benchmark.ts';
import { fuzzBench } from './fuzz.ts';
import { hostileBench } from './hostile.ts';
import { hostileCases } from './hostile/cases.ts';
import { kvReadsBench, kvReadsDefaults } from './kv-reads.ts';
import { kvBench, kvDefaults } from './kv.ts';
import { logCostBench, logCostDefaults } from './log-cost.ts';
import { memoryBench, memoryDefaults } from './memory.ts';
import { meteringBench, meteringDefaults } from './metering.ts';
import { restartBench, restartDefaults } from './restart.ts';
import { processesBench, processesDefaults } from './processes.ts';
import { planesBench, planesDefaults } from './planes.ts';
import { seriesRestartBench, seriesRestartDefaults } from './series-restart.ts';
import { MissingToolError, type Fsync } from './support/processes.ts';
import { tsbsBench, tsbsDefaults } from './tsbs.ts';
import { ycsbBench, ycsbDefaults } from './ycsb.ts';

function list(text: string): string[] {
  return text.split(',').filter((word) => word !== '');
}

function count(text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) throw new InvalidArgumentError('a number above 0');
  return value;
}

function counts(text: string): number[] {
  return list(text).map(count);
}

function fsyncPolicy(text: string): Fsync {
  if (text === 'always' || text === 'everysec' || text === 'no') return text;
  throw new InvalidArgumentError('always, everysec or no');
}

const program = new Command('bench');
const command = `npm run bench -- ${process.argv.slice(2).join(' ')}`;

program
  .command('redis')
  .description('redis-benchmark against redis-server')
  .option('--rounds <n>', 'rounds of each test', count, redisBenchDefaults.rounds)
  .option('--fsync <policy>', 'always, everysec or no', redisBenchDefaults.fsync)
  .option('--pipeline <list>', 'pipeline depths', '1,16,64')
  .option(
    '--tests <list>',
    'tests of redis-benchmark; xadd, xreadgroup, zrange, pfadd, bitcount, blpop, geosearch, eval, eval-loop',
    redisBenchDefaults.tests.join(','),
  )
  .option('--seconds <n>', 'length of a round', count, redisBenchDefaults.seconds)
  .option('--keys <n>', 'keys of the random tests', count, redisBenchDefaults.keys)
  .option('--name <name>', 'of the files of results (redis-FSYNC)')
  .action(
    async (options: {
      rounds: number;
      fsync: Fsync;
      pipeline: string;
      tests: string;
      seconds: number;
      keys: number;
      name?: string;
    }) => {
      await redisBench(
        {
          rounds: options.rounds,
          fsync: options.fsync,
          pipelines: list(options.pipeline).map(count),
          tests: list(options.tests),
          seconds: options.seconds,
          keys: options.keys,
          name: options.name ?? `redis-${options.fsync}`,
        },
        command,
      );
    },
  );

program
  .command('ycsb')
  .description('YCSB workloads A to F against redis-server')
  .option('--rounds <n>', 'rounds of each cell', count, ycsbDefaults.rounds)
  .option('--fsync <policy>', 'always, everysec or no', fsyncPolicy, ycsbDefaults.fsync)
  .option('--workloads <list>', 'of A,B,C,D,E,F', list, ycsbDefaults.workloads)
  .option('--threads <list>', 'numbers of client threads', counts, ycsbDefaults.threads)
  .option('--records <n>', 'records loaded', count, ycsbDefaults.records)
  .option('--seconds <n>', 'length of a round', count, ycsbDefaults.seconds)
  .action(async (options: typeof ycsbDefaults) => {
    await ycsbBench(options, command);
  });

program
  .command('kv')
  .description('fillseq, fillrandom and readrandom against classic-level and db_bench')
  .option('--rounds <n>', 'rounds of each cell', count, kvDefaults.rounds)
  .option('--sizes <list>', 'value sizes in bytes', counts, kvDefaults.sizes)
  .option('--megabytes <n>', 'size of the data set', count)
  .option('--tick <n>', 'operations of one event-loop tick', count, kvDefaults.tick)
  .option('--quick', 'a data set of 200 MB instead of 1 GB', false)
  .action(
    async (
      options: Omit<typeof kvDefaults, 'megabytes'> & { megabytes?: number; quick: boolean },
    ) => {
      const megabytes = options.megabytes ?? (options.quick ? 200 : kvDefaults.megabytes);
      await kvBench({ ...options, megabytes }, command);
    },
  );

program
  .command('log')
  .description('what the log costs a pod, against a bare append of the same bytes')
  .option('--rounds <n>', 'rounds of each cell', count, logCostDefaults.rounds)
  .option(
    '--policies <list>',
    'fsync policies',
    (text) => list(text).map(fsyncPolicy),
    logCostDefaults.policies,
  )
  .option('--ticks <list>', 'commands of one event-loop tick', counts, logCostDefaults.ticks)
  .option('--seconds <n>', 'length of a round', count, logCostDefaults.seconds)
  .action(async (options: typeof logCostDefaults) => {
    await logCostBench(options, command);
  });

program
  .command('raft')
  .description('what the consensus engine costs: ready cycles, heartbeats of many groups')
  .option('--rounds <n>', 'rounds of each shape', count, raftBenchDefaults.rounds)
  .option('--seconds <n>', 'length of a round', count, raftBenchDefaults.seconds)
  .option('--groups <n>', 'groups that send heartbeats', count, raftBenchDefaults.groups)
  .action((options: typeof raftBenchDefaults) => void raftBench(options, command));

program
  .command('memory')
  .description('bytes a key against redis-server')
  .option('--rounds <n>', 'rounds of each data set', count, memoryDefaults.rounds)
  .option('--strings <n>', 'strings of 100 B', count, memoryDefaults.strings)
  .option('--hashes <n>', 'hashes of 10 fields', count, memoryDefaults.hashes)
  .option('--members <n>', 'members of the sorted set', count, memoryDefaults.members)
  .action(async (options: typeof memoryDefaults) => {
    await memoryBench(options, command);
  });

program
  .command('metering')
  .description('redis-benchmark with metering on and off')
  .option('--rounds <n>', 'pairs of windows', count, meteringDefaults.rounds)
  .option('--pipeline <list>', 'pipeline depths', counts, meteringDefaults.pipelines)
  .option('--tests <list>', 'tests of redis-benchmark', list, meteringDefaults.tests)
  .option('--seconds <n>', 'length of a window', count, meteringDefaults.seconds)
  .option('--keys <n>', 'keys of the random tests', count, meteringDefaults.keys)
  .action(async ({ pipeline, ...options }: typeof meteringDefaults & { pipeline: number[] }) => {
    await meteringBench({ ...options, pipelines: pipeline }, command);
  });

program
  .command('admission')
  .description('what limits cost a gateway with many tenants')
  .option('--rounds <n>', 'rounds of each', count, admissionBenchDefaults.rounds)
  .option('--tenants <list>', 'numbers of tenants', counts, admissionBenchDefaults.tenants)
  .option('--requests <n>', 'requests of a round', count, admissionBenchDefaults.requests)
  .action((options: typeof admissionBenchDefaults) => {
    admissionBench(options, command);
  });

program
  .command('restart')
  .description('from the start of the process to the first answer, against redis-server with AOF')
  .option('--rounds <n>', 'rounds of each kind of end', count)
  .option('--keys <n>', 'strings of 100 B that are there', count, restartDefaults.keys)
  .option('--fsync <policy>', 'always, everysec or no', fsyncPolicy, restartDefaults.fsync)
  .option('--quick', '3 rounds instead of 5', false)
  .action(
    async (
      options: Omit<typeof restartDefaults, 'rounds'> & { rounds?: number; quick: boolean },
    ) => {
      const rounds = options.rounds ?? (options.quick ? 3 : restartDefaults.rounds);
      await restartBench({ ...options, rounds }, command);
    },
  );

program
  .command('tsbs')
  .description('TSBS loads and queries against influxd and VictoriaMetrics')
  .option('--rounds <n>', 'rounds of each cell', count, tsbsDefaults.rounds)
  .option('--use-cases <list>', 'of devops,cpu-only', list, tsbsDefaults.useCases)
  .option('--hosts <list>', 'numbers of hosts that are loaded', counts, tsbsDefaults.hosts)
  .option('--lines <n>', 'lines of a data set, about', count, tsbsDefaults.lines)
  .option('--workers <n>', 'connections that load', count, tsbsDefaults.workers)
  .option('--peers <list>', 'of influxd,victoria-metrics', list, tsbsDefaults.peers)
  .option('--queries <list>', 'query types', list, tsbsDefaults.queries)
  .option('--query-hosts <list>', 'numbers of hosts queried', counts, tsbsDefaults.queryHosts)
  .option('--query-hours <n>', 'hours of data queried', count, tsbsDefaults.queryHours)
  .option('--sparse-series <n>', 'series of the sparse set', Number, tsbsDefaults.sparseSeries)
  .action(async (options: typeof tsbsDefaults) => {
    await tsbsBench(options, command);
  });

program
  .command('series')
  .description('many series: taking them in, memory, first answer after a kill; against influxd')
  .option('--rounds <n>', 'rounds', count, seriesRestartDefaults.rounds)
  .option('--series <n>', 'series', count, seriesRestartDefaults.series)
  .option('--alone', 'without influxd', seriesRestartDefaults.alone)
  .action(async (options: typeof seriesRestartDefaults) => {
    await seriesRestartBench(options, command);
  });

program
  .command('kv-reads')
  .description(
    'reads of a kv table much larger than its cache, with the line before the disk and without',
  )
  .option(
    '--rounds <n>',
    'pairs of windows of a tenant that is alone',
    count,
    kvReadsDefaults.rounds,
  )
  .option('--seconds <n>', 'length of each', count, kvReadsDefaults.seconds)
  .option(
    '--beside-rounds <n>',
    'pairs of windows of two tenants',
    count,
    kvReadsDefaults.besideRounds,
  )
  .option('--beside-seconds <n>', 'length of each', count, kvReadsDefaults.besideSeconds)
  .option('--keys <n>', 'keys of each tenant', count, kvReadsDefaults.keys)
  .option('--value-bytes <n>', 'size of values', count, kvReadsDefaults.valueBytes)
  .action(async (options: typeof kvReadsDefaults) => {
    await kvReadsBench(options, command);
  });

program
  .command('planes')
  .description('latency of Redis commands beside a heavy InfluxQL query')
  .option('--rounds <n>', 'rounds', count, planesDefaults.rounds)
  .option('--seconds <n>', 'length of a measurement', count, planesDefaults.seconds)
  .option('--connections <n>', 'connections', count, planesDefaults.connections)
  .option('--rate <n>', 'commands a second', count, planesDefaults.rate)
  .option('--points <n>', 'points that the query goes through', count, planesDefaults.points)
  .action(async (options: typeof planesDefaults) => {
    await planesBench(options, command);
  });

program
  .command('processes')
  .description('processor time a command of several processes over that of one')
  .option('--rounds <n>', 'rounds of each test', count, processesDefaults.rounds)
  .option('--processes <n>', 'processes', count, processesDefaults.processes)
  .option('--fsync <policy>', 'always, everysec or no', fsyncPolicy, processesDefaults.fsync)
  .option('--tests <list>', 'tests of redis-benchmark', list, processesDefaults.tests)
  .option('--pipelines <list>', 'pipeline depths', counts, processesDefaults.pipelines)
  .option('--requests <n>', 'commands of a round at P 1', count, processesDefaults.requests)
  .option('--keys <n>', 'random keys', count, processesDefaults.keys)
  .action(async (options: typeof processesDefaults) => {
    await processesBench(options, command);
  });

program
  .command('compare')
  .description('two builds by alternating turns: redis-benchmark, TSBS loads and queries')
  .argument('<old>', 'folder of the build before', (text: string) => resolve(text))
  .argument('<new>', 'folder of the build after', (text: string) => resolve(text))
  .option('--parts <list>', 'of redis,tsbs-load,tsbs-queries', list, compareDefaults.parts)
  .option('--pairs <n>', 'pairs of turns', count, compareDefaults.pairs)
  .option('--pipelines <list>', 'pipeline depths', counts, compareDefaults.pipelines)
  .option('--tests <list>', 'tests of redis-benchmark', list, compareDefaults.tests)
  .option('--seconds <n>', 'length of a turn of it', count, compareDefaults.seconds)
  .option('--queries <list>', 'query types of TSBS', list, compareDefaults.queries)
  .option('--hosts <n>', 'hosts of the data of TSBS', count, compareDefaults.hosts)
  .option('--load-minutes <n>', 'of the data that is loaded', count, compareDefaults.loadMinutes)
  .option('--query-hours <n>', 'of the data that is queried', count, compareDefaults.queryHours)
  .action(async (oldDist: string, newDist: string, options: typeof compareDefaults) => {
    if (!(await compareBench(oldDist, newDist, options, command))) process.exitCode = 1;
  });

program
  .command('hostile')
  .description('attacks beside a pinging client on each plane')
  .option('--only <list>', `of ${hostileCases.map(({ name }) => name).join(',')}`, list, [])
  .option(
    '--dist <folder>',
    'the build to attack',
    (text) => resolve(text),
    dirname(import.meta.dirname),
  )
  .option('--seconds <n>', 'length of the quiet run and of an attack, at least', count, 4)
  .option('--heap-megabytes <n>', 'limit of the heap of each thread', count, 512)
  .option('--save', 'write the results to bench/results/hostile.json, beside those of other cases')
  .action(async (options: Parameters<typeof hostileBench>[0]) => {
    if (!(await hostileBench(options, command))) process.exitCode = 1;
  });

program
  .command('fuzz')
  .description('random inputs to every parser, looking for cost that grows faster than the input')
  .option('--inputs <n>', 'of all parsers together', count, 1_000_000)
  .option('--seed <n>', 'the same inputs for the same seed', Number, 1)
  .option('--only <list>', 'parsers, by their names', list, [])
  .action((options: Parameters<typeof fuzzBench>[0]) => {
    if (!fuzzBench(options, command)) process.exitCode = 1;
  });

program.addCommand(clusterCommand(command));

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof MissingToolError)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}
