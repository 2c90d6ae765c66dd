import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CompactWorkQueue } from './compact-work-queue.ts';
import { type OverloadOrder, type Work, WorkQueue } from './work-queue.ts';

test('it is the same queue as the other one, whatever happens to it', () => {
  const push = fc.record({
    startedAt: fc.nat(1000),
    priority: fc.integer({ min: -1, max: 2 }),
    patience: fc.oneof(fc.nat(300), fc.constant(Infinity)),
  });
  const step = fc.oneof(
    { weight: 3, arbitrary: push },
    { weight: 2, arbitrary: fc.constantFrom('pop' as const, 'tick' as const, 'late' as const) },
  );
  const orders = fc.constantFrom<OverloadOrder>('fifo', 'lifo', 'epoch-lifo');
  fc.assert(
    fc.property(orders, fc.array(step, { maxLength: 200 }), (overload, steps) => {
      const options = { overload, waitMs: 50 };
      const [plain, compact] = [new WorkQueue<Work>(options), new CompactWorkQueue<Work>(options)];
      let now = 0;
      const popBoth = (): void => {
        const expired: [Work[], Work[]] = [[], []];
        const first = plain.pop(now, (gone) => expired[0].push(gone));
        expect(compact.pop(now, (gone) => expired[1].push(gone))).toBe(first);
        expect(expired[1]).toEqual(expired[0]);
      };
      for (const one of steps) {
        now++;
        if (one === 'pop') popBoth();
        else if (one === 'tick' || one === 'late') {
          if (one === 'late') now += 60;
          plain.tick(now);
          compact.tick(now);
        } else {
          const { startedAt, priority, patience } = one;
          const work = { startedAt, priority, arrivedAt: now, deadline: now + patience };
          plain.push(work);
          compact.push(work);
        }
        expect(compact.length).toBe(plain.length);
        expect(compact.isOverloaded).toBe(plain.isOverloaded);
      }
      while (plain.length > 0) popBoth();
      popBoth();
    }),
  );
});

test('a long queue shrinks again, and keeps its order', () => {
  const queue = new CompactWorkQueue<Work>();
  const starts = Array.from({ length: 5000 }, (_, i) => (i * 7919) % 5003);
  for (const startedAt of starts) {
    queue.push({ startedAt, priority: 0, arrivedAt: 0, deadline: Infinity });
  }
  const order = starts.map(() => queue.pop(0)!.startedAt);
  expect(order).toEqual(starts.toSorted((a, b) => a - b));
  expect(queue.length).toBe(0);
});
