// The conformance kit over this engine, with minimal memory, so that nearly every write becomes a
// file and files are merged all the time; and with enough memory, where only checkpoints make
// files.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, test } from 'vitest';
import { FaultyDisk } from '../../storage-node/disk/faulty-disk.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { systemRng } from '../../universal-row/environment.ts';
import type { SeriesSubject } from '../series-conformance/trial.ts';
import { seriesConformance } from '../series-conformance.ts';
import { TsmEngine, type TsmEngineOptions } from './tsm-engine.ts';

const root = mkdtempSync(join(tmpdir(), 'polyrow-tsm-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let directories = 0;

// Thousands of syncs take their time: only one of the subjects needs a real disk. The others have a disk for each
// directory, as a disk in memory goes through all its names to list a directory.
const disksInMemory = new Map<string, FaultyDisk>();

function diskInMemory(directory: string): FaultyDisk {
  let disk = disksInMemory.get(directory);
  if (disk === undefined) {
    disk = new FaultyDisk({ rng: systemRng });
    disksInMemory.set(directory, disk);
  }
  return disk;
}

function subjectWith(options: Partial<TsmEngineOptions>): SeriesSubject {
  return {
    model: 'tsm',
    create: (directory) => new TsmEngine({ directory, disk: diskInMemory(directory), ...options }),
    newDirectory: () => join(root, String(directories++)),
  };
}

const subjects = [
  { memory: 'ample memory', subject: subjectWith({ disk: realDisk }) },
  { memory: 'little memory', subject: subjectWith({ headBytes: 64 * 1024, coldAfterMs: 0 }) },
  { memory: 'no memory', subject: subjectWith({ headBytes: 1, coldAfterMs: 60_000 }) },
];

// Files of a write each and of none are the two ends: what lies between is left to the full form.
const full = process.env['POLYROW_FULL'] === '1';
const chosen = subjects.filter(({ memory }) => full || memory !== 'little memory');

describe.each(chosen)('$memory', ({ subject }) => {
  afterEach(() => {
    disksInMemory.clear();
  });

  for (const { name, run } of seriesConformance(subject)) test(name, run);
});
