// Clients that are told when a row changes: blocked commands, WATCH, client-side caching.

import type { RowObserver } from '../universal-row/executor.ts';

export interface TouchedRow {
  table: number;
  key: Buffer;
}

export class RowObservers {
  readonly #observers = new Map<string, Set<RowObserver>>();

  /** Observed rows. */
  get size(): number {
    return this.#observers.size;
  }

  add(table: number, key: Buffer, observer: RowObserver): void {
    const id = idOf(table, key);
    let set = this.#observers.get(id);
    if (set === undefined) this.#observers.set(id, (set = new Set()));
    set.add(observer);
  }

  remove(table: number, key: Buffer, observer: RowObserver): void {
    const id = idOf(table, key);
    const set = this.#observers.get(id);
    if (set === undefined) return;
    set.delete(observer);
    if (set.size === 0) this.#observers.delete(id);
  }

  notify(touched: readonly TouchedRow[]): void {
    if (this.#observers.size === 0) return;
    for (const { table, key } of touched) {
      const set = this.#observers.get(idOf(table, key));
      if (set === undefined) continue;
      for (const observer of Array.from(set)) observer.rowChanged(table, key);
    }
  }

  /** Observed rows of these tables. */
  in(tables: ReadonlySet<number>): TouchedRow[] {
    const found: TouchedRow[] = [];
    for (const id of this.#observers.keys()) {
      const colon = id.indexOf(':');
      const table = Number(id.slice(0, colon));
      if (!tables.has(table)) continue;
      found.push({ table, key: Buffer.from(id.slice(colon + 1), 'latin1') });
    }
    return found;
  }
}

function idOf(table: number, key: Buffer): string {
  return `${table}:${key.toString('latin1')}`;
}
