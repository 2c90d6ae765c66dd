import { mean } from '../support/statistics.ts';
import type { Experiment } from './experiment.ts';
import { podRate, type PodRun, runMemoryBoundPod } from './workloads/memory-bound-pod.ts';

export const podQueues: Experiment = {
  id: 'XS-5.2-queue',
  title: 'Queues for reads and writes beyond a threshold',
  kind: 'SIM',
  source: 'X-Stor, section 5.2 and Figure 13b',
  setup:
    'A model of a pod of time series on a heap of 512 MB, not a live one. Two tenants write more than half of the ' +
    `${podRate} LRU/s that it can do, and nine dashboards of the first ask for queries of 30 to 60 MB, again as soon as ` +
    'they are answered: rather more than the heap can take. The less memory is free, the more of the time goes to ' +
    'collecting garbage. Without the mechanism everything runs as it comes.',
  run({ seeds, quick, progress }) {
    const seconds = quick ? 120 : 600;
    const all = (queues: boolean): PodRun[] =>
      seeds.map((seed) => {
        progress(`${queues ? 'queues' : 'no queues'}, seed ${seed}`);
        return runMemoryBoundPod({ queues, seconds, seed });
      });
    const [before, after] = [all(false), all(true)];
    const throughput = (runs: readonly PodRun[]): number =>
      mean(runs.map(({ written, queried }) => written + queried));
    const latency = (runs: readonly PodRun[]): number => mean(runs.map((run) => run.latency));
    const wait = (runs: readonly PodRun[]): number =>
      Math.max(...runs.map(({ longestWait }) => longestWait)) / 1000;
    return {
      measures: [
        {
          metric: 'points and queries done, of that without queues',
          value: throughput(after) / throughput(before),
          threshold: 1.2,
          better: 'higher',
          paper: 'about 20 % more (Fig. 13b)',
        },
        {
          metric: 'mean latency of tenant 2, of that without queues',
          value: latency(after) / latency(before),
          threshold: 0.6,
          better: 'lower',
          paper: 'significantly reduced (Fig. 13b)',
        },
        {
          metric: 'longest wait of a query, s',
          value: wait(after),
          threshold: 30,
          better: 'lower',
          without: wait(before),
        },
        {
          metric: 'work that waited in a pod whose queues are off',
          value: mean(before.map(({ queued }) => queued)),
          threshold: 0,
          better: 'lower',
        },
      ],
      xLabel: 'second',
      yLabel: 'memory in use, MB',
      before: { title: 'everything runs as it comes', lines: [before[0]!.memory] },
      after: { title: 'queues beyond the threshold', lines: [after[0]!.memory] },
    };
  },
};
