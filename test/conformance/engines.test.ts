import { describe, expect, test } from 'vitest';
import { casesFor, conformanceCases, runCase } from '../../engines/conformance.ts';
import { engines, toys } from './subjects.ts';

describe.each([...toys, ...engines])('$name', ({ subject }) => {
  for (const one of casesFor(subject)) test(one.name, () => runCase(one, subject));
});

test('each case has a name of its own', () => {
  const names = conformanceCases.map(({ name }) => name);
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  expect(names.length).toBeGreaterThanOrEqual(200);
});
