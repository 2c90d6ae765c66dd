// Candidate replicas of a high-load pod (X-Stor, Algorithm 1, lines 6 to 11): those that are most often among the k1
// heaviest while the pod is anomalous. On a pod with few replicas, light ones are among the k1 heaviest, too.
// Replicas with less than a tenth of the pod's mean load per replica are left out, because moving them gains nothing.

import type { WorkingCluster } from '../working-cluster.ts';
import type { Anomalies } from './anomalies.ts';
import type { SchedulingParameters } from './parameters.ts';

/** Minimum load of a candidate, relative to the pod's mean replica. */
const leastShare = 0.1;

/** Replicas, those that contribute most first. */
export function candidatesOf(
  cluster: WorkingCluster,
  dimension: number,
  pod: number,
  anomalies: Anomalies,
  { k1, k2 }: SchedulingParameters,
): number[] {
  const replicas = cluster.replicasOfPod[pod]!;
  const series = replicas.map((replica) => cluster.seriesOf(replica, dimension));
  const scales = replicas.map((replica) => cluster.scaleOf(replica));
  const contribution = new Uint32Array(replicas.length);
  // Loads of the heaviest so far, ascending, and their places.
  const loads = new Float64Array(k1);
  const places = new Int32Array(k1);
  const borne = new Float64Array(replicas.length);
  for (const t of anomalies.pointsOf(pod)) {
    let filled = 0;
    for (let i = 0; i < replicas.length; i++) {
      const load = cluster.rows[series[i]! + t]! * scales[i]!;
      borne[i]! += load;
      if (filled === k1 && load <= loads[0]!) continue;
      let at = filled < k1 ? filled++ : 0;
      if (at === 0 && filled === k1) {
        for (; at + 1 < k1 && loads[at + 1]! < load; at++) {
          loads[at] = loads[at + 1]!;
          places[at] = places[at + 1]!;
        }
      } else {
        for (; at > 0 && loads[at - 1]! > load; at--) {
          loads[at] = loads[at - 1]!;
          places[at] = places[at - 1]!;
        }
      }
      loads[at] = load;
      places[at] = i;
    }
    for (let i = 0; i < filled; i++) contribution[places[i]!]!++;
  }
  const least = (leastShare * borne.reduce((sum, load) => sum + load, 0)) / replicas.length;
  return replicas
    .map((replica, i) => ({ replica, counted: borne[i]! < least ? 0 : contribution[i]! }))
    .filter(({ counted }) => counted > 0)
    .sort((a, b) => b.counted - a.counted || a.replica - b.replica)
    .slice(0, k2)
    .map(({ replica }) => replica);
}
