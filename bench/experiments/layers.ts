import { setTimeout as sleep } from 'node:timers/promises';
import { Generator } from '../../cli/demo/load/generator.ts';
import { Neighbours } from '../../cli/demo/neighbours.ts';
import { floodFactor, settingsOf, sized } from '../../cli/demo/noisy-neighbour.ts';
import { floods, prepared } from '../../cli/demo/workloads.ts';
import type { Experiment } from './experiment.ts';
import { pinned } from './live/machine.ts';
import {
  failureIn,
  lineOf,
  meanOf,
  missedBy,
  samplesOf,
  totalOf,
  usualP99,
} from './live/samples.ts';

const lateMs = 1000;
/** Requests to the admin API a second. */
const managementRate = 500;
/** So much two runs of the same differ by. */
const noise = 1.1;

export const layers: Experiment = {
  id: 'AWS-layers',
  title: 'Layers that stop a flood, the cheapest first',
  kind: 'LIVE',
  source: 'Amazon, Fairness in multi-tenant systems',
  setup:
    `Tenant A wants ${floodFactor} times its quota over Redis, in pipelines. Of what is beyond its quota counts as stopped at ` +
    'or before the gateway what was refused there, waits there, or was not read from the socket; what failed behind it ' +
    `was refused by the pod. Tenant B reads and writes 800 values a second. Then ${managementRate} requests a second for ` +
    'the list of tenants, and no flood of data: it must not change the p99 of B, which is to say not by more than two ' +
    'runs of the same differ, a tenth.',
  async run({ quick, progress }) {
    progress('starting a server');
    const pin = pinned();
    const neighbours = await Neighbours.start({ prepare: prepared.redis, pin });
    let management: Generator | undefined;
    try {
      const { server } = neighbours;
      await neighbours.warmUp(quick ? 0.7 : 3);
      progress('what the server can do');
      const { quota, capacity, floodRate: flood } = await sized(neighbours, quick ? 0.6 : 3);
      progress('flood');
      await server.set(settingsOf.limits);
      const after = await samplesOf(neighbours, { flood, samples: quick ? 2 : 20 });
      progress('flood without limits');
      await server.set(settingsOf['no limits']);
      const before = await samplesOf(neighbours, {
        flood,
        samples: quick ? 1 : 10,
        settle: quick ? 0.5 : 2,
      });
      await server.set(settingsOf.limits);
      management = await Generator.make(
        {
          traffic: {
            kind: 'http',
            port: Number(new URL(server.process.adminUrl).port),
            name: '',
            password: '',
            authorization: `Bearer ${server.process.adminToken}`,
            connections: 8,
            requests: [{ method: 'GET', path: '/v1/tenants' }],
          },
          ...floods,
        },
        pin.flood,
      );
      const [alone, managed] = [[], []] as [typeof after, typeof after];
      // Alternately, so that other load on the machine affects both.
      for (let round = 0; round < 2; round++) {
        const options = { flood: 0, asks: false, samples: quick ? 1 : 10, settle: quick ? 0.3 : 1 };
        progress('B alone');
        alone.push(...(await samplesOf(neighbours, options)));
        progress('a flood of management');
        await management.start(managementRate);
        await sleep(quick ? 200 : 1000);
        managed.push(...(await samplesOf(neighbours, options)));
        await management.stop();
      }
      const allowed = (quota * capacity.requests) / capacity.ru;
      const stopped = ({ offered, served }: { offered: number; served: number }): number =>
        (100 * (offered - served)) / (offered - allowed);
      const answers = (of: typeof after): number =>
        totalOf(of, ({ latencies }) => latencies.length);
      const served = (of: typeof after): number => 100 * (1 - missedBy(of, lateMs) / answers(of));
      const rates = (of: typeof after): { offered: number; served: number } => ({
        offered: meanOf(of, ({ offered }) => offered),
        served: meanOf(of, (sample) => sample.served),
      });
      return {
        measures: [
          {
            metric: 'of the flood beyond the quota stopped at or before the gateway, %',
            value: stopped(rates(after)),
            threshold: 95,
            better: 'higher',
            without: stopped(rates(before)),
          },
          {
            metric: 'of the flood refused by the pod, %',
            value: (100 * meanOf(after, ({ failed }) => failed)) / rates(after).offered,
            threshold: 1,
            better: 'lower',
          },
          {
            metric: `requests of B answered as asked within ${lateMs} ms, %`,
            value: served(after),
            threshold: 99,
            better: 'higher',
            without: served(before),
          },
          {
            metric: 'p99 of B beside a flood of management, of that alone',
            value: usualP99(managed) / usualP99(alone),
            threshold: noise,
            better: 'lower',
          },
        ],
        xLabel: 'second',
        yLabel: 'requests of A served a second',
        before: {
          title: 'no limits',
          lines: [lineOf('served', before, (sample) => sample.served)],
        },
        after: { title: 'limits', lines: [lineOf('served', after, (sample) => sample.served)] },
        explanation:
          failureIn(after) ??
          'The admin API has a thread of its own; where load and server have two processors for all of them they meet there.',
      };
    } finally {
      management?.kill();
      await neighbours.stop();
    }
  },
};
