// The nodes of a history and their metadata, as the history sees them: what is recorded, who leads, what has yet to come to rest, and the rows
// at the end.

import type { GroupDefinition } from '../../contracts/cluster.ts';
import type { Partition } from '../../contracts/partition-map.ts';
import { partitionMapOf, type TableDefinition } from '../../control/metadata/table-definition.ts';
import type { StoredTable } from '../../control/metadata/table-documents.ts';
import {
  assertSameContents,
  decodeSnapshot,
  type EngineContents,
} from '../../engines/conformance/contents.ts';
import { hashSlot } from '../../universal-row/crc16.ts';
import type { MetadataService } from './metadata.ts';
import { copies, type GatewayNode } from './node.ts';

interface ClusterParts {
  readonly nodes: readonly GatewayNode[];
  readonly metadata: MetadataService;
  /** Lets time pass until it is done, or for long enough; false when the history has failed. */
  readonly pass: (isDone: () => boolean) => Promise<boolean>;
  readonly breach: (error: Error) => void;
}

type Row = EngineContents extends ReadonlyMap<string, infer R> ? R : never;

const mostTries = 50;

export class SimulatedCluster {
  readonly nodes: readonly GatewayNode[];
  readonly #parts: ClusterParts;

  constructor(parts: ClusterParts) {
    this.#parts = parts;
    this.nodes = parts.nodes;
  }

  node(number: number): GatewayNode {
    return this.nodes[number - 1]!;
  }

  // ---- what is recorded

  /** Table 0, which has the lists and is divided. */
  #tableZero(): TableDefinition | undefined {
    const documents = this.#parts.metadata.store.copyOf('tables');
    const tables = documents.map(({ body }) => (body as unknown as StoredTable).definition);
    return tables.find(({ id }) => id === 0);
  }

  partitions(): readonly Partition[] {
    return partitionMapOf(this.#tableZero()!).partitions;
  }

  groups(): GroupDefinition[] {
    const documents = this.#parts.metadata.store.copyOf('groups');
    return documents.map(({ body }) => body as unknown as GroupDefinition);
  }

  /** Groups of undivided tables, and of partitions that table 0 has. */
  #served(): GroupDefinition[] {
    const numbers = new Set(this.partitions().map(({ number }) => number));
    return this.groups().filter(
      ({ partition }) => partition === undefined || numbers.has(partition),
    );
  }

  /** Splits and merges, and replicas that have moved. */
  get counts(): { changes: number; moves: number } {
    // Each has a change of the members for the new replica, for the one that leaves, and for its end.
    const moves = this.groups().map(({ epoch }) => Math.floor(epoch / 3));
    return {
      changes: (this.#tableZero()?.placement?.epoch ?? 1) - 1,
      moves: moves.reduce((sum, count) => sum + count, 0),
    };
  }

  /** The node that leads a group, of those that serve. */
  leaderOf(group: number): GatewayNode | undefined {
    return this.nodes.find((node) => node.status(group)?.role === 'leader');
  }

  // ---- at the end

  /** What has yet to come to rest, if anything. */
  unsettled(): string | undefined {
    const change = this.#tableZero()?.placement?.change;
    if (change !== undefined) return `partitions change: ${JSON.stringify(change)}`;
    const [move] = this.#parts.metadata.store.copyOf('groupMoves');
    if (move !== undefined) return `a replica moves: ${JSON.stringify(move.body)}`;
    for (const { group, replicas } of this.#served()) {
      const found = replicas.map(({ node }) => this.node(node).status(group));
      const [first] = found;
      const isLevel = found.every((one) => one !== undefined && one.applied === first?.applied);
      const isLed = found.filter((one) => one?.role === 'leader').length === 1;
      const wanted = replicas.map(({ replica }) => replica).sort((a, b) => a - b);
      const has = [...(first?.voters ?? [])].sort((a, b) => a - b);
      const isWhole = replicas.length === copies && JSON.stringify(has) === JSON.stringify(wanted);
      if (!isLevel || !isLed || !isWhole) return `group ${group}: ${JSON.stringify(found)}`;
    }
    return undefined;
  }

  /** The rows of all tables, by `TABLE/KEY`. Throws where replicas differ, or a row is in a wrong partition. */
  async rows(): Promise<ReadonlyMap<string, Row>> {
    const rows = new Map<string, Row>();
    for (const definition of this.#served()) {
      const [first, ...others] = await this.#contents(definition);
      for (const one of others) {
        assertSameContents(one, first!, `rows of a replica of group ${definition.group}`);
      }
      for (const [name, row] of first!) rows.set(name, row);
    }
    this.#checkPlaces(rows.keys());
    return rows;
  }

  /** All rows of a group on each of its nodes, as of the same entry: leaders drop what expires meanwhile. */
  async #contents({ group, replicas }: GroupDefinition): Promise<EngineContents[]> {
    const { pass, breach } = this.#parts;
    for (let tries = 0; tries < mostTries; tries++) {
      const found: { index: number; rows: EngineContents }[] = [];
      for (const { node } of replicas) {
        this.node(node).do(async ({ rows }) => {
          try {
            const { index, batches } = await rows.podOfGroup(group)!.committedRows(() => true);
            found.push({ index, rows: await decodeSnapshot(batches) });
          } catch (error) {
            breach(error as Error);
          }
        });
      }
      const isGoing = await pass(() => found.length === replicas.length);
      if (!isGoing) break;
      if (found.length < replicas.length) throw new Error('the rows of a node cannot be read');
      if (found.every(({ index }) => index === found[0]!.index)) {
        return found.map(({ rows }) => rows);
      }
    }
    throw new Error('the replicas are not at one entry');
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
