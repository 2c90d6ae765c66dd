// Databases and retention policies.

import assert from 'node:assert/strict';
import type {
  CatalogChange,
  Database,
  RetentionPolicyChange,
} from '../../contracts/series-store.ts';
import { assertFails, createDatabase, type SeriesCase } from './case.ts';
import { day, hour, point } from './points.ts';
import type { View } from './view.ts';

type PolicyForm = [name: string, duration: bigint, shardGroupDuration: bigint, replicaN: number];

interface DatabaseForm {
  policies: PolicyForm[];
  default: string;
}

const autogen: PolicyForm = ['autogen', 0n, 7n * day, 1];
const fresh: DatabaseForm = { policies: [autogen], default: 'autogen' };

function formOf({ retentionPolicies, defaultRetentionPolicy }: Database): DatabaseForm {
  return {
    policies: retentionPolicies.map(({ name, duration, shardGroupDuration, replicaN }) => [
      name,
      duration,
      shardGroupDuration,
      replicaN,
    ]),
    default: defaultRetentionPolicy,
  };
}

/** All databases by name. */
function catalogOf({ engine }: View): Record<string, DatabaseForm> {
  const databases = engine.databases();
  const forms = databases.map((one) => [one.name, formOf(one)] as const);
  for (const [name, form] of forms) {
    const alone = engine.database(name);
    assert.ok(alone !== undefined, `${name} is found by its name`);
    assert.deepEqual(formOf(alone), form);
  }
  return Object.fromEntries(forms);
}

const createPolicy = (name: string, policy: RetentionPolicyChange = {}): CatalogChange => ({
  kind: 'createRetentionPolicy',
  database: 'db',
  name,
  policy,
});

const alterPolicy = (name: string, policy: RetentionPolicyChange): CatalogChange => ({
  kind: 'alterRetentionPolicy',
  database: 'db',
  name,
  policy,
});

const dropPolicy = (name: string): CatalogChange => ({
  kind: 'dropRetentionPolicy',
  database: 'db',
  name,
});
const dropDatabase: CatalogChange = { kind: 'dropDatabase', database: 'db' };

interface ChangeCase {
  name: string;
  changes: readonly CatalogChange[];
  then: Record<string, DatabaseForm>;
}

const changes: ChangeCase[] = [
  { name: 'nothing at first', changes: [], then: {} },
  {
    name: 'a database has the policy autogen',
    changes: [createDatabase('db')],
    then: { db: fresh },
  },
  {
    name: 'databases are in the order they were made',
    changes: [createDatabase('b'), createDatabase('ä'), createDatabase('a'), createDatabase('B')],
    then: { b: fresh, ä: fresh, a: fresh, B: fresh },
  },
  {
    name: 'making a database again changes nothing',
    changes: [
      createDatabase('db'),
      alterPolicy('autogen', { duration: 30n * day }),
      createDatabase('db'),
    ],
    then: { db: { policies: [['autogen', 30n * day, 7n * day, 1]], default: 'autogen' } },
  },
  {
    name: 'a database with a policy of its own',
    changes: [createDatabase('db', { name: 'short', duration: 3n * day, replicaN: 2 })],
    then: { db: { policies: [['short', 3n * day, day, 2]], default: 'short' } },
  },
  {
    name: 'a policy of its own without a name is autogen',
    changes: [createDatabase('db', { duration: day })],
    then: { db: { policies: [['autogen', day, hour, 1]], default: 'autogen' } },
  },
  {
    name: 'policies are in the order they were made',
    changes: [createDatabase('db'), createPolicy('z', { duration: day }), createPolicy('a')],
    then: {
      db: {
        policies: [autogen, ['z', day, hour, 1], ['a', 0n, 7n * day, 1]],
        default: 'autogen',
      },
    },
  },
  {
    name: 'shards are as long as the duration suggests',
    changes: [
      createDatabase('db'),
      createPolicy('hours', { duration: hour }),
      createPolicy('days', { duration: 2n * day }),
      createPolicy('months', { duration: 180n * day }),
      createPolicy('own', { duration: 10n * day, shardGroupDuration: 2n * hour }),
    ],
    then: {
      db: {
        policies: [
          autogen,
          ['hours', hour, hour, 1],
          ['days', 2n * day, day, 1],
          ['months', 180n * day, 7n * day, 1],
          ['own', 10n * day, 2n * hour, 1],
        ],
        default: 'autogen',
      },
    },
  },
  {
    name: 'a new policy becomes the default where it says so',
    changes: [createDatabase('db'), createPolicy('p', { makeDefault: true })],
    then: { db: { policies: [autogen, ['p', 0n, 7n * day, 1]], default: 'p' } },
  },
  {
    name: 'the same policy again changes nothing',
    changes: [
      createDatabase('db'),
      createPolicy('p', { duration: day }),
      createPolicy('p', { duration: day }),
    ],
    then: { db: { policies: [autogen, ['p', day, hour, 1]], default: 'autogen' } },
  },
  {
    name: 'altering changes what it names',
    changes: [
      createDatabase('db'),
      createPolicy('p', { duration: day, replicaN: 3 }),
      alterPolicy('p', { duration: 5n * day }),
      alterPolicy('p', { replicaN: 2, makeDefault: true }),
      alterPolicy('autogen', { shardGroupDuration: 3n * hour }),
    ],
    then: {
      db: {
        policies: [
          ['autogen', 0n, 3n * hour, 1],
          ['p', 5n * day, hour, 2],
        ],
        default: 'p',
      },
    },
  },
  {
    name: 'after its default policy is dropped a database has none',
    changes: [createDatabase('db'), createPolicy('p'), dropPolicy('autogen')],
    then: { db: { policies: [['p', 0n, 7n * day, 1]], default: '' } },
  },
  {
    name: 'dropping what is not there is no error',
    changes: [dropDatabase, dropPolicy('p'), createDatabase('db'), dropPolicy('p')],
    then: { db: fresh },
  },
  {
    name: 'a dropped database is gone, and may come back new',
    changes: [
      createDatabase('db'),
      createPolicy('p', { makeDefault: true }),
      dropDatabase,
      createDatabase('db'),
    ],
    then: { db: fresh },
  },
];

const failures: { name: string; given: CatalogChange[]; change: CatalogChange; text: RegExp }[] = [
  {
    name: 'a database without a name',
    given: [],
    change: createDatabase(''),
    text: /invalid name/,
  },
  {
    name: 'a database with a path for a name',
    given: [],
    change: createDatabase('../a'),
    text: /invalid name/,
  },
  {
    name: 'a policy in no database',
    given: [],
    change: createPolicy('p'),
    text: /^database not found: db$/,
  },
  {
    name: 'another policy of the same name',
    given: [createDatabase('db'), createPolicy('p', { duration: day })],
    change: createPolicy('p', { duration: 2n * day }),
    text: /^retention policy already exists$/,
  },
  {
    name: 'a policy that keeps less than an hour',
    given: [createDatabase('db')],
    change: createPolicy('p', { duration: hour - 1n }),
    text: /must be at least 1h0m0s/,
  },
  {
    name: 'shards that are longer than points are kept',
    given: [createDatabase('db')],
    change: createPolicy('p', { duration: day, shardGroupDuration: 2n * day }),
    text: /must be greater than the shard duration/,
  },
  {
    name: 'altering a policy to one that keeps less than an hour',
    given: [createDatabase('db')],
    change: alterPolicy('autogen', { duration: 1n }),
    text: /must be at least 1h0m0s/,
  },
  {
    name: 'altering a policy that is not there',
    given: [createDatabase('db')],
    change: alterPolicy('p', { duration: day }),
    text: /^retention policy not found: p$/,
  },
  {
    name: 'altering a policy in no database',
    given: [],
    change: alterPolicy('p', { duration: day }),
    text: /^database not found: db$/,
  },
  {
    name: 'an existing database with another policy',
    given: [createDatabase('db')],
    change: createDatabase('db', { name: 'other', duration: day }),
    text: /^retention policy conflicts with an existing policy$/,
  },
];

const points = [point('m,k=a', 100, { v: 1 }), point('m,k=b', 200, { v: 2 })];

const others: SeriesCase[] = [
  {
    name: 'catalog: what changes nothing is put into no words',
    async run(trial) {
      trial.change(createDatabase('db'));
      trial.change(createPolicy('p', { duration: day }));
      const { index } = trial;
      trial.change(createDatabase('db'));
      trial.change(createPolicy('p', { duration: day }));
      trial.change(dropPolicy('nosuch'));
      trial.change({ kind: 'dropDatabase', database: 'nosuch' });
      assert.equal(trial.index, index);
    },
  },
  {
    name: 'catalog: points of a dropped database are gone, those of others stay',
    async run(trial) {
      await trial.given(points);
      await trial.given(points, { database: 'other' });
      trial.change(dropDatabase);
      trial.change(createDatabase('db'));
      await trial.everywhere((view) => {
        assert.deepEqual(view.read(), []);
        assert.deepEqual(view.measurements(), []);
        assert.deepEqual(view.read({ database: 'other' }), points);
      });
    },
  },
  {
    name: 'catalog: points of a dropped policy are gone, those of others stay',
    async run(trial) {
      await trial.given([]);
      trial.change(createPolicy('p'));
      await trial.given(points, { policy: 'p' });
      await trial.given(points.slice(1));
      trial.change(dropPolicy('p'));
      await trial.everywhere((view) => {
        assert.deepEqual(view.read(), points.slice(1));
        assertFails(() => view.read({ retentionPolicy: 'p' }), /^retention policy not found: p$/);
      });
      trial.change(createPolicy('p'));
      assert.deepEqual(trial.read({ retentionPolicy: 'p' }), []);
    },
  },
  {
    name: 'catalog: what is unknown cannot be written to or scanned',
    async run(trial) {
      await assert.rejects(trial.write(points), /database not found: "?db"?/);
      assertFails(() => trial.read(), /^database not found: db$/);
      trial.change(createDatabase('db'));
      await assert.rejects(trial.write(points, { policy: 'p' }), /retention policy not found: p/);
      assertFails(() => trial.read({ retentionPolicy: 'p' }), /^retention policy not found: p$/);
      trial.change(dropPolicy('autogen'));
      await assert.rejects(trial.write(points), /retention policy not found/);
      assert.equal(trial.engine.database('nosuch'), undefined);
    },
  },
];

export const catalogCases: readonly SeriesCase[] = [
  ...changes.map(
    ({ name, changes: all, then }): SeriesCase => ({
      name: `catalog: ${name}`,
      async run(trial) {
        for (const change of all) trial.change(change);
        await trial.everywhere((view) => {
          const catalog = catalogOf(view);
          assert.deepEqual(catalog, then);
          assert.deepEqual(Object.keys(catalog), Object.keys(then), 'in order');
        });
      },
    }),
  ),
  ...failures.map(
    ({ name, given, change, text }): SeriesCase => ({
      name: `catalog refuses: ${name}`,
      async run(trial) {
        for (const one of given) trial.change(one);
        const before = catalogOf(trial.view);
        const { index } = trial;
        assertFails(() => trial.change(change), text);
        assert.equal(trial.index, index);
        assert.deepEqual(catalogOf(trial.view), before);
        // The engine accepts further changes.
        trial.change(createDatabase('another'));
        assert.ok('another' in catalogOf(trial.view));
      },
    }),
  ),
  ...others,
];
