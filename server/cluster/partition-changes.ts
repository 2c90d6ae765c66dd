// Changes of partitions in a cluster: splits, merges and moves to another model. The node that leads the metadata
// drives each change through its steps (server/planes/cluster-partitions.ts), which the leaders of the groups
// execute. No state is kept here that the next metadata leader would need: a decision is in the log of the first
// source. An undecided change starts again as a new attempt, which messages of the earlier attempt cannot affect.

import { MarkState, type PartitionMap, replaced } from '../../contracts/partition-map.ts';
import type { Json } from '../../control/metadata/document-store.ts';
import type {
  PartitionChangeStatus,
  PartitionHolder,
} from '../../control/metadata/partition-catalog.ts';
import type { TableCatalog } from '../../control/metadata/table-catalog.ts';
import {
  type PartitionChange,
  partitionMapOf,
  placedAs,
  type TableDefinition,
} from '../../control/metadata/table-definition.ts';
import { changesLevel, changesRefusal } from '../../control/metadata/table-rules.ts';
import type { LedPartition, PartitionOrders, PartitionStep } from '../planes/cluster-partitions.ts';
import type { Planes } from '../planes/plane-host.ts';
import type { ClusterMetadata } from './cluster-metadata.ts';

interface PartitionChangesOptions {
  readonly metadata: Pick<
    ClusterMetadata,
    'isLeader' | 'onLeader' | 'ask' | 'reachability' | 'handlers'
  >;
  readonly planes: Planes;
  readonly tables: Pick<TableCatalog, 'place' | 'definition'>;
  readonly sizes: PartitionHolder['sizes'];
  /** Build level that all nodes support. */
  readonly level: () => number;
  readonly report: (message: string) => void;
  /** A change is made. */
  readonly made: (fields: { table: number; rows: number; pausedMs: number }) => void;
}

/** A table with the change that is under way. */
type Changing = TableDefinition & {
  readonly placement: PartitionMap & { readonly change: PartitionChange & { attempt: number } };
};

const question = 'partitions/step';
const stepMs = 10_000;
/** Time limit of the steps during which clients wait. A slower step is retried. */
const quickMs = 2000;
const pollMs = 20;
const retryMs = 100;
/** New groups have to be made, and led. */
const ledWithinMs = 30_000;
const mostFailures = 20;

/** Another node continues with the change, or it has been given up. */
class Over extends Error {}

class Cancelled extends Error {}

/** The change has come to nothing, and its attempts up to this one never will be decided. */
class Failure extends Error {
  readonly attempt: number;

  constructor(message: string, attempt: number) {
    super(message);
    this.attempt = attempt;
  }
}

interface Running {
  done: number;
  total: number;
  /** When the sources were asked to take no more commands. */
  pausedAt: number;
}

export class PartitionChanges implements PartitionHolder {
  readonly #options: PartitionChangesOptions;
  readonly #running = new Map<number, Running>();
  /** By table: why the change has come to nothing, and its last attempt. */
  readonly #failures = new Map<number, { error: string; attempt: number }>();
  readonly #stops: (() => void)[] = [];
  #closed = false;

  constructor(options: PartitionChangesOptions) {
    this.#options = options;
    options.metadata.handlers.on(question, async (body) => {
      const orders = body as unknown as PartitionOrders;
      const led = await options.planes.redis.call('partitionStep', orders, stepMs);
      return led as unknown as Json;
    });
  }

  /** Whether changes are carried out by this node. */
  runs(): boolean {
    return !this.#closed && this.#options.metadata.isLeader;
  }

  onRuns(listener: () => void): void {
    this.#stops.push(this.#options.metadata.onLeader(listener));
  }

  refusal(): string | undefined {
    return this.#options.level() >= changesLevel ? undefined : changesRefusal;
  }

  close(): void {
    this.#closed = true;
    for (const stop of this.#stops.splice(0)) stop();
  }

  async begin({ id }: TableDefinition): Promise<void> {
    if (this.#running.has(id)) return;
    const running = { done: 0, total: 0, pausedAt: performance.now() };
    this.#running.set(id, running);
    this.#failures.delete(id);
    this.#run(id, running)
      .catch((error: Error) => {
        const { message } = error;
        if (error instanceof Failure) {
          this.#failures.set(id, { error: message, attempt: error.attempt });
        } else if (!(error instanceof Over)) {
          this.#options.report(`a change of partitions of table ${id} begins again: ${message}`);
        }
      })
      .finally(() => this.#running.delete(id));
  }

  async status(table: number): Promise<PartitionChangeStatus> {
    const running = this.#running.get(table);
    const failure = this.#failures.get(table);
    if (running !== undefined || !this.runs()) {
      return { state: 'running', done: running?.done ?? 0, total: running?.total ?? 0 };
    }
    return failure === undefined ? { state: 'done' } : { state: 'failed', ...failure };
  }

  /** The node that executes the change reads it from the metadata. */
  async cancel(table: number): Promise<void> {
    await this.#options.tables.place(table, (definition) => {
      const map = partitionMapOf(definition);
      const change = definition.placement?.change;
      return change === undefined ? map : { ...map, change: { ...change, isCancelled: true } };
    });
  }

  sizes(table: number): Promise<{ number: number; rows: number }[]> {
    return this.#options.sizes(table);
  }

  // ---- one change

  async #run(table: number, running: Running): Promise<void> {
    for (let failures = 0; ; ) {
      // To be withdrawn only once it is known that the attempt before has come to nothing.
      const definition = await this.#insist(() => this.#nextAttempt(table));
      try {
        const decided = await this.#attempt(definition, running);
        return await this.#finish(decided, running);
      } catch (error) {
        if (error instanceof Over) throw error;
        const { message } = error as Error;
        this.#options.report(`a change of partitions of table ${table}: ${message}`);
        const isLast = error instanceof Cancelled || ++failures >= mostFailures;
        const decided = await this.#giveUp(definition, isLast);
        if (decided !== undefined) return await this.#finish(decided, running);
        if (isLast) throw new Failure(message, definition.placement.change.attempt);
        await this.#pause(retryMs * failures);
      }
    }
  }

  /** Numbered in the metadata, so that two nodes that both think they lead them do not try the same one. */
  async #nextAttempt(table: number): Promise<Changing> {
    if (this.#options.tables.definition(table) === undefined) throw new Over();
    const definition = await this.#options.tables.place(table, (found) => {
      const { change } = found.placement ?? {};
      if (change === undefined || !this.runs()) throw new Over();
      const map = partitionMapOf(found);
      return { ...map, change: { ...change, attempt: change.attempt! + 1 } };
    });
    return definition as Changing;
  }

  /** Resolves once its home has decided for it; to the attempt that it was. */
  async #attempt(definition: Changing, running: Running): Promise<Changing> {
    const { change } = definition.placement;
    const { sources, attempt } = change;
    const targets = change.targets.map(({ number }) => number);
    const [home, ...others] = sources as [number, ...number[]];
    await this.#all('adopt', definition, quickMs);
    await this.#until(definition, ledWithinMs, (led) => {
      return [...sources, ...targets].every((number) => led.has(number));
    });
    const decided = decisionOf(definition, await this.#step('void', definition, [home]));
    if (decided !== undefined) return decided;
    this.#refuseIfCancelled(definition);
    await this.#step('release', definition, others);
    const filling = await this.#step('fill', definition, targets);
    expectMarks(filling, targets, MarkState.filling, attempt);
    await this.#step('copy', definition, sources);
    await this.#until(definition, Infinity, (led) => {
      const copies = sources.map((number) => led.get(number)?.copy);
      const failed = copies.find((copy) => copy?.attempt !== attempt || copy.state === 'failed');
      if (copies.some((copy) => copy === undefined) || failed !== undefined) {
        throw new Error(failed?.error ?? 'a source has another leader');
      }
      running.done = copies.reduce((sum, copy) => sum + copy!.done, 0);
      running.total = copies.reduce((sum, copy) => sum + copy!.total, 0);
      return copies.every((copy) => copy!.state === 'ready');
    });
    running.pausedAt = performance.now();
    const frozen = await this.#step('freeze', definition, sources, quickMs);
    // The only one has decided already.
    if (decisionOf(definition, frozen)?.placement.change.attempt === attempt) return definition;
    expectMarks(frozen, sources, MarkState.frozen, attempt);
    const closed = await this.#step('decide', definition, [home], quickMs);
    expectMarks(closed, [home], MarkState.closed, attempt);
    return definition;
  }

  #refuseIfCancelled(definition: Changing): void {
    if (this.#recorded(definition).isCancelled === true) throw new Cancelled('cancelled');
  }

  /** The change as this node's metadata have it. Throws `Over` where another node has ended it. */
  #recorded({ id, placement }: Changing): PartitionChange {
    const change = this.#options.tables.definition(id)?.placement?.change;
    if (!this.runs() || change?.targets[0]!.number !== placement.change.targets[0]!.number) {
      throw new Over();
    }
    return change;
  }

  /**
   * Serves the sources again, unless the change was decided after all. Retries until success only where no further
   * attempt follows.
   */
  async #giveUp(definition: Changing, isLast: boolean): Promise<Changing | undefined> {
    const { change } = definition.placement;
    const [home, ...others] = change.sources as [number, ...number[]];
    const next = withAttempt(definition, change.attempt + 1);
    for (;;) {
      this.#recorded(definition);
      try {
        const decided = decisionOf(definition, await this.#step('void', next, [home], quickMs));
        if (decided === undefined) await this.#step('release', next, others, quickMs);
        return decided;
      } catch {
        // Without an answer of its home it may be decided yet; the next attempt asks again.
        if (!isLast) return undefined;
        await this.#pause(retryMs);
      }
    }
  }

  /** The change is decided and cannot be undone. Failed steps are retried. */
  async #finish(definition: Changing, running: Running): Promise<void> {
    const { change } = definition.placement;
    const [, ...others] = change.sources;
    const targets = change.targets.map(({ number }) => number);
    const placement = replaced(partitionMapOf(definition), change.sources, change.targets);
    await this.#insist(async () => {
      this.#recorded(definition);
      const [closed, open] = await Promise.all([
        this.#step('close', definition, others, quickMs),
        this.#step('open', definition, targets, quickMs),
      ]);
      expectMarks(closed, others, MarkState.closed, change.attempt);
      expectMarks(open, targets, MarkState.whole, change.attempt);
    });
    await this.#all('adopt', placedAs(definition, placement), quickMs);
    const pausedMs = Math.round(performance.now() - running.pausedAt);
    this.#options.made({ table: definition.id, rows: running.total, pausedMs });
    await this.#insist(async () => {
      this.#recorded(definition);
      await this.#options.tables.place(definition.id, (found) => {
        const now = found.placement?.change;
        const isDone = now?.targets[0]?.number !== change.targets[0]!.number;
        return isDone
          ? (found.placement ?? partitionMapOf(found))
          : replaced(partitionMapOf(found), change.sources, change.targets);
      });
    });
    await this.#all('drop', definition, stepMs);
  }

  async #insist<T>(act: () => Promise<T>): Promise<T> {
    let told = '';
    for (;;) {
      if (!this.runs()) throw new Over();
      try {
        return await act();
      } catch (error) {
        if (error instanceof Over) throw error;
        const { message } = error as Error;
        if (message !== told) this.#options.report(`a change of partitions is held up: ${message}`);
        told = message;
        await this.#pause(retryMs);
      }
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms));
  }

  /** Looks until it is as wanted. */
  async #until(
    definition: Changing,
    ms: number,
    isSo: (led: ReadonlyMap<number, LedPartition>) => boolean,
  ): Promise<void> {
    const until = performance.now() + ms;
    for (;;) {
      this.#refuseIfCancelled(definition);
      const { led } = await this.#all('look', definition, quickMs);
      if (isSo(led)) return;
      if (performance.now() > until) throw new Error('some partitions have no leader');
      await this.#pause(pollMs);
    }
  }

  /** Has the leaders of all of these partitions do a step. Rejects where one does not answer, or cannot. */
  async #step(
    step: PartitionStep,
    definition: Changing,
    numbers: readonly number[],
    ms = stepMs,
  ): Promise<ReadonlyMap<number, LedPartition>> {
    if (numbers.length === 0) return new Map();
    const { led, failure } = await this.#all(step, definition, ms);
    const missing = numbers.find((number) => !led.has(number));
    if (missing === undefined) return led;
    throw new Error(failure ?? `partition ${missing} has no leader`);
  }

  async #all(
    step: PartitionStep,
    definition: TableDefinition,
    ms: number,
  ): Promise<{ led: ReadonlyMap<number, LedPartition>; failure: string | undefined }> {
    const { metadata } = this.#options;
    const body = { step, definition } as unknown as Json;
    const nodes = metadata.reachability().filter(({ reachable }) => reachable);
    const answers = await Promise.allSettled(
      nodes.map(({ node }) => metadata.ask(node, question, body, ms)),
    );
    const led = new Map<number, LedPartition>();
    let failure: string | undefined;
    for (const answer of answers) {
      if (answer.status === 'rejected') failure ??= (answer.reason as Error).message;
      else for (const one of answer.value as unknown as LedPartition[]) led.set(one.number, one);
    }
    return { led, failure };
  }
}

function withAttempt(definition: Changing, attempt: number): Changing {
  const { placement } = definition;
  return { ...definition, placement: { ...placement, change: { ...placement.change, attempt } } };
}

/** The attempt that the home has closed the partition for, if it has. */
function decisionOf(
  definition: Changing,
  led: ReadonlyMap<number, LedPartition>,
): Changing | undefined {
  const mark = led.get(definition.placement.change.sources[0]!)?.mark;
  return mark?.state === MarkState.closed ? withAttempt(definition, mark.attempt) : undefined;
}

function expectMarks(
  led: ReadonlyMap<number, LedPartition>,
  numbers: readonly number[],
  state: number,
  attempt: number,
): void {
  for (const number of numbers) {
    const mark = led.get(number)?.mark;
    if (mark?.state === state && mark.attempt === attempt) continue;
    throw new Error(`partition ${number} does not take part in attempt ${attempt}`);
  }
}
