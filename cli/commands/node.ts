// `polyrow node`: nodes of a cluster.

import type { Command } from 'commander';
import type { ClusterReport } from '../../control/cluster/cluster-report.ts';
import { answer } from '../output/answer.ts';
import { grid } from '../output/grid.ts';
import type { AdminClient } from './admin-client.ts';
import { wholeNumber } from './argument-values.ts';
import { clusterPage, nodeColumns } from './cluster.ts';
import { type AccessFlags, withServer } from './server-access.ts';

const pollMs = 500;

interface DrainFlags extends AccessFlags {
  undo?: true;
  wait: boolean;
}

export function nodeCommand(program: Command): void {
  const node = program.command('node').description('Nodes of a cluster.');
  withServer(node.command('list').description('Show the nodes.'), async (client, flags) => {
    const { nodes } = await client.get<ClusterReport>(clusterPage);
    await answer(flags, nodes, (all) => grid(nodeColumns, all));
  });
  withServer(
    node
      .command('drain <node>')
      .description(
        'Move the leaders and replicas of a node to other nodes, so that it can be removed.',
      )
      .option('--undo', 'use the node again')
      .option('--no-wait', 'do not wait until the node has no replicas'),
    drain,
  );
  withServer(
    node
      .command('remove <node>')
      .description('Remove a drained node from the cluster permanently; its server ends.'),
    async (client, flags, text) => {
      const number = wholeNumber(text!);
      await client.request('DELETE', `${clusterPage}/nodes/${number}`);
      await answer(flags, { node: number, removed: true }, () => `node ${number} is removed`);
    },
  );
}

async function drain(client: AdminClient, flags: DrainFlags, text?: string): Promise<void> {
  const node = wholeNumber(text!);
  const state = flags.undo ? 'up' : 'draining';
  await client.request('PATCH', `${clusterPage}/nodes/${node}`, { state });
  let replicas = await replicasOn(client, node);
  while (!flags.undo && flags.wait && replicas > 0) {
    await new Promise((resolve) => setTimeout(resolve, pollMs));
    replicas = await replicasOn(client, node);
  }
  await answer(flags, { node, state, replicas }, () => {
    if (flags.undo) return `node ${node} is used again`;
    return replicas === 0
      ? `node ${node} has no replicas any more: polyrow node remove ${node} takes it out of the cluster`
      : `node ${node} is being drained: ${replicas} replicas are left`;
  });
}

async function replicasOn(client: AdminClient, node: number): Promise<number> {
  const { nodes } = await client.get<ClusterReport>(clusterPage);
  return nodes.find((one) => one.node === node)?.replicas ?? 0;
}
