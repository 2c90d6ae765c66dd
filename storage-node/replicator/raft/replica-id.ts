// Replica ids tell their node, so that a message finds its way without a directory. A node numbers the replicas of a
// group that it has had; an id is never used twice.

const perNode = 2 ** 20;
const maxNode = 2 ** 32 - 1;

/** `count` from 0 on: how many replicas of this group the node has had before. */
export function replicaId(node: number, count = 0): number {
  if (!Number.isInteger(node) || node < 1 || node > maxNode) {
    throw new RangeError(`${node} is no number of a node`);
  }
  if (!Number.isInteger(count) || count < 0 || count >= perNode) {
    throw new RangeError(`a group can have ${perNode} replicas on a node, not ${count}`);
  }
  return node * perNode + count;
}

/** Above all ids of replicas that a node has had of a group. */
export function lastReplicaId(node: number): number {
  return replicaId(node, perNode - 1);
}

export function countOfReplica(replica: number): number {
  return replica % perNode;
}

export function nodeOfReplica(replica: number): number {
  return Math.floor(replica / perNode);
}
