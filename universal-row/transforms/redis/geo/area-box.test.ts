import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  AreaBox,
  type CircleOrBox,
  decodeScore,
  distanceWithin,
  maxLatitude,
  maxLongitude,
  scoreOf,
} from './cells.ts';

const position = fc.record({
  longitude: fc.double({ min: -maxLongitude, max: maxLongitude, noNaN: true }),
  latitude: fc.double({ min: -maxLatitude, max: maxLatitude, noNaN: true }),
});
const meters = fc.oneof(
  fc.double({ min: 0, max: 1000, noNaN: true }),
  fc.double({ min: 0, max: 1e6, noNaN: true }),
  fc.double({ min: 0, max: 3e7, noNaN: true }),
);
const area: fc.Arbitrary<CircleOrBox> = fc.oneof(
  fc.record({
    center: position,
    radius: meters,
    width: fc.constant(0),
    height: fc.constant(0),
  }),
  fc.record({ center: position, radius: fc.constant(undefined), width: meters, height: meters }),
);
/** How far from the center a place is, as a part of what the area reaches about. */
const offset = fc.record({
  across: fc.double({ min: -1.1, max: 1.1, noNaN: true }),
  up: fc.double({ min: -1.1, max: 1.1, noNaN: true }),
});

const degree = 111_226;

test('a place in an area is in its box', () => {
  fc.assert(
    fc.property(area, offset, (of, { across, up }) => {
      const { longitude, latitude } = of.center;
      const reach = of.radius ?? Math.max(of.width, of.height) / 2;
      const narrow = Math.max(0.01, Math.cos((latitude * Math.PI) / 180));
      const near = {
        longitude: Math.max(
          -maxLongitude,
          Math.min(maxLongitude, longitude + (across * reach) / degree / narrow),
        ),
        latitude: Math.max(-maxLatitude, Math.min(maxLatitude, latitude + (up * reach) / degree)),
      };
      const score = scoreOf(near);
      const place = { longitude: 0, latitude: 0 };
      decodeScore(score, place);
      if (distanceWithin(of, place) >= 0) expect(new AreaBox(of).mayHold(score)).toBe(true);
    }),
    { numRuns: process.env['POLYROW_FULL'] === '1' ? 1_000_000 : 20_000 },
  );
});

test('a place far from an area is not', () => {
  const box = new AreaBox({
    center: { longitude: 13, latitude: 38 },
    radius: 5000,
    width: 0,
    height: 0,
  });
  expect(box.mayHold(scoreOf({ longitude: 13.01, latitude: 38.01 }))).toBe(true);
  expect(box.mayHold(scoreOf({ longitude: 13.2, latitude: 38 }))).toBe(false);
  expect(box.mayHold(scoreOf({ longitude: 13, latitude: 38.2 }))).toBe(false);
});
