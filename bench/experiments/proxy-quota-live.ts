import { Neighbours, type Sample } from '../../cli/demo/neighbours.ts';
import { settingsOf, sized } from '../../cli/demo/noisy-neighbour.ts';
import { prepared } from '../../cli/demo/workloads.ts';
import type { Experiment } from './experiment.ts';
import { pinned } from './live/machine.ts';
import { failureIn, lineOf, missedBy, p99Of, samplesOf, totalOf } from './live/samples.ts';

const lateMs = 100;
/** As 60,000 requests a second are of the 6,000 of ABase's node. */
const burst = 10;

export const proxyQuotaLive: Experiment = {
  id: 'AB-4.2-proxy-live',
  title: 'Proxy quota with asynchronous control, with real sockets',
  kind: 'LIVE',
  source: 'ABase, section 4.2 and Figure 6',
  setup:
    `Tenant A bursts to ${burst} times what the server can do for it, over Redis, far above its quota; tenant B sends 800 ` +
    `requests a second, which count when they are answered within ${lateMs} ms. Without: no limits, and no ` +
    'CPU scheduling.',
  async run({ quick, progress }) {
    progress('starting a server');
    const neighbours = await Neighbours.start({ prepare: prepared.redis, pin: pinned() });
    try {
      const { server } = neighbours;
      await neighbours.warmUp(quick ? 0.7 : 3);
      progress('what the server can do');
      const { capacity } = await sized(neighbours, quick ? 0.6 : 3);
      const flood = burst * capacity.requests;
      progress('burst without limits');
      await server.set(settingsOf['no limits']);
      const before = await samplesOf(neighbours, { flood, samples: quick ? 2 : 10, settle: 0.5 });
      progress('burst');
      await server.set(settingsOf.limits);
      const after = await samplesOf(neighbours, { flood, samples: quick ? 3 : 20 });
      const good = (of: readonly Sample[]): number => {
        const due = neighbours.workload.steadyRate * totalOf(of, ({ seconds }) => seconds);
        const answered = totalOf(of, ({ latencies }) => latencies.length);
        return (100 * (answered - missedBy(of, lateMs))) / due;
      };
      return {
        measures: [
          {
            metric: `requests of B answered within ${lateMs} ms, %`,
            value: good(after),
            threshold: 95,
            better: 'higher',
            without: good(before),
            paper: 'as before the burst; nearly none without',
          },
        ],
        xLabel: 'second',
        yLabel: 'p99 of B, ms',
        before: { title: 'no limits', lines: [lineOf('B', before, p99Of)] },
        after: { title: 'proxy quota', lines: [lineOf('B', after, p99Of)] },
        ...(failureIn(after) === undefined ? {} : { explanation: failureIn(after)! }),
      };
    } finally {
      await neighbours.stop();
    }
  },
};
