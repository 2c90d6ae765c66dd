// A node of a cluster: its links, its replica of the metadata, and its state of the other nodes.

import { join } from 'node:path';
import type { LinkContext } from '../../cluster-links/cluster-link.ts';
import type { ClusterListener } from '../../cluster-links/cluster-listener.ts';
import type { NodeDefinition } from '../../contracts/cluster.ts';
import {
  type Json,
  MetadataUnavailable,
  type StoredDocument,
} from '../../control/metadata/document-store.ts';
import { ReplicatedDocumentStore } from '../../control/metadata/replicated/replicated-document-store.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { firstPosition, joiningPosition } from '../../storage-node/replicator/raft/log-position.ts';
import { RaftHost } from '../../storage-node/replicator/raft/raft-host.ts';
import { replicaId } from '../../storage-node/replicator/raft/replica-id.ts';
import { TcpTransport } from '../../storage-node/replicator/transport/tcp-transport.ts';
import { HelloError, joinPurpose } from '../../universal-row/protocol/hello.ts';
import { parseHostPort } from '../settings/cluster-addresses.ts';
import {
  type ClusterMetadata,
  type ClusterMetadataOptions,
  type ClusterStatus,
  ControlError,
  type NodeIdentity,
  type NodeReachability,
} from './cluster-metadata.ts';
import { type ControlAddress, ControlClient } from './control-client.ts';
import { controlPurpose } from './control-frames.ts';
import { HandlerTable } from './control-handlers.ts';
import {
  admitNode,
  changeNode,
  checkedRequest,
  definitionOf,
  nodesCollection,
  pause,
} from './join.ts';
import { MembershipKeeper } from './membership-keeper.ts';
import { clusterDirectory, type IdentityFile, type KnownPeer } from './node-identity.ts';
import { ObservedTransport } from './observed-transport.ts';
import { mustTakeOver } from './take-over-mark.ts';
import { RaftReplicatedGroup } from './raft-replicated-group.ts';

interface ClusterMemberOptions extends ClusterMetadataOptions {
  identityFile: IdentityFile;
  /** Its identity is set here. */
  context: LinkContext;
  /** Listens already, and is closed with the member. */
  listener: ClusterListener;
}

const metadataGroup = 1;
const staleAfterMs = 3000;
const statusMs = 3000;
const handOverMs = 2000;
/** How often a leader looks whether its disk is full. */
const leaveMs = 2000;
const removalMs = 30_000;
const defaultReplaceVoterMs = 300_000;
const logLimits = {
  segmentBytes: 16 * 1024 * 1024,
  maxLogBytes: 128 * 1024 * 1024,
  limits: { checkpointEntries: 1000, keptEntries: 500 },
};

export class ClusterMember implements ClusterMetadata {
  readonly identity: NodeIdentity;
  readonly handlers = new HandlerTable();
  readonly #options: ClusterMemberOptions;
  readonly #transport: TcpTransport;
  readonly #observed: ObservedTransport;
  readonly #client: ControlClient;
  readonly #leaderListeners = new Set<(isLeader: boolean, leader: number) => void>();
  readonly #nodeListeners = new Set<(nodes: readonly NodeDefinition[]) => void>();
  readonly #reachListeners = new Set<(node: number, reachable: boolean) => void>();
  #store!: ReplicatedDocumentStore;
  #host: RaftHost | undefined;
  #fullTimer: NodeJS.Timeout | undefined;
  /** Voters that were asked to lead since this node's disk is full. */
  #heirsAsked = 0;
  #group!: RaftReplicatedGroup;
  #keeper: MembershipKeeper | undefined;
  #all: readonly NodeDefinition[] = [];
  #nodes: readonly NodeDefinition[] = [];
  #addresses = new Map<number, ControlAddress>();
  #refreshDue = false;
  #isRemoved = false;
  #isClosed = false;

  /** Resolves when its replica is open; the replica's state may be old or empty. */
  static async open(options: ClusterMemberOptions): Promise<ClusterMember> {
    const member = new ClusterMember(options);
    try {
      await member.#open();
      return member;
    } catch (error) {
      await member.close();
      throw error;
    }
  }

  private constructor(options: ClusterMemberOptions) {
    const { context, listener, identityFile } = options;
    this.#options = options;
    this.identity = identityFile.begin();
    const { cluster, node, incarnation } = this.identity;
    context.identity = {
      ...context.identity,
      cluster: String(cluster),
      node: String(node),
      incarnation,
    };
    this.#transport = new TcpTransport({ listener, context });
    this.#observed = new ObservedTransport(this.#transport, (other, reachable) =>
      this.#reached(other, reachable),
    );
    this.#client = new ControlClient({
      context,
      purpose: controlPurpose,
      addressOf: (other) => this.#addresses.get(other),
    });
  }

  async #open(): Promise<void> {
    const { directory, identityFile, onFatal, report, replaceVoterMs, tickMs, electionTicks } =
      this.#options;
    const { cluster, node } = this.identity;
    const home = clusterDirectory(directory);
    this.#store = await ReplicatedDocumentStore.open({
      path: join(home, 'documents'),
      node,
      forward: (to, bytes, ms) => this.#forward(to, bytes, ms),
      others: () => [...this.#addresses.keys()],
      staleAfterMs,
      report: (message) => report('warn', message),
    });
    this.#refresh();
    this.#host = await RaftHost.open({
      disk: realDisk,
      directory: join(home, 'wal'),
      ids: { cluster, node },
      transport: this.#observed,
      onFatal,
      ...logLimits,
      ...(tickMs === undefined ? {} : { tickMs }),
      ...(electionTicks === undefined ? {} : { electionTicks }),
    });
    this.#group = new RaftReplicatedGroup({
      host: this.#host,
      group: metadataGroup,
      replica: replicaId(node),
      first: identityFile.record.isForming ? firstPosition([replicaId(node)]) : joiningPosition,
      machine: this.#store.machine,
      onLeader: () => this.#leaderChanged(),
    });
    this.#store.attach(this.#group);
    this.#keeper = new MembershipKeeper({
      node,
      group: this.#group,
      nodes: () => this.#nodes,
      unreachableMs: (other) => this.#unreachableMs(other),
      replaceVoterMs: replaceVoterMs ?? (() => defaultReplaceVoterMs),
      removed: (other) => this.#tellRemoved(other),
    });
    this.#store.watch(
      ({ collection }) => {
        if (collection === nodesCollection) this.#refreshSoon();
      },
      () => this.#refreshSoon(),
    );
    this.#fullTimer = setInterval(() => this.#leaveIfFull(), leaveMs).unref();
    this.#serve();
  }

  #serve(): void {
    const { listener } = this.#options;
    const { cluster } = this.identity;
    this.handlers.onBytes('metadata/write', (body) => this.#store.serveWrite(body));
    this.handlers.on('cluster/status', () => this.#view() as unknown as Json);
    this.handlers.on('cluster/removed', (_body, { node }) => {
      this.#removed(`node ${node} says so`);
      return null;
    });
    this.handlers.on('cluster/leader', () => this.leader);
    this.handlers.on(joinPurpose, async (body) => {
      const { directory, identityFile } = this.#options;
      if (identityFile.record.isForming) {
        throw new ControlError('the first node still forms the cluster', 'refused');
      }
      if (mustTakeOver(directory)) {
        throw new ControlError('the first node still takes over the data it had', 'refused');
      }
      return (await admitNode(this.#store, cluster, checkedRequest(body))) as unknown as Json;
    });
    listener.serve(controlPurpose, {
      admit: ({ node }) => this.#admit(Number(node)),
      open: (link) => {
        const { node, incarnation } = link.peer;
        return this.handlers.serve(link, { node: Number(node), incarnation });
      },
    });
    listener.serve(joinPurpose, {
      open: (link) => this.handlers.serve(link, { node: 0, incarnation: 0 }, joinPurpose),
    });
  }

  #admit(node: number): void {
    const known = this.#all.find((one) => one.node === node);
    if (known?.state === 'removed') throw new HelloError(`node ${node} ${removedWords}`);
  }

  get port(): number {
    return this.#options.listener.port;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  copyOf(collection: string): StoredDocument[] {
    return this.#store.local(collection);
  }

  isLatest(ms: number): Promise<boolean> {
    return this.#store.isLatest(ms);
  }

  get store(): ReplicatedDocumentStore {
    return this.#store;
  }

  // ---- the leader

  get isLeader(): boolean {
    return this.#group.isLeader;
  }

  get leader(): number {
    return this.#group.leader;
  }

  onLeader(listener: (isLeader: boolean, leader: number) => void): () => void {
    return subscribe(this.#leaderListeners, listener);
  }

  #leaderChanged(): void {
    // Peers that are removed keep their link to the leader only.
    this.#refreshSoon();
    for (const listener of this.#leaderListeners) listener(this.isLeader, this.leader);
  }

  // ---- the nodes

  nodes(): readonly NodeDefinition[] {
    return this.#nodes;
  }

  onNodes(listener: (nodes: readonly NodeDefinition[]) => void): () => void {
    return subscribe(this.#nodeListeners, listener);
  }

  reachability(): readonly NodeReachability[] {
    return this.#nodes.map(({ node }) => this.#reachabilityOf(node));
  }

  onReachable(listener: (node: number, reachable: boolean) => void): () => void {
    return subscribe(this.#reachListeners, listener);
  }

  #reachabilityOf(node: number): NodeReachability {
    const known = this.#observed.of(node);
    return node === this.identity.node ? { ...known, reachable: true } : known;
  }

  #unreachableMs(node: number): number {
    const { reachable, since } = this.#reachabilityOf(node);
    return reachable ? 0 : Math.max(1, Date.now() - since);
  }

  #reached(node: number, reachable: boolean): void {
    this.#options.report('info', `node ${node} ${reachable ? 'is in reach' : 'is out of reach'}`);
    if (!reachable) this.#client.drop(node);
    for (const listener of this.#reachListeners) listener(node, reachable);
    this.#keeper?.look();
  }

  #refreshSoon(): void {
    if (this.#refreshDue || this.#isClosed) return;
    this.#refreshDue = true;
    setImmediate(() => {
      this.#refreshDue = false;
      if (!this.#isClosed) this.#refresh();
    });
  }

  /** Applies the documents of the nodes. */
  #refresh(): void {
    const before = JSON.stringify(this.#all);
    this.#all = this.#store
      .local(nodesCollection)
      .map(definitionOf)
      .sort((a, b) => a.node - b.node);
    this.#nodes = this.#all.filter(({ state }) => state !== 'removed');
    const own = this.#all.find(({ node }) => node === this.identity.node);
    // A copy that does not know this node yet does not know all others either.
    const peers = own === undefined ? this.#options.identityFile.record.peers : this.#peersOf();
    this.#link(peers);
    if (own?.state === 'removed') this.#removed('the metadata say so');
    if (JSON.stringify(this.#all) === before) return;
    if (own !== undefined) this.#keepPeers(peers);
    for (const listener of this.#nodeListeners) listener(this.#nodes);
    this.#keeper?.look();
  }

  /**
   * Stored for the next start; without them the node would have to find others from its copy of the
   * documents.
   */
  #keepPeers(peers: readonly KnownPeer[]): void {
    const { identityFile, report } = this.#options;
    try {
      identityFile.setPeers(peers);
    } catch (error) {
      report('warn', `the addresses of other nodes are not kept: ${(error as Error).message}`);
    }
  }

  #peersOf(): KnownPeer[] {
    return this.#nodes
      .filter(({ node }) => node !== this.identity.node)
      .map(({ node, addresses }) => ({ node, control: addresses.control }));
  }

  #link(peers: readonly KnownPeer[]): void {
    const addresses = new Map<number, ControlAddress>();
    const named = [...peers, ...this.#leaving()];
    for (const { node, control } of named) {
      const address = parseHostPort(control);
      if (address !== undefined) addresses.set(node, address);
    }
    for (const node of this.#addresses.keys()) if (!addresses.has(node)) this.#client.drop(node);
    this.#addresses = addresses;
    this.#transport.setPeers(addresses);
  }

  /** Removed nodes that are members still: the leader keeps its links to them until they are not. */
  #leaving(): KnownPeer[] {
    if (this.#keeper === undefined || !this.isLeader) return [];
    const { voters, learners } = this.#keeper.members();
    return this.#all
      .filter(({ node, state }) => state === 'removed' && [...voters, ...learners].includes(node))
      .filter(({ node }) => node !== this.identity.node)
      .map(({ node, addresses }) => ({ node, control: addresses.control }));
  }

  // ---- questions

  async ask(node: number, name: string, body: Json, ms: number): Promise<Json> {
    const bytes = Buffer.from(JSON.stringify(body));
    if (node !== this.identity.node) {
      return JSON.parse((await this.#client.ask(node, name, bytes, ms)).toString()) as Json;
    }
    const late = new ControlError('no answer in time', 'unknown');
    let timer: NodeJS.Timeout | undefined;
    try {
      const answer = await Promise.race([
        this.handlers.answer(name, bytes, this.identity),
        new Promise<never>((_resolve, reject) => {
          timer = setTimeout(() => reject(late), ms);
        }),
      ]);
      return JSON.parse(Buffer.from(answer).toString()) as Json;
    } catch (error) {
      if (error instanceof ControlError) throw error;
      const { message, code } = error as Error & { code?: string };
      throw new ControlError(message, 'refused', code);
    } finally {
      clearTimeout(timer);
    }
  }

  async #forward(node: number, bytes: Uint8Array, ms: number): Promise<Uint8Array> {
    try {
      return await this.#client.ask(node, 'metadata/write', bytes, ms);
    } catch (error) {
      const { outcome, message } = error as ControlError;
      throw new MetadataUnavailable(message, outcome === 'unknown' ? 'unknown' : 'none');
    }
  }

  async status(): Promise<ClusterStatus> {
    const { leader } = this;
    if (leader === 0 || this.isLeader) return this.#view();
    try {
      return (await this.ask(leader, 'cluster/status', null, statusMs)) as unknown as ClusterStatus;
    } catch (error) {
      if (!(error instanceof ControlError)) throw error;
      return this.#view();
    }
  }

  #view(): ClusterStatus {
    const { voters = [], learners = [] } = this.#keeper?.members() ?? {};
    return {
      leader: this.isLeader ? this.identity.node : 0,
      nodes: this.#nodes.map((one) => ({ ...one, ...this.#reachabilityOf(one.node) })),
      voters,
      learners,
    };
  }

  // ---- removal

  async remove(node: number): Promise<void> {
    if (!this.#all.some((one) => one.node === node)) {
      throw new ControlError(`there is no node ${node}`, 'refused', 'NO_NODE');
    }
    if (this.#nodes.every((one) => one.node === node)) {
      throw new ControlError(
        'the last node of a cluster cannot be removed',
        'refused',
        'LAST_NODE',
      );
    }
    await changeNode(this.#store, node, (one) =>
      one.state === 'removed' ? undefined : { ...one, state: 'removed' },
    );
    const until = performance.now() + removalMs;
    while (!this.#isClosed) {
      const { leader, voters, learners } = await this.status();
      if (leader !== 0 && ![...voters, ...learners].includes(node)) return;
      if (performance.now() > until) {
        throw new MetadataUnavailable(
          `node ${node} is to be removed, and still a member of the metadata's group`,
          'unknown',
        );
      }
      await pause(100);
    }
  }

  /** The leader notifies a removed node, which may not have received the removal. */
  #tellRemoved(node: number): void {
    if (this.#nodes.some((one) => one.node === node)) return;
    void this.#client
      .ask(node, 'cluster/removed', Buffer.from('null'), statusMs)
      .catch(() => undefined)
      .then(() => this.#refreshSoon());
  }

  #removed(why: string): void {
    if (this.#isClosed || this.#isRemoved) return;
    this.#isRemoved = true;
    const { node } = this.identity;
    this.#options.onFatal(new Error(`node ${node} ${removedWords}: ${why}`));
  }

  /** Rejects when another node says that this one is in the cluster no more. */
  async throwIfRemoved(): Promise<void> {
    const asked = [...this.#addresses.keys()].map(async (node) => {
      const answer = this.#client.ask(node, 'cluster/leader', Buffer.from('null'), statusMs);
      const problem = await answer.then(() => '').catch((error: Error) => error.message);
      if (problem.includes(removedWords)) throw new Error(problem);
    });
    await Promise.all(asked);
  }

  // ---- the end

  async close(): Promise<void> {
    if (this.#isClosed) return;
    if (this.#group?.isLeader) await this.#handOver();
    await this.abandon();
  }

  async abandon(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#fullTimer);
    this.#keeper?.close();
    this.#client.close();
    await this.#host?.close();
    await this.#store?.close();
    await this.#options.listener.close();
  }

  /** A leader without room on its disk refuses changes of the metadata. Others may have room. */
  #leaveIfFull(): void {
    if (this.#host?.pod.failure === undefined) this.#heirsAsked = 0;
    else if (this.isLeader) this.#leave();
  }

  /** Each other voter is asked once: where all are full, somebody has to lead. */
  #leave(): void {
    const { voters } = this.#keeper!.members();
    const heirs = voters.filter(
      (one) => one !== this.identity.node && this.#unreachableMs(one) === 0,
    );
    const heir = heirs[this.#heirsAsked++];
    if (heir !== undefined) this.#group.raft.transfer(replicaId(heir));
  }

  async #handOver(): Promise<void> {
    const until = performance.now() + handOverMs;
    let heir: number | undefined;
    while (this.isLeader && performance.now() < until) {
      // The heir may stop, too.
      if (heir === undefined || this.#unreachableMs(heir) > 0) {
        const { voters } = this.#keeper!.members();
        heir = voters.find((one) => one !== this.identity.node && this.#unreachableMs(one) === 0);
        if (heir === undefined) return;
        this.#group.raft.transfer(replicaId(heir));
      }
      await pause(10);
    }
  }
}

const removedWords = 'was removed from the cluster';

function subscribe<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}
