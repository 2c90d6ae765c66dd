import { expect, test } from 'vitest';
import { ChargeClass } from '../../../request-units/meter.ts';
import type { TenantGate } from '../../admission/tenant-gate.ts';
import { Refusals } from './refusals.ts';

function gate(meanCost: number): TenantGate {
  return { name: 'red', meanCost } as TenantGate;
}

const write = { kind: ChargeClass.write, isTransaction: false };

test('says whose limit it is, what was wanted, and when to try again', () => {
  const text = new Refusals().bytes('TRYAGAIN', gate(1.23456), write, 250).toString();
  expect(text).toBe('-TRYAGAIN RU limit: tenant=red kind=write need=1.23 retry_after_ms=250\r\n');
});

test('of a transaction, that it is gone', () => {
  const transaction = { kind: ChargeClass.read, isTransaction: true };
  expect(new Refusals().bytes('ERR', gate(2), transaction, 1).toString()).toBe(
    '-ERR RU limit: tenant=red kind=read need=2 retry_after_ms=1 (transaction discarded)\r\n',
  );
});

test('is made once for as long as it stays the same', () => {
  const refusals = new Refusals();
  const first = refusals.bytes('TRYAGAIN', gate(1), write, 250);
  expect(refusals.bytes('TRYAGAIN', gate(1), write, 250)).toBe(first);
  expect(refusals.bytes('TRYAGAIN', gate(1), write, 251)).not.toBe(first);
  expect(refusals.bytes('TRYAGAIN', gate(1.5), write, 251).toString()).toContain('need=1.5 ');
  const scan = { kind: ChargeClass.scan, isTransaction: false };
  expect(refusals.bytes('TRYAGAIN', gate(1.5), scan, 251).toString()).toContain('kind=scan ');
});
