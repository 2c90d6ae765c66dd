// `polyrow simulate`: plans of scheduling policies for a recorded or a generated cluster.

import { createReadStream } from 'node:fs';
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
import { readTrace, TraceError } from '../../control/scheduler/trace/trace-file.ts';
import { modelOf } from '../../control/scheduler/trace/trace-model.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { answer, remark } from '../output/answer.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { card } from '../output/grid.ts';
import { comparedReplays, describedReplay } from '../output/replay-view.ts';
import { positive, wholeNumber } from './argument-values.ts';
import { simulateExportCommand } from './simulate-export.ts';

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
    .option(
      '--pod-limit <units>',
      'units a second of each pod, in place of those of the recording',
      positive,
    )
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

  simulateExportCommand(simulate);
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

/** The same with other limits of pods, where one is given. */
function limited(trace: Trace, podLimit: number | undefined): Trace {
  if (podLimit === undefined) return trace;
  const limits = trace.header.dimensions.map(() => podLimit);
  return { ...trace, pods: trace.pods.map((pod) => ({ ...pod, limits })) };
}

function modelOfTrace(trace: Trace, flags: SimulateFlags): ClusterModel {
  const { nodes, partitions, skew, podLimit, tile, seed } = flags;
  try {
    const long = tile === undefined ? trace : tiled(trace, daySeconds);
    if (trace.pods.length > 0) return modelOf(limited(long, podLimit));
    const layout = { nodes, partitions, skew, ...(podLimit === undefined ? {} : { podLimit }) };
    remark('The recording has no pods: its tables are laid out on nodes that are made up.');
    return modelOf(laidOut(long, layout, new Chance(seed)));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ExitError(`${flags.trace}: ${error.message}`, exitCodes.usage);
  }
}
