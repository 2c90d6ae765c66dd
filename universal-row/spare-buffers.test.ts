import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SpareBuffers } from './spare-buffers.ts';

const mib = 1024 * 1024;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a buffer is as long as was asked for, and its memory is its own', () => {
  const spares = new SpareBuffers();
  for (const bytes of [1, 100_000, mib, 16 * mib + 33]) {
    const buffer = spares.take(bytes);
    expect(buffer.length).toBe(bytes);
    expect(buffer.byteOffset).toBe(0);
  }
});

test('what is given is taken again, also for a little more', () => {
  const spares = new SpareBuffers();
  const one = spares.take(16 * mib + 33);
  one.fill(7);
  spares.give(one);
  const other = spares.take(16 * mib + 4096);
  expect(other.buffer).toBe(one.buffer);
  expect(other.length).toBe(16 * mib + 4096);
  expect(spares).toMatchObject({ made: 1, bytes: 0 });
});

test('a spare is not taken for much less than it has, and none while it is in use', () => {
  const spares = new SpareBuffers();
  const large = spares.take(16 * mib);
  expect(spares.take(16 * mib).buffer).not.toBe(large.buffer);
  spares.give(large);
  expect(spares.take(8 * mib).buffer).not.toBe(large.buffer);
  expect(spares.made).toBe(3);
});

test('the smallest that will do is taken', () => {
  const spares = new SpareBuffers();
  const [larger, smaller] = [spares.take(10 * mib), spares.take(9 * mib)];
  spares.give(larger);
  spares.give(smaller);
  expect(spares.take(9 * mib).buffer).toBe(smaller.buffer);
});

test('no more is kept than 96 MiB, and no small ones', () => {
  const spares = new SpareBuffers();
  const all = Array.from({ length: 8 }, () => spares.take(16 * mib));
  for (const one of all) spares.give(one);
  spares.give(spares.take(1000));
  expect(spares.bytes).toBe(96 * mib);
});

test('a spare that is not used is given up after a second or two', () => {
  const spares = new SpareBuffers();
  spares.give(spares.take(mib));
  vi.advanceTimersByTime(1000);
  expect(spares.bytes).toBe(mib);
  spares.give(spares.take(2 * mib));
  vi.advanceTimersByTime(1000);
  expect(spares.bytes).toBe(2 * mib);
  vi.advanceTimersByTime(1000);
  expect(spares.bytes).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
});
