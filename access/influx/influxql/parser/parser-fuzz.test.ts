import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Statement } from '../ast.ts';
import { ParseError } from '../result.ts';
import { parseQuery } from './parser.ts';
import { printStatement } from './print.ts';

const now = 1_600_000_000_000_000_000n;

function parse(text: string): Statement {
  return parseQuery(text, { now })[0]!;
}

function failure(text: string): string {
  try {
    parseQuery(text, { now });
  } catch (error) {
    if (error instanceof ParseError) return error.message;
    throw error;
  }
  return 'none';
}

/** All but the functions in it. */
function plain(statement: Statement): string {
  return JSON.stringify(statement, (_key, value: unknown) =>
    typeof value === 'bigint' ? `${value}n` : value,
  );
}

describe('whatever comes', () => {
  const words = [
    ...'select from where group by order limit offset slimit soffset into and or as time fill tz show tag'.split(
      ' ',
    ),
    ...'keys values with key in series measurements measurement cardinality exact drop create database'.split(
      ' ',
    ),
    ...'retention policy on duration replication delete explain analyze distinct true now kill query'.split(
      ' ',
    ),
    ...'( ) , ; . : :: + - * / % & | ^ = != =~ !~ < <= > >= <> $ $x # \\ \n'.split(' '),
    ...[
      'm',
      'v',
      '"q\\"x"',
      "'s'",
      "'2016-01-01'",
      '/re/',
      '/(/',
      '1',
      '1.5',
      '5m',
      '1y',
      "'open",
      '--',
      '/*',
      '*/',
    ],
  ];
  const soup = fc
    .array(fc.tuple(fc.constantFrom(...words), fc.constantFrom(' ', '')), { maxLength: 60 })
    .map((parts) => parts.flat().join(''));

  test('is parsed or refused', () => {
    fc.assert(
      fc.property(fc.oneof(soup, fc.string({ unit: 'binary' })), (text) => {
        expect(failure(text)).toMatch(/^(none$|error parsing query: )/);
      }),
      { numRuns: 5000 },
    );
  });

  test('and what is printed of it parses to the same', () => {
    const name = fc.constantFrom('v', '"a b"', '"from"', 'a.b', '"x"."y"', 'v::tag', 'v::float');
    const literal = fc.constantFrom(
      '1',
      '-2',
      '2.5',
      '1e3s',
      '5m',
      '-90s',
      "'x\\'y'",
      'true',
      '7ns',
      '9999999999999999.5',
      '0.0000001',
    );
    const { expression } = fc.letrec<{ expression: string }>((tie) => ({
      expression: fc.oneof(
        { maxDepth: 4 },
        name,
        literal,
        fc
          .tuple(
            tie('expression'),
            fc.constantFrom('+', '-', '*', '/', '%', '&', '|', '^'),
            tie('expression'),
          )
          .map((parts) => parts.join(' ')),
        tie('expression').map((inner) => `(${inner})`),
        tie('expression').map((inner) => `-(${inner})`),
        name.map((inner) => `-${inner}`),
        fc.array(tie('expression'), { maxLength: 3 }).map((args) => `f(${args.join(',')})`),
      ),
    }));
    const condition = fc
      .array(
        fc.tuple(
          expression,
          fc.constantFrom('=', '<', '>=', '!='),
          expression,
          fc.constantFrom('and', 'OR'),
        ),
        { minLength: 1, maxLength: 5 },
      )
      .map((terms) =>
        terms.map(([a, op, b, join], i) => `${i > 0 ? join : ''} ${a} ${op} ${b}`).join(' '),
      );
    const source = fc.constantFrom(
      'm',
      '"a b"',
      'd..m',
      'd.r.m',
      'r./x\\/y/',
      '/(?i)a/',
      '(select * from m where v > 1)',
    );
    const tail = fc.constantFrom(
      '',
      'group by *',
      'group by time(90s, 5s), h fill(1.5)',
      'order by time desc limit 3',
      "slimit 2 tz('UTC')",
    );
    const text = fc
      .tuple(
        fc.array(expression, { minLength: 1, maxLength: 3 }),
        fc.array(source, { minLength: 1, maxLength: 2 }),
        condition,
        tail,
      )
      .map(
        ([fields, sources, where, end]) =>
          `select ${fields.join(', ')} as x from ${sources.join(', ')} where ${where} ${end}`,
      );
    let parsed = 0;
    fc.assert(
      fc.property(text, (query) => {
        if (failure(query) !== 'none') return;
        parsed++;
        const statement = parse(query);
        expect(plain(parse(printStatement(statement)))).toBe(plain(statement));
      }),
      { numRuns: 2000 },
    );
    expect(parsed).toBeGreaterThan(500);
  });

  test('depth is bounded, and cost is not more than the size', () => {
    const deep = 'nested too deeply';
    for (const text of [
      '('.repeat(100_000),
      '-('.repeat(100_000),
      'f('.repeat(100_000),
      `1${'+1'.repeat(100_000)}`,
    ]) {
      expect(failure(`select ${text}`)).toContain(deep);
    }
    expect(failure(`select v from ${'(select v from '.repeat(100_000)}`)).toContain(deep);
    const terms = (count: number): string =>
      `select v from m where ${Array.from({ length: count }, (_, i) => `h = '${i}'`).join(' or ')}`;
    expect(failure(terms(8000))).toBe('none');
    expect(failure(terms(8200))).toContain('statement of more than 32768 tokens');
    expect(failure(`${terms(8000)};${terms(8000)}`)).toBe('none');
    expect(failure(`select v from m where x = '${'\\n'.repeat(500_000)}'`)).toBe('none');
  });
});
