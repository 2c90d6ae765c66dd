// Consolidation of data models (X-Stor, section 3): pods of the in-memory model move from memory-heavy nodes to SSD nodes
// whose memory is idle. A node that can be emptied whole is emptied, and goes offline; otherwise small pods move. Each pod
// goes to the SSD node with the lowest memory use (worst fit) while there is room for all. Where there is not, worst fit
// would leave gaps that no pod fits into: then each goes to the first node with room, which frees more memory nodes.

import type { ClusterModel } from '../cluster-model.ts';
import { percentOf, type Policy, type Proposal } from '../proposal.ts';
import { WorkingCluster } from '../working-cluster.ts';

interface ModelMixParameters {
  /** Share of an SSD node's memory that pods may use. */
  threshold: number;
  /** Pods that move in one run at most. */
  moves: number;
  /** The node that a pod goes to: with the lowest use, or the first that has room, or as there is room for all pods. */
  fit: 'worst' | 'first' | 'by-room';
}

export const usualModelMix: ModelMixParameters = { threshold: 0.75, moves: 20, fit: 'by-room' };

export function modelMix(parameters: ModelMixParameters = usualModelMix): Policy {
  return {
    name: 'model-mix',
    plan(model) {
      const run = new Run(model, parameters);
      while (run.emptyNode());
      if (run.proposals.length === 0) run.drain();
      return run.proposals;
    },
    whyIdle({ nodes }) {
      const count = (hardware: string): number =>
        nodes.ids.filter((_, node) => nodes.hardware[node] === hardware).length;
      if (count('memory') === 0) return 'no node is of the hardware `memory`';
      if (count('ssd') === 0) return 'no node is of the hardware `ssd`';
      return `no SSD node has memory for a pod of a memory node without being above ${percentOf(parameters.threshold)}`;
    },
  };
}

class Run {
  readonly proposals: Proposal[] = [];
  readonly #cluster: WorkingCluster;
  readonly #parameters: ModelMixParameters;
  /** Bytes of the pods of each node. */
  readonly #used: Float64Array;
  readonly #isFirstFit: boolean;
  #moves = 0;

  constructor(model: ClusterModel, parameters: ModelMixParameters) {
    this.#cluster = new WorkingCluster(model);
    this.#parameters = parameters;
    this.#used = new Float64Array(model.nodes.ids.length);
    model.pods.node.forEach((node, pod) => {
      this.#used[node]! += model.pods.memoryBytes[pod]!;
    });
    const { fit } = parameters;
    this.#isFirstFit = fit === 'first' || (fit === 'by-room' && !this.#hasRoomForAll());
  }

  #hasRoomForAll(): boolean {
    const { nodes } = this.#cluster.model;
    let room = 0;
    nodes.ids.forEach((_, node) => {
      if (nodes.state[node] !== 'active') return;
      if (nodes.hardware[node] === 'memory') room -= this.#used[node]!;
      if (nodes.hardware[node] !== 'ssd') return;
      const free = nodes.memoryBytes[node]! * this.#parameters.threshold - this.#used[node]!;
      room += Math.max(0, free);
    });
    return room >= 0;
  }

  /** Moves all pods off the memory node with the lowest use, when there is room for all; whether it did. */
  emptyNode(): boolean {
    const [node] = this.#memoryNodes();
    if (node === undefined) return false;
    const pods = this.#podsOf(node).sort((a, b) => this.#bytesOf(b) - this.#bytesOf(a));
    if (this.#moves + pods.length > this.#parameters.moves) return false;
    const before = this.#used.slice();
    const targets: number[] = [];
    for (const pod of pods) {
      const target = this.#targetOf(pod);
      if (target === undefined) {
        this.#used.set(before);
        for (const [i] of targets.entries()) this.#cluster.nodeOfPod[pods[i]!] = node;
        return false;
      }
      targets.push(target);
      this.#place(pod, target);
    }
    this.#used.set(before);
    pods.forEach((pod, i) => {
      this.#cluster.nodeOfPod[pod] = node;
      this.#propose(pod, targets[i]!);
    });
    const name = this.#nameOf(node);
    const change = { kind: 'disable-node', node } as const;
    this.#cluster.apply(change);
    this.proposals.push({
      change,
      reason: `${name} has no pods left`,
      figures: [],
      cost: { bytes: 0, replicas: 0 },
    });
    return true;
  }

  /** From the fullest memory nodes, the smallest pods first, until nothing fits or enough has moved. */
  drain(): void {
    for (const node of this.#memoryNodes().reverse()) {
      const pods = this.#podsOf(node).sort((a, b) => this.#bytesOf(a) - this.#bytesOf(b));
      for (const pod of pods) {
        if (this.#moves === this.#parameters.moves) return;
        const target = this.#targetOf(pod);
        if (target === undefined) break;
        this.#propose(pod, target);
      }
    }
  }

  /** That are in use, the emptiest first. */
  #memoryNodes(): number[] {
    const { nodes } = this.#cluster.model;
    return nodes.ids
      .map((_, node) => node)
      .filter((node) => nodes.hardware[node] === 'memory' && nodes.state[node] === 'active')
      .filter((node) => !this.#cluster.isNodeDisabled[node])
      .sort((a, b) => this.#shareOf(a) - this.#shareOf(b) || a - b);
  }

  #podsOf(node: number): number[] {
    const { nodeOfPod } = this.#cluster;
    return nodeOfPod.flatMap((one, pod) => (one === node ? [pod] : []));
  }

  #targetOf(pod: number): number | undefined {
    const { nodes } = this.#cluster.model;
    let best: number | undefined;
    for (let node = 0; node < nodes.ids.length; node++) {
      if (nodes.hardware[node] !== 'ssd' || nodes.state[node] !== 'active') continue;
      const used = this.#used[node]! + this.#bytesOf(pod);
      if (used > nodes.memoryBytes[node]! * this.#parameters.threshold) continue;
      if (this.#sharesPartition(pod, node)) continue;
      if (this.#isFirstFit) return node;
      if (best === undefined || this.#shareOf(node) < this.#shareOf(best)) best = node;
    }
    return best;
  }

  /** Replicas of one partition never share a node. */
  #sharesPartition(pod: number, node: number): boolean {
    const { replicasOfPod, partitionOf } = this.#cluster;
    return replicasOfPod[pod]!.some((replica) =>
      this.#cluster.nodeHoldsPartition(node, partitionOf[replica]!),
    );
  }

  #propose(pod: number, toNode: number): void {
    const fromNode = this.#cluster.nodeOfPod[pod]!;
    const before = this.#shareOf(fromNode);
    const target = this.#shareOf(toNode);
    this.#place(pod, toNode);
    this.#moves++;
    const { ids } = this.#cluster.model.pods;
    const figure = (node: number, was: number) => ({
      name: `memory use of ${this.#nameOf(node)}, %`,
      before: was * 100,
      after: this.#shareOf(node) * 100,
    });
    this.proposals.push({
      change: { kind: 'move-pod', pod, fromNode, toNode },
      reason: `${this.#nameOf(toNode)} has idle memory for ${ids[pod]}`,
      figures: [figure(fromNode, before), figure(toNode, target)],
      cost: { bytes: this.#bytesOf(pod), replicas: this.#cluster.replicasOfPod[pod]!.length },
    });
  }

  #place(pod: number, toNode: number): void {
    this.#used[this.#cluster.nodeOfPod[pod]!]! -= this.#bytesOf(pod);
    this.#used[toNode]! += this.#bytesOf(pod);
    this.#cluster.nodeOfPod[pod] = toNode;
  }

  #bytesOf(pod: number): number {
    return this.#cluster.model.pods.memoryBytes[pod]!;
  }

  #shareOf(node: number): number {
    return this.#used[node]! / this.#cluster.model.nodes.memoryBytes[node]!;
  }

  #nameOf(node: number): string {
    return this.#cluster.model.nodes.ids[node]!;
  }
}
