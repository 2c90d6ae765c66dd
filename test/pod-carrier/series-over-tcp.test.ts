// Random operations on time series through a link, and the same on a pod without one: both must answer the same. A failure
// prints its seed; POLYROW_SEED runs that one, POLYROW_FULL=1 many.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type CatalogChange,
  SeriesError,
  type ScanRequest,
  type SeriesSelection,
  type SeriesStore,
} from '../../contracts/series-store.ts';
import { batchesOf, SimpleSeriesCache } from '../../engines/series-conformance/batch-builder.ts';
import type { Point } from '../../engines/series-conformance/points.ts';
import { requestOf } from '../../engines/series-conformance/view.ts';
import type { SeriesPod } from '../../storage-node/series-pod.ts';
import { whenFinished } from '../../universal-row/slices.ts';
import {
  databases,
  describeOperation,
  firstSteps,
  measurements,
  type Operation,
  SeriesSteps,
} from '../conformance/series-random-steps.ts';
import { Random } from '../support/random.ts';
import { seedFrom } from '../support/seed.ts';
import { drained } from './drained-scan.ts';
import { Carrier, openPod } from './series-carrier.ts';

const full = process.env['POLYROW_FULL'] === '1';
const firstSeed = seedFrom('POLYROW_SEED');
const seeds = process.env['POLYROW_SEED'] !== undefined ? 1 : full ? 60 : 2;
const operations = full ? 800 : 250;
const nowMs = 12 * 24 * 3_600_000;

/** What an action came to, its error included. */
async function outcomeOf(act: () => Promise<unknown>): Promise<unknown> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof SeriesError)) throw error;
    return [error.constructor.name, error.message];
  }
}

async function written(
  store: SeriesStore,
  cache: SimpleSeriesCache,
  { database, policy, points }: { database: string; policy: string; points: readonly Point[] },
): Promise<unknown> {
  const outcomes: unknown[] = [];
  for (const batch of batchesOf(cache, points)) {
    const { written: stored, dropped, error } = await store.write(database, policy, batch);
    outcomes.push([stored, dropped, error]);
  }
  return outcomes;
}

class Twins {
  readonly #caches = [new SimpleSeriesCache(), new SimpleSeriesCache()] as const;
  readonly #local: SeriesPod;
  readonly #served: SeriesPod;
  readonly #carrier: Carrier;

  constructor(local: SeriesPod, served: SeriesPod, carrier: Carrier) {
    this.#local = local;
    this.#served = served;
    this.#carrier = carrier;
  }

  /** The same on both. */
  async perform(step: Operation): Promise<void> {
    const [expected, found] = [
      await outcomeOf(() => this.#performOn(this.#local, step, this.#caches[0])),
      await outcomeOf(() => this.#performOn(this.#carrier.remote, step, this.#caches[1])),
    ];
    expect(found, describeOperation(step)).toEqual(expected);
  }

  async #performOn(
    store: SeriesStore,
    step: Operation,
    cache: SimpleSeriesCache,
  ): Promise<unknown> {
    switch (step.kind) {
      case 'write':
        return await written(store, cache, step);
      case 'change':
        return await this.#change(store, step.change);
      case 'delete': {
        const selection = { database: 'db', ...step.selected };
        const slices =
          step.of === 'points' ? store.deletePoints(selection) : store.dropSeries(selection);
        return await whenFinished(slices);
      }
      case 'retain':
        // Its time comes by itself.
        return undefined;
    }
  }

  async #change(store: SeriesStore, change: CatalogChange): Promise<unknown> {
    await store.change(change);
    return [store.databases(), store.database(change.database)];
  }

  async scan(request: ScanRequest, random: Random): Promise<void> {
    const { remote } = this.#carrier;
    const own = await outcomeOf(() => drained(this.#served, request));
    // Of one pod, also the summaries are the same, but that a flush between two scans makes others.
    const again = await outcomeOf(() => drained(this.#served, request));
    const found = await outcomeOf(() => drained(remote, request, random));
    const last = await outcomeOf(() => drained(this.#served, request));
    const isStable = asText(own) === asText(again) && asText(again) === asText(last);
    if (isStable) expect(found).toEqual(own);
    if (request.summaries !== undefined) return;
    // Which series have no row in the range is found out as they are read, or before.
    const expected = await outcomeOf(() => drained(this.#local, request));
    expect(withRows(found)).toEqual(withRows(expected));
  }

  async schema(database: string, filter: ScanRequest['filter']): Promise<void> {
    const lists = async (store: SeriesStore): Promise<unknown> => {
      const of: SeriesSelection = { database, filter };
      const all: unknown[] = [
        await whenFinished(store.measurements(of)),
        await whenFinished(store.seriesKeys(of)),
        await whenFinished(store.seriesCardinality(of)),
      ];
      for (const measurement of measurements) {
        const within = { ...of, measurement, from: 0n, to: 10n ** 15n };
        all.push(
          await whenFinished(store.fieldKeys({ database, measurement })),
          await whenFinished(store.tagKeys(within)),
          await whenFinished(store.tagValues(within, 'host')),
        );
      }
      return all;
    };
    expect(await lists(this.#carrier.remote)).toEqual(await lists(this.#local));
  }
}

function withRows(outcome: unknown): unknown {
  if (Array.isArray(outcome)) return outcome;
  const scan = outcome as Awaited<ReturnType<typeof drained>>;
  return { ...scan, series: scan.series.filter(({ items }) => items.length > 0) };
}

function asText(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? `${one}n` : one));
}

let local: Awaited<ReturnType<typeof openPod>>;
let other: Awaited<ReturnType<typeof openPod>>;
let carrier: Carrier;

beforeEach(async () => {
  local = await openPod(nowMs);
  other = await openPod(nowMs);
  carrier = await Carrier.open(other.pod);
});

afterEach(async () => {
  await carrier.close();
  await local.close();
  await other.close();
});

describe('a store at another node answers as a pod in this thread', () => {
  for (let n = 0; n < seeds; n++) {
    const seed = firstSeed + n;
    test(`seed ${seed}`, async () => {
      const random = new Random(seed);
      const steps = new SeriesSteps(random, seed % 2 === 1);
      const twins = new Twins(local.pod, other.pod, carrier);
      for (const step of firstSteps) await twins.perform(step);
      for (let done = 0; done < operations; done++) {
        for (const step of steps.next()) await twins.perform(step);
        const options = steps.read();
        const width = random.pick([0n, 3_600_000_000_000n, 10n ** 12n * 77n]);
        const summaries = random.chance(0.5) ? { summaries: { width, offset: 0n } } : {};
        const totals = random.chance(0.5) ? { totals: random.pick([[], ['host']]) } : {};
        const request = requestOf({ ...options, ...summaries, ...(summaries.summaries && totals) });
        await twins.scan(request, random);
        if (random.chance(0.1)) await twins.schema(random.pick(databases), options.filter);
      }
    });
  }
});
