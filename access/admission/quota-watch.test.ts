import { expect, test } from 'vitest';
import { QuotaWatch } from './quota-watch.ts';

/** Spends so much in each second; the seconds in which there was a warning. */
function warned(watch: QuotaWatch, spent: readonly number[], quota = 100): number[] {
  const seconds: number[] = [];
  spent.forEach((units, second) => {
    watch.count(1, units);
    if (watch.second(() => quota, second * 1000).length > 0) seconds.push(second);
  });
  return seconds;
}

test('it knows the last second and the last minute', () => {
  const watch = new QuotaWatch({ alarmAt: 0.8 });
  for (let second = 0; second < 90; second++) {
    watch.count(7, second);
    watch.second(() => 1000, second * 1000);
  }
  expect(watch.lastSecond(7)).toBe(89);
  // 30 to 89.
  expect(watch.lastMinute(7)).toBe(((30 + 89) * 60) / 2);
  expect(watch.lastMinute(8)).toBe(0);
  for (let second = 0; second < 60; second++) watch.second(() => 1000, second * 1000);
  expect(watch.lastMinute(7)).toBe(0);
});

test('a tenant is warned of once a minute, and not for one busy second', () => {
  const watch = new QuotaWatch({ alarmAt: 0.8 });
  expect(warned(watch, [300, 0, 0, 0, 0, 0, 0])).toEqual([]);
  expect(warned(new QuotaWatch({ alarmAt: 0.8 }), Array(130).fill(81))).toEqual([4, 64, 124]);
  expect(warned(new QuotaWatch({ alarmAt: 0.8 }), Array(130).fill(79))).toEqual([]);
  expect(warned(new QuotaWatch({ alarmAt: 0.8 }), Array(130).fill(500), 0)).toEqual([]);
  expect(warned(new QuotaWatch({ alarmAt: Infinity }), Array(130).fill(500))).toEqual([]);
});

test('on a slow ramp the warning comes before anything is refused', () => {
  for (let perSecond = 0.1; perSecond <= 1; perSecond += 0.1) {
    const ramp = Array.from(
      { length: Math.ceil(100 / perSecond) },
      (_, second) => second * perSecond,
    );
    const [first] = warned(new QuotaWatch({ alarmAt: 0.8 }), ramp);
    expect(ramp[first!]).toBeLessThan(90);
  }
});
