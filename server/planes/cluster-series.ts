// The InfluxDB plane of a node in a cluster: a pod for each tenant whose time series have a replica here, all of them as
// one store, and the way to the node that leads a tenant's.

import { join } from 'node:path';
import {
  Forwarder,
  type LeadingNode,
  type SeriesReplicaHere,
} from '../../access/influx/forwarding/forwarder.ts';
import { httpPurpose, LinkStream } from '../../access/influx/forwarding/link-stream.ts';
import {
  type ClusterView,
  clusterLevel,
  type GroupDefinition,
  type GroupMinutes,
  type MinuteSpan,
  type ReplicaStatus,
} from '../../contracts/cluster.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import type { PortableSeriesEngine } from '../../engines/series-engine.ts';
import type { SeriesPod } from '../../storage-node/series-pod.ts';
import {
  openSeriesReplica,
  type SeriesReplicaHostOptions,
} from '../../storage-node/series-replica-host.ts';
import { replicaSamples } from './cluster-samples.ts';
import { keptName } from './influx-databases.ts';
import type { InfluxTables } from './influx-tables.ts';
import type { FsyncPolicy } from '../../storage-node/replicator/partition-log.ts';
import type { PlaneCluster } from './messages.ts';
import {
  type NodePlace,
  type OpenedReplica,
  type OpenReplica,
  PlaneGroups,
  ViewFollower,
} from './plane-groups.ts';
import { SeriesPods } from './series-pods.ts';

type Report = (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;

interface ClusterSeriesOptions {
  readonly data: PlaneCluster;
  /** Properties of databases. */
  readonly tables: InfluxTables;
  /** Path of this plane in the data directory. */
  readonly directory: string;
  /** The settings `wal.fsync` and `wal.accept-loss`. */
  readonly fsync: FsyncPolicy;
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
  readonly report: Report;
  readonly fatal: (error: unknown) => void;
}

/** From this level of a cluster on all nodes know tokens of sessions over HTTP. */
const sessionLevel = 4;

export class ClusterSeries {
  /** Store of all tenants whose series are led here. */
  readonly store: SeriesPods;
  readonly forwarder: Forwarder;
  readonly #options: ClusterSeriesOptions;
  readonly #groups: PlaneGroups<SeriesPod>;
  readonly #follower = new ViewFollower((view) => this.#adopt(view));
  /** By tenant. */
  #byTenant = new Map<number, GroupDefinition>();
  #places = new Map<number, NodePlace>();
  /** By tenant: units charged as of the last `takeUnits`. */
  readonly #charged = new Map<number, number>();
  #level = 1;
  /** By group: the node asked last, where no replica here knows the leader. */
  readonly #asked = new Map<number, number>();

  static async open(options: ClusterSeriesOptions): Promise<ClusterSeries> {
    const { data, directory, report, fatal, fsync, acceptLoss } = options;
    // Replicas open only once a view was given, and by then this stands.
    const self: { series: ClusterSeries | undefined } = { series: undefined };
    const groups = await PlaneGroups.open<SeriesPod>({
      ...{ data, directory, report, fatal, fsync, acceptLoss },
      isHere: ({ model }) => model === 'tsm',
      addressOf: ({ addresses }) => addresses.influx,
      open: (replica) => openPod(options, self.series!.replicasHere, replica),
      sizeOf,
      takeUnits: (_, { tenant }) => self.series!.takeUnits(tenant),
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
      podOf: (tenant) => this.podOf(tenant),
      all: () => this.localPods(),
    });
    this.forwarder = new Forwarder({
      context: groups.context,
      leaderOf: (tenant) => this.#leaderOf(tenant),
      notThere: (tenant, node) => this.#notThere(tenant, node),
      replicaOf: (tenant) => this.#replicaOf(tenant),
      boundsOf: (tenant, name) => options.tables.get(keptName({ tenant, name }))?.readBounds,
      knowsSessions: () => this.#level >= sessionLevel,
      waitMs: () => options.leaderWaitMs,
    });
  }

  /** Since the last call. Requests are charged where a tenant's series are led. */
  takeUnits(tenant: number): number {
    const charged = this.#options.chargedTo(tenant);
    const before = this.#charged.get(tenant) ?? 0;
    this.#charged.set(tenant, charged);
    // An account that was forgotten meanwhile begins at 0 again.
    return charged < before ? charged : charged - before;
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

  named(): { group: number; tenant: number; pod: SeriesPod }[] {
    return this.#groups
      .entries()
      .map(({ group, definition, pod }) => ({ group, tenant: definition.tenant, pod }));
  }

  /** The pod of a tenant's replica on this node. */
  podOf(tenant: number): SeriesPod | undefined {
    const definition = this.#byTenant.get(tenant);
    return definition && this.#groups.pod(definition.group);
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

  get replicasHere(): number {
    const { node } = this.#options.data;
    const here = [...this.#byTenant.values()].filter(({ replicas }) =>
      replicas.some((replica) => replica.node === node),
    );
    return here.length;
  }

  async #adopt({ nodes, groups }: ClusterView): Promise<void> {
    this.#level = clusterLevel(nodes);
    const series = groups.filter(({ model }) => model === 'tsm');
    this.#byTenant = new Map(series.map((group) => [group.tenant, group]));
    this.#places = this.#groups.setNodes(nodes);
    this.forwarder.setNodes(Array.from(this.#places, ([node, place]) => ({ node, ...place })));
    this.tablesChanged();
    await this.#groups.setGroups(groups);
    this.store.changed();
  }

  /** Properties of databases have changed. */
  tablesChanged(): void {
    const { leasedTenants } = this.#options.tables;
    const leased = [...this.#byTenant.values()].filter(({ tenant }) => leasedTenants.has(tenant));
    this.#groups.setLeases(new Set(leased.map(({ group }) => group)));
  }

  #replicaOf(tenant: number): SeriesReplicaHere | undefined {
    const group = this.#byTenant.get(tenant)?.group ?? 0;
    const [pod, log] = [this.#groups.pod(group), this.#groups.log(group)];
    if (pod === undefined || log === undefined) return undefined;
    return {
      group,
      log,
      appliedIndex: pod.appliedIndex,
      isWithin: (bounds) => pod.isWithin(bounds),
    };
  }

  // ---- leaders
  //

  #leaderOf(tenant: number): LeadingNode | 'here' | undefined {
    const definition = this.#byTenant.get(tenant);
    if (definition === undefined) return undefined;
    const local = this.#groups.pod(definition.group);
    if (local?.role === 'leader') return 'here';
    const node =
      local === undefined ? this.#guess(definition) : this.#groups.leaderOf(definition.group);
    const place = this.#places.get(node);
    return place && { node, ...place };
  }

  /** Without a replica of its own a node asks those that have one in turn, and stays with the one that leads. */
  #guess({ group, replicas }: GroupDefinition): number {
    const known = this.#asked.get(group);
    const voters = replicas.filter(({ state }) => state === 'voter').map(({ node }) => node);
    if (known !== undefined && voters.includes(known)) return known;
    const [first = 0] = voters;
    this.#asked.set(group, first);
    return first;
  }

  #notThere(tenant: number, node: number): void {
    const definition = this.#byTenant.get(tenant);
    if (definition === undefined || this.#asked.get(definition.group) !== node) return;
    const voters = definition.replicas.filter(({ state }) => state === 'voter');
    const at = voters.findIndex((voter) => voter.node === node);
    this.#asked.set(definition.group, voters[(at + 1) % voters.length]?.node ?? 0);
  }

  async close(): Promise<void> {
    await this.#follower.ended();
    this.forwarder.close();
    await this.#groups.close();
  }
}

function sizeOf(pod: SeriesPod): { rows: number; bytes: number } {
  const { series, diskBytes, headBytes } = pod.engineStats();
  return { rows: series, bytes: diskBytes + headBytes };
}

async function openPod(
  { newEngine, podOptions }: ClusterSeriesOptions,
  groups: number,
  { definition, replica, directory, raft, report }: OpenReplica,
): Promise<OpenedReplica<SeriesPod>> {
  const engine = newEngine(join(directory, 'data'), groups);
  const opened = await openSeriesReplica({
    ...podOptions(),
    ...{ engine, raft, definition, replica, report },
    pins: { disk: realDisk, directory, maxBytes: 0 },
  });
  opened.pod.start();
  return opened;
}
