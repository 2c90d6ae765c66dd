import { describe, expect, test } from 'vitest';
import { PodBuckets } from './pod-buckets.ts';

function twoTenants(policy?: 'strict'): PodBuckets {
  const buckets = new PodBuckets({ podRate: 1000, ...(policy && { policy }) }, 0);
  buckets.setTenant(1, 500, 0);
  buckets.setTenant(2, 500, 0);
  return buckets;
}

/** Admissions of so many requests of one unit, all at one moment. */
function flood(buckets: PodBuckets, tenant: number, requests: number, now: number): string[] {
  return Array.from({ length: requests }, () => buckets.admit(tenant, 1, now));
}

test('a tenant takes its own first, then what the pod can spare, then nothing', () => {
  const answers = flood(twoTenants(), 1, 300, 0);
  // A tenth of a second of its own; of the pod's fifth of a second what that left.
  expect(answers.filter((answer) => answer === 'own')).toHaveLength(50);
  expect(answers.filter((answer) => answer === 'borrowed')).toHaveLength(150);
  expect(answers.at(-1)).toBe('no');
});

describe('after a borrower has emptied the pod', () => {
  test('a guarantee holds, and the pod owes', () => {
    const buckets = twoTenants();
    flood(buckets, 1, 300, 0);
    expect(flood(buckets, 2, 60, 0).filter((answer) => answer === 'own')).toHaveLength(50);
    expect(buckets.podBalance(0)).toBe(-50);
    // Nobody borrows until that is made up for.
    expect(flood(buckets, 1, 30, 50)).toEqual([
      ...Array<string>(25).fill('own'),
      ...Array<string>(5).fill('no'),
    ]);
  });

  test('with the strict policy it does not', () => {
    const buckets = twoTenants('strict');
    flood(buckets, 1, 300, 0);
    expect(buckets.admit(2, 1, 0)).toBe('no');
    expect(buckets.admit(2, 1, 10)).toBe('own');
  });
});

test('over the long run a pod takes on no more than it can do and what tenants are guaranteed', () => {
  const buckets = twoTenants();
  let admitted = 0;
  for (let now = 0; now < 60_000; now++) {
    for (const tenant of [1, 2, 2]) if (buckets.admit(tenant, 1, now) !== 'no') admitted++;
  }
  expect(admitted).toBeLessThanOrEqual(60 * 1000 + 200 + 100);
  expect(admitted).toBeGreaterThanOrEqual(60 * 1000);
});

test('a tenant unknown here may only borrow; what was guessed wrong is settled', () => {
  const buckets = twoTenants();
  expect(buckets.admit(9, 10, 0)).toBe('borrowed');
  expect(buckets.wait(9, 1, 0)).toBe(Infinity);
  expect(buckets.admit(1, 40, 0)).toBe('own');
  buckets.settle(1, 30, 0);
  expect(buckets.podBalance(0)).toBe(120);
  expect(buckets.wait(1, 5, 0)).toBe(50);
});
