import { AccumulatedUnits } from '../../access/admission/accumulated-units.ts';
import { QueryQueue, type WaitingQuery } from '../../access/admission/query-queue.ts';
import { TokenBucket } from '../../request-units/token-bucket.ts';
import type { Experiment, Line } from './experiment.ts';
import { Chance } from './sim/chance.ts';

const share = 1000;
const writeLoad = 0.65;
const queryCost = 20 * share;
const queryEverySeconds = 60;
const writesPerSecond = 50;

interface Run {
  rejected: number;
  writes: number;
  waits: number[];
  /** Per cent of writes served, by second. */
  served: Line;
}

/**
 * Queries on units left over from the last minute, or on the current second like all other
 * requests.
 */
function run(accumulates: boolean, minutes: number, seed: number): Run {
  const chance = new Chance(seed);
  const bucket = new TokenBucket(share, share, 0);
  const queue = new QueryQueue<WaitingQuery>({}, new AccumulatedUnits());
  const result: Run = {
    rejected: 0,
    writes: 0,
    waits: [],
    served: { label: 'writes', points: [] },
  };
  const points: [number, number][] = [];
  for (let second = 0; second < minutes * 60; second++) {
    let unspent = share;
    let ok = 0;
    const now = second * 1000;
    for (let write = 0; write < writesPerSecond; write++) {
      const at = now + (write * 1000) / writesPerSecond;
      const cost = ((share * writeLoad) / writesPerSecond) * chance.uniform(0.8, 1.2);
      result.writes++;
      if (bucket.take(cost, at)) {
        unspent -= cost;
        ok++;
      } else result.rejected++;
    }
    points.push([second, (100 * ok) / writesPerSecond]);
    // The first minute saves up; a server that has just started has nothing to query either.
    if (second >= queryEverySeconds && second % queryEverySeconds === 0) {
      if (!accumulates) bucket.debit(queryCost, now + 999);
      else if (
        queue.arrive({ cost: queryCost, arrivedAt: now, deadline: Infinity }, 60 * share) === 'run'
      ) {
        result.waits.push(0);
      }
    }
    queue.units.endSecond(unspent);
    for (let next = queue.next(60 * share); next !== undefined; next = queue.next(60 * share)) {
      result.waits.push(now + 1000 - next.arrivedAt);
    }
  }
  // Requests still waiting have waited until now.
  for (let head = queue.head(); head !== undefined; head = queue.head()) {
    queue.remove(head);
    result.waits.push(minutes * 60_000 - head.arrivedAt);
  }
  result.served = { label: 'writes', points };
  return result;
}

export const queryAccumulation: Experiment = {
  id: 'XS-5.2-accum',
  title: 'Queries live on units that were left over',
  kind: 'SIM',
  source: 'X-Stor, section 5.2',
  setup:
    'On a gateway, writes of 65 % of the share and each minute a query of 20 seconds’ share, which is all that the ' +
    'writes leave but for 1.7 % of it. Without the mechanism the query is charged to the second in which it starts.',
  run({ seeds, quick }) {
    const minutes = quick ? 10 : 60;
    const after = seeds.map((seed) => run(true, minutes, seed));
    const before = seeds.map((seed) => run(false, minutes, seed));
    const rejects = (runs: readonly Run[]): number =>
      (100 * runs.reduce((sum, { rejected, writes }) => sum + rejected / writes, 0)) / runs.length;
    return {
      measures: [
        {
          metric: 'writes rejected, %',
          value: rejects(after),
          threshold: 0,
          better: 'lower',
          without: rejects(before),
        },
        {
          metric: 'writes rejected without it, %',
          value: rejects(before),
          threshold: 5,
          better: 'higher',
        },
        {
          metric: 'longest that a query waited, s',
          value: Math.max(...after.flatMap(({ waits }) => waits)) / 1000,
          threshold: 60,
          better: 'lower',
        },
      ],
      xLabel: 'second',
      yLabel: 'writes served, %',
      before: { title: 'queries charged to their second', lines: [firstMinutes(before[0]!)] },
      after: { title: 'queries on accumulated units', lines: [firstMinutes(after[0]!)] },
    };
  },
};

function firstMinutes({ served }: Run): Line {
  return { ...served, points: served.points.slice(0, 300) };
}
