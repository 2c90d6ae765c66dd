import { expect, test } from 'vitest';
import { type HotName, type TenantRate, topText } from './top-view.ts';

const rate = (tenant: string, ru: number): TenantRate => ({
  tenant,
  ru,
  ruByClass: { read: ru },
  requests: 10 * ru,
  errors: 0,
  ruLimit: 200,
  ofLimit: ru / 200,
  waiting: 3,
  refused: 0.5,
});
const hot = (name: string): HotName => ({
  kind: 'key',
  tenant: 'shop',
  database: 0,
  name,
  ru: 5,
  rate: 2,
  bytes: 2048,
});
const many = <T>(count: number, make: (n: number) => T) =>
  Array.from({ length: count }, (_, n) => make(n));

test('tenants first, then what they spend it on', async () => {
  const view = { seconds: 2, tenants: [rate('shop', 50)], hot: [hot('cart:1')] };
  expect(await topText(view, 20, 120)).toBe(
    [
      'tenant  RU/s  of limit  read  write  scan  background  requests/s  errors/s  waiting  refused/s',
      'shop      50      25 %    50      0     0           0         500         0        3       0.50',
      '',
      'hot  tenant  database  RU  requests/s  size  name',
      'key  shop    0          5           2  2 kB  cart:1',
    ].join('\n'),
  );
});

test('the two lists share the room there is', async () => {
  const check = async (tenants: number, names: number, expected: [number, number]) => {
    const view = {
      seconds: 1,
      tenants: many(tenants, (n) => rate(`t${n}`, n)),
      hot: many(names, (n) => hot(`k${n}`)),
    };
    const text = await topText(view, 23, 80);
    const count = (start: RegExp) => text.match(start)?.length ?? 0;
    expect([count(/^t\d+ /gm), count(/^key /gm)], `${tenants} and ${names}`).toEqual(expected);
    expect(text.split('\n').length).toBeLessThanOrEqual(23);
  };
  await check(3, 4, [3, 4]);
  await check(100, 100, [10, 10]);
  await check(100, 2, [18, 2]);
  await check(2, 100, [2, 18]);
});

test('an empty list says why', async () => {
  expect(await topText({ seconds: 0, tenants: [], hot: [] }, 20, 80)).toMatch(/^looking/);
  expect(await topText({ seconds: 2, tenants: [], hot: [] }, 20, 80)).toMatch(/^no tenant spends/);
});
