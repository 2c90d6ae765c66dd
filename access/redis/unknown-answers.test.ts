import fc from 'fast-check';
import { expect, test } from 'vitest';
import { asErrors, type Fate } from './unknown-answers.ts';

const unknown = '-ERR outcome unknown\r\n';
const notDone = '-CLUSTERDOWN The partition has lost its leader, and the command was not done\r\n';

const leaf = fc.oneof(
  fc.constantFrom('+OK\r\n', '-ERR no\r\n', ':12\r\n', '$-1\r\n', '*-1\r\n', '_\r\n', '#t\r\n'),
  fc.constantFrom(',1.5\r\n', '(12345678901234567890\r\n', '*0\r\n', '%0\r\n', '$0\r\n\r\n'),
  fc.string().map((text) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`),
  fc.string().map((text) => `=${Buffer.byteLength(text) + 4}\r\ntxt:${text}\r\n`),
);

const { answer } = fc.letrec<{ answer: string }>((tie) => ({
  answer: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.array(tie('answer'), { maxLength: 5 }).map((all) => `*${all.length}\r\n${all.join('')}`),
    fc.array(tie('answer'), { maxLength: 5 }).map((all) => `~${all.length}\r\n${all.join('')}`),
    fc
      .array(fc.tuple(tie('answer'), tie('answer')), { maxLength: 3 })
      .map((all) => `%${all.length}\r\n${all.flat().join('')}`),
  ),
}));

test('each answer becomes an error of its own, which says whether it may have been done', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(answer, fc.boolean())), (answers) => {
      const lost = new Set<number>();
      let bytes = '';
      for (const [text, isLost] of answers) {
        if (isLost) lost.add(Buffer.byteLength(bytes));
        bytes += text;
      }
      const found = asErrors(Buffer.from(bytes), (at) => (lost.has(at) ? 'lost' : 'unknown'));
      expect(found?.toString()).toBe(answers.map(([, is]) => (is ? notDone : unknown)).join(''));
    }),
  );
});

test('what is not whole is no answer', () => {
  fc.assert(
    fc.property(answer, fc.integer({ min: 1, max: 1000 }), (whole, less) => {
      const bytes = Buffer.from(whole);
      const cut = bytes.subarray(0, Math.max(1, bytes.length - less));
      if (cut.length === bytes.length) return;
      expect(asErrors(cut, () => 'unknown')).toBeUndefined();
    }),
  );
});

test('messages go, but for those that clear caches', () => {
  const clear = '>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n';
  const message = '>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n';
  const found = asErrors(Buffer.from(`+OK\r\n${message}${clear}:1\r\n`), () => 'unknown');
  expect(found?.toString()).toBe(`${unknown}${clear}${unknown}`);
});

test('so they do where nothing in their bytes tells them from answers', () => {
  const clear = '*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\nk\r\n';
  const message = '*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n';
  const items = ['+OK\r\n', message, clear, ':1\r\n', '+1.5 [0 lua] "set"\r\n'];
  const fates: Fate[] = ['lost', 'dropped', 'kept', 'unknown', 'dropped'];
  const at = new Map<number, Fate>();
  let bytes = '';
  for (const [i, item] of items.entries()) {
    at.set(bytes.length, fates[i]!);
    bytes += item;
  }
  const found = asErrors(Buffer.from(bytes), (from) => at.get(from)!);
  expect(found?.toString()).toBe(`${notDone}${clear}${unknown}`);
});
