// The daily run of replica scheduling (X-Stor, section 5.3.2): where pods have too many anomalous minutes, switch roles,
// then migrate the rest, and level loads with the moves that are left. The executor checks the cluster after the first
// tenth of a plan and stops if it is worse than before.

import type { Policy } from '../proposal.ts';
import { levelLoads } from './level.ts';
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
      if (parameters.levels) levelLoads(run);
      return run.proposals;
    },
    whyIdle: (model) => whyIdle(new SchedulingRun(model, parameters)),
  };
}

/** Pods with so many replicas are what the policy is made for: one of them is a small part of a pod. */
const manyReplicas = 100;

function whyIdle(run: SchedulingRun): string {
  const { cluster, counts, parameters } = run;
  const highest = counts.indexOf(Math.max(...counts));
  const name = run.nameOf(highest);
  const minutes = `${counts[highest]} anomalous minutes in the load that is planned on`;
  if (!run.isHighLoad(highest)) {
    if (counts[highest] === 0)
      return 'no pod has an anomalous minute in the load that is planned on';
    return `no pod has more than ${minutes} (${name}), and pods with up to ${parameters.warning} are left alone`;
  }
  const ways = [
    ...(parameters.switchedShare > 0 ? ['lead elsewhere'] : []),
    ...(parameters.movedShare > 0 ? ['move'] : []),
  ];
  const candidates = run.candidates.get(highest)!.length;
  const ofPod = cluster.podOf.length / cluster.podCount;
  return (
    `${name} has ${minutes}, but none of its ${candidates} replicas that are heaviest then can ${ways.join(' or ')}: ` +
    'every pod that may have it would be anomalous with it' +
    (ofPod < manyReplicas
      ? `. Pods have ${Math.round(ofPod)} replicas here, so that each is much of a pod; the policy is made for hundreds, ` +
        'and peak-mover, abase and libra move large ones too'
      : '')
  );
}

/** Role switching alone: nothing is copied. */
export function roleSwitching(parameters: SchedulingParameters = usualParameters): Policy {
  return dailyCycleNamed('xstor-roles', { ...parameters, movedShare: 0 });
}

/** Migration alone: nothing is levelled either. */
export function migration(parameters: SchedulingParameters = usualParameters): Policy {
  return dailyCycleNamed('xstor-moves', { ...parameters, switchedShare: 0, levels: false });
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
