import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { replicaScheduling } from '../../control/scheduler/simulation/workloads/replica-scheduling.ts';
import { usualParameters } from '../../control/scheduler/xstor/parameters.ts';
import { SchedulingRun } from '../../control/scheduler/xstor/scheduling-run.ts';
import type { Planned } from './cluster/large-cluster.ts';
import type { Experiment, Measure } from './experiment.ts';

const run = promisify(execFile);

/** In a process of its own, so that its memory is its own. */
async function planned(nodes: number, replicas: number): Promise<Planned> {
  const program = join(import.meta.dirname, 'cluster', 'large-cluster.js');
  const { stdout } = await run(process.execPath, [program, String(nodes), String(replicas)]);
  return JSON.parse(stdout) as Planned;
}

export const planningSpeed: Experiment = {
  id: 'XS-5.3-candidates',
  title: 'How long planning takes, and how that grows',
  kind: 'LIVE',
  source: 'X-Stor, Algorithm 1; sizes of ours',
  setup:
    'The daily run on one core, each size in a process of its own: 1,440 minutes of four dimensions, rows of their own ' +
    'for the leader and the followers of each partition, 30 replicas a node. And 64 nodes with 20,000 replicas. ' +
    'Algorithm 1 alone on W-REPL.',
  async run({ quick, progress }) {
    const sizes = quick ? [63, 125] : [125, 250, 500, 1000];
    const grown: Planned[] = [];
    for (const nodes of sizes) {
      progress(`${nodes} nodes`);
      grown.push(await planned(nodes, nodes * 30));
    }
    const largest = grown.at(-1)!;
    const first = grown[quick ? 0 : 1]!;
    const perItem = ({ seconds, replicas }: Planned): number =>
      seconds / (replicas * Math.log(replicas));
    const measures: Measure[] = [
      {
        metric: `${largest.nodes} nodes, ${largest.replicas} replicas: seconds`,
        value: largest.seconds,
        threshold: 60,
        better: 'lower',
        without: largest.baselineSeconds,
      },
      {
        metric: `${largest.nodes} nodes: most memory of the process, MB`,
        value: largest.mostMegabytes,
        threshold: 4096,
        better: 'lower',
      },
      {
        metric: `growth from ${first.nodes} to ${largest.nodes} nodes, over that of n log n`,
        value: perItem(largest) / perItem(first),
        threshold: 1,
        better: 'lower',
      },
    ];
    if (!quick) {
      progress('64 nodes with 20,000 replicas');
      const dense = await planned(64, 20_000);
      measures.push(
        {
          metric: '64 nodes, 20,000 replicas: seconds',
          value: dense.seconds,
          threshold: 10,
          better: 'lower',
          without: dense.baselineSeconds,
        },
        {
          metric: '64 nodes, 20,000 replicas: most memory of the process, MB',
          value: dense.mostMegabytes,
          threshold: 1024,
          better: 'lower',
        },
      );
    }
    progress('Algorithm 1 on W-REPL');
    const model = replicaScheduling(1).model(1);
    const startedAt = performance.now();
    const { candidates } = new SchedulingRun(model, usualParameters);
    measures.push({
      metric: `candidates of ${candidates.size} pods of W-REPL, seconds`,
      value: (performance.now() - startedAt) / 1000,
      threshold: 5,
      better: 'lower',
    });
    const points = (of: (one: Planned) => number) =>
      grown.map((one): [number, number] => [one.replicas, of(one)]);
    const nLogN = {
      label: 'n log n, through the first point',
      points: points((one) => perItem(grown[0]!) * one.replicas * Math.log(one.replicas)),
    };
    return {
      measures,
      xLabel: 'replicas',
      yLabel: 'seconds',
      before: {
        title: 'the heaviest replica of the highest peak',
        lines: [{ label: 'seconds', points: points((one) => one.baselineSeconds) }],
      },
      after: {
        title: 'the daily run',
        lines: [{ label: 'seconds', points: points((one) => one.seconds) }, nLogN],
      },
    };
  },
};
