import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Glob, maxClassPositions } from './glob.ts';

function matches(pattern: string, text: string, ignoreCase = false): boolean {
  // Not at the start of their buffers, with bytes after them that would change the answer.
  const p = Buffer.from(`x${pattern}*`, 'latin1');
  const t = Buffer.from(`y${text}z`, 'latin1');
  return new Glob(p, 1, pattern.length, ignoreCase).matches(t, 1, text.length);
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

/** Redis's `stringmatchlen`, line by line; what C reads behind the end is 0 here. */
function redisMatches(pattern: number[], text: number[], nocase: boolean): boolean {
  const tolower = (c: number): number => (c >= 65 && c <= 90 ? c + 32 : c);
  const char = (c: number | undefined): number => ((c ?? 0) << 24) >> 24;
  const impl = (pAt: number, sAt: number): boolean => {
    let p = pAt;
    let s = sAt;
    while (p < pattern.length && s < text.length) {
      switch (pattern[p]) {
        case 42:
          while (p + 1 < pattern.length && pattern[p + 1] === 42) p++;
          if (p + 1 === pattern.length) return true;
          for (; s < text.length; s++) if (impl(p + 1, s)) return true;
          return false;
        case 63:
          s++;
          break;
        case 91: {
          p++;
          const not = pattern[p] === 94;
          if (not) p++;
          let match = false;
          for (;;) {
            if (pattern.length - p >= 2 && pattern[p] === 92) {
              p++;
              if (pattern[p] === text[s]) match = true;
            } else if (pattern[p] === 93) {
              break;
            } else if (p >= pattern.length) {
              p--;
              break;
            } else if (pattern.length - p >= 3 && pattern[p + 1] === 45) {
              let start = char(pattern[p]);
              let end = char(pattern[p + 2]);
              let c = char(text[s]);
              if (start > end) [start, end] = [end, start];
              if (nocase) [start, end, c] = [tolower(start), tolower(end), tolower(c)];
              p += 2;
              if (c >= start && c <= end) match = true;
            } else if (!nocase) {
              if (pattern[p] === text[s]) match = true;
            } else if (tolower(pattern[p]!) === tolower(text[s]!)) match = true;
            p++;
          }
          if (not) match = !match;
          if (!match) return false;
          s++;
          break;
        }
        default:
          if (pattern[p] === 92 && pattern.length - p >= 2) p++;
          if (!nocase ? pattern[p] !== text[s] : tolower(pattern[p]!) !== tolower(text[s]!)) {
            return false;
          }
          s++;
      }
      p++;
      if (s === text.length) {
        while (pattern[p] === 42) p++;
        break;
      }
    }
    return p === pattern.length && s === text.length;
  };
  return impl(0, 0);
}

const patternByte = fc.constantFrom(...Buffer.from('aabbAB*?[]^-\\\xe9z', 'latin1'));
const textByte = fc.constantFrom(...Buffer.from('aaabbAB-]\\\xe9z', 'latin1'));

test('what Redis matches matches, and nothing else', () => {
  fc.assert(
    fc.property(
      fc.array(patternByte, { maxLength: 14 }),
      fc.array(textByte, { maxLength: 16 }),
      fc.boolean(),
      (pattern, text, nocase) => {
        const glob = new Glob(Buffer.from(pattern), 0, pattern.length, nocase);
        const found = glob.matches(Buffer.from(text), 0, text.length);
        expect(found).toBe(redisMatches(pattern, text, nocase));
      },
    ),
    { numRuns: 20_000 },
  );
});

test('long segments are found as by Redis', () => {
  const long = (bytes: string): fc.Arbitrary<number[]> =>
    fc.array(fc.constantFrom(...Buffer.from(bytes, 'latin1')), { minLength: 17, maxLength: 70 });
  const plain = long('aab');
  const classes = long('aab?');
  fc.assert(
    fc.property(
      fc.oneof(plain, classes),
      long('aab'),
      long('aab'),
      fc.boolean(),
      (part, before, after, holds) => {
        const exact = part.map((c) => (c === 63 ? 97 : c));
        const text = [...before, ...(holds ? exact : []), ...after];
        const pattern = [42, ...part, 42];
        const glob = new Glob(Buffer.from(pattern), 0, pattern.length);
        const found = glob.matches(Buffer.from(text), 0, text.length);
        expect(found).toBe(redisMatches(pattern, text, false));
        if (holds) expect(found).toBe(true);
      },
    ),
    { numRuns: 1000 },
  );
});

test('a match is linear in the text, whatever the pattern', () => {
  const text = Buffer.alloc(60_000, 'a');
  const patterns = [
    `*${'a'.repeat(30_000)}b`,
    `*${'a'.repeat(30_000)}b*`,
    `*b${'a'.repeat(30_000)}*`,
    `${'a*'.repeat(20_000)}b`,
    `*${'?'.repeat(maxClassPositions - 1)}b*`,
    `*${'aaaaaaaaaaaaaaab*'.repeat(100)}`,
    `*${'[ab]'.repeat(15)}b*`.repeat(50),
  ];
  for (const pattern of patterns) {
    const p = Buffer.from(pattern);
    const glob = new Glob(p, 0, p.length);
    expect(glob.matches(text, 0, text.length)).toBe(false);
    expect(glob.work).toBeLessThanOrEqual(32 * text.length + 2 * p.length);
  }
});

test('a segment of classes that is too long is refused', () => {
  const p = Buffer.from(`*${'?'.repeat(maxClassPositions + 1)}*`);
  expect(() => new Glob(p, 0, p.length)).toThrow('pattern is too complex');
  const tied = Buffer.from('?'.repeat(5000));
  expect(new Glob(tied, 0, tied.length).matches(Buffer.alloc(5000), 0, 5000)).toBe(true);
});
