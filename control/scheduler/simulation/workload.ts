// A simulated cluster. Placement, profiles and sizes come from the seed it was made with; `draw` only changes the noise on
// the load. So a policy plans on one draw, is judged on another, and its proposals fit both: entities have the same
// numbers.

import type { ClusterModel } from '../cluster-model.ts';

export interface Workload {
  name: string;
  model(draw: number): ClusterModel;
}
