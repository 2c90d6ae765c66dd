import fc from 'fast-check';
import { expect, test } from 'vitest';
import { durationOf, MoveThrottle, type PodMove, usualThrottle } from './move-throttle.ts';

const move = (from: number, to: number, bytes = 50e6): PodMove => ({ from, to, bytes });

test('a pod takes part in one move at a time, and others go on', () => {
  const throttle = new MoveThrottle();
  const moves = [move(0, 1), move(0, 2), move(2, 3), move(4, 5)];
  for (const one of moves) throttle.add(one);
  // The third waits for pod 2, which the second is kept.
  expect(throttle.begin()).toEqual([moves[0], moves[3]]);
  expect(throttle.begin()).toEqual([]);
  throttle.end(moves[3]!);
  expect(throttle.begin()).toEqual([]);
  throttle.end(moves[0]!);
  expect(throttle.begin()).toEqual([moves[1]]);
  expect(throttle.waiting).toBe(1);
});

test('a plan takes as long as the moves of its busiest pod, at 50 MB a second', () => {
  expect(durationOf([])).toBe(0);
  expect(durationOf([move(0, 1, 100e6), move(2, 3, 50e6)])).toBe(2);
  expect(durationOf([move(0, 1), move(0, 2), move(0, 3)])).toBe(3);
});

test('no pod ever has more moves than it may, and all are made', () => {
  const pods = fc.integer({ min: 0, max: 7 });
  const any = fc.tuple(pods, pods).filter(([from, to]) => from !== to);
  fc.assert(
    fc.property(fc.array(any, { maxLength: 40 }), fc.constantFrom(1, 2), (pairs, movesOfPod) => {
      const throttle = new MoveThrottle({ ...usualThrottle, movesOfPod });
      for (const [from, to] of pairs) throttle.add(move(from, to));
      const running: PodMove[] = [];
      let made = 0;
      for (;;) {
        running.push(...throttle.begin());
        for (let pod = 0; pod < 8; pod++) {
          const of = running.filter(({ from, to }) => from === pod || to === pod).length;
          expect(of).toBeLessThanOrEqual(movesOfPod);
        }
        const ended = running.shift();
        if (ended === undefined) break;
        throttle.end(ended);
        made++;
      }
      expect(made).toBe(pairs.length);
    }),
  );
});
