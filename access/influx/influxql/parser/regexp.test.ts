import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LinearMatcher } from './regexp-linear.ts';
import { parseRegexp } from './regexp-syntax.ts';
import { compilePattern, PatternError } from './regexp.ts';

/** Both ways of matching, which must agree. */
function matches(source: string, text: string): boolean {
  const native = compilePattern(source).regexp.test(text);
  expect(new LinearMatcher(parseRegexp(source)).test(text), `linear /${source}/`).toBe(native);
  return native;
}

test.each<[source: string, yes: string[], no: string[]]>([
  ['b', ['abc'], ['ac', '']],
  ['^b', ['bc'], ['abc', 'a\nb']],
  ['b$', ['ab'], ['abc', 'b\nc']],
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
  ['^(host_1|host_2)$', ['host_1'], ['host_12']],
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
  ['', [''], []],
  ['(|a)+$', ['', 'b'], []],
])('/%s/', (source, yes, no) => {
  for (const text of yes) expect(matches(source, text), text).toBe(true);
  for (const text of no) expect(matches(source, text), text).toBe(false);
});

test('the two ways of matching agree', () => {
  const { node } = fc.letrec<{ node: string }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\b', '^', '$', '(?i)B', '\\w', ''),
      fc.tuple(tie('node'), tie('node')).map(([a, b]) => a + b),
      fc.tuple(tie('node'), tie('node')).map(([a, b]) => `(?:${a}|${b})`),
      fc
        .tuple(tie('node'), fc.constantFrom('*', '+', '?', '{2}', '{0,2}', '*?'))
        .map(([a, op]) => `(${a})${op}`),
    ),
  }));
  fc.assert(
    fc.property(
      node,
      fc.string({ unit: fc.constantFrom('a', 'b', 'B', ' ', '\n'), maxLength: 8 }),
      (source, text) => {
        try {
          matches(source, text);
        } catch (error) {
          if (!(error instanceof PatternError)) throw error;
        }
      },
    ),
    { numRuns: 2000 },
  );
});

describe('takes no longer than the text is long', () => {
  test.each([
    ['(a+)+$', `${'a'.repeat(60_000)}b`],
    ['(x+x+)+y', 'x'.repeat(60_000)],
    ['(a|a)*b', 'a'.repeat(60_000)],
    ['.*a.*b.*c.*d.*x', 'abcd'.repeat(15_000)],
    [`${'a?'.repeat(60)}${'a'.repeat(60)}`, 'a'.repeat(59)],
    ['(a?){50}a{50}b', 'a'.repeat(99)],
  ])('/%s/', (source, text) => {
    const started = performance.now();
    expect(compilePattern(source).regexp.test(text)).toBe(false);
    expect(performance.now() - started).toBeLessThan(3000);
  });

  test('an alternation of many names stays with the native matcher', () => {
    const names = Array.from({ length: 1000 }, (_, i) => `host_${i}`).join('|');
    const { regexp } = compilePattern(`^(${names})$`);
    expect(Object.getPrototypeOf(regexp)).toBe(RegExp.prototype);
    expect(regexp.test('host_999')).toBe(true);
  });
});

test('what is too large is refused', () => {
  for (const source of [
    'a'.repeat(70_000),
    '(((a{100}){10}){10})',
    '(a{1000}b{1000}c{1000}.*){9}',
    '('.repeat(300),
  ]) {
    expect(() => compilePattern(source)).toThrow(PatternError);
  }
});

test('any text is compiled or refused', () => {
  const soup = fc.array(fc.constantFrom(...Array.from('()[]{}*+?|^$.\\-,:<>=!123aizpPQExBdwUms')), {
    maxLength: 30,
  });
  fc.assert(
    fc.property(soup, (parts) => {
      try {
        compilePattern(parts.join('')).regexp.test('a1b');
      } catch (error) {
        expect(error).toBeInstanceOf(PatternError);
      }
    }),
    { numRuns: 5000 },
  );
});
