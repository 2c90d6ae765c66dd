// A file of its own, so that it runs beside the engines in memory.

import { describe, test } from 'vitest';
import { casesFor, runCase } from '../../engines/conformance.ts';
import { kv } from './subjects.ts';

describe.each([kv])('$model', (subject) => {
  for (const one of casesFor(subject)) test(one.name, () => runCase(one, subject));
});
