import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { preprocess } from '../denoise/preprocess.ts';
import { maximum } from '../statistics.ts';
import type { UsageHistory } from '../usage-history.ts';
import { forecast, horizonHours } from './forecast.ts';

const month = 720;

function history(valueAt: (hour: number) => number, hours = month): UsageHistory {
  return {
    usage: Float64Array.from({ length: hours }, (_, hour) => valueAt(hour)),
    quota: new Float64Array(hours).fill(10_000),
    known: new Uint8Array(hours).fill(1),
  };
}

/** The same small deviations in each run. */
const noise = (hour: number): number => Math.sin(hour * 12.9898) * Math.cos(hour * 78.233);
const sine = (hour: number, period: number): number => Math.sin((2 * Math.PI * hour) / period);

const level = fc.oneof(
  fc.double({ min: 0, max: 1e6, noNaN: true }),
  fc.constantFrom(0, 1e-300, 1, 1e90),
);
const anyHistory = fc
  .tuple(
    fc.integer({ min: 24, max: month }),
    level,
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.constantFrom(1, 24, 84, 168, 31),
    fc.array(fc.tuple(fc.nat(month - 1), level), { maxLength: 30 }),
    fc.array(fc.nat(month - 1), { maxLength: 200 }),
  )
  .map(([hours, base, amplitude, period, spikes, gaps]) => {
    const made = history((hour) => base * (1 + amplitude * sine(hour, period)), hours);
    for (const [hour, value] of spikes) if (hour < hours) made.usage[hour] = value;
    // Values in a gap must not matter.
    for (const hour of gaps) {
      if (hour === 0 || hour >= hours) continue;
      made.known[hour] = 0;
      made.usage[hour] = NaN;
    }
    return made;
  });

describe('a forecast', () => {
  test.each(['trend', 'ensemble'] as const)('is finite and bounded for any series: %s', (model) => {
    fc.assert(
      fc.property(anyHistory, (made) => {
        const most = maximum(made.usage.filter((_, hour) => made.known[hour] !== 0));
        const { hourly, highest } = forecast(made, model);
        expect(hourly).toHaveLength(horizonHours);
        for (const value of [...hourly, highest]) {
          expect(Number.isFinite(value)).toBe(true);
          expect(value).toBeGreaterThanOrEqual(0);
          expect(value).toBeLessThanOrEqual(3 * most);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('of a constant is that constant', () => {
    const { hourly, highest } = forecast(history(() => 42));
    expect(highest).toBeCloseTo(42, 2);
    for (const value of hourly) expect(value).toBeCloseTo(42, 2);
  });

  test('of a trend goes on with it, where the average would not', () => {
    const growing = (hour: number): number => 1000 + hour;
    const { members } = forecast(history(growing), 'ensemble');
    expect(members!.trend / growing(month + horizonHours)).toBeCloseTo(1, 1);
    expect(members!.average).toBeLessThan(0.9 * members!.trend);
  });

  test.each([24, 84, 168])('finds a period of %i hours', (period) => {
    const { periods } = forecast(
      history((hour) => 1000 + 300 * sine(hour, period) + 50 * noise(hour)),
    );
    expect(periods.map(({ hours }) => hours)).toEqual([period]);
  });

  test('of peaks that come each day at another hour is their height', () => {
    const bursts = history((hour) => {
      const day = Math.floor(hour / 24);
      return hour % 24 === (day * 7) % 24 ? 3000 : 1000 + 20 * noise(hour);
    });
    expect(forecast(bursts).highest).toBeGreaterThan(0.95 * 3000);
  });

  test.each([
    ['NaN', NaN],
    ['infinity', Infinity],
    ['a negative value', -1],
  ])('is refused for %s', (_, value) => {
    const wrong = history(() => 1);
    wrong.usage[100] = value;
    expect(() => forecast(wrong)).toThrow(RangeError);
  });

  test('is refused without a known hour, and for arrays of different lengths', () => {
    const nothing = history(() => 1);
    nothing.known.fill(0);
    expect(() => forecast(nothing)).toThrow('known hour');
    expect(() => forecast({ ...history(() => 1), quota: new Float64Array(3) })).toThrow('length');
    expect(() => forecast(history(() => 1, 23))).toThrow('at least 24 hours');
  });
});

describe('preprocessing', () => {
  const daily = (hour: number): number => 1000 + 300 * sine(hour, 24) + 20 * noise(hour);

  test('drops hours in which usage and quota rise together', () => {
    const made = history(daily);
    for (const hour of [300, 301]) {
      made.usage[hour]! *= 2;
      made.quota[hour]! *= 2;
    }
    const { known, usage } = preprocess(made);
    expect([...known.keys()].filter((hour) => known[hour] === 0)).toEqual([300, 301]);
    expect(usage[300]).toBeLessThan(1400);
  });

  test('keeps usage that grows into a quota that was raised for good', () => {
    const made = history((hour) => (hour < 500 ? 1 : 2) * daily(hour));
    made.quota.fill(20_000, 500);
    const { known } = preprocess(made);
    expect(known.includes(0)).toBe(false);
  });

  test('cuts a peak that was seen once, and keeps those that come back', () => {
    const made = history((hour) => (hour % 168 === 40 ? 4000 : daily(hour)));
    made.usage[500] = 9000;
    const { usage } = preprocess(made);
    expect(usage[500]).toBeLessThan(4000);
    for (let hour = 40; hour < month; hour += 168) expect(usage[hour]).toBe(4000);
  });

  test.each([0.5, 1.6])('trains on what follows a shift to %f times the level', (factor) => {
    const { trainFrom } = preprocess(history((hour) => (hour < 400 ? 1 : factor) * daily(hour)));
    expect(Math.abs(trainFrom - 400)).toBeLessThanOrEqual(6);
  });

  test('takes neither a trend nor weekends for a shift', () => {
    const growing = history((hour) => (1 + hour / month) * daily(hour));
    const weekends = history((hour) => (hour % 168 >= 120 ? 0.6 : 1) * daily(hour));
    for (const made of [growing, weekends]) expect(preprocess(made).trainFrom).toBe(0);
  });

  test('trains on a week at least', () => {
    const { trainFrom } = preprocess(history((hour) => (hour < 650 ? 1 : 2) * daily(hour)));
    expect(trainFrom).toBe(month - 168);
  });
});
