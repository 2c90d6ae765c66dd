// The daily run of replica scheduling (X-Stor, section 5.3.2): where pods have too many anomalous minutes, switch roles,
// then migrate what is left. `worsens` is for the workflow that carries it out: it looks after the first tenth of the
// plan, and stops when the cluster is worse off than before.

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
  };
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
