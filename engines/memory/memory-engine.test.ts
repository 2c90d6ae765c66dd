import { describe, expect, test } from 'vitest';
import { casesFor, runCase } from '../conformance.ts';
import { MemoryEngine } from './memory-engine.ts';
import { MemoryDisk } from './testing/memory-disk.ts';

const disk = new MemoryDisk();
let directories = 0;

const subject = {
  model: 'memory',
  supports: { rollback: false, reopen: true },
  create: (directory: string) => new MemoryEngine({ directory, disk }),
  newDirectory: () => `/memory-${++directories}`,
};

describe('the memory engine conforms', () => {
  test.each(casesFor(subject))('$name', (one) => runCase(one, subject));
});

test('without a directory it starts empty and leaves nothing', async () => {
  const engine = new MemoryEngine();
  await engine.open();
  engine.commit(5);
  expect(await engine.checkpoint()).toBe(0);
  await engine.close();
});

test('with a directory it needs a disk', () => {
  expect(() => new MemoryEngine({ directory: '/data' })).toThrow('needs a disk');
});
