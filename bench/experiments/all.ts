// Every experiment, in the order of the page. A new one is a file and two rows here.

import { allocationExperiment } from './allocation.ts';
import { bucketSeries } from './bucket-series.ts';
import { epochLifo } from './epoch-lifo.ts';
import type { Experiment } from './experiment.ts';
import { fairQueue } from './fair-queue.ts';
import { fanOut } from './fan-out.ts';
import { gatewayBurst } from './gateway-burst.ts';
import { gatewayQuota } from './gateway-quota.ts';
import { gatewayShareMoves } from './gateway-share-moves.ts';
import { partitionQuota } from './partition-quota.ts';
import { podBuckets } from './pod-buckets.ts';
import { proxyQuota } from './proxy-quota.ts';
import { queryAccumulation } from './query-accumulation.ts';
import { queryLoans } from './query-loans.ts';

export const allExperiments: readonly Experiment[] = [
  gatewayQuota,
  gatewayShareMoves,
  gatewayBurst,
  queryAccumulation,
  queryLoans,
  podBuckets,
  proxyQuota,
  partitionQuota,
  fairQueue,
  allocationExperiment,
  bucketSeries,
  fanOut,
  epochLifo,
];
