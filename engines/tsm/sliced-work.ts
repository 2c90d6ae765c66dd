// Work that is done in slices between other things. Where the work has to wait for the disk it
// yields that, and its runner decides whether to block or to run other work and resume later.

import { syncDirectoryAsync } from '../../universal-row/durable-names.ts';
import type { Clock, Disk, DiskFile } from '../../universal-row/environment.ts';

/** Something that the disk takes its time for. */
export interface DiskWait {
  now(): void;
  later(): Promise<void>;
  /** `now` may be called while `later` is under way. */
  readonly isRepeatable?: true;
}

/** Yields between slices; with a wait where it can continue only after that. */
export type SlicedWork<T = void> = Generator<DiskWait | undefined, T, void>;

export function syncing(file: DiskFile): DiskWait {
  return { now: () => file.syncNow(), later: () => file.sync() };
}

export function syncingDirectory(disk: Disk, path: string): DiskWait {
  return {
    now: () => disk.syncDirectory(path),
    later: () => syncDirectoryAsync(disk, path),
  };
}

/** Does all of it, and waits wherever it has to. */
export function finished<T>(work: SlicedWork<T>): T {
  let step = work.next();
  while (step.done !== true) {
    const failure = step.value === undefined ? undefined : failureOf(step.value);
    step = failure === undefined ? work.next() : work.throw(failure.error);
  }
  return step.value;
}

interface Failure {
  readonly error: unknown;
}

function failureOf(wait: DiskWait): Failure | undefined {
  try {
    wait.now();
    return undefined;
  } catch (error) {
    return { error };
  }
}

/** One piece of work on its way. */
export class SlicedRun {
  readonly #start: () => SlicedWork;
  #work: SlicedWork;
  #wait: DiskWait | undefined;
  #answer: Promise<void> | undefined;
  #failure: Failure | undefined;

  constructor(start: () => SlicedWork) {
    this.#start = start;
    this.#work = start();
  }

  /** Resolves when a slice can do something again; undefined when it can now. */
  get waiting(): Promise<void> | undefined {
    return this.#answer;
  }

  /**
   * Works for about so long; true when more is left. With `blocks` it waits for the disk itself; without,
   * a slice that would have to wait does nothing. With `blocks`, work whose sync is under way begins anew: that sync may
   * fail, and the disk reports a failure only once.
   */
  slice(clock: Clock, budgetMs: number, blocks: boolean): boolean {
    if (this.#answer !== undefined) {
      if (!blocks) return true;
      this.#answer = undefined;
      if (this.#wait!.isRepeatable === true) this.#failure = failureOf(this.#wait!);
      else this.#beginAnew();
    }
    const deadline = clock.monotonic() + budgetMs;
    do {
      const failure = this.#failure;
      this.#failure = undefined;
      const step = failure === undefined ? this.#work.next() : this.#work.throw(failure.error);
      if (step.done === true) return false;
      if (step.value === undefined) continue;
      if (!blocks) {
        this.#begin(step.value);
        return true;
      }
      this.#failure = failureOf(step.value);
    } while (clock.monotonic() < deadline || this.#failure !== undefined);
    return true;
  }

  #beginAnew(): void {
    const interruption = new Error('the work begins anew');
    try {
      this.#work.throw(interruption);
    } catch (error) {
      if (error !== interruption) throw error;
    }
    this.#work = this.#start();
  }

  /** The work is abandoned. */
  end(): void {
    this.#answer = undefined;
    this.#work.return();
  }

  #begin(wait: DiskWait): void {
    this.#wait = wait;
    const answer: Promise<void> = wait.later().then(
      () => this.#answered(answer, undefined),
      (error: unknown) => this.#answered(answer, { error }),
    );
    this.#answer = answer;
  }

  #answered(answer: Promise<void>, failure: Failure | undefined): void {
    if (this.#answer !== answer) return;
    this.#answer = undefined;
    this.#failure = failure;
  }
}
