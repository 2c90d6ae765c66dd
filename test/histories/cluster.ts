// The nodes of a history and their metadata, as the history sees them: which groups there are, who leads, what has yet to come to rest, and
// what the replicas hold at the end.

import type { GroupDefinition } from '../../contracts/cluster.ts';
import type { MetadataService } from './metadata.ts';
import { copies, type Life, type NodeProcess } from './process.ts';

export interface ClusterParts<N> {
  readonly nodes: readonly N[];
  readonly metadata: MetadataService;
  /** Lets time pass until it is done, or for long enough; false when the history has failed. */
  readonly pass: (isDone: () => boolean) => Promise<boolean>;
  readonly breach: (error: Error) => void;
}

/** State of a replica, and the entry as of which it is. */
export interface StateAt<S> {
  readonly index: number;
  readonly state: S;
}

const mostTries = 50;

export class SimulatedCluster<L extends Life, N extends NodeProcess<L>> {
  readonly nodes: readonly N[];
  protected readonly parts: ClusterParts<N>;

  constructor(parts: ClusterParts<N>) {
    this.parts = parts;
    this.nodes = parts.nodes;
  }

  node(number: number): N {
    return this.nodes[number - 1]!;
  }

  groups(): GroupDefinition[] {
    const documents = this.parts.metadata.store.copyOf('groups');
    return documents.map(({ body }) => body as unknown as GroupDefinition);
  }

  /** Replicas that have moved. */
  get moves(): number {
    // Each has a change of the members for the new replica, for the one that leaves, and for its end.
    const moves = this.groups().map(({ epoch }) => Math.floor(epoch / 3));
    return moves.reduce((sum, count) => sum + count, 0);
  }

  /** The node that leads a group, of those that serve. */
  leaderOf(group: number): N | undefined {
    return this.nodes.find((node) => node.status(group)?.role === 'leader');
  }

  // ---- at the end

  /** What has yet to come to rest of these groups, if anything. */
  protected unsettledOf(served: readonly GroupDefinition[]): string | undefined {
    const [move] = this.parts.metadata.store.copyOf('groupMoves');
    if (move !== undefined) return `a replica moves: ${JSON.stringify(move.body)}`;
    for (const { group, replicas } of served) {
      const found = replicas.map(({ node }) => this.node(node).status(group));
      const [first] = found;
      const isLevel = found.every((one) => one !== undefined && one.applied === first?.applied);
      const isLed = found.filter((one) => one?.role === 'leader').length === 1;
      const wanted = replicas.map(({ replica }) => replica).sort((a, b) => a - b);
      const has = [...(first?.voters ?? [])].sort((a, b) => a - b);
      const isWhole = replicas.length === copies && JSON.stringify(has) === JSON.stringify(wanted);
      if (!isLevel || !isLed || !isWhole) return `group ${group}: ${JSON.stringify(found)}`;
    }
    return undefined;
  }

  /** States of a group on each of its nodes, as of the same entry: a leader may change something meanwhile. */
  protected async statesOf<S>(
    { group, replicas }: GroupDefinition,
    stateAt: (life: L, group: number) => Promise<StateAt<S>>,
  ): Promise<S[]> {
    const { pass, breach } = this.parts;
    for (let tries = 0; tries < mostTries; tries++) {
      const found: StateAt<S>[] = [];
      for (const { node } of replicas) {
        this.node(node).do(async (life) => {
          try {
            found.push(await stateAt(life, group));
          } catch (error) {
            breach(error as Error);
          }
        });
      }
      const isGoing = await pass(() => found.length === replicas.length);
      if (!isGoing) break;
      if (found.length < replicas.length) throw new Error('the state of a node cannot be read');
      if (found.every(({ index }) => index === found[0]!.index)) {
        return found.map(({ state }) => state);
      }
    }
    throw new Error('the replicas are not at one entry');
  }
}
