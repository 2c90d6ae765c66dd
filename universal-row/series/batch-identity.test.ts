import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  ageOf,
  batchId,
  identityOf,
  offered,
  partId,
  readBatchId,
  repeated,
} from './batch-identity.ts';

test('an identity tells its rows', () => {
  const count = fc.nat(1e9);
  fc.assert(
    fc.property(fc.string(), count, count, count, count, count, (body, a, b, c, d, e) => {
      const id = batchId(body, a, b);
      const rows = { body, from: a, to: a + b };
      expect(readBatchId(id)).toEqual({ ...rows, part: undefined });
      const part = { from: c, to: c + d, of: e };
      expect(readBatchId(partId(id, c, d, e))).toEqual({ ...rows, part });
    }),
  );
  expect(readBatchId('x:1+2/0')).toEqual({ body: 'x:1+2/0', from: 0, to: 1, part: undefined });
});

test('its age counts from when a leader was first given the batch that may be stored', () => {
  const made = { id: 'x', at: performance.now() - 1000, isRepeated: false };
  expect(ageOf(made)).toBe(0);
  const sent = offered(made);
  expect(sent.at).toBeGreaterThan(made.at);
  const again = offered(repeated(sent));
  expect(again).toEqual({ id: 'x', at: sent.at, isRepeated: true });
  const age = ageOf(again);
  expect(age).toBeGreaterThanOrEqual(1);
  expect(identityOf('x', 0).isRepeated).toBe(false);
  const received = identityOf('x', age);
  expect(received.isRepeated).toBe(true);
  expect(received.at).toBeGreaterThanOrEqual(again.at - 1);
  expect(offered(undefined)).toBeUndefined();
});
