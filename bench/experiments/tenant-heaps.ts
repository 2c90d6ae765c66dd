import type { Placed, QueuedWork, QueueOrder } from '../../storage-node/admission/tenant-queue.ts';
import { TenantQueue } from '../../storage-node/admission/tenant-queue.ts';
import { WorkKind } from '../../storage-node/admission/work-kind.ts';
import { mean, median, percentile } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { Chance } from './sim/chance.ts';
import { runQueuedPod, type SourceRun } from './workloads/queued-pod.ts';

const slots = 8;
const serviceMs = 4;
const lightTenants = 9;
/** Of what the pod can do, by each of them. */
const lightLoad = 0.02;
const flood = 100;

/** A light tenant by itself, or all of them and then the one that floods. */
function run(order: QueueOrder, alone: boolean, seconds: number, seed: number): SourceRun[] {
  const make = () => ({ kind: WorkKind.smallRead, cost: 1, cpuMs: serviceMs });
  const light = (lightLoad * slots) / serviceMs;
  const tenants = Array.from({ length: alone ? 1 : lightTenants + 1 }, (_, tenant) => ({
    tenant,
    quota: 1,
    load: () => (tenant === lightTenants ? flood : 1) * light,
    make,
  }));
  return runQueuedPod({
    slots,
    queues: { order, limits: false, tenantCap: false },
    seconds,
    seed,
    sources: tenants,
  });
}

class Item implements QueuedWork {
  readonly tenant: number;
  readonly arrivedAt: number;
  readonly deadline = Infinity;
  priority: number;
  startedAt: number;
  ticket: Placed | undefined = undefined;

  constructor(tenant: number, priority: number, startedAt: number, now: number) {
    this.tenant = tenant;
    this.priority = priority;
    this.startedAt = startedAt;
    this.arrivedAt = now;
  }
}

const queued = 1_000_000;
const batches = 20;
const batch = 5000;

/** Microseconds for one piece of work that leaves a queue of a million, those of one tenant but a few. */
function dequeueTime(): number {
  const chance = new Chance(1);
  const queue = new TenantQueue<Item>(
    () => 1,
    () => {},
    { order: 'least-granted' },
  );
  for (let tenant = 0; tenant <= lightTenants; tenant++) queue.setWeight(tenant, 1);
  let now = 0;
  const fill = (): void => {
    while (queue.length < queued) {
      now += 0.01;
      const isFlood = chance.happens(flood / (flood + lightTenants));
      const tenant = isFlood ? lightTenants : chance.below(lightTenants);
      queue.push(new Item(tenant, chance.below(3), now - chance.below(1000), now), now);
    }
  };
  const times: number[] = [];
  for (let n = 0; n < batches; n++) {
    fill();
    const from = performance.now();
    for (let popped = 0; popped < batch; popped++) queue.pop(now);
    times.push(((performance.now() - from) * 1000) / batch);
  }
  return median(times);
}

/** p99 of the light tenants together. */
function line(label: string, runs: readonly SourceRun[]): Line {
  return {
    label,
    points: runs[0]!.bySecond.flatMap((_, second): [number, number][] => {
      const all = runs.slice(0, lightTenants).flatMap(({ bySecond }) => bySecond[second]!);
      return all.length === 0 ? [] : [[second, percentile(all, 0.99)]];
    }),
  };
}

export const tenantHeaps: Experiment = {
  id: 'CR-heaps',
  title: 'A heap of tenants, and in each a heap of work',
  kind: 'SIM',
  source: "J. Vanlightly's analysis of serverless CockroachDB, part 2, admission control",
  setup:
    'A pod with eight slots; nine tenants send 2 % of what it can do each, a tenth sends a hundred times as much as one of ' +
    'them. The tenant that was granted least has its turn; without the mechanism the one that asks for most, as the text ' +
    'has it by the letter. The time of a dequeue is measured on the machine that runs this, with a million pieces waiting.',
  run({ seeds, quick, progress }) {
    const seconds = quick ? 6 : 20;
    // Before the runs leave their results in memory.
    progress('a million pieces of work');
    const dequeue = dequeueTime();
    const all = (order: QueueOrder, alone = false) =>
      seeds.map((seed) => {
        progress(`${order}${alone ? ', alone' : ''}, seed ${seed}`);
        return run(order, alone, seconds, seed);
      });
    const alone = all('least-granted', true);
    const [before, fifo, after] = [all('most-requested'), all('fifo'), all('least-granted')];
    const p99 = (runs: readonly SourceRun[][]): number =>
      mean(
        runs.map((one) =>
          percentile(
            one.slice(0, lightTenants).flatMap(({ latencies }) => latencies),
            0.99,
          ),
        ),
      );
    return {
      measures: [
        {
          metric: 'p99 of light tenants beside the flood, of one alone',
          value: p99(after) / p99(alone),
          threshold: 1.5,
          better: 'lower',
          without: p99(before) / p99(alone),
        },
        {
          metric: 'p99 of light tenants, of that in order of arrival',
          value: p99(after) / p99(fifo),
          threshold: 1,
          better: 'lower',
          without: p99(before) / p99(fifo),
        },
        {
          metric: 'a dequeue from a million, µs',
          value: dequeue,
          threshold: 5,
          better: 'lower',
        },
      ],
      xLabel: 'second',
      yLabel: 'p99 of light tenants, ms',
      before: {
        title: 'most requested, and arrival',
        lines: [line('most requested', before[0]!), line('arrival', fifo[0]!)],
      },
      after: {
        title: 'least granted',
        lines: [line('least granted', after[0]!)],
      },
    };
  },
};
