// One history of a cluster under faults: clients use lists through its nodes (clients.ts), while nodes, links and the metadata fail,
// partitions are split and merged, and replicas move to other nodes (faults.ts). Then the faults end. What was answered must agree with the
// lists (lists.ts), and all replicas with each other (cluster.ts).

import type { FsyncPolicy } from '../../storage-node/replicator/partition-log.ts';
import { EnginePool } from '../../storage-node/replicator/simulation/engine-pool.ts';
import { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import { type ClientsWorld, ListClient } from './clients.ts';
import { SimulatedCluster } from './cluster.ts';
import { Faults, Links } from './faults.ts';
import { Lists } from './lists.ts';
import { MetadataService } from './metadata.ts';
import { GatewayNode, layTables, type NodesWorld } from './node.ts';
import { OwnedTimeline } from './owned-timeline.ts';
import { Wires } from './wires.ts';

export interface GatewayResult {
  readonly seed: number;
  readonly failure: string | undefined;
  readonly acknowledged: number;
  readonly unknown: number;
  readonly reads: number;
  readonly kills: number;
  readonly pauses: number;
  readonly changes: number;
  readonly moves: number;
}

const nodeNumbers = [1, 2, 3, 4];
const clientsPerNode = 2;
/** Longest time for anything to come to rest once the faults are over. */
const healedMs = 120_000;
/** Turns in which promises are settled once a history is over. */
const lastTurns = 1000;

class GatewayHistory {
  readonly #seed: number;
  readonly #random: Random;
  readonly #timeline = new OwnedTimeline();
  readonly #engines = new EnginePool();
  readonly #wires: Wires;
  readonly #metadata: MetadataService;
  readonly #cluster: SimulatedCluster;
  readonly #faults: Faults;
  readonly #faultyMs: number;
  readonly #clients: ClientsWorld;
  #failure: Error | undefined;

  constructor(seed: number) {
    this.#seed = seed;
    this.#random = new Random(seed);
    const random = this.#random;
    const timeline = this.#timeline;
    const another = (): Random => new Random(random.below(2 ** 32));
    const breach = (error: Error): void => void (this.#failure ??= error);
    const links = new Links(0.5 + random.next() * 10);
    const fsync: FsyncPolicy = random.pick(['always', 'everysec']);
    const rebuildAfterMs = random.pick([3000, 300_000]);
    const entries = random.pick([6, 20, 60, 200]);
    const ways = {
      isCut: (from: number, to: number): boolean => links.isCut(from, to),
      delay: (): number => links.delay,
    };
    const wires = new Wires({
      ...{ timeline, random: another(), ...ways },
      hostOf: (node) => this.#cluster.node(node).host,
    });
    const metadata = new MetadataService({
      ...{ timeline, random: another(), ...ways, nodes: nodeNumbers },
    });
    const world: NodesWorld = {
      ...{ seed, timeline, wires, metadata, engines: this.#engines, random: another() },
      ...{ rebuildAfterMs, fsync, breach, leases: random.chance(0.4) },
      limits: { checkpointEntries: entries, keptEntries: Math.floor(entries / 4) },
    };
    const pass = async (isDone: () => boolean): Promise<boolean> => {
      await this.#pass(healedMs, isDone);
      return this.#failure === undefined;
    };
    const nodes = nodeNumbers.map((number) => new GatewayNode(world, number));
    const cluster = new SimulatedCluster({ nodes, metadata, pass, breach });
    const mayLose = rebuildAfterMs < healedMs;
    this.#wires = wires;
    this.#metadata = metadata;
    this.#cluster = cluster;
    this.#faults = new Faults({
      ...{ timeline, random: another(), cluster, metadata, links, fsync, mayLose },
    });
    this.#faultyMs = 4000 + random.next() * 16_000;
    const payload = random.chance(0.3) ? 3000 : 0;
    this.#clients = { timeline, lists: new Lists(), payload, elements: 0, isOver: false };
  }

  async run(): Promise<GatewayResult> {
    const timers = new Random(this.#seed ^ 0x1a7e);
    try {
      await this.#timeline.insteadOfTimers(timers, async () => {
        try {
          await this.#run();
        } finally {
          this.#wires.close();
          // What these promises bring about must not run in a later history, whose engines are the same.
          for (let turn = 0; turn < lastTurns; turn++) {
            await new Promise((resolve) => process.nextTick(resolve));
          }
        }
      });
    } catch (error) {
      this.#failure ??= error as Error;
    }
    this.#engines.release();
    const { kills, pauses } = this.#faults;
    return {
      seed: this.#seed,
      failure: this.#failure && (this.#failure.stack ?? this.#failure.message),
      ...this.#clients.lists.counts,
      ...{ kills, pauses, ...this.#cluster.counts },
    };
  }

  async #run(): Promise<void> {
    const cluster = this.#cluster;
    await layTables(this.#metadata);
    for (const node of cluster.nodes) node.start();
    let running = 0;
    for (const node of cluster.nodes) {
      for (let i = 0; i < clientsPerNode; i++) {
        const random = new Random(this.#random.below(2 ** 32));
        running++;
        new ListClient(this.#clients, node, random).run().then(
          () => running--,
          (error: unknown) => (this.#failure ??= error as Error),
        );
      }
    }
    this.#faults.start();
    await this.#pass(this.#faultyMs);
    this.#clients.isOver = true;
    this.#faults.end();
    await this.#pass(healedMs, () => running === 0);
    if (this.#failure === undefined && running > 0) throw new Error('clients do not end');
    // The last ones may have ended without a leader, or within a change of partitions.
    await this.#pass(healedMs, () => cluster.unsettled() === undefined);
    if (this.#failure !== undefined) return;
    const unsettled = cluster.unsettled();
    if (unsettled !== undefined) throw new Error(`not settled: ${unsettled}`);
    const rows = await cluster.rows();
    this.#clients.lists.check((key) => (rows.get(cluster.nameOf(key))?.items ?? []) as string[]);
  }

  /** Lets so much time pass, or less if something is done or has failed. */
  async #pass(ms: number, isDone: () => boolean = () => false): Promise<void> {
    await this.#timeline.runUntil(
      this.#timeline.now + ms,
      () => this.#failure !== undefined || isDone(),
    );
  }
}

/** The same seed, the same history. */
export function runGatewayHistory(seed: number): Promise<GatewayResult> {
  return new GatewayHistory(seed).run();
}
