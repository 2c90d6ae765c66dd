import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BucketSeries } from './bucket-series.ts';

test('no bucket lets more through than it would alone, and a refusal takes from none', () => {
  const shapes = [
    { rate: 10, capacity: 100 },
    { rate: 50, capacity: 20 },
  ];
  fc.assert(
    fc.property(
      fc.array(fc.record({ gap: fc.nat(500), cost: fc.integer({ min: 1, max: 30 }) })),
      (steps) => {
        const series = BucketSeries.of(shapes, 0);
        const taken: { at: number; cost: number }[] = [];
        let now = 0;
        for (const { gap, cost } of steps) {
          now += gap;
          const wait = series.wait(cost, now);
          const done = series.take(cost, now);
          expect(done).toBe(wait === 0);
          if (done) taken.push({ at: now, cost });
        }
        for (const [i, first] of taken.entries()) {
          let sum = 0;
          for (const { at, cost } of taken.slice(i)) {
            sum += cost;
            for (const { rate, capacity } of shapes) {
              const most = capacity + (rate * (at - first.at)) / 1000;
              expect(sum).toBeLessThanOrEqual(most + 1e-6);
            }
          }
        }
      },
    ),
  );
});
