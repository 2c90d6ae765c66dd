// Every experiment, in the order of the page. A new one is a file and two rows here.

import type { Experiment } from './experiment.ts';
import { gatewayBurst } from './gateway-burst.ts';
import { gatewayQuota } from './gateway-quota.ts';
import { gatewayShareMoves } from './gateway-share-moves.ts';

export const allExperiments: readonly Experiment[] = [
  gatewayQuota,
  gatewayShareMoves,
  gatewayBurst,
];
