import { describe, expect, test } from 'vitest';
import { casesFor, conformanceCases, runCase } from '../../engines/conformance.ts';
import { memory, toys } from './subjects.ts';

describe('memory', () => {
  for (const one of casesFor(memory)) test(one.name, () => runCase(one, memory));
});

// The toy shows that the kit asks for nothing but the contract: in the short form a part of it does.
const full = process.env['POLYROW_FULL'] === '1';

describe('toy', () => {
  const { subject } = toys[0]!;
  const some = casesFor(subject).filter((_, i) => full || i % 3 === 0);
  for (const one of some) test(one.name, () => runCase(one, subject));
});

// Here it is the kit that is tried: that its steps run again after a read fault.
describe('toy with read faults', () => {
  const { subject } = toys[1]!;
  const some = casesFor(subject).filter((_, i) => i % 7 === 0);
  for (const one of some) test(one.name, () => runCase(one, subject));
});

test('each case has a name of its own', () => {
  const names = conformanceCases.map(({ name }) => name);
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  expect(names.length).toBeGreaterThanOrEqual(200);
});
