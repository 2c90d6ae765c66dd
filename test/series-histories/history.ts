// Histories of time series in a cluster: clients write points, read, delete and change databases over HTTP (clients.ts).

import { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import { History, type HistoryResult } from '../histories/history.ts';
import { OwnedTimeline } from '../histories/owned-timeline.ts';
import { type ClientsWorld, PointClient } from './clients.ts';
import { SeriesCluster } from './cluster.ts';
import { SeriesNode, type SeriesLife, type SeriesShape } from './node.ts';
import { Points } from './points.ts';

interface SeriesResult extends HistoryResult {
  readonly partitions: number;
  readonly acknowledged: number;
  readonly unknown: number;
  readonly reads: number;
  readonly lateReads: number;
  readonly deletions: number;
}

const realTurn = globalThis.setImmediate;

/** Streams call their users several turns later. All these turns are of the process whose event it was. */
class StreamTimeline extends OwnedTimeline {
  protected override settled(): Promise<void> {
    return new Promise((resolve) => realTurn(resolve));
  }
}

class SeriesHistory extends History<SeriesLife, SeriesNode, SeriesCluster> {
  readonly #clients: ClientsWorld;
  readonly #shape: SeriesShape;
  #isPrepared = false;

  constructor(seed: number) {
    const random = new Random(seed ^ 0x5e71e5);
    const shape: SeriesShape = {
      partitions: random.pick([1, 2, 3]),
      headBytes: random.pick([4 * 1024, 64 * 1024, 2 ** 20]),
      checkpointBytes: random.pick([4 * 1024, 64 * 1024, 2 ** 20]),
    };
    super(
      seed,
      new StreamTimeline(),
      (world, number) => new SeriesNode(world, number, shape),
      (parts) => new SeriesCluster(parts),
    );
    this.#shape = shape;
    const { timeline } = this;
    const payload = random.chance(0.3) ? 2000 : 0;
    const isOver = (): boolean => this.isOver;
    const hasBadDisks = (): boolean => this.badDisks > 0;
    this.#clients = { timeline, points: new Points(), payload, made: 0, isOver, hasBadDisks };
  }

  protected override async client(node: SeriesNode, random: Random): Promise<void> {
    const nodes = [node, ...this.cluster.nodes.filter((one) => one !== node)];
    const client = new PointClient(this.#clients, nodes, random);
    await client.prepare();
    this.#isPrepared = true;
    await client.run();
  }

  protected override get isReady(): boolean {
    return this.#isPrepared;
  }

  protected override async check(): Promise<void> {
    const { cluster } = this;
    await cluster.checkReplicas();
    const nodes = cluster.nodes.filter(({ life }) => life !== undefined);
    const reader = new PointClient(this.#clients, nodes, this.random);
    await this.done(reader.readAll());
    this.#clients.points.check();
  }

  async result(): Promise<SeriesResult> {
    const result = await this.run();
    return { ...result, partitions: this.#shape.partitions, ...this.#clients.points.counts };
  }
}

/** The same seed, the same history. */
export function runSeriesHistory(seed: number): Promise<SeriesResult> {
  return new SeriesHistory(seed).result();
}
