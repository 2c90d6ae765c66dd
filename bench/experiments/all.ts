// Every experiment, in the order of the page. A new one is a file and two rows here.

import { admissionCost } from './admission-cost.ts';
import { accessPools } from './access-pools.ts';
import { activeUpdateCache } from './active-update-cache.ts';
import { allocationExperiment } from './allocation.ts';
import { backgroundLayer } from './background-layer.ts';
import { borrowedCapacity } from './borrowed-capacity.ts';
import { bucketSeries } from './bucket-series.ts';
import { gatewayConsolidation, modelConsolidation } from './consolidation.ts';
import { cpuSlots } from './cpu-slots.ts';
import { distributedGossip, distributedHash, distributedSplit } from './distributed-admission.ts';
import { epochLifo } from './epoch-lifo.ts';
import type { Experiment } from './experiment.ts';
import { extraWorkers } from './extra-workers.ts';
import { fairQueue } from './fair-queue.ts';
import { fanOut } from './fan-out.ts';
import { faultDetection } from './fault-detection.ts';
import { gatewayBurst } from './gateway-burst.ts';
import { gatewayQuota } from './gateway-quota.ts';
import { gatewayShareMoves } from './gateway-share-moves.ts';
import { layers } from './layers.ts';
import { lockPriority } from './lock-priority.ts';
import { noisyNeighbour, noisyNeighbourQueries, noisyNeighbourWrites } from './noisy-neighbour.ts';
import { operationQuotas } from './operation-quotas.ts';
import { partitionQuota } from './partition-quota.ts';
import { copysets, placementScore } from './placement.ts';
import { planningSpeed } from './planning-speed.ts';
import { podBucketsLive } from './pod-buckets-live.ts';
import { podBuckets } from './pod-buckets.ts';
import { podQueues } from './pod-queues.ts';
import { poolHeadroom } from './pool-headroom.ts';
import { automaticGrowth, cautiousReductions, predictiveScaling } from './predictive-scaling.ts';
import { proxyQuotaLive } from './proxy-quota-live.ts';
import { proxyQuota } from './proxy-quota.ts';
import { queryAccumulation } from './query-accumulation.ts';
import { queryLoans } from './query-loans.ts';
import { queueClasses } from './queue-classes.ts';
import { queueOrder } from './queue-order.ts';
import {
  rangeBaselines,
  rangeCooperation,
  rangeLambda,
  rangePerformance,
  rangePlanningTime,
} from './range-scheduling.ts';
import { rangeBound, rangeLazy, rangeSplitPoint, rangeSuspend } from './range-splits.ts';
import { readCost } from './read-cost.ts';
import { dailySchedule, roleSwitchingAlone } from './replica-scheduling.ts';
import { kindsOfError, shedding } from './shedding.ts';
import { sizeAwareCache } from './size-aware-cache.ts';
import { slowError } from './slow-error.ts';
import { tenantCap } from './tenant-cap.ts';
import { tenantHeaps } from './tenant-heaps.ts';
import { usageDenoising } from './usage-denoising.ts';
import { usageForecast } from './usage-forecast.ts';
import { warmup } from './warmup.ts';
import { countPhase, interPool, intraPool } from './workload-rescheduling.ts';
import { parallelRebuild, zonePlacement } from './zones-and-recovery.ts';

export const allExperiments: readonly Experiment[] = [
  accessPools,
  gatewayQuota,
  gatewayShareMoves,
  gatewayBurst,
  queryAccumulation,
  queryLoans,
  podBuckets,
  podQueues,
  copysets,
  gatewayConsolidation,
  modelConsolidation,
  placementScore,
  roleSwitchingAlone,
  dailySchedule,
  planningSpeed,
  proxyQuota,
  partitionQuota,
  fairQueue,
  queueClasses,
  readCost,
  tenantCap,
  extraWorkers,
  allocationExperiment,
  slowError,
  operationQuotas,
  bucketSeries,
  warmup,
  distributedSplit,
  distributedHash,
  distributedGossip,
  activeUpdateCache,
  fanOut,
  backgroundLayer,
  queueOrder,
  tenantHeaps,
  epochLifo,
  lockPriority,
  cpuSlots,
  admissionCost,
  sizeAwareCache,
  noisyNeighbour,
  noisyNeighbourWrites,
  noisyNeighbourQueries,
  usageDenoising,
  usageForecast,
  predictiveScaling,
  cautiousReductions,
  automaticGrowth,
  borrowedCapacity,
  poolHeadroom,
  zonePlacement,
  parallelRebuild,
  countPhase,
  intraPool,
  interPool,
  shedding,
  kindsOfError,
  layers,
  proxyQuotaLive,
  podBucketsLive,
  faultDetection,
  rangeCooperation,
  rangeBaselines,
  rangeLambda,
  rangePerformance,
  rangePlanningTime,
  rangeSplitPoint,
  rangeBound,
  rangeLazy,
  rangeSuspend,
];
