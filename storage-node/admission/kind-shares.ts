// How the kinds of clients' work share places: by weight where they wait, and large work in few places at a time, since
// what has begun cannot be put aside for a small request that comes (ABase, section 4.3, and 2DFQ, to which it refers).

import { foregroundKinds, isLarge, WorkKind } from './work-kind.ts';

export interface KindSharesOptions {
  /** Small reads, small writes, large reads, large writes. */
  shares: readonly [number, number, number, number];
  /** Of all places, for large work when no small work has come for `quietMs`. */
  largeAlone: number;
  quietMs: number;
}

export const kindSharesDefaults: KindSharesOptions = {
  shares: [4, 4, 1, 1],
  largeAlone: 0.75,
  quietMs: 100,
};

export class KindShares {
  readonly #options: KindSharesOptions;
  /** Of all shares, by kind. */
  readonly #part: Float64Array;
  readonly #held = new Int32Array(foregroundKinds);
  /** What each has been served over its share, while it waits. */
  readonly #pass = new Float64Array(foregroundKinds);
  #virtual = 0;
  #smallAt = -Infinity;

  constructor(options: Partial<KindSharesOptions> = {}) {
    this.#options = { ...kindSharesDefaults, ...options };
    const { shares } = this.#options;
    const total = shares.reduce((sum, share) => sum + share, 0);
    this.#part = Float64Array.from(shares, (share) => share / total);
  }

  asked(kind: WorkKind, now: number): void {
    if (kind === WorkKind.smallRead || kind === WorkKind.smallWrite) this.#smallAt = now;
  }

  /** Whether one more of the kind may run in so many places. */
  mayBegin(kind: WorkKind, places: number, now: number): boolean {
    if (!isLarge(kind)) return true;
    const held = this.#held[kind]!;
    if (held < Math.max(1, Math.floor(places * this.#part[kind]!))) return true;
    const { largeAlone, quietMs } = this.#options;
    if (now - this.#smallAt <= quietMs) return false;
    const large = this.#held[WorkKind.largeRead]! + this.#held[WorkKind.largeWrite]!;
    return large < Math.floor(places * largeAlone);
  }

  began(kind: WorkKind): void {
    this.#held[kind]!++;
  }

  ended(kind: WorkKind): void {
    this.#held[kind]!--;
  }

  /** Some of the kind waits from now on. */
  joined(kind: WorkKind): void {
    this.#pass[kind] = Math.max(this.#pass[kind]!, this.#virtual);
  }

  /** Whose turn it is among the kinds whose bits are set; -1 for none. */
  turn(kinds: number): number {
    let first = -1;
    for (let kind = 0; kind < foregroundKinds; kind++) {
      if ((kinds & (1 << kind)) === 0) continue;
      if (first < 0 || this.#pass[kind]! < this.#pass[first]!) first = kind;
    }
    return first;
  }

  /** Work of the kind that waited begins. */
  served(kind: WorkKind, cost: number): void {
    this.#virtual = Math.max(this.#virtual, this.#pass[kind]!);
    this.#pass[kind]! += cost / this.#part[kind]!;
  }
}
