// Makes room in memory by dropping rows according to `maxmemory-policy`. Only rows of the tenant whose command needs
// the room are dropped. Some rows are sampled and the best candidate is dropped, as in Redis.

import type { TableSpan } from '../../universal-row/command.ts';
import type { Rng } from '../../universal-row/environment.ts';
import type { Row } from '../../universal-row/rows.ts';
import type { Engine, RowTable } from '../../engines/engine.ts';
import type { TableRulesByNumber } from '../table-rules.ts';
import { AccessClock } from './access-clock.ts';

export const evictionPolicies = [
  'noeviction',
  'allkeys-lru',
  'allkeys-lfu',
  'allkeys-random',
  'volatile-lru',
  'volatile-lfu',
  'volatile-random',
  'volatile-ttl',
] as const;
export type EvictionPolicy = (typeof evictionPolicies)[number];

interface EvictorOptions {
  policy: EvictionPolicy;
  /** Rows of which the best goes. */
  samples: number;
  engine: Engine;
  tables: TableRulesByNumber;
  rng: Rng;
  /** Wall clock, ms. */
  now: () => number;
  /** Whether rows of the table stay, as a long command is at work on it. */
  isHeld: (table: number) => boolean;
  /** Drops a row, and logs that; false when that cannot be. */
  drop: (table: number, row: Row) => boolean;
}

/** Rows that one command drops at most: more go with the next ones. */
const rowsACommand = 64;

interface Candidate {
  table: number;
  row: Row;
  /** The greater, the sooner it goes. */
  score: number;
}

export class Evictor {
  /** Absent where the policy does not ask when rows were used. */
  readonly clock: AccessClock | undefined;
  /** Rows dropped, by the first table of their tenant. */
  readonly evicted = new Map<number, number>();
  readonly #options: EvictorOptions;

  constructor(options: EvictorOptions, before: Evictor | undefined) {
    const { policy, rng, now } = options;
    const isFrequency = policy.endsWith('lfu');
    this.#options = options;
    if (before !== undefined) this.evicted = before.evicted;
    const isKept = before?.clock?.isFrequency === isFrequency;
    if (isFrequency || policy.endsWith('lru')) {
      this.clock = isKept ? before.clock : new AccessClock(isFrequency, rng, now());
    }
  }

  get total(): number {
    let sum = 0;
    for (const count of this.evicted.values()) sum += count;
    return sum;
  }

  /** Drops rows of the span until so many bytes, and so many rows, are free. Returns the bytes. */
  makeRoom(span: TableSpan, bytes: number, rows: number): number {
    const tables = this.#tablesOf(span);
    let freed = 0;
    let dropped = 0;
    while ((freed < bytes || dropped < rows) && dropped < rowsACommand) {
      const best = this.#best(tables);
      if (best === undefined) break;
      const size = this.#options.engine.table(best.table).footprint(best.row);
      if (!this.#options.drop(best.table, best.row)) break;
      freed += Math.max(1, size);
      dropped++;
    }
    this.evicted.set(span.first, (this.evicted.get(span.first) ?? 0) + dropped);
    return freed;
  }

  #tablesOf({ first, count }: TableSpan): number[] {
    const { engine, tables, policy, isHeld } = this.#options;
    const isVolatile = policy.startsWith('volatile');
    const found: number[] = [];
    for (let table = first; table < first + count; table++) {
      if (!engine.holds(table) || isHeld(table)) continue;
      const rules = tables.get(table);
      if (rules === undefined || rules.readOnly) continue;
      const one = engine.table(table);
      if ((isVolatile ? one.expiringRows : one.rowCount()) > 0) found.push(table);
    }
    return found;
  }

  /** Best candidate among a few rows of each table, as Redis samples each database. */
  #best(tables: readonly number[]): Candidate | undefined {
    const { engine, policy, samples, rng } = this.#options;
    let best: Candidate | undefined;
    if (policy.endsWith('random')) {
      const from = Math.floor(rng.next() * tables.length);
      for (let i = 0; i < tables.length; i++) {
        const table = tables[(from + i) % tables.length]!;
        const row = this.#any(engine.table(table));
        if (row !== 0) return { table, row, score: 0 };
      }
      return undefined;
    }
    for (const number of tables) {
      const table = engine.table(number);
      for (let i = 0; i < samples; i++) {
        const row = this.#any(table);
        if (row === 0) break;
        const score = this.#score(number, table, row);
        if (best === undefined || score > best.score) best = { table: number, row, score };
      }
    }
    return best;
  }

  #any(table: RowTable): Row {
    const { policy, rng } = this.#options;
    const random = rng.next();
    return policy.startsWith('volatile')
      ? (table.anyExpiring?.(random) ?? 0)
      : table.anyRow(random);
  }

  #score(number: number, table: RowTable, row: Row): number {
    const now = this.#options.now();
    if (this.clock === undefined) return -table.expireAt(row);
    return this.clock.isFrequency
      ? 255 - this.clock.frequency(number, row, now)
      : this.clock.idleMs(number, row, now);
  }
}
