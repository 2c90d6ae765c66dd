import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CpuSlots } from './cpu-slots.ts';

function takeAll(slots: CpuSlots): number {
  let taken = 0;
  while (slots.take()) taken++;
  return taken;
}

test('begins with four slots a core, and gives no more than there are', () => {
  expect(takeAll(new CpuSlots())).toBe(4);
  expect(takeAll(new CpuSlots({ cores: 2 }))).toBe(8);
  const slots = new CpuSlots({ cores: 0.1 });
  expect(takeAll(slots)).toBe(1);
  slots.free();
  expect(slots.take()).toBe(true);
});

test('a late loop takes slots away, one at a time, down to one a core', () => {
  const slots = new CpuSlots();
  slots.adjust(2.1);
  expect(slots.slots).toBe(3);
  for (let i = 0; i < 10; i++) slots.adjust(50);
  expect(slots.slots).toBe(1);
});

test('a punctual loop adds slots only where all were in use', () => {
  const slots = new CpuSlots();
  slots.adjust(0);
  expect(slots.slots).toBe(4);
  // All in use for a moment, and given back before anyone looks.
  takeAll(slots);
  for (let i = 0; i < 4; i++) slots.free();
  slots.adjust(0);
  expect(slots.slots).toBe(5);
  slots.adjust(0);
  expect(slots.slots).toBe(5);
  takeAll(slots);
  for (let i = 0; i < 50; i++) slots.adjust(0.9);
  expect(slots.slots).toBe(6);
  for (let i = 0; i < 50; i++) {
    takeAll(slots);
    slots.adjust(0.9);
  }
  expect(slots.slots).toBe(16);
  // Neither late nor early.
  takeAll(slots);
  slots.adjust(1.5);
  expect(slots.slots).toBe(16);
});

test('work that holds slots which are no more keeps them', () => {
  const slots = new CpuSlots();
  takeAll(slots);
  slots.adjust(10);
  slots.adjust(10);
  expect([slots.slots, slots.used]).toEqual([2, 4]);
  slots.free();
  slots.free();
  expect(slots.take()).toBe(false);
  slots.free();
  expect(slots.take()).toBe(true);
});

test('switched off there is always a slot', () => {
  const slots = new CpuSlots({ enabled: false });
  for (let i = 0; i < 1000; i++) expect(slots.take()).toBe(true);
  expect(slots.used).toBe(1000);
});

test('whatever happens, slots stay within their bounds and move by one', () => {
  const step = fc.oneof(
    fc.record({ lag: fc.double({ min: 0, max: 20, noNaN: true }) }),
    fc.constantFrom('take', 'free'),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 500 }), (steps) => {
      const slots = new CpuSlots({ cores: 2, maxPerCore: 5 });
      let held = 0;
      for (const one of steps) {
        const before = slots.slots;
        if (one === 'take') {
          const had = held < before;
          expect(slots.take()).toBe(had);
          if (had) held++;
        } else if (one === 'free') {
          if (held > 0) {
            slots.free();
            held--;
          } else expect(() => slots.free()).toThrow(RangeError);
        } else {
          slots.adjust(one.lag);
          if (one.lag > 2) expect(slots.slots).toBeLessThanOrEqual(before);
          else expect(slots.slots).toBeGreaterThanOrEqual(before);
          if (one.lag >= 1 && one.lag <= 2) expect(slots.slots).toBe(before);
        }
        expect(slots.used).toBe(held);
        expect(slots.slots).toBeGreaterThanOrEqual(2);
        expect(slots.slots).toBeLessThanOrEqual(10);
        expect(Math.abs(slots.slots - before)).toBeLessThanOrEqual(1);
      }
    }),
  );
});
