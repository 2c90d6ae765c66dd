// Long commands run in steps. Other work runs between two steps, but no other command changes the rows of the tables
// that a long command holds.

import type { Arguments } from './arguments.ts';
import { ReadFault } from './errors.ts';
import type { Reply } from './reply.ts';
import type { Row, Rows } from './rows.ts';

/**
 * The work from one `yield` to the next is one step. One that ends with a `ReadFault` is undone as
 * a whole, writes and answer included: the generator is resumed once the fault is over, and then
 * does the step again. Row handles do not outlive a step; bytes that rows gave out do not either.
 */
export type Steps = Generator<ReadFault | undefined, void, undefined>;

/** The long form of a transform; see `Transform`. As that it is pure but for rows, args and reply. */
export type StepTransform = (rows: Rows, args: Arguments, reply: Reply) => Steps;

/** Elements that one step handles, about. */
export const stepElements = 512;
/** Bytes that one step copies, about. */
export const stepBytes = 128 * 1024;

/** Beyond either a command takes its long form. Tests set them to 0, so that every command does. */
export const shortWork = { elements: 2048, bytes: 512 * 1024 };

/** Whether to walk a row, or as many elements of one, is long. */
export function isLong(rows: Rows, row: Row, elements = Infinity): boolean {
  if (row === 0) return false;
  const count = rows.count(row);
  const part = Math.min(elements, count);
  if (part > shortWork.elements) return true;
  return part > 0 && (rows.footprint(row) / count) * part > shortWork.bytes;
}

/** Runs one step. Changes outside of rows and reply must follow it, based on its result. */
export function* step<T>(attempt: () => T): Generator<ReadFault | undefined, T, undefined> {
  yield;
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (!(error instanceof ReadFault)) throw error;
      yield error;
    }
  }
}

/** Carries the long form out in one go, as it turned out to be short. */
export function runNow(steps: Steps): void {
  for (const fault of steps) if (fault !== undefined) throw fault;
}

/** Size of one step of a walk, by elements and by bytes. */
export class StepSize {
  elements: number;
  isStopped = false;
  readonly #most: number;
  #bytes = 0;
  #seen = 0;

  /** `weight` times as much is done for each element as usual. */
  constructor(weight = 1) {
    this.#most = Math.max(1, Math.floor(stepElements / weight));
    this.elements = Math.min(64, this.#most);
  }

  /** Before a step is begun, or begun again. */
  begin(): void {
    this.#bytes = 0;
    this.#seen = 0;
    this.isStopped = false;
  }

  /** A walk over this row cannot end early, so that it takes no more elements than are likely to fit. */
  fit(rows: Rows, row: Row): void {
    const average = rows.footprint(row) / Math.max(1, rows.count(row));
    this.elements = Math.max(1, Math.min(this.elements, Math.floor(stepBytes / average)));
  }

  /** Counts an element; true when the step should end with it. */
  add(bytes: number): boolean {
    this.#bytes += bytes;
    this.#seen++;
    return this.#bytes >= stepBytes || this.#seen >= this.elements;
  }

  /** The walk is over. */
  stop(): void {
    this.isStopped = true;
  }

  /** Elements counted in this step. */
  get seen(): number {
    return this.#seen;
  }

  /** Sets how many elements the next step takes. */
  end(): void {
    if (this.#bytes >= stepBytes) this.elements = Math.max(1, this.#seen >>> 1);
    else this.elements = Math.min(this.#most, this.elements * 2);
  }
}
