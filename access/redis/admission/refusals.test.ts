import { expect, test } from 'vitest';
import { ChargeClass } from '../../../request-units/meter.ts';
import type { TenantLimiter } from '../../admission/tenant-limiter.ts';
import { refusedInARow, Refusals } from './refusals.ts';

function limiter(meanCost: number): TenantLimiter {
  return { name: 'red', meanCost } as TenantLimiter;
}

const write = { kind: ChargeClass.write, isTransaction: false };

test('says whose limit it is, what was wanted, and when to try again', () => {
  const text = new Refusals().bytes('TRYAGAIN', limiter(1.23456), write, 250).toString();
  expect(text).toBe('-TRYAGAIN RU limit: tenant=red kind=write need=1.23 retry_after_ms=250\r\n');
});

test('of a transaction, that it is gone', () => {
  const transaction = { kind: ChargeClass.read, isTransaction: true };
  expect(new Refusals().bytes('ERR', limiter(2), transaction, 1).toString()).toBe(
    '-ERR RU limit: tenant=red kind=read need=2 retry_after_ms=1 (transaction discarded)\r\n',
  );
});

test('is made once for as long as it stays the same', () => {
  const refusals = new Refusals();
  const first = refusals.bytes('TRYAGAIN', limiter(1), write, 250);
  expect(refusals.bytes('TRYAGAIN', limiter(1), write, 250)).toBe(first);
  expect(refusals.bytes('TRYAGAIN', limiter(1), write, 251)).not.toBe(first);
  expect(refusals.bytes('TRYAGAIN', limiter(1.5), write, 251).toString()).toContain('need=1.5 ');
  const scan = { kind: ChargeClass.scan, isTransaction: false };
  expect(refusals.bytes('TRYAGAIN', limiter(1.5), scan, 251).toString()).toContain('kind=scan ');
});

test('pipelines that are refused reserve their places one after another', () => {
  const refusals = new Refusals();
  let now = 1000;
  const waits = Array.from({ length: 40 }, () => refusals.reserve(now, true));
  // A tenth of a second of them may come at once, and then as many a second as there may be: 20,000.
  expect(waits.filter((ms) => ms === 0)).toHaveLength(32);
  const spacing = (1000 * refusedInARow) / 20_000;
  expect(waits[35]! - waits[34]!).toBeCloseTo(spacing, 6);
  now += waits[39]!;
  expect(refusals.waitMs(now, true)).toBeGreaterThan(0);
  now += 2 * spacing;
  expect(refusals.waitMs(now, true)).toBe(0);
  // One command takes no more than its own place.
  expect(refusals.reserve(now, true, 1)).toBe(0);
  expect(refusals.waitMs(now + 1, true)).toBe(0);
});
