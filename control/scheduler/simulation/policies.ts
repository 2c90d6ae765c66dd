// The policies that `polyrow simulate` knows, by name.

import { doNothing, peakMover, randomMoves } from '../baselines.ts';
import type { Policy } from '../proposal.ts';
import { dailyCycle, migration, roleSwitching } from '../xstor/daily-cycle.ts';
import { budgetOf, usualParameters } from '../xstor/parameters.ts';

interface NamedPolicy {
  summary: string;
  /** For a cluster with so many replicas. */
  make(replicas: number): Policy;
}

const { movedShare, thresholdShare } = usualParameters;

/** The baselines may move as much as X-Stor's migration. */
function moves(replicas: number): number {
  return budgetOf(movedShare, replicas, usualParameters);
}

export const policies: Readonly<Record<string, NamedPolicy>> = {
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
    summary: 'switch roles, then move replicas (X-Stor, daily run)',
    make: () => dailyCycle(),
  },
};
