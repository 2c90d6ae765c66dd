// Runs workflows that are kept in the document store. Several processes may share a store: each workflow has one
// owner at a time. An owner saves at least three times a lease; one that another process has seen no write of for
// a whole lease is taken for dead, and the other takes over. Every write of an owner is a compare-and-set on the
// revision and the owner it has seen, so that an owner that was only slow can write nothing any more. The time of
// a lease is measured by the observer's own clock: clocks need not agree.
//
// Resources are locked all at once or not at all when a workflow begins, first come, first served, so that those
// that wait hold nothing. A nested workflow may need more: an older workflow waits for a younger one, and a
// younger one is rolled back. So there is no circle of waiting workflows.

import { randomUUID } from 'node:crypto';
import {
  DocumentMirror,
  type MirrorChange,
  type MirrorWrite,
} from '../metadata/document-mirror.ts';
import { type DocumentStore, type Json, RevisionConflict } from '../metadata/document-store.ts';
import type { MetricSample } from '../monitor/metric-sample.ts';
import {
  byAge,
  holdersOf,
  type LockChange,
  lockWrites,
  oldestEnded,
  removal,
  type WorkflowEntry,
  write,
} from './workflow-documents.ts';
import { backOff, pause, systemTimers, type Timers } from './timers.ts';
import { LeaseLost, type RetryPolicy, WorkflowRun } from './workflow-run.ts';
import {
  hasEnded,
  lockCollection,
  workflowCollection,
  type WorkflowDefinition,
  type WorkflowDocument,
  WorkflowError,
  type WorkflowStatus,
  workflowStatuses,
} from './workflow.ts';

export interface WorkflowEngineOptions {
  report: (message: string) => void;
  timers?: Timers;
  /**
   * Time for which an owner may be silent; 0 where no other process can have the store, and owned
   * workflows are leftovers.
   */
  leaseMs?: number;
  /** Workflows of this process that run at once; none is begun beyond this number. */
  concurrency?: number;
  /** Workflows that have not ended; more are refused. */
  limit?: number;
  /** Number of finished workflows that are kept. */
  history?: number;
  retry?: RetryPolicy;
}

interface Owned {
  document: WorkflowDocument;
  abort: AbortController;
  /** Writes one after the other. */
  saving: Promise<void>;
  /** Start of the last write that succeeded, by the monotonic clock. */
  savedAt: number;
  cancelRenewal: () => void;
  ended: Promise<void>;
}

/** Another workflow holds a lock on one of the resources. */
class LockTaken extends Error {}

export class WorkflowEngine {
  readonly #me: string = randomUUID();
  readonly #options: Required<WorkflowEngineOptions>;
  readonly #definitions = new Map<string, WorkflowDefinition>();
  readonly #owned = new Map<string, Owned>();
  /** When each foreign workflow was last seen to change, by the monotonic clock. */
  readonly #seenAt = new Map<string, number>();
  readonly #listeners = new Set<() => void>();
  #mirror!: DocumentMirror;
  readonly #ids = new Set<string>();
  /** Workflows that no attempt will advance until this process restarts. */
  readonly #abandoned = new Set<string>();
  #isStarted = false;
  #isClosed = false;
  #scanning: Promise<void> | undefined;
  #isScanWanted = false;
  #cancelScan: () => void = () => {};

  private constructor(options: WorkflowEngineOptions) {
    this.#options = {
      timers: systemTimers,
      leaseMs: 10_000,
      concurrency: 16,
      limit: 1000,
      history: 100,
      retry: { firstMs: 1000, mostMs: 60_000, compensations: 8 },
      ...options,
    };
  }

  static async open(store: DocumentStore, options: WorkflowEngineOptions): Promise<WorkflowEngine> {
    const engine = new WorkflowEngine(options);
    engine.#mirror = await DocumentMirror.open(
      store,
      [workflowCollection, lockCollection],
      (change) => engine.#changed(change),
    );
    return engine;
  }

  register(definition: WorkflowDefinition): void {
    const { kind, steps } = definition;
    const names = new Set(steps.map(({ name }) => name));
    if (names.size !== steps.length) throw new Error(`two steps of ${kind} have one name`);
    if (this.#definitions.has(kind)) throw new Error(`there are two workflows ${kind}`);
    this.#definitions.set(kind, definition);
  }

  /** Starts to run workflows whose kinds are registered. */
  start(): void {
    this.#isStarted = true;
    this.#scanSoon();
  }

  /** Leaves running workflows to the next process, as a crash would. The store stays open. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelScan();
    for (const { abort } of this.#owned.values()) abort.abort();
    await Promise.all([...this.#owned.values()].map(({ ended }) => ended));
    await this.#scanning;
    this.#mirror.close();
    for (const listener of this.#listeners) listener();
  }

  // ---- reads
  //

  find(id: string): WorkflowDocument | undefined {
    return this.#mirror.get(workflowCollection, id) as unknown as WorkflowDocument | undefined;
  }

  /** Oldest first. */
  list(): WorkflowEntry[] {
    return [...this.#ids].map((id) => ({ id, document: this.find(id)! })).sort(byAge);
  }

  samples(): MetricSample[] {
    const counts = new Map<WorkflowStatus, number>(workflowStatuses.map((status) => [status, 0]));
    for (const { document } of this.list()) {
      counts.set(document.status, counts.get(document.status)! + 1);
    }
    return [...counts].map(([status, value]) => ({
      name: 'polyrow_workflows',
      help: 'Workflows by status; of those that have ended, the ones that are kept.',
      type: 'gauge',
      labels: { status },
      value,
    }));
  }

  /**
   * Resolves to the workflow once it has ended; undefined if that takes longer than `withinMs`, or if the workflow is
   * unknown by then.
   */
  async ended(id: string, withinMs: number): Promise<WorkflowDocument | undefined> {
    const { timers } = this.#options;
    const look = (): WorkflowDocument | undefined => {
      const found = this.find(id);
      return found !== undefined && hasEnded(found) ? found : undefined;
    };
    if (look() !== undefined || this.#isClosed) return look();
    await new Promise<void>((resolve) => {
      const check = (): void => {
        if (look() !== undefined || this.#isClosed) end();
      };
      const end = (): void => {
        this.#listeners.delete(check);
        cancel();
        resolve();
      };
      const cancel = timers.after(withinMs, end);
      this.#listeners.add(check);
    });
    return look();
  }

  // ---- requests

  /**
   * Makes a workflow as part of a caller's own atomic write. Throws a `WorkflowError` when there are too many.
   * The id must be new.
   */
  submission(id: string, kind: string, input: Json): MirrorWrite {
    const definition = this.#definitions.get(kind);
    if (definition === undefined) throw new WorkflowError('missing', `no workflow ${kind}`);
    const { limit, timers } = this.#options;
    const unfinished = this.list().filter(({ document }) => !hasEnded(document)).length;
    if (unfinished >= limit) {
      throw new WorkflowError('full', `${unfinished} workflows have not ended; no more are taken`);
    }
    const now = timers.now();
    const document: WorkflowDocument = {
      kind,
      input,
      steps: {},
      status: 'waiting',
      resources: [...new Set(definition.resources(input))].sort(),
      isForwardOnly: false,
      isCancelled: false,
      error: null,
      createdAt: now,
      updatedAt: now,
      endedAt: null,
      owner: null,
      version: 0,
    };
    return write(id, document);
  }

  /** Creates a workflow, unless a workflow with this id exists already. */
  async submit(id: string, kind: string, input: Json): Promise<void> {
    if (this.find(id) !== undefined) return;
    try {
      await this.#mirror.write([this.submission(id, kind, input)]);
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
    }
  }

  /** Has it rolled back. Throws a `WorkflowError` when it has ended or is past its point of no return. */
  async cancel(id: string): Promise<void> {
    await this.#alter(id, (document) => {
      const { status, isForwardOnly } = document;
      if (isForwardOnly || (status !== 'waiting' && status !== 'running')) {
        throw new WorkflowError('conflict', `workflow ${id} cannot be rolled back any more`);
      }
      return { ...document, isCancelled: true };
    });
  }

  /** Has a parked workflow tried again. */
  async resume(id: string): Promise<void> {
    await this.#alter(id, (document) => {
      if (document.status !== 'parked') {
        throw new WorkflowError('conflict', `workflow ${id} is not parked`);
      }
      const status = document.isForwardOnly ? 'running' : 'compensating';
      return { ...document, status, owner: null };
    });
  }

  async #alter(id: string, change: (found: WorkflowDocument) => WorkflowDocument): Promise<void> {
    for (;;) {
      const found = this.find(id);
      if (found === undefined) throw new WorkflowError('missing', `there is no workflow ${id}`);
      try {
        await this.#mirror.write([write(id, change(found))]);
        return;
      } catch (error) {
        if (!(error instanceof RevisionConflict)) throw error;
      }
    }
  }

  // ---- ownership

  #changed({ collection, id, body }: MirrorChange): void {
    if (collection === workflowCollection) {
      if (body === undefined) this.#ids.delete(id);
      else this.#ids.add(id);
      this.#seenAt.set(id, this.#options.timers.monotonic());
      if (body === undefined) this.#seenAt.delete(id);
    }
    for (const listener of this.#listeners) listener();
    this.#scanSoon();
  }

  #scanSoon(): void {
    if (!this.#isStarted || this.#isClosed) return;
    this.#isScanWanted = true;
    this.#scanning ??= this.#scanAll();
  }

  async #scanAll(): Promise<void> {
    // Changes of the same tick are handled together.
    await Promise.resolve();
    while (this.#isScanWanted && !this.#isClosed) {
      this.#isScanWanted = false;
      try {
        await this.#scan();
      } catch {
        // The store itself reports when it is out of reach.
        this.#isScanWanted = false;
        this.#scanAfter(this.#options.retry.firstMs);
      }
    }
    this.#scanning = undefined;
  }

  #scanAfter(delayMs: number): void {
    this.#cancelScan();
    this.#cancelScan = this.#options.timers.after(delayMs, () => this.#scanSoon());
  }

  async #scan(): Promise<void> {
    const { leaseMs, timers, concurrency } = this.#options;
    let next = Infinity;
    /** Resources that workflows wait for that came earlier. */
    const wanted = new Set<string>();
    for (const { id, document } of this.list()) {
      if (this.#isClosed) return;
      const { status, owner, resources } = document;
      if (hasEnded(document) || status === 'parked' || this.#abandoned.has(id)) continue;
      if (!this.#definitions.has(document.kind)) continue;
      if (status !== 'waiting') {
        if (this.#owned.has(id)) continue;
        const silentMs = timers.monotonic() - this.#seenAt.get(id)!;
        if (owner === null || silentMs >= leaseMs) await this.#claim(id, document);
        else next = Math.min(next, leaseMs - silentMs);
      } else {
        const isFree = resources.every(
          (resource) => !wanted.has(resource) && !this.#mirror.has(lockCollection, resource),
        );
        for (const resource of resources) wanted.add(resource);
        // Workflows that have begun are taken over beyond this number: others may wait for their
        // locks.
        const hasRoom = this.#owned.size < concurrency;
        if ((isFree && hasRoom) || document.isCancelled) await this.#claim(id, document);
      }
    }
    if (next < Infinity) this.#scanAfter(next);
  }

  /** Takes a workflow over, with its locks if it has none yet. */
  async #claim(id: string, found: WorkflowDocument): Promise<void> {
    const { timers } = this.#options;
    const begins = found.status === 'waiting';
    const isNeverRun = begins && found.isCancelled;
    const now = timers.now();
    const document: WorkflowDocument = {
      ...structuredClone(found),
      status: isNeverRun ? 'rolled-back' : begins ? 'running' : found.status,
      owner: isNeverRun ? null : this.#me,
      endedAt: isNeverRun ? now : null,
      updatedAt: now,
      version: found.version + 1,
    };
    const locks = begins && !isNeverRun ? document.resources : [];
    const savedAt = timers.monotonic();
    try {
      await this.#mirror.write([write(id, document), ...lockWrites(id, { take: locks })]);
    } catch (error) {
      if (error instanceof RevisionConflict) return;
      throw error;
    }
    if (isNeverRun) await this.#prune();
    else this.#run(id, document, savedAt);
  }

  #run(id: string, document: WorkflowDocument, savedAt: number): void {
    const owned: Owned = {
      document,
      abort: new AbortController(),
      saving: Promise.resolve(),
      savedAt,
      cancelRenewal: () => {},
      ended: Promise.resolve(),
    };
    this.#owned.set(id, owned);
    this.#renewLater(id, owned);
    if (this.#isClosed) owned.abort.abort();
    const run = new WorkflowRun({
      id,
      document,
      definition: (kind) => this.#definitions.get(kind),
      save: () => this.#save(id, owned),
      lock: (resources) => this.#lock(id, owned, resources),
      isCancelled: () => this.find(id)?.isCancelled === true,
      signal: owned.abort.signal,
      timers: this.#options.timers,
      retry: this.#options.retry,
      report: this.#options.report,
    });
    owned.ended = run
      .run()
      .then(() => this.#end(id, owned))
      .catch((error: unknown) => {
        if (!(error instanceof LeaseLost)) {
          this.#abandoned.add(id);
          this.#options.report(`workflow ${id} is abandoned: ${String(error)}`);
        }
      })
      .finally(() => {
        owned.abort.abort();
        owned.cancelRenewal();
        this.#owned.delete(id);
        this.#scanSoon();
      });
  }

  async #end(id: string, owned: Owned): Promise<void> {
    const { document } = owned;
    document.owner = null;
    const isOver = hasEnded(document);
    if (isOver) document.endedAt = this.#options.timers.now();
    // A parked workflow keeps its locks, because the state of its resources is unknown.
    await this.#save(id, owned, isOver ? { release: document.resources } : {});
    if (document.status === 'parked') {
      this.#options.report(`workflow ${id} is parked: ${document.error}`);
    }
    if (isOver) await this.#prune();
  }

  // ---- leases

  #renewLater(id: string, owned: Owned): void {
    const { leaseMs, timers } = this.#options;
    if (leaseMs === 0) return;
    owned.cancelRenewal = timers.after(leaseMs / 3, () => {
      if (timers.monotonic() - owned.savedAt >= leaseMs) {
        owned.abort.abort();
        return;
      }
      this.#renewLater(id, owned);
      this.#save(id, owned).catch(() => {});
    });
  }

  /** Makes the document as it is now durable, and takes or releases locks in the same write. */
  #save(id: string, owned: Owned, locks: LockChange = {}): Promise<void> {
    const saved = owned.saving.then(() => this.#saveNow(id, owned, locks));
    owned.saving = saved.catch(() => {});
    return saved;
  }

  async #saveNow(id: string, owned: Owned, { take = [], release = [] }: LockChange): Promise<void> {
    const { timers, retry } = this.#options;
    const { document, abort } = owned;
    const version = document.version + 1;
    for (let failures = 0; ; ) {
      if (abort.signal.aborted) throw new LeaseLost(`workflow ${id} has another owner`);
      const found = this.find(id);
      // A write that seemed to fail may have been made.
      const isMade = found?.version === version && found.owner === document.owner && failures > 0;
      if (!isMade && (found?.owner !== this.#me || found.version !== version - 1)) {
        abort.abort();
        continue;
      }
      const resources = [...new Set([...document.resources, ...take])].sort();
      if (!isMade && holdersOf(this.#mirror, id, take).length > 0) throw new LockTaken();
      const next: WorkflowDocument = {
        ...structuredClone(document),
        version,
        resources,
        updatedAt: timers.now(),
        isCancelled: found.isCancelled,
      };
      const startedAt = timers.monotonic();
      try {
        if (!isMade) {
          await this.#mirror.write([write(id, next), ...lockWrites(id, { take, release })]);
        }
        document.version = version;
        document.resources = resources;
        owned.savedAt = startedAt;
        return;
      } catch (error) {
        // Cancellation was requested, or another server took over: the mirror has the change by
        // now.
        if (error instanceof RevisionConflict) continue;
        if (error instanceof RangeError) throw error;
        failures++;
        await pause(timers, backOff(failures, retry.firstMs, retry.mostMs), abort.signal);
      }
    }
  }

  async #lock(id: string, owned: Owned, resources: readonly string[]): Promise<void> {
    const { timers, retry } = this.#options;
    const me = { id, document: owned.document };
    for (;;) {
      try {
        await this.#save(id, owned, { take: resources });
        return;
      } catch (error) {
        if (!(error instanceof LockTaken)) throw error;
      }
      const isYounger = holdersOf(this.#mirror, id, resources).some((holder) => {
        const document = this.find(holder);
        return document !== undefined && byAge({ id: holder, document }, me) < 0;
      });
      if (isYounger) throw new Error(`an older workflow has ${resources.join(', ')}`);
      await pause(timers, retry.firstMs, owned.abort.signal);
    }
  }

  // ---- history

  async #prune(): Promise<void> {
    for (const { id } of oldestEnded(this.list(), this.#options.history)) {
      // Another process may have removed it already; if removal fails now, it is repeated when the
      // next one ends.
      await this.#mirror.write([removal(id)]).catch(() => {});
    }
  }
}
