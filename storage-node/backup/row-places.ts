// Where the rows of a backup go: each table of it to a shadow table of a pod, or, where the table is divided otherwise than
// it was, each of its rows by the slot of its key.

import { hashSlot } from '../../universal-row/crc16.ts';
import { lastSlot } from '../../contracts/partition-map.ts';
import type { Pod } from '../pod.ts';
import type { SpreadRows } from './row-rewriter.ts';
import { shadowTables } from './shadow.ts';

/** A table of the backup, and where it goes; of several for one table, the slots of each. */
export interface TableMove {
  readonly from: number;
  readonly to: number;
  readonly first?: number;
  readonly last?: number;
}

export interface RowPlace {
  readonly shadow: number;
  readonly pod: Pod;
  readonly to: number;
  readonly first: number;
  readonly last: number;
}

/** A chain of backups has renames into other partitions, which its ops alone do not describe. */
class OtherPartitionsError extends Error {
  override readonly name = 'OtherPartitionsError';

  constructor(what: string) {
    super(
      `${what} between two of the backups: restore into the partitions that the table had then`,
    );
  }
}

export class RowPlaces {
  /** By table of the backup. */
  readonly #byTable = new Map<number, RowPlace[]>();
  /** Tables of the backup for each shadow table. */
  readonly #sources = new Map<number, Set<number>>();
  readonly pods: ReadonlySet<Pod>;

  constructor(moves: readonly TableMove[], podOf: (table: number) => Pod) {
    const shadows = new Map<number, number>();
    for (const { from, to, first = 0, last = lastSlot } of moves) {
      const shadow = shadows.get(to) ?? shadowTables.first + shadows.size;
      shadows.set(to, shadow);
      const places = this.#byTable.get(from) ?? [];
      this.#byTable.set(from, [...places, { shadow, pod: podOf(to), to, first, last }]);
      this.#sources.set(shadow, (this.#sources.get(shadow) ?? new Set()).add(from));
    }
    if (shadows.size > shadowTables.count) {
      throw new RangeError('too many tables for one restore');
    }
    this.pods = new Set(this.all().map(({ pod }) => pod));
  }

  /** Each shadow table once. */
  all(): RowPlace[] {
    const places = new Map(
      [...this.#byTable.values()].flat().map((place) => [place.shadow, place]),
    );
    return [...places.values()];
  }

  of(table: number): readonly RowPlace[] {
    return this.#byTable.get(table) ?? [];
  }

  /** Whether all its rows belong to one table here. */
  isWhole(table: number): boolean {
    const [place, ...others] = this.of(table);
    return (
      place !== undefined && others.length === 0 && place.first === 0 && place.last === lastSlot
    );
  }

  /** `isWhole`, and nothing else is in that table. */
  isAlone(table: number): boolean {
    return this.isWhole(table) && this.#isOwn(this.of(table)[0]!);
  }

  /** One table of the backup alone is in it. */
  #isOwn({ shadow }: RowPlace): boolean {
    return this.#sources.get(shadow)!.size === 1;
  }

  /** The shadow table in this pod that a row goes to; undefined for none. */
  target(pod: Pod, table: number, b?: Buffer, s?: number, n?: number): number | undefined {
    const [place] = this.of(table);
    if (place === undefined) return undefined;
    if (b === undefined ? this.isAlone(table) : this.isWhole(table)) {
      return place.pod === pod ? place.shadow : undefined;
    }
    if (b === undefined) return undefined;
    const found = this.#bySlot(table, b, s!, n!);
    return found?.pod === pod ? found.shadow : undefined;
  }

  #bySlot(table: number, b: Buffer, s: number, n: number): RowPlace | undefined {
    const slot = hashSlot(b, s, n);
    return this.of(table).find(({ first, last }) => slot >= first && slot <= last);
  }

  /** For `RowRewriter`. */
  spread(pod: Pod): SpreadRows {
    return {
      cleared: (table) => {
        const places = this.of(table);
        if (this.isAlone(table)) return [];
        if (places.some((place) => !this.#isOwn(place))) {
          throw new OtherPartitionsError('a partition was emptied');
        }
        return places.filter((place) => place.pod === pod).map(({ shadow }) => shadow);
      },
      swapped: (...tables) => {
        const isMoved = (table: number): boolean =>
          this.of(table).length > 0 && !this.isAlone(table);
        if (tables.some(isMoved)) throw new OtherPartitionsError('a database was swapped');
      },
      renamed: (table, from, b, s, n) => {
        if (this.of(table).length === 0 || this.isWhole(table)) return true;
        const isSame = this.#bySlot(table, from, 0, from.length) === this.#bySlot(table, b, s, n);
        if (!isSame) throw new OtherPartitionsError('a key was renamed');
        return true;
      },
    };
  }
}
