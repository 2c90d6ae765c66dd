import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OperationQuotas } from './operation-quotas.ts';
import { ReplyPage } from './reply-page.ts';

test('a class has its own quota, and one without has none', () => {
  const quotas = new OperationQuotas({ perSecond: { scan: 2, admin: 0.5 } }, 0);
  const admitted = (kind: 'scan' | 'query' | 'admin', now: number): number => {
    let n = 0;
    while (n < 10 && quotas.admit(kind, now)) n++;
    return n;
  };
  expect(admitted('scan', 0)).toBe(2);
  expect(admitted('query', 0)).toBe(10);
  expect(admitted('admin', 0)).toBe(1);
  expect(quotas.wait('scan', 0)).toBe(500);
  expect(quotas.wait('admin', 0)).toBe(2000);
  expect(quotas.wait('query', 0)).toBe(0);
  expect(admitted('scan', 500)).toBe(1);
});

test('a large reply counts as several requests, which are paid before the next', () => {
  const quotas = new OperationQuotas({ perSecond: { scan: 10 }, replyUnitBytes: 1000 }, 0);
  expect(quotas.admit('scan', 0)).toBe(true);
  expect(quotas.settle('scan', 60_500, 0)).toBe(60.5);
  // 10 were saved up; 50.5 are owed.
  expect(quotas.admit('scan', 5000)).toBe(false);
  expect(quotas.admit('scan', 5151)).toBe(true);
  expect(quotas.settle('scan', 10, 5151)).toBe(1);
});

test('in the long run the requests counted are those of the quota, however large they are', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 100_000 }), { minLength: 1, maxLength: 20 }),
      (sizes) => {
        const quotas = new OperationQuotas({ perSecond: { query: 50 }, replyUnitBytes: 1000 }, 0);
        let counted = 0;
        for (let now = 0, n = 0; now <= 60_000; now += 5) {
          if (!quotas.admit('query', now)) continue;
          counted += quotas.settle('query', sizes[n++ % sizes.length]!, now);
        }
        // Initial savings, and the debt of the last request.
        expect(counted).toBeLessThanOrEqual(60 * 50 + 50 + 100);
        expect(counted).toBeGreaterThanOrEqual(60 * 50 * 0.99);
      },
    ),
  );
});

test('pages are not beyond the limit, lose no row and are as full as can be', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 400 })), (rows) => {
      const page = new ReplyPage({ limitBytes: 500, frameBytes: 50 });
      const pages: number[][] = [];
      for (let next = 0; next < rows.length; ) {
        page.begin();
        const from = next;
        while (next < rows.length && page.add(rows[next]!)) next++;
        expect(page.bytes).toBeLessThanOrEqual(500);
        expect(page.rows).toBe(next - from);
        if (next < rows.length) expect(page.bytes + rows[next]!).toBeGreaterThan(500);
        pages.push(rows.slice(from, next));
      }
      expect(pages.flat()).toEqual(rows);
    }),
  );
});

test('a row larger than a page is one by itself', () => {
  const page = new ReplyPage({ limitBytes: 500, frameBytes: 50 });
  expect(page.add(10)).toBe(true);
  expect(page.add(9000)).toBe(false);
  page.begin();
  expect(page.add(9000)).toBe(true);
  expect(page.add(1)).toBe(false);
});
