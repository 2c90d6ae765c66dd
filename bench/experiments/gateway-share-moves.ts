import type { Experiment } from './experiment.ts';
import { satisfiedMeasures, serveThreeGateways } from './workloads/three-gateways.ts';

const without = { scheduler: false, burst: 0 };
const withMoves = { scheduler: true, burst: 0 };
const inThePaper = [100, 87.3, 98.5];

export const gatewayShareMoves: Experiment = {
  id: 'XS-5.2-autoscale',
  title: 'Shares of a quota move to the gateways that need them',
  kind: 'SIM',
  source: 'X-Stor, section 5.2 and Table 5, second row',
  setup:
    'The traffic of XS-5.2-quota. Every second the scheduler takes from gateways what they do not need and gives it ' +
    'to those that lack it, by the median of their demand in the last five seconds.',
  run({ seeds }) {
    return {
      measures: satisfiedMeasures(without, withMoves, inThePaper, seeds),
      explanation:
        'In the busy minutes of G2 the gateways ask for 30,900 units a second of a quota of 30,000, without spikes. A ' +
        'scheduler that knew the demand of each second beforehand, and gave G2 whatever G1 and G3 do not use, would serve ' +
        '87.4 % of G2; the median of the last five seconds follows a change after three, and never a spike of one second. ' +
        'G1 gives up what is beyond 1.05 times its demand, which varies by 4 %.',
      xLabel: 'minute',
      yLabel: 'satisfied, %',
      before: { title: 'equal shares', lines: serveThreeGateways(without, seeds[0]!).byMinute },
      after: { title: 'moved shares', lines: serveThreeGateways(withMoves, seeds[0]!).byMinute },
    };
  },
};
