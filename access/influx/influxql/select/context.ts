// Environment and limits of a running SELECT.

import type { Slices } from '../../../../universal-row/slices.ts';
import type { MaybePromise } from '../../../../universal-row/maybe-promise.ts';
import type { SeriesStore, WriteOutcome } from '../../../../contracts/series-store.ts';
import { contendedSliceMs } from '../../../../contracts/pod-admission.ts';
import { QueryError } from '../result.ts';

/** Limits of one statement; 0 for no limit. */
export interface SelectLimits {
  readonly maxMemoryBytes: number;
  readonly timeoutMs: number;
}

export interface SelectContext {
  readonly store: SeriesStore;
  /** Where sources name none; '' when the request does not either. */
  readonly database: string;
  readonly retentionPolicy: string;
  /** Unix nanoseconds. */
  readonly now: bigint;
  /** Throws once the query was killed. */
  readonly task: { throwIfKilled(): void };
  readonly limits: SelectLimits;
  /** Memory limit shared with other statements. */
  readonly memory?: Memory | undefined;
  /** Counters for the work of reading, and its cost, where it is charged. */
  readonly work?: SelectWork | undefined;
  readonly cost?: (() => Float64Array | undefined) | undefined;
  /** Processor time counted so far, in milliseconds: memory use is charged over this time. */
  readonly processorMs?: (() => number) | undefined;
  /** Yields to other work. Asked for whenever the statement has run for a while. */
  yieldNow(): Promise<void>;
  /** Whether others are about: then a while is shorter. */
  isCrowded?(now: number): boolean;
  /** For SELECT INTO: stores line protocol with times in nanoseconds. '' is the default policy. */
  writePoints?(
    database: string,
    retentionPolicy: string,
    lines: string,
  ): MaybePromise<WriteOutcome>;
}

/** Work counters of a statement. */
interface SelectWork {
  series: number;
  /** Series of the answers. */
  groups: number;
  blocks: number;
  rows: number;
  /** Rows that functions needed all of at once. */
  keptRows: number;
  /** Bytes held, times milliseconds of the processor time that the request stands for. */
  held: number;
}

export interface Memory {
  /** Takes memory, or gives some back when `bytes` is negative. Throws when there is none left. */
  reserve(bytes: number): void;
}

/** Memory of a statement, with its purpose. */
export interface RunMemory extends Memory {
  /** So many more rows are held on to. */
  countKept(rows: number): void;
}

/** Memory held by one part of a statement, released together. */
export class Reservation implements RunMemory {
  readonly #from: RunMemory;
  #bytes = 0;

  constructor(from: RunMemory) {
    this.#from = from;
  }

  countKept(rows: number): void {
    this.#from.countKept(rows);
  }

  reserve(bytes: number): void {
    this.#from.reserve(bytes);
    this.#bytes += bytes;
  }

  release(): void {
    this.#from.reserve(-this.#bytes);
    this.#bytes = 0;
  }
}

/** Longest stretch of work between two pauses. */
const sliceMs = 3;

/** Books of one running statement, shared by its subqueries. */
export class Run implements RunMemory {
  readonly context: SelectContext;
  readonly limits: SelectLimits;
  points = 0;
  series = 0;
  blocks = 0;
  /** Promise a source waits for when it returned nothing. */
  waits: Promise<unknown> | undefined;
  readonly startedAt = performance.now();
  #sliceStart = performance.now();
  #memory = 0;
  #heldSince = 0;

  constructor(context: SelectContext) {
    this.context = context;
    this.limits = context.limits;
  }

  /** A pause is due. */
  get isDue(): boolean {
    const now = performance.now();
    const ms = now - this.#sliceStart;
    if (ms < contendedSliceMs) return false;
    return ms >= sliceMs || this.context.isCrowded?.(now) === true;
  }

  async pause(): Promise<void> {
    this.check();
    await this.context.yieldNow();
    this.check();
    this.#sliceStart = performance.now();
  }

  /** Until a source that gave nothing has more. */
  async untilHere(): Promise<void> {
    const { waits } = this;
    this.waits = undefined;
    await waits;
    this.check();
  }

  /**
   * Runs work in slices, with pauses between them. Releases its memory when the statement must end.
   */
  async finished<T>(slices: Slices<T>): Promise<T> {
    try {
      for (;;) {
        const step = slices.next();
        if (step.done === true) return step.value;
        if (step.value !== undefined) await step.value;
        if (this.isDue) await this.pause();
      }
    } finally {
      slices.return(undefined as never);
    }
  }

  /** Throws when the statement must end. */
  check(): void {
    this.context.task.throwIfKilled();
    const { timeoutMs } = this.limits;
    if (timeoutMs > 0 && performance.now() - this.startedAt > timeoutMs) {
      throw new QueryError('query-timeout limit exceeded');
    }
  }

  countSeries(added: number): void {
    this.series += added;
    const { work } = this.context;
    if (work !== undefined) work.series += added;
  }

  countPoints(added: number): void {
    this.points += added;
    this.blocks++;
    const { work } = this.context;
    if (work !== undefined) {
      work.rows += added;
      work.blocks++;
    }
  }

  countGroups(added: number): void {
    const { work } = this.context;
    if (work !== undefined) work.groups += added;
  }

  countKept(rows: number): void {
    const { work } = this.context;
    if (work !== undefined) work.keptRows += rows;
  }

  reserve(bytes: number): void {
    const { work } = this.context;
    if (work !== undefined) {
      // Not the time of the clock, by which a busy server would charge more than an idle one.
      const now = this.context.processorMs?.() ?? 0;
      work.held += this.#memory * (now - this.#heldSince);
      this.#heldSince = now;
    }
    this.#memory += bytes;
    const { maxMemoryBytes } = this.limits;
    if (bytes > 0 && maxMemoryBytes > 0 && this.#memory > maxMemoryBytes) {
      throw new QueryError(
        `query memory limit exceeded: (${this.#memory}/${maxMemoryBytes} bytes)`,
      );
    }
    this.context.memory?.reserve(bytes);
  }
}
