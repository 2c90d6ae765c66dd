// Partitions of tables, and their changes. A change is first recorded. The data plane then copies the rows of the old
// partitions to the new ones while clients continue. At the end commands for these partitions wait while the new map
// is recorded. A server that is killed during a change begins the copy again at its next start.

import {
  evenRanges,
  mostPartitions,
  type Partition,
  type PartitionMap,
  replaced,
} from '../../contracts/partition-map.ts';
import { TableError } from './table-rules.ts';
import type { TableCatalog } from './table-catalog.ts';
import {
  inCluster,
  type PartitionChange,
  partitionMapOf,
  type TableDefinition,
  type TableModel,
  tableModels,
} from './table-definition.ts';

export type PartitionChangeStatus =
  /** Rows copied, of those there were at the beginning. */
  | { readonly state: 'running'; readonly done: number; readonly total: number }
  | { readonly state: 'done' }
  /** `attempt`: in a cluster, the last one of the change that this node has made. */
  | { readonly state: 'failed'; readonly error: string; readonly attempt?: number | undefined };

/** The data plane. */
export interface PartitionHolder {
  /** In a cluster: whether changes are carried out by this node. */
  runs?(): boolean;
  /** In a cluster: calls the listener when that may be another one. */
  onRuns?(listener: () => void): void;
  /** In a cluster: why no change can be begun now. */
  refusal?(): string | undefined;
  /** Begins the change given in the table's placement. A change in progress continues. */
  begin(table: TableDefinition): Promise<void>;
  status(table: number): Promise<PartitionChangeStatus>;
  cancel(table: number): Promise<void>;
  /** Rows of each partition. */
  sizes(table: number): Promise<{ number: number; rows: number }[]>;
}

interface PartitionDescription extends Partition {
  /** Missing when no data plane can say. */
  readonly rows?: number | undefined;
}

export interface TablePartitions {
  readonly table: number;
  readonly epoch: number;
  readonly partitions: readonly PartitionDescription[];
  readonly change?: (PartitionChange & { readonly status: PartitionChangeStatus }) | undefined;
  /** Why the last change failed, if it did. */
  readonly failure?: string | undefined;
}

/** A change that an operator asks for. */
export type PartitionOrder =
  /** At a slot, which is the first of the upper part; by default in the middle. */
  | { readonly kind: 'split'; readonly partition: number; readonly at?: number }
  /** Neighbours. */
  | { readonly kind: 'merge'; readonly partitions: readonly number[] }
  /** To the pod of a model. */
  | { readonly kind: 'move'; readonly partition: number; readonly model: TableModel }
  /** All partitions to the pod of a model. */
  | { readonly kind: 'convert'; readonly model: TableModel };

const watchEveryMs = 50;
/** Between two looks at all definitions, beside those that follow a change of them. */
const lookMs = 1000;

export class PartitionCatalog {
  readonly #tables: TableCatalog;
  readonly #report: (message: string) => void;
  readonly #failures = new Map<number, string>();
  readonly #watched = new Map<number, Promise<void>>();
  #holder: PartitionHolder | undefined;
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(tables: TableCatalog, report: (message: string) => void) {
    this.#tables = tables;
    this.#report = report;
  }

  /** Changes that were under way begin again. */
  attach(holder: PartitionHolder): void {
    this.#holder = holder;
    this.#resume();
    if (holder.runs === undefined) return;
    this.#tables.onChange(() => this.#resumeSoon());
    holder.onRuns?.(() => this.#resumeSoon());
    this.#timer = setInterval(() => this.#resume(), lookMs);
    this.#timer.unref();
  }

  #resumeSoon(): void {
    if (this.#closed || this.#holder?.runs === undefined) return;
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      this.#resume();
    }, watchEveryMs).unref();
  }

  #resume(): void {
    if (this.#holder?.runs?.() === false) return;
    for (const definition of this.#tables.definitions()) {
      const { id, placement } = definition;
      if (placement?.change !== undefined && !this.#watched.has(id)) this.#start(definition);
    }
  }

  async list(reference: string, within?: string): Promise<TablePartitions> {
    const definition = this.#tables.find(reference, within);
    const { id, placement } = definition;
    const { epoch, partitions } = partitionMapOf(definition);
    const sizes = new Map(
      (await this.#holder?.sizes(id))?.map(({ number, rows }) => [number, rows]),
    );
    const change = placement?.change;
    const status = change && (await this.#holder?.status(id));
    const failure = this.#failures.get(id) ?? placement?.failure;
    return {
      table: id,
      epoch,
      partitions: partitions.map((one) => ({ ...one, rows: sizes.get(one.number) })),
      ...(change === undefined
        ? {}
        : { change: { ...change, status: status ?? { state: 'running', done: 0, total: 0 } } }),
      ...(failure === undefined ? {} : { failure }),
    };
  }

  /** Records the change and begins it. Throws a `TableError` for an impossible change. */
  async order(reference: string, order: PartitionOrder, within?: string): Promise<TablePartitions> {
    const holder = this.#holder;
    const { id } = this.#tables.find(reference, within);
    if (holder === undefined) throw new TableError('conflict', 'the data planes are not up yet');
    const refusal = holder.refusal?.();
    if (refusal !== undefined) throw new TableError('conflict', refusal);
    const definition = await this.#tables.place(id, async (found) => {
      if (found.placement?.change !== undefined) {
        throw new TableError(
          'conflict',
          `partitions of table ${found.name} are being changed already`,
        );
      }
      const map = partitionMapOf(found);
      const { sources, targets } = planOf(map, order);
      const numbers = await this.#tables.partitionNumbers(targets.length);
      const change = {
        sources: sources.map(({ number }) => number),
        targets: targets.map((target, i) => ({ ...target, number: numbers[i]! })),
      };
      return { ...map, change: holder.runs === undefined ? change : inCluster(change) };
    });
    this.#failures.delete(id);
    // In a cluster, the node that leads the metadata finds the change in the placement.
    if (holder.runs?.() !== false) this.#start(definition);
    return await this.list(reference, within);
  }

  /**
   * Makes the targets the partitions of the table. The sources take no commands any more, and the targets have all
   * rows. Repeating the call changes nothing. Undefined if the change was withdrawn. After a rejection it is unknown
   * whether the change was made: the caller repeats the call.
   */
  async commit(table: number, targets: readonly number[]): Promise<TableDefinition | undefined> {
    const isMade = ({ partitions }: PartitionMap): boolean =>
      targets.every((target) => partitions.some(({ number }) => number === target));
    let isWithdrawn = false;
    const definition = await this.#tables.place(table, (found) => {
      const { change } = found.placement ?? {};
      const map = partitionMapOf(found);
      isWithdrawn = change === undefined && !isMade(map);
      return change === undefined ? map : replaced(map, change.sources, change.targets);
    });
    return isWithdrawn ? undefined : definition;
  }

  /** Resolves when no change of the table is under way. */
  async settled(table: number): Promise<void> {
    await this.#watched.get(table);
  }

  #start(definition: TableDefinition): void {
    const { id } = definition;
    this.#failures.delete(id);
    const done = this.#carryOut(definition)
      .catch((error: unknown) => {
        const message = error instanceof Error ? error.message : String(error);
        this.#failures.set(id, message);
        this.#report(`a change of partitions of table ${id} failed: ${message}`);
      })
      .finally(() => {
        this.#watched.delete(id);
        this.#resumeSoon();
      });
    this.#watched.set(id, done);
  }

  async #carryOut(definition: TableDefinition): Promise<void> {
    const holder = this.#holder!;
    const { id } = definition;
    await holder.begin(definition);
    for (;;) {
      const status = await holder.status(id);
      if (this.#closed || status.state === 'done' || holder.runs?.() === false) return;
      if (status.state === 'failed') {
        if (await this.#withdraw(id, status)) throw new Error(status.error);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, watchEveryMs).unref());
    }
  }

  /** Nothing has changed. False where another node has the change now. */
  async #withdraw(
    id: number,
    { error, attempt }: PartitionChangeStatus & { state: 'failed' },
  ): Promise<boolean> {
    let isOver = false;
    // Other nodes of a cluster are asked what became of it, too.
    const told = this.#holder?.runs === undefined ? {} : { failure: error };
    await this.#tables.place(id, (found) => {
      const map = partitionMapOf(found);
      const change = found.placement?.change;
      // The next leader of the metadata has begun another attempt, which may succeed.
      isOver = attempt !== undefined && change?.attempt !== attempt;
      return isOver ? (found.placement ?? map) : { ...map, ...told };
    });
    return !isOver;
  }

  async cancel(reference: string, within?: string): Promise<TablePartitions> {
    const { id } = this.#tables.find(reference, within);
    await this.#holder?.cancel(id);
    await this.settled(id);
    return await this.list(reference, within);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#soon);
    await Promise.all(this.#watched.values());
  }
}

/** Which partitions give way to which; the numbers of these are given later. */
function planOf(
  map: PartitionMap,
  order: PartitionOrder,
): { sources: readonly Partition[]; targets: readonly Partition[] } {
  switch (order.kind) {
    case 'split':
      return splitOf(map, find(map, order.partition), order.at);
    case 'merge':
      return mergeOf(map, order.partitions);
    case 'move':
      return moveOf([find(map, order.partition)], order.model);
    case 'convert':
      return moveOf(
        map.partitions.filter(({ model }) => model !== order.model),
        order.model,
      );
  }
}

function find({ partitions }: PartitionMap, number: number): Partition {
  const found = partitions.find((one) => one.number === number);
  if (found !== undefined) return found;
  throw new TableError('missing', `the table has no partition ${number}`);
}

function splitOf(map: PartitionMap, source: Partition, at: number | undefined) {
  const { first, last } = source;
  if (map.partitions.length >= mostPartitions) {
    throw invalid(`a table has at most ${mostPartitions} partitions`);
  }
  if (first === last) throw invalid(`partition ${source.number} has one slot`);
  const [lower] = evenRanges(2, first, last);
  const upper = at ?? lower![1] + 1;
  if (!Number.isInteger(upper) || upper <= first || upper > last) {
    throw invalid(`partition ${source.number} can be split at slots ${first + 1} to ${last}`);
  }
  const targets = [
    { ...source, last: upper - 1 },
    { ...source, first: upper },
  ];
  return { sources: [source], targets };
}

function mergeOf(map: PartitionMap, numbers: readonly number[]) {
  const sources = map.partitions.filter(({ number }) => numbers.includes(number));
  for (const number of numbers) find(map, number);
  const [first] = sources;
  const last = sources.at(-1);
  if (first === undefined || sources.length < 2) throw invalid('a merge needs two partitions');
  const adjoin = sources.every((one, i) => i === 0 || one.first === sources[i - 1]!.last + 1);
  if (!adjoin) throw invalid('only partitions whose slots adjoin can be merged');
  if (sources.some(({ model }) => model !== first.model)) {
    throw invalid('partitions of different models cannot be merged: move one first');
  }
  return { sources, targets: [{ ...first, last: last!.last }] };
}

function moveOf(sources: readonly Partition[], model: TableModel) {
  if (!tableModels.includes(model)) {
    throw invalid(`model cannot be ${model}: it must be one of ${tableModels.join(', ')}`);
  }
  if (sources.every((source) => source.model === model)) {
    throw new TableError('conflict', `there is nothing to move: it is of model ${model} already`);
  }
  return { sources, targets: sources.map((source) => ({ ...source, model })) };
}

function invalid(message: string): TableError {
  return new TableError('invalid', message);
}
