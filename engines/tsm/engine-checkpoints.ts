// Checkpoints of the engine: all shards are made durable as of one moment, then a manifest says up to which entry
// everything is on disk. Only a manifest without a dropped shard lets its files go.

import { everyTick, type MaintenanceSlices } from '../../contracts/maintenance-slices.ts';
import type { Clock, Disk } from '../../universal-row/environment.ts';
import { type EngineState, writeEngineManifest } from './engine-manifest.ts';
import type { LiveShard } from './live-shard.ts';
import type { Maintenance } from './maintenance.ts';
import type { Shard } from './shard/shard.ts';
import { removeShardFilesAsync } from './shard/shard-files.ts';
import type { ShardHead } from './shard/shard-types.ts';

interface CheckpointHost {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly directory: string;
  readonly maintenance: Maintenance;
  readonly shards: ReadonlyMap<number, LiveShard>;
  readonly isOpen: () => boolean;
  readonly slices: () => MaintenanceSlices | undefined;
  /** The state of the engine as of now. */
  readonly state: () => EngineState;
}

/** How long a shard that waits for the disk does so before other work on it is helped along. */
const patienceMs = 20;
const removeEveryMs = 5000;

export class EngineCheckpoints {
  readonly #host: CheckpointHost;
  /** Directories of shards that are gone, to be removed when no manifest lists them. */
  #gone: string[] = [];
  #last: Promise<unknown> = Promise.resolve();
  #isRunning = false;
  #removeAgainAt = -Infinity;

  constructor(host: CheckpointHost) {
    this.#host = host;
  }

  /** A shard was dropped: its directory is removed after the next checkpoint. */
  dropped(directory: string): void {
    this.#gone.push(directory);
  }

  /** Resolves when no checkpoint is being made. */
  async idle(): Promise<void> {
    await this.#last.catch(() => {});
  }

  /** Makes a checkpoint now and then while files of dropped shards are there. */
  removeDropped(): void {
    const now = this.#host.clock.monotonic();
    if (this.#gone.length === 0 || this.#isRunning || now < this.#removeAgainAt) return;
    this.#removeAgainAt = now + removeEveryMs;
    this.make().catch(() => {
      // The next checkpoint that the log asks for reports it.
    });
  }

  /** Makes one checkpoint at a time. Resolves to the index of the last log entry in the checkpoint. */
  make(): Promise<number> {
    const mine = this.#last
      .catch(() => {})
      .then(async () => {
        this.#isRunning = true;
        try {
          let index = await this.#try();
          while (index === undefined) index = await this.#try();
          return index;
        } finally {
          this.#isRunning = false;
        }
      });
    this.#last = mine;
    return mine;
  }

  /**
   * Undefined when a shard was dropped meanwhile. It is not made durable any more, and a manifest that still lists it
   * would have the log replayed over less than it continues from.
   */
  async #try(): Promise<number | undefined> {
    const { disk, directory } = this.#host;
    const state = this.#host.state();
    const shards = [...this.#host.shards.values()].map((live) => ({ live, head: live.shard.head }));
    const gone = this.#gone.slice();
    for (const { live, head } of shards) await this.#makeDurable(live, head);
    if (shards.some(({ live }) => live.isDropped)) return undefined;
    await writeEngineManifest(disk, directory, state);
    await this.#remove(gone);
    return state.appliedIndex;
  }

  #slice<T>(work: (sliceMs: number) => T): Promise<T> {
    return (this.#host.slices() ?? everyTick).run(false, work);
  }

  /** Has the rows up to those now in `head` flushed. */
  async #makeDurable(live: LiveShard, head: ShardHead): Promise<void> {
    const { maintenance } = this.#host;
    const { shard } = live;
    const isToFlush = (): boolean =>
      !live.isDropped && (shard.isFlushing || (shard.head === head && head.rows > 0));
    while (isToFlush()) {
      await this.#slice((ms) => {
        if (!isToFlush() || !this.#host.isOpen()) return;
        if (!shard.isFlushing) shard.sealHead();
        maintenance.flushSlice(live, ms, false);
      });
      this.#expectOpen();
      if (maintenance.failure !== undefined) throw maintenance.failure;
      await this.#untilReady(shard);
    }
    // A persist in progress may have begun before the changes to persist now.
    for (let rounds = shard.isPersisting ? 2 : 1; rounds > 0; rounds--) {
      for (;;) {
        const isLeft = await this.#slice((ms) => {
          this.#expectOpen();
          return !live.isDropped && shard.persistSlice(ms, false);
        });
        if (!isLeft) break;
        await this.#untilReady(shard);
      }
    }
  }

  #expectOpen(): void {
    if (!this.#host.isOpen()) throw new Error('closed');
  }

  /** Until it can continue: with the disk's answer, or with other work on the shard, which is helped along. */
  async #untilReady({ waiting }: Shard): Promise<void> {
    if (waiting === undefined) return;
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        const { maintenance, isOpen } = this.#host;
        void this.#slice((ms) => isOpen() && maintenance.background(ms, false)).then(() =>
          resolve(),
        );
      }, patienceMs);
    });
    await Promise.race([waiting, patience]);
    clearTimeout(timer);
  }

  async #remove(directories: readonly string[]): Promise<void> {
    this.#gone = this.#gone.filter((directory) => !directories.includes(directory));
    for (const directory of directories) await removeShardFilesAsync(this.#host.disk, directory);
  }
}
