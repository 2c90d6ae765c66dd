// Rows that a gateway observes: rows that commands wait for, and watched rows.

import type { Executor, RowObserver } from '../../universal-row/executor.ts';

/** Limit for one link. */
const maxObservations = 1_000_000;

class Observation implements RowObserver {
  readonly id: number;
  readonly table: number;
  readonly key: Buffer;
  readonly executor: Executor;
  /** The row was touched. */
  isTouched = false;
  readonly #changed: (id: number) => void;

  constructor(
    id: number,
    table: number,
    key: Buffer,
    executor: Executor,
    changed: (id: number) => void,
  ) {
    this.id = id;
    this.table = table;
    this.key = key;
    this.executor = executor;
    this.#changed = changed;
  }

  rowChanged(): void {
    this.isTouched = true;
    this.#changed(this.id);
  }
}

export class Observations {
  readonly #all = new Map<number, Observation>();
  readonly #changed: (id: number) => void;

  /** `changed` is told the number of a row that was touched. */
  constructor(changed: (id: number) => void) {
    this.#changed = changed;
  }

  /** False when there are too many. */
  add(id: number, table: number, key: Buffer, executor: Executor): boolean {
    if (this.#all.size >= maxObservations || this.#all.has(id)) return false;
    const one = new Observation(id, table, key, executor, this.#changed);
    this.#all.set(id, one);
    executor.observe(table, key, one);
    return true;
  }

  remove(id: number): void {
    const one = this.#all.get(id);
    if (one === undefined) return;
    this.#all.delete(id);
    one.executor.unobserve(one.table, one.key, one);
  }

  /** Whether one of these rows was touched, or is not observed. */
  isTouched(ids: readonly number[]): boolean {
    return ids.some((id) => this.#all.get(id)?.isTouched !== false);
  }

  clear(): void {
    for (const id of this.#all.keys()) this.remove(id);
  }
}
