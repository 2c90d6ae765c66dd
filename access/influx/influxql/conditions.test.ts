import { describe, expect, test } from 'vitest';
import type { SeriesFilter } from '../../../contracts/series-store.ts';
import type { Expression } from './ast.ts';
import { splitTags, splitTime } from './conditions.ts';
import { parseQuery } from './parser/parser.ts';
import { print } from './parser/print.ts';
import type { ReduceContext } from './parser/reduce.ts';

const now = 1_600_000_000_000_000_000n;
const fields = new Set(['v', 'i']);

interface ConditionContext extends ReduceContext {
  isTag(name: string): boolean;
}

function splitCondition(where: Expression | undefined, context: ConditionContext) {
  const { from, to, rest } = splitTime(where, context);
  return { from, to, ...splitTags(rest, (name) => context.isTag(name)) };
}

function split(condition: string, timeZone?: string) {
  const [statement] = parseQuery(`SELECT v FROM m WHERE ${condition}`, { now });
  if (statement?.kind !== 'select') throw new Error('not a SELECT');
  const context = { now, timeZone, isTag: (name: string) => !fields.has(name) };
  const { filter, residual, ...range } = splitCondition(statement.where, context);
  return {
    ...range,
    filter: filter && describeFilter(filter),
    residual: residual && print(residual),
  };
}

function describeFilter(filter: SeriesFilter): string {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return `${filter.kind}(${filter.terms.map(describeFilter).join(', ')})`;
    case 'equal':
    case 'notEqual':
      return `${filter.tag} ${filter.kind} ${filter.value}`;
    default:
      return `${filter.tag} ${filter.kind} ${filter.pattern}`;
  }
}

const nothing = { from: undefined, to: undefined, filter: undefined, residual: undefined };

test('no condition', () => {
  const split = splitCondition(undefined, { now, isTag: () => true });
  expect(split).toEqual(nothing);
});

describe('time', () => {
  test.each<[string, bigint | undefined, bigint | undefined]>([
    ['time > 60', 61n, undefined],
    ['time >= 60', 60n, undefined],
    ['time < 60', undefined, 59n],
    ['time <= 60', undefined, 60n],
    ['time = 60', 60n, 60n],
    ['60 < time', 61n, undefined],
    ['TIME > 1s', 1_000_000_001n, undefined],
    ['time > -1s', -999_999_999n, undefined],
    ['time > 1.5', 2n, undefined],
    ['time > (1s)', 1_000_000_001n, undefined],
    ['time > 1s * 2', 2_000_000_001n, undefined],
    ['time >= now() - 1h', now - 3_600_000_000_000n, undefined],
    ['time >= now() + 1s - 1s', now, undefined],
    ["time >= '1970-01-01' + 1s", 1_000_000_000n, undefined],
    [
      "time >= '1970-01-01T00:00:01Z' and time < '1970-01-01 00:00:02'",
      1_000_000_000n,
      1_999_999_999n,
    ],
    ['time > 10 and time > 20 and time < 50 and time < 40', 21n, 39n],
    // Under OR as well they hold together.
    ['time > 10 or time < 5', 11n, 4n],
    ['(time > 10)', 11n, undefined],
    ['time >= 0 and (time < 5 or (time > 1))', 2n, 4n],
    // Beyond the valid times.
    ['time >= -9223372036854775808', -9223372036854775806n, undefined],
    ['time <= 9223372036854775807', undefined, 9223372036854775806n],
  ])('%s', (condition, from, to) => {
    expect(split(condition)).toEqual({ ...nothing, from, to });
  });

  test('in a zone', () => {
    expect(split("time >= '1970-01-01'", 'Asia/Kolkata').from).toBe(-19_800_000_000_000n);
  });

  test.each([
    ["time > 'x'", 'invalid operation: time and *influxql.StringLiteral are not compatible'],
    ["time > '2016'", 'invalid operation: time and *influxql.StringLiteral are not compatible'],
    ["time > '2016-13-01'", 'invalid timestamp string'],
    ['time > v', 'invalid operation: time and *influxql.VarRef are not compatible'],
    ['time > v + 1', 'invalid operation: time and *influxql.BinaryExpr are not compatible'],
    ["time > now() - '1h'", 'invalid operation: time and *influxql.BinaryExpr are not compatible'],
    ['time > true', 'invalid operation: time and *influxql.BooleanLiteral are not compatible'],
    ['time =~ /x/', 'invalid operation: time and *influxql.RegexLiteral are not compatible'],
    [
      'time > 18446744073709551615',
      'invalid operation: time and *influxql.UnsignedLiteral are not compatible',
    ],
    ['time > now(1)', 'invalid operation: time and *influxql.Call are not compatible'],
    ['time != 5', 'invalid time comparison operator: !='],
    ['time + 1', 'invalid time comparison operator: +'],
    ["time > '3000-01-01'", 'time 3000-01-01T00:00:00Z overflows time literal'],
    ["time > '0001-01-01'", 'time 0001-01-01T00:00:00Z underflows time literal'],
    ['host', 'invalid condition expression: host'],
    ['5', 'invalid condition expression: 5'],
  ])('%s is refused as InfluxDB does', (condition, message) => {
    expect(() => split(condition)).toThrow(message);
  });
});

describe('tags and fields', () => {
  test.each<[string, string | undefined, string | undefined]>([
    ["h = 'a'", 'h equal a', undefined],
    ["'a' != h", 'h notEqual a', undefined],
    ["h = ''", 'h equal ', undefined],
    ['h =~ /a|b/', 'h match a|b', undefined],
    ['h !~ /a/', 'h notMatch a', undefined],
    ["h = 'a' and r = 'b'", 'and(h equal a, r equal b)', undefined],
    ["h = 'a' or h = 'b' or h = 'c'", 'or(h equal a, h equal b, h equal c)', undefined],
    ["(h = 'a' or h = 'b') and v > 5", 'or(h equal a, h equal b)', 'v > 5'],
    ["v > 5 and (h = 'a')", 'h equal a', 'v > 5'],
    ['v > 5', undefined, 'v > 5'],
    ['v > 5 and i < 3', undefined, 'v > 5 AND i < 3'],
    ["h = 'a' and v > 5 and i < 3", 'h equal a', 'v > 5 AND i < 3'],
    // Either may hold: rows of other hosts count as well.
    ["h = 'a' or v > 5", undefined, "h = 'a' OR v > 5"],
    [
      "(h = 'a' and v > 5) or (h = 'b' and v < 1)",
      'or(h equal a, h equal b)',
      "(h = 'a' AND v > 5) OR (h = 'b' AND v < 1)",
    ],
    [
      "(h = 'a' and v > 5) or h = 'b'",
      'or(h equal a, h equal b)',
      "(h = 'a' AND v > 5) OR h = 'b'",
    ],
    // No order, and no other types.
    ["h > 'a'", 'or()', undefined],
    ['h = 5', 'or()', undefined],
    ['h != 5', 'or()', undefined],
    ["h = 'a' and r > 'b'", 'or()', undefined],
    ["h = 'a' or r > 'b'", 'h equal a', undefined],
    ['h = r', undefined, 'h = r'],
    ["v = 'a'", undefined, "v = 'a'"],
    ["v::tag = 'a'", 'v equal a', undefined],
    ["h::field = 'a'", undefined, "h::field = 'a'"],
    ['true', undefined, undefined],
    ['false', 'or()', undefined],
    ["true and h = 'a'", 'h equal a', undefined],
    ["h = 'a' or true", undefined, undefined],
    ["'a' = 'a' and v > 1 + 0.5", undefined, 'v > 1.5'],
    // Time drops out, whatever joins it.
    ["time > 5 or h = 'a'", 'h equal a', undefined],
    ["(time > 5 and v > 1) or h = 'a'", undefined, "(v > 1) OR h = 'a'"],
  ])('%s', (condition, filter, residual) => {
    expect(split(condition)).toMatchObject({ filter, residual });
  });

  test('a filter matches as the expression does', () => {
    const [statement] = parseQuery('SELECT v FROM m WHERE h =~ /(?i)^A$/', { now });
    if (statement?.kind !== 'select') throw new Error('not a SELECT');
    const { filter } = splitCondition(statement.where, { now, isTag: () => true });
    if (filter?.kind !== 'match') throw new Error('not a match');
    expect(['a', 'A', 'ab'].map(filter.matches)).toEqual([true, true, false]);
  });

  test('long chains', () => {
    const chain = Array.from({ length: 8000 }, (_, i) => `h = '${i}'`).join(' OR ');
    expect(split(`${chain} AND v > 5`).residual).toContain('v > 5');
    expect(split(chain).residual).toBeUndefined();
  });
});
