// Loaded by vitest before each test file (vitest.config.ts): values that Node finds deeply equal count as equal at once.
// vitest compares element by element, buffers too, at about two microseconds each: ten times as long. Node's comparison is
// the stricter one, so whatever it finds different (asymmetric matchers, absent keys) is left to vitest.

import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;

expect.addEqualityTesters([
  (one, other) =>
    isObject(one) && isObject(other) && isDeepStrictEqual(one, other) ? true : undefined,
]);
