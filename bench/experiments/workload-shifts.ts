// ABase: latencies of a pool's tenants while the load of some of them changes.

import { defaultPoolRules } from '../../control/autoscaler/scaling/pool-rules.ts';
import { TokenBucket } from '../../request-units/token-bucket.ts';
import { IoScheduler } from '../../storage-node/admission/disk/io-scheduler.ts';
import { FairQueue } from '../../storage-node/admission/fair-queue.ts';
import { percentile } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';
import { Chance } from './sim/chance.ts';
import { Simulation } from './sim/simulation.ts';

const tenantCount = 100;
const shiftedCount = 30;
const slaMs = 50;
/**
 * A node's figures: processor time of a request, disk time of a miss, and concurrent disk
 * operations.
 */
const cpuMs = 0.08;
const diskMs = 2;
const diskWorkers = 4;
/** Cost of a request in the scarcer of both resources, in milliseconds of the node. */
const costOf = (isHit: boolean): number => (isHit ? cpuMs : Math.max(cpuMs, diskMs / diskWorkers));
/** Use of a quota, the lowest that ABase's Algorithm 1 leaves. */
const useOfQuota = 0.65;
/** Reads that a tenant's hit ratio is estimated from. */
const window = 100;

/** Changes of a tenant's traffic and hit ratio, as on Double 11 in the paper. */
const shifts: readonly { traffic: number; hits: (before: number) => number }[] = [
  { traffic: 1.5, hits: (before) => before },
  { traffic: 1.5, hits: (before) => before - 0.2 },
  { traffic: 1.5, hits: (before) => Math.min(1, before + 0.1) },
  { traffic: 1, hits: (before) => before - 0.1 },
  { traffic: 1, hits: () => 0.02 },
];
const cachedShift = 4;

interface Tenant {
  /** Requests a second, and share of them that the node's cache answers. */
  rate: number;
  hits: number;
  shift: number | undefined;
}

/** Loads of a node with as much idle as the pool's rules want, in the scarcer resource. */
function drawTenants(chance: Chance): Tenant[] {
  const drawn = Array.from({ length: tenantCount }, (_, i): Tenant => {
    const shift = i < shiftedCount ? i % shifts.length : undefined;
    const misses = Math.min(0.9, chance.lognormal(Math.log(0.065), 1));
    // Quotas of a pool are at most a tenth of it.
    const rate = Math.min(5, chance.lognormal(0, 0.8));
    return { rate, hits: shift === cachedShift ? 1 : 1 - misses, shift };
  });
  const cpu = drawn.reduce((sum, { rate }) => sum + (rate * cpuMs) / 1000, 0);
  const disk = drawn.reduce(
    (sum, { rate, hits }) => sum + (rate * (1 - hits) * diskMs) / diskWorkers / 1000,
    0,
  );
  const scale = (1 - defaultPoolRules.idlePart) / Math.max(cpu, disk);
  return drawn.map((tenant) => ({ ...tenant, rate: tenant.rate * scale }));
}

interface Options {
  /** Whether the shifts happen. */
  shifts: boolean;
  /** Fair queues, or one FIFO queue before the processor and one before the disk. */
  order: 'fair' | 'fifo';
  /** Whether tenants are held to their quotas. */
  quotas: boolean;
  seconds: number;
}

interface Run {
  /** Milliseconds of each tenant's requests of the second half, in which the shifts are. */
  latencies: number[][];
  refused: number;
  asked: number;
}

interface Job {
  tenant: number;
  isHit: boolean;
  at: number;
}

function run(tenants: readonly Tenant[], seed: number, options: Options): Run {
  const { seconds, order } = options;
  const simulation = new Simulation();
  const chance = new Chance(seed);
  const shiftAt = (seconds * 1000) / 2;
  const settled = shiftAt + (seconds * 1000) / 10;
  const result: Run = { latencies: tenants.map(() => []), refused: 0, asked: 0 };
  const done = ({ tenant, at }: Job): void => {
    if (at >= settled) result.latencies[tenant]!.push(simulation.now() - at);
  };
  const disk = order === 'fair' ? fairDisk(simulation, tenants) : lineOf(diskWorkers, simulation);
  const cpu = cpuQueue(tenants, order, (job) => {
    if (job.isHit) done(job);
    else disk(job, diskMs * chance.uniform(0.7, 1.3), () => done(job));
  });
  let isBusy = false;
  const work = (): void => {
    const job = isBusy ? undefined : cpu.pop();
    if (job === undefined) return;
    isBusy = true;
    simulation.after(cpuMs * chance.uniform(0.7, 1.3), () => {
      isBusy = false;
      cpu.served(job);
      work();
    });
  };
  tenants.forEach(({ rate, hits, shift }, tenant) => {
    const ru = rate * (hits * costOf(true) + (1 - hits) * costOf(false));
    const bucket = new TokenBucket(ru / useOfQuota, ru / useOfQuota, 0);
    let expectedHits = hits;
    const next = (): void => {
      const isShifted = options.shifts && shift !== undefined && simulation.now() >= shiftAt;
      const to = isShifted ? shifts[shift] : undefined;
      simulation.after(chance.exponential((rate * (to?.traffic ?? 1)) / 1000), () => {
        const at = simulation.now();
        const isHit = chance.happens(Math.max(0, to === undefined ? hits : to.hits(hits)));
        const expected = expectedHits * costOf(true) + (1 - expectedHits) * costOf(false);
        if (at >= settled) result.asked++;
        if (options.quotas && !bucket.take(expected, at)) {
          if (at >= settled) result.refused++;
        } else {
          // The actual cost is debited afterwards.
          bucket.debit(costOf(isHit) - expected, at);
          expectedHits += (Number(isHit) - expectedHits) / window;
          cpu.push({ tenant, isHit, at });
          work();
        }
        next();
      });
    };
    next();
  });
  simulation.runUntil(seconds * 1000);
  return result;
}

function cpuQueue(
  tenants: readonly Tenant[],
  order: Options['order'],
  served: (job: Job) => void,
): { push: (job: Job) => void; pop: () => Job | undefined; served: (job: Job) => void } {
  if (order === 'fifo') {
    const line: Job[] = [];
    let head = 0;
    return { push: (job) => line.push(job), pop: () => line[head] && line[head++], served };
  }
  const fair = new FairQueue<Job>();
  const total = tenants.reduce((sum, { rate }) => sum + rate, 0);
  tenants.forEach(({ rate }, tenant) => fair.setWeight(tenant, rate / total));
  return { push: (job) => fair.push(job.tenant, 1, job), pop: () => fair.pop(), served };
}

type Disk = (job: Job, takesMs: number, done: () => void) => void;

/** The server's scheduler with its defaults. */
function fairDisk(simulation: Simulation, tenants: readonly Tenant[]): Disk {
  const scheduler = new IoScheduler({ clock: simulation, ownerOf: (table) => table });
  tenants.forEach(({ rate }, tenant) => scheduler.setWeight(tenant, rate));
  return ({ tenant }, takesMs, done) =>
    scheduler.pass(tenant, 1, false, () => ({
      then(ended) {
        simulation.after(takesMs, () => {
          done();
          void ended?.(1000);
        });
        return undefined as never;
      },
    }));
}

/** One line before so many workers. */
function lineOf(workers: number, simulation: Simulation): Disk {
  const line: (() => void)[] = [];
  let [head, busy] = [0, 0];
  const work = (): void => {
    while (busy < workers && head < line.length) {
      busy++;
      line[head++]!();
    }
  };
  return (_, takesMs, done) => {
    line.push(() =>
      simulation.after(takesMs, () => {
        done();
        busy--;
        work();
      }),
    );
    work();
  };
}

/** The 99th percentile of each tenant over its limit, ascending. */
function ofSla({ latencies }: Run): number[] {
  return latencies
    .filter((of) => of.length > 0)
    .map((of) => percentile(of, 0.99) / slaMs)
    .sort((a, b) => a - b);
}

function unshiftedP99({ latencies }: Run): number {
  return percentile(latencies.slice(shiftedCount).flat(), 0.99);
}

export const workloadShifts: Experiment = {
  id: 'AB-6-slo',
  title: 'Latencies stay while tenants change what they do',
  kind: 'SIM',
  source: 'ABase, section 6.2 and figures 4 and 5',
  setup:
    `A node with ${tenantCount} tenants and a fifth idle: ${cpuMs} ms of its processor a request, ${diskMs} ms of one of four ` +
    "disk operations a miss, in the server's fair queue and I/O scheduler, each tenant held to a quota of which it uses 65 %, by " +
    'the hit ratio of its last 100 reads. Then 30 tenants shift, six in each way: half as much traffic more with hits as they ' +
    'were, 20 points fewer or 10 more; 10 points fewer hits; and hits that fall from 100 to 2 %. The limit on p99 is 50 ms. ' +
    'Without: the same requests in one line. Of unshifted tenants: p99 over all of their requests.',
  run({ seeds, quick, progress }) {
    const seconds = quick ? 10 : 40;
    const usual: Options = { shifts: true, order: 'fair', quotas: true, seconds };
    const runs = seeds.map((seed) => {
      progress(`seed ${seed}`);
      const tenants = drawTenants(new Chance(seed));
      const of = (options: Partial<Options>): Run => run(tenants, seed, { ...usual, ...options });
      return {
        ours: of({}),
        calm: of({ shifts: false }),
        line: of({ order: 'fifo' }),
        free: of({ quotas: false }),
      };
    });
    type Name = keyof (typeof runs)[number];
    const at = (name: Name, part: number): number[] =>
      runs.map((one) => percentile(ofSla(one[name]), part));
    const growth = (name: Name): number[] =>
      runs.map((one) => unshiftedP99(one[name]) / unshiftedP99(one.calm));
    const refused = (name: Name): number[] =>
      runs.map((one) => (100 * one[name].refused) / one[name].asked);
    const part = (metric: string, of: number, threshold: number, paper: string) =>
      overSeeds(
        at('ours', of),
        { metric: `p99 of tenants over their limit, ${metric}`, threshold, better: 'lower', paper },
        at('line', of),
      );
    const line = (name: Name): Line => ({
      label: 'p99 over the limit',
      points: ofSla(runs[0]![name]).map((value, rank) => [rank, value]),
    });
    const mean = (values: readonly number[]): number =>
      values.reduce((sum, value) => sum + value, 0) / values.length;
    return {
      measures: [
        part('the highest', 1, 0.66, '66.0 %'),
        part('90th percentile', 0.9, 0.24, '24.0 %'),
        part('median', 0.5, 0.112, '11.2 %'),
        overSeeds(
          growth('ours'),
          {
            metric: 'p99 of unshifted tenants, of that without shifts',
            threshold: 1.1,
            better: 'lower',
          },
          growth('line'),
        ),
        overSeeds(
          growth('ours'),
          {
            metric: 'the same, beside no quotas',
            threshold: mean(growth('free')),
            better: 'lower',
          },
          growth('free'),
        ),
        overSeeds(refused('calm'), {
          metric: 'requests refused by quotas without shifts, %',
          threshold: 0.1,
          better: 'lower',
        }),
      ],
      explanation: `Quotas refuse ${mean(refused('ours')).toFixed(1)} % of all requests after the shifts: of tenants whose misses cost them more than their quota. The order does not keep latencies low: in one line p99 is lower for most tenants. Unshifted tenants wait longer, as the node is used more.`,
      xLabel: 'tenant, by p99',
      yLabel: 'p99 over the limit',
      before: { title: 'one line', lines: [line('line')] },
      after: { title: 'fair queues', lines: [line('ours')] },
    };
  },
};
