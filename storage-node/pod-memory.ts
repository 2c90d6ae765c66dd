// The memory of a pod: how much it may use, and which rows go when there is no room.

import { isWrite, type Command } from '../universal-row/command.ts';
import type { Clock, Rng } from '../universal-row/environment.ts';
import { ReadFault } from '../universal-row/errors.ts';
import type { Row } from '../universal-row/rows.ts';
import { type EvictionPolicy, Evictor } from './eviction/evictor.ts';
import type { PodTick } from './pod-tick.ts';
import type { TableHolds } from './table-holds.ts';
import type { TableRulesByNumber } from './table-rules.ts';

// Commands between two checks of the memory where rows are evicted.
const commandsBetweenLooks = 32;

interface PodMemoryOptions {
  tick: PodTick;
  tables: TableRulesByNumber;
  holds: TableHolds;
  clock: Clock;
  rng: Rng;
  maxMemoryBytes: number;
}

export class PodMemory {
  /** Commands that need memory are refused. */
  isFull = false;
  /** Present while rows are dropped to make room. */
  evictor: Evictor | undefined;
  readonly #options: PodMemoryOptions;
  #maxBytes: number;
  #evictions: Evictor | undefined;
  #looksLeft = 0;

  constructor(options: PodMemoryOptions) {
    this.#options = options;
    this.#maxBytes = options.maxMemoryBytes;
  }

  get maxBytes(): number {
    return this.#maxBytes;
  }

  /** Holds for the next command on. */
  set maxBytes(bytes: number) {
    this.#maxBytes = bytes;
    if (this.evictor === undefined || bytes === Infinity) this.#look();
    else this.#looksLeft = 0;
  }

  /** See `Pod.setEviction`. */
  setEviction(policy: EvictionPolicy, samples: number): void {
    const { tick, tables, holds, clock, rng } = this.#options;
    const options = {
      policy,
      samples,
      engine: tick.engine,
      tables,
      rng,
      now: () => clock.now(),
      isHeld: (table: number) => holds.isHeld(table),
      drop: (table: number, row: Row) =>
        !(tick.changeTable(table, () => tick.tx.evict(row)) instanceof ReadFault),
    };
    this.#evictions = new Evictor(options, this.#evictions);
    this.evictor = policy === 'noeviction' ? undefined : this.#evictions;
    tick.tx.clock = this.evictor?.clock;
  }

  get evictedRows(): ReadonlyMap<number, number> {
    return this.#evictions?.evicted ?? new Map();
  }

  /** Called regularly, independent of commands. */
  check(): void {
    if (this.#maxBytes === Infinity) return;
    // The next writing command checks the memory and evicts rows. Until then no command is refused.
    if (this.evictor !== undefined) this.#looksLeft = 0;
    else this.#look();
  }

  /** Returns by how many bytes there is too much. */
  #look(): number {
    this.#looksLeft = commandsBetweenLooks;
    const { engine } = this.#options.tick;
    const over = this.#maxBytes === Infinity ? 0 : engine.stats().usedBytes - this.#maxBytes;
    this.isFull = over > 0;
    return over;
  }

  /** Before a command that may write: rows of its own tenant go, some at most. For while there is an evictor. */
  makeRoom({ table, span, action, isPeeking }: Command): void {
    const { tick, tables } = this.#options;
    tick.tx.isUsing = isPeeking !== true;
    if (!isWrite(action) || tick.writeFailure !== undefined) return;
    // Only the leader evicts.
    if (tick.replica?.isShut === true) return;
    const quota = tables.get(table)?.quota;
    let bytes = this.isFull || --this.#looksLeft < 0 ? Math.max(0, this.#look()) : 0;
    const excess = quota?.excess();
    if (excess !== undefined) bytes = Math.max(bytes, excess.bytes);
    if (bytes === 0 && (excess === undefined || excess.rows === 0)) return;
    const freed = this.evictor!.makeRoom(span, bytes, excess?.rows ?? 0);
    quota?.freed(freed);
    // The command runs even if eviction freed too little, as in Redis; later commands free the
    // rest.
    if (freed > 0) this.isFull = false;
    this.#looksLeft = 0;
  }
}
