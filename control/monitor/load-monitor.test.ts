import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LoadMonitor } from './load-monitor.ts';

const minuteMs = 60_000;
const retention = { members: 10, minutes: 5, hours: 2 };

test('reports of ten seconds become the mean and the highest of a minute and an hour', () => {
  const monitor = new LoadMonitor(2, retention);
  const members = ['a', 'b'];
  for (let i = 0; i < 6; i++) {
    // Only the first names its members.
    const named = i === 0 ? { members } : {};
    const used = Float32Array.of(10 * i, 20, 0, 5);
    monitor.add({ node: 'n', at: i * 10_000, seconds: 10, ...named, used });
  }
  monitor.add({ node: 'n', at: minuteMs, seconds: 10, used: Float32Array.of(60, 0, 0, 0) });
  const { mean, most } = monitor.minutes('a', 0, 0, 3);
  expect([...mean]).toEqual([2.5, 6, 0]);
  expect([...most]).toEqual([5, 6, 0]);
  expect([...monitor.minutes('b', 1, 0, 1).mean]).toEqual([0.5]);
  expect([...monitor.hours('a', 0, 0, 1).mean]).toEqual([3]);
  expect([...monitor.minutes('c', 0, 0, 1).mean]).toEqual([0]);
});

test('sums of replicas are what the pod used, and old minutes make room', () => {
  const used = fc.array(fc.integer({ min: 0, max: 1000 }), { minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(fc.array(used, { minLength: 1, maxLength: 30 }), (reports) => {
      const monitor = new LoadMonitor(1, retention);
      const members = ['a', 'b', 'c', 'pod'];
      reports.forEach(([a, b, c], minute) => {
        const numbers = Float32Array.of(a!, b!, c!, a! + b! + c!);
        monitor.add({ node: 'n', at: minute * minuteMs, seconds: 60, members, used: numbers });
      });
      const rate = (member: string, minute: number): number =>
        monitor.minutes(member, 0, minute, minute + 1).mean[0]!;
      reports.forEach((_, minute) => {
        const sum = rate('a', minute) + rate('b', minute) + rate('c', minute);
        expect(rate('pod', minute)).toBeCloseTo(sum, 3);
        const isKept = minute >= reports.length - retention.minutes;
        if (!isKept) expect(rate('pod', minute)).toBe(0);
      });
    }),
  );
});

test('members have a bound, late reports are left out, and reports must fit', () => {
  const monitor = new LoadMonitor(1, { ...retention, members: 1 });
  const report = (at: number, members: string[], ...used: number[]): void =>
    monitor.add({ node: 'n', at, seconds: 1, members, used: Float32Array.from(used) });
  report(5 * minuteMs, ['a', 'b'], 1, 2);
  expect(monitor.dropped).toBe(1);
  report(0, ['a'], 7);
  expect([...monitor.minutes('a', 0, 0, 6).mean]).toEqual([0, 0, 0, 0, 0, 1]);
  expect(() => report(0, ['a'], 1, 2)).toThrow(RangeError);
  monitor.forget('a');
  report(6 * minuteMs, ['b'], 3);
  expect([...monitor.minutes('b', 0, 6, 7).mean]).toEqual([3]);
});
