import { describe, expect, test } from 'vitest';
import type { CatalogChange, RetentionPolicyChange } from '../../contracts/series-store.ts';
import { Catalog, spanFor } from './catalog.ts';
import { day, hour } from './durations.ts';

function withDatabase(): Catalog {
  const catalog = new Catalog();
  catalog.make({ kind: 'createDatabase', database: 'd' });
  return catalog;
}

const create = (name: string, policy: RetentionPolicyChange): CatalogChange => ({
  kind: 'createRetentionPolicy',
  database: 'd',
  name,
  policy,
});
const alter = (name: string, policy: RetentionPolicyChange): CatalogChange => ({
  kind: 'alterRetentionPolicy',
  database: 'd',
  name,
  policy,
});

test('a change that comes after a later one is refused, also by a catalog that was loaded', () => {
  const at = (term: number, number: number, database = 'd'): CatalogChange => ({
    ...{ kind: 'createDatabase', database },
    order: { term, number },
  });
  let catalog = new Catalog();
  catalog.make(at(3, 7));
  for (const loads of [false, true]) {
    if (loads) catalog = Catalog.load(JSON.parse(JSON.stringify(catalog.save())));
    expect(() => catalog.check(at(3, 6, 'e'))).toThrow('a later change of the databases');
    expect(() => catalog.check(at(2, 9, 'e'))).toThrow('a later change of the databases');
    expect(catalog.check(at(3, 7, 'e'))).toBe(true);
    expect(catalog.check(at(4, 1, 'e'))).toBe(true);
    expect(catalog.check({ kind: 'dropDatabase', database: 'd' })).toBe(true);
  }
  // One without an order does not change which was the last.
  catalog.make({ kind: 'dropDatabase', database: 'd' });
  expect(() => catalog.check(at(3, 6))).toThrow('a later change of the databases');
});

describe('databases', () => {
  test('begin with autogen, for ever, in shards of a week', () => {
    expect(withDatabase().database('d')).toEqual({
      name: 'd',
      defaultRetentionPolicy: 'autogen',
      retentionPolicies: [
        { name: 'autogen', duration: 0n, shardGroupDuration: 7n * day, replicaN: 1 },
      ],
    });
  });

  test('begin with a policy of their own when one is told', () => {
    const catalog = new Catalog();
    const policy = { name: 'p', duration: 3n * day, replicaN: 2 };
    catalog.make({ kind: 'createDatabase', database: 'd', policy });
    expect(catalog.database('d')).toEqual({
      name: 'd',
      defaultRetentionPolicy: 'p',
      retentionPolicies: [{ name: 'p', duration: 3n * day, shardGroupDuration: day, replicaN: 2 }],
    });
  });

  test('are listed as they were made, and stay as they are when they are created again', () => {
    const catalog = new Catalog();
    for (const database of ['b', 'a', 'ü', 'b']) catalog.make({ kind: 'createDatabase', database });
    expect(catalog.databases().map(({ name }) => name)).toEqual(['b', 'a', 'ü']);
    expect(catalog.check({ kind: 'createDatabase', database: 'a' })).toBe(false);
  });

  test('created again with another policy are a conflict, with the same one are not', () => {
    const catalog = withDatabase();
    const again = (policy: RetentionPolicyChange & { name?: string }) =>
      catalog.check({ kind: 'createDatabase', database: 'd', policy });
    expect(again({ name: 'autogen', replicaN: 1 })).toBe(false);
    const conflict = 'retention policy conflicts with an existing policy';
    expect(() => again({ name: 'other' })).toThrow(conflict);
    expect(() => again({ duration: day })).toThrow(conflict);
  });

  test('that are not there can be dropped', () => {
    expect(new Catalog().check({ kind: 'dropDatabase', database: 'd' })).toBe(false);
  });

  test.each(['', '.', '..', 'a/b', 'a\\b', 'a\nb', 'a\tb'])('cannot be called %j', (database) => {
    expect(() => new Catalog().check({ kind: 'createDatabase', database })).toThrow('invalid name');
  });
});

describe('shard durations', () => {
  test.each([
    [0n, undefined, 7n * day],
    [hour, undefined, hour],
    [2n * day - 1n, undefined, hour],
    [2n * day, undefined, day],
    [180n * day - 1n, undefined, day],
    [180n * day, undefined, 7n * day],
    [30n * day, 2n * day, 2n * day],
    [30n * day, 1n, hour],
    [30n * day, 0n, day],
  ])('kept %s, asked %s: %s', (duration, shardGroupDuration, expected) => {
    const catalog = withDatabase();
    const asked = shardGroupDuration === undefined ? {} : { shardGroupDuration };
    catalog.make(create('p', { duration, ...asked }));
    expect(catalog.database('d')!.retentionPolicies[1]!.shardGroupDuration).toBe(expected);
  });
});

describe('retention policies', () => {
  const refused: [string, CatalogChange, string][] = [
    [
      'shorter than an hour',
      create('p', { duration: hour - 1n }),
      'retention policy duration must be at least 1h0m0s',
    ],
    [
      'shorter than their shards',
      create('p', { duration: hour, shardGroupDuration: day }),
      'retention policy duration must be greater than the shard duration',
    ],
    [
      'altered to less than their shards',
      alter('autogen', { duration: day }),
      'retention policy duration must be greater than the shard duration',
    ],
    [
      'altered to less than an hour',
      alter('autogen', { duration: 1n }),
      'retention policy duration must be at least 1h0m0s',
    ],
    ['with no replica', create('p', { replicaN: 0 }), 'replication factor must be greater than 0'],
    ['without a name', create('', {}), 'retention policy name required'],
    [
      'that exist and are others',
      create('autogen', { duration: day }),
      'retention policy already exists',
    ],
    ['that do not exist, altered', alter('p', {}), 'retention policy not found: p'],
    [
      'in no database',
      { kind: 'createRetentionPolicy', database: 'x', name: 'p', policy: {} },
      'database not found: x',
    ],
    [
      'altered in no database',
      { kind: 'alterRetentionPolicy', database: 'x', name: 'p', policy: {} },
      'database not found: x',
    ],
  ];
  test.each(refused)('%s are refused', (_, change, message) => {
    const catalog = withDatabase();
    const before = catalog.save();
    expect(() => catalog.make(change)).toThrow(message);
    expect(catalog.save()).toEqual(before);
  });

  test('the same ones can be created again', () => {
    const catalog = withDatabase();
    catalog.make(create('p', { duration: day }));
    expect(catalog.check(create('p', { duration: day }))).toBe(false);
    expect(() => catalog.check(create('p', { duration: day, makeDefault: true }))).toThrow(
      'retention policy conflicts with an existing policy',
    );
  });

  test('keep their shard duration when they are altered, unless one is told', () => {
    const catalog = withDatabase();
    catalog.make(create('p', { duration: 10n * day }));
    catalog.make(alter('p', { duration: 400n * day, makeDefault: true }));
    expect(catalog.database('d')).toMatchObject({
      defaultRetentionPolicy: 'p',
      retentionPolicies: [{}, { duration: 400n * day, shardGroupDuration: day }],
    });
    catalog.make(alter('p', { shardGroupDuration: 3n * day }));
    expect(catalog.database('d')!.retentionPolicies[1]!.shardGroupDuration).toBe(3n * day);
  });

  test('dropping the default one leaves none, until one of the name is there again', () => {
    const catalog = withDatabase();
    catalog.make({ kind: 'dropRetentionPolicy', database: 'd', name: 'autogen' });
    expect(catalog.database('d')).toEqual({
      name: 'd',
      defaultRetentionPolicy: '',
      retentionPolicies: [],
    });
    expect(() => catalog.expectPolicy('d', '')).toThrow('retention policy not found: autogen');
    catalog.make(create('autogen', {}));
    expect(catalog.database('d')!.defaultRetentionPolicy).toBe('autogen');
  });

  test('that are not there can be dropped', () => {
    const drop = { kind: 'dropRetentionPolicy', name: 'p' } as const;
    expect(withDatabase().check({ ...drop, database: 'd' })).toBe(false);
    expect(withDatabase().check({ ...drop, database: 'x' })).toBe(false);
  });
});

describe('shards', () => {
  const week = 7 * 86_400;
  const autogen = (catalog: Catalog) => catalog.expectPolicy('d', '');

  test.each([
    [0, 0],
    [week - 1, 0],
    [week, week],
    [-1, -week],
    [-week, -week],
    [-9_223_372_037, Math.floor(-9_223_372_037 / week) * week],
  ])('second %i is in the one from %i', (second, startSeconds) => {
    expect(spanFor(autogen(withDatabase()), [], second)).toEqual({ startSeconds, seconds: week });
  });

  test('never overlap, also when their length was altered', () => {
    const catalog = withDatabase();
    const place = { database: 'd', policy: 'autogen' };
    catalog.addShard({ number: 1, ...place, startSeconds: 0, seconds: week });
    catalog.addShard({ number: 2, ...place, startSeconds: 3 * week, seconds: week });
    catalog.make(alter('autogen', { shardGroupDuration: 5n * 7n * day }));
    const policy = autogen(catalog);
    expect(spanFor(policy, policy.shards, 2 * week)).toEqual({
      startSeconds: week,
      seconds: 2 * week,
    });
    expect(spanFor(policy, policy.shards, 4 * week)).toEqual({
      startSeconds: 4 * week,
      seconds: week,
    });
  });

  test('are no longer than their times can be told exactly', () => {
    const catalog = withDatabase();
    catalog.make(alter('autogen', { shardGroupDuration: 10_000n * day }));
    const { seconds } = spanFor(autogen(catalog), [], 0);
    expect(Number.isSafeInteger(seconds * 1e9)).toBe(true);
  });

  test('go with what they are of', () => {
    const catalog = withDatabase();
    const span = { number: 7, database: 'd', policy: 'autogen', startSeconds: 0, seconds: week };
    catalog.addShard(span);
    expect(catalog.nextShard).toBe(8);
    const dropped = catalog.make({ kind: 'dropDatabase', database: 'd' });
    expect(dropped).toEqual([span]);
    expect(catalog.shards()).toEqual([]);
  });
});

test('what is saved is loaded again', () => {
  const catalog = withDatabase();
  catalog.make(create('p', { duration: 400n * day, replicaN: 3, makeDefault: true }));
  const span = { number: 1, database: 'd', policy: 'p', startSeconds: 0, seconds: 3600 };
  catalog.addShard(span);
  catalog.dropShard(1);
  catalog.addShard({ ...span, number: 2 });
  const saved = JSON.parse(JSON.stringify(catalog.save()));
  const loaded = Catalog.load(saved);
  expect(loaded.save()).toEqual(catalog.save());
  expect(loaded.databases()).toEqual(catalog.databases());
  expect(loaded.nextShard).toBe(3);
});
