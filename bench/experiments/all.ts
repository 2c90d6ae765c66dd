// Every experiment, in the order of the page. A new one is a file and two rows here.

import { accessPools } from './access-pools.ts';
import { activeUpdateCache } from './active-update-cache.ts';
import { allocationExperiment } from './allocation.ts';
import { borrowedCapacity } from './borrowed-capacity.ts';
import { bucketSeries } from './bucket-series.ts';
import { gatewayConsolidation, modelConsolidation } from './consolidation.ts';
import { distributedGossip, distributedHash, distributedSplit } from './distributed-admission.ts';
import type { Experiment } from './experiment.ts';
import { fairQueue } from './fair-queue.ts';
import { fanOut } from './fan-out.ts';
import { faultDetection } from './fault-detection.ts';
import { gatewayBurst } from './gateway-burst.ts';
import { gatewayQuota } from './gateway-quota.ts';
import { gatewayShareMoves } from './gateway-share-moves.ts';
import { extraWorkers, queueClasses, readCost } from './io-scheduling.ts';
import { layers } from './layers.ts';
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
import { manualChange } from './manual-change/experiment.ts';
import { rangeSplitPoint } from './range-cuts.ts';
import { rangePlanningTime } from './range-planning-time.ts';
import { rangeMapping } from './range-mapping.ts';
import {
  rangeBaselines,
  rangeCooperation,
  rangeLambda,
  rangePerformance,
} from './range-scheduling.ts';
import { rangeBound, rangeLazy, rangeSuspend } from './range-splits.ts';
import { replicaLoads } from './replica-loads.ts';
import { replicaMigration } from './replica-migration.ts';
import { schedulingMeasures, tableCountGuard, tablePartitions } from './replica-rules.ts';
import { dailySchedule, roleSwitchingAlone } from './replica-scheduling.ts';
import { loadGathering } from './load-gathering.ts';
import { collectionEstimate, readEstimate } from './read-estimates.ts';
import { kindsOfError, shedding } from './shedding.ts';
import { sizeAwareCache } from './size-aware-cache.ts';
import { slowError } from './slow-error.ts';
import { clustersToPools, failureRadius } from './tenant-pools.ts';
import { usageDenoising } from './usage-denoising.ts';
import { usageForecast } from './usage-forecast.ts';
import { warmup } from './warmup.ts';
import { workloadShifts } from './workload-shifts.ts';
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
  replicaLoads,
  copysets,
  gatewayConsolidation,
  modelConsolidation,
  tablePartitions,
  placementScore,
  schedulingMeasures,
  roleSwitchingAlone,
  replicaMigration,
  tableCountGuard,
  dailySchedule,
  planningSpeed,
  readEstimate,
  collectionEstimate,
  proxyQuota,
  partitionQuota,
  fairQueue,
  queueClasses,
  readCost,
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
  sizeAwareCache,
  noisyNeighbour,
  noisyNeighbourWrites,
  noisyNeighbourQueries,
  usageDenoising,
  usageForecast,
  predictiveScaling,
  cautiousReductions,
  automaticGrowth,
  manualChange,
  borrowedCapacity,
  poolHeadroom,
  failureRadius,
  zonePlacement,
  parallelRebuild,
  countPhase,
  intraPool,
  clustersToPools,
  interPool,
  workloadShifts,
  shedding,
  kindsOfError,
  layers,
  proxyQuotaLive,
  podBucketsLive,
  faultDetection,
  rangeMapping,
  loadGathering,
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
