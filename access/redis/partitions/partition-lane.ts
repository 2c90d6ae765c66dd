// One partition of a table, as the target of the gateway's commands. Commands wait here while the rows of the
// partition are handed over.

import type { Partition } from '../../../contracts/partition-map.ts';
import type { RowCommands } from '../../../universal-row/executor.ts';

/** A partition and the pod that has it. */
export interface PlacedPartition extends Partition {
  readonly pod: RowCommands;
}

/** Commands that wait for one partition at most. */
const maxWaiting = 16_384;
/** Milliseconds for which commands that waited run before others have the thread. */
const drainMs = 1;

/** Commands of one partition. */
export class PartitionLane {
  readonly partition: PlacedPartition;
  /** Requests without a reply so far. */
  underWay = 0;
  #waiting: (() => void)[] | undefined;
  #idle: (() => void) | undefined;

  constructor(partition: PlacedPartition) {
    this.partition = partition;
  }

  get isPaused(): boolean {
    return this.#waiting !== undefined;
  }

  /** Queues new commands. Resolves once the commands in progress are answered. */
  pause(): Promise<void> {
    this.#waiting ??= [];
    if (this.underWay === 0) return Promise.resolve();
    return new Promise((resolve) => (this.#idle = resolve));
  }

  /** False when too many wait already. */
  wait(run: () => void): boolean {
    if (this.#waiting!.length >= maxWaiting) return false;
    this.#waiting!.push(run);
    return true;
  }

  /** Runs the queued commands where the current partition map sends them. */
  resume(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    drain(waiting, 0);
  }

  async track<T>(done: Promise<T>): Promise<T> {
    this.underWay++;
    try {
      return await done;
    } finally {
      if (--this.underWay === 0) {
        this.#idle?.();
        this.#idle = undefined;
      }
    }
  }
}

function drain(waiting: readonly (() => void)[], from: number): void {
  const deadline = performance.now() + drainMs;
  for (let i = from; i < waiting.length; i++) {
    if ((i & 15) === 15 && performance.now() > deadline) {
      setImmediate(() => drain(waiting, i));
      return;
    }
    waiting[i]!();
  }
}
