// The restores of one plane. A restore is loaded and compared first; then, when the control plane says that
// the other plane has come as far, it takes effect at once.

import type { RestoredShard, RestoredTable } from './restore-report.ts';
import type { PlacedPart } from './chain.ts';
import type { TableMove } from './row-restore.ts';
import type { TenantMove } from './series-restore.ts';

export interface RestoreStart {
  readonly id: string;
  /** By pod of the backup: what is needed of the chain, oldest first. */
  readonly sources: readonly (readonly PlacedPart[])[];
  readonly tables: readonly TableMove[];
  readonly tenants: readonly TenantMove[];
  readonly replace: boolean;
}

export type RestoreOrder =
  | ({ readonly action: 'start' } & RestoreStart)
  | { readonly action: 'status'; readonly id: string }
  /** It takes effect, if it is loaded. */
  | { readonly action: 'commit'; readonly id: string }
  /** Ends it, whatever it has come to, and drops what is left of it. */
  | { readonly action: 'end'; readonly id: string };

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

/** What a plane can do: rows, or time series. */
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

export class PlaneRestores {
  readonly #make: (start: RestoreStart) => PlaneRestore;
  #running: Running | undefined;

  constructor(make: (start: RestoreStart) => PlaneRestore) {
    this.#make = make;
  }

  async order(order: RestoreOrder): Promise<RestoreStatus> {
    if (order.action === 'start') return this.#start(order);
    const running = this.#running;
    if (running?.id !== order.id) throw new Error(`there is no restore ${order.id} under way`);
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

  #start(order: RestoreStart): RestoreStatus {
    if (this.#running !== undefined) throw new Error(`restore ${this.#running.id} is under way`);
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
