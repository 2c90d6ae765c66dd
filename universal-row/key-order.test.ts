import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyGroup, anyScalar, runs } from './arbitraries.ts';
import {
  compareGroups,
  compareScalars,
  decodeScalars,
  encodeScalars,
  endOfGroup,
} from './key-order.ts';
import type { Scalar } from './scalar.ts';

// A million pairs in full form: minutes on a slow machine.
const timeoutMs = 600_000;

function sameGroups(a: readonly Scalar[], b: readonly Scalar[]): boolean {
  return compareGroups(a, b) === 0 && a.every((item, i) => typeof item === typeof b[i]);
}

test(
  'encodings sort as the groups do',
  () => {
    const near = anyGroup.chain((group) =>
      fc.tuple(
        fc.constant(group),
        fc.tuple(fc.constant(group), anyGroup).map((p) => p.flat()),
      ),
    );
    fc.assert(
      fc.property(fc.oneof(fc.tuple(anyGroup, anyGroup), near), ([a, b]) => {
        const order = Math.sign(Buffer.compare(encodeScalars(a), encodeScalars(b)));
        expect(order).toBe(Math.sign(compareGroups(a, b)));
      }),
      { numRuns: runs(25_000, 500_000) },
    );
  },
  timeoutMs,
);

test(
  'encodings of single scalars sort as the scalars do',
  () => {
    fc.assert(
      fc.property(anyScalar, anyScalar, (a, b) => {
        const order = Math.sign(Buffer.compare(encodeScalars([a]), encodeScalars([b])));
        expect(order).toBe(Math.sign(compareScalars(a, b)));
      }),
      { numRuns: runs(25_000, 500_000) },
    );
  },
  timeoutMs,
);

test('decodes to exactly what was encoded', () => {
  fc.assert(
    fc.property(anyGroup, (group) => {
      expect(sameGroups(decodeScalars(encodeScalars(group)), group)).toBe(true);
    }),
    { numRuns: 5_000 },
  );
});

test('the order of everything, on a row of examples', () => {
  const ascending: Scalar[] = [
    null,
    false,
    true,
    NaN,
    -Infinity,
    -1e300,
    -(2n ** 63n),
    -(2n ** 63n) + 1n,
    -(2n ** 53n) - 1n,
    -(2 ** 53),
    -(2n ** 53n),
    -1.5,
    -1,
    -1n,
    -5e-324,
    -0,
    0,
    0n,
    5e-324,
    1,
    1n,
    1.5,
    2n,
    2 ** 53,
    2n ** 53n,
    2n ** 53n + 1n,
    2 ** 53 + 2,
    2n ** 62n + 511n,
    2n ** 63n - 1n,
    2 ** 63,
    Infinity,
    '',
    '\0',
    '\0a',
    'a',
    'a\0',
    'a\0b',
    'ab',
    '\u{ffff}',
    '\u{10000}',
    Buffer.of(),
    Buffer.of(0),
    Buffer.of(0, 0),
    Buffer.of(0, 1),
    Buffer.of(0, 0xff),
    Buffer.of(1),
    Buffer.of(0xff),
    Buffer.of(0xff, 0),
  ];
  const encoded = ascending.map((scalar) => encodeScalars([scalar]));
  expect([...encoded].sort((a, b) => Buffer.compare(a, b))).toEqual(encoded);
  expect(new Set(encoded.map((bytes) => bytes.toString('hex'))).size).toBe(ascending.length);
  expect(decodeScalars(Buffer.concat(encoded))).toEqual(ascending);
});

// Keys on disk are made of these: a change here makes them unreadable.
test('never changes', () => {
  const check = (scalars: Scalar[], hex: string) =>
    expect(encodeScalars(scalars).toString('hex')).toBe(hex);
  check([], '');
  check([null, false, true], '020304');
  check([0], '05800000000000000000');
  check([-0], '057fffffffffffffff00');
  check([NaN], '05000000000000000000');
  check([-1.5], '054007ffffffffffff00');
  check([1n], '05bff000000000000001');
  check([2n ** 63n - 1n], '05c3dfffffffffffff05ff');
  check(['a\0b'], '066100ff6200');
  check([Buffer.of(0, 0xff)], '0700ffff00');
});

describe('groups one after the other', () => {
  test('a zero byte ends a group wherever its scalars end', () => {
    fc.assert(
      fc.property(anyGroup, anyGroup, (first, second) => {
        const one = encodeScalars(first);
        const both = Buffer.concat([one, Buffer.of(0), encodeScalars(second)]);
        expect(endOfGroup(both, 0, both.length)).toBe(one.length);
      }),
      { numRuns: 5_000 },
    );
  });
});

test('refuses scalars that cannot be told apart once stored', () => {
  expect(() => encodeScalars(['\ud800'])).toThrow('lone surrogate');
  expect(() => encodeScalars([2n ** 63n])).toThrow('64 bits');
});

test('refuses bytes that are no group, and never reads beyond them', () => {
  const check = (hex: string, message: string) =>
    expect(() => decodeScalars(Buffer.from(hex, 'hex'))).toThrow(message);
  check('01', 'unknown tag');
  check('0580', 'cut short');
  check('05c3dfffffffffffff05', 'cut short');
  check('0661', 'cut short');
  check('066100ff', 'cut short');
  check('06ff00', 'not UTF-8');
  check('05fff000000000000001', 'not an integer');
  check('05c3e000000000000001', 'beyond 64 bits');
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 30, max: 9 }), (bytes) => {
      try {
        decodeScalars(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
      }
    }),
    { numRuns: 5_000 },
  );
});
