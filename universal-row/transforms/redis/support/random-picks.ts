// Choosing elements by chance. All draw from `rows.random()` and from nothing else.

import type { Rows } from '../../../rows.ts';

/** A position below `size`. */
export function pickOne(rows: Rows, size: number): number {
  return Math.floor(rows.random() * size);
}

/**
 * Whether to draw `count` of `size` positions one by one, a position drawn before being drawn again;
 * otherwise it is cheaper to walk all elements and give each its chance.
 */
export function isFew(count: number, size: number): boolean {
  return count * 3 <= size;
}

/** `count` different positions below `size`, where `isFew`. */
export function pickFew(rows: Rows, count: number, size: number): Set<number> {
  const picked = new Set<number>();
  while (picked.size < count) picked.add(pickOne(rows, size));
  return picked;
}

/**
 * Picks exactly `wanted` elements on one walk over all of them. All elements are picked with equal
 * probability. It needs no memory.
 */
export class WalkPicker {
  readonly #rows: Rows;
  #wanted: number;
  #left: number;

  constructor(rows: Rows, wanted: number, size: number) {
    this.#rows = rows;
    this.#wanted = wanted;
    this.#left = size;
  }

  #wantedAt = 0;

  mark(): number {
    this.#wantedAt = this.#wanted;
    return this.#left;
  }

  rollback(mark: number): void {
    this.#left = mark;
    this.#wanted = this.#wantedAt;
  }

  take(): boolean {
    const chosen = this.#rows.random() * this.#left < this.#wanted;
    this.#left--;
    if (chosen) this.#wanted--;
    return chosen;
  }
}
