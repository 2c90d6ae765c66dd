import { describe, expect, test } from 'vitest';
import { check } from './testing/check.ts';
import { NaiveStore } from './testing/naive-store.ts';
import { shown } from './testing/select.ts';

const refuse = (query: string, error: string): readonly [string, string] => [
  query,
  `error: ${error}`,
];

check('refused', 'cpu,host=a v=1,i=1i,s="x",b=true 0', [
  refuse('SELECT foo(v) FROM cpu', 'undefined function foo()'),
  refuse('SELECT mean(v, 3) FROM cpu', 'invalid number of arguments for mean, expected 1, got 2'),
  refuse('SELECT mean() FROM cpu', 'invalid number of arguments for mean, expected 1, got 0'),
  refuse('SELECT mean(3) FROM cpu', 'expected field argument in mean()'),
  refuse('SELECT mean(max(v)) FROM cpu', 'expected field argument in mean()'),
  refuse(
    'SELECT mean(v), v FROM cpu',
    'mixing aggregate and non-aggregate queries is not supported',
  ),
  refuse(
    'SELECT max(v), min(v), host FROM cpu',
    'mixing multiple selector functions with tags or fields is not supported',
  ),
  refuse('SELECT time FROM cpu', 'at least 1 non-time field must be queried'),
  refuse(
    'SELECT v FROM cpu GROUP BY time(1m)',
    'GROUP BY requires at least one aggregate function',
  ),
  refuse('SELECT v FROM cpu fill(none)', 'fill(none) must be used with a function'),
  refuse('SELECT v FROM cpu fill(linear)', 'fill(linear) must be used with a function'),
  refuse(
    'SELECT distinct(v), v FROM cpu',
    'aggregate function distinct() cannot be combined with other functions or fields',
  ),
  refuse(
    'SELECT distinct(v), max(v) FROM cpu',
    'aggregate function distinct() cannot be combined with other functions or fields',
  ),
  refuse(
    'SELECT top(v) FROM cpu',
    'invalid number of arguments for top, expected at least 2, got 1',
  ),
  refuse('SELECT top(v, 0) FROM cpu', 'limit (0) in top function must be at least 1'),
  refuse('SELECT top(v, host) FROM cpu', 'expected integer as last argument in top(), found host'),
  refuse('SELECT top(3, 2) FROM cpu', 'expected first argument to be a field in top(), found 3'),
  refuse('SELECT top(v, 3, 2) FROM cpu', 'only fields or tags are allowed in top(), found 3'),
  refuse(
    'SELECT top(v, 3) FROM cpu LIMIT 2',
    'limit (3) in top function can not be larger than the LIMIT (2) in the select statement',
  ),
  refuse(
    'SELECT top(v, 3), max(v) FROM cpu',
    'selector function top() cannot be combined with other functions',
  ),
  refuse(
    'SELECT bottom(v, 3), bottom(v, 2) FROM cpu',
    'selector function bottom() cannot be combined with other functions',
  ),
  refuse(
    'SELECT percentile(v) FROM cpu',
    'invalid number of arguments for percentile, expected 2, got 1',
  ),
  refuse(`SELECT percentile(v, 'x') FROM cpu`, 'expected float argument in percentile()'),
  refuse('SELECT sample(v, 0) FROM cpu', 'sample window must be greater than 1, got 0'),
  refuse('SELECT sample(v, 2.5) FROM cpu', 'expected integer argument in sample()'),
  refuse(
    'SELECT derivative() FROM cpu',
    'invalid number of arguments for derivative, expected at least 1 but no more than 2, got 0',
  ),
  refuse(
    'SELECT derivative(v, 3) FROM cpu',
    'second argument to derivative must be a duration, got *influxql.IntegerLiteral',
  ),
  refuse('SELECT derivative(v, 0s) FROM cpu', 'duration argument must be positive, got 0s'),
  refuse(
    'SELECT derivative(mean(v)) FROM cpu',
    'derivative aggregate requires a GROUP BY interval',
  ),
  refuse(
    'SELECT derivative(v) FROM cpu WHERE time > 0 GROUP BY time(1m)',
    'aggregate function required inside the call to derivative',
  ),
  refuse(
    'SELECT difference(v, 2) FROM cpu',
    'invalid number of arguments for difference, expected 1, got 2',
  ),
  refuse(
    'SELECT moving_average(v, 1) FROM cpu',
    'moving_average window must be greater than 1, got 1',
  ),
  refuse(
    'SELECT moving_average(v, 1.5) FROM cpu',
    'second argument for moving_average must be an integer, got *influxql.NumberLiteral',
  ),
  refuse('SELECT integral(v, 3) FROM cpu', 'second argument must be a duration'),
  refuse(
    'SELECT holt_winters(v, 2, 2) FROM cpu GROUP BY time(1m)',
    'must use aggregate function with holt_winters',
  ),
  refuse(
    'SELECT holt_winters(mean(v), 0, 2) FROM cpu GROUP BY time(1m)',
    'second arg to holt_winters must be greater than 0, got 0',
  ),
  refuse('SELECT mean(*) + 1 FROM cpu', 'unsupported expression with wildcard: mean()'),
  refuse('SELECT * + 1 FROM cpu', 'unable to use wildcard in a binary expression'),
  refuse('SELECT 1 FROM cpu', 'field must contain at least one variable'),
  refuse('SELECT abs(v, 2) FROM cpu', 'invalid number of arguments for abs, expected 1, got 2'),
  refuse(
    'SELECT mean(s) FROM cpu',
    'unsupported mean iterator type: *query.stringInterruptIterator',
  ),
  refuse(
    'SELECT sum(b) FROM cpu',
    'unsupported sum iterator type: *query.booleanInterruptIterator',
  ),
  refuse('SELECT max(s) FROM cpu', 'unsupported max iterator type: *query.stringInterruptIterator'),
  refuse(
    'SELECT difference(s) FROM cpu',
    'unsupported difference iterator type: *query.stringInterruptIterator',
  ),
  refuse('SELECT abs(s) FROM cpu', 'invalid argument type for the first argument in abs(): string'),
  refuse('SELECT v + s FROM cpu', 'type error: v + s: incompatible types: float and string'),
  refuse('SELECT mean(*::tag) FROM cpu', 'unable to use tag wildcard in mean()'),
]);

check(
  'too much memory',
  'cpu,host=a v=1 0\ncpu,host=b v=2 100',
  [refuse('SELECT median(v) FROM cpu', 'query memory limit exceeded: (8240/8000 bytes)')],
  { limits: { maxMemoryBytes: 8000, timeoutMs: 0 } },
);

describe('what would take too long to plan', () => {
  const store = new NaiveStore().load(
    Array.from({ length: 40 }, (_, m) => `m${m},t=a f${m}=1,g=2 1`).join('\n'),
  );
  const many = (count: number, item: (i: number) => string): string =>
    Array.from({ length: count }, (_, i) => item(i)).join(',');

  test.each([
    [`SELECT ${many(16_000, () => '*')} FROM /./`, 'more than 32768 columns: select fewer fields'],
    [`SELECT g FROM m1 GROUP BY ${many(1001, (i) => `t${i}`)}`, 'more than 1000 tags in GROUP BY'],
    [
      `SELECT ${many(620, () => '*')} FROM /./`,
      '26040 columns of 40 measurements are more than 1000000 together: select fewer of either',
    ],
  ])('%.40s', async (text, message) => {
    expect(await shown(text, store)).toBe(`error: ${message}`);
  });

  test('7,500 names are not too many, in a subquery either', async () => {
    const names = many(7500, (i) => `f${i}`);
    expect(await shown(`SELECT ${names} FROM (SELECT ${names} FROM m1)`, store)).toContain('m1');
  });
});
