// `polyrow partition`: lists, splits, merges and moves partitions of the tables behind Redis databases.

import { type Command, Option } from 'commander';
import { isPartition } from '../../contracts/partition-map.ts';
import { defaultTenant } from '../../contracts/tenancy/definitions.ts';
import type { ClusterReport } from '../../control/cluster/cluster-report.ts';
import type { TablePartitions } from '../../control/metadata/partition-catalog.ts';
import type { SeriesPartitions } from '../../control/metadata/tables.ts';
import { seriesModel, tableModels } from '../../control/metadata/table-definition.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { answer } from '../output/answer.ts';
import { grid } from '../output/grid.ts';
import { formatNumber } from '../output/values.ts';
import type { AdminClient } from './admin-client.ts';
import { tablesPage } from './admin-pages.ts';
import { wholeNumber } from './argument-values.ts';
import { clusterPage } from './cluster.ts';
import { type AccessFlags, withServer } from './server-access.ts';

interface ChangeFlags extends AccessFlags {
  at?: number;
  model?: string;
  wait: boolean;
}

interface MoveFlags extends ChangeFlags {
  from?: number;
  to?: number;
}

const pollMs = 100;

export function partitionCommand(program: Command): void {
  const partition = program
    .command('partition')
    .description('Partitions of a table: the ranges of slots that it is divided into.');
  withServer(
    partition.command('list <table>').description('Show the partitions of a table.'),
    async (client, flags: AccessFlags, table) => {
      const found = await client.get<TablePartitions | SeriesPartitions>(pageOf(table!));
      if (isSeries(found)) await answer(flags, found, shownSeries);
      else await answer(flags, found, shown);
    },
  );
  withServer(
    withWait(
      partition
        .command('split <table> <partition>')
        .description('Divide a partition in two without interrupting clients.')
        .option(
          '--at <slot>',
          'first slot of the upper part (default: in the middle)',
          wholeNumber,
        ),
    ),
    (client, flags: ChangeFlags, table, number) =>
      change(client, flags, table!, {
        kind: 'split',
        partition: wholeNumber(number!),
        ...(flags.at === undefined ? {} : { at: flags.at }),
      }),
  );
  withServer(
    withWait(
      partition
        .command('merge <table> <partition> <neighbour>')
        .description('Make one of two partitions whose slots adjoin.'),
    ),
    (client, flags: ChangeFlags, table, number, neighbour) =>
      change(client, flags, table!, {
        kind: 'merge',
        partitions: [wholeNumber(number!), wholeNumber(neighbour!)],
      }),
  );
  withServer(
    withWait(
      partition
        .command('move <table> [partition]')
        .description(
          'Move the rows of a partition to another engine; or, in a cluster, a replica from one node to another.',
        )
        .addOption(new Option('--model <model>', 'the engine').choices([...tableModels]))
        .option('--from <node>', 'node that has a replica', wholeNumber)
        .option('--to <node>', 'node that is to have it', wholeNumber),
    ),
    (client, flags: MoveFlags, table, number) => move(client, flags, table!, number),
  );
  withServer(
    partition
      .command('transfer <table> [partition]')
      .description(
        'Make a node of a cluster the leader of a partition. group:N names a group of replicas.',
      )
      .addOption(
        new Option('--to <node>', 'the node').argParser(wholeNumber).makeOptionMandatory(),
      ),
    async (client, flags: AccessFlags & { to: number }, table, number) => {
      const group = await groupOf(client, table!, number);
      await client.request('POST', `${clusterPage}/groups/${group}/transfer`, { to: flags.to });
      await answer(
        flags,
        { group, leader: flags.to },
        () => `node ${flags.to} leads group ${group}`,
      );
    },
  );
  withServer(
    partition
      .command('cancel <table>')
      .description('Give up the change that is under way: the partitions stay as they are.'),
    async (client, flags: AccessFlags, table) => {
      const found = (await client.request('DELETE', pageOf(table!))) as TablePartitions;
      await answer(flags, found, shown);
    },
  );
}

function withWait(command: Command): Command {
  return command.option('--no-wait', 'do not wait for the end of the copy');
}

function pageOf(table: string): string {
  return `${tablesPage(undefined)}/${encodeURIComponent(table)}/partitions`;
}

async function change(
  client: AdminClient,
  flags: ChangeFlags,
  table: string,
  order: object,
): Promise<void> {
  const page = pageOf(table);
  let found = (await client.request('POST', page, order)) as TablePartitions;
  while (flags.wait && found.change !== undefined) {
    await new Promise((resolve) => setTimeout(resolve, pollMs));
    found = await client.get<TablePartitions>(page);
  }
  if (flags.wait && found.failure !== undefined) {
    throw new ExitError(`the partitions are as they were: ${found.failure}`, exitCodes.failed);
  }
  await answer(flags, found, shown);
}

async function move(
  client: AdminClient,
  flags: MoveFlags,
  table: string,
  number: string | undefined,
): Promise<void> {
  const { model, from, to } = flags;
  if (model !== undefined && number !== undefined && from === undefined && to === undefined) {
    await change(client, flags, table, { kind: 'move', partition: wholeNumber(number), model });
    return;
  }
  if (model !== undefined || from === undefined || to === undefined) {
    throw new ExitError(
      'say --model and a partition, or --from and --to with nodes of the cluster',
      exitCodes.usage,
    );
  }
  const group = await groupOf(client, table, number);
  await client.request('POST', `${clusterPage}/groups/${group}/move`, { from, to });
  while (flags.wait && (await hasReplica(client, group, from))) {
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  await answer(flags, { group, from, to }, () =>
    flags.wait
      ? `group ${group} has a replica on node ${to} in place of node ${from}`
      : `a replica of group ${group} is being moved from node ${from} to node ${to}`,
  );
}

async function hasReplica(client: AdminClient, group: number, node: number): Promise<boolean> {
  const { groups } = await client.get<ClusterReport>(clusterPage);
  const found = groups.find((one) => one.group === group);
  return found?.replicas.some((replica) => replica.node === node) ?? false;
}

/** The group of replicas that has a partition; `group:17` names one itself. */
async function groupOf(
  client: AdminClient,
  table: string,
  number: string | undefined,
): Promise<number> {
  const [, named] = /^group:(\d{1,15})$/.exec(table) ?? [];
  if (named !== undefined) return Number(named);
  const { partitions } = await client.get<TablePartitions | SeriesPartitions>(pageOf(table));
  const wanted = number === undefined ? undefined : wholeNumber(number);
  const found = partitions.filter((one) => wanted === undefined || one.number === wanted);
  if (found.length !== 1) {
    const all = partitions.map((one) => one.number).join(', ');
    throw new ExitError(
      wanted === undefined
        ? `table ${table} has several partitions: name one of ${all}`
        : `table ${table} has no partition ${wanted}: there are ${all}`,
      exitCodes.usage,
    );
  }
  const { number: partition, model } = found[0]!;
  const tenant = table.includes('/') ? table.slice(0, table.indexOf('/')) : defaultTenant;
  const { number: owner } = await client.get<{ number: number }>(
    `/v1/tenants/${encodeURIComponent(tenant)}`,
  );
  const { groups } = await client.get<ClusterReport>(clusterPage);
  const group = groups.find((one) => {
    if (model === seriesModel) {
      const isWhole = one.series === undefined || one.series.partition + 1 === partition;
      return one.model === 'tsm' && one.tenant === owner && isWhole;
    }
    if (isPartition(partition)) return one.partition === partition;
    return one.partition === undefined && one.tenant === owner && one.model === model;
  });
  if (group !== undefined) return group.group;
  throw new ExitError(
    `there is no group of replicas for partition ${partition} yet`,
    exitCodes.missing,
  );
}

function isSeries(found: TablePartitions | SeriesPartitions): found is SeriesPartitions {
  return !('table' in found);
}

function shownSeries({ partitions }: SeriesPartitions): Promise<string> {
  return grid(
    [
      { title: 'partition', value: ({ number }) => String(number), right: true },
      { title: 'model', value: ({ model }) => model },
      {
        title: 'series',
        value: ({ series }) => (series === undefined ? '' : formatNumber(series)),
        right: true,
      },
    ],
    partitions,
  );
}

async function shown({ partitions, change: pending, failure }: TablePartitions): Promise<string> {
  const table = await grid(
    [
      { title: 'partition', value: ({ number }) => String(number), right: true },
      { title: 'slots', value: ({ first, last }) => `${first}-${last}` },
      { title: 'model', value: ({ model }) => model },
      {
        title: 'rows',
        value: ({ rows }) => (rows === undefined ? '' : formatNumber(rows)),
        right: true,
      },
    ],
    partitions,
  );
  const lines = [table];
  if (pending !== undefined) {
    const { sources, targets, status } = pending;
    const so = status.state === 'running' ? ` (${status.done} of ${status.total} rows)` : '';
    lines.push(
      `${sources.join(', ')} being copied to ${targets.map(({ number }) => number).join(', ')}${so}`,
    );
  }
  if (failure !== undefined) lines.push(`the last change failed: ${failure}`);
  return lines.join('\n');
}
