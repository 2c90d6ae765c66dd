import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Arguments } from '../../universal-row/arguments.ts';
import { copiedBytes } from './copied-arguments.ts';

/** Words as they lie in a request, with `gap` bytes before each. */
function argumentsOf(words: readonly string[], gap: number): Arguments {
  const args = new Arguments(1);
  args.buf = Buffer.from(words.map((word) => '-'.repeat(gap) + word).join(''), 'latin1');
  let at = 0;
  for (const word of words) {
    args.reserve(args.count + 1);
    args.starts[args.count] = at + gap;
    args.lens[args.count] = word.length;
    args.count++;
    at += gap + word.length;
  }
  return args;
}

function wordsOf(args: Arguments): string[] {
  return Array.from({ length: args.count }, (_, i) => args.latin1(i));
}

test('a copy has the same words in memory of its own, and takes no more than what is counted', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', '\r'), maxLength: 30 });
  fc.assert(
    fc.property(
      fc.array(word, { maxLength: 30 }),
      fc.constantFrom(0, 6, 400),
      fc.option(word),
      (words, gap, replaced) => {
        const args = argumentsOf(words, gap);
        if (replaced !== null && words.length > 0) {
          args.replace(0, Buffer.from(replaced, 'latin1'));
        }
        const expected = wordsOf(args);
        const copy = args.copy();
        args.buf.fill(0);
        expect(wordsOf(copy)).toEqual(expected);
        expect(copy.buf.length + 8 * copy.starts.length).toBeLessThanOrEqual(copiedBytes(copy));
      },
    ),
  );
});
