// The result of a chain of backups is compared with the original state in every row, not only in
// the number of rows.

import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { realDisk } from '../disk/real-disk.ts';
import type { Pod } from '../pod.ts';
import { BackupFixture, type Model, put, write } from './backup-fixture.ts';
import { ChainReplays } from './chain-replay.ts';
import { readChunks } from './chunk-reader.ts';
import { ChunkWriter } from './chunk-writer.ts';
import { partialPath, publish } from './manifest.ts';
import type { BackupManifest } from './manifest-content.ts';
import { verifyBackup } from './verify.ts';

let f: BackupFixture;
let replays: ChainReplays;

function begin(): void {
  f = new BackupFixture();
  replays = new ChainReplays(f.directory);
}
afterEach(async () => {
  await replays.close();
  await f.close();
});

async function problems({ id }: BackupManifest): Promise<string> {
  return (await verifyBackup(realDisk, f.set, id, () => {}, replays)).problems.join('\n');
}

const bytes = (text: string): [Buffer, number, number] => [
  Buffer.from(text),
  0,
  Buffer.byteLength(text),
];

/** A full backup and two that go on from it. */
async function chainOf(source: Pod, model: Model): Promise<BackupManifest[]> {
  for (let i = 0; i < 200; i++) await put(source, i % 3, `key ${i}`, `value ${i}`);
  const full = await f.backup({ [model]: source });
  for (let i = 0; i < 200; i += 5) await put(source, i % 3, `key ${i}`, `second ${i}`);
  await write(source, (w) => {
    w.row(1, ...bytes('key 1'));
    w.drop();
  });
  const second = await f.backup({ [model]: source }, full);
  await put(source, 0, 'key 0', 'third');
  await put(source, 4, 'new', 'row');
  await write(source, (w) => w.clear(2));
  const third = await f.backup({ [model]: source }, second);
  expect([full, second, third].map(({ parts }) => parts[0]!.kind)).toEqual([
    'all',
    'entries',
    'entries',
  ]);
  return [full, second, third];
}

/** Puts one byte in place of another, and makes all checksums of the file and of the manifest anew. */
async function forge(manifest: BackupManifest, text: string, at: number): Promise<void> {
  const directory = join(f.set, manifest.id);
  const [part] = manifest.parts;
  const frames: Buffer[] = [];
  let found = 0;
  for await (const frame of readChunks(realDisk, directory, part!.files)) {
    const copy = Buffer.from(frame.bytes);
    const place = copy.indexOf(text);
    if (place >= 0) {
      copy[place + at]! ^= 1;
      found++;
    }
    frames.push(copy);
  }
  expect(found).toBe(1);
  for (const { name } of part!.files) rmSync(join(directory, name));
  const writer = new ChunkWriter(realDisk, directory, `redis-${part!.model}`);
  for (const frame of frames) await writer.add(frame);
  const files = await writer.finish();
  rmSync(join(directory, 'manifest.json'));
  renameSync(directory, partialPath(f.set, manifest.id));
  await publish(realDisk, f.set, { ...manifest, parts: [{ ...part!, files }] });
}

describe.each<Model>(['memory', 'kv'])('a chain of %s', (model) => {
  test('comes to what there was at each of its points', async () => {
    begin();
    const source = await f.pod('source', model);
    const chain = await chainOf(source, model);
    for (const backup of chain) expect(await problems(backup)).toBe('');
    // Also from an earlier one on, and a second time.
    for (const backup of chain.toReversed()) expect(await problems(backup)).toBe('');

    const target = await f.pod('target', model);
    const restore = f.restore(chain[2]!, model, target);
    const tables = await restore.load();
    expect(tables.map(({ table, checksumCompared }) => [table, checksumCompared])).toEqual([
      [0, true],
      [1, true],
      [4, true],
    ]);
    const noted = chain[2]!.parts[0]!.tables!.filter(({ rows }) => rows > 0);
    expect(noted.map(({ table, rows, checksum }) => [table, rows, checksum])).toEqual(
      tables.map(({ table, rows, checksum }) => [table, rows, checksum]),
    );
    await restore.release();
  });

  test('of which one byte is another is found out, though every file is as its manifest says', async () => {
    begin();
    const source = await f.pod('source', model);
    const [full, second, third] = await chainOf(source, model);
    await forge(second!, 'second 25', 8);
    expect(await problems(full!)).toBe('');
    expect(await problems(second!)).toMatch(
      /with those before it table 1 of \w+ comes to \d+ rows/,
    );
    expect(await problems(third!)).toContain('table 1');
    // Without putting it together nothing is seen.
    expect((await verifyBackup(realDisk, f.set, second!.id)).problems).toEqual([]);

    const target = await f.pod('target', model);
    const restore = f.restore(third!, model, target);
    await expect(restore.load()).rejects.toThrow(/table 1 has checksum \w+ when restored/);
    await restore.release();
    expect(target.heldTables()).toEqual([]);
  });

  test('whose first backup is not the one that it began with is found out', async () => {
    begin();
    const source = await f.pod('source', model);
    const [full, , third] = await chainOf(source, model);
    await forge(full!, 'value 61', 7);
    expect(await problems(full!)).toBe('');
    expect(await problems(third!)).toContain('table 1');
  });

  test('made without checksums is compared by its rows', async () => {
    begin();
    f.sums = false;
    const source = await f.pod('source', model);
    const [, , third] = await chainOf(source, model);
    expect(await problems(third!)).toBe('');
    const restore = f.restore(third!, model, await f.pod('target', model));
    const tables = await restore.load();
    expect(tables.map(({ checksumCompared }) => checksumCompared)).toEqual([false, false, false]);
    await restore.release();
  });
});
