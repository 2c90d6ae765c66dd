// Changes of partitions on a node of a cluster: requests of the coordinator (server/cluster/partition-changes.ts) to
// groups that are led here, and requests between leaders.

import {
  isPartition,
  MarkState,
  type PartitionMark,
  type PartitionQuestion,
} from '../../contracts/partition-map.ts';
import type { TableDefinition } from '../../control/metadata/table-definition.ts';
import { clearTable, refuseIfFull } from '../../storage-node/apply-slice.ts';
import { putRow } from '../../storage-node/partition-copy.ts';
import { fillPartition, setMark } from '../../storage-node/mark-partitions.ts';
import type { Pod } from '../../storage-node/pod.ts';
import { ReadFault } from '../../universal-row/errors.ts';
import { PartitionMover, type MoverStatus } from './partition-mover.ts';

/**
 * The steps in their order: gateways adopt the change; the previous attempt is declared void at its home, then
 * released at the other sources; targets are emptied; rows are copied; sources stop accepting commands; the home
 * decides; the other sources and the targets follow the decision; gateways adopt the new map; rows that leaders of
 * earlier builds have left at the sources are deleted. `look` asks for the state.
 */
export type PartitionStep =
  | 'adopt'
  | 'void'
  | 'release'
  | 'fill'
  | 'copy'
  | 'freeze'
  | 'decide'
  | 'close'
  | 'open'
  | 'drop'
  | 'look';

export interface PartitionOrders {
  readonly step: PartitionStep;
  /** With the change; for the step `adopt` the one to go by from now on. */
  readonly definition: TableDefinition;
}

/** State of a source or target partition that is led here. */
export interface LedPartition {
  readonly number: number;
  readonly mark?: PartitionMark | undefined;
  readonly copy?: MoverStatus | undefined;
}

interface ClusterPartitionsOptions {
  /** The replica here of a partition of the model. */
  readonly podOf: (number: number, model: string) => Pod | undefined;
  readonly pods: () => Iterable<Pod>;
  /** Asks the leader of the group that has the partition. */
  readonly askLeader: (number: number, question: PartitionQuestion) => Promise<unknown>;
  readonly adopt: (definition: TableDefinition) => void;
  readonly report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
}

export const notLedHere = 'the partition is not led here';

/** Whether the error, of this or another node, says that the node does not lead the partition. */
export function isNotLed(error: unknown): boolean {
  return error instanceof Error && error.message === notLedHere;
}

/** So long a partition stays frozen before it is asked whether it was closed, and served again if not. */
const mostFrozenMs = 1000;
const watchEveryMs = 250;

export class ClusterPartitions {
  readonly #options: ClusterPartitionsOptions;
  readonly #movers = new Map<number, PartitionMover>();
  readonly #frozenSince = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;
  /** Frozen partitions that are being released, as in `#frozenSince`. */
  readonly #releasing = new Set<string>();
  #isLooking = false;

  constructor(options: ClusterPartitionsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#look(), watchEveryMs);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#movers.values()].map((mover) => mover.close()));
  }

  /** Executes a step for all partitions that are led here, and returns these. */
  async step({ step, definition }: PartitionOrders): Promise<LedPartition[]> {
    if (step === 'adopt') {
      this.#options.adopt(definition);
      return [];
    }
    const { change, partitions } = definition.placement!;
    const { sources, targets, attempt } = change!;
    const models = new Map([...partitions, ...targets].map(({ number, model }) => [number, model]));
    const [home, ...others] = sources as [number, ...number[]];
    const wanted: Record<Exclude<PartitionStep, 'adopt'>, readonly number[]> = {
      ...{ copy: sources, freeze: sources, drop: sources },
      ...{ void: [home], decide: [home], release: others, close: others },
      ...{ fill: targets.map(({ number }) => number), open: targets.map(({ number }) => number) },
      look: [...sources, ...targets.map(({ number }) => number)],
    };
    const led: LedPartition[] = [];
    const done = wanted[step].map(async (number) => {
      const pod = this.#options.podOf(number, models.get(number)!);
      if (pod?.role !== 'leader') return;
      await this.#do(step, pod, number, definition, { attempt: attempt!, home });
      if (pod.role !== 'leader') return;
      // Nothing is decided by what is only looked at.
      const mark = await (step === 'look' ? markOf : committedMarkOf)(pod, number);
      if (pod.role !== 'leader') return;
      led.push({ number, mark, copy: this.#movers.get(number)?.status });
    });
    await Promise.all(done);
    return led;
  }

  async #do(
    step: PartitionStep,
    pod: Pod,
    number: number,
    definition: TableDefinition,
    { attempt, home }: { attempt: number; home: number },
  ): Promise<void> {
    switch (step) {
      case 'void':
      case 'release':
        await this.#stop(number, attempt);
        return await voidUpTo(pod, number, attempt - 1, home);
      case 'fill':
        return await setMark(
          pod,
          number,
          { state: MarkState.filling, attempt, home },
          (old) => old === undefined || (old.state === MarkState.filling && old.attempt < attempt),
          true,
        );
      case 'copy':
        return await this.#copy(pod, number, definition, attempt);
      case 'freeze': {
        const mover = this.#movers.get(number);
        if (mover?.attempt !== attempt) throw new Error(`partition ${number} is not being copied`);
        await mover.freeze();
        // No other node has to confirm.
        if (definition.placement!.change!.sources.length > 1) return;
        return await this.#close(pod, number, attempt, home);
      }
      case 'decide':
      case 'close':
        return await this.#close(pod, number, attempt, home);
      case 'open':
        return await setMark(pod, number, { state: MarkState.whole, attempt, home }, (old) => {
          if (old?.attempt !== attempt) throw new Error(`partition ${number} is not filled`);
          return old.state === MarkState.filling;
        });
      case 'drop':
        // A leader of an earlier build closes a source without removing its rows.
        if (!isPartition(number) && pod.tableSize(number).rows > 0) await clearTable(pod, number);
        return;
    }
  }

  /**
   * Closes a source permanently. The same log entry removes its rows, because the coordinator may be lost before a later step.
   */
  async #close(pod: Pod, number: number, attempt: number, home: number): Promise<void> {
    await closeSource(pod, number, attempt, home);
    // Incremental backups know the rows under their old numbers.
    pod.parts.pins?.clear();
    await this.#stop(number, Infinity);
  }

  async #copy(
    pod: Pod,
    source: number,
    definition: TableDefinition,
    attempt: number,
  ): Promise<void> {
    if (this.#movers.get(source)?.attempt === attempt) return;
    await this.#stop(source, attempt);
    const ask = (number: number, question: PartitionQuestion): Promise<unknown> =>
      this.#options.askLeader(number, question);
    this.#movers.set(source, new PartitionMover({ pod, source, definition, ask }));
  }

  /** Ends the copy of an attempt before this one. */
  async #stop(source: number, before: number): Promise<void> {
    const mover = this.#movers.get(source);
    if (mover === undefined || mover.attempt >= before) return;
    this.#movers.delete(source);
    await mover.close();
  }

  /** Another leader asks the one here. */
  async answer(question: PartitionQuestion): Promise<unknown> {
    const number = question.kind === 'decide' ? question.home : question.target;
    // One that has no number of its own is the only source, and needs no answer from others.
    const pod = this.#options.podOf(number, '');
    if (pod?.role !== 'leader') throw new Error(notLedHere);
    switch (question.kind) {
      case 'fill':
        refuseIfFull(pod);
        return await this.#fill(pod, question);
      case 'durable': {
        const { target, source, attempt, slices } = question;
        const has = await read(pod, () => pod.marks!.slicesOf(target, source, attempt));
        if (has !== slices) throw new Error(`partition ${target} has ${has} slices, not ${slices}`);
        return await pod.durable();
      }
      case 'decide':
        await voidUpTo(pod, number, question.attempt, number);
        return (await committedMarkOf(pod, number))?.state === MarkState.closed;
    }
  }

  async #fill(pod: Pod, question: PartitionQuestion & { kind: 'fill' }): Promise<void> {
    const { key, target } = question;
    const ops = Buffer.from(question.ops, 'base64');
    const apply = (slice: Buffer): Promise<void> => fillPartition(pod, question, slice);
    if (key === undefined) await apply(ops);
    else await putRow(pod, target, Buffer.from(key, 'base64'), ops, apply);
  }

  // ---- what stays frozen

  /** The coordinator may be gone, or cut off. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#dropMovers();
    try {
      const frozen = new Set<string>();
      for (const pod of this.#options.pods()) {
        if (pod.role !== 'leader' || pod.marks?.isAny !== true) continue;
        for (const [number, mark] of await marksOf(pod)) {
          if (mark.state !== MarkState.frozen) continue;
          const key = `${number} ${mark.attempt}`;
          frozen.add(key);
          const since = this.#frozenSince.get(key) ?? performance.now();
          this.#frozenSince.set(key, since);
          if (performance.now() - since >= mostFrozenMs) this.#releaseSoon(key, pod, number, mark);
        }
      }
      for (const key of this.#frozenSince.keys()) {
        if (!frozen.has(key)) this.#frozenSince.delete(key);
      }
    } catch (error) {
      this.#options.report('info', 'frozen partitions cannot be looked at now', { err: error });
    } finally {
      this.#isLooking = false;
    }
  }

  /** One that cannot be released, for a leader is lost or cannot be reached, holds up no other. */
  #releaseSoon(key: string, pod: Pod, number: number, mark: PartitionMark): void {
    if (this.#releasing.has(key)) return;
    this.#releasing.add(key);
    this.#release(pod, number, mark)
      .catch((error: unknown) => {
        this.#options.report('info', 'a partition stays frozen for now', { err: error });
      })
      .finally(() => this.#releasing.delete(key));
  }

  /** Copies from partitions that are led elsewhere by now. */
  #dropMovers(): void {
    const pods = new Set(this.#options.pods());
    for (const [source, mover] of this.#movers) {
      if (pods.has(mover.pod) && mover.pod.role === 'leader') continue;
      this.#movers.delete(source);
      void mover.close();
    }
  }

  async #release(pod: Pod, number: number, { attempt, home }: PartitionMark): Promise<void> {
    if (home === number) {
      await voidUpTo(pod, number, attempt, home);
      return;
    }
    const isClosed = await this.#options.askLeader(home, { kind: 'decide', home, attempt });
    if (isClosed === true) await this.#close(pod, number, attempt, home);
    else await voidUpTo(pod, number, attempt, home);
  }
}

/** The rows of marks may have to be read from disk. */
async function read<T>(pod: Pod, from: () => T): Promise<T> {
  for (;;) {
    await pod.rowsReady;
    try {
      return from();
    } catch (error) {
      if (!(error instanceof ReadFault)) throw error;
      await error.ready;
    }
  }
}

function marksOf(pod: Pod): Promise<ReadonlyMap<number, PartitionMark>> {
  return read(pod, () => pod.marks!.all());
}

function markOf(pod: Pod, number: number): Promise<PartitionMark | undefined> {
  return read(pod, () => pod.marks!.get(number));
}

/** Rejects where it is not known whether the mark is in the log. One that is not may be undone. */
async function committedMarkOf(pod: Pod, number: number): Promise<PartitionMark | undefined> {
  const mark = await markOf(pod, number);
  await pod.durable();
  return mark;
}

/** The attempt, and all before it, can come to nothing from now on, unless one of them has closed the partition. */
async function voidUpTo(pod: Pod, number: number, attempt: number, home: number): Promise<void> {
  await setMark(pod, number, { state: MarkState.void, attempt, home }, (old) => {
    if (old === undefined) return true;
    if (old.state === MarkState.closed) return false;
    return old.attempt < attempt || (old.state === MarkState.frozen && old.attempt === attempt);
  });
}

async function closeSource(pod: Pod, number: number, attempt: number, home: number): Promise<void> {
  const mark = { state: MarkState.closed, attempt, home };
  const mayClose = (old: PartitionMark | undefined): boolean => {
    if (old?.attempt !== attempt || old.state === MarkState.void) {
      throw new Error(`attempt ${attempt} is void`);
    }
    return old.state === MarkState.frozen;
  };
  await setMark(pod, number, mark, mayClose, true);
}
