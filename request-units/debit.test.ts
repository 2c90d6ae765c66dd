import { expect, test } from 'vitest';
import { Debit } from './debit.ts';

test('what is owed is waited for', () => {
  const debit = new Debit({ perSecond: 100, burst: 100 });
  expect(debit.admit(1)).toBe(true);
  debit.settle(1, 600);
  expect(debit.balance).toBe(-500);
  expect(debit.secondsToWait).toBe(5);
  debit.refill(4.9);
  expect(debit.admit(1)).toBe(false);
  debit.refill(0.2);
  expect(debit.admit(1)).toBe(true);
});

test('what was not needed comes back, but no more than can be saved', () => {
  const debit = new Debit({ perSecond: 10, burst: 50 });
  debit.admit(40);
  debit.settle(40, 5);
  expect(debit.balance).toBe(45);
  debit.admit(1);
  debit.settle(1, -1000);
  expect(debit.balance).toBe(45);
});

test('a debt has a floor', () => {
  const debit = new Debit({ perSecond: 10, burst: 10 });
  debit.admit(1);
  debit.settle(1, 1e9);
  expect(debit.balance).toBe(-100);
});

test('in the long run no more is spent than is refilled, whatever the costs turn out to be', () => {
  const perSecond = 1000;
  const debit = new Debit({ perSecond, burst: perSecond, maxDebtSeconds: 10 });
  let spent = 0;
  let state = 3;
  const seconds = 2000;
  for (let step = 0; step < seconds * 100; step++) {
    debit.refill(0.01);
    // Whoever is let in turns out to cost 1 to 100 units, and always offers more than there is.
    for (let i = 0; i < 3; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const cost = 1 + ((state >>> 8) % 100);
      if (!debit.admit(1)) continue;
      spent += cost;
      debit.settle(1, cost);
    }
  }
  expect(spent / (perSecond * seconds)).toBeLessThanOrEqual(1.01);
  expect(spent / (perSecond * seconds)).toBeGreaterThan(0.98);
});

test('a change of the quota keeps debts and cuts savings', () => {
  const debit = new Debit({ perSecond: 10, burst: 100 });
  debit.change(10, 20);
  expect(debit.balance).toBe(20);
  debit.admit(1);
  debit.settle(1, 70);
  debit.change(100, 100);
  expect(debit.balance).toBe(-50);
  expect(debit.secondsToWait).toBe(0.5);
});
