// Nothing that a client sends costs more a byte the more of it there is: the known worst payloads, and random texts from
// the grammars of everything that is parsed. Work is counted, not timed; `npm run bench -- fuzz` goes by time, with as
// many inputs as one likes, and `npm run bench -- hostile` sends the payloads to a server.
//
//   FUZZ_SEED=n repeats a run

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { costFuzz } from '../../bench/hostile/cost-fuzz.ts';
import { fuzzTargets } from '../../bench/hostile/fuzz-targets.ts';
import * as payloads from '../../bench/hostile/payloads.ts';
import { WorkCounter } from '../support/counted-work.ts';

const seed = Number(process.env['FUZZ_SEED'] ?? 1);
/** Times that a byte may cost more in a text that is eight times as long. */
const growthLimit = 3;

let counter: WorkCounter;
beforeAll(() => {
  counter = new WorkCounter();
});
afterAll(() => counter.close());

function read(name: string, text: string): number {
  const target = fuzzTargets.find((one) => one.name === name)!;
  return counter.count(() => target.read(text));
}

function formOf({ contentType, body }: payloads.MultipartForm): string {
  return `${contentType}\0${body.toString('latin1')}`;
}

/** A payload by its size, where it is read, and the sizes between which its work must not grow faster. */
const known: readonly [what: string, reader: string, of: (size: number) => string, size: number][] =
  [
    ['a field value of e', 'line protocol', (n) => payloads.badLine(payloads.exponents(n)), 2000],
    ['a field value of digits', 'line protocol', (n) => payloads.badLine(payloads.digits(n)), 2000],
    ['many bad lines', 'line protocol', (n) => 'm v=x\n'.repeat(n / 6), 2000],
    [
      'one star and many letters',
      'glob patterns',
      (n) => `${payloads.longGlob(n)}\0${'a'.repeat(2 * n)}`,
      2000,
    ],
    [
      'many stars',
      'glob patterns',
      (n) => `${payloads.globPattern(n / 2)}\0${'a'.repeat(2 * n)}`,
      2000,
    ],
    ['a script of many statements', 'Lua scripts', (n) => 'x=1 '.repeat(n / 4), 2000],
    [
      'a counted pattern',
      'regular expressions',
      (n) => `(a|b|ab){1,50}c$\0${payloads.almostMatching(n)}`,
      2000,
    ],
    [
      'a pattern within a pattern',
      'regular expressions',
      (n) => `(a|b|ab)*c$\0${payloads.almostMatching(n)}`,
      2000,
    ],
    ['parentheses', 'InfluxQL', (n) => payloads.nestedQuery(n), 2000],
    ['conditions', 'InfluxQL', (n) => payloads.longCondition(n), 2000],
    ['statements', 'InfluxQL', (n) => payloads.manyStatements(n), 2000],
    ['quotes in params', 'query parameters', (n) => payloads.quotedParams(n), 2000],
    ['bare quotes in params', 'query parameters', (n) => payloads.bareQuotes(n), 2000],
    [
      'a long boundary',
      'multipart forms',
      (n) => formOf(payloads.multipartForm(n / 10, n)),
      20_000,
    ],
    ['a body of dashes', 'multipart forms', (n) => formOf(payloads.dashedForm(70, n)), 20_000],
    [
      'first arguments and commands by turns',
      'ACL rules',
      (n) => Array.from({ length: n / 20 }, (_, i) => `+set|a${i} +get -get +@read`).join(' '),
      2000,
    ],
    ['ACL rules', 'ACL rules', (n) => payloads.aclRules(n).join(' '), 2000],
  ];

describe('known payloads', () => {
  test.each(known)('%s in %s', (_what, reader, of, size) => {
    const before = read(reader, of(size));
    const after = read(reader, of(8 * size));
    // The counter sees what is read: a test that counts nothing shows nothing.
    expect(before).toBeGreaterThan(0);
    expect(after / before).toBeLessThan(8 * growthLimit);
  });
});

describe('random texts', () => {
  test.each(fuzzTargets)('$name', (target) => {
    const faults: string[] = [];
    const report = costFuzz(target, {
      inputs: 40,
      seed,
      repeats: 1,
      measure: (run) => counter.count(run),
      failed: (_target, text, error) => faults.push(`${String(error)}: ${text}`),
    });
    expect(faults).toEqual([]);
    expect(report, `seed ${seed}`).toSatisfy(({ growth }) => growth < growthLimit);
    expect(report.worstPerByte).toBeGreaterThan(0);
  });
});
