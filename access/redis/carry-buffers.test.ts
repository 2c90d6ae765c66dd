import { expect, test } from 'vitest';
import { CarryBuffers } from './carry-buffers.ts';

test.each([
  [1, 1024],
  [1024, 1024],
  [1025, 2048],
  [200_000, 262_144],
  [1_048_576, 1_048_576],
  // Too large to be kept for long, so just as large as is asked for.
  [1_048_577, 1_048_577],
])('for %i bytes there are %i', (bytes, length) => {
  expect(new CarryBuffers().take(bytes).length).toBe(length);
});

test('what is given is taken again, by those that need no more', () => {
  const buffers = new CarryBuffers();
  const one = buffers.take(3000);
  buffers.give(one);
  expect(buffers.bytes).toBe(4096);
  expect(buffers.take(5000)).not.toBe(one);
  expect(buffers.take(4000)).toBe(one);
  expect(buffers.bytes).toBe(0);
});

test('no more is kept than 8 MiB, and nothing large for long', () => {
  const buffers = new CarryBuffers();
  buffers.give(buffers.take(2_000_000));
  expect(buffers.bytes).toBe(0);
  for (const one of Array.from({ length: 40 }, () => buffers.take(262_144))) buffers.give(one);
  expect(buffers.bytes).toBe(8 * 1024 * 1024);
});
