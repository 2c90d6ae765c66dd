import { expect, test } from 'vitest';
import { PodBuckets } from './pod-buckets.ts';

function twoTenants(): PodBuckets {
  const buckets = new PodBuckets({ podRate: 1000 }, 0);
  buckets.setTenant(1, 500, 0);
  buckets.setTenant(2, 500, 0);
  return buckets;
}

/** How many of so many requests of one unit are admitted at one moment. */
function admitted(buckets: PodBuckets, tenant: number, requests: number, now: number): number {
  let count = 0;
  for (let i = 0; i < requests; i++) {
    if (!buckets.mayBegin(tenant, now)) continue;
    buckets.charge(tenant, 1, now);
    count++;
  }
  return count;
}

test('a tenant may borrow until the pod is empty', () => {
  const buckets = twoTenants();
  // A fifth of a second of the pod.
  expect(admitted(buckets, 1, 300, 0)).toBe(200);
  expect(buckets.podBalance(0)).toBe(0);
});

test('after a borrower has emptied the pod a guarantee holds, and the pod is in debt', () => {
  const buckets = twoTenants();
  admitted(buckets, 1, 300, 0);
  expect(admitted(buckets, 2, 60, 0)).toBe(50);
  expect(buckets.podBalance(0)).toBe(-50);
  // Until that is made up for, tenant 1 has its guarantee only.
  expect(admitted(buckets, 1, 30, 50)).toBe(25);
});

test('over the long run a pod admits no more than it can do and what tenants are guaranteed', () => {
  const buckets = twoTenants();
  let count = 0;
  for (let now = 0; now < 60_000; now++) {
    for (const tenant of [1, 2, 2]) count += admitted(buckets, tenant, 1, now);
  }
  expect(count).toBeLessThanOrEqual(60 * 1000 + 200 + 100);
  expect(count).toBeGreaterThanOrEqual(60 * 1000);
});

test('a tenant without a guarantee may only borrow', () => {
  const buckets = twoTenants();
  expect(buckets.mayBegin(9, 0)).toBe(true);
  buckets.charge(9, 200, 0);
  expect(buckets.mayBegin(9, 0)).toBe(false);
  expect(buckets.isWithin(9, 0, 0)).toBe(false);
  expect(buckets.isWithin(1, 40, 0)).toBe(true);
  expect(buckets.isWithin(1, 60, 0)).toBe(false);
});
