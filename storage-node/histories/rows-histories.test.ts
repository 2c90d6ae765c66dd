// Histories of replicated rows under faults (rows-history.ts): each seed has faults of its own.
//
//   SEEDS=5000 FROM=1 npx vitest run storage-node/histories     as many as one likes

import { expect, test } from 'vitest';
import { runRowsHistory } from './rows-history.ts';

const seeds = Number(process.env['SEEDS'] ?? 12);
const from = Number(process.env['FROM'] ?? 1);

test('a seed repeats its history', async () => {
  expect(await runRowsHistory(5)).toEqual(await runRowsHistory(5));
});

test(
  `${seeds} histories of replicated rows from seed ${from} on`,
  async () => {
    let acknowledged = 0;
    for (let seed = from; seed < from + seeds; seed++) {
      const result = await runRowsHistory(seed);
      expect({ seed, failure: result.failure }).toEqual({ seed, failure: undefined });
      acknowledged += result.acknowledged;
    }
    expect(acknowledged).toBeGreaterThan(20 * seeds);
  },
  24 * 3_600_000,
);
