// Histories of lists of Redis: clients append to lists and read them (clients.ts), while partitions are split and merged among other things.

import { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import { History, type HistoryResult } from '../histories/history.ts';
import { OwnedTimeline } from '../histories/owned-timeline.ts';
import { type ClientsWorld, ListClient } from './clients.ts';
import { RowsCluster } from './cluster.ts';
import { Lists } from './lists.ts';
import { GatewayNode, layTables, type RowsLife } from './node.ts';

interface GatewayResult extends HistoryResult {
  readonly acknowledged: number;
  readonly unknown: number;
  readonly reads: number;
  readonly changes: number;
}

class GatewayHistory extends History<RowsLife, GatewayNode, RowsCluster> {
  readonly #clients: ClientsWorld;

  constructor(seed: number) {
    super(
      seed,
      new OwnedTimeline(),
      (world, number) => new GatewayNode(world, number),
      (parts) => new RowsCluster(parts),
    );
    const payload = this.random.chance(0.3) ? 3000 : 0;
    const { timeline } = this;
    const isOver = (): boolean => this.isOver;
    this.#clients = { timeline, lists: new Lists(), payload, elements: 0, isOver };
  }

  protected override lay(): Promise<void> {
    return layTables(this.metadata);
  }

  protected override client(node: GatewayNode, random: Random): Promise<void> {
    return new ListClient(this.#clients, node, random).run();
  }

  protected override async check(): Promise<void> {
    const { cluster } = this;
    const rows = await cluster.rows();
    this.#clients.lists.check((key) => (rows.get(cluster.nameOf(key))?.items ?? []) as string[]);
  }

  async result(): Promise<GatewayResult> {
    const result = await this.run();
    return { ...result, ...this.#clients.lists.counts, changes: this.cluster.changes };
  }
}

/** The same seed, the same history. */
export function runGatewayHistory(seed: number): Promise<GatewayResult> {
  return new GatewayHistory(seed).result();
}
