import { describe, expect, test } from 'vitest';
import { RespReader } from '../../../../test/support/resp-value.ts';
import { RespWriter } from '../../resp-writer.ts';
import { allCommands } from '../all.ts';
import type { CommandSpec } from '../spec.ts';
import { type Argument, parseSyntax, writeArguments } from './syntax.ts';

const plain = { optional: false, multiple: false, repeatsToken: false, parts: [] };
const token = (word: string) => {
  return { ...plain, name: word.toLowerCase(), type: 'pure-token', token: word };
};

describe('the tree of a line', () => {
  test('placeholders have the type their name tells, or what is said', () => {
    const line = 'key value increment increment:double min:string ip:port';
    expect(parseSyntax(line)).toEqual([
      { ...plain, name: 'key', type: 'key', keySpec: 0 },
      { ...plain, name: 'value', type: 'string' },
      { ...plain, name: 'increment', type: 'integer' },
      { ...plain, name: 'increment', type: 'double' },
      { ...plain, name: 'min', type: 'string' },
      { ...plain, name: 'ip:port', type: 'string' },
    ]);
  });

  test('alternatives, optional and required', () => {
    const parts = [token('LEFT'), token('RIGHT')];
    const oneof = { ...plain, name: 'left_right', type: 'oneof', parts };
    expect(parseSyntax('<LEFT | RIGHT> [LEFT | RIGHT]')).toEqual([
      oneof,
      { ...oneof, optional: true },
    ]);
  });

  test('a token before a value, and before alternatives', () => {
    const parts = [token('SUM'), token('MIN')];
    expect(parseSyntax('[COUNT count] [AGGREGATE <SUM | MIN>] [REV]')).toEqual([
      { ...plain, name: 'count', type: 'integer', token: 'COUNT', optional: true },
      { ...plain, name: 'aggregate', type: 'oneof', token: 'AGGREGATE', optional: true, parts },
      { ...token('REV'), optional: true },
    ]);
  });

  test('a token of several values is the token of their block', () => {
    const offset = { ...plain, name: 'offset', type: 'integer' };
    const count = { ...plain, name: 'count', type: 'integer' };
    const block = { ...plain, name: 'offset_count', type: 'block', parts: [offset, count] };
    expect(parseSyntax('[LIMIT offset count]')).toEqual([
      { ...block, token: 'LIMIT', optional: true },
    ]);
    const any = { ...token('ANY'), optional: true };
    expect(parseSyntax('[COUNT count [ANY]]')).toMatchObject([
      { type: 'block', optional: true, parts: [{ ...count, token: 'COUNT' }, any] },
    ]);
  });

  test('repetitions', () => {
    expect(parseSyntax('field value [field value ...]')).toMatchObject([
      { type: 'block', multiple: true, parts: [{ name: 'field' }, { name: 'value' }] },
    ]);
    expect(parseSyntax('[WEIGHTS weight [weight ...]]')).toMatchObject([
      { name: 'weight', token: 'WEIGHTS', optional: true, multiple: true, repeatsToken: false },
    ]);
    expect(parseSyntax('[PREFIX prefix [PREFIX prefix ...]]')).toMatchObject([
      { name: 'prefix', token: 'PREFIX', optional: true, multiple: true, repeatsToken: true },
    ]);
  });

  test('keys of one kind have one key specification', () => {
    const specs = (line: string) => parseSyntax(line).map(({ keySpec }) => keySpec);
    expect(specs('key1 key2')).toEqual([0, 0]);
    expect(specs('destination numkeys key [key ...]')).toEqual([0, undefined, 1]);
    const sort = 'key [BY pattern:key-pattern] [GET pattern:key-pattern] [STORE destination]';
    expect(specs(sort)).toEqual([0, 1, 1, 2]);
  });

  test.each([
    ['[key', 'key]', '<A | B', 'key | value', '[A | ]', '[]', '<>'],
    ['key ...', '[key ...]', 'key [value ...]', 'value [key value ...]', '<A | B]'],
  ])('%s and others are refused', (...lines) => {
    for (const line of lines) expect(() => parseSyntax(line), line).toThrow(RangeError);
  });
});

describe('in COMMAND DOCS', () => {
  const written = (version: 2 | 3, line: string) => {
    const writer = new RespWriter();
    writer.version = version;
    writeArguments(parseSyntax(line), writer);
    const reader = new RespReader();
    reader.push(Buffer.from(writer.buf.subarray(0, writer.pos)));
    return reader.next();
  };
  const bulk = (text: string) => ({ type: '$', text });
  const line = 'key [GET pattern [GET pattern ...]] [NX | XX]';

  test.each([
    [2, '*', '*'],
    [3, '%', '~'],
  ] as const)('RESP%i', (version, map, set) => {
    const nx = ['name', 'nx', 'type', 'pure-token', 'token', 'NX'].map(bulk);
    const xx = ['name', 'xx', 'type', 'pure-token', 'token', 'XX'].map(bulk);
    const flagsOf = (...flags: string[]) => {
      return { type: set, items: flags.map((text) => ({ type: '+', text })) };
    };
    const alternatives = {
      type: '*',
      items: [
        { type: map, items: nx },
        { type: map, items: xx },
      ],
    };
    const key = [...['name', 'key', 'type', 'key', 'key_spec_index'].map(bulk)];
    const pattern = ['name', 'pattern', 'type', 'pattern', 'token', 'GET', 'flags'].map(bulk);
    const oneof = ['name', 'nx_xx', 'type', 'oneof', 'flags'].map(bulk);
    expect(written(version, line)).toEqual({
      type: '*',
      items: [
        { type: map, items: [...key, { type: ':', text: '0' }] },
        { type: map, items: [...pattern, flagsOf('optional', 'multiple', 'multiple_token')] },
        { type: map, items: [...oneof, flagsOf('optional'), bulk('arguments'), alternatives] },
      ],
    });
  });
});

/** The fewest words an argument can be. */
function fewest(argument: Argument): number {
  const { type, parts } = argument;
  const inside = parts.map((part) => (part.optional ? 0 : fewest(part)));
  // Alternatives that are all optional still ask for one of them.
  if (type === 'oneof') return (argument.token ? 1 : 0) + Math.max(1, Math.min(...inside));
  if (type === 'block') return (argument.token ? 1 : 0) + inside.reduce((a, b) => a + b, 0);
  return type === 'pure-token' || argument.token === undefined ? 1 : 2;
}

function* rows(specs: readonly CommandSpec[], container = ''): Generator<[string, CommandSpec]> {
  for (const spec of specs) {
    yield [`${container}${spec.name}`, spec];
    yield* rows(spec.subcommands ?? [], `${spec.name} `);
  }
}

describe('the rows', () => {
  // GETKEYS takes any command and its words, which Redis leaves undocumented.
  const undocumented = /^command getkeys/;
  // Redis takes them with fewer words than it documents.
  const lenient = new Set(['pfmerge', 'geopos', 'geohash']);

  test.each([...rows(allCommands.flat())])('%s has the syntax its arity asks for', (name, spec) => {
    const { arity, syntax } = spec;
    const ownWords = name.split(' ').length;
    if (syntax === undefined) {
      const container = spec.subcommands !== undefined || spec.group === 'cluster';
      if (!container && !undocumented.test(name)) expect(Math.abs(arity)).toBe(ownWords);
      return;
    }
    const args = parseSyntax(syntax);
    const least = args.reduce((sum, one) => sum + (one.optional ? 0 : fewest(one)), ownWords);
    const more = args.some(({ optional, multiple }) => optional || multiple);
    expect(Math.abs(arity)).toBe(lenient.has(name) ? least - 1 : least);
    if (arity > 0) expect(more).toBe(false);
  });
});
