import { FairQueue } from '../../storage-node/admission/fair-queue.ts';
import { mean } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { Chance } from './sim/chance.ts';
import { Simulation } from './sim/simulation.ts';

/** Cost units a second that the node does, one request at a time. */
const nodeRate = 1000;
const largestCost = 20;

interface Request {
  tenant: number;
  cost: number;
  /** When it would be done on a node of its tenant's own, of its share's rate. */
  alone: number;
}

interface Load {
  weight: number;
  /** Cost units a second. */
  offered: number;
}

interface Run {
  /** Cost served, by tenant. */
  served: number[];
  /** The most by which a request of the first tenant was later than on a node of its own, of its share's rate; ms. */
  latest: number;
  lines: Line[];
}

function run(fair: boolean, loads: readonly Load[], seconds: number, seed: number): Run {
  const simulation = new Simulation();
  const chance = new Chance(seed);
  const total = loads.reduce((sum, { weight }) => sum + weight, 0);
  const queue = new FairQueue<Request>();
  const fifo: Request[] = [];
  let head = 0;
  let isBusy = false;
  const served = loads.map(() => 0);
  const share = (nodeRate * loads[0]!.weight) / total;
  let latest = -Infinity;
  const bySecond = loads.map(() => new Float64Array(seconds + 1));
  const serve = (): void => {
    if (isBusy) return;
    const next = fair ? queue.pop() : fifo[head];
    if (next === undefined) return;
    if (!fair) head++;
    isBusy = true;
    simulation.after((next.cost * 1000) / nodeRate, () => {
      isBusy = false;
      if (next.tenant === 0) latest = Math.max(latest, simulation.now() - next.alone);
      served[next.tenant]! += next.cost;
      bySecond[next.tenant]![Math.floor(simulation.now() / 1000)]! += next.cost;
      serve();
    });
  };
  loads.forEach(({ weight, offered }, tenant) => {
    queue.setWeight(tenant, weight / total);
    let alone = 0;
    const generate = (): void => {
      const cost = 1 + chance.below(largestCost);
      simulation.after(chance.exponential(offered / 1000 / cost), () => {
        alone = Math.max(alone, simulation.now()) + (cost * 1000) / share;
        const request = { tenant, cost, alone };
        if (fair) queue.push(tenant, cost, request);
        else fifo.push(request);
        serve();
        generate();
      });
    };
    generate();
  });
  simulation.runUntil(seconds * 1000);
  return {
    served,
    latest,
    lines: loads.map(({ weight }, tenant) => ({
      label: `quota ${weight}`,
      points: Array.from(bySecond[tenant]!.subarray(0, seconds), (cost, s): [number, number] => [
        s,
        cost,
      ]),
    })),
  };
}

export const fairQueue: Experiment = {
  id: 'AB-4.3-wfq',
  title: 'Requests in the order of their virtual finish times',
  kind: 'SIM',
  source: 'ABase, section 4.3',
  setup:
    'Tenants with quotas of 1, 2 and 4 who all offer more than the node can do, in requests of 1 to 20 units; 32 equal ' +
    'ones of whom some offer eight times as much as others; and one that offers half of its share beside one that ' +
    'offers twice what the node can do. Without the mechanism all wait in one line.',
  run({ seeds, quick }) {
    const seconds = quick ? 60 : 300;
    const backlogged = [1, 2, 4].map((weight) => ({
      weight,
      offered: nodeRate * (1.2 - weight / 8),
    }));
    const equal = Array.from({ length: 32 }, (_, i) => ({
      weight: 1,
      offered: (nodeRate / 32) * (1.2 + (i % 8)),
    }));
    const shared = [
      { weight: 1, offered: nodeRate / 4 },
      { weight: 1, offered: nodeRate * 2 },
    ];
    const runs = (fair: boolean, loads: readonly Load[]) =>
      seeds.map((seed) => run(fair, loads, seconds, seed));
    const [before, after] = [runs(false, backlogged), runs(true, backlogged)];
    const [equalBefore, equalAfter] = [runs(false, equal), runs(true, equal)];
    const sharedAfter = runs(true, shared);
    const sharedBefore = runs(false, shared);
    const latest = (all: readonly Run[]): number => Math.max(...all.map((one) => one.latest));
    return {
      measures: [
        {
          metric: 'served by quota 1:2:4, furthest from it, %',
          value: mean(after.map(({ served }) => offQuota(served))),
          threshold: 3,
          better: 'lower',
          without: mean(before.map(({ served }) => offQuota(served))),
        },
        {
          metric: "Jain's index of 32 tenants with equal quotas",
          value: mean(equalAfter.map(({ served }) => jain(served))),
          threshold: 0.99,
          better: 'higher',
          without: mean(equalBefore.map(({ served }) => jain(served))),
        },
        {
          metric: 'latest answer to a tenant within its share, after that of a node of its own, ms',
          value: latest(sharedAfter),
          threshold: (largestCost * 1000) / nodeRate,
          better: 'lower',
          without: latest(sharedBefore),
        },
      ],
      xLabel: 'second',
      yLabel: 'served, units/s',
      before: { title: 'one line for all', lines: before[0]!.lines },
      after: { title: 'virtual finish times', lines: after[0]!.lines },
    };
  },
};

function offQuota(served: readonly number[]): number {
  const total = served.reduce((sum, cost) => sum + cost, 0);
  return Math.max(
    ...[1 / 7, 2 / 7, 4 / 7].map((share, i) => 100 * Math.abs(served[i]! / total / share - 1)),
  );
}

function jain(served: readonly number[]): number {
  const sum = served.reduce((total, cost) => total + cost, 0);
  return (sum * sum) / (served.length * served.reduce((total, cost) => total + cost * cost, 0));
}
