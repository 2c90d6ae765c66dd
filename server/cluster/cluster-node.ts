// This node's part in its cluster beyond the metadata: it reports nodes and groups to its planes,
// answers for its replicas, runs the controller while it leads the metadata, and serves operators'
// requests.

import {
  clusterLevel,
  type ClusterView,
  hasRole,
  type MinuteSpan,
  type NodeDefinition,
  type PlaneMinutes,
} from '../../contracts/cluster.ts';
import {
  type ClusterAdmin,
  ClusterError,
  type NodeMinutes,
} from '../../control/cluster/cluster-admin.ts';
import { type ClusterReport, clusterReport } from '../../control/cluster/cluster-report.ts';
import { diagnose, type Finding } from '../../control/cluster/diagnosis.ts';
import type { Catalogs } from '../../control/cluster/purposes.ts';
import { type Json, RevisionConflict } from '../../control/metadata/document-store.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { ReplicaStatus } from '../../contracts/cluster.ts';
import type { PlaneCluster } from '../planes/messages.ts';
import type { PlaneHost, Planes } from '../planes/plane-host.ts';
import { clusterAddresses, clusterPorts } from '../settings/cluster-addresses.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import { type ClusterMetadata, ControlError } from './cluster-metadata.ts';
import { ClusterViewFeed } from './cluster-view.ts';
import { Controller } from './controller.ts';
import { QuotaKeeper } from './quota-keeper.ts';
import { movesCollection } from './group-documents.ts';
import { seriesDivision } from './series-division.ts';
import { answerGroupQuestions, groupQuestions, handOver } from './group-questions.ts';

interface ClusterNodeOptions {
  metadata: ClusterMetadata;
  secret: Buffer;
  config: LiveConfig;
  planes: Planes;
  /** Groups are placed once there are so many nodes. */
  leastNodes: number;
  /** See `LinkContext`. */
  silenceMs: number | undefined;
  report: (message: string) => void;
}

const nodesCollection = 'nodes';
const viewTimeoutMs = 10_000;
const statusTimeoutMs = 2000;
const transferTimeoutMs = 5000;
const mostAttempts = 10;

export class ClusterNode implements ClusterAdmin {
  readonly #options: ClusterNodeOptions;
  readonly #feed: ClusterViewFeed;
  /** Partitions of each tenant's time series. */
  readonly #seriesPartitions: number;
  #controller: Controller | undefined;
  #quotas: QuotaKeeper | undefined;

  private constructor(options: ClusterNodeOptions, feed: ClusterViewFeed, division: number) {
    this.#options = options;
    this.#feed = feed;
    this.#seriesPartitions = division;
  }

  static async open(options: ClusterNodeOptions): Promise<ClusterNode> {
    const { metadata, planes, report } = options;
    const division = await seriesDivision(metadata.store);
    const node = new ClusterNode(options, await ClusterViewFeed.open(metadata, report), division);
    answerGroupQuestions(metadata.handlers, planes);
    return node;
  }

  /** Settings with which a plane starts. */
  planeCluster(plane: 'redis' | 'influx'): PlaneCluster {
    const { metadata, secret, silenceMs, config } = this.#options;
    const { listen } = clusterAddresses(config.all())!;
    const { cluster, node, incarnation } = metadata.identity;
    return {
      id: cluster,
      node,
      incarnation,
      secret: Uint8Array.from(secret),
      host: listen.host,
      port: listen.port + clusterPorts[plane],
      view: this.#feed.view,
      maxWriteBytes: config.get('cluster.max-entry-bytes'),
      silenceMs,
    };
  }

  /** The planes are up: from now on they follow the metadata, and the controller works. */
  start(catalogs: () => Catalogs): void {
    const { metadata, config, planes, leastNodes, report } = this.#options;
    for (const plane of Object.values(planes) as PlaneHost[]) this.#tell(plane);
    this.#controller = new Controller({
      metadata,
      catalogs: () => ({ ...catalogs(), seriesPartitions: this.#seriesPartitions }),
      policy: () => ({
        replicas: config.get('cluster.replicas'),
        rebuildAfterMs: config.get('cluster.rebuild-after') * 1000,
        leastNodes,
      }),
      report,
    });
    this.#controller.start();
    this.#quotas = new QuotaKeeper(metadata, planes);
  }

  /** One call at a time: a plane may take long to open replicas, and then needs only the latest view. */
  #tell(plane: PlaneHost): void {
    let latest: ClusterView | undefined = this.#feed.view;
    let isTelling = false;
    const tell = async (): Promise<void> => {
      if (isTelling) return;
      isTelling = true;
      while (latest !== undefined && plane.isUp) {
        const view = latest;
        latest = undefined;
        await plane.call('cluster', view, viewTimeoutMs).catch((error: Error) => {
          this.#options.report(
            `the ${plane.name} plane does not follow the cluster: ${error.message}`,
          );
        });
      }
      isTelling = false;
    };
    this.#feed.onChange((view) => {
      latest = view;
      void tell();
    });
    void tell();
  }

  /** Before a stop in good order. */
  async handOver(): Promise<void> {
    const { metadata, planes } = this.#options;
    await this.#controller?.close();
    const up = metadata.reachability().filter(({ reachable }) => reachable);
    await handOver(planes, this.#feed.view, new Set(up.map(({ node }) => node)));
  }

  async close(): Promise<void> {
    this.#quotas?.close();
    await this.#controller?.close();
    this.#feed.close();
  }

  samples(): MetricSample[] {
    const { metadata } = this.#options;
    const sample = (name: string, help: string, value: number, labels = {}): MetricSample => {
      return { name: `polyrow_cluster_${name}`, help, type: 'gauge', value, labels };
    };
    return [
      sample('node', 'Number of this node.', metadata.identity.node),
      sample(
        'metadata_leader',
        'Node that leads the metadata; 0 while none is known.',
        metadata.leader,
      ),
      sample('groups', 'Groups of replicas in the cluster.', this.#feed.view.groups.length),
      ...metadata.reachability().map(({ node, reachable }) =>
        sample(
          'node_reachable',
          'Whether this node has a link to a node of the cluster.',
          +reachable,
          {
            node: String(node),
          },
        ),
      ),
    ];
  }

  get view(): ClusterView {
    return this.#feed.view;
  }

  /** As the nodes in reach tell. */
  async replicas(): Promise<ReplicaStatus[]> {
    const up = this.#options.metadata.reachability().filter(({ reachable }) => reachable);
    return (await this.#ask(up)).statuses;
  }

  /** Level supported by all nodes. */
  get level(): number {
    return clusterLevel(this.#options.metadata.nodes());
  }

  // ---- operators' requests
  //

  async report(): Promise<ClusterReport> {
    const { metadata, config } = this.#options;
    const { identity } = metadata;
    const { leader, nodes, voters } = await metadata.status();
    return clusterReport({
      cluster: identity.cluster,
      node: identity.node,
      leader,
      voters,
      wantedReplicas: config.get('cluster.replicas'),
      nodes,
      groups: this.#feed.view.groups,
      ...(await this.#ask(nodes.filter(({ reachable }) => reachable))),
    });
  }

  async #ask(
    nodes: readonly Pick<NodeDefinition, 'node'>[],
  ): Promise<{ statuses: ReplicaStatus[]; silent: Set<number> }> {
    const { metadata } = this.#options;
    const answers = await Promise.allSettled(
      nodes.map(({ node }) => metadata.ask(node, groupQuestions.status, null, statusTimeoutMs)),
    );
    const statuses = answers.flatMap((answer) =>
      answer.status === 'fulfilled' ? (answer.value as unknown as ReplicaStatus[]) : [],
    );
    const silent = nodes.filter((_, i) => answers[i]!.status === 'rejected');
    return { statuses, silent: new Set(silent.map(({ node }) => node)) };
  }

  async minutes(span: MinuteSpan): Promise<NodeMinutes[]> {
    const { metadata } = this.#options;
    const up = metadata.reachability().filter(({ reachable }) => reachable);
    const answers = await Promise.allSettled(
      up.map(async ({ node }): Promise<NodeMinutes[]> => {
        const question = { from: span.from, to: span.to };
        const answer = await metadata.ask(node, groupQuestions.minutes, question, statusTimeoutMs);
        return (answer as unknown as PlaneMinutes[]).map((plane) => ({ node, ...plane }));
      }),
    );
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  }

  async findings(): Promise<Finding[]> {
    const rebuildAfterMs = this.#options.config.get('cluster.rebuild-after') * 1000;
    return diagnose(await this.report(), rebuildAfterMs, Date.now());
  }

  async setNodeState(node: number, state: 'up' | 'draining'): Promise<void> {
    const { store } = this.#options.metadata;
    for (let attempt = 1; ; attempt++) {
      const documents = await store.list(nodesCollection);
      const nodes = documents.map(({ body }) => body as unknown as NodeDefinition);
      const at = nodes.findIndex((one) => one.node === node && one.state !== 'removed');
      const definition = nodes[at];
      if (definition === undefined) throw new ClusterError(404, `no node ${node}`);
      if (definition.state === state) return;
      if (definition.state === 'joining') {
        throw new ClusterError(409, `node ${node} has not joined yet`);
      }
      const isLast = !nodes.some(
        (one) => one.node !== node && one.state === 'up' && hasRole(one, 'node'),
      );
      if (state === 'draining' && isLast && hasRole(definition, 'node')) {
        throw new ClusterError(409, `node ${node} is the only one that could have the data`);
      }
      const { collection, id, revision } = documents[at]!;
      const body = { ...definition, state } as unknown as Json;
      try {
        await store.write([{ collection, id, body, expected: revision }]);
        return;
      } catch (error) {
        if (!(error instanceof RevisionConflict) || attempt === mostAttempts) throw error;
      }
    }
  }

  async removeNode(node: number): Promise<void> {
    const { metadata } = this.#options;
    if (!metadata.nodes().some((one) => one.node === node)) {
      throw new ClusterError(404, `no node ${node}`);
    }
    const left = this.#feed.view.groups.filter(({ replicas }) =>
      replicas.some((replica) => replica.node === node),
    ).length;
    if (left > 0) {
      throw new ClusterError(
        409,
        `node ${node} has replicas of ${left} groups: drain it first (polyrow node drain ${node})`,
      );
    }
    await refused(metadata.remove(node));
  }

  async transfer(group: number, to: number): Promise<void> {
    const { metadata } = this.#options;
    const { replicas } = this.#group(group);
    if (!replicas.some(({ node, state }) => node === to && state === 'voter')) {
      throw new ClusterError(409, `node ${to} has no voting replica of group ${group}`);
    }
    const reachable = metadata.reachability().filter((one) => one.reachable);
    const { statuses } = await this.#ask(
      replicas.filter(({ node }) => reachable.some((one) => one.node === node)),
    );
    const leading = statuses.find((one) => one.group === group && one.role === 'leader');
    if (leading === undefined)
      throw new ClusterError(503, `group ${group} has no leader at present`);
    if (leading.leader === to) return;
    const order = { group, to };
    await refused(metadata.ask(leading.leader, groupQuestions.transfer, order, transferTimeoutMs));
  }

  async move(group: number, from: number, to: number): Promise<void> {
    const { metadata } = this.#options;
    const { replicas } = this.#group(group);
    const target = metadata.nodes().find(({ node }) => node === to);
    if (target === undefined) throw new ClusterError(404, `no node ${to}`);
    if (target.state !== 'up') throw new ClusterError(409, `node ${to} is ${target.state}`);
    if (!hasRole(target, 'node')) {
      throw new ClusterError(409, `node ${to} has no replicas: its roles are others`);
    }
    if (!replicas.some(({ node }) => node === from)) {
      throw new ClusterError(409, `node ${from} has no replica of group ${group}`);
    }
    if (replicas.some(({ node }) => node === to)) {
      throw new ClusterError(409, `node ${to} has a replica of group ${group} already`);
    }
    const document = { collection: movesCollection, id: String(group) };
    const found = await metadata.store.get(document.collection, document.id);
    if (found !== undefined)
      throw new ClusterError(409, `a replica of group ${group} is being moved`);
    await metadata.store.write([{ ...document, body: { group, from, to }, expected: 0 }]);
  }

  #group(group: number): ClusterView['groups'][number] {
    const found = this.#feed.view.groups.find((one) => one.group === group);
    if (found === undefined) throw new ClusterError(404, `no group ${group}`);
    return found;
  }
}

/** A refusal of another node is passed on with its message. */
async function refused<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof ControlError)) throw error;
    throw new ClusterError(error.outcome === 'refused' ? 409 : 503, error.message);
  }
}
