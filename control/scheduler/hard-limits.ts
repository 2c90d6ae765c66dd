// Hard limits that no plan may break. A policy calls `refusalOf` before each step; `brokenLimits` checks a whole cluster,
// for tests and before a plan is applied.

import type { WorkingCluster } from './working-cluster.ts';

export interface HardLimits {
  /** Replicas of a table on a pod beyond the table's mean over pods; X-Stor has 5. */
  tableSlack: number;
  /** Share of a pod's disk that may be used. */
  diskShare: number;
  /** Whether a replica may leave its subcluster. */
  crossSubcluster: boolean;
  /** Pods that a table may use, for its mean; all pods with a disk model when absent. */
  podsOfTable?: number;
}

export const usualLimits: HardLimits = { tableSlack: 5, diskShare: 0.85, crossSubcluster: false };

/** Why a replica may not move to a pod; undefined when it may. */
export function refusalOf(
  cluster: WorkingCluster,
  replica: number,
  toPod: number,
  limits: HardLimits = usualLimits,
): string | undefined {
  const { model, podOf, partitionOf, nodeOfPod } = cluster;
  const fromPod = podOf[replica]!;
  const partition = partitionOf[replica]!;
  const [fromNode, toNode] = [nodeOfPod[fromPod]!, nodeOfPod[toPod]!];
  if (cluster.holdsPartition(toPod, partition)) return 'the pod has a replica of the partition';
  if (model.nodes.state[toNode] !== 'active' || cluster.isNodeDisabled[toNode]) {
    return 'the node takes no replicas';
  }
  if (cluster.halfAdded.has(model.pods.subcluster[toPod]!)) {
    return 'the subcluster has a node that is not active yet';
  }
  if (model.pods.model[toPod] !== model.pods.model[fromPod]) return 'the pod is of another model';
  if (cluster.poolOfNode[toNode] !== cluster.poolOfNode[fromNode]) {
    return 'the pod is in another pool';
  }
  if (!limits.crossSubcluster && model.pods.subcluster[toPod] !== model.pods.subcluster[fromPod]) {
    return 'the pod is in another subcluster';
  }
  for (const sibling of cluster.replicasOfPartition[partition]!) {
    if (sibling === replica) continue;
    const node = nodeOfPod[podOf[sibling]!]!;
    if (node === toNode) return 'the node has a replica of the partition';
    const zone = model.nodes.zone[toNode];
    if (zone !== model.nodes.zone[fromNode] && zone === model.nodes.zone[node]) {
      return 'the zone has a replica of the partition';
    }
  }
  const bytes = cluster.podBytes[toPod]! + cluster.partitionBytes[partition]!;
  if (bytes > model.pods.diskBytes[toPod]! * limits.diskShare) return 'the disk would be too full';
  const table = cluster.tableOf[partition]!;
  const podsOfTable = limits.podsOfTable ?? cluster.podCount;
  const most = cluster.replicasOfTable[table]! / podsOfTable + limits.tableSlack;
  if (cluster.tableOnPod(table, toPod) + 1 > most) return 'the pod has enough of the table';
  return undefined;
}

/** Descriptions of the limits that a cluster breaks; empty when it breaks none. */
export function brokenLimits(cluster: WorkingCluster): string[] {
  const { model, podOf, nodeOfPod } = cluster;
  const broken: string[] = [];
  for (let partition = 0; partition < cluster.partitionCount; partition++) {
    const replicas = cluster.replicasOfPartition[partition]!;
    const pods = replicas.map((replica) => podOf[replica]!);
    if (new Set(pods.map((pod) => nodeOfPod[pod])).size < pods.length) {
      broken.push(`partition ${partition}: two replicas on a node`);
    }
    // Crossing means that all replicas move together.
    if (new Set(pods.map((pod) => model.pods.subcluster[pod])).size > 1) {
      broken.push(`partition ${partition}: in more than one subcluster`);
    }
    const leaders = replicas.filter((replica) => cluster.isLeader[replica]).length;
    if (replicas.length > 0 && leaders !== 1) {
      broken.push(`partition ${partition}: ${leaders} leaders`);
    }
  }
  for (let pod = 0; pod < cluster.podCount; pod++) {
    if (cluster.podBytes[pod]! > model.pods.diskBytes[pod]!) broken.push(`pod ${pod}: disk full`);
  }
  return broken;
}
