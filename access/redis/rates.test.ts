import { expect, test } from 'vitest';
import { Rates } from './rates.ts';

test('tells of what the last samples have added, a second', () => {
  const rates = new Rates();
  const total = (n: number) => ({ commands: n, bytesIn: 10 * n, bytesOut: 100 * n });
  rates.sample(1000, total(50));
  expect(rates).toMatchObject({ commands: 0, bytesIn: 0, bytesOut: 0 });
  rates.sample(3000, total(70));
  expect(rates).toMatchObject({ commands: 10, bytesIn: 100, bytesOut: 1000 });
  for (let i = 0; i < 20; i++) rates.sample(4000 + 1000 * i, total(70));
  expect(rates).toMatchObject({ commands: 0, bytesIn: 0, bytesOut: 0 });
  rates.reset();
  rates.sample(30_000, total(0));
  rates.sample(31_000, total(1));
  expect(rates).toMatchObject({ commands: 1, bytesIn: 10, bytesOut: 100 });
});
