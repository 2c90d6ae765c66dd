// Subjects of the tests in this folder.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { Subject } from '../../engines/conformance/trial.ts';
import type { Engine } from '../../engines/engine.ts';
import { KvEngine } from '../../engines/kv/kv-engine.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { ToyEngine } from './toy-engine.ts';

const root = mkdtempSync(join(tmpdir(), 'polyrow-conformance-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let directories = 0;
const newDirectory = (): string => join(root, `${++directories}`);

const toy: Subject = {
  model: 'toy',
  supports: { rollback: true, reopen: true },
  create: (directory) => new ToyEngine(directory),
  newDirectory,
};

/** Tries the kit's own handling of `ReadFault`. */
const faultingToy: Subject = { ...toy, create: (directory) => new ToyEngine(directory, 20) };

function built(model: string, rollback: boolean, create: (directory: string) => Engine): Subject {
  return { model, supports: { rollback, reopen: true }, create, newDirectory };
}

export const memory: Subject = built(
  'memory',
  false,
  (directory) => new MemoryEngine({ directory, disk: realDisk }),
);
export const kv: Subject = built('kv', true, (directory) => new KvEngine({ directory }));
/** So little memory that most reads go to the disk. */
const coldKv: Subject = built(
  'kv',
  true,
  (directory) => new KvEngine({ directory, cacheBytes: 64 * 1024 }),
);

export interface NamedSubject {
  name: string;
  subject: Subject;
}

export const toys: readonly NamedSubject[] = [
  { name: 'toy', subject: toy },
  { name: 'toy with read faults', subject: faultingToy },
];

export const engines: readonly NamedSubject[] = [
  { name: 'memory', subject: memory },
  { name: 'kv', subject: kv },
  { name: 'kv with a small cache', subject: coldKv },
];
