import fc from 'fast-check';
import { RE2JS } from 're2js';
import { describe, expect, test } from 'vitest';
import type { TextMatcher } from '../ast.ts';
import { Automaton, maxMatchedLength } from './automaton.ts';
import { matchWork, maxMatchWork } from './match-work.ts';
import { estimatedSize, maxPatternLength, PatternCompiler, PatternError } from './regexp.ts';

const compile = (source: string): TextMatcher => new PatternCompiler().compile(source).regexp;

/** With re2js' own driver, which must agree. */
function matches(source: string, text: string): boolean {
  const found = compile(source).test(text);
  expect(RE2JS.compile(source).test(text), `re2js /${source}/`).toBe(found);
  return found;
}

test.each<[source: string, yes: string[], no: string[]]>([
  ['b', ['abc'], ['ac', '']],
  ['^b', ['bc'], ['abc', 'a\nb']],
  ['b$', ['ab'], ['abc', 'b\nc', 'b\n']],
  ['^b$', ['b'], ['ab', 'bc', 'b\n']],
  ['^$', [''], ['a', '\n']],
  ['^b.*', ['b', 'bc', 'b\nc'], ['ab']],
  ['a\\.b', ['xa.by'], ['axb']],
  ['^host\\-1\\$$', ['host-1$'], ['host-1', 'host\\-1$']],
  ['b\\$', ['ab$c'], ['ab']],
  ['b\\\\$', ['ab\\'], ['ab\\c']],
  ['(?m)^b$', ['a\nb\nc', 'b'], ['ab']],
  ['\\Ab\\z', ['b'], ['b\n', 'ab']],
  ['a.b', ['axb', 'a😀b'], ['a\nb', 'ab']],
  ['(?s)a.b', ['a\nb'], ['ab']],
  ['(?i)CpU', ['cpu', 'xCPUx'], ['cp']],
  ['a(?i:b)c', ['aBc', 'abc'], ['Abc', 'abC']],
  ['a(?i)b|C', ['aB', 'c'], ['AB', 'b']],
  ['(a(?i)b)c', ['aBc'], ['abC']],
  ['(?i)[a-c]é', ['BÉ'], ['dé']],
  ['(?P<name>a|b)+c', ['abac'], ['c']],
  ['^(host_1|host_2)$', ['host_1'], ['host_12', 'xhost_1']],
  ['^(?:a\\.b|)$', ['a.b', ''], ['axb', 'a']],
  ['^(a|b)|(c)$', ['ax', 'xc'], ['xa']],
  ['^(a)(b)$', ['ab'], ['a', 'a)(b']],
  ['^a|b$', ['ax', 'xb'], ['xa']],
  ['a|b', ['xbx'], ['c']],
  ['x{2,3}y', ['xxy', 'xxxxy'], ['xy']],
  ['x{,2}', ['x{,2}'], ['xx']],
  ['a{0}b', ['b'], ['a']],
  ['[[:alpha:]_]+[^[:^digit:]]', ['a1', '_9'], ['1', 'ab']],
  ['[]a]', [']', 'a'], ['b']],
  ['[a\\-z]', ['-', 'z'], ['b']],
  ['[\\d-x]', ['5', '-', 'x'], ['a']],
  ['\\bfoo\\b', ['a foo'], ['afoo']],
  ['\\pL\\p{Greek}\\PL', ['aλ1'], ['aa1', 'λλλ']],
  ['[^\\pL]', ['1'], ['a']],
  ['\\x41\\x{1F600}\\101\\t', ['A😀A\t'], ['A']],
  ['\\Qa.b*\\E+', ['a.b**'], ['axb']],
  ['a/b\\/c', ['a/b/c'], ['ab']],
  ['\\w\\W\\d\\D\\s\\S', ['a-1x\ty'], ['a-1x\t']],
  ['(?U)a+?b', ['aab'], ['b']],
  ['', ['', 'a'], []],
  ['.*', ['', 'a', '\n'], []],
  ['(|a)+$', ['', 'b'], []],
])('/%s/', (source, yes, no) => {
  for (const text of yes) expect(matches(source, text), text).toBe(true);
  for (const text of no) expect(matches(source, text), text).toBe(false);
});

const { node } = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(
      'a',
      'b',
      '.',
      '[ab]',
      '[^a]',
      '\\b',
      '^',
      '$',
      '(?i)B',
      '\\w',
      '\\.',
      '.*',
      '',
    ),
    fc.tuple(tie('node'), tie('node')).map(([a, b]) => a + b),
    fc.tuple(tie('node'), tie('node')).map(([a, b]) => `(?:${a}|${b})`),
    fc
      .tuple(tie('node'), fc.constantFrom('*', '+', '?', '{2}', '{0,2}', '{3,}', '*?'))
      .map(([a, op]) => `(${a})${op}`),
  ),
}));

test('both drivers agree, as does what needs none', () => {
  fc.assert(
    fc.property(
      node,
      fc.string({ unit: fc.constantFrom('a', 'b', 'B', '.', ' ', '\n', 'é', '😀'), maxLength: 8 }),
      (source, text) => {
        try {
          matches(source, text);
        } catch (error) {
          if (!(error instanceof PatternError)) throw error;
        }
      },
    ),
    { numRuns: 3000 },
  );
});

test('the estimate of a program is no less than the program', () => {
  const check = (source: string): void => {
    expect(estimatedSize(source), source).toBeGreaterThanOrEqual(
      RE2JS.compile(source).re2().prog.numInst() - 4,
    );
  };
  for (const source of [
    '((a{10}){10}){10}',
    '[^]x{1000}]{1000}',
    '[[:alpha:]]{50}',
    'x{1000}\\x{41}',
    '\\p{Greek}{20}',
    '\\Qa{5}\\E{1000}',
    '(?:a|b|[c-e]{7}){30}',
    '\\{{100}',
    '(a\\){3}){20}',
    'x{2,}',
  ]) {
    check(source);
  }
  fc.assert(fc.property(node, check), { numRuns: 1000 });
});

describe('names and lists of names', () => {
  test('take no automaton', () => {
    const names = Array.from({ length: 5000 }, (_, i) => `host\\.${i}`).join('|');
    for (const source of ['a', '^a', 'a$', '^a$', '^a.*', `^(${names})$`, `^(?:${names})$`]) {
      expect(compile(source), source.slice(0, 9)).not.toBeInstanceOf(Automaton);
    }
    expect(compile(`^(${names})$`).test('host.4999')).toBe(true);
    expect(compile('a|b')).toBeInstanceOf(Automaton);
    // The built-in search for long texts is not linear.
    expect(compile('a'.repeat(201))).toBeInstanceOf(Automaton);
  });
});

/** Instructions followed while it runs. */
function workOf(run: () => void): number {
  const before = matchWork.total;
  run();
  return matchWork.total - before;
}

const afterOthers = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('work does not grow faster than the text', () => {
  test.each([
    ['(a+)+$', 'a'],
    ['(x+x+)+y', 'x'],
    ['(a|a)*b', 'a'],
    ['.*a.*b.*c.*d.*x', 'abcd'],
    [`${'a?'.repeat(60)}${'a'.repeat(60)}b`, 'a'],
    ['(a?){50}a{50}b', 'a'],
    // Four of these on a tag of 12 kB ran out of memory.
    ['((a|b){1,30}c?){1,30}d', 'ab'],
  ])('/%s/', async (source, unit) => {
    const work = async (length: number): Promise<number> => {
      await afterOthers();
      const matcher = compile(source);
      const text = `${unit.repeat(length / unit.length)}!`;
      return workOf(() => expect(matcher.test(text)).toBe(false));
    };
    const [small, large] = [await work(1000), await work(8000)];
    expect(large).toBeLessThanOrEqual(9 * small);
    expect(large).toBeLessThan(maxMatchWork);
  });

  test('and a text that was seen before costs nothing', () => {
    const matcher = compile('(?i)host_[0-9]+\\.(eu|us)');
    const texts = Array.from({ length: 500 }, (_, i) => `HOST_${i}.asia`);
    const all = (): void => texts.forEach((text) => expect(matcher.test(text)).toBe(false));
    expect(workOf(all)).toBeGreaterThan(0);
    expect(workOf(all)).toBe(0);
  });
});

test('what would take too long in one go is refused, and the next go begins anew', async () => {
  await afterOthers();
  const matcher = compile('a.{1,800}b.{1,800}c');
  const texts = Array.from({ length: 200 }, (_, i) => `${'ab'.repeat(i)}x`.repeat(50));
  const before = matchWork.total;
  expect(() => texts.forEach((text) => matcher.test(text))).toThrow(
    'regular expression takes more than 1048576 steps in one go',
  );
  expect(matchWork.total - before).toBeLessThan(maxMatchWork + 10_000);
  await afterOthers();
  expect(matcher.test('axbxc')).toBe(true);
  expect(() => matcher.test('x'.repeat(maxMatchedLength + 1))).toThrow(
    'regular expression on a string of more than 1048576 characters',
  );
});

test('states take no more memory than they may', async () => {
  const matcher = compile('(a|b)*a(a|b){12}c') as Automaton;
  let seed = 1;
  for (let i = 0; i < 50; i++) {
    await afterOthers();
    const text = Array.from({ length: 500 }, () => {
      seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
      return seed & 0x10000 ? 'a' : 'b';
    }).join('');
    expect(matcher.test(text)).toBe(false);
    expect(matcher.heldBytes).toBeLessThanOrEqual(matcher.maxBytes);
  }
  expect(matcher.heldBytes).toBeGreaterThan(matcher.maxBytes / 10);
});

describe('what is too large is refused', () => {
  test.each([
    'a'.repeat(maxPatternLength + 1),
    '(((a{100}){10}){10})',
    '(a{1000}b{1000}c{1000}.*){9}',
    `x${'[a-z]{1000}'.repeat(20)}`,
    '\\pL{50}',
    '(?i)[\\x{100}-\\x{1E000}]{9}',
    `(${'.a'.repeat(10_000)})`,
    '('.repeat(1100),
  ])('%s', (source) => {
    expect(() => compile(source)).toThrow(PatternError);
  });

  test('also together with the others of its query', () => {
    const patterns = new PatternCompiler();
    for (let i = 0; i < 7; i++) patterns.compile(`x[a-z]{500}${i}`);
    expect(() => patterns.compile('x[a-z]{1000}')).toThrow('expression too large');
  });
});

test('any text is compiled or refused', () => {
  const soup = fc.array(fc.constantFrom(...Array.from('()[]{}*+?|^$.\\-,:<>=!123aizpPQExBdwUms')), {
    maxLength: 30,
  });
  fc.assert(
    fc.property(soup, (parts) => {
      try {
        compile(parts.join('')).test('a1b');
      } catch (error) {
        expect(error).toBeInstanceOf(PatternError);
      }
    }),
    { numRuns: 5000 },
  );
});
