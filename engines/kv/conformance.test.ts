// The conformance kit over this engine, with ample memory and with next to none: then nearly every read
// faults, and the commands are run again and again.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { casesFor, runCase } from '../conformance.ts';
import type { Subject } from '../conformance/trial.ts';
import { KvEngine, type KvEngineOptions } from './kv-engine.ts';

const root = mkdtempSync(join(tmpdir(), 'polyrow-kv-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let directories = 0;

function subjectWith(options: Partial<KvEngineOptions>): Subject {
  return {
    model: 'kv',
    supports: { rollback: true, reopen: true },
    create: (directory) => new KvEngine({ directory, ...options }),
    newDirectory: () => join(root, String(directories++)),
  };
}

const subjects = [
  { memory: 'ample memory', subject: subjectWith({}) },
  { memory: 'no memory', subject: subjectWith({ cacheBytes: 0 }) },
  { memory: 'ordered keys', subject: subjectWith({ cacheBytes: 4096, isOrdered: () => true }) },
];

describe.each(subjects)('$memory', ({ subject }) => {
  test.each(casesFor(subject))('$name', (one) => runCase(one, subject));
});
