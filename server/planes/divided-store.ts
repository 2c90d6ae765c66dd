// A tenant's time series in several groups of a cluster, as one store. Writes and reads go from any node to the leaders of
// the groups. Changes of databases and policies go through the node that leads the first partition, one after the other:
// to the first partition, then to the others. The node that leads it makes the others equal before its first change, and
// after one that failed half way, by itself as soon as they can be reached.

import {
  type Partition,
  PartitionedStore,
  worst,
} from '../../access/influx/partitions/partitioned-store.ts';
import {
  type CatalogChange,
  type ChangeOrder,
  type Database,
  isMissing,
  NotLeaderError,
  OutcomeUnknownError,
  UnavailableError,
  type WriteOutcome,
} from '../../contracts/series-store.ts';
import { alignCatalogs, type AlignedPartition } from '../../storage-node/series-partitions.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { PointBatch } from '../../universal-row/series/point-batch.ts';

/** The store of one group, wherever it is led. */
export interface GroupPartition extends Partition, AlignedPartition {
  /** Resolves when `databases` has all changes made before the call. It does not go back behind them until the result is called. */
  refresh(): Promise<() => void>;
  /** Last entry of the group's log that answers by this store may have seen. */
  readonly seenIndex: number;
  close(): void;
}

interface Leading {
  readonly pod: Changed & AlignedPartition;
  readonly term: number;
}

type Changed = Pick<Partition, 'change' | 'administer'>;

interface Wanted {
  readonly how: keyof Changed;
  readonly change: CatalogChange;
}

/** Number of changes and alignments that this process has begun, in all stores together. */
let begun = 0;

interface DividedStoreOptions {
  /** By partition. */
  readonly partitions: readonly GroupPartition[];
  /** Where this node leads the first partition: its pod, and the term. */
  readonly leading: () => Leading | undefined;
  /** Whether all nodes know orders of changes. */
  readonly knowsOrders: () => boolean;
}

export class DividedStore extends PartitionedStore {
  readonly partitions: readonly GroupPartition[];
  readonly #leading: () => Leading | undefined;
  readonly #knowsOrders: () => boolean;
  /** The term in which the partitions were found equal, and have stayed so. */
  #evenIn: number | undefined;
  /** The term that the change under way began in. */
  #changesIn: number | undefined;
  /** Changes that have not ended. */
  #waiting = 0;
  /** Ends with the last change. */
  #changes: Promise<unknown> = Promise.resolve();

  constructor({ partitions, leading, knowsOrders }: DividedStoreOptions) {
    // Partitions are made equal here.
    super({ partitions, align: () => {} });
    this.partitions = partitions;
    this.#leading = leading;
    this.#knowsOrders = knowsOrders;
  }

  override change(change: CatalogChange): Promise<void> {
    return this.#serialized({ how: 'change', change });
  }

  override administer(change: CatalogChange): Promise<void> {
    return this.#serialized({ how: 'administer', change });
  }

  /** Whether this node leads the first partition, and does not know yet that the others are equal to it. */
  get isUneven(): boolean {
    const leading = this.#leading();
    return leading !== undefined && leading.term !== this.#evenIn;
  }

  /** A change is under way. */
  get isChanging(): boolean {
    return this.#waiting > 0;
  }

  /** Makes the partitions equal. Rejects with `UnavailableError` where one of them has no leader. */
  align(): Promise<void> {
    return this.#serialized(undefined);
  }

  #serialized(wanted: Wanted | undefined): Promise<void> {
    const run = (): Promise<void> => this.#changeEvenly(wanted).finally(() => this.#waiting--);
    this.#waiting++;
    const done = this.#changes.then(run, run);
    this.#changes = done;
    return done;
  }

  async #changeEvenly(wanted?: Wanted): Promise<void> {
    const leading = this.#leading();
    if (leading === undefined) throw new NotLeaderError(0);
    const { pod, term } = leading;
    const [, ...others] = this.partitions;
    this.#changesIn = term;
    const order = this.#knowsOrders() ? { term, number: ++begun } : undefined;
    if (term !== this.#evenIn) {
      await this.expectLeading();
      await alignCatalogs([pod, ...others.map((other) => ordered(other, order))]);
    }
    this.#evenIn = undefined;
    if (wanted !== undefined) {
      const { how, change } = wanted;
      await this.#changeFirst(wanted, pod, term);
      const made = await Promise.allSettled(
        others.map(async (other) => await other[how]({ ...change, order })),
      );
      const errors = made.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
      if (errors.length > 0) throw worst(errors);
    }
    this.#evenIn = term;
  }

  /** All partitions would refuse a change that the first one refuses. After a refusal nothing has changed. */
  async #changeFirst({ how, change }: Wanted, pod: Changed, term: number): Promise<void> {
    try {
      await pod[how](change);
    } catch (error) {
      if (!(error instanceof UnavailableError)) this.#evenIn = term;
      throw error;
    }
  }

  /**
   * Before each attempt to change a partition: resolves if this node has led the first one since the change began. One
   * that is sent before, and delivered late, is refused by its order after changes of the next leader.
   */
  async expectLeading(): Promise<void> {
    const release = await this.partitions[0]!.refresh();
    release();
    if (this.#changesIn === undefined || this.#leading()?.term !== this.#changesIn) {
      throw new OutcomeUnknownError();
    }
  }

  override write(
    database: string,
    retentionPolicy: string,
    batch: PointBatch,
  ): MaybePromise<WriteOutcome> {
    const written = super.write(database, retentionPolicy, batch);
    if (!(written instanceof Promise)) return written;
    return written.catch((error: unknown) => this.#explain(error, database, retentionPolicy));
  }

  /** While a database is being made, or after that has failed half way, partitions without it are waited for. */
  async #explain(error: unknown, database: string, policy: string): Promise<never> {
    if (isMissing(error)) {
      const policies = (await this.#latest(database))?.retentionPolicies;
      const isThere = policies?.some(({ name }) => policy === '' || name === policy) === true;
      if (isThere) throw new UnavailableError(`not all partitions have ${policy || 'it'} yet`);
    }
    throw error;
  }

  async #latest(database: string): Promise<Database | undefined> {
    const release = await this.partitions[0]!.refresh();
    try {
      return this.database(database);
    } finally {
      release();
    }
  }

  close(): void {
    for (const partition of this.partitions) partition.close();
  }
}

/** A partition whose changes have an order. */
function ordered(partition: AlignedPartition, order: ChangeOrder | undefined): AlignedPartition {
  return {
    keptDatabases: () => partition.keptDatabases(),
    administer: (change) => partition.administer({ ...change, order }),
    endTick: () => partition.endTick(),
  };
}
