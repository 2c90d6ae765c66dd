import { expect, test } from 'vitest';
import { globMatches } from './glob.ts';

function matches(pattern: string, text: string, ignoreCase = false): boolean {
  // Not at the start of their buffers, with bytes after them that would change the answer.
  const p = Buffer.from(`x${pattern}*`, 'latin1');
  const t = Buffer.from(`y${text}z`, 'latin1');
  return globMatches(p, 1, pattern.length, t, 1, text.length, ignoreCase);
}

test('patterns', () => {
  const check = (pattern: string, yes: string[], no: string[]) => {
    for (const text of yes) expect(`${text}: ${matches(pattern, text)}`).toBe(`${text}: true`);
    for (const text of no) expect(`${text}: ${matches(pattern, text)}`).toBe(`${text}: false`);
  };
  check('news.*', ['news.art', 'news.'], ['news', 'anews.x']);
  check('h?llo', ['hello', 'h?llo'], ['hllo', 'heello', 'h']);
  check('h[ae]llo', ['hallo', 'hello'], ['hillo']);
  check('h[^e]llo', ['hallo'], ['hello']);
  check('h[a-b]llo', ['hallo', 'hbllo'], ['hcllo', 'h-llo']);
  check('\\*\\?', ['*?'], ['ab']);
  check('*a*b*', ['ab', 'xaxbx', 'aab'], ['ba', 'a', 'b']);
  check('a**', ['a', 'ab'], ['b']);
  check('', [''], ['a']);
  check('*', ['a', '\0'], []);
});

test('upper and lower case are the same when asked, but for escaped bytes of a set', () => {
  expect(matches('HeL*[X-Z]', 'hello y', true)).toBe(true);
  expect(matches('HeL*[X-Z]', 'hello y')).toBe(false);
  expect(matches('[\\A]', 'a', true)).toBe(false);
  expect(matches('\\A', 'a', true)).toBe(true);
});

test('many stars cost no more than pattern times text', () => {
  const pattern = `${'a*'.repeat(200)}b`;
  const text = 'a'.repeat(20_000);
  const started = performance.now();
  expect(matches(pattern, text)).toBe(false);
  expect(performance.now() - started).toBeLessThan(1000);
});
