import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OutcomeUnknownError, type WriteOutcome } from '../contracts/series-store.ts';
import { type BatchIdentity, batchId, partId } from '../universal-row/series/batch-identity.ts';
import { StoredBatches, transitMs } from './stored-batches.ts';

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

const again = (id: string, at: number): BatchIdentity => ({ id, at, isRepeated: true });
const first = (id: string, at = Infinity): BatchIdentity => ({ id, at, isRepeated: false });

/** What a leader would do with the batch. */
function answerOf(batches: StoredBatches, batch: BatchIdentity): WriteOutcome | 'unknown' | 'new' {
  try {
    return batches.find(batch) ?? 'new';
  } catch (error) {
    expect(error).toBeInstanceOf(OutcomeUnknownError);
    return 'unknown';
  }
}

test('a batch is known by its identity, with its outcome', () => {
  const clock = new TestClock();
  const batches = new StoredBatches(clock);
  batches.add({ id: 'a', ...outcome });
  clock.time += transitMs;
  expect(batches.find(again('a', clock.time))).toEqual(outcome);
  // It was delayed on its way, and another leader was given it meanwhile.
  expect(batches.find(first('a'))).toEqual(outcome);
  expect(batches.find(again('b', clock.time))).toBeUndefined();
  expect(batches.find(first('b'))).toBeUndefined();
});

test('what was given to a leader before the replica was opened, or replaced, is not known', () => {
  const clock = new TestClock();
  const batches = new StoredBatches(clock);
  const opened = clock.time;
  expect(answerOf(batches, again('b', opened + transitMs - 1))).toBe('unknown');
  expect(answerOf(batches, again('b', opened + transitMs))).toBe('new');
  expect(answerOf(batches, first('b'))).toBe('new');
  // It waited here while another leader may have been given it.
  expect(answerOf(batches, first('b', opened - 1))).toBe('unknown');
  expect(answerOf(batches, first('b', opened))).toBe('new');
  batches.add({ id: 'a', ...outcome });
  clock.time += 5;
  batches.clear();
  expect(answerOf(batches, again('a', opened + transitMs))).toBe('unknown');
  expect(answerOf(batches, again('c', clock.time + transitMs))).toBe('new');
});

test.each([
  ['a minute', 1, 61_000],
  ['16,384 batches', 16_384, 0],
])('beyond %s the oldest are dropped, and not taken for new ones', (_, more, ms) => {
  const clock = new TestClock();
  const batches = new StoredBatches(clock);
  clock.time += 1;
  const stored = clock.time;
  batches.add({ id: 'a', ...outcome });
  clock.time += ms;
  for (let n = 0; n < more; n++) batches.add({ id: `b${n}`, ...outcome });
  expect(batches.size).toBe(more);
  expect(answerOf(batches, again('a', stored + transitMs - 1))).toBe('unknown');
  expect(answerOf(batches, again('c', stored + transitMs))).toBe('new');
  expect(batches.find(again(`b${more - 1}`, clock.time))).toEqual(outcome);
});

test('a body that is cut at other rows is not stored twice, nor taken for stored', () => {
  const whole = batchId('x', 0, 250);
  const part = (from: number, count: number): string => partId(whole, from, count, 100);
  const cases: [stored: string[], wanted: string, answer: 'all' | 'unknown' | 'new'][] = [
    [[batchId('x', 0, 500)], batchId('x', 0, 250), 'all'],
    [[batchId('x', 0, 500)], batchId('x', 500, 250), 'new'],
    [[batchId('x', 0, 500)], batchId('x', 250, 500), 'unknown'],
    [[batchId('x', 0, 500)], batchId('y', 0, 250), 'new'],
    [[batchId('x', 0, 250), batchId('x', 250, 250)], batchId('x', 0, 500), 'all'],
    [[batchId('x', 0, 250), batchId('x', 251, 249)], batchId('x', 0, 500), 'unknown'],
    [[part(0, 60), part(60, 40)], whole, 'all'],
    [[part(0, 60), part(60, 39)], whole, 'unknown'],
    [[part(0, 60)], part(60, 40), 'new'],
    [[part(0, 60)], part(0, 60), 'all'],
    [[part(0, 60)], part(10, 20), 'all'],
    [[part(0, 60)], part(50, 20), 'unknown'],
    [[part(60, 40), part(0, 60)], part(50, 20), 'all'],
    [[whole], part(60, 40), 'all'],
    // Rows of a part are in the order of groups, and no range of another batch.
    [[part(0, 100)], batchId('x', 0, 50), 'unknown'],
    [[part(0, 60)], partId(batchId('x', 0, 500), 60, 40, 100), 'unknown'],
    [[batchId('x', 0, 100)], part(0, 60), 'unknown'],
    [[part(0, 60)], batchId('x', 250, 250), 'new'],
  ];
  for (const [stored, wanted, answer] of cases) {
    const batches = new StoredBatches(new TestClock());
    for (const id of stored) batches.add({ id, ...outcome });
    const found = answerOf(batches, first(wanted));
    expect([stored, wanted, typeof found === 'object' ? 'all' : found]).toEqual([
      ...[stored, wanted, answer],
    ]);
  }
});

test('all batches of a body together are answered what its writer was, however it is cut', () => {
  const cuts = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(cuts, cuts, fc.nat(), (stored, wanted, ends) => {
      const batches = new StoredBatches(new TestClock());
      let to = 0;
      for (const rows of stored) {
        batches.add({ id: batchId('x', to, rows), written: rows - 1, dropped: 1 });
        to += rows;
      }
      const [total, unknown] = [{ written: 0, dropped: 0 }, [] as number[]];
      let from = 0;
      for (let n = 0; from < to; n++) {
        // The last ends with the body, or somewhere behind what is stored.
        const rows = Math.min(wanted[n % wanted.length]!, ends % 2 === 0 ? to - from : Infinity);
        const found = answerOf(batches, first(batchId('x', from, rows)));
        expect(found).not.toBe('new');
        if (found === 'unknown') unknown.push(from + rows);
        else if (found !== 'new') {
          total.written += found.written;
          total.dropped += found.dropped;
        }
        from += rows;
      }
      expect(answerOf(batches, first(batchId('x', from, 10)))).toBe('new');
      if (from > to) expect(unknown).toEqual([from]);
      else {
        expect(unknown).toEqual([]);
        expect(total).toEqual({ written: to - stored.length, dropped: stored.length });
      }
    }),
  );
});
