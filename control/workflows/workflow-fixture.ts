// For tests of workflows: a time that passes when nothing else is to be done, and processes that die at any point.

import type { DocumentStore } from '../metadata/document-store.ts';
import { MemoryStore } from '../metadata/memory-store-fixture.ts';
import type { Timers } from './timers.ts';
import { WorkflowEngine, type WorkflowEngineOptions } from './workflow-engine.ts';
import { lockCollection, type WorkflowDefinition } from './workflow.ts';

export class VirtualTimers implements Timers {
  #now = 0;
  readonly #pending = new Set<{ at: number; run: () => void }>();

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  after(delayMs: number, run: () => void): () => void {
    // Whole milliseconds: a fraction may be too small to advance a late time at all.
    const timer = { at: this.#now + Math.ceil(delayMs), run };
    this.#pending.add(timer);
    return () => this.#pending.delete(timer);
  }

  /** Lets time pass until `isDone`; throws after `limitMs`. */
  async until(isDone: () => boolean, limitMs = 3_600_000): Promise<void> {
    const end = this.#now + limitMs;
    for (;;) {
      await new Promise(setImmediate);
      if (isDone()) return;
      let next: { at: number; run: () => void } | undefined;
      for (const timer of this.#pending) if (next === undefined || timer.at < next.at) next = timer;
      if (next === undefined || next.at > end)
        throw new Error(`nothing more happens at ${this.#now}`);
      this.#pending.delete(next);
      this.#now = next.at;
      next.run();
    }
  }
}

/** A process with a store. After its death nothing that it began continues. */
export class Mortal {
  /** Points passed so far: begins and ends of writes, and points counted by steps. */
  points = 0;
  isDead = false;
  /** Writes wait until it resolves, and news of others' writes. */
  #stall: Promise<void> = Promise.resolve();
  readonly #diesAt: number;
  readonly #store: DocumentStore;
  engine!: WorkflowEngine;

  private constructor(store: DocumentStore, diesAt: number) {
    this.#store = store;
    this.#diesAt = diesAt;
  }

  static async start(
    store: MemoryStore,
    timers: Timers,
    definitions: (process: Mortal) => readonly WorkflowDefinition[],
    { diesAt = Infinity, ...options }: Partial<WorkflowEngineOptions> & { diesAt?: number } = {},
  ): Promise<Mortal> {
    const process = new Mortal(store, diesAt);
    process.engine = await WorkflowEngine.open(process.#reach(), {
      report: () => {},
      timers,
      ...options,
    });
    for (const definition of definitions(process)) process.engine.register(definition);
    process.engine.start();
    return process;
  }

  /** A point at which the process may die: then this never resolves. */
  async point(): Promise<void> {
    if (!this.isDead && this.points++ >= this.#diesAt) this.isDead = true;
    if (this.isDead) await new Promise<never>(() => {});
  }

  /** Hangs until the function that it returns is called. */
  stall(): () => void {
    let goOn = (): void => {};
    this.#stall = new Promise((resolve) => (goOn = resolve));
    return goOn;
  }

  /** The store as this process reaches it. */
  #reach(): DocumentStore {
    const store = this.#store;
    return {
      get: (collection, id) => store.get(collection, id),
      list: (collection) => store.list(collection),
      snapshot: () => store.snapshot(),
      changes: (after) => store.changes(after),
      onHint: (listener) => store.onHint(listener),
      pollMs: store.pollMs,
      watch: (listener) =>
        store.watch((change) => {
          void this.#stall.then(() => {
            if (!this.isDead) listener(change);
          });
        }),
      write: async (changes) => {
        await this.point();
        await this.#stall;
        const revisions = await store.write(changes);
        await this.point();
        return revisions;
      },
      close: async () => {},
      get revision() {
        return store.revision;
      },
    };
  }
}

export function locks(store: MemoryStore): string[] {
  return store.names().filter((name) => name.startsWith(`${lockCollection}/`));
}
