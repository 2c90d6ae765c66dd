// Loaded by vitest before each test file (vitest.config.ts): buffers are compared by memcmp. Without it `toEqual` compares
// them as lists of properties, which takes about two microseconds a byte.

import { expect } from 'vitest';

expect.addEqualityTesters([
  (one, other) => (Buffer.isBuffer(one) && Buffer.isBuffer(other) ? one.equals(other) : undefined),
]);
