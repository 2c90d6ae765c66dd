import { Neighbours, type Sample } from '../../cli/demo/neighbours.ts';
import { floodFactor, settingsOf, sized } from '../../cli/demo/noisy-neighbour.ts';
import { flooder } from '../../cli/demo/workloads.ts';
import type { Experiment } from './experiment.ts';
import { kilobyteReads } from './live/flood-workloads.ts';
import { pinned } from './live/machine.ts';
import { failureIn, lineOf, meanOf, missedBy, samplesOf, totalOf } from './live/samples.ts';
import { cpuMicros, idleMicros } from './live/server-cpu.ts';

const source = 'Amazon, Fairness in multi-tenant systems';
/** An answer that comes later is of no use to B. */
const lateMs = 1000;
const overload = 10;

/** Microseconds of processor time per request, by outcome. */
interface Costs {
  served: number;
  refused: number;
}

interface Windows {
  rounds: number;
  seconds: number;
  /** Requests a second of which all are refused. */
  rate: number;
}

/**
 * Costs of alternating windows: other load can only add to a window's cost, so the minimum of each
 * counts.
 */
async function costsOf(neighbours: Neighbours, { rounds, seconds, rate }: Windows): Promise<Costs> {
  const { server } = neighbours;
  const idle = await idleMicros(server, seconds);
  const window = async (what: keyof Costs): Promise<number> => {
    // Tokens available at once are spent, and the first requests have waited.
    await neighbours.flooded(what === 'served' ? 0.3 : 2);
    const before = await cpuMicros(server);
    const { report } = await neighbours.flooded(seconds);
    return ((await cpuMicros(server)) - before - idle * report.seconds) / report[what];
  };
  const costs: Costs = { served: Infinity, refused: Infinity };
  for (let round = 0; round < rounds; round++) {
    await server.setQuota(flooder, 0);
    const served = await neighbours.whileFlooding(Infinity, () => window('served'));
    await server.setQuota(flooder, 1);
    const refused = await neighbours.whileFlooding(rate, () => window('refused'));
    costs.served = Math.min(costs.served, served);
    costs.refused = Math.min(costs.refused, refused);
  }
  return costs;
}

export const shedding: Experiment = {
  id: 'AWS-shed',
  title: 'Cheap refusals',
  kind: 'LIVE',
  source,
  setup:
    'Tenant A reads values of 1 kB in pipelines of 16 over 32 connections, all of which are served, or all refused, at twice what the server could serve: the ' +
    'processor time of the server for one, the least of several windows in turn. Then A has a quota of what the server ' +
    `could do for it, and wants ${overload} times as much. Tenant B reads 500 values a second. Server and load are on a ` +
    'processor each.',
  async run({ quick, progress }) {
    progress('starting a server');
    const neighbours = await Neighbours.start({ prepare: kilobyteReads, pin: pinned() });
    try {
      const { server } = neighbours;
      await neighbours.warmUp(quick ? 0.5 : 2);
      progress('what the server can do');
      const { capacity } = await sized(neighbours, quick ? 0.8 : 3);
      await server.set(settingsOf.limits);
      progress('what a refusal costs');
      const costs = await costsOf(neighbours, {
        ...(quick ? { rounds: 1, seconds: 0.8 } : { rounds: 5, seconds: 2 }),
        rate: 2 * capacity.requests,
      });
      const flood = overload * capacity.requests;
      const samples = quick ? 2 : 20;
      progress('overload');
      await server.setQuota(flooder, Math.round(capacity.ru));
      const after = await samplesOf(neighbours, { flood, samples, settle: quick ? 1 : 3 });
      progress('overload without limits');
      await server.set(settingsOf['no limits']);
      const before = await samplesOf(neighbours, {
        flood,
        samples: quick ? 1 : 10,
        settle: quick ? 0.5 : 3,
      });
      const goodput = (of: readonly Sample[]): number =>
        meanOf(of, ({ served, rate }) => served + rate) / capacity.requests;
      return {
        measures: [
          {
            metric: 'processor time of a refusal, of that of a read of 1 kB, %',
            value: (100 * costs.refused) / costs.served,
            threshold: 10,
            better: 'lower',
          },
          {
            metric: `served at ${overload} times what the server can do, of the most it can do`,
            value: goodput(after),
            threshold: 0.9,
            better: 'higher',
            without: goodput(before),
          },
          {
            metric: 'requests of B refused or failed',
            value: totalOf(after, ({ notServed }) => notServed),
            threshold: 0,
            better: 'lower',
            without: totalOf(before, ({ notServed }) => notServed),
          },
        ],
        xLabel: 'second',
        yLabel: 'requests a second',
        before: {
          title: 'no limits',
          lines: [
            lineOf('A, served', before, ({ served }) => served),
            lineOf('B', before, ({ rate }) => rate),
          ],
        },
        after: {
          title: 'limits',
          lines: [
            lineOf('A, served', after, ({ served }) => served),
            lineOf('B', after, ({ rate }) => rate),
          ],
        },
        explanation:
          failureIn(after) ??
          `A read takes ${costs.served.toFixed(2)} us of the processor, and a refusal ${costs.refused.toFixed(2)}: most of ` +
            'that is reading and finding the ends of a command, and the words of the refusal.',
      };
    } finally {
      await neighbours.stop();
    }
  },
};

export const kindsOfError: Experiment = {
  id: 'AWS-429',
  title: 'Who is over its quota is refused, and nobody else',
  kind: 'LIVE',
  source,
  setup:
    `Tenant A reads values of 1 kB and wants ${floodFactor} times its quota. What it is refused with names the quota and ` +
    'says when to come again; anything else counts as a failure. Tenant B reads 500 values a second and is well below ' +
    'its own. Without: no limits, and no turns with the thread of the plane.',
  async run({ quick, progress }) {
    progress('starting a server');
    const neighbours = await Neighbours.start({ prepare: kilobyteReads, pin: pinned() });
    try {
      const { server } = neighbours;
      await neighbours.warmUp(quick ? 0.5 : 2);
      progress('what the server can do');
      const { floodRate: flood } = await sized(neighbours, quick ? 0.8 : 3);
      progress('limits');
      await server.set(settingsOf.limits);
      const after = await samplesOf(neighbours, { flood, samples: quick ? 3 : 20 });
      progress('no limits');
      await server.set(settingsOf['no limits']);
      const before = await samplesOf(neighbours, { flood, samples: quick ? 2 : 20 });
      return {
        measures: [
          {
            metric: 'requests of B refused or failed',
            value: totalOf(after, ({ notServed }) => notServed),
            threshold: 0,
            better: 'lower',
            without: totalOf(before, ({ notServed }) => notServed),
          },
          {
            metric: `requests of B answered as asked within ${lateMs} ms, %`,
            value: 100 * (1 - missedBy(after, lateMs) / answersOf(after)),
            threshold: 100,
            better: 'higher',
            without: 100 * (1 - missedBy(before, lateMs) / answersOf(before)),
          },
          {
            metric: 'requests of A that failed in other words than those of its quota',
            value: after.filter(({ failure }) => failure !== undefined).length,
            threshold: 0,
            better: 'lower',
          },
        ],
        xLabel: 'second',
        yLabel: 'requests of B a second',
        before: { title: 'no limits', lines: [lineOf('served', before, ({ rate }) => rate)] },
        after: { title: 'limits', lines: [lineOf('served', after, ({ rate }) => rate)] },
        ...explained(after),
      };
    } finally {
      await neighbours.stop();
    }
  },
};

function answersOf(samples: readonly Sample[]): number {
  return totalOf(samples, ({ latencies }) => latencies.length);
}

function explained(samples: readonly Sample[]): { explanation?: string } {
  const explanation = failureIn(samples);
  return explanation === undefined ? {} : { explanation };
}
