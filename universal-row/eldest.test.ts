import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Eldest } from './eldest.ts';

test('takes what a walk from the front would find first, whatever comes and goes', () => {
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ put: fc.nat(30) }) },
    { weight: 2, arbitrary: fc.record({ remove: fc.nat(30) }) },
    { weight: 4, arbitrary: fc.constant('take' as const) },
    fc.constant('clear' as const),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const entries = new Map<number, true>();
      const eldest = new Eldest(entries);
      for (const one of steps) {
        if (one === 'take') {
          const [first] = entries.keys();
          expect(eldest.take()?.[0]).toBe(first);
          expect(entries.has(first ?? -1)).toBe(false);
        } else if (one === 'clear') entries.clear();
        else if ('put' in one) {
          // As a cache does that has just used it.
          entries.delete(one.put);
          entries.set(one.put, true);
        } else entries.delete(one.remove);
      }
    }),
  );
});
