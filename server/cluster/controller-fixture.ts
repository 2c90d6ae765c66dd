// A control plane of a cluster for tests of the controller: nodes that apply the metadata at once.

import type {
  GroupDefinition,
  NodeDefinition,
  NodeState,
  ReplicaStatus,
} from '../../contracts/cluster.ts';
import type { Json, StoredDocument } from '../../control/metadata/document-store.ts';
import { MemoryStore } from '../../control/metadata/memory-store-fixture.ts';
import type { ClusterMetadata, ClusterStatus } from './cluster-metadata.ts';
import { groupQuestions, type TransferOrder } from './group-questions.ts';

type Metadata = Pick<
  ClusterMetadata,
  | 'store'
  | 'copyOf'
  | 'isLatest'
  | 'isLeader'
  | 'onLeader'
  | 'nodes'
  | 'onNodes'
  | 'onReachable'
  | 'status'
  | 'ask'
>;

export class FakeMetadata implements Metadata {
  readonly store = new MemoryStore();
  isLeader = true;
  /** Whether most voters of the metadata answer. */
  isReachable = true;
  readonly transfers: (TransferOrder & { asked: number })[] = [];
  readonly #nodes = new Map<number, ClusterStatus['nodes'][number]>();
  /** Replica that leads each group. */
  readonly #leaders = new Map<number, number>();
  readonly #leaderListeners = new Set<(isLeader: boolean, leader: number) => void>();
  readonly #nodeListeners = new Set<(nodes: readonly NodeDefinition[]) => void>();

  constructor(nodes: number) {
    for (let node = 1; node <= nodes; node++) this.setNode(node, {});
  }

  setNode(node: number, change: { state?: NodeState; reachable?: boolean }): void {
    const none = {
      control: '',
      redis: '',
      influx: '',
      redisClients: '',
      influxClients: '',
      admin: '',
    };
    const usual = {
      node,
      zone: '',
      state: 'up' as const,
      addresses: none,
      incarnation: 1,
      joinId: String(node),
    };
    this.#nodes.set(node, {
      ...usual,
      reachable: true,
      since: 0,
      ...this.#nodes.get(node),
      ...change,
    });
    for (const listener of this.#nodeListeners) listener(this.nodes());
  }

  setLeader(isLeader: boolean): void {
    this.isLeader = isLeader;
    for (const listener of this.#leaderListeners) listener(isLeader, isLeader ? 1 : 2);
  }

  copyOf(collection: string): StoredDocument[] {
    return this.store.copyOf(collection);
  }

  async isLatest(): Promise<boolean> {
    return this.isReachable;
  }

  onLeader(listener: (isLeader: boolean, leader: number) => void): () => void {
    this.#leaderListeners.add(listener);
    return () => this.#leaderListeners.delete(listener);
  }

  nodes() {
    return [...this.#nodes.values()];
  }

  onNodes(listener: (nodes: readonly NodeDefinition[]) => void): () => void {
    this.#nodeListeners.add(listener);
    return () => this.#nodeListeners.delete(listener);
  }

  onReachable(): () => void {
    return () => {};
  }

  async status(): Promise<ClusterStatus> {
    return { leader: 1, nodes: this.nodes(), learners: [], voters: [1] };
  }

  async groups(): Promise<GroupDefinition[]> {
    const documents = await this.store.list('groups');
    return documents.map(({ body }) => body as unknown as GroupDefinition);
  }

  async ask(node: number, name: string, body: Json): Promise<Json> {
    if (this.#nodes.get(node)?.reachable !== true) throw new Error(`no link to node ${node}`);
    if (name === groupQuestions.transfer) {
      const order = body as unknown as TransferOrder;
      this.transfers.push({ ...order, asked: node });
      const group = (await this.groups()).find((one) => one.group === order.group);
      this.#leaders.set(order.group, group!.replicas.find((one) => one.node === order.to)!.replica);
      return null;
    }
    const groups = await this.groups();
    return groups.flatMap((group) => this.#statusOn(node, group)) as unknown as Json;
  }

  #statusOn(node: number, { group, replicas }: GroupDefinition): ReplicaStatus[] {
    const voters = replicas.filter(({ state }) => state === 'voter');
    const known = voters.find(({ replica }) => replica === this.#leaders.get(group)) ?? voters[0]!;
    this.#leaders.set(group, known.replica);
    const own = replicas.find((one) => one.node === node);
    if (own === undefined || own.state === 'leaving') return [];
    return [
      {
        group,
        replica: own.replica,
        role: own === known ? 'leader' : 'follower',
        leader: known.node,
        term: 1,
        applied: 0,
        rows: 0,
        bytes: 0,
        voters: voters.map(({ replica }) => replica),
        learners: [],
      },
    ];
  }
}
