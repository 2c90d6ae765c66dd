import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Chance, Zipf } from './chance.ts';
import { Simulation } from './simulation.ts';

test('events run by their time, and by their scheduling where the times are equal', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20), { maxLength: 200 }), (times) => {
      const simulation = new Simulation();
      const seen: [number, number][] = [];
      times.forEach((time, i) => {
        simulation.at(time, () => {
          expect(simulation.now()).toBe(time);
          seen.push([time, i]);
        });
      });
      simulation.runUntil(10);
      expect(simulation.pending).toBe(times.filter((time) => time > 10).length);
      simulation.runUntil(20);
      const expected = times.map((time, i): [number, number] => [time, i]);
      expect(seen).toEqual(expected.sort((a, b) => a[0] - b[0] || a[1] - b[1]));
    }),
  );
});

test('an event may schedule more, but not in the past', () => {
  const simulation = new Simulation();
  const seen: number[] = [];
  simulation.every(10, () => {
    seen.push(simulation.now());
    return seen.length < 3;
  });
  simulation.runUntil(100);
  expect(seen).toEqual([10, 20, 30]);
  expect(() => simulation.at(99, () => {})).toThrow(RangeError);
});

test('chance repeats by its seed, and has the shapes it says', () => {
  const draw = (seed: number): number[] => {
    const chance = new Chance(seed);
    return Array.from({ length: 20 }, () => chance.next());
  };
  expect(draw(4)).toEqual(draw(4));
  expect(draw(4)).not.toEqual(draw(5));
  const chance = new Chance(1);
  const mean = (sample: () => number): number => {
    let sum = 0;
    for (let i = 0; i < 50_000; i++) sum += sample();
    return sum / 50_000;
  };
  expect(mean(() => chance.exponential(4))).toBeCloseTo(0.25, 2);
  expect(mean(() => chance.normal(3, 2))).toBeCloseTo(3, 1);
  expect(mean(() => (chance.normal(3, 2) - 3) ** 2)).toBeCloseTo(4, 0);
  const zipf = new Zipf(3, 1, chance);
  const counts = [0, 0, 0];
  for (let i = 0; i < 110_000; i++) {
    const rank = zipf.next();
    counts[rank] = counts[rank]! + 1;
  }
  // Weights 1, 1/2 and 1/3.
  expect(counts[0]! / 60_000).toBeCloseTo(1, 1);
  expect(counts[1]! / 30_000).toBeCloseTo(1, 1);
  expect(counts[2]! / 20_000).toBeCloseTo(1, 1);
});
