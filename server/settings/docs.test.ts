import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { configurationDocs } from './docs.ts';

test('docs/configuration.md is what the schema says (polyrow config docs)', () => {
  const file = new URL('../../docs/configuration.md', import.meta.url);
  expect(readFileSync(file, 'utf8')).toBe(configurationDocs());
});
