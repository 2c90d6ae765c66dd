import { expect, test } from 'vitest';
import { ProxyQuota, ProxyRecall } from './proxy-quota.ts';

function admittedInSecond(proxy: ProxyQuota, from: number, offered: number): number {
  let admitted = 0;
  for (let n = 0; n < offered; n++) {
    if (proxy.admit(1, from + (n * 1000) / offered)) admitted++;
  }
  return admitted;
}

test('a proxy goes up to twice its part, and back to it when it is ordered to', () => {
  const proxy = new ProxyQuota(100, 0);
  admittedInSecond(proxy, 0, 1000);
  expect(admittedInSecond(proxy, 1000, 1000)).toBeCloseTo(200, -1);
  expect(proxy.report()).toMatchObject({ refused: expect.any(Number) as number });
  proxy.setRecalled(true, 2000);
  admittedInSecond(proxy, 2000, 1000);
  expect(admittedInSecond(proxy, 3000, 1000)).toBeCloseTo(100, -1);
  const { admitted, refused } = proxy.report();
  expect(admitted + refused).toBe(2000);
  proxy.setRecalled(false, 4000);
  expect(admittedInSecond(proxy, 4000, 1000)).toBeGreaterThan(190);
});

test('proxies are recalled at once, and let go after ten quiet seconds in a row', () => {
  const recall = new ProxyRecall(1000);
  expect(recall.decide(1000)).toBe(false);
  expect(recall.decide(1001)).toBe(true);
  for (let second = 0; second < 9; second++) expect(recall.decide(500)).toBe(true);
  expect(recall.decide(2000)).toBe(true);
  for (let second = 0; second < 9; second++) expect(recall.decide(500)).toBe(true);
  expect(recall.decide(500)).toBe(false);
});
