import { expect, test } from 'vitest';
import { RequestOrder } from './request-order.ts';

/** Adds requests, named for their connections. */
function orderOf(names: readonly string[], known: readonly string[] = []) {
  const connections = new Map(names.map((name) => [name, { name }]));
  const order = new RequestOrder();
  const begun: string[] = [];
  const add = (name: string, n = 0): void =>
    order.add({
      connection: connections.get(name)!,
      isKnown: known.includes(name),
      begin: () => begun.push(n === 0 ? name : `${name}${n}`),
    });
  return { order, begun, add };
}

test('the newest and the one that has waited longest take turns', () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  const { order, begun, add } = orderOf(names);
  for (const name of names) add(name);
  while (order.size > 0) order.take().begin();
  expect(begun).toEqual(['e', 'a', 'd', 'b', 'c']);
});

test('a connection that was served before is not delayed by a thousand new ones, nor are they forgotten', () => {
  const news = Array.from({ length: 1000 }, (_, n) => `new ${n}`);
  const { order, begun, add } = orderOf([...news, 'known', 'other'], ['known', 'other']);
  for (const name of news) add(name);
  add('known');
  order.take().begin();
  expect(begun).toEqual(['known']);
  for (let n = 0; n < 40; n++) {
    add('known');
    add('other');
    order.take().begin();
  }
  expect(begun.filter((name) => name.startsWith('new')).length).toBeGreaterThanOrEqual(10);
});

test('requests of one connection keep their order, and let others in between', () => {
  const { order, begun, add } = orderOf(['a', 'b']);
  for (const n of [1, 2, 3]) add('a', n);
  add('b');
  while (order.size > 0) order.take().begin();
  expect(begun.filter((name) => name !== 'b')).toEqual(['a1', 'a2', 'a3']);
  expect(begun.indexOf('b')).toBeLessThan(2);
});

test('every request is taken once', () => {
  const names = Array.from({ length: 500 }, (_, n) => `c${n}`);
  const { order, begun, add } = orderOf(names, names.slice(0, 100));
  names.forEach((name, n) => {
    add(name);
    if (n % 3 === 0) order.take().begin();
  });
  while (order.size > 0) order.take().begin();
  expect([...begun].sort()).toEqual([...names].sort());
});
