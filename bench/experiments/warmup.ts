import { WarmupCredit } from '../../access/admission/warmup-credit.ts';
import { TokenBucket } from '../../request-units/token-bucket.ts';
import type { Experiment, Line } from './experiment.ts';
import { type NodeTenantRun, runNode, servedLines, sumOf } from './workloads/node.ts';

const quota = 50;
const others = 3;
const otherLoad = 100;
const pod = 500;
/** Requests that it works on at a time. */
const slots = 32;

interface Run {
  /** Seconds until the whole load was in. */
  finishedAt: number;
  tenants: NodeTenantRun[];
}

/** A new tenant loads `units` into a pod on which three others are at two thirds of their quotas. */
function run(factor: number, units: number, seed: number): Run {
  const credit = new WarmupCredit(0, { factor });
  let rate = quota * factor;
  const bucket = new TokenBucket(rate, rate, 0);
  let admitted = 0;
  let finishedAt = 0;
  const tenants = runNode({
    rate: pod,
    slots,
    refusalCost: 0,
    queueLength: 10_000,
    queueOf: 'each',
    order: 'fair',
    seconds: Math.ceil((units / quota) * 1.05),
    seed,
    tenants: [
      {
        // A loader retries refused requests, and ends when all of its data is in.
        load: () => (admitted < units ? quota * 5 : 0.001),
        weight: quota,
        proxy: (now) => {
          if (admitted >= units) return false;
          if (rate !== quota * credit.factor(now)) {
            rate = quota * credit.factor(now);
            bucket.reshape(rate, rate, now);
          }
          if (!bucket.take(1, now)) return false;
          admitted++;
          finishedAt = now / 1000;
          return true;
        },
      },
      ...Array.from({ length: others }, () => ({ load: () => otherLoad, weight: 150 })),
    ],
  });
  return { finishedAt, tenants };
}

/** Milliseconds, over the others' requests of the first so many seconds. */
function p99OfOthers({ tenants }: Run, seconds: number): number {
  const all = Float64Array.from(
    tenants.slice(1).flatMap(({ latencies }) => latencies.slice(0, seconds).flat()),
  ).sort();
  return all[Math.floor(all.length * 0.99)]!;
}

function lines({ tenants }: Run): Line[] {
  const [loader, ...rest] = servedLines(tenants);
  return [{ ...loader!, label: 'loading tenant' }, ...rest];
}

export const warmup: Experiment = {
  id: 'AWS-warmup',
  title: 'A new tenant may use three times its quota, once',
  kind: 'SIM',
  source: 'Amazon, Fairness in multi-tenant systems, "Quota visibility and flexibility"',
  setup:
    'A new tenant loads 600 s of its quota, a tenth of a pod, into a pod with a fair queue on which three others use two ' +
    'thirds of theirs, three tenths of the pod each: it is at 70 % with the quota, and at 90 % with the credit.',
  run({ quick, seeds, progress }) {
    const units = quota * 600;
    const some = quick ? seeds.slice(0, 2) : seeds;
    const runs = (factor: number): Run[] =>
      some.map((seed) => {
        progress(`factor ${factor}, seed ${seed}`);
        return run(factor, units, seed);
      });
    const before = runs(1);
    const after = runs(3);
    const mean = (values: readonly number[]): number => sumOf(values) / values.length;
    // p99 over the time in which the credit is used.
    const p99 = (all: readonly Run[]): number =>
      mean(all.map((one, i) => p99OfOthers(one, Math.ceil(after[i]!.finishedAt))));
    const admittedLater = after.map(({ tenants }) => sumOf(tenants[0]!.served) / units);
    return {
      measures: [
        {
          metric: 'time of the load without the credit, of that with it',
          value: mean(before.map((one, i) => one.finishedAt / after[i]!.finishedAt)),
          threshold: 2,
          better: 'higher',
        },
        {
          metric: "others' p99 while it is used, of that without it",
          value: p99(after) / p99(before),
          threshold: 1.1,
          better: 'lower',
        },
        {
          metric: 'part of the load that was served',
          value: Math.min(...admittedLater),
          threshold: 1,
          better: 'higher',
        },
      ],
      xLabel: 'second',
      yLabel: 'served/s',
      before: { title: 'the quota only', lines: lines(before[0]!) },
      after: { title: 'with the credit', lines: lines(after[0]!) },
      explanation:
        "The others' p99 depends on how many requests the pod works on at a time, here 32: a fair queue puts them before the " +
        'load, and does not interrupt what has begun. With 8 or 16 at a time their p99 rises by 11 to 13 % at this use of the pod.',
    };
  },
};
