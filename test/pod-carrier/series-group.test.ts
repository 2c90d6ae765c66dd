// A group of time series as one store: which replica is asked, and what is asked again.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  GroupSeriesStore,
  type LocalReplica,
} from '../../access/influx/pods/group-series-store.ts';
import type { SeriesLink } from '../../access/influx/pods/series-link.ts';
import {
  type Database,
  NotLeaderError,
  OutcomeUnknownError,
  type SeriesStore,
} from '../../contracts/series-store.ts';
import { batchesOf, SimpleSeriesCache } from '../../engines/series-conformance/batch-builder.ts';
import { point } from '../../engines/series-conformance/points.ts';
import { StoredBatches } from '../../storage-node/stored-batches.ts';
import { batchId } from '../../universal-row/series/batch-identity.ts';
import { oneSlice, whenFinished } from '../../universal-row/slices.ts';
import { until } from '../support/until.ts';
import { Carrier, group, tenant } from './series-carrier.ts';
import { type Stub, stubStore } from './stub-store.ts';

const cache = new SimpleSeriesCache();
const onePoint = (): ReturnType<typeof batchesOf>[number] =>
  batchesOf(cache, [point('m', 1, { v: 1 })])[0]!;

let closes: (() => Promise<unknown> | void)[] = [];

beforeEach(() => (closes = []));
afterEach(async () => {
  vi.restoreAllMocks();
  for (const close of closes.toReversed()) await close();
});

describe('a group of replicas', () => {
  const replica = (node: number): number => node * 2 ** 20;
  let leader: number;
  const links = new Map<number, SeriesLink>();

  function groupStore(
    local?: () => LocalReplica | undefined,
    epoch?: () => number,
  ): GroupSeriesStore {
    const store = new GroupSeriesStore({
      group,
      tenant,
      local: local ?? (() => undefined),
      leader: () => leader,
      linkOf: (node) => links.get(node),
      notThere: (_node, hint) => (leader = hint),
      epoch,
      waitMs: () => 20_000,
    });
    closes.push(() => store.close());
    return store;
  }

  /** Node 1 and node 2, each with a store. */
  async function openTwo(first: Stub, second: Stub): Promise<[Carrier, Carrier]> {
    const carriers: Carrier[] = [];
    for (const [i, store] of [first, second].entries()) {
      const one = await Carrier.open(store);
      closes.push(() => one.close());
      links.set(i + 1, one.link);
      carriers.push(one);
    }
    leader = 1;
    return carriers as [Carrier, Carrier];
  }

  const outcome = { written: 1, dropped: 0, error: undefined };

  test('a request goes where the leader is said to be', async () => {
    const second = stubStore({
      write: () => outcome,
      seriesCardinality: () => oneSlice(() => 7),
    });
    const refusing = (): never => {
      throw new NotLeaderError(replica(2));
    };
    await openTwo(stubStore({ write: refusing, seriesCardinality: refusing }), second);
    const store = groupStore();
    expect(await store.write('db', '', onePoint())).toEqual(outcome);
    leader = 1;
    expect(await whenFinished(store.seriesCardinality({ database: 'db' }))).toBe(7);
    expect(leader).toBe(2);
  });

  test('a request of an earlier epoch is made again as soon as the present one is known', async () => {
    let writes = 0;
    const [carrier] = await openTwo(
      stubStore({ write: () => (writes++, outcome), seriesCardinality: () => oneSlice(() => 7) }),
      stubStore(),
    );
    carrier.series.served = { ...carrier.series.served!, epoch: 5 };
    let epoch = 4;
    let asked = 0;
    const store = groupStore(undefined, () => {
      if (++asked === 3) epoch = 5;
      return epoch;
    });
    expect(await store.write('db', '', onePoint())).toEqual(outcome);
    expect([writes, asked]).toEqual([1, 3]);
    carrier.series.served = { ...carrier.series.served!, epoch: 6 };
    const read = whenFinished(store.seriesCardinality({ database: 'db' }));
    setImmediate(() => (epoch = 6));
    expect(await read).toBe(7);
    expect(asked).toBeGreaterThan(4);
  });

  test('a write whose outcome is unknown is sent again, and a change is not', async () => {
    let writes = 0;
    const never = (): Promise<never> => {
      writes++;
      return new Promise<never>(() => {});
    };
    const first = stubStore({ write: never, change: never });
    const changes: unknown[] = [];
    const second = stubStore({
      write: () => outcome,
      change: (change) => void changes.push(change),
    });
    const [carrierOfFirst] = await openTwo(first, second);
    const store = groupStore();
    const all = Promise.allSettled([
      store.write('db', '', onePoint()),
      store.change({ kind: 'dropDatabase', database: 'db' }),
    ]);
    await until(() => writes === 2);
    leader = 2;
    carrierOfFirst.server.close();
    const [written, changed] = await all;
    expect(written).toEqual({ status: 'fulfilled', value: outcome });
    expect((changed as PromiseRejectedResult).reason).toBeInstanceOf(OutcomeUnknownError);
    expect(changes).toEqual([]);
    expect(await store.change({ kind: 'createDatabase', database: 'db' })).toBeUndefined();
    expect(changes).toHaveLength(1);
  });

  test('the parts of a large batch are known to the next leader, here or at another node', async () => {
    const known = new StoredBatches({ now: () => 0, monotonic: () => performance.now() - 10_000 });
    const stored: string[] = [];
    const write: SeriesStore['write'] = (_database, _policy, { rows, identity }) => {
      const found = known.find(identity!);
      if (found !== undefined) return found;
      stored.push(identity!.id);
      known.add({ id: identity!.id, written: rows, dropped: 0 });
      return { written: rows, dropped: 0, error: undefined };
    };
    let left = 2;
    const leaving: SeriesStore['write'] = (...given) => {
      const answer = write(...given);
      if (--left > 0) return answer;
      leader = 2;
      throw new OutcomeUnknownError();
    };
    await openTwo(stubStore({ write: leaving }), stubStore({ write }));
    const points = Array.from({ length: 400_000 }, (_, i) =>
      point(`m${i % 2},host=h${i % 1000}`, 1000 + i, { v: i, w: BigInt(i) }),
    );
    const batch = batchesOf(cache, points)[0]!;
    const id = batchId('x', 0, batch.rows);
    batch.identity = { id, at: performance.now(), isRepeated: false };
    expect(await groupStore().write('db', '', batch)).toMatchObject({ written: 400_000 });
    expect(stored.length).toBeGreaterThan(2);
    expect(new Set(stored).size).toBe(stored.length);

    const count = stored.length;
    const here = { ...stubStore({ write }), role: 'leader' as const, appliedIndex: 1 };
    expect(batch.identity).toMatchObject({ isRepeated: true });
    expect(await groupStore(() => here).write('db', '', batch)).toMatchObject({ written: 400_000 });
    expect(stored.length).toBe(count);
  });

  test('without a leader a request waits for one, and is refused when none comes', async () => {
    await openTwo(stubStore({ write: () => outcome }), stubStore());
    leader = 0;
    const store = groupStore();
    const write = store.write('db', '', onePoint());
    setImmediate(() => (leader = 1));
    expect(await write).toEqual(outcome);
    const hasty = new GroupSeriesStore({
      group,
      tenant,
      local: () => undefined,
      leader: () => 0,
      linkOf: () => undefined,
      notThere: () => {},
      waitMs: () => 60,
    });
    await expect(Promise.resolve(hasty.write('db', '', onePoint()))).rejects.toThrow(
      NotLeaderError,
    );
  });

  test('a replica here answers reads, and writes only while it leads', async () => {
    await openTwo(stubStore({ write: () => ({ ...outcome, written: 2 }) }), stubStore());
    const local = {
      ...stubStore({ write: () => outcome, seriesCardinality: () => oneSlice(() => 9) }),
      role: 'follower' as LocalReplica['role'],
      appliedIndex: 33,
    };
    const store = groupStore(() => local);
    expect(await whenFinished(store.seriesCardinality({ database: 'db' }))).toBe(9);
    expect(store.seenIndex).toBe(33);
    expect(await store.write('db', '', onePoint())).toMatchObject({ written: 2 });
    local.role = 'leader';
    expect(await store.write('db', '', onePoint())).toMatchObject({ written: 1 });
  });

  test('databases are those that were asked for last while a request holds them, until the replica here has caught up', async () => {
    const named = (name: string): Database => ({
      ...{ name, retentionPolicies: [], defaultRetentionPolicy: '' },
    });
    const having = (...names: string[]): Partial<Stub> => ({
      databases: () => names.map(named),
      database: (name) => (names.includes(name) ? named(name) : undefined),
    });
    const appliedIndex = 5;
    await openTwo(
      stubStore({ ...having('old'), appliedIndex }),
      stubStore({ ...having('old', 'new'), appliedIndex }),
    );
    let local: (Stub & LocalReplica) | undefined;
    const store = groupStore(() => local);
    const names = (): string[] => store.databases().map(({ name }) => name);
    const releases = [await store.refresh()];
    leader = 2;
    releases.push(await store.refresh());
    expect(names()).toEqual(['old', 'new']);
    // Another one leads that has told its databases long ago.
    leader = 1;
    expect(names()).toEqual(['old', 'new']);
    local = { ...stubStore(having()), role: 'follower', appliedIndex: 0 };
    expect([names(), store.database('new')?.name]).toEqual([['old', 'new'], 'new']);
    Object.assign(local, having('old', 'new', 'newest'));
    releases.push(await store.refresh());
    expect(names()).toEqual(['old', 'new', 'newest']);
    // The replica leaves after it was asked.
    local = undefined;
    expect(names()).toEqual(['old', 'new', 'newest']);
    leader = 2;
    releases.push(await store.refresh());
    local = { ...stubStore(having('here')), role: 'follower', appliedIndex: 4 };
    expect(names()).toEqual(['old', 'new']);
    const behind = local;
    local = { ...behind, appliedIndex };
    expect(names()).toEqual(['here']);
    // What was asked for before is as good as what others tell, and may be of a node that is gone.
    local = behind;
    for (const release of releases) release();
    expect(names()).toEqual(['here']);
    local = undefined;
    leader = 1;
    expect(names()).toEqual(['old']);
  });

  test('a replica here that is being filled, or hears of no leader, is not waited for', async () => {
    const seven = stubStore({ seriesCardinality: () => oneSlice(() => 7) });
    await openTwo(seven, stubStore());
    const refusing = (): never => {
      throw new NotLeaderError(0);
    };
    const local = {
      ...stubStore({ seriesCardinality: refusing, measurements: refusing }),
      role: 'learner' as LocalReplica['role'],
      appliedIndex: 1,
    };
    const store = groupStore(() => local);
    for (const role of ['learner', 'follower'] as const) {
      local.role = role;
      expect(await whenFinished(store.seriesCardinality({ database: 'db' }))).toBe(7);
      await store.refresh();
    }
  });

  test('the databases of a node are those of the replica that it has now', async () => {
    const having = (name: string): Stub => {
      const database = { name, retentionPolicies: [], defaultRetentionPolicy: '' };
      return stubStore({ databases: () => [database] });
    };
    const [carrier] = await openTwo(having('old'), stubStore());
    const store = groupStore();
    await store.refresh();
    const names = (): string[] => store.databases().map(({ name }) => name);
    expect(names()).toEqual(['old']);
    const { series } = carrier;
    const { served } = series;
    series.served = undefined;
    const refreshed = store.refresh();
    // Another replica of the group, whose databases have the same version.
    setTimeout(() => {
      series.served = { ...served!, store: having('new') };
      leader = 1;
    }, 30);
    await refreshed;
    expect(names()).toEqual(['new']);
  });

  test('a refresh waits until the databases of a node are followed', async () => {
    const [carrier] = await openTwo(stubStore(), stubStore());
    const { series } = carrier;
    const { served } = series;
    const database = { name: 'db', retentionPolicies: [], defaultRetentionPolicy: '' };
    series.served = undefined;
    setTimeout(() => {
      series.served = { ...served!, store: stubStore({ databases: () => [database] }) };
      leader = 1;
    }, 20);
    const store = groupStore();
    await store.refresh();
    expect(store.databases()).toEqual([database]);
  });
});
