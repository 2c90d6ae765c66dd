// One history of a cluster under faults: clients use it through its nodes, while nodes, links and the metadata fail and operators change things
// (faults.ts). Then the faults end, and everything must come to rest within a time. What clients were answered must then agree with what the
// replicas hold, and all replicas with each other.

import type { FsyncPolicy } from '../../storage-node/replicator/partition-log.ts';
import { EnginePool } from '../../storage-node/replicator/simulation/engine-pool.ts';
import { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import type { ClusterParts, SimulatedCluster } from './cluster.ts';
import { Faults, Links } from './faults.ts';
import { MetadataService } from './metadata.ts';
import type { OwnedTimeline } from './owned-timeline.ts';
import type { Life, NodeProcess, ProcessWorld } from './process.ts';
import { Wires } from './wires.ts';

export interface HistoryResult {
  readonly seed: number;
  readonly failure: string | undefined;
  readonly kills: number;
  readonly pauses: number;
  /** Disks that were full or failed. */
  readonly disks: number;
  readonly moves: number;
}

const nodeNumbers = [1, 2, 3, 4];
const clientsPerNode = 2;
/** Longest time for anything to come to rest once the faults are over. */
const healedMs = 120_000;
/** Turns in which promises are settled once a history is over. */
const lastTurns = 1000;

type AnyCluster<L extends Life, N extends NodeProcess<L>> = SimulatedCluster<L, N> & {
  unsettled(): string | undefined;
};

export abstract class History<
  L extends Life,
  N extends NodeProcess<L>,
  C extends AnyCluster<L, N>,
> {
  readonly seed: number;
  protected readonly random: Random;
  protected readonly timeline: OwnedTimeline;
  protected readonly metadata: MetadataService;
  protected readonly cluster: C;
  protected isOver = false;
  readonly #engines = new EnginePool();
  readonly #wires: Wires;
  readonly #faults: Faults;
  readonly #faultyMs: number;
  #failure: Error | undefined;

  constructor(
    seed: number,
    timeline: OwnedTimeline,
    newNode: (world: ProcessWorld, number: number) => N,
    newCluster: (parts: ClusterParts<N>) => C,
  ) {
    this.seed = seed;
    this.timeline = timeline;
    this.random = new Random(seed);
    const random = this.random;
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
    this.#wires = new Wires({
      ...{ timeline, random: another(), ...ways },
      hostOf: (node) => this.cluster.node(node).host,
    });
    const metadata = new MetadataService({
      ...{ timeline, random: another(), ...ways, nodes: nodeNumbers },
    });
    this.metadata = metadata;
    const world: ProcessWorld = {
      ...{ seed, timeline, wires: this.#wires, metadata, engines: this.#engines },
      ...{ random: another(), rebuildAfterMs, fsync, breach, leases: random.chance(0.4) },
      limits: { checkpointEntries: entries, keptEntries: Math.floor(entries / 4) },
    };
    const pass = async (isDone: () => boolean): Promise<boolean> => {
      await this.#pass(healedMs, isDone);
      return this.#failure === undefined;
    };
    const nodes = nodeNumbers.map((number) => newNode(world, number));
    this.cluster = newCluster({ nodes, metadata, pass, breach });
    const mayLose = rebuildAfterMs < healedMs;
    this.#faults = new Faults({
      ...{ timeline, random: another(), cluster: this.cluster, metadata, links, fsync, mayLose },
    });
    this.#faultyMs = 4000 + random.next() * 16_000;
  }

  /** What is there before the first node starts. */
  protected async lay(): Promise<void> {}

  /** Runs a client at a node until `isOver`. Rejects when an answer cannot be. */
  protected abstract client(node: N, random: Random): Promise<void>;

  /** Disks that were full or failed, so far. */
  protected get badDisks(): number {
    return this.#faults.disks;
  }

  /** Whether faults may begin. */
  protected get isReady(): boolean {
    return true;
  }

  /** Throws where the answers do not agree with what there is. */
  protected abstract check(): Promise<void>;

  async run(): Promise<HistoryResult> {
    const timers = new Random(this.seed ^ 0x1a7e);
    try {
      await this.timeline.insteadOfTimers(timers, async () => {
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
    const { kills, pauses, disks } = this.#faults;
    return {
      seed: this.seed,
      failure: this.#failure && (this.#failure.stack ?? this.#failure.message),
      ...{ kills, pauses, disks, moves: this.cluster.moves },
    };
  }

  async #run(): Promise<void> {
    const { cluster } = this;
    await this.lay();
    for (const node of cluster.nodes) node.start();
    let running = 0;
    for (const node of cluster.nodes) {
      for (let i = 0; i < clientsPerNode; i++) {
        const random = new Random(this.random.below(2 ** 32));
        running++;
        this.client(node, random).then(
          () => running--,
          (error: unknown) => (this.#failure ??= error as Error),
        );
      }
    }
    await this.#pass(healedMs, () => this.isReady);
    this.#faults.start();
    await this.#pass(this.#faultyMs);
    this.isOver = true;
    this.#faults.end();
    await this.#pass(healedMs, () => running === 0);
    if (this.#failure === undefined && running > 0) throw new Error('clients do not end');
    // The last ones may have ended without a leader, or within a change of partitions.
    await this.#pass(healedMs, () => cluster.unsettled() === undefined);
    if (this.#failure !== undefined) return;
    const unsettled = cluster.unsettled();
    if (unsettled !== undefined) throw new Error(`not settled: ${unsettled}`);
    await this.check();
  }

  /** Lets time pass until a promise has its value. */
  protected async done<T>(promise: Promise<T>): Promise<T> {
    let isDone = false;
    const failed = (error: Error): void => void (this.#failure ??= error);
    void promise.then(() => (isDone = true), failed);
    await this.#pass(healedMs, () => isDone);
    if (this.#failure !== undefined) throw this.#failure;
    if (!isDone) throw new Error('no answer at the end');
    return await promise;
  }

  /** Lets so much time pass, or less if something is done or has failed. */
  async #pass(ms: number, isDone: () => boolean = () => false): Promise<void> {
    await this.timeline.runUntil(
      this.timeline.now + ms,
      () => this.#failure !== undefined || isDone(),
    );
  }
}
