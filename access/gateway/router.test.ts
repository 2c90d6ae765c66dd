import { expect, test } from 'vitest';
import type { Executor } from '../../universal-row/executor.ts';
import { type Route, Router } from './router.ts';

function route(name: string): Route {
  const pod = { name } as unknown as Executor;
  return { executor: pod, pods: [pod], mayWait: false };
}

test('tables go the usual way but for the exceptions, near and far', () => {
  const [usual, other] = [route('usual'), route('other')];
  const router = new Router();
  expect(() => router.to(0)).toThrow(RangeError);
  router.set(
    usual,
    new Map([
      [3, other],
      [160_000, other],
    ]),
  );
  const check = (table: number, expected: Route) => expect(router.to(table)).toBe(expected);
  check(0, usual);
  check(3, other);
  check(4095, usual);
  check(4096, usual);
  check(160_000, other);
  check(160_001, usual);
  expect(router.executors()).toEqual([usual.executor, other.executor]);
  router.set(other);
  check(3, other);
  check(160_000, other);
  check(160_001, other);
  expect(router.executors()).toEqual([other.executor]);
});
