// Clients that are told when a row changes: blocked commands, WATCH, client-side caching.

import { emptyBytes } from '../universal-row/bytes.ts';
import type { RowObserver } from '../universal-row/executor.ts';
import { Change, type RowChange } from '../universal-row/row-change.ts';

interface ObservedRow {
  table: number;
  key: Buffer;
}

/** With the milliseconds since 1970 at which each began. */
type Observers = Map<RowObserver, number>;

/** Beyond as many observed rows of the tables that a command changes as a whole, they are not looked up one by one. */
const lookedUpRows = 4096;

export class RowObservers {
  /** By table, then by key: one character a byte. */
  readonly #tables = new Map<number, Map<string, Observers>>();
  #size = 0;

  /** Observed rows. */
  get size(): number {
    return this.#size;
  }

  /** A row that had expired by `now` does not count as changed for this observer when it is dropped. */
  add(table: number, key: Buffer, observer: RowObserver, now = 0): void {
    let rows = this.#tables.get(table);
    if (rows === undefined) this.#tables.set(table, (rows = new Map()));
    const name = key.toString('latin1');
    let observers = rows.get(name);
    if (observers === undefined) {
      rows.set(name, (observers = new Map()));
      this.#size++;
    }
    if (!observers.has(observer)) observers.set(observer, now);
  }

  remove(table: number, key: Buffer, observer: RowObserver): void {
    const rows = this.#tables.get(table);
    const name = key.toString('latin1');
    const observers = rows?.get(name);
    if (rows === undefined || observers === undefined) return;
    observers.delete(observer);
    if (observers.size > 0) return;
    rows.delete(name);
    this.#size--;
    if (rows.size === 0) this.#tables.delete(table);
  }

  /** Whether a row is observed. */
  has(table: number, b: Buffer, s: number, n: number): boolean {
    return this.#tables.get(table)?.has(b.toString('latin1', s, s + n)) === true;
  }

  /** Removes and returns the observed rows of a table. */
  take(table: number): { key: Buffer; observers: ReadonlySet<RowObserver> }[] {
    const rows = this.#tables.get(table);
    if (rows === undefined) return [];
    this.#tables.delete(table);
    this.#size -= rows.size;
    return Array.from(rows, ([name, observers]) => ({
      key: keyOf(name),
      observers: new Set(observers.keys()),
    }));
  }

  notify(touched: readonly RowChange[]): void {
    if (this.#size === 0) return;
    for (const { table, key, change, isWholeTable, dueAt } of touched) {
      if (isWholeTable === true) this.#notifyTable(table);
      else if (change !== Change.missed) {
        const observers = this.#tables.get(table)?.get(key.toString('latin1'));
        if (observers !== undefined) notifyAll(observers, table, key, dueAt);
      }
    }
  }

  /** Any observed row may have changed. */
  all(): void {
    for (const table of Array.from(this.#tables.keys())) this.#notifyTable(table);
  }

  #notifyTable(table: number): void {
    for (const [name, observers] of Array.from(this.#tables.get(table) ?? [])) {
      notifyAll(observers, table, keyOf(name));
    }
  }

  /**
   * Changes to report where whole tables change: the observed rows of which `isThere` is true.
   * Where very many are observed, all of them count as changed.
   */
  touchedIn(tables: readonly number[], isThere: (key: Buffer) => boolean): RowChange[] {
    let count = 0;
    for (const table of tables) count += this.#tables.get(table)?.size ?? 0;
    if (count > lookedUpRows) {
      return tables.map((table) => ({ ...unchanged, table, key: emptyBytes, isWholeTable: true }));
    }
    return this.#in(tables)
      .filter(({ key }) => isThere(key))
      .map((row) => ({ ...unchanged, ...row }));
  }

  /** Observed rows of these tables. */
  #in(tables: Iterable<number>): ObservedRow[] {
    const found: ObservedRow[] = [];
    for (const table of tables) {
      for (const name of this.#tables.get(table)?.keys() ?? []) {
        found.push({ table, key: keyOf(name) });
      }
    }
    return found;
  }
}

/** For observers only: followers of all changes are notified of tables by themselves. */
const unchanged = { change: 0, by: undefined };

/** An observer that hears of a change may stop to observe. */
function notifyAll(observers: Observers, table: number, key: Buffer, dueAt = Infinity): void {
  for (const [observer, since] of Array.from(observers)) {
    if (dueAt > since) observer.rowChanged(table, key);
  }
}

function keyOf(name: string): Buffer {
  return Buffer.from(name, 'latin1');
}
