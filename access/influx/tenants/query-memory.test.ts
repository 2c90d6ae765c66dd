import { expect, test } from 'vitest';
import { RequestMemory } from '../../admission/request-memory.ts';
import { StatementRunner, noQueryLimits } from '../http/statement-runner.ts';
import type { PointWriter } from '../http/point-writer.ts';
import { systemClock } from '../../../universal-row/environment.ts';
import { TenantMemory } from './query-memory.ts';

const mib = 1024 * 1024;
const together = 'running queries hold what there is for all of them';

function tenant(shared: RequestMemory, number: number) {
  const memory = new TenantMemory(`t${number}`, () => 0);
  return () => memory.open(shared.account(number));
}

test('queries of one tenant have half of what all may hold, and leave room for those of others', () => {
  const shared = new RequestMemory({ maxBytes: 64 * mib });
  const first = tenant(shared, 1);
  const queries = [first(), first()];
  queries[0]!.reserve(30 * mib);
  expect(() => queries[1]!.reserve(4 * mib)).toThrow(together);
  queries[1]!.reserve(1.5 * mib);
  const other = tenant(shared, 2)();
  other.reserve(16 * mib);
  expect(() => other.reserve(16 * mib)).toThrow(together);
  for (const query of [...queries, other]) query.close();
  expect(shared.usedBytes).toBe(0);
  const again = tenant(shared, 2)();
  again.reserve(32 * mib);
  again.close();
});

test('many small amounts are asked for as a few large ones, and what is refused is not counted', () => {
  const shared = new RequestMemory({ maxBytes: 8 * mib });
  let asked = 0;
  const account = shared.account(1);
  const memory = new TenantMemory('t', () => 0);
  const query = memory.open({
    ...account,
    usedBytes: 0,
    add: () => {},
    release: (use, bytes) => account.release(use, bytes),
    reserve: (use, bytes) => {
      asked++;
      return account.reserve(use, bytes);
    },
  });
  for (let n = 0; n < 3000; n++) query.reserve(1024);
  expect(asked).toBe(3);
  expect(memory.bytes).toBe(3000 * 1024);
  expect(() => query.reserve(8 * mib)).toThrow(together);
  expect(memory.bytes).toBe(3000 * 1024);
  query.reserve(-1024);
  query.close();
  expect([memory.bytes, shared.usedBytes]).toEqual([0, 0]);
});

test('all queries together may hold twice what one may, or any amount where one may', () => {
  const runner = (maxMemoryBytes: number): StatementRunner =>
    new StatementRunner({
      points: undefined as unknown as PointWriter,
      clock: systemClock,
      limits: { ...noQueryLimits, maxMemoryBytes },
      facts: { version: '', startedAt: 0, hostname: '' },
    } as unknown as ConstructorParameters<typeof StatementRunner>[0]);
  expect(runner(512 * mib).memory.maxBytes).toBe(1024 * mib);
  expect(runner(0).memory.maxBytes).toBe(Infinity);
});
