import { readConfigureGlobal } from 'fast-check';
import { expect, test } from 'vitest';
import { seedFrom, seedInCI } from './seed.ts';

test('properties and random tests have one seed in CI, and a new one elsewhere', () => {
  const isCI = Boolean(process.env['CI']);
  expect(readConfigureGlobal()?.seed).toBe(isCI ? seedInCI : undefined);
  const seeds = new Set(Array.from({ length: 20 }, () => seedFrom('A_SEED_NOBODY_SETS')));
  if (isCI) expect([...seeds]).toEqual([seedInCI]);
  else expect(seeds.size).toBeGreaterThan(1);
});
