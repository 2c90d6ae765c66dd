// Histories of time series in clusters under faults (history.ts): each seed has faults of its own.
//
//   SEEDS=5000 FROM=1 npx vitest run test/series-histories     as many as one likes
//   SHOW=1                                                      prints what each has done

import { expect, test, vi } from 'vitest';
import { runSeriesHistory } from './history.ts';

// These wait in the time of the history, too.
vi.mock('node:timers/promises', () => ({
  setTimeout: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms)),
}));

const seeds = Number(process.env['SEEDS'] ?? 4);
const from = Number(process.env['FROM'] ?? 1);
const shows = process.env['SHOW'] !== undefined;

test(
  `${seeds} histories of time series from seed ${from} on`,
  async () => {
    let acknowledged = 0;
    for (let seed = from; seed < from + seeds; seed++) {
      const result = await runSeriesHistory(seed);
      if (shows) console.log(JSON.stringify(result));
      expect({ seed, failure: result.failure }).toEqual({ seed, failure: undefined });
      acknowledged += result.acknowledged;
    }
    expect(acknowledged).toBeGreaterThan(20 * seeds);
  },
  24 * 3_600_000,
);
