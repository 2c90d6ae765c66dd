// What befalls the cluster of a history, and what its operators order, each with a probability of its own.

import type { GroupDefinition } from '../../contracts/cluster.ts';
import type { FsyncPolicy } from '../../storage-node/replicator/partition-log.ts';
import type { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import type { MetadataService } from './metadata.ts';
import type { OwnedTimeline } from './owned-timeline.ts';
import type { Life, NodeProcess } from './process.ts';

type Node = NodeProcess<Life>;

interface FaultsWorld {
  readonly timeline: OwnedTimeline;
  readonly random: Random;
  readonly cluster: {
    readonly nodes: readonly Node[];
    groups(): readonly GroupDefinition[];
    leaderOf(group: number): Node | undefined;
    /** Has partitions be split or merged; undefined where there are none. */
    reshape?(random: Random): void;
    /** Has a change of partitions be given up. */
    cancel?(random: Random): void;
  };
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
  ...{ reshape: 0.12, cancel: 0.03, move: 0.06, elect: 0.03, out: 0.02, full: 0.04, failing: 0.04 },
};
const everyMs = 100;
/** Once the faults are over. */
const quickMs = 2;

export class Faults {
  kills = 0;
  pauses = 0;
  disks = 0;
  readonly #world: FaultsWorld;
  readonly #rates: Readonly<typeof most>;
  /** It never comes back. */
  #lost: Node | undefined;
  /** Where a failed sync may lose what was acknowledged, the disk of this node alone fails. */
  #failing: Node | undefined;
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
      node.mend();
    }
    this.#startAll();
  }

  /** A node may still end because its disk has failed before. */
  #startAll(): void {
    for (const node of this.#world.cluster.nodes) this.#start(node);
    this.#world.timeline.after(everyMs, () => this.#startAll());
  }

  #start(node: Node): void {
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
      // Refused where the node's definition of the group is another one.
      cluster.leaderOf(group)?.transfer(group, random.pick(replicas).node);
    }
    if (random.chance(slow)) {
      links.delay = 30 + random.next() * 300;
      timeline.after(random.next() * 1500, () => (links.delay = 3));
    }
    this.#ofDisks();
    this.#ofMetadata();
  }

  #ofDisks(): void {
    const { random, timeline, cluster } = this.#world;
    const { full, failing } = this.#rates;
    if (random.chance(full)) {
      const node = this.#someNode();
      node.fill(random.below(random.pick([1, 4096, 100_000])));
      timeline.after(random.next() * 5000, () => node.makeRoom());
      this.disks++;
    }
    if (random.chance(failing)) {
      const some = this.#someNode();
      const node = this.#world.fsync === 'always' ? some : (this.#failing ??= some);
      node.failOnce(random.below(20));
      this.disks++;
    }
    // A node whose disk has failed has ended.
    if (full > 0 || failing > 0) {
      const node = random.pick(cluster.nodes);
      if (random.chance(0.2)) this.#start(node);
    }
  }

  /** Mostly one that leads a group. */
  #someNode(): Node {
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

  #kill(node: Node, downMs: number): void {
    if (node.life === undefined) return;
    const { random, timeline, fsync } = this.#world;
    this.kills++;
    node.kill(fsync === 'always' && random.chance(0.5));
    timeline.after(random.next() * downMs, () => this.#start(node));
  }

  /** One node alone, whose replicas are made anew on the others. */
  #lose(): void {
    if (this.#lost !== undefined) return;
    // A fenced replica waits for all the others.
    if (this.#world.fsync !== 'always' && this.#rates.failing > 0) return;
    this.#lost = this.#world.random.pick(this.#world.cluster.nodes);
    this.#lost.kill(false);
  }

  #cutOff({ number }: Node): void {
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
    if (random.chance(reshape)) cluster.reshape?.(random);
    if (random.chance(cancel)) cluster.cancel?.(random);
    if (random.chance(move)) this.#move(random.pick(cluster.nodes));
    if (random.chance(elect)) metadata.elect();
    if (random.chance(out)) {
      metadata.isOut = true;
      timeline.after(random.next() * 3000, () => (metadata.isOut = false));
    }
  }

  /** To a node without a replica of the group. */
  #move(by: Node): void {
    const { random, cluster } = this.#world;
    const { group, replicas = [] } = this.#someGroup() ?? {};
    const others = cluster.nodes
      .map(({ number }) => number)
      .filter((number) => replicas.every(({ node }) => node !== number));
    if (group === undefined || others.length === 0) return;
    by.move(group, random.pick(replicas).node, random.pick(others));
  }
}
