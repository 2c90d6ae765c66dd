// The daily run of replica scheduling (X-Stor, section 5.3.2): where pods have too many anomalous
// minutes, switch roles, then migrate the rest. The executor checks the cluster after the first
// tenth of a plan and stops if it is worse than before.

import type { Policy } from '../proposal.ts';
import { migrateReplicas } from './migrate.ts';
import { type SchedulingParameters, usualParameters } from './parameters.ts';
import { switchRoles } from './role-switch.ts';
import { SchedulingRun } from './scheduling-run.ts';

export function dailyCycle(parameters: SchedulingParameters = usualParameters): Policy {
  return {
    name: 'xstor',
    plan(model) {
      const run = new SchedulingRun(model, parameters);
      switchRoles(run);
      migrateReplicas(run);
      return run.proposals;
    },
    whyIdle: (model) => whyIdle(new SchedulingRun(model, parameters)),
  };
}

function whyIdle(run: SchedulingRun): string {
  const { counts, parameters } = run;
  const highest = counts.indexOf(Math.max(...counts));
  const most = `${run.nameOf(highest)} has most anomalous minutes, ${counts[highest]}`;
  if (!run.isHighLoad(highest)) {
    return `${most}; pods with up to ${parameters.warning} are left alone`;
  }
  const ways = [
    ...(parameters.switchedShare > 0 ? ['lead elsewhere'] : []),
    ...(parameters.movedShare > 0 ? ['move'] : []),
  ];
  return `${most}, but none of its heaviest replicas can ${ways.join(' or ')} without making a pod anomalous there`;
}

/** Role switching alone: nothing is copied. */
export function roleSwitching(parameters: SchedulingParameters = usualParameters): Policy {
  return dailyCycleNamed('xstor-roles', { ...parameters, movedShare: 0 });
}

/** Migration alone. */
export function migration(parameters: SchedulingParameters = usualParameters): Policy {
  return dailyCycleNamed('xstor-moves', { ...parameters, switchedShare: 0 });
}

function dailyCycleNamed(name: string, parameters: SchedulingParameters): Policy {
  return { ...dailyCycle(parameters), name };
}

/** Steps of a plan that are carried out before the cluster is looked at again. */
export function stepsBeforeCheck(steps: number): number {
  return Math.ceil(steps / 10);
}

interface CheckedFigures {
  violations: number;
  anomalies: number;
}

/** Load changes by itself between two checks; only more than a tenth is attributed to the plan. */
const tolerated = 1.1;

/** Whether the rest of a plan must not be carried out. */
export function isWorse(before: CheckedFigures, now: CheckedFigures): boolean {
  return (
    now.violations > before.violations * tolerated || now.anomalies > before.anomalies * tolerated
  );
}
