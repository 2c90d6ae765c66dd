// npm run bench -- cluster throughput|etcd|fail-over|transfer|groups|restart|snapshot|upgrade|clients|gateway: figures of a cluster on
// loopback, each with its threshold. Exit code 1 when one misses it.

import { resolve } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import type { Fsync } from '../support/processes.ts';
import { clientsBench, clientsDefaults } from './clients.ts';
import { failOverBench, failOverDefaults, harms } from './fail-over.ts';
import { gatewayBench, gatewayDefaults } from './gateway.ts';
import { manyGroupsBench, manyGroupsDefaults } from './many-groups.ts';
import {
  movesDefaults,
  restartNodeBench,
  snapshotBench,
  transferBench,
  transferDefaults,
} from './moves.ts';
import { etcdBench, etcdDefaults, throughputBench, throughputDefaults } from './throughput.ts';
import { upgradeBench, upgradeDefaults } from './upgrade.ts';

function whole(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0) throw new InvalidArgumentError('a whole number');
  return value;
}

const words = (text: string): string[] => text.split(',').filter((word) => word !== '');
const numbers = (text: string): number[] => words(text).map(whole);

/** `command` is the printed command to run it again. */
export function clusterCommand(command: string): Command {
  const program = new Command('cluster').description('figures of three nodes and more');
  const run = async (bench: Promise<boolean>): Promise<void> => {
    if (!(await bench)) process.exitCode = 1;
  };
  program
    .command('throughput')
    .description('a group of three over one server: SET, GET, GET by lease, P 1 and 16')
    .option('--rounds <n>', 'of each cell', whole, throughputDefaults.rounds)
    .option('--requests <n>', 'of a round', whole, throughputDefaults.requests)
    .option('--policies <list>', 'of always,everysec,no', words, throughputDefaults.policies)
    .action((options: Omit<typeof throughputDefaults, 'policies'> & { policies: Fsync[] }) =>
      run(throughputBench(options, command)),
    );
  program
    .command('gateway')
    .description('processor time a command of a gateway and a node over that of one process')
    .option('--rounds <n>', 'of each cell', whole, gatewayDefaults.rounds)
    .option('--requests <n>', 'of a round', whole, gatewayDefaults.requests)
    .action((options: typeof gatewayDefaults) => run(gatewayBench(options, command)));
  program
    .command('etcd')
    .description('replicated puts on disk beside etcd')
    .option('--rounds <n>', 'of each size', whole, etcdDefaults.rounds)
    .option('--seconds <n>', 'length of a round', whole, etcdDefaults.seconds)
    .option('--clients <n>', 'connections', whole, etcdDefaults.clients)
    .option('--bytes <list>', 'sizes of values', numbers, etcdDefaults.bytes)
    .action((options: typeof etcdDefaults) => run(etcdBench(options, command)));
  program
    .command('fail-over')
    .description('a leader killed, stopped, cut off; beside Redis Cluster and Sentinel')
    .option('--rounds <n>', 'of each harm', whole, failOverDefaults.rounds)
    .option('--harms <list>', `of ${harms.join(',')}`, words, failOverDefaults.harms)
    .option('--peer-rounds <n>', 'of each peer', whole, failOverDefaults.peerRounds)
    .action((options: typeof failOverDefaults) => run(failOverBench(options, command)));
  program
    .command('transfer')
    .description('the pause of writes while a leader hands over')
    .option('--rounds <n>', 'transfers', whole, transferDefaults.rounds)
    .action((options: typeof transferDefaults) => run(transferBench(options, command)));
  program
    .command('groups')
    .description('many groups: idle, and after the kill of a process that led them')
    .option('--idle-groups <n>', 'that nothing is written to', whole, manyGroupsDefaults.idleGroups)
    .option('--led-groups <n>', 'when a process is killed', whole, manyGroupsDefaults.ledGroups)
    .option('--seconds <n>', 'length of the idle time', whole, manyGroupsDefaults.seconds)
    .option('--settle-seconds <n>', 'before it', whole, manyGroupsDefaults.settleSeconds)
    .action((options: typeof manyGroupsDefaults) => run(manyGroupsBench(options, command)));
  program
    .command('upgrade')
    .description('node by node from another build to this one, under load')
    .requiredOption('--from <folder>', 'the compiled build before', (text: string) => resolve(text))
    .option('--steady-ms <n>', 'load before each stop', whole, upgradeDefaults.steadyMs)
    .action((options: Parameters<typeof upgradeBench>[0]) => run(upgradeBench(options, command)));
  program
    .command('clients')
    .description('clients of many kinds while the leader is killed, stopped and restarted')
    .option('--only <list>', 'names of clients that contain one of these', words, [])
    .option('--steady-ms <n>', 'between harms', whole, clientsDefaults.steadyMs)
    .option('--stop-ms <n>', 'that the leader is stopped', whole, clientsDefaults.stopMs)
    .action((options: typeof clientsDefaults) => run(clientsBench(options, command)));
  for (const [name, description, bench] of [
    ['restart', 'a node with much data starts again after a kill', restartNodeBench],
    ['snapshot', 'a replica with much data is copied to another node', snapshotBench],
  ] as const) {
    program
      .command(name)
      .description(description)
      .option('--megabytes <n>', 'of values', whole, movesDefaults.megabytes)
      .option('--value-bytes <n>', 'size of a value', whole, movesDefaults.valueBytes)
      .action((options: typeof movesDefaults) => run(bench(options, command)));
  }
  return program;
}
