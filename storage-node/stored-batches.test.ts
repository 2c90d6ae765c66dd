import { expect, test } from 'vitest';
import { OutcomeUnknownError } from '../contracts/series-store.ts';
import { StoredBatches } from './stored-batches.ts';

class TestClock {
  time = 1_000_000;
  now(): number {
    throw new Error('the time of day may jump');
  }
  monotonic(): number {
    return this.time;
  }
}

const outcome = { written: 3, dropped: 1, error: 'one is too old' };

test('a batch is known by its identity, with its outcome', () => {
  const clock = new TestClock();
  const batches = new StoredBatches(clock);
  batches.add({ id: 'a', ...outcome });
  expect(batches.find({ id: 'a', at: clock.time })).toEqual(outcome);
  expect(batches.find({ id: 'b', at: clock.time })).toBeUndefined();
});

test('what was given to a leader before the replica was opened, or replaced, is not known', () => {
  const clock = new TestClock();
  const batches = new StoredBatches(clock);
  const before = { id: 'b', at: clock.time - 1 };
  expect(() => batches.find(before)).toThrow(OutcomeUnknownError);
  const early = { id: 'a', at: clock.time };
  batches.add({ id: 'a', ...outcome });
  clock.time += 5;
  batches.clear();
  expect(() => batches.find(early)).toThrow(OutcomeUnknownError);
  expect(batches.find({ id: 'c', at: clock.time })).toBeUndefined();
});

test.each([
  ['a minute', 1, 61_000],
  ['16,384 batches', 16_384, 0],
])('beyond %s the oldest are dropped, and not taken for new ones', (_, more, ms) => {
  const clock = new TestClock();
  const batches = new StoredBatches(clock);
  const oldest = { id: 'a', at: clock.time };
  clock.time += 1;
  batches.add({ id: 'a', ...outcome });
  clock.time += ms;
  for (let n = 0; n < more; n++) batches.add({ id: `b${n}`, ...outcome });
  expect(batches.size).toBe(more);
  expect(() => batches.find(oldest)).toThrow(OutcomeUnknownError);
  expect(batches.find({ id: 'c', at: clock.time })).toBeUndefined();
  expect(batches.find({ id: `b${more - 1}`, at: clock.time })).toEqual(outcome);
});
