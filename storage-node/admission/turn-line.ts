// The batches of one tenant that wait for the tenant's turns. Small ones and large ones are in lines of their own, and
// share the turns 4 to 1, so that who asks for little does not wait as long as who asks for much (ABase, section 4.3).
// Under overload the newest epoch goes first (CockroachDB's admission control, "epoch-LIFO"): some are served while
// their clients still wait, rather than all of them too late. Each of them is of another connection, so that no
// connection's commands ever change places.

import { Fifo } from './fifo.ts';

export interface TurnOrder {
  /** The newest first, while the oldest has waited for long. */
  epochLifo: boolean;
  /** Small batches have more turns than large ones. */
  classes: boolean;
}

export interface TurnLineOptions {
  epochMs: number;
  /** The oldest has waited longer than this, in so many looks in a row, a tick apart: overload. */
  lateMs: number;
  ticks: number;
  tickMs: number;
  /** Turns of small batches to one of a large one. */
  smallPerLarge: number;
  /** Clients of ours may have no deadline: among so many turns that go to the newest one goes to the oldest. */
  newestPerOldest: number;
}

export const turnLineDefaults: TurnLineOptions = {
  epochMs: 100,
  lateMs: 100,
  ticks: 3,
  tickMs: 10,
  smallPerLarge: 4,
  newestPerOldest: 7,
};

interface Entry<T> {
  item: T;
  since: number;
  /** Of arrival in both lines. */
  order: number;
}

type Line<T> = Fifo<Entry<T>>;

/** Takes out the first of the newest epoch. */
function takeNewest<T>(line: Line<T>, epochMs: number): T {
  const epochOf = (index: number): number => Math.floor(line.at(index)!.since / epochMs);
  let at = line.length - 1;
  const epoch = epochOf(at);
  while (at > 0 && epochOf(at - 1) === epoch) at--;
  return line.take(at).item;
}

export class TurnLine<T> {
  readonly #order: Readonly<TurnOrder>;
  readonly #options: TurnLineOptions;
  readonly #small: Line<T> = new Fifo();
  readonly #large: Line<T> = new Fifo();
  #arrivals = 0;
  #smallSinceLarge = 0;
  #newestSinceOldest = 0;
  #isOverloaded = false;
  #lateTicks = 0;
  #tickedAt = -Infinity;

  /** `order` may change at any time. */
  constructor(order: Readonly<TurnOrder>, options: Partial<TurnLineOptions> = {}) {
    this.#order = order;
    this.#options = { ...turnLineDefaults, ...options };
  }

  get length(): number {
    return this.#small.length + this.#large.length;
  }

  /** The newest go first. */
  get isOverloaded(): boolean {
    return this.#isOverloaded;
  }

  push(item: T, isLarge: boolean, since: number): void {
    const line = isLarge ? this.#large : this.#small;
    line.push({ item, since, order: this.#arrivals++ });
  }

  /** Takes out whose turn it is. */
  next(now: number): T | undefined {
    const line = this.#line();
    if (line === undefined) return undefined;
    if (this.#order.epochLifo && now - this.#tickedAt >= this.#options.tickMs) this.#tick(now);
    this.#smallSinceLarge = line === this.#large ? 0 : this.#smallSinceLarge + 1;
    const item = this.#isNewestTurn() ? takeNewest(line, this.#options.epochMs) : line.shift().item;
    if (this.length === 0) this.#calm();
    return item;
  }

  #line(): Line<T> | undefined {
    const [small, large] = [this.#small, this.#large];
    if (small.length === 0) return large.length === 0 ? undefined : large;
    if (large.length === 0) return small;
    const isLarge = this.#order.classes
      ? this.#smallSinceLarge >= this.#options.smallPerLarge
      : large.at(0)!.order < small.at(0)!.order;
    return isLarge ? large : small;
  }

  #isNewestTurn(): boolean {
    if (!this.#isOverloaded || !this.#order.epochLifo) return false;
    if (this.#newestSinceOldest >= this.#options.newestPerOldest) {
      this.#newestSinceOldest = 0;
      return false;
    }
    this.#newestSinceOldest++;
    return true;
  }

  #tick(now: number): void {
    this.#tickedAt = now;
    const { lateMs, ticks } = this.#options;
    const oldest = Math.min(
      this.#small.at(0)?.since ?? Infinity,
      this.#large.at(0)?.since ?? Infinity,
    );
    this.#lateTicks = now - oldest > lateMs ? this.#lateTicks + 1 : 0;
    if (this.#lateTicks >= ticks) this.#isOverloaded = true;
  }

  /** All have had their turn: whoever comes now is served at once. */
  #calm(): void {
    this.#isOverloaded = false;
    this.#lateTicks = 0;
    this.#newestSinceOldest = 0;
  }
}
