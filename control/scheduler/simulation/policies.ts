// The policies that `polyrow simulate` knows, by name.

import { isolated, oneDimension, weighted } from '../../ranges/baseline-planners.ts';
import { countBalance } from '../abase/count-balance.ts';
import { byHour } from '../abase/hourly-view.ts';
import { poolBalance } from '../abase/pool-balance.ts';
import { quotaScaling } from '../abase/quota-scaling.ts';
import { rescheduling } from '../abase/rescheduling.ts';
import { doNothing, peakMover, randomMoves } from '../baselines.ts';
import { rangePolicy } from '../libra/range-policy.ts';
import type { Policy } from '../proposal.ts';
import { dailyCycle, migration, roleSwitching } from '../xstor/daily-cycle.ts';
import { modelMix } from '../xstor/model-mix.ts';
import { budgetOf, usualParameters } from '../xstor/parameters.ts';

interface NamedPolicy {
  summary: string;
  /** For a cluster with so many replicas. */
  make: (replicas: number) => Policy;
}

const { movedShare, thresholdShare } = usualParameters;
/** Algorithm 2 of ABase runs every ten minutes: a day of it. */
const roundsOfDay = 144;

/** The baselines may move as much as X-Stor's migration. */
function moves(replicas: number): number {
  return budgetOf(movedShare, replicas, usualParameters);
}

const known: Readonly<Record<string, NamedPolicy>> = {
  nothing: { summary: 'leave the cluster as it is', make: () => doNothing },
  random: {
    summary: 'move replicas at random, as many as xstor may',
    make: (replicas) => randomMoves(moves(replicas)),
  },
  'peak-mover': {
    summary: 'move the heaviest replica of the pod with the highest peak to the lowest',
    make: (replicas) => peakMover(moves(replicas), thresholdShare),
  },
  'xstor-roles': {
    summary: 'let followers on pods with little load lead (X-Stor, role switching)',
    make: () => roleSwitching(),
  },
  'xstor-moves': {
    summary: 'move replicas by five priorities (X-Stor, migration)',
    make: () => migration(),
  },
  xstor: {
    summary: 'switch roles, move replicas, then level loads (X-Stor, daily run)',
    make: () => dailyCycle(),
  },
  'xstor-models': {
    summary: 'move pods of memory nodes onto SSD nodes with memory to spare (X-Stor)',
    make: () => modelMix(),
  },
  'abase-counts': {
    summary: "spread each tenant's replicas evenly over its pool (ABase, first phase)",
    make: () => byHour(countBalance()),
  },
  abase: {
    summary: "bring the nodes of a pool to the pool's load and storage (ABase, Algorithm 2)",
    make: () => byHour(rescheduling({ rounds: roundsOfDay })),
  },
  'abase-pools': {
    summary: 'empty nodes of the lighter pool and give them to the heavier one (ABase)',
    make: () => byHour(poolBalance()),
  },
  'abase-quotas': {
    summary: 'set quotas by the forecast of the next week (ABase, Algorithm 1)',
    make: () => quotaScaling(),
  },
  libra: {
    summary: 'move and split regions for the dimension that is critical (Libra)',
    make: () => rangePolicy(),
  },
  'libra-cpu': {
    summary: 'balance processor load alone (1D-CPU of Libra)',
    make: () => rangePolicy(oneDimension('cpu')),
  },
  'libra-io': {
    summary: 'balance disk load alone (1D-IO of Libra)',
    make: () => rangePolicy(oneDimension('io')),
  },
  'libra-isolated': {
    summary: 'balance both, neither knowing of the other (2D-ISO of Libra)',
    make: () => rangePolicy(isolated()),
  },
  'libra-weighted': {
    summary: 'balance the mean of both (2D-WTD of Libra)',
    make: () => rangePolicy(weighted()),
  },
};

/** Under the names that they are asked for by. */
export const policies: Readonly<Record<string, NamedPolicy>> = Object.fromEntries(
  Object.entries(known).map(([name, { summary, make }]) => [
    name,
    { summary, make: (replicas: number): Policy => ({ ...make(replicas), name }) },
  ]),
);
