import { expect, test } from 'vitest';
import { QueryQueue, type WaitingQuery } from '../../access/admission/query-queue.ts';
import { lendUnits } from './lend-units.ts';

const query = (cost: number, arrivedAt: number): WaitingQuery => ({
  cost,
  arrivedAt,
  deadline: Infinity,
});
test('the query that waits longest is lent to first, by the gateway with most units', () => {
  const queues = Array.from({ length: 4 }, () => new QueryQueue());
  const [late, early, rich, poor] = queues as [
    QueryQueue<WaitingQuery>,
    QueryQueue<WaitingQuery>,
    QueryQueue<WaitingQuery>,
    QueryQueue<WaitingQuery>,
  ];
  late.arrive(query(50, 20), 1000);
  early.arrive(query(50, 10), 1000);
  rich.units.endSecond(60);
  poor.units.endSecond(10);
  expect(lendUnits(queues, 1000)).toBe(70);
  expect(early.next(1000)).toBeDefined();
  expect(late.units.balance).toBe(20);
  expect([rich.units.balance, poor.units.balance]).toEqual([0, 0]);
});
