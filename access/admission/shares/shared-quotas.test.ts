import { expect, test } from 'vitest';
import { SharedQuotas } from './shared-quotas.ts';

const gateways = ['1', '2', '3'];
const quota = 900;

/** Seconds of reports; returns the shares told last. `of` is what is asked of each gateway; undefined for no report. */
function run(
  quotas: SharedQuotas,
  from: number,
  seconds: number,
  of: (gateway: string) => number | undefined,
  shares: Map<string, number>,
): number {
  let now = from;
  for (let i = 0; i < seconds; i++, now += 1000) {
    for (const gateway of gateways) {
      const asked = of(gateway);
      if (asked === undefined) continue;
      const has = (shares.get(gateway) ?? 1 / 3) * quota;
      const demand = {
        tenant: 1,
        quota,
        used: Math.min(asked, has),
        lacking: Math.max(0, asked - has),
      };
      const [told] = quotas.report(gateway, [demand], now);
      shares.set(gateway, told!.share);
      // Each gateway goes by what it was told last.
      if (shares.size === gateways.length) expect(sum(shares)).toBeLessThan(1.1);
    }
  }
  return now;
}

const sum = (shares: Map<string, number>): number =>
  [...shares.values()].reduce((total, share) => total + share, 0);

test('shares begin equal, follow the demand, and leave a floor', () => {
  const shares = new Map<string, number>();
  const quotas = new SharedQuotas(gateways, 0);
  let now = run(quotas, 0, 1, () => 0, shares);
  expect([...shares.values()]).toEqual([1 / 3, 1 / 3, 1 / 3]);
  now = run(quotas, now, 8, (gateway) => (gateway === '2' ? 2000 : 0), shares);
  expect(shares.get('2')).toBeGreaterThan(0.9);
  expect(shares.get('1')).toBeGreaterThan(0.03);
  expect(sum(shares)).toBeCloseTo(1, 2);
  now = run(quotas, now, 12, () => 2000, shares);
  for (const share of shares.values()) expect(share).toBeGreaterThan(0.25);
  expect(sum(shares)).toBeCloseTo(1, 2);
});

test('a gateway that is not heard of keeps its share until its lease is over', () => {
  const shares = new Map<string, number>();
  const quotas = new SharedQuotas(gateways, 0);
  let now = run(quotas, 0, 3, () => 2000, shares);
  const asked = (gateway: string) => (gateway === '3' ? undefined : 2000);
  now = run(quotas, now, 4, asked, shares);
  expect(shares.get('1')! + shares.get('2')!).toBeLessThanOrEqual(2 / 3 + 1e-9);
  // Its lease is over before others have its share.
  shares.set('3', 0.1 / 3);
  now = run(quotas, now, 5, asked, shares);
  expect(shares.get('1')! + shares.get('2')!).toBeCloseTo(1);
  now = run(quotas, now, 12, () => 2000, shares);
  expect(shares.get('3')).toBeGreaterThan(0.25);
  expect(sum(shares)).toBeCloseTo(1, 1);
});

test('another keeper takes nodes that it has not heard of for there', () => {
  const quotas = new SharedQuotas(gateways, 0);
  const demand = { tenant: 1, quota, used: 900, lacking: 900 };
  expect(quotas.report('1', [demand], 10)[0]!.share).toBeCloseTo(1 / 3);
});
