// What befalls the cluster of a history, and what its operators order, each with a probability of its own.

import type { GroupDefinition } from '../../contracts/cluster.ts';
import type { Json } from '../../control/metadata/document-store.ts';
import type { PartitionOrder } from '../../control/metadata/partition-catalog.ts';
import type { FsyncPolicy } from '../../storage-node/replicator/partition-log.ts';
import type { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import type { SimulatedCluster } from './cluster.ts';
import type { MetadataService } from './metadata.ts';
import type { GatewayNode } from './node.ts';
import type { OwnedTimeline } from './owned-timeline.ts';

interface FaultsWorld {
  readonly timeline: OwnedTimeline;
  readonly random: Random;
  readonly cluster: SimulatedCluster;
  readonly metadata: MetadataService;
  readonly links: Links;
  /** Nodes lose power only where nothing acknowledged may be lost by it. */
  readonly fsync: FsyncPolicy;
  /** Whether a node may be gone for good. */
  readonly mayLose: boolean;
}

/** The ways between the nodes. */
export class Links {
  /** Most of a message between two nodes, milliseconds. */
  delay: number;
  /** Ways that are cut: `from to`. */
  readonly #cut = new Set<string>();

  constructor(delay: number) {
    this.delay = delay;
  }

  isCut(from: number, to: number): boolean {
    return this.#cut.has(`${from} ${to}`);
  }

  cut(from: number, to: number): void {
    this.#cut.add(`${from} ${to}`);
  }

  heal(): void {
    this.#cut.clear();
  }
}

/** The highest probability by 100 ms. */
const most = {
  ...{ kill: 0.12, lose: 0.02, pause: 0.12, cut: 0.1, slow: 0.05, transfer: 0.05 },
  ...{ reshape: 0.12, cancel: 0.03, move: 0.06, elect: 0.03, out: 0.02 },
};
const everyMs = 100;
/** Once the faults are over. */
const quickMs = 2;

export class Faults {
  kills = 0;
  pauses = 0;
  readonly #world: FaultsWorld;
  readonly #rates: Readonly<typeof most>;
  /** It never comes back. */
  #lost: GatewayNode | undefined;
  #isOver = false;

  constructor(world: FaultsWorld) {
    const { random } = world;
    this.#world = world;
    const rates = Object.entries(most).map(([name, rate]) => {
      return [name, random.chance(0.7) ? random.next() * rate : 0];
    });
    this.#rates = Object.fromEntries(rates) as typeof most;
  }

  start(): void {
    const { timeline, random } = this.#world;
    timeline.after(random.next() * everyMs * 2, () => {
      if (this.#isOver) return;
      this.#some();
      this.start();
    });
  }

  /** All nodes but one that is gone serve again. */
  end(): void {
    const { links, metadata, cluster } = this.#world;
    this.#isOver = true;
    links.heal();
    links.delay = quickMs;
    metadata.isOut = false;
    for (const node of cluster.nodes) {
      node.pause(0);
      this.#start(node);
    }
  }

  #start(node: GatewayNode): void {
    if (node !== this.#lost) node.start();
  }

  #some(): void {
    const { random, cluster, links, timeline, mayLose } = this.#world;
    const { kill, lose, pause, cut, transfer, slow } = this.#rates;
    if (random.chance(kill)) this.#killSome();
    if (random.chance(lose) && mayLose) this.#lose();
    if (random.chance(pause)) {
      this.pauses++;
      this.#someNode().pause(random.next() * random.pick([400, 3000, 6000]));
    }
    if (random.chance(cut)) this.#cutOff(this.#someNode());
    if (random.chance(transfer)) {
      const { group = 0, replicas = [] } = this.#someGroup() ?? {};
      const leader = cluster.leaderOf(group);
      // Refused where the node's definition of the group is another one.
      leader?.do(({ rows }) => attempt(() => rows.transfer(group, random.pick(replicas).node)));
    }
    if (random.chance(slow)) {
      links.delay = 30 + random.next() * 300;
      timeline.after(random.next() * 1500, () => (links.delay = 3));
    }
    this.#ofMetadata();
  }

  /** Mostly one that leads a group. */
  #someNode(): GatewayNode {
    const { random, cluster } = this.#world;
    const group = random.chance(0.5) ? this.#someGroup()?.group : undefined;
    return (group && cluster.leaderOf(group)) || random.pick(cluster.nodes);
  }

  #someGroup(): GroupDefinition | undefined {
    const groups = this.#world.cluster.groups();
    return groups.length === 0 ? undefined : this.#world.random.pick(groups);
  }

  #killSome(): void {
    const { random, cluster } = this.#world;
    const down = random.pick([30, 800, 4000]);
    const count = random.pick([1, 1, 2, 3]);
    const first = this.#someNode();
    const victims = [first, ...cluster.nodes.filter((one) => one !== first)].slice(0, count);
    for (const node of victims) this.#kill(node, down);
  }

  #kill(node: GatewayNode, downMs: number): void {
    if (node.life === undefined) return;
    const { random, timeline, fsync } = this.#world;
    this.kills++;
    node.kill(fsync === 'always' && random.chance(0.5));
    timeline.after(random.next() * downMs, () => this.#start(node));
  }

  /** One node alone, whose replicas are made anew on the others. */
  #lose(): void {
    if (this.#lost !== undefined) return;
    this.#lost = this.#world.random.pick(this.#world.cluster.nodes);
    this.#lost.kill(false);
  }

  #cutOff({ number }: GatewayNode): void {
    const { random, timeline, cluster, links } = this.#world;
    const isOneWay = random.chance(0.3);
    const hears = random.chance(0.5);
    for (const other of cluster.nodes) {
      if (other.number === number || random.chance(0.2)) continue;
      if (!isOneWay || hears) links.cut(number, other.number);
      if (!isOneWay || !hears) links.cut(other.number, number);
    }
    timeline.after(200 + random.next() * 4000, () => links.heal());
  }

  // ---- metadata, and orders of operators

  #ofMetadata(): void {
    const { random, cluster, metadata, timeline } = this.#world;
    const { reshape, cancel, move, elect, out } = this.#rates;
    const by = random.pick(cluster.nodes);
    if (random.chance(reshape)) {
      const order = this.#someChange();
      by.do(({ partitions }) => attempt(() => partitions.order('0', order)));
    }
    if (random.chance(cancel)) by.do(({ partitions }) => attempt(() => partitions.cancel('0')));
    if (random.chance(move)) this.#move(by);
    if (random.chance(elect)) metadata.elect();
    if (random.chance(out)) {
      metadata.isOut = true;
      timeline.after(random.next() * 3000, () => (metadata.isOut = false));
    }
  }

  /** Splits at a random slot while there are few partitions, merges neighbours while there are many. */
  #someChange(): PartitionOrder {
    const { random, cluster } = this.#world;
    const all = cluster.partitions();
    if (all.length > 1 && random.chance(all.length / 5)) {
      const at = random.below(all.length - 1);
      return { kind: 'merge', partitions: all.slice(at, at + 2).map(({ number }) => number) };
    }
    const { number, first, last } = random.pick(all);
    const at = first + 1 + random.below(Math.max(1, last - first));
    return { kind: 'split', partition: number, at };
  }

  /** To a node without a replica of the group. */
  #move(by: GatewayNode): void {
    const { random, cluster } = this.#world;
    const { group, replicas = [] } = this.#someGroup() ?? {};
    const others = cluster.nodes
      .map(({ number }) => number)
      .filter((number) => replicas.every(({ node }) => node !== number));
    if (group === undefined || others.length === 0) return;
    const body = { group, from: random.pick(replicas).node, to: random.pick(others) };
    const document = { collection: 'groupMoves', id: String(group), body: body as Json };
    by.do(({ metadata }) => attempt(() => metadata.store.write([{ ...document, expected: 0 }])));
  }
}

/** An order may be refused, or have no known outcome. */
function attempt(act: () => unknown): void {
  const refused = (error: unknown): void => {
    if (error instanceof TypeError) throw error;
  };
  try {
    void Promise.resolve(act()).catch(refused);
  } catch (error) {
    refused(error);
  }
}
