// The replicas of groups that the metadata place on this node, in one plane: opens and closes them,
// and as a leader brings a group's members to those in the metadata. All of them share one log on
// disk, one connection to each other node, and one port, which also serves the plane's gateways.

import { join } from 'node:path';
import type { LinkListener } from '../../cluster-links/cluster-listener.ts';
import type { LinkContext } from '../../cluster-links/cluster-link.ts';
import type {
  ClusterView,
  GroupDefinition,
  GroupMinutes,
  MinuteSpan,
  NodeDefinition,
  ReplicaStatus,
} from '../../contracts/cluster.ts';
import { makeDurableDirectory } from '../../universal-row/durable-names.ts';
import type { Disk } from '../../universal-row/environment.ts';
import { nextMemberStep } from '../../storage-node/group-members.ts';
import {
  type FsyncPolicy,
  fullLogBytes,
  type LogRole,
} from '../../storage-node/replicator/partition-log.ts';
import { RaftHost } from '../../storage-node/replicator/raft/raft-host.ts';
import { entryBytesFor, type RaftLog } from '../../storage-node/replicator/raft/raft-log.ts';
import type { RaftPod } from '../../storage-node/replicator/raft/raft-pod.ts';
import {
  countOfReplica,
  lastReplicaId,
  nodeOfReplica,
  replicaId,
} from '../../storage-node/replicator/raft/replica-id.ts';
import { TcpTransport } from '../../storage-node/replicator/transport/tcp-transport.ts';
import type { ReplicaState } from './cluster-samples.ts';
import { FenceReports } from './fence-reports.ts';
import { collectMs, GroupLoads } from './group-loads.ts';
import type { PlaneCluster } from './messages.ts';
import { type NodePlace, type PlaneMachine, realMachine } from './plane-machine.ts';

type Report = (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;

/** A replica as its plane sees it: a pod of rows, or of time series. */
interface ReplicaPod {
  readonly role: LogRole;
  /** Replica that leads, 0 while none is known. */
  readonly leader: number;
  /** Why writes are refused, for now. */
  readonly writeFailure: Error | undefined;
  /** For a leader: resolves when all evaluated entries are durable. */
  durable?(): Promise<void>;
  close(): Promise<void>;
}

/** A pod that is open, and its log. */
export interface OpenedReplica<P> {
  readonly pod: P;
  readonly log: RaftLog;
}

export interface OpenReplica {
  readonly definition: GroupDefinition;
  readonly replica: number;
  /** Its own, empty or as it left it. */
  readonly directory: string;
  readonly disk: Disk;
  readonly raft: RaftPod;
  readonly report: Report;
}

interface PlaneGroupsOptions<P extends ReplicaPod> {
  readonly data: PlaneCluster;
  readonly machine?: PlaneMachine | undefined;
  /** Path of this plane in the data directory. */
  readonly directory: string;
  /** Whether groups of this model are of this plane. */
  readonly isHere: (definition: GroupDefinition) => boolean;
  /** Where other nodes hear this plane of theirs: `HOST:PORT`. */
  readonly addressOf: (node: NodeDefinition) => string;
  readonly open: (replica: OpenReplica) => Promise<OpenedReplica<P>>;
  /** How much a pod holds. */
  readonly sizeOf: (pod: P) => { rows: number; bytes: number };
  /** Request units that a pod has served since the last call. */
  readonly takeUnits: (pod: P, definition: GroupDefinition) => number;
  /** A replica was opened or is about to be closed. */
  readonly changed: (group: number) => void;
  /** A replica of this node may have heard of another leader. */
  readonly leaderChanged?: (group: number) => void;
  /** The settings `wal.fsync`, `wal.segment-bytes` and `wal.accept-loss`. */
  readonly fsync: FsyncPolicy;
  readonly segmentBytes: number;
  readonly acceptLoss: boolean;
  readonly report: Report;
  readonly fatal: (error: unknown) => void;
}

interface LocalReplica<P> extends OpenedReplica<P> {
  definition: GroupDefinition;
  readonly replica: number;
  readonly directory: string;
}

/** Interval of checks for replicas that have an entry. */
const copyPollMs = 2;
/** How often leaders look whether their members are as they should be. */
const memberStepMs = 250;
/** How long a request waits for a leader of its data before it is refused, as while a new one is elected. */
export const leaderWaitMs = 5000;

/** Of the replicas' directories. */
function rootIn(directory: string): string {
  return join(directory, 'groups');
}

export class PlaneGroups<P extends ReplicaPod> {
  readonly listener: LinkListener;
  readonly context: LinkContext;
  readonly machine: PlaneMachine;
  readonly #options: PlaneGroupsOptions<P>;
  readonly #transport: TcpTransport;
  readonly #raft: RaftHost;
  readonly #replicas = new Map<number, LocalReplica<P>>();
  readonly #timer: NodeJS.Timeout;
  readonly #loads = new GroupLoads();
  readonly #collector: NodeJS.Timeout;
  readonly #fences: FenceReports;
  #isSwept = false;
  #leased: ReadonlySet<number> = new Set();

  static async open<P extends ReplicaPod>(options: PlaneGroupsOptions<P>): Promise<PlaneGroups<P>> {
    const { data, machine = realMachine } = options;
    const { report, fatal, directory, fsync, segmentBytes, acceptLoss } = options;
    const { id: cluster, node, incarnation, secret, host, port } = data;
    const context: LinkContext = {
      identity: { cluster: String(cluster), node: String(node), incarnation, level: 1 },
      secret: Buffer.from(secret),
      silenceMs: data.silenceMs,
    };
    const listener = await machine.listen(context, { host, port }, report);
    const transport = new TcpTransport({ listener, context, dial: machine.dial });
    const root = rootIn(directory);
    makeDurableDirectory(machine.disk, root);
    // An earlier process may have ended before it had synced the directory of a replica.
    machine.disk.syncDirectory(root);
    const maxEntryBytes = entryBytesFor(data.maxWriteBytes);
    const { limits, ...others } = machine.raftOptions();
    const raft = await RaftHost.open({
      disk: machine.disk,
      directory: join(directory, 'wal'),
      ids: { cluster, node },
      transport,
      onFatal: fatal,
      ...{ fsync, segmentBytes, acceptLoss, ...others },
      limits: { maxEntryBytes, maxPendingBytes: maxEntryBytes + fullLogBytes, ...limits },
    });
    return new PlaneGroups(options, machine, listener, context, transport, raft);
  }

  private constructor(
    options: PlaneGroupsOptions<P>,
    machine: PlaneMachine,
    listener: LinkListener,
    context: LinkContext,
    transport: TcpTransport,
    raft: RaftHost,
  ) {
    this.#options = options;
    this.machine = machine;
    this.listener = listener;
    this.context = context;
    this.#transport = transport;
    this.#raft = raft;
    this.#fences = new FenceReports(raft.pod.wasUnclean, options.report);
    this.#timer = setInterval(() => this.#stepMembers(), memberStepMs);
    this.#timer.unref();
    this.#collector = setInterval(() => this.#collectLoads(), collectMs);
    this.#collector.unref();
  }

  #collectLoads(): void {
    const { takeUnits } = this.#options;
    const units = new Map<number, number>();
    for (const [group, { pod, definition }] of this.#replicas) {
      units.set(group, takeUnits(pod, definition));
    }
    this.#loads.add(units);
  }

  /** From now on, for all groups here. */
  setFsync(policy: FsyncPolicy): void {
    this.#raft.pod.fsync = policy;
  }

  pod(group: number): P | undefined {
    return this.#replicas.get(group)?.pod;
  }

  pods(): P[] {
    return Array.from(this.#replicas.values(), ({ pod }) => pod);
  }

  entries(): { group: number; definition: GroupDefinition; pod: P }[] {
    return Array.from(this.#replicas, ([group, { definition, pod }]) => ({
      group,
      definition,
      pod,
    }));
  }

  entry(group: number): { readonly definition: GroupDefinition; readonly pod: P } | undefined {
    return this.#replicas.get(group);
  }

  /** Node that leads a group, as its replica here knows; 0 when it does not, or is none. */
  leaderOf(group: number): number {
    const leader = this.pod(group)?.leader ?? 0;
    return leader === 0 ? 0 : nodeOfReplica(leader);
  }

  status(): ReplicaStatus[] {
    return Array.from(this.#replicas.values(), ({ definition, replica, pod, log }) => {
      const { group } = definition;
      const { replication } = log.status();
      const units = this.#loads.unitsOf(group);
      return {
        group,
        replica,
        ...(units === undefined ? {} : { units }),
        role: pod.role,
        leader: this.leaderOf(group),
        term: replication?.term ?? 0,
        applied: replication?.applied ?? 0,
        ...this.#options.sizeOf(pod),
        voters: replication?.members.voters ?? [],
        learners: replication?.members.learners ?? [],
        ...this.#fences.of(replication),
        ...(pod.writeFailure === undefined
          ? {}
          : { takesNoWrites: log.failure === undefined ? 'replica' : 'node' }),
      };
    });
  }

  minutes(span: MinuteSpan): GroupMinutes[] {
    return Array.from(this.#replicas.keys(), (group) => ({
      group,
      units: this.#loads.minutesOf(group, span),
    }));
  }

  replicaStates(): ReplicaState[] {
    return Array.from(this.#replicas, ([group, { definition, pod, log }]) => {
      const { replication } = log.status();
      const { term = 0, applied = 0, commit = 0 } = replication ?? {};
      const { fenced = false, mayHaveLost = false } = this.#fences.of(replication);
      const { model } = definition;
      const units = this.#loads.unitsOf(group) ?? 0;
      const leader = this.leaderOf(group);
      const state = { group, model, role: pod.role, leader, term, applied, commit, units };
      return { ...state, fenced, mayHaveLost };
    });
  }

  /** Asks the replica on another node to lead. Throws where this node does not lead the group. */
  transfer(group: number, to: number): void {
    const local = this.#replicas.get(group);
    if (local?.pod.role !== 'leader') throw new Error(`this node does not lead group ${group}`);
    const target = local.definition.replicas.find(({ node }) => node === to);
    if (target === undefined) throw new Error(`group ${group} has no replica on node ${to}`);
    local.log.transfer(target.replica);
  }

  /** Groups whose leaders answer strong reads by leases. */
  setLeases(groups: ReadonlySet<number>): void {
    this.#leased = groups;
    for (const [group, { log }] of this.#replicas) log.setLeases(groups.has(group));
  }

  log(group: number): RaftLog | undefined {
    return this.#replicas.get(group)?.log;
  }

  /**
   * Position that covers all earlier commits. `copies` requires the leader, because only the leader knows how many
   * replicas have the position. With `local`, also waits until this replica has it on disk.
   */
  async position(
    group: number,
    copies: number,
    ms: number,
    local = false,
  ): Promise<{ index: number; copies: number; isLocal: boolean; isRelaxed: boolean }> {
    const deadline = performance.now() + ms;
    const here = this.#replicas.get(group);
    if (here === undefined) throw new Error(`group ${group} has no replica on this node`);
    const { log, pod, replica: own } = here;
    // Entries evaluated here are part of it.
    if (pod.role === 'leader') await pod.durable?.();
    const outcome = await new Promise((resolve) => log.readBarrier(resolve));
    const index = log.appliedIndex;
    // Else it is in the log, but maybe not on disk yet.
    if (local) await log.sync();
    const isRelaxed = log.fsyncPolicy !== 'always';
    for (;;) {
      const isLost = outcome !== 'committed' || (copies > 0 && pod.role !== 'leader');
      if (isLost) throw new Error(`group ${group} has no leader here`);
      const { members } = log.status().replication!;
      const others = [...members.voters, ...members.learners].filter((one) => one !== own);
      const found = copies === 0 ? 0 : others.filter((one) => log.matchOf(one) >= index).length;
      const isLocal = copies > 0 && log.matchOf(own) >= index;
      const isDone = found >= copies && (isLocal || !local);
      if (isDone || performance.now() >= deadline) {
        return { index, copies: found, isLocal, isRelaxed };
      }
      await new Promise((resolve) => setTimeout(resolve, copyPollMs));
    }
  }

  /** The other nodes, by number. */
  setNodes(nodes: readonly NodeDefinition[]): Map<number, NodePlace> {
    const { data, addressOf } = this.#options;
    const places = new Map<number, NodePlace>();
    for (const node of nodes) {
      if (node.node === data.node || node.state === 'removed') continue;
      places.set(node.node, placeOf(addressOf(node)));
    }
    this.#transport.setPeers(places);
    return places;
  }

  /** Opens and closes replicas according to a view's groups. */
  async setGroups(groups: readonly GroupDefinition[]): Promise<void> {
    const { isHere, data } = this.#options;
    const here = new Map(groups.filter(isHere).map((group) => [group.group, group]));
    for (const [group, local] of [...this.#replicas]) {
      const definition = here.get(group);
      const isMember = definition?.replicas.some(({ replica }) => replica === local.replica);
      if (definition !== undefined && isMember === true) local.definition = definition;
      else await this.#remove(group, local);
    }
    let newest: ReadonlyMap<number, number> | undefined;
    for (const definition of here.values()) {
      const own = definition.replicas.find(({ node }) => node === data.node);
      if (own === undefined || this.#replicas.has(definition.group)) continue;
      newest ??= this.#newestCounts();
      // A node that cannot reach the others may have metadata that are older than its replicas. Newer ones will tell.
      if ((newest.get(definition.group) ?? 0) > definition.epoch) continue;
      await this.#open(definition, own.replica);
    }
    this.#sweep(groups);
  }

  get #root(): string {
    return rootIn(this.#options.directory);
  }

  /** Another replica of the same group begins with nothing. */
  #directoryOf(group: number, replica: number): string {
    return join(this.#root, `${group}-${replica}`);
  }

  async #open(definition: GroupDefinition, replica: number): Promise<void> {
    const { open, report, changed, leaderChanged } = this.#options;
    const { group } = definition;
    const directory = this.#directoryOf(group, replica);
    const { disk } = this.machine;
    if (!disk.exists(directory)) makeDurableDirectory(disk, directory);
    const opened = await open({
      ...{ definition, replica, directory, disk, raft: this.#raft.pod },
      report: (level, message, fields) => report(level, message, { group, ...fields }),
    });
    this.#replicas.set(group, { definition, replica, directory, ...opened });
    opened.log.setLeases(this.#leased.has(group));
    opened.log.leaderChanged = () => leaderChanged?.(group);
    this.#raft.schedule();
    changed(group);
    leaderChanged?.(group);
  }

  /** The replica has left its group, or the group is no more. */
  async #remove(group: number, { replica, pod, directory }: LocalReplica<P>): Promise<void> {
    const { changed, report } = this.#options;
    this.#replicas.delete(group);
    this.#loads.forget(group);
    changed(group);
    await pod.close();
    await this.#raft.pod.removeGroup(group, replica);
    this.machine.disk.removeTree(directory);
    report('info', 'a replica has left this node', { group });
  }

  /** Ids of replicas of which there are directories, with the names of these. */
  #found(): { name: string; group: number; replica: number }[] {
    return this.machine.disk.list(this.#root).map((name) => {
      const [group = 0, replica = 0] = name.split('-').map(Number);
      return { name, group, replica };
    });
  }

  /** By group: the change of its members by which the newest of its replicas came here. */
  #newestCounts(): ReadonlyMap<number, number> {
    const counts = new Map<number, number>();
    for (const { group, replica } of this.#found()) {
      counts.set(group, Math.max(counts.get(group) ?? 0, countOfReplica(replica)));
    }
    return counts;
  }

  /** Deletes what is left of replicas that have gone while this node was away, or of which a crash has left a part. */
  #sweep(groups: readonly GroupDefinition[]): void {
    if (this.#isSwept) return;
    this.#isSwept = true;
    const { disk } = this.machine;
    const { pod } = this.#raft;
    const { data, report } = this.#options;
    const known = new Map(groups.map((one) => [one.group, one]));
    let newest = 0;
    for (const group of known.keys()) newest = Math.max(newest, group);
    const isOver = (group: number, replica: number): boolean => {
      const definition = known.get(group);
      if (definition === undefined) return group < newest;
      const isListed = definition.replicas.some((one) => one.replica === replica);
      return !isListed && countOfReplica(replica) <= definition.epoch;
    };
    const found = this.#found();
    const over = found.filter(({ group, replica }) => isOver(group, replica));
    const kept = new Set(found.filter((one) => !over.includes(one)).map(({ group }) => group));
    const removed = pod.closedGroups.flatMap((group) => {
      const definition = known.get(group);
      const mayBeServed = definition === undefined ? group >= newest : kept.has(group);
      if (mayBeServed) return [];
      const last =
        definition === undefined
          ? lastReplicaId(data.node)
          : replicaId(data.node, definition.epoch);
      return [pod.removeGroup(group, last)];
    });
    Promise.all(removed)
      .then(() => {
        for (const { name } of over) disk.removeTree(join(this.#root, name));
      })
      .catch((error: unknown) => {
        report('warn', 'what removed replicas have left is not deleted yet', { err: error });
      });
  }

  #stepMembers(): void {
    for (const { definition, replica, pod, log } of this.#replicas.values()) {
      const { replication } = log.status();
      this.#fences.look(definition.group, replication);
      if (pod.role !== 'leader') continue;
      if (replication === undefined) continue;
      const { members, commit } = replication;
      const step = nextMemberStep(definition.replicas, {
        ...{ epoch: definition.epoch, self: replica, members, commit },
        match: (other) => log.matchOf(other),
      });
      if (step === undefined) continue;
      if ('transferTo' in step) log.transfer(step.transferTo);
      else log.changeMembers(step.changes);
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    clearInterval(this.#collector);
    for (const { pod } of this.#replicas.values()) await pod.close();
    await this.#raft.close();
    await this.listener.close();
  }
}

/** Applies cluster views one after the other. Of the views that wait, only the latest is applied. */
export class ViewFollower {
  readonly #adopt: (view: ClusterView) => Promise<void>;
  #next: ClusterView | undefined;
  #running: Promise<void> | undefined;

  constructor(adopt: (view: ClusterView) => Promise<void>) {
    this.#adopt = adopt;
  }

  /** Resolves when this view, or a later one, is carried out. */
  follow(view: ClusterView): Promise<void> {
    this.#next = view;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #run(): Promise<void> {
    for (let view = this.#next; view !== undefined; view = this.#next) {
      this.#next = undefined;
      await this.#adopt(view);
    }
  }

  async ended(): Promise<void> {
    await this.#running?.catch(() => undefined);
  }
}

function placeOf(address: string): NodePlace {
  const at = address.lastIndexOf(':');
  const host = address.slice(0, at).replace(/^\[|\]$/g, '');
  return { host, port: Number(address.slice(at + 1)) };
}
