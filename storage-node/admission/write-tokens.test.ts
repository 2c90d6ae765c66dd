import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type StoreHealth, tokenShare, WriteTokens } from './write-tokens.ts';

const mebibyte = 1024 * 1024;
const period = 15_000;

function health(sublevels: number, compacted: number, flushed = compacted): StoreHealth {
  return {
    sublevels,
    files: sublevels * 4,
    compactedBytes: compacted * mebibyte,
    flushedBytes: flushed * mebibyte,
  };
}

test('the share of what compaction does, by score', () => {
  expect([0, 0.49].map(tokenShare)).toEqual([Infinity, Infinity]);
  expect([0.5, 0.75, 1, 1.5, 2, 9].map(tokenShare)).toEqual([2, 1.5, 1, 0.75, 0.5, 0.5]);
});

test('a healthy store has no limit, one whose reads look through much has less and less', () => {
  const tokens = new WriteTokens({}, 0);
  tokens.observe(health(2, 0), 0);
  expect(tokens.total).toBe(Infinity);
  tokens.observe(health(9, 100), period);
  expect(tokens.total).toBe(Infinity);
  tokens.observe(health(20, 200), 2 * period);
  expect(tokens.score).toBe(1);
  expect(tokens.total).toBe(100 * mebibyte);
  tokens.observe(health(60, 300), 3 * period);
  expect(tokens.total).toBe(50 * mebibyte);
  tokens.observe(health(3, 400), 4 * period);
  expect(tokens.total).toBe(Infinity);
});

test('files alone may be too many', () => {
  const tokens = new WriteTokens({}, 0);
  tokens.observe(health(1, 0), 0);
  tokens.observe({ ...health(1, 100), files: 1000 }, period);
  expect(tokens.score).toBe(1);
  expect(tokens.total).toBe(100 * mebibyte);
});

test('a period without a compaction keeps what was known of the others', () => {
  const tokens = new WriteTokens({}, 0);
  tokens.observe(health(20, 0), 0);
  // Nothing is known that could be a limit.
  expect(tokens.total).toBe(Infinity);
  tokens.observe(health(20, 100), period);
  tokens.observe(health(20, 300), 2 * period);
  expect(tokens.total).toBe(150 * mebibyte);
  tokens.observe(health(20, 300), 3 * period);
  expect(tokens.total).toBe(150 * mebibyte);
  // Counters of a store that was opened anew begin again.
  tokens.observe(health(20, 10), 4 * period);
  expect(tokens.total).toBe(150 * mebibyte);
  tokens.observe(health(20, 60), 5 * period);
  expect(tokens.total).toBe(100 * mebibyte);
});

/** At a score of 1, with 100 MiB of tokens. */
function limited(): WriteTokens {
  const tokens = new WriteTokens({}, 0);
  tokens.observe(health(20, 0), -period);
  tokens.observe(health(20, 100), 0);
  return tokens;
}

function writeAll(tokens: WriteTokens, bytes: number, from: number, to: number): number {
  let written = 0;
  for (let now = from; now < to; now++) while (tokens.admit(bytes, now)) written += bytes;
  return written;
}

test('writes beyond the tokens are refused, and over the period those are used', () => {
  const written = writeAll(limited(), 10_000, 0, period);
  expect(written).toBeLessThanOrEqual(100 * mebibyte + 10_000);
  expect(written).toBeGreaterThan(98 * mebibyte);
});

test('followers are never refused, but clients wait for what they wrote', () => {
  const tokens = limited();
  tokens.charge(50 * mebibyte, 0);
  expect(tokens.debt(0)).toBeGreaterThan(49 * mebibyte);
  const written = writeAll(tokens, 10_000, 0, period);
  // The last piece may be larger than what was left.
  expect(written).toBeLessThanOrEqual(50 * mebibyte + 10_000);
  expect(written).toBeGreaterThan(48 * mebibyte);
  expect(limited().debt(0)).toBe(0);
});

test('what was written is paid, not what was thought', () => {
  const tokens = limited();
  let written = 0;
  for (let now = 0; now < period; now++) {
    while (tokens.admit(5000, now)) {
      tokens.settle(5000, 10_000, now);
      written += 10_000;
    }
  }
  expect(written).toBeLessThanOrEqual(101 * mebibyte);
  expect(written).toBeGreaterThan(98 * mebibyte);
});

test('bytes are counted as they come to level 0', () => {
  const tokens = limited();
  tokens.charge(40 * mebibyte, 0);
  // 20 of them arrived there: they compress, or overwrite each other before they are flushed.
  tokens.observe(health(20, 200, 120), period);
  expect(tokens.amplification).toBe(0.5);
  const written = writeAll(tokens, 10_000, period, 2 * period);
  expect(written).toBeGreaterThan(195 * mebibyte);
  expect(written).toBeLessThanOrEqual(200 * mebibyte);
});

test('asking again after the wait is not in vain', () => {
  const tokens = limited();
  fc.assert(
    fc.property(fc.integer({ min: 1, max: mebibyte }), (bytes) => {
      const one = limited();
      writeAll(one, 1000, 0, 1);
      const wait = one.wait(bytes, 0);
      expect(one.admit(bytes, wait)).toBe(true);
    }),
  );
  tokens.charge(1e12, 0);
  expect(tokens.wait(1, 0)).toBe(Infinity);
});

test('switched off nothing is refused', () => {
  const tokens = new WriteTokens({ enabled: false }, 0);
  tokens.observe(health(50, 0), 0);
  tokens.observe(health(50, 1), period);
  expect(tokens.admit(1e12, period)).toBe(true);
  expect(tokens.wait(1e12, period)).toBe(0);
  expect(tokens.debt(period)).toBe(0);
});

test('more than the total of a period is never given in it', () => {
  const write = fc.record({ after: fc.nat(300), bytes: fc.integer({ min: 1, max: mebibyte }) });
  fc.assert(
    fc.property(fc.array(write, { maxLength: 300 }), (writes) => {
      const tokens = limited();
      let now = 0;
      let written = 0;
      for (const { after, bytes } of writes) {
        now += after;
        if (now >= period) break;
        if (tokens.admit(bytes, now)) written += bytes;
      }
      // One piece may leave a debt.
      expect(written).toBeLessThanOrEqual(101 * mebibyte);
    }),
  );
});
