// Random operations on time series, as plain data: so small a world that points meet all the time.

import {
  hour,
  point,
  range,
  type FieldValue,
  type Point,
} from '../../engines/series-conformance/points.ts';
import type { SeriesTrial } from '../../engines/series-conformance/trial.ts';
import type { ReadOptions, Selected } from '../../engines/series-conformance/view.ts';
import type { CatalogChange, SeriesFilter } from '../../contracts/series-store.ts';
import type { Random } from '../support/random.ts';

export type Operation =
  | { kind: 'write'; database: string; policy: string; points: Point[] }
  | { kind: 'change'; change: CatalogChange }
  | { kind: 'delete'; of: 'points' | 'series'; selected: Selected }
  | { kind: 'retain'; now: number };

export const databases = ['db', 'other'];
export const policies = ['', 'short'];
export const measurements = ['m', 'n'];
export const fields = ['v', 'i', 'u', 's', 'b', 'w'];

/** Points are of some days; what is kept for days is looked at from their end. */
const span = 12n * 24n * hour;
const nowMs = Number(span / 1_000_000n);
const shortPolicy = { duration: 96n * hour, shardGroupDuration: 5n * hour };

export const firstSteps: readonly Operation[] = databases.flatMap((database): Operation[] => [
  { kind: 'change', change: { kind: 'createDatabase', database } },
  {
    kind: 'change',
    change: { kind: 'createRetentionPolicy', database, name: 'short', policy: shortPolicy },
  },
]);

export class SeriesSteps {
  readonly #random: Random;
  readonly #conflicts: boolean;
  #isOdd = false;

  /**
   * With `conflicts` some points have fields of other types than before, and nothing is deleted but whole
   * shards: when a field without points loses its type is for the engine to say.
   */
  constructor(random: Random, conflicts: boolean) {
    this.#random = random;
    this.#conflicts = conflicts;
  }

  next(): Operation[] {
    const random = this.#random;
    const database = random.pick(databases);
    const chance = random.next();
    if (chance < 0.9 || (this.#conflicts && chance < 0.985)) {
      return [{ kind: 'write', database, policy: random.pick(policies), points: this.#points() }];
    }
    if (chance < 0.96) {
      const [from, to] = this.#range();
      const selected = { database, ...this.#selection(), from, to };
      return [{ kind: 'delete', of: 'points', selected }];
    }
    if (chance < 0.985) {
      return [{ kind: 'delete', of: 'series', selected: { database, ...this.#selection() } }];
    }
    if (chance < 0.995) return [{ kind: 'retain', now: random.below(2 * nowMs) }];
    const dropped: CatalogChange = random.chance(0.5)
      ? { kind: 'dropDatabase', database }
      : { kind: 'dropRetentionPolicy', database, name: 'short' };
    const again = firstSteps.filter(
      (step) => step.kind === 'change' && step.change.database === database,
    );
    return [{ kind: 'change', change: dropped }, ...again];
  }

  read(): ReadOptions {
    const random = this.#random;
    const [from, to] = random.chance(0.4) ? [-(2n ** 62n), 2n ** 62n] : this.#range();
    const limit = random.chance(0.2) ? { rowsPerSeries: 1 + random.below(4) } : {};
    const filter = random.chance(0.3) ? { filter: this.#filter() } : {};
    return {
      database: random.pick(databases),
      retentionPolicy: random.pick(policies),
      measurement: random.pick(measurements),
      fields: random.chance(0.4) ? [random.pick(fields)] : fields.filter(() => random.chance(0.6)),
      descending: random.chance(0.5),
      from,
      to,
      ...limit,
      ...filter,
    };
  }

  /** Mostly in order and near each other, as real ones are. */
  #points(): Point[] {
    const random = this.#random;
    const count = random.chance(0.1) ? 1 + random.below(400) : 1 + random.below(12);
    const start = BigInt(Math.floor(random.next() * Number(span)));
    const step = BigInt(random.pick([1, 1_000_000, 1_000_000_000, 600_000_000_000]));
    const measurement = random.pick(measurements);
    const hosts = 1 + random.below(6);
    // A grid, so that points meet.
    const first = start - (start % (hour / 2n));
    const names = fields.filter(() => random.chance(0.5));
    if (names.length === 0) names.push('v');
    // Its type is whatever came first: now and then a batch has another one.
    this.#isOdd = this.#conflicts && random.chance(0.03);
    return range(count).map((i) => {
      const at = random.chance(0.05) ? BigInt(random.below(count)) : BigInt(i);
      const own = names.filter((_, n) => n === 0 || random.chance(0.9));
      const values = own.map((name): [string, FieldValue] => [name, this.#value(name)]);
      return point(this.#series(measurement, hosts), first + at * step, Object.fromEntries(values));
    });
  }

  #series(measurement: string, hosts: number): string {
    const host = this.#random.below(hosts);
    if (host === 5) return measurement;
    return `${measurement},host=h${host}${host % 2 === 0 ? `,region=r${host % 3}` : ''}`;
  }

  #value(field: string): FieldValue {
    const random = this.#random;
    switch (field) {
      case 'i':
        return random.chance(0.02)
          ? 2n ** 63n - 1n - BigInt(random.below(5))
          : BigInt(random.below(2000) - 1000);
      case 'u':
        return { unsigned: random.chance(0.02) ? 2n ** 64n - 1n : BigInt(random.below(1000)) };
      case 's':
        return random.chance(0.05) ? 'x'.repeat(random.below(500)) : `text ${random.below(20)}`;
      case 'b':
        return random.chance(0.5);
      case 'w':
        return this.#isOdd ? BigInt(random.below(100)) : random.below(100);
      default:
        return random.chance(0.3) ? random.next() : random.below(4000) / 4;
    }
  }

  #range(): [from: bigint, to: bigint] {
    const random = this.#random;
    const from = BigInt(Math.floor(random.next() * Number(span)));
    const length = BigInt(Math.floor(random.next() ** 3 * Number(span)));
    return [from - (from % (hour / 2n)), from + length];
  }

  #selection(): Selected {
    const random = this.#random;
    return {
      ...(random.chance(0.7) ? { measurement: random.pick(measurements) } : {}),
      ...(random.chance(0.6) ? { filter: this.#filter() } : {}),
      ...(random.chance(0.3) ? { retentionPolicy: 'short' } : {}),
    };
  }

  #filter(): SeriesFilter {
    const random = this.#random;
    const host = `h${random.below(6)}`;
    switch (random.below(4)) {
      case 0:
        return { kind: 'equal', tag: 'host', value: host };
      case 1:
        return { kind: 'notEqual', tag: 'host', value: host };
      case 2:
        return {
          kind: 'match',
          tag: 'host',
          pattern: '[0-2]',
          matches: (value) => /[0-2]/.test(value),
        };
      default:
        return {
          kind: random.chance(0.5) ? 'and' : 'or',
          terms: [
            { kind: 'equal', tag: 'region', value: random.pick(['', 'r0', 'r2']) },
            { kind: 'notEqual', tag: 'host', value: host },
          ],
        };
    }
  }
}

/** Does it; what is returned is what can be compared. */
export async function perform(operation: Operation, trial: SeriesTrial): Promise<unknown> {
  switch (operation.kind) {
    case 'write': {
      const { database, policy, points } = operation;
      const outcome = await trial.write(points, { database, policy, now: nowMs });
      return [outcome.written, outcome.dropped];
    }
    case 'change':
      return trial.change(operation.change);
    case 'delete':
      return trial.delete(operation.of, operation.selected);
    case 'retain':
      return trial.retain(operation.now);
  }
}

export function describeOperation(operation: Operation): string {
  return JSON.stringify(operation, (_, value: unknown) =>
    typeof value === 'bigint' ? `${value}` : value,
  ).slice(0, 300);
}
