// The Redis plane of a node in a cluster: the pods of its replicas, the links to the other nodes, and the way to each
// group's leader.

import { join } from 'node:path';
import { GroupExecutor } from '../../access/gateway/pods/group-executor.ts';
import { GroupTicks } from '../../access/gateway/pods/group-ticks.ts';
import { PodLink } from '../../access/gateway/pods/pod-link.ts';
import { RemoteExecutor } from '../../access/gateway/pods/remote-executor.ts';
import type {
  Elsewhere,
  GroupPosition,
  NodeQuestion,
  TenantQuestion,
} from '../../access/redis/elsewhere.ts';
import type { PublishedMessage } from '../../access/redis/fan-out.ts';
import {
  clusterLevel,
  type ClusterView,
  type GroupDefinition,
  type GroupMinutes,
  type MinuteSpan,
  type ReplicaStatus,
} from '../../contracts/cluster.ts';
import type { PartitionQuestion } from '../../contracts/partition-map.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { TableModel } from '../../control/metadata/table-definition.ts';
import type { Engine } from '../../engines/engine.ts';
import type { RowPricer } from '../../request-units/row-pricer.ts';
import type { Pod } from '../../storage-node/pod.ts';
import { PodServer } from '../../storage-node/pod-server/pod-server.ts';
import type { PodServerOptions } from '../../storage-node/pod-server/served-pods.ts';
import { openReplica, type ReplicaHostOptions } from '../../storage-node/replica-host.ts';
import { syncDirectoryAsync } from '../../universal-row/durable-names.ts';
import type { Refusable, RowCommands } from '../../universal-row/executor.ts';
import { ClusterChanges, type ChangesHeard } from './cluster-changes.ts';
import { linkSamples, monitorSamples, replicaSamples, wayStats } from './cluster-samples.ts';
import { ClusterMessages } from './cluster-messages.ts';
import { ClusterMonitors, type ClusterMonitorsOptions, monitorFrame } from './cluster-monitors.ts';
import type { FsyncPolicy } from '../../storage-node/replicator/partition-log.ts';
import { isNotLed, notLedHere } from './cluster-partitions.ts';
import type { PlaneCluster } from './messages.ts';
import type { NodePlace, PlaneMachine } from './plane-machine.ts';
import { type OpenedReplica, type OpenReplica, PlaneGroups, ViewFollower } from './plane-groups.ts';
import { unitsOf } from './pod-units.ts';
import type { NamedPod } from './redis-samples.ts';

type Report = (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;

interface ClusterRowsOptions {
  readonly data: PlaneCluster;
  readonly machine?: PlaneMachine | undefined;
  /** Path of this plane in the data directory. */
  readonly directory: string;
  /** The settings `wal.fsync`, `wal.segment-bytes` and `wal.accept-loss`. */
  readonly fsync: FsyncPolicy;
  readonly segmentBytes: number;
  readonly acceptLoss: boolean;
  readonly newEngine: (model: TableModel, directory: string) => Promise<Engine>;
  /** How a pod of this model is made. */
  readonly podOptions: (
    model: TableModel,
  ) => Omit<ReplicaHostOptions, 'engine' | 'raft' | 'definition' | 'replica' | 'report' | 'pins'>;
  /** Most of each group's log kept for the next incremental backup; 0 for none. */
  readonly keepLogBytes: number;
  readonly admission: PodServerOptions['admission'];
  readonly pricerOf: (model: TableModel) => RowPricer;
  /** The group's number of a table or partition; undefined when there is none yet. */
  readonly groupOf: (table: number) => number | undefined;
  /** Whether the definitions of this node tell of a table or partition. */
  readonly knows: (number: number) => boolean;
  /** Executor that has the rows of a table or partition which have moved to other groups. */
  readonly successorOf: (number: number) => RowCommands | undefined;
  /** Another leader asks about partitions. */
  readonly answerPartition: (question: PartitionQuestion) => Promise<unknown>;
  readonly refusalOf: (command: Refusable) => string | undefined;
  readonly leaderWaitMs: number;
  /** Scripts that clients here have loaded. A node gets them when it is reachable again. */
  readonly loadedScripts: () => Iterable<TenantQuestion>;
  readonly scriptsOf: PodServerOptions['scriptsOf'];
  /** Another node is reachable, perhaps after an interruption. */
  readonly nodeIsThere: () => void;
  /** Rows of the tenant have another leader, which may lack what was read from the last one before its log had it. */
  readonly leaderMoved: (tenant: number) => void;
  /** Another node asks. */
  readonly answer: (question: TenantQuestion) => unknown;
  /** Receives changes on other nodes; undefined until there are clients. */
  readonly changes: () => ChangesHeard | undefined;
  /** A client of another node has published a message to a tenant. False when it is dropped. */
  readonly heard: (tenant: number, message: PublishedMessage) => boolean;
  readonly monitors: Pick<ClusterMonitorsOptions, 'heard' | 'watched'>;
  readonly report: Report;
  readonly fatal: (error: unknown) => void;
}

/** The link to a node, and the pods behind it. */
interface NodeLink {
  readonly link: PodLink;
  readonly place: NodePlace;
  readonly remote: RemoteExecutor;
}

/** Its group's number; 0 while there is none. */
interface GroupPlace {
  group: number;
}

/** Scope of a group. */
export type GroupScope = Pick<GroupDefinition, 'tenant' | 'model' | 'partition'>;

export function groupKey({ tenant, model, partition }: GroupScope): string {
  return partition === undefined ? `${tenant}/${model}` : `partition ${partition}`;
}

/** From which on nodes know transactions by their numbers. */
const transactionLevel = 6;
/** Time for the other nodes' answers to a cluster-wide request of a client. */
const answerMs = 1000;

/** How long a leader has to answer another one, whose rows it may have to write first. */
const leaderAnswerMs = 5000;

async function inTime<T>(asked: Promise<T>, ms = answerMs): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), ms);
  });
  try {
    return await Promise.race([asked, late]);
  } finally {
    clearTimeout(timer);
  }
}

export class ClusterRows implements Elsewhere {
  /** Ends the ticks of the groups that a tick of the gateway has touched. */
  readonly ticks = new GroupTicks();
  readonly messages: ClusterMessages;
  readonly changes: ClusterChanges;
  readonly monitors: ClusterMonitors;
  readonly #options: ClusterRowsOptions;
  readonly #groups: PlaneGroups<Pod>;
  readonly #server: PodServer;
  readonly #executors = new Map<number, GroupExecutor>();
  #level = 1;
  /** Groups that have yet to be made, by `groupKey`: commands wait in them. */
  readonly #awaited = new Map<string, { executor: GroupExecutor; place: GroupPlace }>();
  readonly #links = new Map<number, NodeLink>();
  readonly #follower = new ViewFollower((view) => this.#adopt(view));

  static async open(options: ClusterRowsOptions): Promise<ClusterRows> {
    const { data, machine, directory, report, fatal, fsync, segmentBytes, acceptLoss } = options;
    // Replicas open only once a view was given, and by then this stands.
    const self: { rows: ClusterRows | undefined } = { rows: undefined };
    const groups = await PlaneGroups.open<Pod>({
      ...{ data, machine, directory, report, fatal, fsync, segmentBytes, acceptLoss },
      isHere: ({ model }) => model !== 'tsm',
      addressOf: ({ addresses }) => addresses.redis,
      open: (replica) => openPod(options, replica),
      sizeOf,
      takeUnits: (pod, { model }) => unitsOf(pod, options.pricerOf(model as TableModel)),
      changed: (group) => self.rows?.executor(group)?.localChanged(),
      leaderChanged: (group) => self.rows?.leaderChanged(group),
    });
    self.rows = new ClusterRows(options, groups);
    return self.rows;
  }

  private constructor(options: ClusterRowsOptions, groups: PlaneGroups<Pod>) {
    this.#options = options;
    this.#groups = groups;
    const { admission, report, fatal } = options;
    this.#server = new PodServer({
      podOf: (table) => {
        const pod = this.podOf(table);
        // Requests for a table that this node does not know yet must wait. For a closed table the pod answers.
        const isServed = options.knows(table) || pod?.marks?.mayShut({ table }) === true;
        return pod && isServed ? { executor: pod, mayWait: true } : undefined;
      },
      admission,
      publish: (tenant, message) => {
        options.heard(tenant, message);
        this.messages.publish(tenant, message);
      },
      scriptsOf: options.scriptsOf,
      opened: options.nodeIsThere,
      closed: (node) => {
        this.changes.followedBy(node, false, false);
        this.monitors.watchedBy(node, []);
      },
      answer: (question) => this.#answer(question as NodeQuestion),
      report,
      failed: fatal,
    });
    groups.listener.serve('pods', this.#server);
    this.changes = new ClusterChanges({
      atEnd: (ended) => this.ticks.atEnd(ended),
      send: (node, frame) => this.messages.send(node, frame),
      tell: (isWanted, wantsMisses) => this.ask(this.#follows(isWanted, wantsMisses)),
      heard: options.changes,
    });
    this.monitors = new ClusterMonitors({
      node: options.data.node,
      send: (node, frame, unsentBytes) => this.messages.send(node, frame, unsentBytes),
      tell: (tenants) => this.ask({ what: 'followCommands', node: options.data.node, tenants }),
      ...options.monitors,
    });
    const { context, listener, machine } = groups;
    this.messages = new ClusterMessages(context, listener, machine.dial, options.heard, {
      frame: (type, reader) => {
        if (type === monitorFrame) this.monitors.frame(reader);
        else this.changes.frame(type, reader);
      },
      drained: (node) => this.changes.drained(node),
      interrupted: () => options.changes()?.missed(),
    });
  }

  /** The pod of a table's replica on this node. */
  podOf(table: number): Pod | undefined {
    return this.#groups.pod(this.#options.groupOf(table) ?? 0);
  }

  /** Pods of the replicas on this node. */
  localPods(): Pod[] {
    return this.#groups.pods();
  }

  named(): NamedPod[] {
    return this.#groups.entries().map(({ group, definition, pod }) => ({
      model: definition.model as TableModel,
      group,
      pod,
    }));
  }

  /** The pod of a group's replica on this node. */
  podOfGroup(group: number): Pod | undefined {
    return this.#groups.pod(group);
  }

  executor(group: number): GroupExecutor | undefined {
    return this.#executors.get(group);
  }

  /** Where commands wait until the controller has made the group. */
  awaited(of: GroupScope): GroupExecutor {
    const key = groupKey(of);
    let awaited = this.#awaited.get(key);
    if (awaited === undefined) {
      const place = { group: 0 };
      awaited = { executor: this.#newExecutor(place, of), place };
      this.#awaited.set(key, awaited);
    }
    return awaited.executor;
  }

  /** The executor of `awaited` where commands wait already. */
  waitingFor(of: GroupScope): GroupExecutor | undefined {
    return this.#awaited.get(groupKey(of))?.executor;
  }

  publish(tenant: number, message: PublishedMessage): void {
    this.messages.publish(tenant, message);
  }

  get node(): number {
    return this.#options.data.node;
  }

  get nodes(): number {
    return this.#links.size + 1;
  }

  async ask(question: NodeQuestion): Promise<unknown[]> {
    const { answers } = await this.askNodes(question);
    return answers.map(({ answer }) => answer);
  }

  async askNodes(question: NodeQuestion) {
    const { report } = this.#options;
    const answers: { node: number; answer: unknown }[] = [];
    const silent: number[] = [];
    const up = [...this.#links].filter(([, { link }]) => link.isUp);
    const asked = up.map(async ([node, { link }]) => {
      try {
        answers.push({ node, answer: await inTime(link.ask(question)) });
      } catch (err) {
        silent.push(node);
        report('info', 'a node did not answer', { node, what: question.what, err: err as Error });
      }
    });
    await Promise.all(asked);
    return { answers, silent };
  }

  /**
   * Asks the leader of the group that has a partition. A node without a replica of the group may not know it, or no longer:
   * then all nodes with one are asked until one leads.
   */
  async askLeader(number: number, question: PartitionQuestion): Promise<unknown> {
    const executor = this.executor(this.#options.groupOf(number) ?? 0);
    const known = executor?.leader ?? 0;
    for (const node of new Set([known, ...(executor?.replicas ?? [])])) {
      if (node === 0) continue;
      try {
        const answer = await this.#askPartition(node, question);
        if (node !== known) executor!.leaderIs(node);
        return answer;
      } catch (error) {
        if (!isNotLed(error)) throw error;
      }
    }
    throw new Error(`partition ${number} has no leader now`);
  }

  async #askPartition(node: number, question: PartitionQuestion): Promise<unknown> {
    const { data, answerPartition } = this.#options;
    if (node === data.node) return await inTime(answerPartition(question), leaderAnswerMs);
    const link = this.#links.get(node)?.link;
    if (link?.isUp !== true) throw new Error(notLedHere);
    return await inTime(link.ask({ what: 'partition', question }), leaderAnswerMs);
  }

  setFsync(policy: FsyncPolicy): void {
    this.#groups.setFsync(policy);
  }

  position(group: number, copies: number, ms: number, local = false): Promise<GroupPosition> {
    const leader = this.executor(group)?.leader ?? 0;
    const isHere = this.#groups.pod(group) !== undefined;
    if (isHere && (copies === 0 || leader === this.#options.data.node)) {
      return this.#groups.position(group, copies, ms, local);
    }
    const link = this.#links.get(leader)?.link;
    if (link === undefined) return Promise.reject(new Error(`group ${group} has no leader now`));
    const question: NodeQuestion = { what: 'position', group, copies, ms, local };
    return link.ask(question) as Promise<GroupPosition>;
  }

  #answer(question: NodeQuestion): unknown {
    if (question.what === 'position') {
      const { group, copies, ms, local } = question;
      return this.#groups.position(group, copies, ms, local);
    }
    if (question.what === 'partition') return this.#options.answerPartition(question.question);
    if (question.what === 'followCommands') {
      this.monitors.watchedBy(question.node, question.tenants);
      return undefined;
    }
    if (question.what !== 'followChanges') return this.#options.answer(question);
    this.changes.followedBy(question.node, question.isWanted, question.wantsMisses);
    return undefined;
  }

  #follows(isWanted: boolean, wantsMisses: boolean): NodeQuestion {
    return { what: 'followChanges', node: this.#options.data.node, isWanted, wantsMisses };
  }

  /** The node is reachable again. It may lack scripts, and its changes in the meantime are unknown. */
  #isThere(link: PodLink): void {
    const { isFollowing, followsMisses } = this.changes;
    const questions: NodeQuestion[] = [...this.#options.loadedScripts()];
    if (isFollowing) questions.unshift(this.#follows(true, followsMisses));
    for (const question of questions) {
      link.ask(question).catch(() => {
        // The link has ended. The node is asked again when the link is up.
      });
    }
    this.#options.changes()?.missed();
  }

  samples(): MetricSample[] {
    const links = Array.from(this.#links, ([node, { link }]) => {
      return { node, isUp: link.isUp, connects: link.connects, sent: link.sent };
    });
    return [
      ...replicaSamples('redis', this.#groups.replicaStates()),
      ...wayStats(Array.from(this.#executors.values(), ({ stats }) => stats)),
      ...linkSamples(links),
      ...monitorSamples(this.monitors),
    ];
  }

  minutes(span: MinuteSpan): GroupMinutes[] {
    return this.#groups.minutes(span);
  }

  status(): ReplicaStatus[] {
    return this.#groups.status();
  }

  transfer(group: number, to: number): void {
    this.#groups.transfer(group, to);
  }

  /** Groups whose leaders answer strong reads by leases. */
  setLeases(groups: ReadonlySet<number>): void {
    this.#groups.setLeases(groups);
  }

  /** Resolves when replicas that are new here are open, and all groups can be reached. */
  setView(view: ClusterView): Promise<void> {
    return this.#follower.follow(view);
  }

  async #adopt({ nodes, groups }: ClusterView): Promise<void> {
    this.#level = clusterLevel(nodes);
    const places = this.#groups.setNodes(nodes);
    this.#connect(places);
    this.messages.setPlaces(places);
    await this.#groups.setGroups(groups);
    const rows = groups.filter(({ model }) => model !== 'tsm');
    for (const group of rows) this.#route(group);
    const numbers = new Set(rows.map(({ group }) => group));
    for (const [group, executor] of this.#executors) {
      if (numbers.has(group)) continue;
      executor.close();
      this.#executors.delete(group);
    }
  }

  #connect(places: ReadonlyMap<number, NodePlace>): void {
    const { context, machine } = this.#groups;
    const { dial } = machine;
    const { report, refusalOf } = this.#options;
    for (const [node, { link, place }] of this.#links) {
      const wanted = places.get(node);
      if (wanted?.host === place.host && wanted.port === place.port) continue;
      link.close();
      this.#links.delete(node);
    }
    for (const [node, place] of places) {
      if (this.#links.has(node)) continue;
      const opened = (up: PodLink): void => this.#isThere(up);
      const link = new PodLink({ ...place, context, dial, opened, report });
      this.#links.set(node, { link, place, remote: new RemoteExecutor(link, refusalOf) });
      void link.start();
    }
  }

  #route(definition: GroupDefinition): void {
    const { group, replicas } = definition;
    let executor = this.#executors.get(group);
    if (executor === undefined) {
      const key = groupKey(definition);
      const awaited = this.#awaited.get(key);
      this.#awaited.delete(key);
      if (awaited !== undefined) awaited.place.group = group;
      executor = awaited?.executor ?? this.#newExecutor({ group }, definition);
      this.#executors.set(group, executor);
      executor.localChanged();
    }
    const voters = replicas.filter(({ state }) => state !== 'learner');
    executor.setReplicas(voters.map(({ node }) => node));
    this.leaderChanged(group);
  }

  #newExecutor(place: GroupPlace, { tenant, model }: GroupScope): GroupExecutor {
    const { data, refusalOf, successorOf, leaderWaitMs } = this.#options;
    return new GroupExecutor({
      ...{
        group: () => place.group,
        node: data.node,
        incarnation: data.incarnation,
        ticks: this.ticks,
        refusalOf,
        successorOf,
        mayWait: model === 'kv',
        waitMs: leaderWaitMs,
      },
      numbersTransactions: () => this.#level >= transactionLevel,
      local: () => this.#groups.pod(place.group),
      log: () => this.#groups.log(place.group),
      moved: () => {
        // Subscribers receive changes from the new leader, which may be this node.
        if (this.executor(place.group)?.leader === data.node) this.changes.lost();
        this.#options.changes()?.missed(tenant);
        this.#options.leaderMoved(tenant);
      },
      remoteOf: (node) => this.#links.get(node)?.remote,
    });
  }

  /** Tells commands that wait for the leader; not in the step of the log that has brought it. */
  leaderChanged(group: number): void {
    setImmediate(() => {
      const leader = this.#groups.leaderOf(group);
      if (leader !== 0) this.#executors.get(group)?.leaderIs(leader);
    });
  }

  async close(): Promise<void> {
    await this.#follower.ended();
    for (const executor of this.#executors.values()) executor.close();
    for (const { link } of this.#links.values()) link.close();
    this.monitors.close();
    this.messages.close();
    this.#server.close();
    await this.#groups.close();
  }
}

function sizeOf(pod: Pod): { rows: number; bytes: number } {
  const { rows, usedBytes, diskBytes } = pod.engineStats();
  return { rows, bytes: Math.max(usedBytes, diskBytes) };
}

async function openPod(
  { newEngine, podOptions, keepLogBytes }: ClusterRowsOptions,
  { definition, replica, directory, disk, raft, report }: OpenReplica,
): Promise<OpenedReplica<Pod>> {
  const model = definition.model as TableModel;
  const engine = await newEngine(model, join(directory, 'data'));
  // LevelDB makes its directory by itself.
  if (model === 'kv') await syncDirectoryAsync(disk, directory);
  const opened = await openReplica({
    ...podOptions(model),
    ...{ engine, raft, definition, replica, report },
    pins: { disk, directory, maxBytes: keepLogBytes },
  });
  opened.pod.start();
  return opened;
}
