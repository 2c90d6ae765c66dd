// The conformance kit over this engine with a minimal cache, so nearly every read faults, and the
// commands are run again and again. (test/conformance runs it with a large cache.)

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { casesFor, runCase } from '../conformance.ts';
import { HeldReads } from '../conformance/held-reads.ts';
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

/** All tables pass by the cache. */
const bypassing: Subject = {
  ...subjectWith({}),
  create: (directory) => {
    const engine = new KvEngine({ directory });
    engine.setCacheBypass(new Set(Array.from({ length: 16 }, (_, table) => table)));
    return engine;
  },
};

/** Reads wait at a scheduler, and what came last goes first. */
const held: Subject = {
  ...subjectWith({}),
  create: (directory) =>
    new KvEngine({ directory, cacheBytes: 0, readScheduler: new HeldReads(2, true) }),
};

// Cases of many thousands of steps run only with a large cache, to save time.
const long =
  /20000|5000|3000|many new rows|hundreds of changes|thousands|gives back|again and again/;

const ordered = subjectWith({ cacheBytes: 4096, isOrdered: () => true });
const subjects = [
  { memory: 'no memory', subject: subjectWith({ cacheBytes: 0 }), only: /./ },
  { memory: 'cache bypassed', subject: bypassing, only: /./ },
  { memory: 'reads held back', subject: held, only: /./ },
  // Cases that the order on disk affects.
  { memory: 'ordered keys', subject: ordered, only: /scan|row|table|write first|export|import/ },
];

// The subject with deferred reads has no cache either, so it covers these two.
const full = process.env['POLYROW_FULL'] === '1';
const covered = ['no memory', 'cache bypassed'];
const chosen = subjects.filter(({ memory }) => full || !covered.includes(memory));

describe.each(chosen)('$memory', ({ subject, only }) => {
  const cases = casesFor(subject).filter(({ name }) => only.test(name) && !long.test(name));
  test.each(cases)('$name', (one) => runCase(one, subject));
});
