// Tables of several partitions on the Redis plane: routing of their commands, and changes of their
// partitions (a split, a merge, a move, another model), each of which is a copy that replaces its
// sources.

import type { Route } from '../../access/gateway/router.ts';
import type { CommandEntry } from '../../access/redis/commands/registry.ts';
import { PartitionedTable } from '../../access/redis/partitions/partitioned-table.ts';
import { isPartition } from '../../contracts/partition-map.ts';
import type {
  PartitionChange,
  TableDefinition,
  TableModel,
} from '../../control/metadata/table-definition.ts';
import type { PartitionChangeStatus } from '../../control/metadata/partition-catalog.ts';
import { clearTable } from '../../storage-node/apply-slice.ts';
import { PartitionCopy, PodSink } from '../../storage-node/partition-copy.ts';
import type { Pod } from '../../storage-node/pod.ts';
import type { RedisTables } from './redis-tables.ts';

interface RedisPartitionsOptions {
  readonly tables: RedisTables;
  readonly pods: ReadonlyMap<TableModel, Pod>;
  /** All commands, by full name. */
  readonly entries: ReadonlyMap<string, CommandEntry>;
  /** Opens the pod of a model, where there is none yet. */
  readonly open: (model: TableModel) => Promise<void>;
  /**
   * Makes the change of the map durable: from then on the targets are the table's partitions.
   * Undefined when the change was withdrawn; when it rejects, the outcome is unknown.
   */
  readonly commit: (table: number, targets: number[]) => Promise<TableDefinition | undefined>;
  /** The definition has changed. */
  readonly changed: (definition: TableDefinition) => void;
  /** A backup is being made: it has the rows as they are divided now. */
  readonly backupRuns: () => boolean;
  readonly report: (level: 'info' | 'error', message: string, fields?: object) => void;
}

const backupPollMs = 100;
const commitRetryMs = 500;

interface RunningChange {
  readonly copy: PartitionCopy;
  readonly done: Promise<void>;
}

export class RedisPartitions {
  readonly #options: RedisPartitionsOptions;
  readonly #tables = new Map<number, PartitionedTable>();
  readonly #running = new Map<number, RunningChange>();
  /** Why the last change of a table failed. */
  readonly #failures = new Map<number, string>();

  constructor(options: RedisPartitionsOptions) {
    this.#options = options;
  }

  /** The way to a table that is divided, or is being copied; undefined for any other. */
  routeOf(table: number, usual: Route): Route | undefined {
    const { tables } = this.#options;
    const known = this.#tables.get(table);
    if (!tables.isDivided(table) && !this.#running.has(table)) {
      this.#tables.delete(table);
      return undefined;
    }
    const { entries } = this.#options;
    const divided = known ?? new PartitionedTable({ table, entries });
    this.#tables.set(table, divided);
    const map = tables.mapOf(table);
    divided.setMap(map, ({ model }) => this.#podOf(model));
    const models = new Set(map.partitions.map(({ model }) => model));
    const pods = [...models].map((model) => this.#podOf(model));
    return { ...usual, executor: divided, pods, mayWait: models.has('kv') || usual.mayWait };
  }

  #podOf(model: string): Pod {
    const pod = this.#options.pods.get(model as TableModel);
    if (pod === undefined) throw new RangeError(`no pod of model ${model}`);
    return pod;
  }

  #sinkOf(model: string): PodSink {
    return new PodSink(this.#podOf(model));
  }

  /** Rows under the number of a table or partition, wherever they are. */
  #rowsUnder(number: number): number {
    let rows = 0;
    for (const pod of this.#options.pods.values()) rows += pod.tableSize(number).rows;
    return rows;
  }

  /** Why the tables cannot be divided as their definitions say, if so: only empty ones may be. */
  refusal(definitions: readonly TableDefinition[]): string | undefined {
    for (const { id, placement } of definitions) {
      if (placement?.epoch !== 1 || this.#options.tables.isDivided(id)) continue;
      if (placement.partitions[0]!.number === id) continue;
      const rows = this.#rowsUnder(id);
      if (rows > 0) return `table ${id} cannot be divided so: it holds ${rows} rows`;
    }
    return undefined;
  }

  // ---- changes

  /** Begins the change that the placement tells of; one that runs already continues. */
  async begin(definition: TableDefinition): Promise<void> {
    const { id: table, placement } = definition;
    const change = placement!.change!;
    if (this.#running.has(table)) return;
    this.#failures.delete(table);
    for (const { model } of change.targets) await this.#options.open(model as TableModel);
    const sinks = new Map(change.targets.map(({ model }) => [model, this.#sinkOf(model)]));
    const targets = change.targets.map(({ number, first, last, model }) => ({
      sink: sinks.get(model)!,
      table: number,
      first,
      last,
    }));
    // Leftovers of an earlier attempt.
    await this.#drop(change.targets.map(({ number }) => number));
    const sources = change.sources.map((number) => ({
      pod: this.#podOf(this.#options.tables.modelOf(number)),
      table: number,
    }));
    const copy = new PartitionCopy({ sources, targets, isMerge: sources.length > 1 });
    const done = this.#run(table, change, copy).finally(() => {
      copy.release();
      this.#running.delete(table);
    });
    this.#running.set(table, { copy, done });
    this.#options.changed(definition);
    done.catch((error: unknown) => {
      const message = error instanceof Error ? error.message : String(error);
      this.#failures.set(table, message || 'cancelled');
      this.#options.report('error', 'a change of partitions failed', { table, err: error });
    });
  }

  status(table: number): PartitionChangeStatus {
    const running = this.#running.get(table);
    if (running !== undefined) {
      const { done, total } = running.copy;
      return { state: 'running', done, total };
    }
    const error = this.#failures.get(table);
    return error === undefined ? { state: 'done' } : { state: 'failed', error };
  }

  async cancel(table: number): Promise<void> {
    const running = this.#running.get(table);
    if (running === undefined) return;
    running.copy.cancel();
    await running.done.catch(() => {});
  }

  async #run(table: number, change: PartitionChange, copy: PartitionCopy): Promise<void> {
    // The table gets its way through here first.
    await new Promise(setImmediate);
    const divided = this.#tables.get(table)!;
    const sources = divided.lanes.filter(({ partition }) =>
      change.sources.includes(partition.number),
    );
    const begunAt = performance.now();
    let pausedAt = begunAt;
    let copiedAt = begunAt;
    let isMade = false;
    try {
      await copy.copy();
      while (this.#options.backupRuns()) {
        await new Promise((resolve) => setTimeout(resolve, backupPollMs));
        await copy.followUp();
      }
      pausedAt = performance.now();
      await Promise.all(sources.map((lane) => lane.pause()));
      await copy.finish();
      copiedAt = performance.now();
      const definition = await this.#commit(table, change);
      if (definition === undefined) throw new Error('the change was withdrawn');
      isMade = true;
      this.#options.changed(definition);
      this.#moveObservers(divided, change);
    } catch (error) {
      if (!isMade) await this.#drop(change.targets.map(({ number }) => number));
      throw error;
    } finally {
      for (const lane of sources) lane.resume();
    }
    const ms = (from: number): number => Math.round(performance.now() - from);
    this.#options.report('info', 'partitions have changed', {
      table,
      rows: copy.total,
      ms: ms(begunAt),
      pausedMs: ms(pausedAt),
      recordedMs: ms(copiedAt),
    });
    // Incremental backups know the rows under their old numbers.
    for (const pod of this.#options.pods.values()) pod.parts.pins?.clear();
    await this.#drop(change.sources);
  }

  /**
   * Commands wait while it is unknown whether the map has changed. If it has, the old partitions must not be written
   * to, and the new ones must not be dropped.
   */
  async #commit(table: number, { targets }: PartitionChange): Promise<TableDefinition | undefined> {
    const numbers = targets.map(({ number }) => number);
    for (;;) {
      try {
        return await this.#options.commit(table, numbers);
      } catch (error) {
        this.#options.report(
          'error',
          'a change of partitions cannot be recorded, and is tried again',
          {
            table,
            err: error,
          },
        );
        await new Promise((resolve) => setTimeout(resolve, commitRetryMs));
      }
    }
  }

  #moveObservers(divided: PartitionedTable, { sources }: PartitionChange): void {
    for (const pod of this.#options.pods.values()) {
      for (const number of sources) {
        for (const { key, observers } of pod.takeObservers(number)) {
          for (const observer of observers) divided.observe(0, key, observer);
        }
      }
    }
  }

  /** Partitions of which nothing is to be kept. */
  async #drop(numbers: readonly number[]): Promise<void> {
    for (const pod of this.#options.pods.values()) {
      for (const number of numbers) {
        const { engine } = pod.parts;
        if (!engine.holds(number)) continue;
        await clearTable(pod, number);
        engine.forget?.(number);
      }
    }
  }

  /** Drops leftovers of unfinished changes. */
  async dropOrphans(): Promise<void> {
    const { pods, tables } = this.#options;
    for (const pod of pods.values()) {
      const orphans = pod
        .heldTables()
        .filter((number) => isPartition(number) && tables.tableOf(number) === number);
      await this.#drop(orphans);
    }
    // A table whose rows have moved to partitions has none under its own number.
    for (const { id, placement } of tables.definitions) {
      if (placement === undefined || !tables.isDivided(id)) continue;
      if (placement.epoch > 1) await this.#drop([id]);
      else if (this.#rowsUnder(id) > 0) {
        this.#options.report('error', 'a table of several partitions has rows in none of them', {
          table: id,
        });
      }
    }
  }

  /** All rows of a tenant's divided tables. */
  async dropAll(span: { first: number; count: number }): Promise<void> {
    for (const { id, placement } of this.#options.tables.definitions) {
      if (id < span.first || id >= span.first + span.count || placement === undefined) continue;
      await this.cancel(id);
      await this.#drop(placement.partitions.map(({ number }) => number));
    }
  }
}
