// The demonstration runs on any machine; what it shows is judged by `npm run experiment -- noisy-neighbour`.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { NoisyNeighbour } from '../../cli/demo/noisy-neighbour.ts';
import { isBuilt, polyrow, PolyrowProcess } from './polyrow-process.ts';

// A directory of its own: other tests may run the demo at the same time.
const temporary = mkdtempSync(join(tmpdir(), 'polyrow-test-demo-'));
afterAll(() => rmSync(temporary, { recursive: true, force: true }));
const environment = { TMPDIR: temporary };

describe.skipIf(!isBuilt)('polyrow demo noisy-neighbour', () => {
  test('shows three phases, and says what they came to', async () => {
    const words = ['demo', 'noisy-neighbour', '--seconds', '1', '--json'];
    const { out, err } = await polyrow(words, environment);
    expect(err).toBe('');
    const outcome = JSON.parse(out) as NoisyNeighbour;
    expect(outcome.phases.map(({ phase }) => phase)).toEqual(['alone', 'no limits', 'limits']);
    for (const phase of outcome.phases) expect(phase.failure).toBeUndefined();
    expect(outcome.phases[0]!.rate).toBeGreaterThan(0);
    expect(outcome.phases[2]!.served).toBeGreaterThan(0);
    expect(outcome.checks).toHaveLength(4);
    expect(readdirSync(temporary)).toEqual([]);
  });

  test('stops what it has started when it is interrupted', async () => {
    const words = ['demo', 'noisy-neighbour', '--over', 'influx-queries'];
    const demo = new PolyrowProcess(words, environment);
    await expect.poll(() => demo.out).toContain('1. B alone');
    demo.kill('SIGINT');
    const { code, err } = await demo.finish();
    expect(err).toBe('polyrow: stopped\n');
    expect(code).toBe(1);
    expect(readdirSync(temporary)).toEqual([]);
  });
});
