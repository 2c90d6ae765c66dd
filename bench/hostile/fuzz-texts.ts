// Random texts from grammars, of about a given length, the same for the same seed. They consist of
// runs of significant tokens: a text of superlinear cost usually repeats a token.

import type { Rng } from '../../universal-row/environment.ts';

/** A number from 0 to n - 1. */
export function below(rng: Rng, n: number): number {
  return Math.floor(rng.next() * n);
}

export function oneOf<T>(rng: Rng, all: readonly T[]): T {
  return all[below(rng, all.length)]!;
}

/** Atoms, one by one or in runs, up to this length. */
export function runs(rng: Rng, length: number, atoms: readonly string[]): string {
  const parts: string[] = [];
  for (let left = length; left > 0; ) {
    const atom = oneOf(rng, atoms);
    // Half of all runs extend to the end.
    const most = Math.max(1, Math.ceil(left / atom.length));
    const times = rng.next() < 0.5 ? 1 + below(rng, 4) : 1 + below(rng, most);
    parts.push(atom.repeat(Math.min(times, most)));
    left -= atom.length * times;
  }
  return parts.join('');
}

const globAtoms = ['*', '?', 'a', 'b', '[ab]', '[^a]', '[a-c]', '\\a', '[', ']', '*a', 'a*', 'ab'];
const nameAtoms = ['a', 'b', 'c', 'ab', '-', '\\'];

export function globText(rng: Rng, length: number): string {
  return runs(rng, length, globAtoms);
}

export function nameText(rng: Rng, length: number): string {
  return runs(rng, length, nameAtoms);
}

const digitAtoms = ['1', '0', '9', '.', 'e', '-', '+', 'x', '0x'];

/** A number, or nearly one. */
export function digitText(rng: Rng, length: number): string {
  return runs(rng, length, digitAtoms);
}

const regexAtoms = [
  ...['a', 'b', '.', '[ab]', '[^a]', '(a|b)', '(?:ab)', '\\d', '\\w', '^', '$', '|', 'a|', '(?i)'],
  ...['*', '+', '?', '*?', '{2}', '{1,9}', '{0,100}', '(', ')', '(a', 'b)', '\\b', '[[:alpha:]]'],
];

export function regexText(rng: Rng, length: number): string {
  return runs(rng, length, regexAtoms);
}

const valueAtoms = [
  '1',
  '0',
  '.',
  'e',
  'E',
  '-',
  '+',
  'i',
  'u',
  't',
  'true',
  'x',
  '9',
  '"',
  '\\"',
  ' ',
];
const keyAtoms = ['a', 'b', ',', '=', ' ', '\\,', '\\ ', '\\=', '\\', '"', 'tag=v', ',t=v'];

export function lineText(rng: Rng, length: number): string {
  const parts: string[] = [];
  for (let left = length; left > 0; ) {
    const key = runs(rng, Math.ceil(left * rng.next() * 0.5), keyAtoms);
    const value = runs(rng, Math.ceil(left * rng.next()), valueAtoms);
    const line = rng.next() < 0.7 ? `m,t=${key} f=${value}` : `${key} ${key}=${value}`;
    const end = oneOf(rng, ['\n', '\r\n', ' 1\n', ' x\n', '\n\n#', '\n#\n']);
    parts.push(line, end);
    left -= line.length + end.length;
  }
  return parts.join('');
}

const expressionAtoms = [
  ...[
    'v',
    '1',
    '(',
    ')',
    '+',
    '*',
    '-',
    ' ',
    ',',
    'mean(v)',
    '"v"',
    "'s'",
    '/a/',
    '=~',
    '!~',
    ' AND ',
  ],
  ...[
    ' OR ',
    '=',
    '1h',
    '::float',
    'now()',
    '.',
    '..',
    '$p',
    '--x\n',
    '/*x*/',
    '"',
    "'",
    '\\',
    '/',
  ],
];
const statementAtoms = [
  ...['SELECT ', ' FROM m', ' WHERE ', ' GROUP BY ', 'time(1h)', ' fill(0)', ' LIMIT 1', ';', '*'],
  ...[
    'SHOW TAG VALUES WITH KEY ',
    'SHOW SERIES',
    'EXPLAIN ',
    'DROP SERIES ',
    ' IN (',
    ')',
    ' INTO m',
  ],
];

export function queryText(rng: Rng, length: number): string {
  if (rng.next() < 0.4) {
    const condition = runs(rng, length, expressionAtoms);
    return oneOf(rng, [
      `SELECT v FROM m WHERE ${condition}`,
      `SELECT ${condition} FROM m`,
      `SELECT v FROM (${condition})`,
      `SELECT v FROM m GROUP BY ${condition}`,
    ]);
  }
  return runs(rng, length, [...statementAtoms, ...expressionAtoms]);
}

const jsonAtoms = [
  '"',
  '\\"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '1',
  '12345678901234567890',
  'e',
  '-',
  '"a":',
  ' ',
];

export function paramsText(rng: Rng, length: number): string {
  return runs(rng, length, jsonAtoms);
}

const formAtoms = ['a', '=', '&', '%', '%20', '%zz', '+', 'q=', '&q=', 'db=x&', ';', 'ü'];

export function formText(rng: Rng, length: number): string {
  return runs(rng, length, formAtoms);
}

const headAtoms = [
  ...[
    'form-data',
    ';',
    ' ',
    '\t',
    'boundary=',
    '"',
    '=',
    'name="a"',
    'x',
    ',',
    'gzip',
    ';q=0',
    '.0',
  ],
  ...['application/csv', 'Basic ', 'Token ', ':', 'A', '=='],
];

export function headText(rng: Rng, length: number): string {
  return runs(rng, length, headAtoms);
}

const respAtoms = [
  ...[
    '*1\r\n',
    '*3\r\n',
    '$1\r\na\r\n',
    '$3\r\nGET\r\n',
    '$',
    '*',
    '\r\n',
    '\n',
    '\r',
    ' ',
    '"',
    "'",
  ],
  ...['\\x41', '\\', 'PING', '1', '0', '-1', '$0\r\n\r\n', '*0\r\n', 'a'],
];

export function respText(rng: Rng, length: number): string {
  return runs(rng, length, respAtoms);
}

const ruleAtoms = [
  '+get ',
  '-get ',
  '+@all ',
  '-@all ',
  '~a* ',
  '~* ',
  '%R~a ',
  '&c* ',
  '(',
  ') ',
  '+config|get ',
  '>p ',
  '~a',
];

export function rulesText(rng: Rng, length: number): string {
  return runs(rng, length, ruleAtoms);
}

const luaAtoms = [
  ...[
    '(',
    ')',
    '{',
    '}',
    '[',
    ']',
    '((',
    'x',
    'x=',
    '=',
    ',',
    ';',
    '.',
    '..',
    ':',
    ' ',
    '\n',
    '1',
    '"a"',
  ],
  ...[
    'not ',
    '-',
    '#',
    '^',
    '+1',
    ' and x',
    '..x',
    '.x',
    ':x()',
    '[1]',
    '{},',
    '[[',
    ']]',
    '[==[',
    '--',
    '--[[',
  ],
  ...[
    '"',
    "'",
    '\\',
    '\\0',
    '0x',
    '1e',
    'x=1 ',
    'local x ',
    'return ',
    'if x then ',
    'else ',
    'elseif x then ',
  ],
  ...[
    'end ',
    'do ',
    'while x do ',
    'repeat ',
    'until x ',
    'for i=1,2 do ',
    'for k in x do ',
    'function(',
    '...',
  ],
];

export function luaText(rng: Rng, length: number): string {
  const text = runs(rng, length, luaAtoms);
  return rng.next() < 0.1 ? `#!lua ${text}\n` : text;
}
