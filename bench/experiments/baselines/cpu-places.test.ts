import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CpuPlaces, tenantCapDefaults } from './cpu-places.ts';
import { CpuSlots } from './cpu-slots.ts';
import { SlotBalance } from '../../../storage-node/admission/slot-balance.ts';

const slotsOf = (count: number): CpuSlots =>
  new CpuSlots({ startPerCore: count, maxPerCore: count });

/** One tenant takes each slot it can have, for so long; how many slots it holds in each step of a tenth of a ms. */
function flood(places: CpuPlaces, serviceMs: number, steps: number, other: boolean): number[] {
  const held: number[] = [];
  let ends: number[] = [];
  for (let step = 0; step < steps; step++) {
    const now = step / 10;
    for (const end of ends) if (end <= now) places.ended(1, now);
    ends = ends.filter((end) => end > now);
    if (other) places.asked(2, now);
    places.asked(1, now);
    while (places.hasRoom() && places.mayTake(1, now)) {
      places.began(1, now);
      ends.push(now + serviceMs);
    }
    held.push(ends.length);
  }
  return held;
}

test('one tenant holds at most 90 % of the slots, over any 100 ms and but for one service', () => {
  const cases = fc.record({
    slots: fc.integer({ min: 1, max: 40 }),
    serviceMs: fc.integer({ min: 1, max: 20 }),
  });
  fc.assert(
    fc.property(cases, ({ slots, serviceMs }) => {
      const held = flood(new CpuPlaces(slotsOf(slots), tenantCapDefaults), serviceMs, 4000, true);
      const window = 1000;
      let sum = held.slice(0, window).reduce((a, b) => a + b, 0);
      for (let end = window; ; end++) {
        expect(sum / 10).toBeLessThanOrEqual(0.9 * slots * 100 + serviceMs + 0.1 * slots);
        if (end === held.length) break;
        sum += held[end]! - held[end - window]!;
      }
      // And not much less.
      const all = held.reduce((a, b) => a + b, 0);
      expect(all / held.length / slots).toBeGreaterThan(0.8);
    }),
    { numRuns: 30 },
  );
});

test('with nobody beside it a tenant may have all slots, unless it is by the letter', () => {
  expect(flood(new CpuPlaces(slotsOf(10), tenantCapDefaults), 5, 100, false).at(-1)).toBe(10);
  const strict = { ...tenantCapDefaults, aloneMs: Infinity };
  expect(flood(new CpuPlaces(slotsOf(10), strict), 5, 100, false).at(-1)).toBe(9);
  expect(flood(new CpuPlaces(slotsOf(10), undefined), 5, 100, true).at(-1)).toBe(10);
});

test('without slots there is always a place', () => {
  const places = new CpuPlaces(undefined, tenantCapDefaults);
  for (let n = 0; n < 1000; n++) places.began(1, 0);
  expect(places.hasRoom()).toBe(true);
  expect(places.mayTake(1, 0)).toBe(true);
});

test('a part of less than a slot is held for that part of the time', () => {
  const balance = new SlotBalance(0.4, 100, 100, 0);
  let busy = 0;
  let end = -1;
  for (let now = 0; now < 10_000; now++) {
    if (now === end) balance.ended(now);
    if (now >= end && balance.mayHold(now)) {
      balance.began(now);
      end = now + 2;
    }
    if (now < end) busy++;
  }
  expect(busy / 10_000).toBeCloseTo(0.4, 2);
});

test('what was held beyond the part is forgotten in the end', () => {
  const balance = new SlotBalance(0.5, 0, 100, 0);
  balance.began(0);
  balance.ended(60_000);
  expect(balance.mayHold(60_050)).toBe(false);
  expect(balance.mayHold(60_100)).toBe(true);
});
