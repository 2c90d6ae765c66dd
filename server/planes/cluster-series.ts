// The InfluxDB plane of a node in a cluster: a pod for each group of time series with a replica here, the series of all
// tenants as one store, and the way to the nodes that lead them.

import { join } from 'node:path';
import {
  Forwarder,
  type LeadingNode,
  type SeriesReplicaHere,
} from '../../access/influx/forwarding/forwarder.ts';
import { httpPurpose, LinkStream } from '../../access/influx/forwarding/link-stream.ts';
import { PatternCompiler } from '../../access/influx/influxql/parser/regexp.ts';
import { GroupSeriesStore } from '../../access/influx/pods/group-series-store.ts';
import type { Partition } from '../../access/influx/partitions/partitioned-store.ts';
import {
  type ClusterView,
  clusterLevel,
  type GroupDefinition,
  type GroupMinutes,
  levelOf,
  type MinuteSpan,
  type ReplicaStatus,
  type SeriesPart,
} from '../../contracts/cluster.ts';
import type { PodAdmission } from '../../contracts/pod-admission.ts';
import { seriesPurpose } from '../../contracts/series-protocol/frames.ts';
import { NotLeaderError, UnavailableError } from '../../contracts/series-store.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { PortableSeriesEngine, SeriesSibling } from '../../engines/series-engine.ts';
import type { ServedSeries } from '../../storage-node/pod-server/served-series.ts';
import { SeriesServer } from '../../storage-node/pod-server/series-server.ts';
import type { SeriesPod } from '../../storage-node/series-pod.ts';
import {
  openSeriesReplica,
  type SeriesReplicaHostOptions,
} from '../../storage-node/series-replica-host.ts';
import { nodeOfReplica } from '../../storage-node/replicator/raft/replica-id.ts';
import { replicaSamples } from './cluster-samples.ts';
import { DividedSeries } from './divided-series.ts';
import { DividedStore, type GroupPartition } from './divided-store.ts';
import { GroupCharges } from './group-charges.ts';
import { keptName } from './influx-databases.ts';
import type { InfluxTables } from './influx-tables.ts';
import type { FsyncPolicy } from '../../storage-node/replicator/partition-log.ts';
import type { PlaneCluster } from './messages.ts';
import type { NodePlace, PlaneMachine } from './plane-machine.ts';
import { type OpenedReplica, type OpenReplica, PlaneGroups, ViewFollower } from './plane-groups.ts';
import { SeriesLinks } from './series-links.ts';
import { SeriesPods } from './series-pods.ts';
import { seriesGroupsByTenant, type TenantGroups } from './tenant-groups.ts';

type Report = (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;

interface ClusterSeriesOptions {
  readonly data: PlaneCluster;
  readonly machine?: PlaneMachine | undefined;
  /** Properties of databases. */
  readonly tables: InfluxTables;
  /** Path of this plane in the data directory. */
  readonly directory: string;
  /** The settings `wal.fsync`, `wal.segment-bytes` and `wal.accept-loss`. */
  readonly fsync: FsyncPolicy;
  readonly segmentBytes: number;
  readonly acceptLoss: boolean;
  /** `groups`: how many of the cluster's have a replica here, which share its memory. */
  readonly newEngine: (directory: string, groups: number) => PortableSeriesEngine;
  /** How a pod is made. */
  readonly podOptions: () => Omit<
    SeriesReplicaHostOptions,
    'engine' | 'raft' | 'definition' | 'replica' | 'report' | 'pins'
  >;
  /** Request units of a tenant that were charged on this node since the server started. */
  readonly chargedTo: (tenant: number) => number;
  readonly leaderWaitMs: number;
  /** Databases are being restored: differences between partitions pass by themselves. */
  readonly isRestoring?: () => boolean;
  /** Schedules the requests of other nodes. */
  readonly admission?: PodAdmission | undefined;
  readonly report: Report;
  readonly fatal: (error: unknown) => void;
}

/** From this level of a cluster on all nodes know tokens of sessions over HTTP. */
const sessionLevel = 4;
/** Nodes of this level and above know the order of database changes. */
const orderLevel = 7;
/** Nodes of this level and above know marks of deletions. */
const markLevel = 8;
/** Nodes of this level and above recognise batches of points by their identities. */
const identityLevel = 9;
/** Nodes of this level and above read states with removed series. */
const removedLevel = 10;
/** Interval between checks whether the partitions of a tenant's series must be made equal. */
const keepEvenMs = 1000;

export class ClusterSeries {
  /** Pods of all tenants whose series are led here, or are divided. */
  readonly store: SeriesPods;
  readonly forwarder: Forwarder;
  readonly #options: ClusterSeriesOptions;
  readonly #groups: PlaneGroups<SeriesPod>;
  readonly #follower = new ViewFollower((view) => this.#adopt(view));
  #byTenant: ReadonlyMap<number, TenantGroups> = new Map();
  /** By tenant, where the time series are divided. */
  readonly #divided = new Map<number, DividedSeries>();
  #places = new Map<number, NodePlace>();
  /** The way to pods of other nodes, and the way of other nodes to those here. */
  readonly #links: SeriesLinks;
  readonly #server: SeriesServer;
  readonly #charges: GroupCharges;
  readonly #keeper: NodeJS.Timeout;
  #level = 1;
  #levels: ReadonlyMap<number, number> = new Map();
  /** Nodes of an earlier build that were reported. */
  readonly #isTold = new Set<number>();
  /** By group: the node asked last, where no replica here knows the leader. */
  readonly #asked = new Map<number, number>();

  static async open(options: ClusterSeriesOptions): Promise<ClusterSeries> {
    const { data, machine, directory, report, fatal, fsync, segmentBytes, acceptLoss } = options;
    // Replicas open only once a view was given, and by then this stands.
    const self: { series: ClusterSeries | undefined } = { series: undefined };
    const groups = await PlaneGroups.open<SeriesPod>({
      ...{ data, machine, directory, report, fatal, fsync, segmentBytes, acceptLoss },
      isHere: ({ model }) => model === 'tsm',
      addressOf: ({ addresses }) => addresses.influx,
      open: (replica) => self.series!.openPod(replica),
      sizeOf,
      takeUnits: (_, definition) => self.series!.takeUnits(definition),
      changed: () => self.series?.store.changed(),
    });
    self.series = new ClusterSeries(options, groups);
    return self.series;
  }

  setFsync(policy: FsyncPolicy): void {
    this.#groups.setFsync(policy);
  }

  private constructor(options: ClusterSeriesOptions, groups: PlaneGroups<SeriesPod>) {
    this.#options = options;
    this.#groups = groups;
    this.store = new SeriesPods({
      storeOf: (tenant) => this.#storeOf(tenant),
      all: () => this.#stores(),
    });
    const { report, admission } = options;
    this.#links = new SeriesLinks(groups.context, report, groups.machine.dial);
    this.#server = new SeriesServer({
      storeOf: (group) => this.#servedOf(group),
      patterns: () => new PatternCompiler(),
      ...{ admission, report },
    });
    groups.listener.serve(seriesPurpose, this.#server);
    this.#charges = new GroupCharges(options.chargedTo);
    this.forwarder = new Forwarder({
      context: groups.context,
      dial: groups.machine.dial,
      leaderOf: (tenant) => this.#leaderOf(this.#first(tenant)),
      notThere: (tenant, node) => this.#notThere(this.#first(tenant), node),
      replicaOf: (tenant) => this.#replicaOf(tenant),
      confirmed: (tenant) => this.#confirmed(tenant),
      dividedOf: (tenant) => this.#divided.get(tenant),
      seenOf: (tenant) => this.#seenOf(tenant),
      boundsOf: (tenant, name) => options.tables.get(keptName({ tenant, name }))?.readBounds,
      knowsSessions: () => this.#level >= sessionLevel,
      knowsIdentities: () => this.#level >= identityLevel,
      waitMs: () => options.leaderWaitMs,
    });
    this.#keeper = setInterval(() => this.#keepEven(), keepEvenMs);
    this.#keeper.unref();
  }

  /** Since the last call. */
  takeUnits({ tenant, group }: GroupDefinition): number {
    const groups = this.#groupsOf(tenant).map((one) => one.group);
    const here = groups.filter((one) => this.#groups.pod(one) !== undefined);
    return this.#charges.take(tenant, group, here);
  }

  /** Serves requests that other nodes forward. */
  serve(accept: (connection: LinkStream) => void): void {
    this.#groups.listener.serve(httpPurpose, {
      open: (link) => {
        const stream = new LinkStream(link);
        accept(stream);
        return stream.handler;
      },
    });
  }

  localPods(): SeriesPod[] {
    return this.#groups.pods();
  }

  named(): { group: number; tenant: number; pod: SeriesPod; series: SeriesPart | undefined }[] {
    return this.#groups.entries().map(({ group, definition, pod }) => ({
      ...{ group, tenant: definition.tenant, pod },
      series: definition.series,
    }));
  }

  /** The pod of a tenant's replica on this node: of the first partition, where they are divided. */
  podOf(tenant: number): SeriesPod | undefined {
    return this.partitionsOf(tenant)[0];
  }

  /** By partition: the pods of a tenant's replicas on this node; empty for a tenant without groups. */
  partitionsOf(tenant: number): (SeriesPod | undefined)[] {
    const groups = this.#byTenant.get(tenant) ?? [];
    return groups.map((definition) => definition && this.#groups.pod(definition.group));
  }

  samples(): MetricSample[] {
    return replicaSamples('influx', this.#groups.replicaStates());
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

  /** Resolves when replicas that are new here are open. */
  setView(view: ClusterView): Promise<void> {
    return this.#follower.follow(view);
  }

  get #replicasHere(): number {
    const { node } = this.#options.data;
    const all = [...this.#byTenant.keys()].flatMap((tenant) => this.#groupsOf(tenant));
    return all.filter(({ replicas }) => replicas.some((one) => one.node === node)).length;
  }

  async #adopt({ nodes, groups }: ClusterView): Promise<void> {
    this.#level = clusterLevel(nodes);
    this.#levels = new Map(nodes.map((node) => [node.node, levelOf(node)]));
    this.#byTenant = seriesGroupsByTenant(groups);
    this.#places = this.#groups.setNodes(nodes);
    this.forwarder.setNodes(Array.from(this.#places, ([node, place]) => ({ node, ...place })));
    this.#divide();
    this.tablesChanged();
    await this.#groups.setGroups(groups);
    this.store.changed();
  }

  /** Properties of databases have changed. */
  tablesChanged(): void {
    const { leasedTenants } = this.#options.tables;
    const leased = [...leasedTenants].flatMap((tenant) => this.#groupsOf(tenant));
    this.#groups.setLeases(new Set(leased.map(({ group }) => group)));
    this.#server.changed();
  }

  #knowsRemoved(node: number, group: number): boolean {
    if ((this.#levels.get(node) ?? 1) >= removedLevel) return true;
    if (!this.#isTold.has(node)) {
      this.#isTold.add(node);
      const message = 'replicas of time series wait until their node runs this release';
      this.#options.report('warn', message, { node, group });
    }
    return false;
  }

  /** A pod as other nodes are served by it. */
  #servedOf(group: number): ServedSeries | undefined {
    const found = this.#groups.entry(group);
    if (found === undefined) return undefined;
    const { pod, definition } = found;
    return { store: pod, tenant: definition.tenant, safe: () => Promise.resolve() };
  }

  #first(tenant: number): GroupDefinition | undefined {
    return this.#byTenant.get(tenant)?.[0];
  }

  #groupsOf(tenant: number): GroupDefinition[] {
    return (this.#byTenant.get(tenant) ?? []).filter((one) => one !== undefined);
  }

  #storeOf(tenant: number): Partition | undefined {
    const isDivided = (this.#byTenant.get(tenant)?.length ?? 1) > 1;
    return isDivided ? this.#divided.get(tenant)?.store : this.podOf(tenant);
  }

  #stores(): Partition[] {
    return [...this.#byTenant.keys()]
      .map((tenant) => this.#storeOf(tenant))
      .filter((store) => store !== undefined);
  }

  #replicaOf(tenant: number): SeriesReplicaHere | undefined {
    const group = this.#first(tenant)?.group ?? 0;
    const [pod, log] = [this.#groups.pod(group), this.#groups.log(group)];
    if (pod === undefined || log === undefined) return undefined;
    return { group, log, isWithin: (bounds) => pod.isWithin(bounds) };
  }

  async #confirmed(tenant: number): Promise<number | undefined> {
    const pod = this.podOf(tenant);
    if (pod === undefined) throw new NotLeaderError(0);
    await pod.leading();
    return this.#byTenant.get(tenant)?.length === 1 ? pod.appliedIndex : undefined;
  }

  #seenOf(tenant: number): { group: number; index: number }[] {
    const stores = this.#divided.get(tenant)?.store.partitions;
    return this.#groupsOf(tenant).flatMap(({ group, series }) => {
      const applied = this.#groups.pod(group)?.appliedIndex ?? 0;
      const committed = this.#groups.log(group)?.appliedIndex ?? 0;
      const seen = stores?.[series?.partition ?? 0]?.seenIndex ?? 0;
      const index = Math.max(applied, committed, seen);
      return index === 0 ? [] : [{ group, index }];
    });
  }

  /** For the groups of this plane. */
  async openPod(opened: OpenReplica): Promise<OpenedReplica<SeriesPod>> {
    const { newEngine, podOptions } = this.#options;
    const { definition, replica, directory, disk, raft, report } = opened;
    const engine = newEngine(join(directory, 'data'), this.#replicasHere);
    const { tenant, series } = definition;
    if (series !== undefined) {
      engine.siblings = siblingsOf(engine, series, (partition) => {
        return this.partitionsOf(tenant)[partition]?.parts.engine;
      });
    }
    const made = await openSeriesReplica({
      ...podOptions(),
      ...{ engine, raft, definition, replica, report },
      knowsRemoved: (to) => this.#knowsRemoved(nodeOfReplica(to), definition.group),
      pins: { disk, directory, maxBytes: 0 },
    });
    made.pod.start();
    return made;
  }

  // ---- divided series

  /** A tenant can be served once all its groups are there. */
  #divide(): void {
    for (const [tenant, { store }] of [...this.#divided]) {
      if (this.#byTenant.has(tenant)) continue;
      store.close();
      this.#divided.delete(tenant);
    }
    for (const [tenant, { length }] of this.#byTenant) {
      const groups = this.#groupsOf(tenant).map(({ group }) => group);
      if (length === 1 || groups.length < length) continue;
      const known = this.#divided.get(tenant);
      if (known?.groups.join() === groups.join()) continue;
      known?.store.close();
      this.#divided.set(tenant, this.#newDivided(tenant, groups));
    }
    if (this.#divided.size > 0) this.#links.setPlaces(this.#places);
  }

  #newDivided(tenant: number, groups: readonly number[]): DividedSeries {
    const first = groups[0]!;
    const store: DividedStore = new DividedStore({
      partitions: groups.map((group, partition) =>
        this.#newPartition(
          { tenant, group, partition },
          partition === 0 ? undefined : () => store.expectLeading(),
        ),
      ),
      leading: () => {
        const pod = this.#groups.pod(first);
        const term = this.#groups.log(first)?.status().replication?.term;
        return pod?.role === 'leader' && term !== undefined ? { pod, term } : undefined;
      },
      knowsOrders: () => this.#level >= orderLevel,
    });
    return new DividedSeries({ groups, store, logOf: (group) => this.#groups.log(group) });
  }

  #newPartition(
    { tenant, group, partition }: { tenant: number; group: number; partition: number },
    beforeChange: (() => Promise<void>) | undefined,
  ): GroupPartition {
    const definition = (): GroupDefinition | undefined => this.#byTenant.get(tenant)?.[partition];
    return new GroupSeriesStore({
      ...{ group, tenant, beforeChange },
      local: () => this.#groups.pod(group),
      leader: () => {
        const leader = this.#leaderOf(definition());
        if (typeof leader !== 'object') return 0;
        // The next attempt asks another node.
        if (this.#links.of(leader.node)?.isUp !== true) this.#notThere(definition(), leader.node);
        return leader.node;
      },
      linkOf: (node) => this.#links.of(node),
      notThere: (node, leader) => this.#notThere(definition(), node, leader),
      knowsMarks: () => this.#level >= markLevel,
      waitMs: () => this.#options.leaderWaitMs,
    });
  }

  /** The node that leads the first partition makes the others equal to it. */
  #keepEven(): void {
    if (this.#options.isRestoring?.() === true) return;
    for (const { store } of this.#divided.values()) {
      if (!store.isUneven || store.isChanging) continue;
      store.align().catch((error: unknown) => {
        // Tried again: a partition has no leader, or this node leads the first no more.
        if (error instanceof UnavailableError) return;
        this.#options.report('warn', 'the partitions of time series are not equal yet', {
          err: error,
        });
      });
    }
  }

  // ---- leaders
  //

  #leaderOf(definition: GroupDefinition | undefined): LeadingNode | 'here' | undefined {
    if (definition === undefined) return undefined;
    const local = this.#groups.pod(definition.group);
    if (local?.role === 'leader') return 'here';
    const node =
      local === undefined ? this.#guess(definition) : this.#groups.leaderOf(definition.group);
    const place = this.#places.get(node);
    return place && { node, ...place };
  }

  /** A node without a replica of the group asks the voters in turn, and stays with the leader. */
  #guess({ group, replicas }: GroupDefinition): number {
    const known = this.#asked.get(group);
    const voters = replicas.filter(({ state }) => state === 'voter').map(({ node }) => node);
    if (known !== undefined && voters.includes(known)) return known;
    const [first = 0] = voters;
    this.#asked.set(group, first);
    return first;
  }

  /** `leader`: the node that leads, as that one says; 0 if it does not know. */
  #notThere(definition: GroupDefinition | undefined, node: number, leader = 0): void {
    if (definition === undefined || this.#asked.get(definition.group) !== node) return;
    const voters = definition.replicas.filter(({ state }) => state === 'voter');
    const at = voters.findIndex((voter) => voter.node === node);
    const isNamed = leader !== node && voters.some((voter) => voter.node === leader);
    const next = isNamed ? leader : voters[(at + 1) % voters.length]?.node;
    this.#asked.set(definition.group, next ?? 0);
  }

  async close(): Promise<void> {
    clearInterval(this.#keeper);
    await this.#follower.ended();
    for (const { store } of this.#divided.values()) store.close();
    this.#links.close();
    this.#server.close();
    this.forwarder.close();
    await this.#groups.close();
  }
}

function sizeOf(pod: SeriesPod): { rows: number; bytes: number } {
  const { series, diskBytes, headBytes } = pod.engineStats();
  return { rows: series, bytes: diskBytes + headBytes };
}

/**
 * The other partitions, as limits of all of them count them: by the replicas here, which may be a little behind. One
 * without a replica here is taken to hold as much as this one, as series are spread evenly.
 */
function siblingsOf(
  own: SeriesSibling,
  { partition, of }: SeriesPart,
  engineOf: (partition: number) => SeriesSibling | undefined,
): SeriesSibling[] {
  const others = Array.from({ length: of }, (_, other) => other).filter((one) => one !== partition);
  return others.map((other) => ({
    seriesCountOf: (database) => (engineOf(other) ?? own).seriesCountOf(database),
    shardCountOf: (database) => (engineOf(other) ?? own).shardCountOf(database),
  }));
}
