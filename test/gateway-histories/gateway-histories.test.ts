// Histories of gateways in a cluster under faults (history.ts): each seed has faults of its own.
//
//   SEEDS=5000 FROM=1 npx vitest run test/gateway-histories     as many as one likes

import { expect, test } from 'vitest';
import { runGatewayHistory } from './history.ts';

const seeds = Number(process.env['SEEDS'] ?? 4);
const from = Number(process.env['FROM'] ?? 1);
/** Commands that had waited for a leader were answered before the log had them. */
const answeredEarly = 40_001;

test(
  `${seeds} histories of gateways from seed ${from} on`,
  async () => {
    let acknowledged = 0;
    const known = process.env['FROM'] === undefined ? [answeredEarly] : [];
    const all = [...known, ...Array.from({ length: seeds }, (_, i) => from + i)];
    for (const seed of all) {
      const result = await runGatewayHistory(seed);
      expect({ seed, failure: result.failure }).toEqual({ seed, failure: undefined });
      acknowledged += result.acknowledged;
    }
    expect(acknowledged).toBeGreaterThan(20 * seeds);
  },
  24 * 3_600_000,
);
