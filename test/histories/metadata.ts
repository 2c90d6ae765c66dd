// The metadata of the cluster of a history: documents in one place, which stands for the group that keeps them, and each node's copy,
// which is behind. A node reaches them while it reaches most nodes. The history says which node leads; for a while two may think so.

import { type NodeAddresses, type NodeDefinition, ownLevel } from '../../contracts/cluster.ts';
import {
  type DocumentChange,
  type DocumentStore,
  type DocumentWrite,
  type Json,
  MetadataUnavailable,
  RevisionConflict,
  type Snapshot,
  type StoredDocument,
} from '../../control/metadata/document-store.ts';
import { MemoryStore } from '../../control/metadata/memory-store-fixture.ts';
import {
  type ClusterMetadata,
  type ClusterStatus,
  ControlError,
  type ControlHandler,
  type NodeReachability,
} from '../../server/cluster/cluster-metadata.ts';
import type { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import type { OwnedTimeline, Owner } from './owned-timeline.ts';

interface MetadataWorld {
  readonly timeline: OwnedTimeline;
  readonly random: Random;
  readonly nodes: readonly number[];
  isCut(from: number, to: number): boolean;
  /** Most of a message between two nodes, milliseconds. */
  delay(): number;
}

/** Milliseconds after which a call without an answer is given up. */
const giveUpMs = 3000;
const retryMs = 50;
/** Interval, in milliseconds, at which it is determined which nodes can reach each other. */
const lookMs = 300;
/** Longest time that a node does not know that it leads no more. */
const deposedMs = 2000;

export class MetadataService {
  readonly store = new MemoryStore();
  /** No node can reach the documents. */
  isOut = false;
  readonly #world: MetadataWorld;
  readonly #members = new Map<number, NodeMetadata>();
  /** What each node had at the end of its last life. */
  readonly #kept = new Map<number, NodeMetadata>();
  #leader = 0;

  constructor(world: MetadataWorld) {
    this.#world = world;
    this.store.watch(() => {
      for (const member of this.#members.values()) member.hint();
    });
    world.timeline.as(undefined, () => this.#look());
  }

  get world(): MetadataWorld {
    return this.#world;
  }

  get leader(): number {
    return this.#leader;
  }

  member(number: number): NodeMetadata | undefined {
    return this.#members.get(number);
  }

  /** The node's part in one of its lives. */
  enter(number: number, incarnation: number, owner: Owner): NodeMetadata {
    const member = new NodeMetadata(this, number, incarnation, owner, this.#kept.get(number));
    this.#members.set(number, member);
    return member;
  }

  left(number: number): void {
    const member = this.#members.get(number);
    if (member !== undefined) this.#kept.set(number, member);
    this.#members.delete(number);
    if (this.#leader === number) this.#leader = 0;
  }

  isCut(from: number, to: number): boolean {
    return this.#world.isCut(from, to) || this.#world.isCut(to, from);
  }

  /** Whether the node reaches most nodes. */
  reaches(number: number): boolean {
    if (this.isOut) return false;
    const { nodes } = this.#world;
    if (this.#members.get(number)?.isPaused !== false) return false;
    const found = nodes.filter((other) => other === number || this.#isLinked(number, other));
    return found.length > nodes.length / 2;
  }

  #isLinked(from: number, to: number): boolean {
    return this.#members.get(to)?.isPaused === false && !this.isCut(from, to);
  }

  #look(): void {
    const { timeline, random } = this.#world;
    if (!this.#members.has(this.#leader) || !this.reaches(this.#leader)) this.elect();
    for (const [number, member] of this.#members) {
      member.reachable((other) => other === number || this.#isLinked(number, other));
    }
    timeline.after(lookMs * (0.5 + random.next()), () => this.#look());
  }

  /** Another node leads, if one can. */
  elect(): void {
    const { random } = this.#world;
    const able = [...this.#members.keys()].filter((one) => this.reaches(one));
    if (able.length === 0) return;
    const before = this.#members.get(this.#leader);
    this.#leader = random.pick(able);
    const after = this.#members.get(this.#leader)!;
    if (before === after) return;
    before?.leads(false, random.next() * deposedMs);
    after.leads(true, random.next() * 300);
  }
}

/** What a node has of the metadata. */
export class NodeMetadata implements ClusterMetadata {
  readonly identity: ClusterMetadata['identity'];
  readonly port = 0;
  readonly store: DocumentStore;
  readonly handlers = {
    on: (name: string, handler: ControlHandler) => void this.#handlers.set(name, handler),
  };
  isLeader = false;
  readonly #service: MetadataService;
  readonly #owner: Owner;
  readonly #handlers = new Map<string, ControlHandler>();
  readonly #copy: Map<string, StoredDocument>;
  readonly #watchers = new Set<(change: DocumentChange) => void>();
  readonly #leaderListeners = new Set<(isLeader: boolean, leader: number) => void>();
  readonly #reachListeners = new Set<(node: number, reachable: boolean) => void>();
  readonly #reach = new Map<number, { reachable: boolean; since: number }>();
  #revision = 0;
  #isDue = false;

  constructor(
    service: MetadataService,
    number: number,
    incarnation: number,
    owner: Owner,
    before: NodeMetadata | undefined,
  ) {
    this.#service = service;
    this.#owner = owner;
    this.#copy = new Map(before === undefined ? [] : before.#copy);
    this.#revision = before?.revision ?? 0;
    this.identity = { cluster: 1, node: number, incarnation };
    this.store = new CopiedStore(service, this);
    for (const node of service.world.nodes) this.#reach.set(node, { reachable: true, since: 0 });
    // A node that has joined has a copy.
    if (before === undefined) this.catchUp();
    this.hint();
  }

  get leader(): number {
    return this.isLeader ? this.identity.node : 0;
  }

  get revision(): number {
    return this.#revision;
  }

  get isPaused(): boolean {
    return this.#service.world.timeline.now < this.#owner.pausedUntil;
  }

  get isInReach(): boolean {
    return this.#service.reaches(this.identity.node);
  }

  /** In the node's own time: not while it stands still, and not once it has ended. */
  later(ms: number, act: () => void): void {
    const { timeline } = this.#service.world;
    timeline.as(this.#owner, () => timeline.after(ms, act));
  }

  /** Resolves in the node's own time. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.later(ms, resolve));
  }

  /** Half of a question and its answer. */
  hop(): Promise<void> {
    return this.sleep(this.#hopMs());
  }

  #hopMs(): number {
    const { world } = this.#service;
    return world.random.next() * world.delay();
  }

  // ---- the copy

  /** There may be changes. */
  hint(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.later(this.#hopMs(), () => {
      this.#isDue = false;
      if (this.isInReach) this.catchUp();
      else this.later(retryMs, () => this.hint());
    });
  }

  catchUp(): void {
    for (const change of this.#service.store.changesAfter(this.#revision)) {
      const { collection, id, revision, body } = change;
      this.#revision = revision;
      if (body === undefined) this.#copy.delete(`${collection}/${id}`);
      else this.#copy.set(`${collection}/${id}`, { collection, id, revision, body });
      for (const watcher of this.#watchers) watcher(change);
    }
  }

  watch(listener: (change: DocumentChange) => void): () => void {
    this.#watchers.add(listener);
    return () => this.#watchers.delete(listener);
  }

  all(): StoredDocument[] {
    return [...this.#copy.values()].map((document) => structuredClone(document));
  }

  copyOf(collection: string): StoredDocument[] {
    return this.all()
      .filter((document) => document.collection === collection)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async isLatest(ms: number): Promise<boolean> {
    await this.hop();
    if (!this.isInReach) {
      await this.sleep(ms);
      return false;
    }
    this.#setLeads(this.#service.leader === this.identity.node);
    this.catchUp();
    return true;
  }

  // ---- who leads

  leads(isLeader: boolean, ms: number): void {
    this.later(ms, () => {
      if (isLeader === (this.#service.leader === this.identity.node)) this.#setLeads(isLeader);
    });
  }

  #setLeads(isLeader: boolean): void {
    if (isLeader === this.isLeader) return;
    this.isLeader = isLeader;
    for (const listener of this.#leaderListeners) listener(isLeader, this.leader);
  }

  onLeader(listener: (isLeader: boolean, leader: number) => void): () => void {
    this.#leaderListeners.add(listener);
    return () => this.#leaderListeners.delete(listener);
  }

  // ---- nodes

  nodes(): readonly NodeDefinition[] {
    return this.#service.world.nodes.map((node) => {
      const address = `node-${node}:${node}`;
      const addresses = { redis: address, influx: address, control: address } as NodeAddresses;
      const build = { level: ownLevel, incarnation: 1 };
      const times = { incarnation: 1, build, joinId: String(node) };
      return { node, zone: '', state: 'up' as const, addresses, ...times };
    });
  }

  onNodes(): () => void {
    return () => {};
  }

  reachable(isUp: (node: number) => boolean): void {
    this.later(0, () => {
      for (const [node, known] of this.#reach) {
        const reachable = isUp(node);
        if (reachable === known.reachable) continue;
        this.#reach.set(node, { reachable, since: Date.now() });
        for (const listener of this.#reachListeners) listener(node, reachable);
      }
    });
  }

  reachability(): readonly NodeReachability[] {
    return Array.from(this.#reach, ([node, one]) => ({ node, ...one }));
  }

  onReachable(listener: (node: number, reachable: boolean) => void): () => void {
    this.#reachListeners.add(listener);
    return () => this.#reachListeners.delete(listener);
  }

  async status(): Promise<ClusterStatus> {
    const nodes = this.nodes().map((node) => ({ ...node, ...this.#reach.get(node.node)! }));
    return { leader: this.leader, nodes, voters: nodes.map(({ node }) => node), learners: [] };
  }

  ask(to: number, name: string, body: Json, ms: number): Promise<Json> {
    const from = this.identity.node;
    return new Promise((resolve, reject) => {
      this.later(ms, () => reject(new ControlError('no answer in time', 'unknown')));
      const target = this.#service.member(to);
      if (target === undefined || this.#service.isCut(from, to)) return;
      const answer = (act: () => void): void => {
        // The link has ended in the meantime.
        if (!this.#service.isCut(from, to)) this.later(this.#hopMs(), act);
      };
      const sent = structuredClone(body);
      target.later(this.#hopMs(), () => {
        const handler = target.#handlers.get(name);
        const peer = { node: from, incarnation: this.identity.incarnation };
        const done = async (): Promise<Json> => {
          if (handler === undefined) throw new Error(`no answers to ${name} yet`);
          return await handler(sent, peer);
        };
        done().then(
          (value) => answer(() => resolve(structuredClone(value))),
          ({ message }: Error) => answer(() => reject(new ControlError(message, 'refused'))),
        );
      });
    });
  }

  async remove(): Promise<void> {
    throw new Error('nodes are not removed');
  }

  async close(): Promise<void> {}

  async abandon(): Promise<void> {}
}

/** The documents as a node reaches them. */
class CopiedStore implements DocumentStore {
  readonly pollMs = 1000;
  readonly #service: MetadataService;
  readonly #node: NodeMetadata;

  constructor(service: MetadataService, node: NodeMetadata) {
    this.#service = service;
    this.#node = node;
  }

  get revision(): number {
    return this.#node.revision;
  }

  /** Out of reach of the others a node answers from what it has, after a while. */
  async #read(): Promise<StoredDocument[]> {
    await this.#node.hop();
    if (this.#node.isInReach) this.#node.catchUp();
    else await this.#node.sleep(giveUpMs);
    return this.#node.all();
  }

  async get(collection: string, id: string): Promise<StoredDocument | undefined> {
    const all = await this.#read();
    return all.find((one) => one.collection === collection && one.id === id);
  }

  async list(collection: string): Promise<StoredDocument[]> {
    await this.#read();
    return this.#node.copyOf(collection);
  }

  async snapshot(): Promise<Snapshot> {
    return { documents: await this.#read(), revision: this.revision };
  }

  async changes(after: number): Promise<DocumentChange[]> {
    return this.#service.store.changesAfter(after);
  }

  onHint(listener: () => void): () => void {
    return this.watch(listener);
  }

  watch(listener: (change: DocumentChange) => void): () => void {
    return this.#node.watch(listener);
  }

  async write(writes: readonly DocumentWrite[]): Promise<number[]> {
    const node = this.#node;
    await node.hop();
    if (!node.isInReach) {
      await node.sleep(giveUpMs);
      throw new MetadataUnavailable('no answer in time');
    }
    let made: number[] | RevisionConflict;
    try {
      made = this.#service.store.writeNow(writes);
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
      made = error;
    }
    await node.hop();
    if (!node.isInReach) {
      await node.sleep(giveUpMs);
      throw new MetadataUnavailable('no answer in time', 'unknown');
    }
    node.catchUp();
    if (made instanceof RevisionConflict) throw made;
    return made;
  }

  async close(): Promise<void> {}
}
