import { inOneGo } from '../../../universal-row/slices.ts';
import { describe, expect, test } from 'vitest';
import type { CatalogChange } from '../../../contracts/series-store.ts';
import { matchWork } from '../influxql/parser/match-work.ts';
import { parseQuery } from '../influxql/parser/parser.ts';
import { QueryError, type ResultSeries } from '../influxql/result.ts';
import type { StatementContext } from './context.ts';
import { executeStatement } from './execute.ts';
import { QueryRegistry } from './query-registry.ts';
import { FakeStore, now, stored, unused } from './testing/fake-store.ts';

const hour = 3_600_000_000_000n;
interface Setting {
  store: FakeStore;
  context: StatementContext;
}

function setting(overrides: Partial<StatementContext> = {}): Setting {
  const store = new FakeStore();
  let monotonic = 0;
  const clock = { now: () => 0, monotonic: () => (monotonic += 1500) };
  const context: StatementContext = {
    store,
    database: 'db',
    retentionPolicy: '',
    now,
    queries: new QueryRegistry({ clock, maxConcurrent: 0 }),
    readOnlyRequest: false,
    server: { version: '1.2.3', startedAt: 1_599_999_000_000, hostname: 'here' },
    select: () => unused(),
    ...overrides,
  };
  return { store, context };
}

/** Series of the answer as JSON would have them. */
async function run(text: string, { context }: Setting = setting()): Promise<unknown[]> {
  const [statement] = parseQuery(text, { now });
  const shown: unknown[] = [];
  for await (const series of executeStatement(statement!, context).series)
    shown.push(shape(series));
  return shown;
}

function shape({ name, tags, columns, values, rows, omitEmptyValues }: ResultSeries): unknown {
  return {
    ...(name !== undefined && { name }),
    ...(tags !== undefined && { tags: Object.fromEntries(tags) }),
    columns,
    ...(!(rows === 0 && omitEmptyValues) && {
      values: Array.from({ length: rows }, (_, row) => values.map((column) => column[row])),
    }),
  };
}

/** Rows by measurement: most answers have a series for each. */
async function rows(text: string, of: Setting = setting()): Promise<Record<string, unknown[]>> {
  const series = (await run(text, of)) as { name?: string; values?: unknown[][] }[];
  return Object.fromEntries(
    series.map(({ name = '', values = [] }) => [
      name,
      values.map((row) => (row.length === 1 ? row[0] : row.join('='))),
    ]),
  );
}

async function failure(text: string, overrides: Partial<StatementContext> = {}): Promise<string> {
  try {
    await run(text, setting(overrides));
  } catch (error) {
    if (error instanceof QueryError) return error.message;
    throw error;
  }
  return 'none';
}

describe('the schema', () => {
  test.each<[string, Record<string, unknown[]>]>([
    ['show measurements', { measurements: ['cpu', 'disk', 'mem', 'net'] }],
    ['show measurements on nope', {}],
    ['show measurements limit 1 offset 1', { measurements: ['disk'] }],
    ['show measurements offset 7', {}],
    ['show measurements with measurement = cpu', { measurements: ['cpu'] }],
    ['show measurements with measurement =~ /(?i)^[CM]/', { measurements: ['cpu', 'mem'] }],
    ["show measurements where host = 'a'", { measurements: ['cpu', 'mem'] }],
    ["show measurements where host = 'b' or path =~ /./", { measurements: ['cpu', 'disk'] }],
    ["show measurements where host = 'a' and (zone =~ /z/)", { measurements: ['mem'] }],
    // A measurement with some such series is left out; so is one without the tag.
    ["show measurements where host != 'b'", { measurements: ['mem'] }],
    ['show measurements where host !~ /a/', {}],
    ["show measurements where host = ''", {}],
    ["show measurements where _name = 'cpu'", { measurements: ['cpu'] }],

    ['show tag keys', { cpu: ['host', 'region'], disk: ['path'], mem: ['host', 'zone'] }],
    ['show tag keys limit 1', { cpu: ['host'], disk: ['path'], mem: ['host'] }],
    ['show tag keys from cpu, mem limit 1 offset 1', { cpu: ['region'], mem: ['zone'] }],
    ["show tag keys where host = 'c'", { cpu: ['host'] }],
    ['show tag keys from short.cpu', { cpu: ['host', 'region'] }],
    ['show tag keys from nope', {}],
    ['show tag keys where time > now() - 1h', { cpu: ['host'], disk: ['path'] }],

    ['show tag values with key = host', { cpu: ['host=a', 'host=b', 'host=c'], mem: ['host=a'] }],
    [
      'show tag values with key != host',
      { cpu: ['region=eu', 'region=us'], disk: ['path=/'], mem: ['zone=z,1'] },
    ],
    [
      'show tag values with key =~ /o/ limit 2',
      { cpu: ['host=a', 'host=b'], mem: ['host=a', 'zone=z,1'] },
    ],
    ['show tag values with key !~ /h/', { cpu: ['region=eu', 'region=us'], mem: ['zone=z,1'] }],
    [
      'show tag values from cpu with key in (region, host) limit 3 offset 1',
      { cpu: ['host=b', 'host=c', 'region=eu'] },
    ],
    ["show tag values with key = host where region = 'eu'", { cpu: ['host=a'] }],
    ["show tag values with key = host where region = ''", { cpu: ['host=c'], mem: ['host=a'] }],
    ['show tag values from cpu with key = host where time > now() - 1h', { cpu: ['host=c'] }],
    [
      'show tag values from /c/ with key = host where u = 1',
      { cpu: ['host=a', 'host=b', 'host=c'] },
    ],

    [
      'show field keys',
      {
        cpu: ['i=integer', 'u=float'],
        mem: ['f=float', 's=string'],
        net: ['b=boolean', 'v=float'],
      },
    ],
    ['show field keys from /c|m/ limit 1 offset 1', { cpu: ['u=float'], mem: ['s=string'] }],
    ['show field keys from short./.*/', { disk: ['u=float'] }],
    ['show field keys from short.cpu', {}],

    [
      'show series',
      {
        '': [
          'cpu,host=a,region=eu',
          'cpu,host=b,region=us',
          'cpu,host=c',
          'disk,path=/',
          'mem,host=a,zone=z\\,1',
          'net',
        ],
      },
    ],
    ['show series limit 2 offset 2', { '': ['cpu,host=c', 'disk,path=/'] }],
    [
      "show series from /c|m/ where host = 'a'",
      { '': ['cpu,host=a,region=eu', 'mem,host=a,zone=z\\,1'] },
    ],
    ['show series where host !~ /./', { '': ['disk,path=/', 'net'] }],
    // About points, so of the default policy.
    ['show series where time > now() - 1h', { '': ['cpu,host=c'] }],
    ['show series offset 20', {}],

    ['show series cardinality', { '': [6] }],
    ['show series cardinality on nope', { '': [0] }],
    ['show series exact cardinality', { cpu: [3], mem: [1], net: [1] }],
    ['show series cardinality from cpu', { cpu: [3] }],
    ["show series exact cardinality where host = 'a'", { cpu: [1], mem: [1] }],
    ['show series exact cardinality where u > 1', {}],
    ['show series exact cardinality limit 1 offset 1', {}],
    ['show measurement cardinality', { '': [4] }],
    ['show measurement cardinality on nope', { '': [0] }],
    ['show measurement exact cardinality', { '': [3] }],
    ["show measurement exact cardinality where host = 'a'", { '': [2] }],
    ['show tag key cardinality', { cpu: [2], mem: [2] }],
    ['show tag values exact cardinality with key =~ /.*/', { cpu: [5], mem: [2] }],
    ["show tag values cardinality from cpu with key = host where region = 'eu'", { cpu: [1] }],
    ['show tag values cardinality with key = nope', {}],
    ['show field key cardinality', { cpu: [2], mem: [2], net: [2] }],
  ])('%s', async (text, expected) => expect(await rows(text)).toEqual(expected));

  test('the heads of the series', async () => {
    const head = async (text: string) => {
      const [first] = (await run(text)) as { name?: string; columns: string[] }[];
      return [first!.name, ...first!.columns];
    };
    expect(await head('show measurements')).toEqual(['measurements', 'name']);
    expect(await head('show tag keys')).toEqual(['cpu', 'tagKey']);
    expect(await head('show tag values with key = host')).toEqual(['cpu', 'key', 'value']);
    expect(await head('show field keys')).toEqual(['cpu', 'fieldKey', 'fieldType']);
    expect(await head('show series')).toEqual([undefined, 'key']);
    expect(await head('show series cardinality')).toEqual([undefined, 'cardinality estimation']);
    expect(await head('show series exact cardinality')).toEqual(['cpu', 'count']);
    expect(await head('show measurement exact cardinality')).toEqual([undefined, 'count']);
  });

  test('cardinality by tags', async () => {
    expect(await run('show series exact cardinality from cpu, net group by region')).toEqual([
      { name: 'cpu', tags: { region: '' }, columns: ['count'], values: [[1]] },
      { name: 'cpu', tags: { region: 'eu' }, columns: ['count'], values: [[1]] },
      { name: 'cpu', tags: { region: 'us' }, columns: ['count'], values: [[1]] },
      { name: 'net', tags: { region: '' }, columns: ['count'], values: [[1]] },
    ]);
    expect(await run('show measurement exact cardinality group by host')).toEqual([
      { tags: { host: '' }, columns: ['count'], values: [[1]] },
      { tags: { host: 'a' }, columns: ['count'], values: [[2]] },
      { tags: { host: 'b' }, columns: ['count'], values: [[1]] },
      { tags: { host: 'c' }, columns: ['count'], values: [[1]] },
    ]);
    expect(
      await run('show tag values exact cardinality from cpu with key = host group by /reg/'),
    ).toHaveLength(3);
  });

  test('a long answer comes in pieces that go on', async () => {
    const of = setting();
    of.store.series = Array.from({ length: 12_000 }, (_, i) =>
      stored('m', { t: String(i) }, { v: 'float' }, 0n),
    );
    const [statement] = parseQuery('show series', { now });
    const pieces: ResultSeries[] = [];
    for await (const piece of executeStatement(statement!, of.context).series) pieces.push(piece);
    expect(pieces.map((piece) => [piece.rows, piece.continues])).toEqual([
      [5000, false],
      [5000, true],
      [2000, true],
    ]);
    expect(pieces.flatMap(({ values }) => Array.from(values[0]!))).toEqual(
      inOneGo(of.store.seriesKeys({ database: 'db' })),
    );
  });
});

describe('the server', () => {
  test.each<[string, unknown[]]>([
    ['show databases', [{ name: 'databases', columns: ['name'], values: [['db']] }]],
    [
      'show retention policies',
      [
        {
          columns: ['name', 'duration', 'shardGroupDuration', 'replicaN', 'default'],
          values: [
            ['autogen', '0s', '168h0m0s', 1, true],
            ['short', '2h0m0s', '1h0m0s', 1, false],
          ],
        },
      ],
    ],
    ['show users', [{ columns: ['user', 'admin'] }]],
    ['show continuous queries', [{ name: 'db', columns: ['name', 'query'] }]],
    ['show subscriptions', []],
    [
      "show diagnostics for 'build'",
      [
        {
          name: 'build',
          columns: ['Branch', 'Build Time', 'Commit', 'Version'],
          values: [['', '', '', '1.2.3']],
        },
      ],
    ],
    ["show diagnostics for 'nope'", []],
    [
      "show stats for 'database'",
      [
        {
          name: 'database',
          tags: { database: 'db' },
          columns: ['numMeasurements', 'numSeries'],
          values: [[4, 6]],
        },
      ],
    ],
  ])('%s', async (text, expected) => expect(await run(text)).toEqual(expected));

  test('no database at all', async () => {
    const of = setting();
    of.store.known = [];
    expect(await run('show databases', of)).toEqual([{ name: 'databases', columns: ['name'] }]);
  });

  test('diagnostics', async () => {
    const shown = await run('show diagnostics');
    expect(shown.map((series) => (series as { name: string }).name)).toEqual([
      'build',
      'network',
      'runtime',
      'system',
    ]);
    expect(shown[3]).toMatchObject({
      values: [[process.pid, '2020-09-13T12:26:40Z', '2020-09-13T12:10:00Z', '16m40s']],
    });
  });

  test('shards', async () => {
    const shards = () => [
      { id: 7, database: 'db', retentionPolicy: 'short', start: 0n, end: hour },
    ];
    const of = setting({ server: { version: '', startedAt: 0, hostname: '', shards } });
    const times = ['1970-01-01T00:00:00Z', '1970-01-01T01:00:00Z', '1970-01-01T03:00:00Z'];
    expect(await run('show shards', of)).toMatchObject([
      { name: 'db', values: [[7, 'db', 'short', 7, ...times, '']] },
    ]);
    expect(await run('show shard groups', of)).toMatchObject([
      { name: 'shard groups', values: [[7, 'db', 'short', ...times]] },
    ]);
    expect(await run('drop shard 99', of)).toEqual([]);
    await expect(run('drop shard 7', of)).rejects.toThrow('DROP SHARD is not supported yet');
  });

  test('queries', async () => {
    const of = setting();
    const { queries } = of.context;
    queries.start('SELECT 1', 'db');
    const killed = queries.start('SELECT 2', '');
    expect(await run(`kill query ${killed.id}`, of)).toEqual([]);
    expect(await run('show queries', of)).toEqual([
      {
        columns: ['qid', 'query', 'database', 'duration', 'status'],
        values: [
          [1, 'SELECT 1', 'db', '3s', 'running'],
          [2, 'SELECT 2', '', '3s', 'killed'],
        ],
      },
    ]);
    await expect(run('kill query 77', of)).rejects.toThrow('no such query id: 77');
  });
});

describe('changes', () => {
  test.each<[string, CatalogChange[]]>([
    ['create database x', [{ kind: 'createDatabase', database: 'x' }]],
    [
      'create database x with duration 2h replication 3 shard duration 1h name "n"',
      [
        {
          kind: 'createDatabase',
          database: 'x',
          policy: { duration: 2n * hour, replicaN: 3, shardGroupDuration: hour, name: 'n' },
        },
      ],
    ],
    [
      'create database x with replication 1',
      [{ kind: 'createDatabase', database: 'x', policy: { replicaN: 1 } }],
    ],
    ['drop database db', [{ kind: 'dropDatabase', database: 'db' }]],
    ['drop database nope', []],
    [
      'create retention policy r on db duration inf replication 1 default',
      [
        {
          kind: 'createRetentionPolicy',
          database: 'db',
          name: 'r',
          policy: { duration: 0n, replicaN: 1, makeDefault: true },
        },
      ],
    ],
    [
      'alter retention policy short on db shard duration 3h',
      [
        {
          kind: 'alterRetentionPolicy',
          database: 'db',
          name: 'short',
          policy: { shardGroupDuration: 3n * hour },
        },
      ],
    ],
    [
      'drop retention policy short on db',
      [{ kind: 'dropRetentionPolicy', database: 'db', name: 'short' }],
    ],
    ['drop retention policy nope on db', []],
    ['drop retention policy x on nope', []],
  ])('%s', async (text, changes) => {
    const of = setting();
    expect(await run(text, of)).toEqual([]);
    expect(of.store.changes).toEqual(changes);
  });

  const cpu = ['cpu,host=a,region=eu', 'cpu,host=b,region=us', 'cpu,host=c'];
  test.each<[string, unknown[]]>([
    ['drop measurement cpu', [['series', '', cpu, undefined, undefined]]],
    ['drop series from cpu', [['series', '', cpu, undefined, undefined]]],
    [
      "drop series where host = 'a'",
      [
        ['series', '', [cpu[0]], undefined, undefined],
        ['series', '', ['mem,host=a,zone=z\\,1'], undefined, undefined],
      ],
    ],
    [
      'delete from cpu where host =~ /a|b/ and time >= 5 and time < 10',
      [['points', 'autogen', [cpu[0], cpu[1]], 5n, 9n]],
    ],
    ['delete from disk', [['points', 'short', ['disk,path=/'], undefined, undefined]]],
    ["delete from cpu where host > 'a'", []],
    ["delete from cpu where host = 'nope' and u > 5", []],
    ['delete from nope', []],
  ])('%s', async (text, deleted) => {
    const of = setting();
    expect(await run(text, of)).toEqual([]);
    expect(of.store.deleted).toEqual(deleted);
  });

  test('nothing is deleted when part of it cannot be', async () => {
    const of = setting();
    await expect(run("delete where s = 'x'", of)).rejects.toThrow('fields not supported');
    expect(of.store.deleted).toEqual([]);
  });

  test('a change by GET is warned of', () => {
    const warned = (text: string): readonly unknown[] => {
      const [statement] = parseQuery(text, { now });
      return executeStatement(statement!, setting({ readOnlyRequest: true }).context).messages;
    };
    const text = (statement: string): string =>
      `deprecated use of '${statement}' in a read only context, please use a POST request instead`;
    expect(warned('create database gg')).toEqual([
      { level: 'warning', text: text('CREATE DATABASE gg') },
    ]);
    expect(warned('drop series from "nope"')).toEqual([
      { level: 'warning', text: text('DROP SERIES FROM nope') },
    ]);
    expect(warned('delete from nope')).toEqual([]);
    expect(warned('show databases')).toEqual([]);
  });

  test('SELECT goes to whoever runs it', () => {
    const [plain, into] = parseQuery('select v from m; select v into x from m', { now });
    const series = (async function* () {})();
    const { context } = setting({
      readOnlyRequest: true,
      select: () => ({ messages: [], series }),
    });
    expect(executeStatement(plain!, context)).toEqual({ messages: [], series });
    expect(executeStatement(into!, context).messages).toHaveLength(1);
  });
});

test('a pattern that takes long deletes all or nothing, and is tried once on each value', async () => {
  const of = setting();
  let seed = 1;
  const letter = (): string => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return seed & 0x10000 ? 'a' : 'b';
  };
  const host = (length: number): string => Array.from({ length }, letter).join('');
  const work = async (text: string): Promise<number> => {
    await new Promise((resolve) => setImmediate(resolve));
    const before = matchWork.total;
    await run(text, of);
    return matchWork.total - before;
  };
  const where = 'where host !~ /a[ab]{60}c$/';
  of.store.series = ['m', 'n'].map((name) =>
    stored(name, { host: host(5000) }, { v: 'float' }, 0n),
  );
  const shown = await work(`show series ${where}`);
  expect(shown).toBeGreaterThan(100_000);
  expect(await work(`drop series ${where}`)).toBeLessThanOrEqual(shown);
  expect(of.store.deleted).toHaveLength(2);
  of.store.deleted.length = 0;
  of.store.series = ['m', 'n'].map((name) =>
    stored(name, { host: host(40_000) }, { v: 'float' }, 0n),
  );
  await expect(work(`drop series ${where}`)).rejects.toThrow('regular expression takes more than');
  expect(of.store.deleted).toEqual([]);
});

describe('failures, as InfluxDB words them', () => {
  test.each([
    ['show measurements', 'database name required'],
    ['show series', 'database name required'],
    ['show tag keys', 'database name required'],
    ['show tag values with key = a', 'database name required'],
    ['show field keys', 'database name required'],
    ['show retention policies', 'database name required'],
    ['show series cardinality', 'database name required'],
    ['show tag key cardinality', 'database name required'],
    ['drop measurement x', 'database not found: '],
    ['drop series from x', 'database not found: '],
    ['delete from x', 'database not found: '],
  ])('%s without a database', async (text, message) => {
    expect(await failure(text, { database: '' })).toBe(message);
  });

  test.each([
    ['show series on nope', 'database not found: nope'],
    ['show tag keys on nope', 'database not found: nope'],
    ['show tag values on nope with key = a', 'database not found: nope'],
    ['show field keys on nope', 'database not found: nope'],
    ['show retention policies on nope', 'database not found: nope'],
    ['show series exact cardinality on nope', 'database not found: nope'],
    [
      'show measurements where time > now()',
      "SHOW MEASUREMENTS doesn't support time in WHERE clause",
    ],
    ['show measurements where u > 1', 'invalid tag comparison operator'],
    ['show measurements where host = 1', "right side of '=' must be a tag value string"],
    ['show series where u > 1', 'invalid tag comparison operator'],
    ['show tag keys where host', 'invalid condition expression: host'],
    [
      "show tag values with key = host where time > 'x'",
      'invalid operation: time and *influxql.StringLiteral are not compatible',
    ],
    [
      'show series exact cardinality where time > 5',
      "SHOW SERIES EXACT CARDINALITY doesn't support time in WHERE clause",
    ],
    [
      'show tag key cardinality where time > 5',
      "SHOW TAG KEY EXACT CARDINALITY doesn't support time in WHERE clause",
    ],
    ['drop series where time > 5', "DROP SERIES doesn't support time in WHERE clause"],
    ['delete where u > 5', 'shard 1: fields not supported in WHERE clause during deletion'],
    ['create database ""', 'invalid name'],
    ['create database "a/b"', 'invalid name'],
    ['create retention policy ".." on db duration 1h replication 1', 'invalid name'],
    ['create retention policy a on nope duration 1h replication 1', 'database not found: nope'],
    ['alter retention policy a on nope duration 1h', 'database not found: nope'],
    ['drop user u', 'there are no users here'],
    ['drop continuous query c on db', 'DROP CONTINUOUS QUERY is not supported yet'],
    ['select mean(v) from m group by time(5)', 'time dimension must have duration argument'],
  ])('%s', async (text, message) => expect(await failure(text)).toBe(message));
});
