import { QueryQueue, type WaitingQuery } from '../../access/admission/query-queue.ts';
import { lendUnits } from '../gateway-pools/lend-units.ts';
import type { Experiment, Line } from './experiment.ts';
import { Chance } from './sim/chance.ts';

const share = 1000;
const gatewayCount = 3;
/** Load relative to the quota: writes, evenly over the gateways; queries, all on the first one. */
const writeLoad = 0.3;
const queryLoad = 0.5;
const meanCost = 8 * share;
const most = 60 * share * gatewayCount;

interface Run {
  /** Seconds. */
  waits: number[];
  waiting: Line;
}

function run(lends: boolean, seconds: number, seed: number): Run {
  const chance = new Chance(seed);
  const queues = Array.from(
    { length: gatewayCount },
    () => new QueryQueue<WaitingQuery>({ length: Infinity }),
  );
  const busy = queues[0]!;
  const waits: number[] = [];
  const points: [number, number][] = [];
  const rate = (queryLoad * share * gatewayCount) / meanCost;
  let arrival = chance.exponential(rate);
  for (let second = 0; second < seconds; second++) {
    for (; arrival < second + 1; arrival += chance.exponential(rate)) {
      const cost = chance.lognormal(Math.log(meanCost) - 0.18, 0.6);
      const query = { cost, arrivedAt: arrival * 1000, deadline: Infinity };
      if (busy.arrive(query, most) === 'run') waits.push(0);
    }
    for (const { units } of queues) {
      units.endSecond(share * (1 - writeLoad * chance.uniform(0.9, 1.1)));
    }
    if (lends) lendUnits(queues, most);
    const now = second + 1;
    for (let next = busy.next(most); next !== undefined; next = busy.next(most)) {
      waits.push(now - next.arrivedAt / 1000);
      if (lends) lendUnits(queues, most);
    }
    points.push([now, busy.length]);
  }
  for (let head = busy.head(); head !== undefined; head = busy.head()) {
    busy.remove(head);
    waits.push(seconds - head.arrivedAt / 1000);
  }
  return { waits, waiting: { label: 'queries waiting', points } };
}

export const queryLoans: Experiment = {
  id: 'XS-5.2-waitq',
  title: 'Gateways lend each other accumulated units',
  kind: 'SIM',
  source: 'X-Stor, section 5.2',
  setup:
    'Withdrawn as a claim about the server, which has one gateway a protocol and does not run this policy (bench/gateway-pools). ' +
    'Three gateways with an equal share; writes take 30 % of it on each, and queries of 50 % of the whole quota all ' +
    'come to one. Each waits in line until there are units for it; each second the one that has waited longest is ' +
    'lent what it lacks.',
  run({ seeds, quick }) {
    const seconds = quick ? 600 : 3600;
    const after = seeds.map((seed) => run(true, seconds, seed));
    const before = seeds.map((seed) => run(false, seconds, seed));
    const p99 = (runs: readonly Run[]): number => {
      const all = runs.flatMap(({ waits }) => waits).sort((a, b) => a - b);
      return all[Math.ceil(all.length * 0.99) - 1]!;
    };
    return {
      measures: [
        {
          metric: 'p99 of the wait, of that without loans',
          value: p99(after) / p99(before),
          threshold: 0.5,
          better: 'lower',
        },
        {
          metric: 'longest wait, s',
          value: Math.max(...after.flatMap(({ waits }) => waits)),
          threshold: 120,
          better: 'lower',
          without: Math.max(...before.flatMap(({ waits }) => waits)),
        },
      ],
      xLabel: 'second',
      yLabel: 'queries waiting',
      before: { title: 'each gateway for itself', lines: [before[0]!.waiting] },
      after: { title: 'with loans', lines: [after[0]!.waiting] },
    };
  },
};
