// `polyrow simulate export`: the request units of the last minutes of a running server, or of all nodes of its cluster, as a
// trace.

import { writeFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { mostMinutesAsked } from '../../contracts/cluster.ts';
import type { NodeMinutes } from '../../control/cluster/cluster-admin.ts';
import type { ClusterReport } from '../../control/cluster/cluster-report.ts';
import type { TablePartitions } from '../../control/metadata/partition-catalog.ts';
import type { TableDescription } from '../../control/metadata/tables.ts';
import { clusterTrace, type RecordedPlane } from '../../control/scheduler/trace/cluster-trace.ts';
import type { Trace } from '../../control/scheduler/trace/trace.ts';
import { traceLines } from '../../control/scheduler/trace/trace-file.ts';
import { type MinuteUsage, usageTrace } from '../../control/scheduler/trace/usage-trace.ts';
import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { answer, remark } from '../output/answer.ts';
import type { AdminClient } from './admin-client.ts';
import { durationOf } from './argument-values.ts';
import { admissionOf } from './limit.ts';
import { type AccessFlags, withServer } from './server-access.ts';
import type { UsageAnswer } from './usage.ts';

const minuteMs = 60_000;
const mostRows = 10_000;
const mostLimits = 1000;
const tenantsOfPage = 1000;

export function simulateExportCommand(simulate: Command): void {
  withServer(
    simulate
      .command('export')
      .description(
        "Write a running server's usage of the last minutes to a file, for --trace; that of all nodes, where it is in a cluster.",
      )
      .argument('<file>', 'file to write')
      .addOption(
        new Option('--last <time>', 'how far back, as 20m or 24h')
          .argParser(durationOf)
          .default(60 * minuteMs, '1h'),
      ),
    async (client, flags: AccessFlags & { last: number }, file) => {
      // The minute that is not over yet would look as if load had fallen.
      const to = Math.floor(Date.now() / minuteMs) * minuteMs;
      const from = to - Math.max(minuteMs, Math.floor(flags.last / minuteMs) * minuteMs);
      const report = await clusterOf(client);
      const trace =
        report === undefined
          ? await serverTrace(client, from, to)
          : await traceOfCluster(client, report, from, to);
      tellEmptyStart(trace);
      writeFileSync(file, [...traceLines(trace)].join(''));
      const { header, tables, partitions, nodes } = trace;
      const told = {
        file,
        minutes: header.points,
        tables: tables.length,
        ...(report === undefined ? {} : { partitions: partitions.length, nodes: nodes.length }),
      };
      await answer(flags, told, () => {
        const what =
          report === undefined
            ? `${tables.length} tables (one for each tenant and plane)`
            : `${partitions.length} groups of replicas on ${nodes.length} nodes`;
        return `wrote ${header.points} minutes of ${what} to ${file}`;
      });
    },
  );
}

/** Minutes before the load began would look as if load had fallen, at each repetition of a short recording. */
function tellEmptyStart({ header: { points, dimensions }, series }: Trace): void {
  const isEmpty = (point: number): boolean =>
    series.every(({ values }) => dimensions.every((name) => values[name]![point] === 0));
  let empty = 0;
  while (empty < points && isEmpty(empty)) empty++;
  if (empty === 0) return;
  remark(
    `The first ${empty} of ${points} minutes have no load: --last ${points - empty}m leaves them out.`,
  );
}

/** Undefined for a server that is not a node of a cluster. */
async function clusterOf(client: AdminClient): Promise<ClusterReport | undefined> {
  try {
    return await client.get<ClusterReport>('/v1/cluster');
  } catch (error) {
    if (error instanceof ExitError && error.exitCode === exitCodes.conflict) return undefined;
    throw error;
  }
}

function nothingSpent(): ExitError {
  return new ExitError('nothing was spent in that time', exitCodes.missing);
}

async function serverTrace(client: AdminClient, from: number, to: number): Promise<Trace> {
  const rows = await minutesOf(client, from, to);
  if (rows.length === 0) throw nothingSpent();
  const limits = await admissionOf(client, { limit: mostLimits });
  const quotas = new Map(limits.map((one) => [`${one.tenant}/${one.plane}`, one.quotaRu]));
  return usageTrace(rows, from, to, quotas);
}

/** All rows of [from, to): in two halves where one answer does not hold them. */
async function minutesOf(client: AdminClient, from: number, to: number): Promise<MinuteUsage[]> {
  const query = { slot: 'minute', by: 'time,tenant,plane,class', from, to, limit: mostRows };
  const { usage, more } = await client.get<UsageAnswer>('/v1/ru', query);
  if (!more) return usage as MinuteUsage[];
  const middle = Math.floor((from + to) / 2 / minuteMs) * minuteMs;
  if (middle <= from) {
    remark(`A minute has more than ${mostRows} rows: the rest of it is left out.`);
    return usage as MinuteUsage[];
  }
  return [...(await minutesOf(client, from, middle)), ...(await minutesOf(client, middle, to))];
}

async function traceOfCluster(
  client: AdminClient,
  report: ClusterReport,
  from: number,
  to: number,
): Promise<Trace> {
  const minutes = (to - from) / minuteMs;
  const planes = await planesOf(client, from, to);
  const spent = planes.some(({ units }) => [...units.values()].some((all) => all.some(Boolean)));
  if (!spent) throw nothingSpent();
  tellGaps(report, planes);
  const tenants = await tenantsOf(client);
  const names = new Map(tenants.map(({ number, name }) => [number, name]));
  const tables = await partitionTables(client);
  return clusterTrace({
    startAt: from,
    minutes,
    nodes: report.nodes.filter(({ roles }) => roles.includes('node')),
    groups: report.groups,
    planes,
    tenantOf: (number) => names.get(number) ?? `#${number}`,
    tableOf: (partition) => tables.get(partition),
    quotas: new Map(
      tenants.flatMap(({ name, limits }) =>
        limits.ruPerSecond === 0
          ? []
          : ['redis', 'influx'].map((plane) => [`${name}/${plane}`, limits.ruPerSecond] as const),
      ),
    ),
  });
}

interface Collected extends RecordedPlane {
  capacity: number;
  readonly units: Map<number, Float32Array>;
}

async function planesOf(client: AdminClient, from: number, to: number): Promise<Collected[]> {
  const found = new Map<string, Collected>();
  for (let at = from; at < to; at += mostMinutesAsked * minuteMs) {
    const until = Math.min(to, at + mostMinutesAsked * minuteMs);
    const query = { from: at, to: until };
    const answered = await client.get<{ planes: NodeMinutes[] }>('/v1/cluster/minutes', query);
    for (const { node, plane, capacity, groups } of answered.planes) {
      const key = `${node}/${plane}`;
      const one = found.get(key) ?? { node, plane, capacity, units: new Map() };
      found.set(key, one);
      one.capacity = capacity;
      for (const { group, units } of groups) {
        let all = one.units.get(group);
        if (all === undefined) {
          all = new Float32Array((to - from) / minuteMs);
          one.units.set(group, all);
        }
        all.set(units, (at - from) / minuteMs);
      }
    }
  }
  return [...found.values()];
}

function tellGaps({ nodes }: ClusterReport, planes: readonly Collected[]): void {
  const silent = nodes
    .filter(({ state, roles }) => state !== 'removed' && roles.includes('node'))
    .filter(({ node }) => !planes.some((plane) => plane.node === node))
    .map(({ node }) => node);
  if (silent.length > 0) {
    remark(`No answer from node ${silent.join(', ')}: the load of its replicas is written as 0.`);
  }
  if (planes.every(({ capacity }) => capacity === 0)) {
    remark(
      'No node has measured its capacity yet: limits are such that pods use 40 % of them on average.',
    );
  }
}

type Tenant = Pick<TenantDefinition, 'name' | 'number' | 'limits'>;

async function tenantsOf(client: AdminClient): Promise<Tenant[]> {
  const all: Tenant[] = [];
  for (let after: number | undefined; ; ) {
    const query = { after, limit: tenantsOfPage };
    const { tenants } = await client.get<{ tenants: Tenant[] }>('/v1/tenants', query);
    all.push(...tenants);
    if (tenants.length < tenantsOfPage) return all;
    after = tenants.at(-1)!.number;
  }
}

/** `tenant/table` of each partition of a divided table. */
async function partitionTables(client: AdminClient): Promise<Map<number, string>> {
  const { tables } = await client.get<{ tables: TableDescription[] }>('/v1/tables');
  const found = new Map<number, string>();
  for (const { tenant, name, database, model, partitions } of tables) {
    if (partitions <= 1 || model === 'series') continue;
    const page = `/v1/tables/${encodeURIComponent(`${tenant}/${database}`)}/partitions`;
    const listed = await client.get<TablePartitions>(page);
    for (const { number } of listed.partitions) found.set(number, `${tenant}/${name}`);
  }
  return found;
}
