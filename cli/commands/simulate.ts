// `polyrow simulate`: plans of scheduling policies for a recorded or a generated cluster.

import { createReadStream, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { ClusterModel } from '../../control/scheduler/cluster-model.ts';
import { Chance } from '../../control/scheduler/simulation/chance.ts';
import { policies } from '../../control/scheduler/simulation/policies.ts';
import { redrawn } from '../../control/scheduler/simulation/redraw.ts';
import { type Replay, replay } from '../../control/scheduler/simulation/replay.ts';
import type { Workload } from '../../control/scheduler/simulation/workload.ts';
import { mixedRegions } from '../../control/scheduler/simulation/workloads/mixed-regions.ts';
import { replicaScheduling } from '../../control/scheduler/simulation/workloads/replica-scheduling.ts';
import { resourcePool } from '../../control/scheduler/simulation/workloads/resource-pool.ts';
import { laidOut, usualLayout } from '../../control/scheduler/trace/layout.ts';
import { tiled } from '../../control/scheduler/trace/tile.ts';
import type { Trace } from '../../control/scheduler/trace/trace.ts';
import { readTrace, TraceError, traceLines } from '../../control/scheduler/trace/trace-file.ts';
import { modelOf } from '../../control/scheduler/trace/trace-model.ts';
import { type MinuteUsage, usageTrace } from '../../control/scheduler/trace/usage-trace.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { answer, remark } from '../output/answer.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { card } from '../output/grid.ts';
import { comparedReplays, describedReplay } from '../output/replay-view.ts';
import type { AdminClient } from './admin-client.ts';
import { admissionOf } from './limit.ts';
import { durationOf, positive, wholeNumber } from './argument-values.ts';
import { type AccessFlags, withServer } from './server-access.ts';
import type { UsageAnswer } from './usage.ts';

interface SimulateFlags {
  json?: true;
  trace?: string;
  workload?: string;
  policy: string;
  compare?: true;
  tile?: 'day';
  seed: number;
  nodes: number;
  partitions: number;
  skew: number;
  podLimit?: number;
}

const workloads: Readonly<Record<string, (seed: number) => Workload>> = {
  'W-REPL': (seed) => replicaScheduling(seed),
  'W-POOL': (seed) => resourcePool(seed),
  'W-MIX': (seed) => mixedRegions(seed),
};

const daySeconds = 86_400;
const minuteMs = 60_000;

export function simulateCommand(program: Command): void {
  const simulate = program
    .command('simulate')
    .description('Show what scheduling policies would do with a recorded cluster.')
    .option('--json', 'answer in JSON, for programs')
    .option('--trace <file>', 'the recording, as docs/simulation.md describes it')
    .addOption(
      new Option('--workload <name>', 'a cluster that is made up, in place of a recording').choices(
        Object.keys(workloads),
      ),
    )
    .addOption(
      new Option('--policy <name>', 'the policy that plans')
        .choices(Object.keys(policies))
        .default('xstor'),
    )
    .option('--compare', 'all policies side by side, in place of the plan of one')
    .addOption(
      new Option('--tile <time>', 'repeat a short recording until it is as long').choices(['day']),
    )
    .option('--seed <number>', 'of everything that is drawn', wholeNumber, 1)
    .option(
      '--nodes <number>',
      'without pods in the recording: nodes',
      atLeastThree,
      usualLayout.nodes,
    )
    .option(
      '--partitions <number>',
      'without pods: into how many each recorded partition is cut',
      positive,
      usualLayout.partitions,
    )
    .option(
      '--skew <number>',
      'without pods: how unlike their loads are',
      atLeastZero,
      usualLayout.skew,
    )
    .option('--pod-limit <units>', 'without pods: units a second of a pod', positive)
    .action(async (flags: SimulateFlags) => {
      const { planned, judged } = await draws(flags);
      const names = flags.compare ? Object.keys(policies) : [flags.policy];
      const replays = names.map((name) => {
        const policy = policies[name]!.make(planned.replicas.pod.length);
        return replay(planned, judged, policy, flags.seed, () => performance.now());
      });
      const size = {
        nodes: planned.nodes.ids.length,
        pods: planned.pods.ids.length,
        partitions: planned.partitions.ids.length,
        replicas: planned.replicas.pod.length,
        points: planned.points,
        pointSeconds: planned.pointSeconds,
      };
      await answer(flags, { cluster: size, replays }, async () => {
        const about = card([
          ['cluster', `${size.nodes} nodes, ${size.pods} pods`],
          ['data', `${size.partitions} partitions, ${size.replicas} replicas`],
          ['load', `${size.points} points, one every ${size.pointSeconds} s`],
        ]);
        const told = flags.compare
          ? await comparedReplays(replays)
          : describedReplay(first(replays));
        return `${about}\n\n${told}`;
      });
    });

  withServer(
    simulate
      .command('export')
      .description("Write a running server's usage of the last minutes to a file, for --trace.")
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
      const rows = await minutesOf(client, from, to);
      if (rows.length === 0) {
        throw new ExitError('nothing was spent in that time', exitCodes.missing);
      }
      const limits = await admissionOf(client, { limit: mostLimits });
      const quotas = new Map(limits.map((one) => [`${one.tenant}/${one.plane}`, one.quotaRu]));
      const trace = usageTrace(rows, from, to, quotas);
      writeFileSync(file, [...traceLines(trace)].join(''));
      const told = { file, minutes: trace.header.points, tables: trace.tables.length };
      await answer(flags, told, ({ minutes, tables }) => {
        const what = `${minutes} minutes of ${tables} tables (one for each tenant and plane)`;
        return `wrote ${what} to ${file}`;
      });
    },
  );
}

function first(replays: readonly Replay[]): Replay {
  return replays[0]!;
}

function atLeastThree(text: string): number {
  const value = wholeNumber(text);
  if (value < 3) throw new InvalidArgumentError('Three replicas need three nodes.');
  return value;
}

function atLeastZero(text: string): number {
  const value = Number(text);
  if (!(value >= 0 && value <= 10)) throw new InvalidArgumentError('It must be from 0 to 10.');
  return value;
}

/** The cluster that is planned on, and the same with the load that judges. */
async function draws(
  flags: SimulateFlags,
): Promise<{ planned: ClusterModel; judged: ClusterModel }> {
  if ((flags.trace === undefined) === (flags.workload === undefined)) {
    throw new ExitError('give one of --trace and --workload', exitCodes.usage);
  }
  if (flags.workload !== undefined) {
    const made = workloads[flags.workload]!(flags.seed);
    return { planned: made.model(1), judged: made.model(2) };
  }
  const planned = modelOfTrace(await traceOf(flags.trace!), flags);
  return { planned, judged: redrawn(planned, flags.seed) };
}

async function traceOf(path: string): Promise<Trace> {
  try {
    return await readTrace(createInterface({ input: createReadStream(path, 'utf8') }));
  } catch (error) {
    if (error instanceof TraceError || 'code' in (error as object)) {
      throw new ExitError(`${path}: ${(error as Error).message}`, exitCodes.usage);
    }
    throw error;
  }
}

function modelOfTrace(trace: Trace, flags: SimulateFlags): ClusterModel {
  const { nodes, partitions, skew, podLimit, tile, seed } = flags;
  try {
    const long = tile === undefined ? trace : tiled(trace, daySeconds);
    if (trace.pods.length > 0) return modelOf(long);
    const layout = { nodes, partitions, skew, ...(podLimit === undefined ? {} : { podLimit }) };
    remark('The recording has no pods: its tables are laid out on nodes that are made up.');
    return modelOf(laidOut(long, layout, new Chance(seed)));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ExitError(`${flags.trace}: ${error.message}`, exitCodes.usage);
  }
}

const mostRows = 10_000;
const mostLimits = 1000;

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
