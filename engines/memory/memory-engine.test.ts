import { describe, expect, test } from 'vitest';
import { casesFor, runCase } from '../conformance.ts';
import { MemoryEngine } from './memory-engine.ts';
import { MemoryDisk } from './testing/memory-disk.ts';
import { find, put } from './testing/oracle.ts';

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

/** Two batches' worth of rows, and the export of them. */
function exported(): AsyncIterable<Buffer> {
  const source = new MemoryEngine();
  for (let i = 0; i < 1000; i++) put(source.table(0), `new ${i}`, 'x'.repeat(1000));
  return source.exportSnapshot();
}

async function onDisk(directory: string): Promise<{ index: number; rows: number; old: boolean }> {
  const engine = new MemoryEngine({ directory, disk });
  await engine.open();
  const table = engine.table(0);
  const old = find(table, 'old') !== 0;
  return { index: engine.appliedIndex, rows: table.rowCount(), old };
}

test('a checkpoint during an import waits for its end', async () => {
  const directory = subject.newDirectory();
  const engine = new MemoryEngine({ directory, disk });
  put(engine.table(0), 'old', 'row');
  engine.commit(100);
  await engine.checkpoint();
  let during: Promise<number> | undefined;
  async function* batches(): AsyncGenerator<Buffer> {
    for await (const batch of exported()) {
      yield batch;
      during ??= engine.checkpoint();
      for (let i = 0; i < 20; i++) await new Promise(setImmediate);
      expect(() => engine.exportSnapshot()).toThrow('imported');
      expect(await onDisk(directory)).toEqual({ index: 100, rows: 1, old: true });
    }
  }
  await engine.importSnapshot(batches(), 5000);
  expect(await during).toBe(5000);
  expect(await onDisk(directory)).toEqual({ index: 5000, rows: 1000, old: false });
});

test('there is no checkpoint of an import that has failed', async () => {
  const directory = subject.newDirectory();
  const engine = new MemoryEngine({ directory, disk });
  put(engine.table(0), 'old', 'row');
  engine.commit(100);
  await engine.checkpoint();
  async function* broken(): AsyncGenerator<Buffer> {
    for await (const batch of exported()) {
      yield batch;
      throw new Error('the source is gone');
    }
  }
  await expect(engine.importSnapshot(broken(), 5000)).rejects.toThrow('gone');
  engine.commit(101);
  await expect(engine.checkpoint()).rejects.toThrow('gone');
  expect(await onDisk(directory)).toEqual({ index: 100, rows: 1, old: true });
  await engine.close();
});
