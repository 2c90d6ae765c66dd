import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { Expression, SelectStatement, Statement } from '../ast.ts';
import { ParseError } from '../result.ts';
import { parseQuery, parseStatements } from './parser.ts';
import { print, printStatement } from './print.ts';

const now = 1_600_000_000_000_000_000n;

function parse(text: string, params?: Record<string, unknown>): Statement {
  const statements = parseQuery(text, { now, params });
  expect(statements).toHaveLength(1);
  return statements[0]!;
}

function select(text: string, params?: Record<string, unknown>): SelectStatement {
  const statement = parse(text, params);
  if (statement.kind !== 'select') throw new Error(`${text} is a ${statement.kind}`);
  return statement;
}

const where = (condition: string, params?: Record<string, unknown>): Expression =>
  select(`SELECT v FROM m WHERE ${condition}`, params).where!;

function failure(text: string, params?: Record<string, unknown>): string {
  try {
    parseQuery(text, { now, params });
  } catch (error) {
    if (error instanceof ParseError) return error.message;
    throw error;
  }
  return 'none';
}

/** The statement printed in InfluxDB's syntax. */
const reads = (text: string): string => printStatement(parse(text));

describe('messages, as InfluxDB 1.6.7 gave them', () => {
  // The text without `error parsing query: ` before it.
  const table: readonly (readonly [query: string, message: string])[] = [
    ['SELECT', 'found EOF, expected identifier, string, number, bool at line 1, char 8'],
    ['SELECT ', 'found EOF, expected identifier, string, number, bool at line 1, char 8'],
    ['select * from', 'found EOF, expected identifier at line 1, char 15'],
    ['select v', 'found EOF, expected FROM at line 1, char 10'],
    [
      'select v, from m',
      'found FROM, expected identifier, string, number, bool at line 1, char 11',
    ],
    ['select mean(v from m', 'found FROM, expected ) at line 1, char 15'],
    ['select v from m foo bar', 'found foo, expected ; at line 1, char 17'],
    ['select v from m where v = 5)', 'found ), expected ; at line 1, char 28'],
    [
      'select v from m; select',
      'found EOF, expected identifier, string, number, bool at line 1, char 25',
    ],
    ['select\nv\nfrom\n', 'found EOF, expected identifier at line 3, char 6'],
    ['select\nv\nfrom 5', 'found 5, expected identifier at line 3, char 6'],
    ["select v from m where x = 'é' foo", 'found foo, expected ; at line 1, char 31'],
    ['select é from m', 'found é, expected identifier, string, number, bool at line 1, char 8'],
    [
      "select v from m where v = 'abc",
      'found abc, expected identifier, string, number, bool at line 1, char 26',
    ],
    [
      "select v from m where v = 'a\\qc'",
      'found \\q, expected identifier, string, number, bool at line 1, char 30',
    ],
    ['select v from m where v = 1y', 'invalid duration'],
    [
      'select v from m where v = 9999999999999h',
      'overflowed duration 9999999999999h: choose a smaller duration or INF',
    ],
    [
      'select v from m where v = 18446744073709551616',
      'unable to parse integer at line 1, char 27',
    ],
    [
      'select v from m where v = -9223372036854775809',
      'constant -9223372036854775809 underflows int64',
    ],
    ['select v from m where v =~ 5', 'found 5, expected regex at line 1, char 28'],
    ['select v from m where v =~ /abc', 'bad regex:  at line 1, char 27'],
    ['select v from m where v = $', 'empty bound parameter'],
    ['select v from m where v = $x', 'missing parameter: x'],
    [
      'select v::foo from m',
      'found foo, expected float, integer, unsigned, string, boolean, field, tag at line 1, char 11',
    ],
    ['select *::foo from m', 'found foo, expected field, tag at line 1, char 11'],
    [
      'select v = 5 from m',
      'invalid operator = in SELECT clause at line 1, char 8; operator is intended for WHERE clause',
    ],
    ['select distinct 5 from m', 'found 5, expected identifier at line 1, char 17'],
    ['select v from (v)', 'found v, expected SELECT at line 1, char 16'],
    ['select v from a.b.c.d', 'too many segments in "a"."b"."c".d at line 1, char 1'],
    ['select v into :MEASUREMENT from m', 'found :, expected identifier at line 1, char 15'],
    ['select v from m order by v', 'only ORDER BY time supported at this time'],
    ['select v from m order by time, v', 'only ORDER BY time supported at this time'],
    ['select v from m order by 5', 'found 5, expected identifier, ASC, DESC at line 1, char 26'],
    ['select v from m limit -1', 'found -, expected integer at line 1, char 23'],
    ["select v from m tz('foo')", 'unable to find time zone foo'],
    ['select v from m tz(foo)', 'expected string argument in tz()'],
    ['select mean(v) from m group by time(1m) fill(foo)', 'expected number argument in fill()'],
    [
      'select mean(v) from m group by time(1m) fill()',
      'fill requires an argument, e.g.: 0, null, none, previous, linear',
    ],
    [
      'foo',
      'found foo, expected SELECT, DELETE, SHOW, CREATE, DROP, EXPLAIN, GRANT, REVOKE, ALTER, SET, KILL at line 1, char 1',
    ],
    [
      'show foo',
      'found foo, expected CONTINUOUS, DATABASES, DIAGNOSTICS, FIELD, GRANTS, MEASUREMENT, MEASUREMENTS, QUERIES, RETENTION, SERIES, SHARD, SHARDS, STATS, SUBSCRIPTIONS, TAG, USERS at line 1, char 6',
    ],
    ['show tag values from m', 'found EOF, expected WITH at line 1, char 24'],
    ['show tag key', 'found EOF, expected EXACT, CARDINALITY at line 1, char 14'],
    [
      'drop',
      'found EOF, expected CONTINUOUS, DATABASE, MEASUREMENT, RETENTION, SERIES, SHARD, SUBSCRIPTION, USER at line 1, char 6',
    ],
    ['drop series', 'found EOF, expected FROM, WHERE at line 1, char 13'],
    ['delete from a.b', 'retention policy not supported at line 1, char 1'],
    [
      'create database x with foo',
      'found foo, expected DURATION, NAME, REPLICATION, SHARD at line 1, char 24',
    ],
    [
      'create database x with duration 1h replication 0',
      'invalid value 0: must be 1 <= n <= 2147483647 at line 1, char 48',
    ],
    [
      'create retention policy x on y duration 1y replication 1',
      'invalid duration at line 1, char 41',
    ],
    [
      'alter retention policy x on y default default',
      'found duplicate DEFAULT option at line 1, char 39',
    ],
    ['kill query x', 'found x, expected integer at line 1, char 12'],
    ["create user x with password 'y' with", 'found EOF, expected ALL at line 1, char 38'],
    ['grant all', 'found EOF, expected ON, TO at line 1, char 11'],
  ];

  test.each(table)('%s', (query, message) => {
    expect(failure(query)).toBe(`error parsing query: ${message}`);
  });

  test.each([
    ['a(b', 'missing closing ): `a(b`'],
    ['[a', 'missing closing ]: `[a`'],
    ['a**', 'invalid nested repetition operator: `**`'],
    ['*a', 'missing argument to repetition operator: `*`'],
    ['(?=a)', 'invalid or unsupported Perl syntax: `(?=`'],
    ['(?P<n-a>a)', 'invalid named capture: `(?P<n-a>`'],
    ['a{1001}', 'invalid repeat count: `{1001}`'],
    ['\\y', 'invalid escape sequence: `\\y`'],
    ['\\1', 'invalid escape sequence: `\\1`'],
    ['\\p{Foo}', 'invalid character class range: `\\p{Foo}`'],
    ['[b-a]', 'invalid character class range: `b-a`'],
    ['a)', 'unexpected ): `a)`'],
  ])('/%s/', (source, message) => {
    expect(failure(`select v from m where v =~ /${source}/`)).toBe(
      `error parsing query: error parsing regexp: ${message} at line 1, char 27`,
    );
  });
});

describe('SELECT', () => {
  test.each([
    // Statements that clients send.
    "SELECT max(usage_user), max(usage_system) from cpu where (hostname = 'host_9' or hostname = 'host_3') and time >= '2016-01-01T07:47:52Z' and time < '2016-01-01T08:47:52Z' group by time(1m)",
    "SELECT * from cpu where usage_user > 90.0  and time >= '2016-01-01T00:00:00Z'",
    'SELECT * from cpu group by "hostname" order by time desc limit 1',
    "SELECT max(usage_user) from cpu WHERE time < '2016-01-01T08:47:52Z' group by time(1m) limit 5",
    `SELECT mean("usage_user") FROM "cpu" WHERE ("hostname"::tag = 'host_1') AND time >= 1451606400000ms and time <= 1451606700000ms GROUP BY time(10s), "hostname"::tag fill(null) ORDER BY time ASC limit 5 slimit 10 tz('Europe/Paris')`,
    `SELECT mean("v") / 100 AS "a b" FROM "rp"."m" WHERE "tag" =~ /^(a|b)$/ AND x !~ /y/ OR z <> 'q'`,
    'select top(v, h, 3), percentile(v, 99.9) from db..m, /x\\/y/, rp./z/ group by *, /h.*/, time(5m, -30s) fill(previous)',
    'select count(distinct v), distinct(v), DISTINCT v from (select v from (select * from m) limit 2)',
    'SELECT v INTO db.rp.:MEASUREMENT FROM /.*/ GROUP BY *',
    'SELECT v INTO "new one" FROM m fill(-1.5) LIMIT 1 OFFSET 2 SLIMIT 3 SOFFSET 4',
    'select -v, -(v + 1), v::integer, *::field, holt_winters(mean(v), 1, 2) from m where time > now() - 1h30m',
    'select v from m where a & 1 = 1 and b | 2 ^ 3 % 4 != -5',
    'EXPLAIN ANALYZE SELECT v FROM m',
  ])('%s', (text) => {
    const printed = reads(text);
    expect(reads(printed)).toBe(printed);
  });

  test('clauses', () => {
    const statement = select(
      `sElEcT Mean("v") AS x INTO a.b.c FROM db."r p".m, /re/ WHERE h = 'x' GROUP BY time(1m, 10s), h, /t/, * ` +
        `FILL(linear) ORDER BY time DESC LIMIT 1 OFFSET 2 SLIMIT 3 SOFFSET 4 TZ('Europe/Berlin')`,
    );
    expect(statement).toMatchObject({
      fields: [{ alias: 'x', expression: { kind: 'call', name: 'mean' } }],
      into: { database: 'a', retentionPolicy: 'b', name: 'c', isBackReference: false },
      sources: [
        { kind: 'measurement', database: 'db', retentionPolicy: 'r p', name: 'm' },
        { kind: 'measurement', name: undefined, pattern: { source: 're' } },
      ],
      groupBy: [
        { kind: 'time', interval: 60_000_000_000n, offset: 10_000_000_000n },
        { kind: 'tag', name: 'h' },
        { kind: 'pattern', pattern: { source: 't' } },
        { kind: 'wildcard' },
      ],
      fill: { kind: 'linear' },
      descending: true,
      limit: 1,
      offset: 2,
      seriesLimit: 3,
      seriesOffset: 4,
      timeZone: 'Europe/Berlin',
    });
  });

  test.each([
    ['', 'default'],
    ['fill(null)', 'null'],
    ['fill(none)', 'none'],
    ['fill(previous)', 'previous'],
  ])('%s is %s', (text, kind) => {
    expect(select(`select mean(v) from m group by time(1m) ${text}`).fill).toEqual({ kind });
  });

  test('fill with a number', () => {
    expect(select('select mean(v) from m fill(-2)').fill).toEqual({ kind: 'number', value: -2 });
  });

  test('names with keywords, dots and escapes', () => {
    const [field] = select('select "a\\"b\\\\c"."select" from "x y"').fields;
    expect(field!.expression).toEqual({
      kind: 'reference',
      name: 'a"b\\c.select',
      cast: undefined,
    });
  });

  test('an offset of a bucket by now() or a date', () => {
    const offset = (text: string) =>
      select(`select mean(v) from m group by time(1h, ${text})`).groupBy;
    expect(offset('now()')).toEqual([
      { kind: 'time', interval: 3_600_000_000_000n, offset: now % 3_600_000_000_000n },
    ]);
    expect(offset("'1970-01-01T00:10:00Z'")).toEqual([
      { kind: 'time', interval: 3_600_000_000_000n, offset: 600_000_000_000n },
    ]);
  });

  test.each([
    ['time', 'time() is a function and expects at least one argument'],
    ['time()', 'time dimension expected 1 or 2 arguments'],
    ['time(5)', 'time dimension must have duration argument'],
    ['time(1m), time(2m)', 'multiple time dimensions not allowed'],
    ['time(1m, x)', 'time dimension offset must be duration or now()'],
    ['foo(1m)', 'only time() calls allowed in dimensions'],
    ['5', 'only time and tag dimensions allowed'],
  ])('GROUP BY %s is no syntax error, but cannot run', (dimensions, error) => {
    const text = `select mean(v) from m group by ${dimensions}`;
    expect(parse(text)).toEqual({ kind: 'unsupported', text, error });
    expect(parse(`select v from (${text})`)).toMatchObject({ kind: 'unsupported', error });
  });
});

describe('expressions', () => {
  /** With parentheses around every operation. */
  const grouped = (expression: Expression): string =>
    expression.kind === 'binary'
      ? `(${grouped(expression.left)} ${expression.op} ${grouped(expression.right)})`
      : print(expression);

  test.each([
    ['a or b and c', '(a or (b and c))'],
    ['a and b or c', '((a and b) or c)'],
    ['a = 1 and b = 2', '((a = 1) and (b = 2))'],
    ['a + 1 > b * 2', '((a + 1) > (b * 2))'],
    ['a - b - c', '((a - b) - c)'],
    ['a / b * c', '((a / b) * c)'],
    ['a + b & c | d ^ e', '(((a + (b & c)) | d) ^ e)'],
    ['a * b + c % d', '((a * b) + (c % d))'],
    ['a or b or c or d', '((a or b) or (c or d))'],
    ['a = b = c', '((a = b) = c)'],
  ])('%s is %s', (text, expected) => expect(grouped(where(text))).toBe(expected));

  test.each<[string, Expression]>([
    ['1', { kind: 'integer', value: 1n }],
    ['-1', { kind: 'integer', value: -1n }],
    ['9223372036854775807', { kind: 'integer', value: 9223372036854775807n }],
    ['-9223372036854775808', { kind: 'integer', value: -9223372036854775808n }],
    ['18446744073709551615', { kind: 'integer', value: 18446744073709551615n }],
    ['1.5', { kind: 'number', value: 1.5 }],
    ['.5', { kind: 'number', value: 0.5 }],
    ['5.', { kind: 'number', value: 5 }],
    ['1h30m', { kind: 'duration', value: 5_400_000_000_000n }],
    ['-5m', { kind: 'duration', value: -300_000_000_000n }],
    ['10u', { kind: 'duration', value: 10_000n }],
    ['10µ', { kind: 'duration', value: 10_000n }],
    ['1w2d3h4m5s6ms7u8ns', { kind: 'duration', value: 788_645_006_007_008n }],
    ['TRUE', { kind: 'boolean', value: true }],
    ["'it\\'s \\n \"x\"'", { kind: 'string', value: 'it\'s \n "x"' }],
    ['now()', { kind: 'time', value: now }],
    ['a::tag', { kind: 'reference', name: 'a', cast: 'tag' }],
    ['f( )', { kind: 'call', name: 'f', args: [] }],
  ])('%s', (text, expected) => {
    const condition = where(`x = ${text}`);
    expect(condition).toMatchObject({ kind: 'binary', right: expected });
  });

  test('comments', () => {
    expect(reads('select /* a * b */ v -- c\nfrom /* d */ m')).toBe('SELECT v FROM m');
    expect(failure('select v from m /* open')).toMatch(/^error parsing query: found ILLEGAL/);
  });

  test('bound parameters', () => {
    const bound = (value: unknown): unknown => {
      const condition = where('x = $"a b"', { 'a b': value });
      return condition.kind === 'binary' && condition.right;
    };
    expect(bound('s')).toEqual({ kind: 'string', value: 's' });
    expect(bound(2)).toEqual({ kind: 'integer', value: 2n });
    expect(bound(12345678901234567890n)).toEqual({ kind: 'integer', value: 12345678901234567890n });
    expect(bound(2.5)).toEqual({ kind: 'number', value: 2.5 });
    expect(bound(false)).toEqual({ kind: 'boolean', value: false });
    expect(bound({ duration: '5m' })).toEqual({ kind: 'duration', value: 300_000_000_000n });
    expect(bound({ float: 2 })).toEqual({ kind: 'number', value: 2 });
    expect(bound({ identifier: 'y z' })).toEqual({
      kind: 'reference',
      name: 'y z',
      cast: undefined,
    });
    expect(where('x =~ $r', { r: { regex: '^a' } })).toMatchObject({
      right: { pattern: { source: '^a' } },
    });
    expect(select('select v from m limit $n', { n: 7 }).limit).toBe(7);
    expect(failure('select v from m where x = $y', { y: {} })).toBe(
      'error parsing query: unable to bind parameter with type map[string]interface {}',
    );
    expect(failure('select v from m where x = $toString', {})).toBe(
      'error parsing query: missing parameter: toString',
    );
  });
});

describe('other statements', () => {
  test.each([
    ['SHOW RETENTION POLICIES on "db"', 'SHOW RETENTION POLICIES ON db'],
    [
      'SHOW MEASUREMENTS WITH MEASUREMENT =~ /(?i)cp/ LIMIT 100',
      'SHOW MEASUREMENTS WITH MEASUREMENT =~ /(?i)cp/ LIMIT 100',
    ],
    ['SHOW measurements', 'SHOW MEASUREMENTS'],
    ['show field keys from "rp"."m" limit 3', 'SHOW FIELD KEYS FROM rp.m LIMIT 3'],
    [
      `SHOW TAG VALUES FROM "m" WITH KEY = "k" WHERE "t"::tag = 'v' AND time > 5`,
      "SHOW TAG VALUES FROM m WITH KEY = k WHERE t::tag = 'v' AND time > 5",
    ],
    [
      'SHOW TAG VALUES FROM /^cpu$/ WITH KEY IN ("host", a) OFFSET 2',
      'SHOW TAG VALUES FROM /^cpu$/ WITH KEY IN (host, a) OFFSET 2',
    ],
    ['show tag keys on d slimit 1 soffset 2', 'SHOW TAG KEYS ON d SLIMIT 1 SOFFSET 2'],
    [
      'show series exact cardinality from m group by h',
      'SHOW SERIES EXACT CARDINALITY FROM m GROUP BY h',
    ],
    ['show tag values cardinality with key !~ /x/', 'SHOW TAG VALUES CARDINALITY WITH KEY !~ /x/'],
    ["show stats for 'httpd'", "SHOW STATS FOR 'httpd'"],
    ['CREATE DATABASE gg', 'CREATE DATABASE gg'],
    [
      'CREATE DATABASE benchmark WITH REPLICATION 1',
      'CREATE DATABASE benchmark WITH REPLICATION 1',
    ],
    [
      'create database "a b" with duration inf replication 2 shard duration 1h name "select"',
      'CREATE DATABASE "a b" WITH DURATION 0s REPLICATION 2 SHARD DURATION 1h NAME "select"',
    ],
    [
      'create retention policy "7d" on "exp" duration 7d replication 1 default',
      'CREATE RETENTION POLICY "7d" ON exp DURATION 1w REPLICATION 1 DEFAULT',
    ],
    [
      'alter retention policy "7d" on exp default duration 90m',
      'ALTER RETENTION POLICY "7d" ON exp DURATION 90m DEFAULT',
    ],
    ['drop measurement "rt"', 'DROP MEASUREMENT rt'],
    ["DROP SERIES FROM cpu WHERE host = 'a'", "DROP SERIES FROM cpu WHERE host = 'a'"],
    ["delete where time < '2016-01-01'", "DELETE WHERE time < '2016-01-01'"],
    ['kill query 36 on "host:8088"', 'KILL QUERY 36 ON "host:8088"'],
    ['drop shard 3', 'DROP SHARD 3'],
  ])('%s', (text, expected) => {
    expect(reads(text)).toBe(expected);
    // INF is printed as 0s, which is no word of its own.
    expect(reads(expected)).toBe(expected);
  });

  test.each([
    'CREATE CONTINUOUS QUERY c ON d RESAMPLE EVERY 1m FOR 2m BEGIN SELECT mean(v) INTO x FROM m GROUP BY time(1m) END',
    'DROP CONTINUOUS QUERY c ON d',
    "CREATE SUBSCRIPTION s ON d.r DESTINATIONS ANY 'udp://h:1', 'udp://h:2'",
    'DROP SUBSCRIPTION s ON d.r',
  ])('%s is not supported', (text) => {
    const statement = parse(text);
    expect(statement).toMatchObject({ kind: 'unsupported' });
    expect(statement.kind === 'unsupported' && statement.error).toMatch(/ is not supported yet$/);
  });

  test.each([
    ["create user u with password 'geheim'", 'CREATE USER u WITH PASSWORD [REDACTED]'],
    [
      `CREATE USER "a b" WITH PASSWORD 'geheim' WITH ALL PRIVILEGES`,
      'CREATE USER "a b" WITH PASSWORD [REDACTED] WITH ALL PRIVILEGES',
    ],
    ['DROP USER u', 'DROP USER u'],
    [`SET PASSWORD FOR "u" = 'geheim'`, 'SET PASSWORD FOR u = [REDACTED]'],
    ['grant read on d to u', 'GRANT READ ON d TO u'],
    ['GRANT WRITE ON "select" TO u', 'GRANT WRITE ON "select" TO u'],
    ['GRANT ALL ON d TO u', 'GRANT ALL PRIVILEGES ON d TO u'],
    ['GRANT ALL TO u', 'GRANT ALL PRIVILEGES TO u'],
    ['REVOKE READ ON d FROM u', 'REVOKE READ ON d FROM u'],
    ['REVOKE ALL PRIVILEGES FROM u', 'REVOKE ALL PRIVILEGES FROM u'],
    ['SHOW GRANTS FOR "u"', 'SHOW GRANTS FOR u'],
    ['SHOW USERS', 'SHOW USERS'],
  ])('of users: %s', (text, expected) => {
    const statement = parse(text);
    expect(printStatement(statement)).toBe(expected);
    // No password is repeated, however the statement is written out.
    expect(JSON.stringify(statement) + inspect(statement, { depth: 9 })).not.toContain('geheim');
  });

  test('passwords are kept as they are', () => {
    const statement = parse("CREATE USER u WITH PASSWORD 'it\\'s'");
    expect(statement.kind === 'createUser' && statement.password.reveal()).toBe("it's");
  });

  // The messages are those of influxd 1.6.
  test.each([
    ['CREATE USER', 'found EOF, expected identifier at line 1, char 13'],
    ['CREATE USER u WITH', 'found EOF, expected PASSWORD at line 1, char 20'],
    ['CREATE USER u WITH PASSWORD "x"', 'found x, expected string at line 1, char 29'],
    ["CREATE USER u WITH PASSWORD 'x' WITH", 'found EOF, expected ALL at line 1, char 38'],
    ['SET PASSWORD FOR u', 'found EOF, expected = at line 1, char 20'],
    ['SET PASSWORD FOR u =', 'found EOF, expected string at line 1, char 21'],
    ['GRANT', 'found EOF, expected READ, WRITE, ALL [PRIVILEGES] at line 1, char 7'],
    ['GRANT READ', 'found EOF, expected ON at line 1, char 12'],
    ['GRANT READ ON d', 'found EOF, expected TO at line 1, char 17'],
    ['GRANT READ ON d FROM u', 'found FROM, expected TO at line 1, char 17'],
    ['GRANT ALL', 'found EOF, expected ON, TO at line 1, char 11'],
    ['GRANT ALL PRIVILEGES FROM u', 'found FROM, expected ON, TO at line 1, char 22'],
    ['GRANT READ TO u', 'found TO, expected ON at line 1, char 12'],
    ['REVOKE ALL TO u', 'found TO, expected ON, FROM at line 1, char 12'],
    ['SHOW GRANTS', 'found EOF, expected FOR at line 1, char 13'],
    ['SHOW USERS FOR x', 'found FOR, expected ; at line 1, char 12'],
  ])('of users, not well-formed: %s', (text, message) => {
    expect(() => parseQuery(text, { now })).toThrow(`error parsing query: ${message}`);
  });

  test('several, with empty ones between', () => {
    const kinds = parseQuery(';; show databases;; drop database x ;', { now }).map(
      ({ kind }) => kind,
    );
    expect(kinds).toEqual(['show', 'dropDatabase']);
    expect(parseQuery(' ; ', { now })).toEqual([]);
  });
});

test('long lists of a statement are parsed in slices', () => {
  const names = (count: number): string => Array.from({ length: count }, (_, n) => `f${n}`).join();
  const slices = (text: string): number => {
    const steps = [...parseStatements(text, { now })];
    expect(steps.filter((step) => step !== undefined)).toHaveLength(1);
    return steps.length - 1;
  };
  expect(slices(`SELECT ${names(100)} FROM m`)).toBe(0);
  const many = 10_000;
  const atLeast = Math.floor(many / 256);
  expect(slices(`SELECT ${names(many)} FROM m`)).toBeGreaterThanOrEqual(atLeast);
  expect(slices(`SELECT v FROM ${names(many)}`)).toBeGreaterThanOrEqual(atLeast);
  expect(slices(`SELECT mean(v) FROM m GROUP BY ${names(many)}`)).toBeGreaterThanOrEqual(atLeast);
  expect(slices(`SELECT v FROM (SELECT ${names(many)} FROM m)`)).toBeGreaterThanOrEqual(atLeast);
});
