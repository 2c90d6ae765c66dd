// Follows a store from a revision on: the current state, then every change once and in order, through outages and
// gaps. It polls, so that a lost message costs only time; hints from the store trigger a poll at once.

import {
  type ChangeSource,
  type DocumentChange,
  HistoryGone,
  type Snapshot,
} from './document-store.ts';

export interface FeedListener {
  /** In order, none left out and none twice, whole writes. */
  changed(changes: readonly DocumentChange[]): void;
  /**
   * At the start, unless it continues from a revision, and after a gap in the history: the full
   * current state, which later changes follow.
   */
  replaced(snapshot: Snapshot): void;
  /** The store has answered: everything that was there a moment ago has been told. */
  reached?(): void;
  /** The attempt failed. Called for every attempt; the next one follows. */
  failed?(error: Error): void;
}

interface FollowOptions {
  /** Continues after this revision; otherwise begins with a snapshot. */
  after?: number;
  /** Between two attempts while the store is out of reach. */
  retryMs?: number;
}

export class ChangeFollower {
  readonly #source: ChangeSource;
  readonly #listener: FeedListener;
  readonly #retryMs: number;
  readonly #stopHints: () => void;
  readonly #done: Promise<void>;
  readonly #waiters = new Set<{ revision: number; resolve: () => void }>();
  #position: number | undefined;
  #closed = false;
  /** A hint came since the last look. */
  #hinted = false;
  #wake: (() => void) | undefined;

  constructor(source: ChangeSource, listener: FeedListener, options: FollowOptions = {}) {
    this.#source = source;
    this.#listener = listener;
    this.#position = options.after;
    this.#retryMs = options.retryMs ?? 500;
    this.#stopHints = source.onHint(() => this.hint());
    this.#done = this.#run();
  }

  /** Revision up to which all changes have been delivered; undefined before the first snapshot. */
  get position(): number | undefined {
    return this.#position;
  }

  /** Looks at once. */
  hint(): void {
    this.#hinted = true;
    this.#wake?.();
  }

  /** Resolves once all changes up to a revision have been delivered, and after `timeoutMs` at the latest. */
  async caughtUp(revision: number, timeoutMs: number): Promise<boolean> {
    if ((this.#position ?? -1) >= revision) return true;
    this.hint();
    let timer: NodeJS.Timeout | undefined;
    const waiter = { revision, resolve: () => {} };
    await new Promise<void>((resolve) => {
      waiter.resolve = resolve;
      this.#waiters.add(waiter);
      timer = setTimeout(resolve, timeoutMs);
    });
    clearTimeout(timer);
    this.#waiters.delete(waiter);
    return (this.#position ?? -1) >= revision;
  }

  /** Nothing is told after this. Waits for a call to the store that is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stopHints();
    this.#wake?.();
    for (const waiter of this.#waiters) waiter.resolve();
    await this.#done;
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      this.#hinted = false;
      let pauseMs = this.#source.pollMs;
      try {
        await this.#catchUp();
        if (!this.#closed) this.#listener.reached?.();
      } catch (error) {
        if (!this.#closed) this.#listener.failed?.(error as Error);
        pauseMs = this.#retryMs;
        // A store that is away still hints; that must not make this loop spin.
        this.#hinted = false;
      }
      if (!this.#closed && !this.#hinted) await this.#pause(pauseMs);
    }
  }

  async #catchUp(): Promise<void> {
    for (;;) {
      if (this.#position === undefined) await this.#replace();
      if (this.#closed) return;
      let changes: DocumentChange[];
      try {
        changes = await this.#source.changes(this.#position!);
      } catch (error) {
        if (!(error instanceof HistoryGone)) throw error;
        this.#position = undefined;
        continue;
      }
      const last = changes.at(-1);
      if (this.#closed || last === undefined) return;
      this.#listener.changed(changes);
      this.#moveTo(last.revision);
    }
  }

  async #replace(): Promise<void> {
    const snapshot = await this.#source.snapshot();
    if (this.#closed) return;
    this.#listener.replaced(snapshot);
    this.#moveTo(snapshot.revision);
  }

  #moveTo(revision: number): void {
    this.#position = revision;
    for (const waiter of this.#waiters) if (waiter.revision <= revision) waiter.resolve();
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#wake?.(), ms);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
    });
  }
}
