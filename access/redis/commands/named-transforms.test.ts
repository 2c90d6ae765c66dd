import { expect, test } from 'vitest';
import { namedTransforms } from '../../../universal-row/transforms/redis/registry.ts';
import { allCommands } from './all.ts';
import { CommandRegistry } from './registry.ts';

test('what a pod knows of each transform is what the table of commands says', () => {
  const registry = new CommandRegistry(allCommands);
  const expected = registry
    .entries()
    .filter(
      (entry) =>
        entry.run !== undefined && (entry.bind === undefined || entry.spec.run !== undefined),
    )
    .map((entry) => ({
      name: entry.fullName,
      run: entry.run,
      action: entry.action,
      arity: entry.arity,
      grows: entry.grows,
      usesSpan: entry.usesSpan,
      waits: entry.blocks !== undefined,
      isAllowedInScripts: entry.isAllowedInScripts,
    }));
  const order = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);
  expect([...namedTransforms].sort(order)).toEqual(expected.sort(order));
});
