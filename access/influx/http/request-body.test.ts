import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { afterEach, expect, test, vi } from 'vitest';
import { readRawBody } from './request-body.ts';

afterEach(() => {
  vi.useRealTimers();
});

test('bodies that have arrived are read for some milliseconds in a round of the event loop', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const pieces = Array.from({ length: 8 }, () => Buffer.alloc(100, 'v'));
  let round = 0;
  const reads: number[] = [];
  const read = async (): Promise<number> => {
    const request = Object.assign(Readable.from(pieces), { headers: {} });
    const body = await readRawBody(request as unknown as IncomingMessage, {
      ...{ maxBytes: 0, maxUnpackedBytes: 0, idleMs: 10_000 },
      onBytes: () => {
        vi.advanceTimersByTime(3);
        reads[round] = (reads[round] ?? 0) + 1;
      },
    });
    return body.length;
  };
  let isDone = false;
  const all = Promise.all(Array.from({ length: 4 }, read)).finally(() => (isDone = true));
  while (!isDone) {
    await new Promise(setImmediate);
    round++;
  }
  expect(await all).toEqual([800, 800, 800, 800]);
  // Without rounds, all 32 pieces would be read in the first one. Three fill it, and each body has one more under way.
  expect(Math.max(...reads)).toBeLessThanOrEqual(8);
});
