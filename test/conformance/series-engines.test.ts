import { describe, expect, test } from 'vitest';
import { seriesCases, seriesConformance } from '../../engines/series-conformance.ts';
import { seriesToy } from './series-subjects.ts';

// The toy shows that the kit asks for nothing but the contract: in the short form a part of it does.
const full = process.env['POLYROW_FULL'] === '1';

describe('toy', () => {
  const some = seriesConformance(seriesToy).filter((_, i) => full || i % 3 === 0);
  for (const { name, run } of some) test(name, run);
});

test('each case has a name of its own', () => {
  const names = seriesCases.map(({ name }) => name);
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  expect(names.length).toBeGreaterThanOrEqual(150);
});
