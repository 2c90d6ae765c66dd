// Time series over a link: how much is on its way, what ends, and what a gateway is told when something goes wrong.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SeriesLink } from '../../access/influx/pods/series-link.ts';
import { dialLink } from '../../cluster-links/dial.ts';
import { seriesPurpose } from '../../contracts/series-protocol/frames.ts';
import {
  DeadlineError,
  NotLeaderError,
  OutcomeUnknownError,
  ReadOnlyError,
  SeriesError,
  type SeriesScan,
  StaleEpochError,
  ThrottledError,
  TooLargeError,
  UnavailableError,
  UnreachableError,
} from '../../contracts/series-store.ts';
import { batchesOf, SimpleSeriesCache } from '../../engines/series-conformance/batch-builder.ts';
import { point, type Point } from '../../engines/series-conformance/points.ts';
import { requestOf } from '../../engines/series-conformance/view.ts';
import type { ServedStore } from '../../storage-node/pod-server/served-series.ts';
import { writeFrame } from '../../universal-row/protocol/frames.ts';
import { WireWriter } from '../../universal-row/protocol/wire.ts';
import { oneSlice, whenFinished } from '../../universal-row/slices.ts';
import { until } from '../support/until.ts';
import { drained } from './drained-scan.ts';
import { Carrier, context, openPod, served, tenant } from './series-carrier.ts';
import { endless, floatRows, StubScan, stubStore } from './stub-store.ts';

const nowMs = 1_000_000_000;
const cache = new SimpleSeriesCache();
const onePoint = (): ReturnType<typeof batchesOf>[number] =>
  batchesOf(cache, [point('m', 1, { v: 1 })])[0]!;

/** Of another node. */
const contextOf = (node: string): typeof context => ({
  ...context,
  identity: { ...context.identity, node },
});

/** Passes bytes on to a port, or holds those to it until they are released. */
class Relay {
  readonly #server: Server;
  readonly #ends: Promise<unknown>[] = [];
  readonly #sockets: Socket[] = [];
  #held: (() => void)[] | undefined;

  constructor(to: number) {
    this.#server = createServer((socket) => {
      const there = connect(to, '127.0.0.1');
      this.#sockets.push(socket, there);
      this.#ends.push(once(there, 'close'));
      for (const one of [socket, there]) one.on('error', () => {});
      const pass = (act: () => void): void => {
        if (this.#held === undefined) act();
        else this.#held.push(act);
      };
      socket.on('data', (bytes) => pass(() => there.write(bytes)));
      socket.on('close', () => pass(() => there.end()));
      there.on('data', (bytes) => socket.write(bytes));
    });
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  hold(): void {
    this.#held = [];
  }

  get holdsBytes(): boolean {
    return this.#held!.length > 0;
  }

  /** Resolves when the other side has read all of it, or wants no more. */
  async release(): Promise<void> {
    for (const act of this.#held!.splice(0)) act();
    await Promise.all(this.#ends);
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

let carrier: Carrier;
let closes: (() => Promise<unknown> | void)[] = [];

async function open(store: ServedStore): Promise<Carrier> {
  carrier = await Carrier.open(store);
  closes.push(() => carrier.close());
  return carrier;
}

beforeEach(() => (closes = []));
afterEach(async () => {
  for (const close of closes.toReversed()) await close();
});

/** The node ends all links. */
async function cut(): Promise<void> {
  carrier.server.close();
  await until(() => !carrier.link.isUp);
}

async function settled(count: () => number): Promise<number> {
  for (let last = -1; last !== count(); await new Promise((r) => setTimeout(r, 200))) {
    last = count();
  }
  return count();
}

describe('what is on its way is bounded', () => {
  const rowsOfPiece = 4096;
  const pieceBytes = rowsOfPiece * 16;

  test('a cursor that is not read gets no more than its credit', async () => {
    const scan = new StubScan(1, (_, piece) => floatRows(piece * rowsOfPiece, rowsOfPiece));
    await open(stubStore({ scan: () => oneSlice(() => scan) }));
    const found = await whenFinished(carrier.remote.scan(requestOf({})));
    const cursor = found.cursor(found.series[0]!);
    const asked = await settled(() => scan.asked);
    // A megabyte, and the piece that goes beyond it.
    expect(asked * pieceBytes).toBeLessThanOrEqual(1024 * 1024 + 2 * pieceBytes);
    for (let rows = 0; rows < 100 * rowsOfPiece; ) {
      const piece = cursor.next()!;
      if (piece.count === 0) await cursor.waits;
      else if (piece.kind === 'rows') {
        expect(piece.columns[0]!.numbers[0]).toBe(rows);
        rows += piece.count;
      }
    }
    expect(scan.asked).toBeGreaterThan(asked);
    expect((await settled(() => scan.asked)) * pieceBytes).toBeLessThanOrEqual(
      100 * pieceBytes + 1024 * 1024 + 2 * pieceBytes,
    );
    found.close();
  });

  test('many cursors share what may be on its way', async () => {
    const series = 2000;
    const scan = new StubScan(series, (_, piece) => floatRows(piece * 64, 64));
    await open(stubStore({ scan: () => oneSlice(() => scan) }));
    const found = await whenFinished(carrier.remote.scan(requestOf({})));
    for (const one of found.series) found.cursor(one);
    const asked = await settled(() => scan.asked);
    // 8 MiB shared; the first cursors were opened while there were few.
    expect(asked).toBeGreaterThan(series);
    expect(asked * 64 * 16).toBeLessThan(64 * 1024 * 1024);
    found.close();
  });

  test('series read one after the other are opened ahead, and no more than that', async () => {
    const scan = new StubScan(5000, (_, piece) => (piece === 0 ? floatRows(0, 4) : undefined));
    await open(stubStore({ scan: () => oneSlice(() => scan) }));
    const found = await whenFinished(carrier.remote.scan(requestOf({})));
    let waits = 0;
    for (const one of found.series.slice(0, 2000)) {
      const cursor = found.cursor(one);
      let rows = 0;
      for (let piece = cursor.next(); piece !== undefined; piece = cursor.next()) {
        rows += piece.count;
        if (piece.count === 0) {
          waits++;
          await cursor.waits;
        }
      }
      expect(rows).toBe(4);
    }
    expect(waits).toBeLessThan(200);
    expect(await settled(() => scan.asked)).toBeLessThanOrEqual(2 * (2000 + 256));
    found.close();
  });

  test('a long list waits for the gateway to take it', async () => {
    const names = Array.from({ length: 200_000 }, (_, i) => `name ${String(i).padStart(20, '0')}`);
    await open(stubStore({ seriesKeys: () => oneSlice(() => names) }));
    expect(await whenFinished(carrier.remote.seriesKeys({ database: 'db' }))).toEqual(names);
    expect(carrier.link.streams).toBe(1);
  });
});

describe('what is of no more use ends', () => {
  test('a scan that is closed, and one that is given up while it opens', async () => {
    const scan = new StubScan(3, (_, piece) => floatRows(piece * 10, 10));
    let isEnded = false;
    const store = stubStore({ scan: () => oneSlice(() => scan) });
    await open(store);
    const found = await whenFinished(carrier.remote.scan(requestOf({})));
    found.cursor(found.series[1]!).next();
    found.close();
    await until(() => scan.isClosed);
    store.scan = () => endless<SeriesScan>(() => (isEnded = true));
    const opening = carrier.remote.scan(requestOf({}));
    opening.next();
    opening.return(undefined as never);
    await until(() => isEnded);
    expect(carrier.link.streams).toBe(1);
  });

  test('a list whose caller is gone', async () => {
    let isEnded = false;
    await open(stubStore({ tagKeys: () => endless<string[]>(() => (isEnded = true)) }));
    const list = carrier.remote.tagKeys({ database: 'db', measurement: 'm' });
    list.next();
    list.return(undefined as never);
    await until(() => isEnded);
  });

  test('all scans of a gateway that is gone', async () => {
    const scan = new StubScan(3, (_, piece) => floatRows(piece * 10, 10));
    await open(stubStore({ scan: () => oneSlice(() => scan) }));
    const found = await whenFinished(carrier.remote.scan(requestOf({})));
    found.cursor(found.series[0]!).next();
    carrier.link.close();
    await until(() => scan.isClosed);
  });
});

describe('a link that ends', () => {
  test('leaves the outcome of a write unknown, and of a change, and a read is none', async () => {
    const never = new Promise<never>(() => {});
    await open(
      stubStore({
        write: () => never,
        change: () => never,
        measurements: ({ database }) =>
          database === '' ? oneSlice(() => []) : endless<string[]>(() => {}),
      }),
    );
    const { remote } = carrier;
    const write = remote.write('db', '', onePoint());
    const change = remote.change({ kind: 'dropDatabase', database: 'db' });
    const read = whenFinished(remote.measurements({ database: 'db' }));
    const all = Promise.allSettled([write, change, read]);
    await until(() => carrier.link.streams === 4);
    await cut();
    const [written, changed, listed] = (await all) as PromiseRejectedResult[];
    expect(written!.reason).toBeInstanceOf(OutcomeUnknownError);
    expect(changed!.reason).toBeInstanceOf(OutcomeUnknownError);
    expect(listed!.reason).toBeInstanceOf(UnavailableError);
    expect(listed!.reason).not.toBeInstanceOf(OutcomeUnknownError);
  });

  test('ends a scan, and the next one is over the next link', async () => {
    const scan = new StubScan(2, (_, piece) => (piece < 3 ? floatRows(piece, 1) : undefined));
    const store = stubStore({ scan: () => oneSlice(() => scan) });
    await open(store);
    const found = await whenFinished(carrier.remote.scan(requestOf({})));
    const cursor = found.cursor(found.series[0]!);
    expect(cursor.next()!.count).toBe(0);
    await cut();
    await cursor.waits;
    // What had come by then may be read, and then it fails.
    expect(() => {
      while (cursor.next() !== undefined);
    }).toThrow(UnavailableError);
    found.close();
    await carrier.link.ready;
    const again = await drained(carrier.remote, requestOf({}));
    expect(again.series.map(({ items }) => items.length)).toEqual([3, 3]);
  });

  test('nothing is sent while there is none', async () => {
    await open(stubStore());
    await carrier.listener.close();
    await until(() => !carrier.link.isUp);
    await expect(carrier.remote.write('db', '', onePoint())).rejects.toThrow(UnreachableError);
    expect(() => inFirstStep(carrier.remote.scan(requestOf({})))).toThrow(UnreachableError);
  });
});

function inFirstStep(slices: Iterator<unknown>): void {
  slices.next();
}

describe('refusals', () => {
  test.each([
    new SeriesError('database not found: "x"'),
    new ReadOnlyError('database is read-only: x'),
    new TooLargeError('an entry is too large'),
    new UnavailableError('timeout: too much'),
    new NotLeaderError(7_340_032),
    new OutcomeUnknownError(),
    new ThrottledError(120),
    new DeadlineError(),
    new StaleEpochError(),
  ])('$constructor.name', async (error) => {
    await open(
      stubStore({
        write: () => Promise.reject(error),
        seriesCardinality: () =>
          oneSlice((): number => {
            throw error;
          }),
      }),
    );
    const failures = await Promise.allSettled([
      carrier.remote.write('db', '', onePoint()),
      whenFinished(carrier.remote.seriesCardinality({ database: 'db' })),
    ]);
    for (const failure of failures) {
      expect((failure as PromiseRejectedResult).reason).toStrictEqual(error);
      expect((failure as PromiseRejectedResult).reason.constructor).toBe(error.constructor);
    }
  });

  test('of a cursor', async () => {
    const scan = new StubScan(1, (_, piece) => {
      if (piece === 0) return floatRows(0, 1);
      throw new SeriesError('a file is damaged');
    });
    await open(stubStore({ scan: () => oneSlice(() => scan) }));
    await expect(drained(carrier.remote, requestOf({}))).rejects.toThrow('a file is damaged');
  });

  test('of a group that is not there, or of another tenant, or of another epoch', async () => {
    await open(stubStore({ seriesCardinality: () => oneSlice(() => 1) }));
    const ask = (): Promise<number> =>
      whenFinished(carrier.remote.seriesCardinality({ database: 'db' }));
    expect(await ask()).toBe(1);
    const { served: before } = carrier.series;
    carrier.series.served = { ...before!, tenant: tenant + 1 };
    await expect(ask()).rejects.toThrow(NotLeaderError);
    carrier.series.served = undefined;
    await expect(ask()).rejects.toThrow(NotLeaderError);
    carrier.series.served = { ...before!, epoch: 5 };
    expect(await ask()).toBe(1);
  });

  test('when the time is over', async () => {
    await open(
      stubStore({
        write: () => new Promise<never>(() => {}),
        tagKeys: () => endless<string[]>(() => {}),
        scan: () => endless<SeriesScan>(() => {}),
      }),
    );
    const hasty = carrier.storeOver(carrier.link, 50);
    closes.push(() => hasty.close());
    await expect(hasty.write('db', '', onePoint())).rejects.toThrow(OutcomeUnknownError);
    const list = hasty.tagKeys({ database: 'db', measurement: 'm' });
    await expect(whenFinished(list)).rejects.toThrow(DeadlineError);
    await expect(whenFinished(hasty.scan(requestOf({})))).rejects.toThrow(DeadlineError);
  });

  test('a pattern that is none is an error of the query', async () => {
    await open(stubStore({ seriesKeys: () => oneSlice(() => []) }));
    const filter = { kind: 'match', tag: 't', pattern: '(', matches: () => true } as const;
    const list = carrier.remote.seriesKeys({ database: 'db', filter });
    await expect(whenFinished(list)).rejects.toThrow(/error parsing regexp/);
    expect(carrier.link.isUp).toBe(true);
  });

  test('a gateway that violates the protocol loses its link, and other gateways keep theirs', async () => {
    await open(stubStore({ seriesCardinality: () => oneSlice(() => 1) }));
    const ended = new Promise<void>((resolve) => {
      dialLink(
        contextOf('2'),
        { host: '127.0.0.1', port: carrier.listener.port, purpose: seriesPurpose },
        {
          open: (link) => {
            setImmediate(() => {
              const frame = new WireWriter();
              writeFrame(frame, 35, 1, Buffer.from([99, 1, 2, 3]));
              link.send(frame.view());
            });
            return {
              frame: () => {},
              drained: () => {},
              readEnd: () => {},
              closed: () => resolve(),
            };
          },
          failed: () => resolve(),
        },
      );
    });
    await ended;
    const count = carrier.remote.seriesCardinality({ database: 'db' });
    expect(await whenFinished(count)).toBe(1);
  });
});

describe('of a real pod', () => {
  test('points that were sent again by a new link do not come by the old one any more', async () => {
    const pod = await openReal();
    const relay = new Relay(carrier.listener.port);
    const port = await relay.listen();
    closes.push(() => relay.close());
    const dial = async (to: number): Promise<SeriesLink> => {
      const target = { host: '127.0.0.1', port: to, context: contextOf('2'), report: () => {} };
      const link = new SeriesLink(target);
      closes.push(() => link.close());
      await link.start();
      return link;
    };
    const put = (link: SeriesLink, v: number): Promise<unknown> =>
      carrier.storeOver(link).write('db', '', batchesOf(cache, [point('m', 1, { v })])[0]!);
    const first = await dial(port);
    await put(first, 1);
    relay.hold();
    const late = put(first, 2);
    await until(() => relay.holdsBytes);
    first.close();
    await expect(late).rejects.toThrow(OutcomeUnknownError);
    const second = await dial(carrier.listener.port);
    await put(second, 2);
    await put(second, 3);
    await relay.release();
    const { series } = await drained(pod, requestOf({}));
    expect(series.map(({ items }) => items)).toEqual([[[expect.anything(), [3]]]]);
  });

  async function openReal(headBytes?: number): Promise<Awaited<ReturnType<typeof openPod>>['pod']> {
    const { pod, close } = await openPod(nowMs, headBytes === undefined ? {} : { headBytes });
    closes.push(close);
    await open(pod);
    await carrier.remote.change({ kind: 'createDatabase', database: 'db' });
    return pod;
  }

  async function write(points: readonly Point[]): Promise<void> {
    for (const batch of batchesOf(cache, points)) {
      const { written, dropped } = await carrier.remote.write('db', '', batch);
      expect([written, dropped]).toEqual([batch.rows, 0]);
    }
  }

  test('aggregates come as summaries, and as totals of groups', async () => {
    const pod = await openReal(1);
    const points = Array.from({ length: 40_000 }, (_, i) =>
      point(`m,host=h${i % 400}`, 1000 + Math.floor(i / 400), { v: i % 7 }),
    );
    await write(points);
    const long = Array.from({ length: 20_000 }, (_, i) => point('n', 1000 + i, { v: i % 7 }));
    await write(long);
    await until(() => pod.engineStats().headPoints === 0);
    const asked = requestOf({ measurement: 'n', summaries: { width: 0n, offset: 0n } });
    const found = await drained(carrier.remote, asked);
    expect(found).toEqual(await drained(pod, asked));
    const kinds = found.series.flatMap(({ items }) => items.map((item) => 'kind' in item));
    expect(kinds).toContain(true);
    const grouped = { ...asked, measurement: 'm', totals: [] };
    const totals = await drained(carrier.remote, grouped);
    expect(totals).toEqual(await drained(pod, grouped));
    expect(totals.seriesCount).toBe(400);
  });

  test('a large batch goes in several requests, and a point with a long text in parts', async () => {
    const pod = await openReal(64 * 1024 * 1024);
    const points = Array.from({ length: 100_000 }, (_, i) =>
      point(`m,host=h${i % 1000}`, 1000 + i, { v: i, w: BigInt(i), text: `text ${i}` }),
    );
    await write(points);
    await write([point('m,host=long', 1, { text: 'x'.repeat(20 * 1024 * 1024), v: 1 })]);
    const asked = requestOf({ fields: ['v', 'w', 'text'] });
    const found = await drained(carrier.remote, asked);
    expect(found).toEqual(await drained(pod, asked));
    expect(found.series).toHaveLength(1001);
  });

  test('a change is known when it is answered, and another gateway hears of it', async () => {
    await openReal();
    const other = carrier.storeOver(carrier.link);
    closes.push(() => other.close());
    await other.ready;
    await carrier.remote.change({ kind: 'createDatabase', database: 'next' });
    expect(carrier.remote.database('next')).toMatchObject({ name: 'next' });
    await until(() => other.database('next') !== undefined);
    await carrier.remote.change({ kind: 'dropDatabase', database: 'next' });
    await other.refresh();
    expect(other.database('next')).toBeUndefined();
    expect(await other.keptDatabases()).toEqual(other.databases());
  });
});

test('a served store says what is safe', async () => {
  let isSafe: (() => void) | undefined;
  const store = stubStore({
    write: () => ({ written: 1, dropped: 0, error: undefined }),
    endTick: () => 5,
    whenSafe: (_position, then) => (isSafe = then),
  });
  await open(store);
  carrier.series.served = served(store);
  let isAnswered = false;
  const write = carrier.remote.write('db', '', onePoint()).then(() => (isAnswered = true));
  await until(() => isSafe !== undefined);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(isAnswered).toBe(false);
  isSafe!();
  await write;
});
