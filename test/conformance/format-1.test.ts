// Directories that were made before an engine kept an index a group, in the formats of then.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { decodeSnapshot } from '../../engines/conformance/contents.ts';
import type { Engine } from '../../engines/engine.ts';
import { KvEngine } from '../../engines/kv/kv-engine.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';

const root = mkdtempSync(join(tmpdir(), 'polyrow-format-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Files of a directory, base64: table 3 with `key` -> `value` and a map `field`, index 42. */
const models: { model: string; files: Record<string, string>; open: (dir: string) => Engine }[] = [
  {
    model: 'memory',
    files: {
      'snapshot-42':
        'UG9seXJvd00BAAAAKgAAAAAAAAAdrajEIwAAAJPwACwVAwNrZXkFdmFsdWUBAwVmaWVsZAMCCAVmaWVs' +
        'ZAV2YWx1ZQAAAACpb0TWAQAAAAAAAAAjAAAAAAAAAA==',
    },
    open: (directory) => new MemoryEngine({ directory, disk: realDisk }),
  },
  {
    model: 'kv',
    files: {
      '000004.log': '',
      '000005.ldb':
        '1AEgAAsXVAADAQUAEQEAAQkJAAIJBwUBGBcACRNhAQYFDAwAAUBFCQkFASADAAAAAgIHEwQFDk4dAEQA' +
        'FgdtAAAAAauxIEhkC2tleQENYlQBAHZhbHVlBRMUuEDQwWwuZmllbGQBDXgyBwAJMRAKABkFcwVnBAJm' +
        'ATIJMAGBPAAAAHZhbHVlAAAAAAEAAAABFJJdkF05KEaDEMNQBgAAAAAJAAAACwDJdlCIACIDZmlsdGVy' +
        'LmxldmVsZGIuQnVpbHRpbkJsb29tRmlsdGVyMpQBEgAAAAABAAAAAMiBdmIACQN0Af////////8AjwEA' +
        'AAAAAQAAAADgMmxpqwEw4AEXAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAFf7gIskdUfb',
      CURRENT: 'TUFOSUZFU1QtMDAwMDAyCg==',
      'MANIFEST-000002':
        'Vvm4+BwAAQEabGV2ZWxkYi5CeXRld2lzZUNvbXBhcmF0b3KknIu+CAABAgMJAAMEBAAjoIXYMwABAgQJ' +
        'AAMGBAYHAgWsAgtUAAMBBQAAAAAAABlzAAAAAAACZrhA0MFmaWVsZAEDAAAAAAAA',
    },
    open: (directory) => new KvEngine({ directory }),
  },
];

async function opened(open: (directory: string) => Engine, directory: string): Promise<Engine> {
  const engine = open(directory);
  await engine.open();
  return engine;
}

describe.each(models)(
  'a directory of the $model engine with one index',
  ({ model, files, open }) => {
    const directory = join(root, model);

    test('is opened, and its index is that of the local group', async () => {
      mkdirSync(directory);
      for (const [name, text] of Object.entries(files)) {
        writeFileSync(join(directory, name), Buffer.from(text, 'base64'));
      }
      const engine = await opened(open, directory);
      expect([engine.appliedIndex, engine.appliedIndexOf(1), engine.appliedIndexOf(2)]).toEqual([
        42, 42, 0,
      ]);
      expect([...(await decodeSnapshot(engine.exportSnapshot())).keys()].sort()).toEqual([
        '3/field',
        '3/key',
      ]);
      await engine.close();
    });

    test('keeps its indexes once other groups are in it', async () => {
      let engine = await opened(open, directory);
      engine.commit(43);
      engine.commit(9, 5);
      engine.endTick();
      expect(await engine.checkpoint()).toBe(43);
      await engine.close();
      engine = await opened(open, directory);
      expect([engine.appliedIndex, engine.appliedIndexOf(5)]).toEqual([43, 9]);
      await engine.close();
    });
  },
);

test('with one group alone the memory engine writes the file that it wrote before', async () => {
  const directory = join(root, 'again');
  const { files, open } = models[0]!;
  mkdirSync(directory);
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(directory, name), Buffer.from(text, 'base64'));
  }
  const engine = await opened(open, directory);
  await engine.checkpoint();
  await engine.close();
  const found = readdirSync(directory).map((name) => [
    name,
    readFileSync(join(directory, name)).toString('base64'),
  ]);
  expect(Object.fromEntries(found)).toEqual(files);
});
