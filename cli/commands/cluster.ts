// `polyrow cluster`: forms a cluster, shows it, and runs a whole one on this machine.

import type { Command } from 'commander';
import { nodeRoles } from '../../contracts/cluster.ts';
import type {
  ClusterReport,
  GroupReport,
  NodeReport,
} from '../../control/cluster/cluster-report.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { onStopSignals } from '../../server/lifecycle/signals.ts';
import type { LocalCluster } from '../cluster/local-cluster.ts';
import { answer, remark } from '../output/answer.ts';
import { card, type Column, grid } from '../output/grid.ts';
import { formatBytes, formatNumber } from '../output/values.ts';
import type { AdminClient } from './admin-client.ts';
import { wholeNumber } from './argument-values.ts';
import { type AccessFlags, withServer } from './server-access.ts';

export const clusterPage = '/v1/cluster';

export function clusterCommand(program: Command): void {
  const cluster = program
    .command('cluster')
    .description('The cluster that a server is a node of; or a whole one on this machine.');
  withServer(
    cluster
      .command('init')
      .description('Form a cluster from a waiting server. Run it for the first node only.')
      .option('--no-wait', 'do not wait until it serves'),
    init,
  );
  withServer(
    cluster
      .command('status')
      .description('Show the nodes, and the number of healthy groups of replicas.')
      .option('--groups', 'show each group'),
    async (client, flags: AccessFlags & { groups?: true }) => {
      const report = await client.get<ClusterReport>(clusterPage);
      await answer(flags, report, (all) => shown(all, flags.groups === true));
    },
  );
  startCommand(cluster);
}

async function init(client: AdminClient, flags: AccessFlags & { wait: boolean }): Promise<void> {
  const made = (await client.request('POST', `${clusterPage}/init`, {})) as { secretFile: string };
  if (flags.wait) await untilReady(client);
  await answer(flags, made, ({ secretFile }) =>
    [
      'This server is the first node of a new cluster.',
      `Each further node needs a copy of ${secretFile} (cluster.secret-file), and cluster.seeds with the address of this one.`,
    ].join('\n'),
  );
}

const pollMs = 100;
const readyMs = 60_000;

/** The waiting server's admin port is closed and opened again in between. */
async function untilReady(client: AdminClient): Promise<void> {
  const until = performance.now() + readyMs;
  let last = '';
  while (performance.now() < until) {
    try {
      await client.get('/readyz');
      return;
    } catch (error) {
      last = (error as Error).message;
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  throw new ExitError(`the cluster is formed, and does not serve yet: ${last}`, exitCodes.failed);
}

// ---- status

export const nodeColumns: Column<NodeReport>[] = [
  { title: 'node', value: ({ node }) => String(node), right: true },
  {
    title: 'state',
    value: ({ state, reachable, answered }) => {
      if (!reachable) return `${state}, out of reach`;
      return answered ? state : `${state}, no answer in time`;
    },
  },
  { title: 'zone', value: ({ zone }) => zone },
  {
    title: 'roles',
    value: ({ roles }) => (roles.length === nodeRoles.length ? 'all' : roles.join(', ')),
  },
  { title: 'replicas', value: ({ replicas }) => formatNumber(replicas), right: true },
  {
    title: 'leads',
    value: ({ leads, answered }) => (answered ? formatNumber(leads) : '?'),
    right: true,
  },
  { title: 'metadata', value: ({ votes }) => (votes ? 'votes' : 'copy') },
  { title: 'redis', value: ({ addresses }) => addresses.redisClients },
  { title: 'influx', value: ({ addresses }) => addresses.influxClients },
  { title: 'admin', value: ({ addresses }) => addresses.admin },
];

const groupColumns: Column<GroupReport>[] = [
  { title: 'group', value: ({ group }) => String(group), right: true },
  { title: 'tenant', value: ({ tenant }) => String(tenant), right: true },
  { title: 'model', value: ({ model }) => model },
  {
    title: 'partition',
    value: ({ partition, series }) => {
      if (series !== undefined) return `${series.partition + 1} of ${series.of}`;
      return partition === undefined ? '' : String(partition);
    },
  },
  {
    title: 'leader',
    value: ({ leader, mayLead }) => (leader !== 0 ? String(leader) : mayLead ? '?' : 'none'),
    right: true,
  },
  {
    title: 'replicas',
    value: ({ replicas }) =>
      replicas
        .map(({ node, state, role }) => {
          const note =
            state === 'voter' && role !== 'unknown' ? '' : ` (${state === 'voter' ? role : state})`;
          return `${node}${note}`;
        })
        .join(', '),
  },
  { title: 'rows', value: (group) => formatNumber(largest(group).rows), right: true },
  { title: 'size', value: (group) => formatBytes(largest(group).bytes), right: true },
  {
    title: 'state',
    value: ({ settled, leader, mayLead }) => {
      if (settled) return 'well';
      if (leader !== 0) return 'changing';
      return mayLead ? `no answer from ${mayLead.join(', ')}` : 'no leader';
    },
  },
];

function largest({ replicas, leader }: GroupReport): { rows: number; bytes: number } {
  return replicas.find(({ node }) => node === leader) ?? { rows: 0, bytes: 0 };
}

async function shown(report: ClusterReport, withGroups: boolean): Promise<string> {
  const { cluster, leader, level, nodes, groups } = report;
  const well = groups.filter(({ settled }) => settled).length;
  const lines = [
    card([
      ['cluster', cluster],
      ['metadata', leader === 0 ? 'no leader' : `node ${leader} leads`],
      [
        'level',
        nodes.every((one) => one.level === level)
          ? level
          : `${level}, as not all nodes have the same release`,
      ],
      ['groups', `${groups.length}, of which ${well} are well`],
    ]),
    '',
    await grid(nodeColumns, nodes),
  ];
  if (withGroups) lines.push('', await grid(groupColumns, groups));
  return lines.join('\n');
}

// ---- start

interface StartFlags {
  nodes?: number;
  dataDir: string;
  basePort?: number;
  json?: true;
  restart: boolean;
}

function startCommand(cluster: Command): void {
  const command = cluster
    .command('start [settings...]')
    .description('Run a whole cluster on this machine, for development and tests, until a signal.')
    .option('--nodes <number>', 'nodes (default: as many as there are, or 3)', wholeNumber)
    .option('--data-dir <path>', 'directory of all nodes', './polyrow-cluster')
    .option(
      '--base-port <port>',
      'ports of node n begin at this plus 10 (n - 1): Redis, InfluxDB, admin, three for the other nodes, and a tenth that shows other clusters that the block is taken (default: free ones, kept for later starts)',
      wholeNumber,
    )
    .option('--json', 'when it serves, print one line of JSON')
    .option('--no-restart', 'do not restart a node that ended by itself')
    .addHelpText('after', '\nSettings for all nodes come after two dashes: -- --wal.fsync always');
  command.action(async (settings: string[]) => {
    const { nodes, dataDir, basePort, json, restart } = command.opts<StartFlags>();
    // Loaded only here: no other command has use for it.
    const { LocalCluster } = await import('../cluster/local-cluster.ts');
    const local = await LocalCluster.open({
      ...{ dataDir, nodes, basePort, restarts: restart, remark },
      flags: settings,
    });
    let isStopping = false;
    onStopSignals(() => {
      isStopping = true;
      void local.stop().then(() => process.exit(0));
    });
    try {
      await local.start();
    } catch (error) {
      // The stop ends the process.
      if (isStopping) await new Promise<never>(() => {});
      throw error;
    }
    if (isStopping) return;
    await answer({ ...(json ? { json } : {}) }, { nodes: local.nodes }, (all) =>
      banner(local, all.nodes),
    );
  });
}

async function banner(local: LocalCluster, nodes: LocalCluster['nodes']): Promise<string> {
  const table = await grid(
    [
      { title: 'node', value: ({ id }) => String(id), right: true },
      { title: 'redis', value: ({ redis }) => redis },
      { title: 'influx', value: ({ influx }) => influx },
      { title: 'admin', value: ({ admin }) => admin },
      { title: 'pid', value: ({ pid }) => String(pid), right: true },
    ],
    nodes,
  );
  return `${table}\n\nIn ${local.directory.path}, with the logs. For other commands: --data-dir ${nodes[0]!.dataDir}\nReady. Ctrl-C stops all nodes.`;
}
