import { expect, test } from 'vitest';
import { RecentUse } from './recent-use.ts';

/** Spends so much in each second; the seconds in which there was an alarm. */
function alarms(spent: readonly number[], alarmAt = 80): number[] {
  const use = new RecentUse();
  return spent.flatMap((units, second) => {
    use.end(units);
    return use.alarm(alarmAt, second * 1000) > 0 ? [second] : [];
  });
}

test('it keeps the last second and the last minute', () => {
  const use = new RecentUse();
  for (let second = 0; second < 90; second++) use.end(second);
  expect(use.lastSecond).toBe(89);
  // 30 to 89.
  expect(use.lastMinute).toBe(((30 + 89) * 60) / 2);
  for (let second = 0; second < 60; second++) use.end(0);
  expect(use.lastMinute).toBe(0);
});

test('an alarm is raised once a minute, and not for one busy second', () => {
  expect(alarms([300, 0, 0, 0, 0, 0, 0])).toEqual([]);
  expect(alarms(Array(130).fill(81) as number[])).toEqual([4, 64, 124]);
  expect(alarms(Array(130).fill(79) as number[])).toEqual([]);
  expect(alarms(Array(130).fill(500) as number[], Infinity)).toEqual([]);
});

test('on a slow ramp the alarm comes before anything is refused', () => {
  for (let perSecond = 0.1; perSecond <= 1; perSecond += 0.1) {
    const ramp = Array.from(
      { length: Math.ceil(100 / perSecond) },
      (_, second) => second * perSecond,
    );
    const [first] = alarms(ramp);
    expect(ramp[first!]).toBeLessThan(90);
  }
});
