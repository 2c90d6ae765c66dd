// The cluster of a history of rows: the partitions of table 0, and the rows at the end.

import type { GroupDefinition } from '../../contracts/cluster.ts';
import type { Partition } from '../../contracts/partition-map.ts';
import type { PartitionOrder } from '../../control/metadata/partition-catalog.ts';
import { partitionMapOf, type TableDefinition } from '../../control/metadata/table-definition.ts';
import type { StoredTable } from '../../control/metadata/table-documents.ts';
import {
  assertSameContents,
  decodeSnapshot,
  type EngineContents,
} from '../../engines/conformance/contents.ts';
import type { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import { hashSlot } from '../../universal-row/crc16.ts';
import { SimulatedCluster } from '../histories/cluster.ts';
import type { GatewayNode, RowsLife } from './node.ts';

type Row = EngineContents extends ReadonlyMap<string, infer R> ? R : never;

export class RowsCluster extends SimulatedCluster<RowsLife, GatewayNode> {
  // ---- what is recorded

  /** Table 0, which has the lists and is divided. */
  #tableZero(): TableDefinition | undefined {
    const documents = this.parts.metadata.store.copyOf('tables');
    const tables = documents.map(({ body }) => (body as unknown as StoredTable).definition);
    return tables.find(({ id }) => id === 0);
  }

  partitions(): readonly Partition[] {
    return partitionMapOf(this.#tableZero()!).partitions;
  }

  /** Groups of undivided tables, and of partitions that table 0 has. */
  #served(): GroupDefinition[] {
    const numbers = new Set(this.partitions().map(({ number }) => number));
    return this.groups().filter(
      ({ partition }) => partition === undefined || numbers.has(partition),
    );
  }

  /** Splits and merges. */
  get changes(): number {
    return (this.#tableZero()?.placement?.epoch ?? 1) - 1;
  }

  // ---- orders of operators

  /** Splits at a random slot while there are few partitions, merges neighbours while there are many. */
  reshape(random: Random): void {
    random.pick(this.nodes).reshape(this.#someChange(random));
  }

  #someChange(random: Random): PartitionOrder {
    const all = this.partitions();
    if (all.length > 1 && random.chance(all.length / 5)) {
      const at = random.below(all.length - 1);
      return { kind: 'merge', partitions: all.slice(at, at + 2).map(({ number }) => number) };
    }
    const { number, first, last } = random.pick(all);
    const at = first + 1 + random.below(Math.max(1, last - first));
    return { kind: 'split', partition: number, at };
  }

  cancel(random: Random): void {
    random.pick(this.nodes).cancel();
  }

  // ---- at the end

  /** What has yet to come to rest, if anything. */
  unsettled(): string | undefined {
    const change = this.#tableZero()?.placement?.change;
    if (change !== undefined) return `partitions change: ${JSON.stringify(change)}`;
    return this.unsettledOf(this.#served());
  }

  /** The rows of all tables, by `TABLE/KEY`. Throws where replicas differ, or a row is in a wrong partition. */
  async rows(): Promise<ReadonlyMap<string, Row>> {
    const rows = new Map<string, Row>();
    for (const definition of this.#served()) {
      const [first, ...others] = await this.statesOf(definition, rowsOf);
      for (const one of others) {
        assertSameContents(one, first!, `rows of a replica of group ${definition.group}`);
      }
      for (const [name, row] of first!) rows.set(name, row);
    }
    this.#checkPlaces(rows.keys());
    return rows;
  }

  /** Name among the rows of a row of table 0. */
  nameOf(key: string): string {
    const slot = hashSlot(Buffer.from(key), 0, key.length);
    const partition = this.partitions().find(({ first, last }) => slot >= first && slot <= last)!;
    return `${partition.number}/${key}`;
  }

  /** Each row of table 0 is in the partition of its slot, and in no other. */
  #checkPlaces(names: Iterable<string>): void {
    const numbers = new Set(this.partitions().map(({ number }) => String(number)));
    for (const name of names) {
      const [number, key] = [name.slice(0, name.indexOf('/')), name.slice(name.indexOf('/') + 1)];
      // Rows of clients, and of no other table.
      if (number === '1' || number === '2' || !/^(list|k|n)\d/.test(key)) continue;
      if (!numbers.has(number)) throw new Error(`${name} was left behind`);
      if (this.nameOf(key) !== name) throw new Error(`${name} is not in its partition`);
    }
  }
}

/** All rows of a group, leaders dropping those that expire. */
async function rowsOf(
  { rows }: RowsLife,
  group: number,
): Promise<{ index: number; state: EngineContents }> {
  const { index, batches } = await rows.podOfGroup(group)!.committedRows(() => true);
  return { index, state: await decodeSnapshot(batches) };
}
