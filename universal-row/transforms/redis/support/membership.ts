// Whether a member is in any of several sets or sorted sets. Each row can be asked; with many of them it
// costs less to gather their members once, as Redis always does.

import type { Row, Rows } from '../../../rows.ts';
import { Shape } from '../../../rows.ts';

export const askUpTo = 8;

interface Membership {
  has(b: Buffer, s: number, n: number): boolean;
  /** From here on the members of this row are in as well. */
  include(row: Row): void;
}

/** Starts with no members; `rowsToCome` is how many rows will be included. */
export function membership(rows: Rows, rowsToCome: number): Membership {
  return rowsToCome <= askUpTo ? new AskedRows(rows) : new GatheredMembers(rows);
}

class AskedRows implements Membership {
  readonly #rows: Rows;
  readonly #included: Row[] = [];

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  has(b: Buffer, s: number, n: number): boolean {
    for (const row of this.#included) if (this.#rows.field(row, b, s, n)) return true;
    return false;
  }

  include(row: Row): void {
    this.#included.push(row);
  }
}

class GatheredMembers implements Membership {
  readonly #rows: Rows;
  readonly #members = new Set<string>();

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  has(b: Buffer, s: number, n: number): boolean {
    return this.#members.has(b.toString('latin1', s, s + n));
  }

  include(row: Row): void {
    const add = (b: Buffer, s: number, n: number): void => {
      this.#members.add(b.toString('latin1', s, s + n));
    };
    if (this.#rows.shape(row) === Shape.set) this.#rows.eachField(row, add);
    else this.#rows.eachByRank(row, 0, this.#rows.count(row), false, add);
  }
}
