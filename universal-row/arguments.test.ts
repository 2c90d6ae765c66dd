import { expect, test } from 'vitest';
import { Arguments } from './arguments.ts';

test('memory of a long command is given back with its words', () => {
  const args = new Arguments();
  args.reserve(5000);
  args.count = 5000;
  args.shrink();
  expect(args.count).toBeLessThanOrEqual(args.lens.length);
  expect(args.lens.length).toBeLessThan(5000);
});
