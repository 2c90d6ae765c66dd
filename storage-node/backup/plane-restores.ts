// The restores of one plane. A restore is first loaded and compared. It takes effect at once when the control plane
// reports that the other plane is ready.

import type { RestoredShard, RestoredTable } from './restore-report.ts';
import type { PlacedPart } from './chain.ts';
import type { TableMove } from './row-places.ts';
import type { TenantMove } from './series-restore.ts';

export interface RestoreStart {
  readonly id: string;
  /** The node of the cluster that has the files, if it is another one. */
  readonly node?: number | undefined;
  /** By pod of the backup: the required parts of the chain, oldest first. */
  readonly sources: readonly (readonly PlacedPart[])[];
  readonly tables: readonly TableMove[];
  readonly tenants: readonly TenantMove[];
  readonly replace: boolean;
}

export type RestoreOrder =
  | ({ readonly action: 'start' } & RestoreStart)
  | { readonly action: 'status'; readonly id: string }
  /** Makes a loaded restore take effect. */
  | { readonly action: 'commit'; readonly id: string }
  /**
   * Ends the restore in any state, and drops its leftovers. `restored`: rows and points that now
   * differ from the log, for owners of a copy of that.
   */
  | { readonly action: 'end'; readonly id: string; readonly restored?: RestoreScope | undefined };

/** Where a restore goes: numbers of tables or partitions, and of tenants for their time series. */
export interface RestoreScope {
  readonly tables: readonly number[];
  readonly tenants: readonly number[];
}

/** The part of the scope that a plane leads. */
export interface LedScope extends RestoreScope {
  /** Tenants whose time series are in several groups, and which of these it leads, from 0 on. */
  readonly divided?: readonly {
    readonly tenant: number;
    readonly partitions: readonly number[];
    readonly of: number;
  }[];
}

export interface RestoreStatus {
  readonly state: 'loading' | 'loaded' | 'failed' | 'committed';
  readonly error?: string;
  readonly errorName?: string;
  readonly done: number;
  readonly total: number;
  readonly tables: readonly RestoredTable[];
  readonly shards: readonly RestoredShard[];
  readonly expiredShards: number;
}

/** A plane's part in restores: rows, or time series. */
export interface PlaneRestore {
  readonly done: number;
  readonly total: number;
  load(): Promise<{ tables: RestoredTable[]; shards: RestoredShard[]; expiredShards: number }>;
  commit(): Promise<void>;
  cancel(): void;
  release(): Promise<void>;
}

interface Running {
  readonly id: string;
  readonly restore: PlaneRestore;
  state: RestoreStatus['state'];
  error: Error | undefined;
  loaded: Awaited<ReturnType<PlaneRestore['load']>>;
  ended: Promise<void>;
}

const retryAfterMs = 5000;

const nothing = { tables: [], shards: [], expiredShards: 0 };
const nowhere: RestoreScope = { tables: [], tenants: [] };
const ended: RestoreStatus = { state: 'committed', done: 0, total: 0, ...nothing };

export class PlaneRestores {
  readonly #make: (start: RestoreStart) => PlaneRestore;
  readonly #replaced: (where: RestoreScope) => void;
  #running: Running | undefined;

  /** `replaced` is notified of restores that this plane perhaps took no part in. */
  constructor(
    make: (start: RestoreStart) => PlaneRestore,
    replaced: (where: RestoreScope) => void,
  ) {
    this.#make = make;
    this.#replaced = replaced;
  }

  async order(order: RestoreOrder): Promise<RestoreStatus> {
    if (order.action === 'start') return await this.#start(order);
    const running = this.#running;
    if (order.action === 'end') this.#replaced(order.restored ?? nowhere);
    if (running?.id !== order.id) {
      if (order.action === 'end') return ended;
      throw new Error(`there is no restore ${order.id} under way`);
    }
    if (order.action === 'commit') {
      if (running.state !== 'loaded') throw new Error(`the restore is ${running.state}`);
      await running.restore.commit();
      running.state = 'committed';
    } else if (order.action === 'end') {
      running.restore.cancel();
      await running.ended;
      this.#running = undefined;
      await this.#release(running.restore);
    }
    return statusOf(running);
  }

  /** A disk that is full takes no deletion either: it is tried again until it does. */
  async #release(restore: PlaneRestore): Promise<void> {
    try {
      await restore.release();
    } catch {
      setTimeout(() => {
        // The next restore begins with that itself.
        if (this.#running === undefined) void this.#release(restore);
      }, retryAfterMs).unref();
    }
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  async #start(order: RestoreStart): Promise<RestoreStatus> {
    const before = this.#running;
    if (before?.state === 'loading') throw new Error(`restore ${before.id} is under way`);
    // Ends an older restore whose coordinator, on another node, has not returned.
    if (before !== undefined) await this.#release(before.restore);
    const running: Running = {
      id: order.id,
      restore: this.#make(order),
      state: 'loading',
      error: undefined,
      loaded: nothing,
      ended: Promise.resolve(),
    };
    this.#running = running;
    running.ended = running.restore.load().then(
      (loaded) => {
        running.loaded = loaded;
        running.state = 'loaded';
      },
      (error: Error) => {
        running.error = error;
        running.state = 'failed';
      },
    );
    return statusOf(running);
  }
}

function statusOf({ restore, state, error, loaded }: Running): RestoreStatus {
  const { done, total } = restore;
  const why = error === undefined ? {} : { error: error.message, errorName: error.name };
  return { state, done, total, ...loaded, ...why };
}
