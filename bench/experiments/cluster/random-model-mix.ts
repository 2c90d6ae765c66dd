// Consolidation by chance: what moving pods of memory nodes onto SSD nodes comes to without a plan.

import type { Policy, Proposal } from '../../../control/scheduler/proposal.ts';
import { freeOfCost } from '../../../control/scheduler/proposal.ts';

/** So many pods of memory nodes each go to an SSD node drawn from those that stay below the threshold; empty nodes go offline. */
export function randomModelMix(moves: number, threshold: number): Policy {
  return {
    name: 'random pods',
    plan({ nodes, pods }, { rng }) {
      const draw = <T>(from: readonly T[]): T => from[Math.floor(rng.next() * from.length)]!;
      const numbers = nodes.ids.map((_, node) => node);
      const isActive = (node: number): boolean => nodes.state[node] === 'active';
      const memory = numbers.filter((node) => nodes.hardware[node] === 'memory' && isActive(node));
      const ssd = numbers.filter((node) => nodes.hardware[node] === 'ssd' && isActive(node));
      const nodeOf = [...pods.node];
      const used = new Float64Array(nodes.ids.length);
      nodeOf.forEach((node, pod) => (used[node]! += pods.memoryBytes[pod]!));
      const proposals: Proposal[] = [];
      const propose = (change: Proposal['change']): void => {
        proposals.push({ change, reason: 'drawn at random', figures: [], cost: freeOfCost });
      };
      const waiting = nodeOf.flatMap((node, pod) => (memory.includes(node) ? [pod] : []));
      for (let moved = 0; moved < moves && waiting.length > 0; ) {
        const pod = draw(waiting);
        waiting.splice(waiting.indexOf(pod), 1);
        const bytes = pods.memoryBytes[pod]!;
        const free = ssd.filter(
          (node) => used[node]! + bytes <= nodes.memoryBytes[node]! * threshold,
        );
        if (free.length === 0) continue;
        const [fromNode, toNode] = [nodeOf[pod]!, draw(free)];
        propose({ kind: 'move-pod', pod, fromNode, toNode });
        used[fromNode]! -= bytes;
        used[toNode]! += bytes;
        nodeOf[pod] = toNode;
        moved++;
      }
      for (const node of memory)
        if (!nodeOf.includes(node)) propose({ kind: 'disable-node', node });
      return proposals;
    },
  };
}
