import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Heap } from './heap.ts';

test('the first by the order comes out first, also when the order has changed', () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.integer())), fc.array(fc.integer()), (steps, more) => {
      let descending = false;
      const heap = new Heap<number>((a, b) => (descending ? a > b : a < b));
      const model: number[] = [];
      for (const step of steps) {
        if (step !== null) {
          heap.push(step);
          model.push(step);
        } else {
          model.sort((a, b) => a - b);
          expect(heap.pop()).toBe(model.shift());
        }
        expect(heap.size).toBe(model.length);
        expect(heap.peek()).toBe(model.length === 0 ? undefined : Math.min(...model));
      }
      descending = true;
      heap.reorder();
      for (const value of more) heap.push(value);
      const rest = [...model, ...more].sort((a, b) => b - a);
      expect(rest.map(() => heap.pop())).toEqual(rest);
      expect(heap.pop()).toBeUndefined();
    }),
  );
});
