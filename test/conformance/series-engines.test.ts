import { describe, expect, test } from 'vitest';
import { seriesCases, seriesConformance } from '../../engines/series-conformance.ts';
import { seriesToy } from './series-subjects.ts';

describe('toy', () => {
  for (const { name, run } of seriesConformance(seriesToy)) test(name, run);
});

test('each case has a name of its own', () => {
  const names = seriesCases.map(({ name }) => name);
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  expect(names.length).toBeGreaterThanOrEqual(150);
});
