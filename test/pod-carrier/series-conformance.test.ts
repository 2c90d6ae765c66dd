// The conformance kit of engines for time series, whose points come and whose answers go by the link between a node and a
// gateway. POLYROW_FULL=1 runs all of it, otherwise a sample.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RemoteSeriesStore } from '../../access/influx/pods/remote-series-store.ts';
import type {
  ScannedSeries,
  ScanRequest,
  SeriesCursor,
  SeriesScan,
} from '../../contracts/series-store.ts';
import type { SeriesSubject } from '../../engines/series-conformance/trial.ts';
import { seriesConformance } from '../../engines/series-conformance.ts';
import type { SeriesEngine, SeriesReads } from '../../engines/series-engine.ts';
import { TsmEngine } from '../../engines/tsm/tsm-engine.ts';
import { FaultyDisk } from '../../storage-node/disk/faulty-disk.ts';
import type { ServedStore } from '../../storage-node/pod-server/served-series.ts';
import type { BlockSummary, SeriesRows } from '../../universal-row/series/column.ts';
import { systemRng } from '../../universal-row/environment.ts';
import { oneSlice, type Slices, whenFinished } from '../../universal-row/slices.ts';
import { Carrier, served } from './series-carrier.ts';
import { stubStore } from './stub-store.ts';

const full = process.env['POLYROW_FULL'] === '1';
/** One case of so many. */
const sample = full ? 1 : 6;

type Piece = SeriesRows | BlockSummary;
type Answer = { readonly value: unknown } | { readonly error: unknown };

/** Answers that come later, for checks that want them at once: a check runs again until it has all that it asks for. */
class Answers implements SeriesReads {
  readonly #store: RemoteSeriesStore;
  readonly #known = new Map<string, Answer>();
  #missing: Promise<void>[] = [];

  constructor(store: RemoteSeriesStore) {
    this.#store = store;
  }

  async check(run: () => void): Promise<void> {
    for (;;) {
      let failure: { error: unknown } | undefined;
      try {
        run();
      } catch (error) {
        failure = { error };
      }
      const missing = this.#missing.splice(0);
      if (missing.length > 0) await Promise.all(missing);
      else if (failure === undefined) return;
      else throw failure.error;
    }
  }

  #answer<T>(question: string, of: unknown, ask: () => Promise<T>): T {
    const key = JSON.stringify([question, of], (_, value: unknown) =>
      typeof value === 'bigint' ? `${value}n` : value,
    );
    const known = this.#known.get(key);
    if (known === undefined) {
      const answered = ask().then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      );
      this.#missing.push(answered.then((answer) => void this.#known.set(key, answer)));
      throw new Error('the answer is on its way');
    }
    if ('error' in known) throw known.error;
    return known.value as T;
  }

  #names(
    what: 'measurements' | 'tagKeys' | 'seriesKeys',
    selection: Parameters<SeriesReads['tagKeys']>[0],
  ): Slices<string[]> {
    const ask = (): Promise<string[]> => whenFinished(this.#store[what](selection));
    return oneSlice(() => this.#answer(what, selection, ask));
  }

  databases: SeriesReads['databases'] = () => this.#store.databases();
  database: SeriesReads['database'] = (name) => this.#store.database(name);
  measurements: SeriesReads['measurements'] = (selection) =>
    this.#names('measurements', selection as Parameters<SeriesReads['tagKeys']>[0]);
  tagKeys: SeriesReads['tagKeys'] = (selection) => this.#names('tagKeys', selection);
  seriesKeys: SeriesReads['seriesKeys'] = (selection) =>
    this.#names('seriesKeys', selection as Parameters<SeriesReads['tagKeys']>[0]);
  tagValues: SeriesReads['tagValues'] = (selection, tag) =>
    oneSlice(() =>
      this.#answer('tagValues', [selection, tag], () =>
        whenFinished(this.#store.tagValues(selection, tag)),
      ),
    );
  seriesCardinality: SeriesReads['seriesCardinality'] = (selection) =>
    oneSlice(() =>
      this.#answer('seriesCardinality', selection, () =>
        whenFinished(this.#store.seriesCardinality(selection)),
      ),
    );
  fieldKeys: SeriesReads['fieldKeys'] = (selection) =>
    this.#answer('fieldKeys', selection, () => whenFinished(this.#store.fieldKeys(selection)));
  scan: SeriesReads['scan'] = (request) =>
    oneSlice(() => this.#answer('scan', request, () => drained(this.#store, request)));
}

/** The whole scan, to be read as often as one likes. */
async function drained(store: RemoteSeriesStore, request: ScanRequest): Promise<SeriesScan> {
  const scan = await whenFinished(store.scan(request));
  const pieces = new Map<ScannedSeries, readonly Piece[]>();
  try {
    for (const series of scan.series) pieces.set(series, await allOf(scan.cursor(series)));
  } finally {
    scan.close();
  }
  return {
    fieldTypes: scan.fieldTypes,
    series: scan.series,
    seriesCount: scan.seriesCount,
    cursor: (series) => {
      const left = pieces.get(series)!.slice();
      return { next: () => left.shift() };
    },
    close: () => {},
  };
}

async function allOf(cursor: SeriesCursor): Promise<Piece[]> {
  const pieces: Piece[] = [];
  for (;;) {
    const piece = cursor.next();
    if (piece === undefined) return pieces;
    if (piece.kind === 'rows' && piece.count === 0) await cursor.waits;
    else pieces.push(structuredClone(piece));
  }
}

let carrier: Carrier;
let opened = 0;
let writes = 0;
let checks = 0;
const root = mkdtempSync(join(tmpdir(), 'polyrow-series-link-'));
beforeAll(async () => {
  carrier = await Carrier.open(stubStore());
});
afterAll(async () => {
  await carrier.close();
  rmSync(root, { recursive: true, force: true });
  expect(writes).toBeGreaterThan(0);
  expect(checks).toBeGreaterThan(0);
});

async function asking<T>(
  store: ServedStore,
  ask: (remote: RemoteSeriesStore) => Promise<T>,
): Promise<T> {
  carrier.series.served = served(store);
  const remote = carrier.storeOver(carrier.link);
  try {
    await remote.ready;
    return await ask(remote);
  } finally {
    remote.close();
  }
}

/** The engine as a pod serves it. */
function readable(engine: SeriesEngine): ServedStore {
  return stubStore({
    catalogVersion: engine.catalogVersion,
    databases: () => [...engine.databases()],
    database: (name) => engine.database(name),
    scan: (request) => engine.scan(request),
    measurements: (selection) => engine.measurements(selection),
    fieldKeys: (selection) => oneSlice(() => engine.fieldKeys(selection)),
    tagKeys: (selection) => engine.tagKeys(selection),
    tagValues: (selection, tag) => engine.tagValues(selection, tag),
    seriesKeys: (selection) => engine.seriesKeys(selection),
    seriesCardinality: (selection) => engine.seriesCardinality(selection),
  });
}

const disk = new FaultyDisk({ rng: systemRng });
const subject: SeriesSubject = {
  model: 'tsm',
  create: (directory) => new TsmEngine({ directory, disk, headBytes: 64 * 1024, coldAfterMs: 0 }),
  newDirectory: () => join(root, String(++opened)),
  carrier: {
    write: async (database, policy, batch, store) => {
      writes++;
      const own = stubStore({
        write: (...[toDatabase, toPolicy, rows]) => {
          expect([toDatabase, toPolicy]).toEqual([database, policy]);
          return store(rows);
        },
      });
      return await asking(own, (remote) => remote.write(database, policy, batch));
    },
    check: async (engine, check) => {
      checks++;
      await asking(readable(engine), async (remote) => {
        const answers = new Answers(remote);
        await answers.check(() => check(answers));
      });
    },
  },
};

for (const [i, { name, run }] of seriesConformance(subject).entries()) {
  if (i % sample === 0) test(name, run);
}
